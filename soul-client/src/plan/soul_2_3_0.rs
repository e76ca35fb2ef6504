//! The Java client of release 2.3.0: one body for every kind, several admins.

use super::{
    PlanError, Properties, Registration,
    dialect::{Draft, Mode, Rules},
    java,
    plan_error::Exception,
    registration::Label,
    soul_feb2021::{
        bad_port, missing_app_name, missing_context_path, rule_name_unless_blank, rule_name_unless_empty,
    },
};
use crate::{
    error::Problem,
    route::RpcType,
    wire::soul::{MetaDataRegisterDto, paths},
};

const MVC: &str = "http register param must config the registerType , serverLists and port must > 0";
const MVC_FULL: &str =
    "http register param must config the contextPath, registerType , serverLists and port must > 0";
const CLOUD: &str = "spring cloud param must config the registerType , serverLists  and appName";
const CLOUD_FULL: &str =
    "spring cloud param must config the contextPath ,registerType , serverLists  and appName";

/// Source: Soul specification, section 1.12.
pub(super) struct Soul230;

impl Rules for Soul230 {
    fn check(&self, properties: &Properties, mode: Mode) -> Result<(), PlanError> {
        let mut problems = missing_servers(properties);
        let message = match properties.rpc_type {
            RpcType::SpringCloud => {
                if java::is_blank(properties.app_name.as_deref()) {
                    problems.push(missing_app_name());
                }
                if mode == Mode::Full { CLOUD_FULL } else { CLOUD }
            }
            _ => {
                // Java reads the number before it looks at anything else.
                if mvc_port(properties)? <= 0 {
                    problems.push(Problem::new(
                        "port",
                        "must be greater than 0: set the port that the service listens on",
                    ));
                }
                if mode == Mode::Full { MVC_FULL } else { MVC }
            }
        };
        if mode == Mode::Full && java::is_blank(properties.context_path.as_deref()) {
            problems.push(missing_context_path());
        }
        if !problems.is_empty() {
            return Err(PlanError::new(problems, Exception::Runtime(message)));
        }
        known_register_type(properties)
    }

    fn checks_idle_full_mode(&self) -> bool {
        false
    }

    fn skips_unannotated(&self) -> bool {
        true
    }

    /// Split at commas, not trimmed.
    fn servers(&self, properties: &Properties) -> Vec<String> {
        properties.server_lists.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect()
    }

    fn register(&self, properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
        let dto = match properties.rpc_type {
            RpcType::SpringCloud => spring_cloud(properties, draft)?,
            _ => spring_mvc(properties, draft)?,
        };
        let rpc_type = draft.rpc_type(properties);
        let label = Label {
            // By the kind in the body, whatever the client is.
            endpoint: paths::register(&rpc_type),
            path: dto.path.clone().unwrap_or_default(),
            rule_name: dto.rule_name.clone().unwrap_or_default(),
            rpc_type,
            place: draft.place(),
            has_meta_data: draft.register_meta_data(),
        };
        Ok(Registration::new(label, &dto)?.with_meta_data(dto))
    }
}

fn spring_mvc(properties: &Properties, draft: &Draft<'_>) -> Result<MetaDataRegisterDto, PlanError> {
    // Empty and absent are the same here; blank is not.
    let path = draft.path_below(properties.context_path.as_deref().unwrap_or_default());
    Ok(MetaDataRegisterDto {
        app_name: properties.app_name.clone(),
        context_path: properties.context_path.clone(),
        rule_name: Some(rule_name_unless_blank(draft, &path)),
        path: Some(path),
        path_desc: draft.desc(),
        rpc_type: Some(draft.rpc_type(properties)),
        enabled: draft.enabled(),
        host: Some(properties.host_or_local()),
        port: Some(mvc_port(properties)?),
        register_meta_data: draft.register_meta_data(),
        ..MetaDataRegisterDto::default()
    })
}

fn spring_cloud(properties: &Properties, draft: &Draft<'_>) -> Result<MetaDataRegisterDto, PlanError> {
    let context_path = match properties.context_path.as_deref() {
        own if draft.mode == Mode::Annotations && java::is_blank(own) => {
            properties.servlet_context_path.as_deref().unwrap_or_default()
        }
        own => own.unwrap_or_default(),
    };
    let path = draft.path_below(context_path);
    // Full mode says nothing about the instance: the registry of Spring Cloud knows it.
    let (host, port) = match draft.mode {
        Mode::Full => (None, None),
        Mode::Annotations => (Some(properties.host_or_local()), Some(cloud_port(properties)?)),
    };
    Ok(MetaDataRegisterDto {
        app_name: properties.app_name.clone(),
        context_path: Some(context_path.to_owned()),
        rule_name: Some(rule_name_unless_empty(draft, &path)),
        path: Some(path),
        path_desc: draft.desc(),
        rpc_type: Some(draft.rpc_type(properties)),
        enabled: draft.enabled(),
        host,
        port,
        ..MetaDataRegisterDto::default()
    })
}

fn mvc_port(properties: &Properties) -> Result<i32, PlanError> {
    let text = properties.port.as_deref();
    java::parse_int(text).ok_or_else(|| bad_port("port", text.unwrap_or_default()))
}

/// A port that is not set is -1.
fn cloud_port(properties: &Properties) -> Result<i32, PlanError> {
    match properties.port.as_deref() {
        text if java::is_blank(text) => Ok(-1),
        text => java::parse_int(text).ok_or_else(|| bad_port("port", text.unwrap_or_default())),
    }
}

pub(super) fn missing_servers(properties: &Properties) -> Vec<Problem> {
    let mut problems = Vec::new();
    if java::is_blank(properties.register_type.as_deref()) {
        problems.push(Problem::new("registerType", "is blank: set `http`"));
    }
    if java::is_blank(properties.server_lists.as_deref()) {
        let text = "is blank: set the addresses of the admins, for example `http://localhost:9095`";
        problems.push(Problem::new("serverLists", text));
    }
    problems
}

fn known_register_type(properties: &Properties) -> Result<(), PlanError> {
    const KNOWN: [&str; 5] = ["http", "zookeeper", "etcd", "consul", "nacos"];
    match properties.register_type.as_deref() {
        Some(name) if KNOWN.contains(&name) => Ok(()),
        name => {
            let text =
                format!("`{}` is unknown, expected one of {}", name.unwrap_or_default(), KNOWN.join(", "));
            Err(PlanError::one("registerType", text, Exception::IllegalArgument("name is error")))
        }
    }
}
