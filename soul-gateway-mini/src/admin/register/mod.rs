//! What a registration does to the store, as a pure function: specification, section 2.
//!
//! [`plan`] says which rows a body makes and which events follow, in Soul's order and with Soul's exact texts,
//! without touching anything. A refusal keeps the effects that Soul would have had before it failed, so that its
//! behaviour can be compared; the store of this admin takes a plan whole or not at all. The HTTP side, which
//! reads bodies and refuses malformed ones before they come here, is `endpoint`.

mod defaults;
mod effect;
mod plan;
mod service;
mod stored;

pub(crate) mod body;
pub(crate) mod endpoint;
pub(crate) mod fields;

pub use defaults::{
    UnsupportedRpcType, context_segment, rule_handle, rule_operator, rule_pattern, spring_cloud_handle,
};
pub use effect::{Effect, MetaDataEffect, Node, Plan, Refusal, Reply};
pub(crate) use plan::condition;
pub use plan::{plan, plan_instance, selector_name};
pub use service::{Dialect, Service};
pub use stored::{HandleFault, MetaDataRow, Stored, StoredSelector, parse_upstreams};
