//! What each line of ShenYu's releases is sent, request by request (`shenyu_requests.json` says where they are
//! from).

use serde::Deserialize;
use soul_client::{
    Dialect, RegistrationPlan, ShenyuVersion,
    plan::{ClassDeclarations, Properties},
    route::{Annotation, Collected, Route},
    wire::shenyu::InstanceInfo,
};

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    version: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    what: String,
    path: String,
    token: bool,
    body: Option<String>,
}

/// Two handlers, `GET /list` and `GET /item/{id}`, of the specification's example.
fn declarations() -> ClassDeclarations {
    let route = |path, desc, handler| {
        Route::new(Annotation::new(path).desc(desc)).module("orders::api").handler(handler)
    };
    let routes = [route("/list", "list orders", "list"), route("/item/{id}", "one order", "item")];
    (&Collected::group([], routes)).into()
}

/// The text of the machine's description is taken out.
fn without_machine(body: &str) -> String {
    match body.split_once("\"instanceInfo\":\"") {
        Some((before, _)) => format!("{before}\"instanceInfo\":\"<machine>\"}}"),
        None => body.to_owned(),
    }
}

#[test]
fn every_release_is_sent_its_requests() {
    let file: File = serde_json::from_str(include_str!("shenyu_requests.json")).unwrap();
    let versions: Vec<_> = file.cases.iter().map(|case| case.version.as_str()).collect();
    assert_eq!(versions, ShenyuVersion::ALL.map(ShenyuVersion::as_str), "every release has its case");

    for (case, version) in file.cases.iter().zip(ShenyuVersion::ALL) {
        let mut properties = Properties::new(Dialect::Shenyu(version), "192.168.1.20");
        properties.server_lists = Some("http://127.0.0.1:9095".into());
        properties.context_path = Some("/orders".into());
        properties.app_name = Some("orders".into());
        properties.port = Some("3000".into());
        properties.time_millis = Some(1_752_000_000_000);
        properties.instance_info = Some(InstanceInfo::default());
        let plan = RegistrationPlan::new(&properties, &declarations()).unwrap();
        assert_eq!(plan.failures(), []);

        let mut sent: Vec<(&str, &str, String)> = Vec::new();
        for registration in plan.registrations() {
            sent.push(("route", registration.endpoint().unwrap(), registration.body().to_owned()));
        }
        for instance in plan.instances() {
            sent.push(("instance", instance.endpoint(), instance.register().to_owned()));
            if let Some(body) = instance.heartbeat() {
                sent.push(("heartbeat", instance.endpoint(), without_machine(body)));
            }
            if let Some(leave) = instance.leave() {
                sent.push(("leave", leave.endpoint, leave.body.clone()));
            }
        }
        let expected: Vec<_> = case
            .steps
            .iter()
            .filter(|step| step.what != "login")
            .map(|step| (step.what.as_str(), step.path.as_str(), step.body.clone().unwrap()))
            .collect();
        assert_eq!(sent, expected, "{}", case.version);
        let logs_in = case.steps.iter().any(|step| step.what == "login");
        assert_eq!(logs_in, version.needs_login(), "{}", case.version);
        assert!(case.steps.iter().all(|step| step.what == "login" || step.token == logs_in));
    }
}
