//! A 2.3.0 plan as the nodes that the Java client writes into ZooKeeper.
//!
//! Pure: which nodes, of which kind, with which text. The text is what the Java client hands to its
//! serializer, not the bytes that the serializer makes of it.

use std::collections::BTreeMap;

use super::{PlanError, Registration, RegistrationPlan, java, plan_error::Exception};
use crate::wire::{
    gson,
    soul::{MetaDataRegisterDto, UriRegisterDto},
};

const ROOT: &str = "/soul/register";

/// How a node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeMode {
    /// Persistent, without data, and only to hold others.
    PersistentParent,
    /// Persistent; written again by every registration.
    Persistent,
    /// Gone with the session that made it; made only where there is none.
    Ephemeral,
}

impl NodeMode {
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PersistentParent => "persistent_parent",
            Self::Persistent => "persistent",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// A node to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// How.
    pub mode: NodeMode,
    /// Where.
    pub path: String,
    /// With which text.
    pub data: Option<String>,
}

/// The nodes of a plan, sorted by path, and what cannot be written as one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Layout {
    /// Nodes, parents before what they hold.
    pub nodes: Vec<Node>,
    /// One for each registration that has no place in the registry; a Java client loses these.
    pub failures: Vec<PlanError>,
}

/// Lays a plan out as nodes. A plan of another dialect than 2.3.0 has none.
///
/// # Source
/// Soul specification, section 1.12.6.
#[must_use]
pub fn layout(plan: &RegistrationPlan) -> Layout {
    // In the order of declaration, and with what was declared again: the later text of a node stands.
    let mut declared: Vec<_> =
        plan.registrations().iter().chain(plan.repeats().iter().map(|repeat| repeat.again())).collect();
    declared.sort_by_key(|registration| registration.order());

    let mut nodes = BTreeMap::new();
    let mut failures = plan.failures().to_vec();
    for dto in declared.into_iter().filter_map(Registration::meta_data) {
        if let Err(error) = write(dto, &mut nodes) {
            failures.push(error);
        }
    }
    Layout { nodes: nodes.into_values().collect(), failures }
}

fn write(dto: &MetaDataRegisterDto, nodes: &mut BTreeMap<String, Node>) -> Result<(), PlanError> {
    let context = context_of(dto)?;
    let rpc_type = dto.rpc_type.as_deref().unwrap_or("null");

    let parent = format!("{ROOT}/metadata/{rpc_type}/{context}");
    let path = format!("{parent}/{}", node_name(dto)?);
    put(nodes, NodeMode::PersistentParent, parent, None);
    put(nodes, NodeMode::Persistent, path, Some(text(dto)?));

    if !matches!(rpc_type, "http" | "tars" | "grpc") {
        return Ok(());
    }
    let parent = format!("{ROOT}/uri/{rpc_type}/{context}");
    let host = dto.host.as_deref().unwrap_or("null");
    let port = dto.port.map_or_else(|| "null".to_owned(), |port| port.to_string());
    let path = format!("{parent}/{host}:{port}");
    put(nodes, NodeMode::PersistentParent, parent, None);
    if !nodes.contains_key(&path) {
        put(nodes, NodeMode::Ephemeral, path, Some(text(&uri_of(dto))?));
    }
    Ok(())
}

fn put(nodes: &mut BTreeMap<String, Node>, mode: NodeMode, path: String, data: Option<String>) {
    nodes.insert(path.clone(), Node { mode, path, data });
}

/// The context path without its first character.
fn context_of(dto: &MetaDataRegisterDto) -> Result<&str, PlanError> {
    let text =
        "is needed in a ZooKeeper registry: set the prefix that names the service, for example `/order`";
    let context_path = dto
        .context_path
        .as_deref()
        .ok_or_else(|| PlanError::one("contextPath", text, Exception::NullPointer))?;
    java::without_first(context_path)
        .ok_or_else(|| PlanError::one("contextPath", text, Exception::StringIndexOutOfBounds))
}

fn node_name(dto: &MetaDataRegisterDto) -> Result<String, PlanError> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    let name = match dto.rpc_type.as_deref() {
        Some("http" | "springCloud") => {
            format!("{}-{}", text(&dto.context_path), text(&dto.rule_name).replace('/', "-"))
        }
        // The first letter of the service is lost with it; so it is in Java.
        _ => format!("{}.{}", text(&dto.service_name), text(&dto.method_name)),
    };
    let short = java::without_first(&name).map(str::to_owned);
    short.ok_or_else(|| PlanError::one("ruleName", "is empty", Exception::StringIndexOutOfBounds))
}

fn uri_of(dto: &MetaDataRegisterDto) -> UriRegisterDto {
    UriRegisterDto {
        app_name: dto.app_name.clone(),
        context_path: dto.context_path.clone(),
        rpc_type: dto.rpc_type.clone(),
        host: dto.host.clone(),
        port: dto.port,
        event_type: None,
    }
}

fn text<T: serde::Serialize>(dto: &T) -> Result<String, PlanError> {
    gson::to_soul(dto).map_err(PlanError::unwritable)
}
