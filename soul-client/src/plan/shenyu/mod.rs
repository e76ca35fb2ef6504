//! What Apache ShenYu's admins read: one room for all releases, whose differences are the data of `version`.
//!
//! Unlike Soul's, these bodies are not what a Java client of that release would send, but what every admin
//! understands: pieces of a path are joined with exactly one slash, variables become wildcards that the
//! gateway can match, and what an admin would drop or cut in silence is refused here.

mod instance;
pub(super) mod template;
mod version;

pub use instance::{Instance, Leave};
pub use version::{Heartbeat, ShenyuVersion};

use version::{Leaving, Profile, Recipient};

use super::{
    PlanError, Properties, Registration,
    dialect::{Draft, Mode, Rules},
    java,
    registration::Label,
    soul_feb2021::no_port,
};
use crate::{
    error::Problem,
    route::{Place, RpcType},
    wire::{
        gson,
        shenyu::{DEFAULT_NAMESPACE, EventType, MetaDataRegisterDto, RPC_TYPE_HTTP, UriRegisterDto, paths},
    },
};

/// Characters that the columns of an admin's database hold; what is longer fails there, where nobody sees it.
mod limits {
    /// Condition of a rule: the whole path.
    pub(super) const PATH: usize = 64;
    /// Condition of a selector, which is the context path and a slash.
    pub(super) const CONTEXT_PATH: usize = 63;
    pub(super) const RULE_NAME: usize = 128;
    pub(super) const NAME: usize = 255;
}

