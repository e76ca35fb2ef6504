//! The paths of ShenYu's admin (ShenYu specification, sections 1.2 and 1.3), and its header.

/// Gives a token: `GET` with `userName` and `password`; releases to come take them by `POST`, as JSON, too.
pub const LOGIN: &str = "/platform/login";
/// Registers one route, 2.4.0 only.
pub const SPRING_MVC_REGISTER: &str = "/shenyu-client/springmvc-register";
/// Registers one route, 2.4.1 and later.
pub const REGISTER_METADATA: &str = "/shenyu-client/register-metadata";
/// Registers one instance, 2.4.1 and later; also takes its heartbeat.
pub const REGISTER_URI: &str = "/shenyu-client/register-uri";
/// Takes one instance out, 2.6.0 and later.
pub const OFFLINE: &str = "/shenyu-client/offline";
/// Registers documentation of one route, 2.5.1 and later; never posted to by this crate.
pub const REGISTER_API_DOC: &str = "/shenyu-client/register-apiDoc";
/// Tells of a registry that instances are found in, 2.6.1 and later; never posted to by this crate.
pub const REGISTER_DISCOVERY_CONFIG: &str = "/shenyu-client/register-discoveryConfig";
/// A heartbeat for the dashboard, 2.7.0.3 and later; never posted to by this crate.
pub const INSTANCE_BEAT: &str = "/instance/beat";
/// Exists from 2.7.0.3 on, which tells that heartbeats have an effect; never posted to by this crate.
pub const REGISTER_MCP: &str = "/shenyu-client/register-mcp";
/// The header that carries the token.
pub const TOKEN_HEADER: &str = "X-Access-Token";
