//! The published crate `shenyu-client-rust`, unchanged, against the admin and the gateway of this project.
//!
//! `run` beside this package builds and starts it with the path of the program under test. Every story has an admin and a
//! gateway of its own. The last line is `N passed, N failed`, and the exit code says the same.

mod parts;

use std::time::Duration;

use axum::routing::get;
use shenyu_client_rust::{IRouter as _, axum_impl::ShenYuRouter, config::ShenYuConfig, core::ShenyuClient};

use parts::{Parts, Service, eventually, status};

/// The namespace that the admin serves.
const NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";
const PASSWORD: &str = "pass&word 1";

type Story = fn(&Parts) -> Result<(), String>;

/// Name, flags of the admin, and what is to be seen.
const STORIES: [(&str, &[&str], Story); 5] = [
    ("registers, is reachable, and leaves", &["--upstream-check-interval", "0"], registers_and_leaves),
    ("logs in where a login is asked for", &["--shenyu-password", PASSWORD], logs_in),
    ("is refused with a wrong password", &["--shenyu-password", "another"], is_refused),
    ("has one of its namespaces served", &[], one_namespace_of_two),
    ("is probed away when it dies", &["--upstream-check-interval", "0.1"], is_probed_away),
];

fn main() {
    let program = std::env::args().nth(1).unwrap_or_else(|| {
        eprintln!("usage: shenyu-client-rust-story PATH-OF-SOUL-GATEWAY-MINI");
        std::process::exit(2);
    });
    let mut failed = 0;
    for (name, flags, story) in STORIES {
        let told = Parts::start(&program, flags).and_then(|parts| story(&parts));
        match told {
            Ok(()) => println!("ok      {name}"),
            Err(why) => {
                failed += 1;
                println!("FAILED  {name}: {why}");
            }
        }
    }
    println!("{} passed, {failed} failed", STORIES.len() - failed);
    std::process::exit(i32::from(failed > 0));
}

fn registers_and_leaves(parts: &Parts) -> Result<(), String> {
    let service = Service::start(router())?;
    let client = client(parts, &service, NAMESPACE)?;
    client.register().map_err(|error| error.to_string())?;
    for (path, answer) in [("/orders/list", "list"), ("/orders/save", "save")] {
        let url = format!("{}{path}", parts.gateway);
        eventually(&format!("the answer `{answer}` of {path}"), || {
            ureq::get(&url).call().is_ok_and(|found| found.into_string().is_ok_and(|text| text == answer))
        })?;
    }
    let other = status(&format!("{}/orders/other", parts.gateway));
    if other != Some(404) {
        return Err(format!("a path that was not registered is answered with {other:?}"));
    }
    client.offline_register();
    // It still listens: what takes it out is the word of the client.
    eventually("503 after the client has left", || {
        status(&format!("{}/orders/list", parts.gateway)) == Some(503)
    })
}

fn logs_in(parts: &Parts) -> Result<(), String> {
    let service = Service::start(router())?;
    client(parts, &service, NAMESPACE)?.register().map_err(|error| error.to_string())?;
    is_reachable(parts)
}

fn is_refused(parts: &Parts) -> Result<(), String> {
    let service = Service::start(router())?;
    // It says that all is well in any case.
    client(parts, &service, NAMESPACE)?.register().map_err(|error| error.to_string())?;
    if parts.selectors()? == 0 { Ok(()) } else { Err("it was registered".to_owned()) }
}

fn one_namespace_of_two(parts: &Parts) -> Result<(), String> {
    let service = Service::start(router())?;
    let namespaces = format!("another;{NAMESPACE}");
    client(parts, &service, &namespaces)?.register().map_err(|error| error.to_string())?;
    is_reachable(parts)
}

fn is_probed_away(parts: &Parts) -> Result<(), String> {
    let service = Service::start(router())?;
    client(parts, &service, NAMESPACE)?.register().map_err(|error| error.to_string())?;
    is_reachable(parts)?;
    drop(service);
    eventually("503 after the service has died", || {
        status(&format!("{}/orders/list", parts.gateway)) == Some(503)
    })
}

fn is_reachable(parts: &Parts) -> Result<(), String> {
    let url = format!("{}/orders/list", parts.gateway);
    eventually("200 through the gateway", || status(&url) == Some(200))
}

/// A service as the documentation of the crate writes one.
fn router() -> ShenYuRouter {
    ShenYuRouter::new("orders").route("/list", "get", get(async || "list")).route(
        "/save",
        "get",
        get(async || "save"),
    )
}

fn client(parts: &Parts, service: &Service, namespaces: &str) -> Result<ShenyuClient, String> {
    let text = format!(
        r#"
        register:
          register_type: http
          servers: "{admin}"
          namespace_id: "{namespaces}"
          props: {{ username: admin, password: "{PASSWORD}" }}
        uri:
          {{ app_name: orders, host: 127.0.0.1, port: 0, context_path: /orders, environment: test, rpc_type: http }}
        discovery:
          {{ protocol: "http://", discovery_type: local, server_lists: "", register_path: "", plugin_name: divide, props: {{}} }}
        "#,
        admin = parts.admin,
    );
    let config: ShenYuConfig = serde_yaml::from_str(&text).map_err(|error| error.to_string())?;
    let router = router();
    ShenyuClient::new(config, router.app_name(), router.uri_infos(), service.port)
}

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);
