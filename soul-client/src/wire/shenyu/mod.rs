//! The bodies and paths of Apache ShenYu's admin, 2.4.0 to 2.7.1, as a service that registers itself sees them.
//!
//! Every release ignores members that it does not know, so each body is written in its latest form.

mod answer;
mod login;
pub mod paths;
mod register;

pub use answer::{AdminAnswer, CODE_BAD_TOKEN, SUCCESS, SUCCESS_CODE};
pub use login::{Login, LoginAnswer};
pub use register::{EventType, InstanceInfo, MetaDataRegisterDto, UriRegisterDto};

/// The namespace that every admin of 2.7.0 and later has (ShenYu specification, head).
pub const DEFAULT_NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";

/// What is sent as `rpcType` by a service that speaks HTTP.
pub const RPC_TYPE_HTTP: &str = "http";
