//! One body that either admin understands: what this crate sends unless told otherwise.

use super::{
    PlanError, Properties, Registration,
    dialect::{Draft, Mode, Rules},
    java,
    registration::Label,
    soul_2_3_0::missing_servers,
    soul_feb2021::{missing_app_name, missing_context_path, no_port, rule_name_unless_blank},
};
use crate::{
    route::RpcType,
    wire::soul::{UnifiedRegisterDto, paths},
};

/// Source: Soul specification, section 1.13. Both kinds carry host, port and either name of the context path.
pub(super) struct SoulAny;

impl Rules for SoulAny {
    fn check(&self, properties: &Properties, _: Mode) -> Result<(), PlanError> {
        let mut problems = missing_servers(properties);
        if java::is_blank(properties.context_path.as_deref()) {
            problems.push(missing_context_path());
        }
        if properties.rpc_type == RpcType::SpringCloud && java::is_blank(properties.app_name.as_deref()) {
            problems.push(missing_app_name());
        }
        if properties.port_number().is_none() {
            problems.push(no_port(properties));
        }
        if problems.is_empty() { Ok(()) } else { Err(PlanError::ours(problems)) }
    }

    fn checks_idle_full_mode(&self) -> bool {
        true
    }

    fn skips_unannotated(&self) -> bool {
        false
    }

    fn servers(&self, properties: &Properties) -> Vec<String> {
        properties.servers().map(str::to_owned).collect()
    }

    fn register(&self, properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
        let rpc_type = draft.rpc_type(properties);
        let path = draft.path_below(properties.context_path.as_deref().unwrap_or_default());
        let rule_name = rule_name_unless_blank(draft, &path);
        let dto = UnifiedRegisterDto {
            app_name: properties.app_name.clone(),
            context: properties.context_path.clone(),
            context_path: properties.context_path.clone(),
            path: Some(path.clone()),
            path_desc: draft.desc(),
            rpc_type: Some(rpc_type.clone()),
            host: Some(properties.host_or_local()),
            port: properties.port_number(),
            rule_name: Some(rule_name.clone()),
            enabled: draft.enabled(),
            register_meta_data: draft.register_meta_data(),
        };
        let label = Label {
            endpoint: paths::register(&rpc_type),
            path,
            rule_name,
            rpc_type,
            place: draft.place(),
            has_meta_data: draft.register_meta_data(),
        };
        Registration::new(label, &dto)
    }
}