/// Source: ShenYu specification, sections 1.3 to 1.9.
pub(super) struct Shenyu(pub(super) &'static Profile);

impl Rules for Shenyu {
    fn check(&self, properties: &Properties, _: Mode) -> Result<(), PlanError> {
        let mut problems = Vec::new();
        let context_path = self.context_path(properties);
        if context_path.len() < 2 {
            let text = "is blank: set the prefix that names the service, for example `/order`";
            problems.push(Problem::new("contextPath", text));
        }
        too_long("contextPath", &context_path, limits::CONTEXT_PATH, None, &mut problems);
        match properties.app_name.as_deref() {
            name if java::is_blank(name) => {
                let text = "is blank: an admin drops every registration that names no application";
                problems.push(Problem::new("appName", text));
            }
            name => too_long("appName", name.unwrap_or_default(), limits::NAME, None, &mut problems),
        }
        if properties.port_number().is_none() {
            problems.push(no_port(properties));
        }
        if !matches!(properties.protocol.as_str(), "http://" | "https://") {
            let text = format!("`{}` is unknown, expected `http://` or `https://`", properties.protocol);
            problems.push(Problem::new("protocol", text));
        }
        if properties.namespaces.iter().any(|namespace| java::is_blank(Some(namespace))) {
            let text = "is blank: leave it out for the default one, or write its id";
            problems.push(Problem::new("namespace", text));
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
        let servers = properties.servers().map(|server| server.trim_end_matches('/'));
        servers.filter(|server| !server.is_empty()).map(str::to_owned).collect()
    }

    /// The first namespace's; [`register_all`](Rules::register_all) is what is used.
    fn register(&self, properties: &Properties, draft: &Draft<'_>) -> Result<Registration, PlanError> {
        self.registration(properties, draft, self.namespaces(properties)[0])
    }

    fn register_all(
        &self,
        properties: &Properties,
        draft: &Draft<'_>,
    ) -> Vec<Result<Registration, PlanError>> {
        let namespaces = self.namespaces(properties);
        namespaces.into_iter().map(|namespace| self.registration(properties, draft, namespace)).collect()
    }

    fn instances(&self, properties: &Properties) -> Result<Vec<Instance>, PlanError> {
        if self.0.upstream_from == Recipient::MetaData {
            return Ok(Vec::new());
        }
        self.namespaces(properties)
            .into_iter()
            .map(|namespace| self.instance(properties, namespace))
            .collect()
    }
}

impl Shenyu {
    /// Those to register in; releases without namespaces are told once.
    fn namespaces<'a>(&self, properties: &'a Properties) -> Vec<&'a str> {
        match properties.namespaces.as_slice() {
            [] => vec![DEFAULT_NAMESPACE],
            [first, ..] if !self.0.namespaces => vec![first],
            several => several.iter().map(String::as_str).collect(),
        }
    }

    /// `/orders`, or nothing.
    fn context_path(&self, properties: &Properties) -> String {
        let text = template::join(&[properties.context_path.as_deref().unwrap_or_default()]);
        self.written(text.trim_end_matches('/'))
    }

    /// As the gateways of this release see a path.
    fn written(&self, path: &str) -> String {
        if self.0.sees_encoded_paths { template::encode(path) } else { path.to_owned() }
    }

    fn registration(
        &self,
        properties: &Properties,
        draft: &Draft<'_>,
        namespace: &str,
    ) -> Result<Registration, PlanError> {
        let plain_context = template::join(&[properties.context_path.as_deref().unwrap_or_default()]);
        let whole = template::join(&[&plain_context, draft.prefix(), draft.path()]);
        let mut problems = Vec::new();
        if draft.rpc_type(properties) != RpcType::Http.as_str() {
            let text = format!(
                "`{}` of `{whole}`{} is not for ShenYu: leave it out, so that it is `http`",
                draft.rpc_type(properties),
                at(draft.place())
            );
            problems.push(Problem::new("rpc_type", text));
        }
        let path = match template::pattern(&whole) {
            Ok(pattern) => self.written(&pattern),
            Err(reason) => {
                problems.push(Problem::new("path", format!("`{whole}`{} {reason}", at(draft.place()))));
                String::new()
            }
        };
        let rule_name = match (draft.mode, draft.rule_name()) {
            (Mode::Full, _) => plain_context.trim_end_matches('/').to_owned(),
            (Mode::Annotations, own) if java::is_blank(Some(own)) => whole,
            (Mode::Annotations, own) => own.to_owned(),
        };
        for (field, text, limit) in [
            ("path", path.as_str(), limits::PATH),
            ("rule_name", rule_name.as_str(), limits::RULE_NAME),
            ("module", draft.module(), limits::NAME),
            ("handler", draft.handler(), limits::NAME),
        ] {
            too_long(field, text, limit, draft.place(), &mut problems);
        }
        if !problems.is_empty() {
            return Err(PlanError::ours(problems));
        }
        let dto = MetaDataRegisterDto {
            app_name: properties.app_name.clone(),
            context_path: Some(self.context_path(properties)),
            path: Some(path.clone()),
            path_desc: Some(draft.desc().unwrap_or_default()),
            rpc_type: Some(RPC_TYPE_HTTP.to_owned()),
            service_name: Some(draft.module().to_owned()),
            method_name: Some(draft.handler().to_owned()),
            rule_name: Some(rule_name.clone()),
            parameter_types: Some(String::new()),
            rpc_ext: None,
            enabled: draft.enabled(),
            register_meta_data: draft.register_meta_data(),
            plugin_names: Some(Vec::new()),
            host: Some(properties.host_or_local()),
            port: properties.port_number(),
            time_millis: properties.time_millis,
            add_prefixed: properties.add_prefixed,
            namespace_id: Some(namespace.to_owned()),
        };
        let label = Label {
            endpoint: Some(self.0.meta_data_endpoint()),
            path,
            rule_name,
            rpc_type: RPC_TYPE_HTTP.to_owned(),
            place: draft.place(),
            has_meta_data: draft.register_meta_data(),
        };
        Ok(Registration::new(label, &dto)?.in_namespace(namespace))
    }

    fn instance(&self, properties: &Properties, namespace: &str) -> Result<Instance, PlanError> {
        let body = |event: EventType, instance_info: Option<String>| {
            let dto = UriRegisterDto {
                protocol: Some(properties.protocol.clone()),
                app_name: properties.app_name.clone(),
                context_path: Some(self.context_path(properties)),
                rpc_type: Some(RPC_TYPE_HTTP.to_owned()),
                host: Some(properties.host_or_local()),
                port: properties.port_number(),
                event_type: Some(event),
                namespace_id: Some(namespace.to_owned()),
                instance_info,
            };
            json(&dto)
        };
        let heartbeat = match self.0.heartbeat {
            Some(_) => {
                let info = properties.instance_info.as_ref().filter(|_| self.0.instance_info);
                Some(body(EventType::Heartbeat, info.map(json).transpose()?)?)
            }
            None => None,
        };
        let leave = match self.0.leaving {
            Leaving::ByProbeOnly => None,
            Leaving::Deleted => Some((paths::REGISTER_URI, EventType::Deleted)),
            Leaving::Offline => Some((paths::OFFLINE, EventType::Offline)),
        };
        let leave = match leave {
            Some((endpoint, event)) => Some(Leave { endpoint, body: body(event, None)? }),
            None => None,
        };
        let register = body(EventType::Register, None)?;
        Ok(Instance {
            endpoint: paths::REGISTER_URI,
            namespace: namespace.to_owned(),
            register,
            heartbeat,
            leave,
        })
    }
}

fn json<T: serde::Serialize>(dto: &T) -> Result<String, PlanError> {
    gson::to_plain(dto).map_err(PlanError::unwritable)
}

/// ` (src/orders.rs:12:5)`, if that is known.
fn at(place: Option<Place>) -> String {
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

fn too_long(
    field: &'static str,
    text: &str,
    limit: usize,
    place: Option<Place>,
    problems: &mut Vec<Problem>,
) {
    let length = text.chars().count();
    if length > limit {
        let at = at(place);
        let text = format!(
            "`{text}`{at} has {length} characters and an admin of ShenYu stores {limit} at most: shorten it"
        );
        problems.push(Problem::new(field, text));
    }
}

#[cfg(test)]
mod tests;
