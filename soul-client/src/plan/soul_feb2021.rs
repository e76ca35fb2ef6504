//! The Java client of February 2021: one admin, a body for each kind of client.

use super::{
    PlanError, Properties, Registration,
    dialect::{Draft, Mode, Rules},
    java,
    plan_error::Exception,
    registration::Label,
};
use crate::{
    error::Problem,
    route::RpcType,
    wire::soul::{SpringCloudRegisterDto, SpringMvcRegisterDto, paths},
};

const MVC: &str = "spring mvc param must config contextPath, adminUrl and port";
const CLOUD: &str = "spring cloud param must config the contextPath, adminUrl and appName";

/// Source: Soul specification, sections 1.3, 1.4, 1.7 to 1.9.
pub(super) struct SoulFeb2021;

impl Rules for SoulFeb2021 {
    fn check(&self, properties: &Properties, _: Mode) -> Result<(), PlanError> {
        let blank = |text: &Option<String>| java::is_blank(text.as_deref());
        let mut problems = Vec::new();
        if blank(&properties.context_path) {
            problems.push(missing_context_path());
        }
        if blank(&properties.server_lists) {
            let text = "is blank: set the address of the admin, for example `http://localhost:9095`";
            problems.push(Problem::new("adminUrl", text));
        }
        let message = match properties.rpc_type {
            RpcType::SpringCloud => {
                if blank(&properties.app_name) {
                    problems.push(missing_app_name());
                }
                CLOUD
            }
            _ => {
                if properties.port.is_none() {
                    problems
                        .push(Problem::new("port", "is absent: set the port that the service listens on"));
                }
                MVC
            }
        };
        if problems.is_empty() {
            return Ok(());
        }
        Err(PlanError::new(problems, Exception::Runtime(message)))
    }

    fn checks_idle_full_mode(&self) -> bool {
        true
    }

    fn skips_unannotated(&self) -> bool {
        false
    }

    /// One address, taken as it is: commas and slashes at the end included.
    fn servers(&self, properties: &Properties) -> Vec<String> {
        properties.server_lists.iter().cloned().collect()
    }

    fn register(&self, properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
        match properties.rpc_type {
            RpcType::SpringCloud => spring_cloud(properties, draft),
            _ => spring_mvc(properties, draft),
        }
    }
}

fn spring_mvc(properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
    let port = properties.port.as_deref();
    let port = java::parse_int(port).ok_or_else(|| bad_port("port", port.unwrap_or_default()))?;
    let path = draft.path_below(properties.context_path.as_deref().unwrap_or_default());
    let rule_name = rule_name_unless_blank(draft, &path);
    let dto = SpringMvcRegisterDto {
        app_name: properties.app_name.clone(),
        context: properties.context_path.clone(),
        path: Some(path.clone()),
        path_desc: draft.desc(),
        rpc_type: Some(draft.rpc_type(properties)),
        host: Some(properties.host_or_local()),
        port: Some(port),
        rule_name: Some(rule_name.clone()),
        enabled: draft.enabled(),
        register_meta_data: draft.register_meta_data(),
    };
    let label = Label {
        endpoint: Some(paths::SPRING_MVC_REGISTER),
        path,
        rule_name,
        rpc_type: draft.rpc_type(properties),
        place: draft.place(),
        has_meta_data: draft.register_meta_data(),
    };
    Registration::new(label, &dto)
}

fn spring_cloud(properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
    let path = draft.path_below(properties.context_path.as_deref().unwrap_or_default());
    let rule_name = rule_name_unless_empty(draft, &path);
    let dto = SpringCloudRegisterDto {
        app_name: properties.app_name.clone(),
        context: properties.context_path.clone(),
        path: Some(path.clone()),
        path_desc: draft.desc(),
        rpc_type: Some(draft.rpc_type(properties)),
        rule_name: Some(rule_name.clone()),
        enabled: draft.enabled(),
    };
    let label = Label {
        endpoint: Some(paths::SPRING_CLOUD_REGISTER),
        path,
        rule_name,
        rpc_type: draft.rpc_type(properties),
        place: draft.place(),
        has_meta_data: draft.register_meta_data(),
    };
    Registration::new(label, &dto)
}

/// How Spring MVC clients name a rule.
pub(super) fn rule_name_unless_blank(draft: &Draft<'_>, path: &str) -> String {
    let own = draft.rule_name();
    if java::is_blank(Some(own)) { path.to_owned() } else { own.to_owned() }
}

/// How Spring Cloud clients name a rule: white space is a name.
pub(super) fn rule_name_unless_empty(draft: &Draft<'_>, path: &str) -> String {
    let own = draft.rule_name();
    if own.is_empty() { path.to_owned() } else { own.to_owned() }
}

pub(super) fn missing_context_path() -> Problem {
    Problem::new("contextPath", "is blank: set the prefix that names the service, for example `/order`")
}

/// For the dialects of ours, which want a port that can be reached.
pub(super) fn no_port(properties: &Properties) -> Problem {
    let text = properties.port.as_deref().unwrap_or_default();
    Problem::new("port", format!("`{text}` is no port: set the one that the service listens on"))
}

pub(super) fn missing_app_name() -> Problem {
    Problem::new("appName", "is blank: set the name of the application (`spring.application.name` in Java)")
}

pub(super) fn bad_port(field: &'static str, text: &str) -> PlanError {
    PlanError::one(
        field,
        format!("`{text}` is no number: set the port that the service listens on"),
        Exception::NumberFormat,
    )
}
