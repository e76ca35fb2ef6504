//! The paths of Soul's admin (specification, sections 1.1 and 10.2).

/// Registers one route of a plain HTTP service.
pub const SPRING_MVC_REGISTER: &str = "/soul-client/springmvc-register";
/// Registers one route of a service found by name.
pub const SPRING_CLOUD_REGISTER: &str = "/soul-client/springcloud-register";
/// Registers one dubbo method.
pub const DUBBO_REGISTER: &str = "/soul-client/dubbo-register";
/// Registers one sofa method.
pub const SOFA_REGISTER: &str = "/soul-client/sofa-register";
/// Registers one tars method.
pub const TARS_REGISTER: &str = "/soul-client/tars-register";
/// Registers one grpc method.
pub const GRPC_REGISTER: &str = "/soul-client/grpc-register";

/// Takes the instance of a registration's body out: `POST`. An extension of this project's admin, which tells of it by
/// [`EXTENSIONS_HEADER`]; Soul's admins have no such path.
pub const OFFLINE: &str = "/soul-client/offline";
/// Header of the answer to a registration that lists, by commas, what the admin knows beyond Soul.
pub const EXTENSIONS_HEADER: &str = "soul-extensions";
/// Says in [`EXTENSIONS_HEADER`] that the admin knows [`OFFLINE`].
pub const EXTENSION_OFFLINE: &str = "offline";

/// Gives whole groups of configuration: `GET`, parameter `groupKeys` once a group.
pub const CONFIGS_FETCH: &str = "/configs/fetch";
/// Answers when a group has changed, or after 60 s: `POST`, one form parameter a group.
pub const CONFIGS_LISTENER: &str = "/configs/listener";

/// The registration path of an rpc type as it stands on the wire (`http`, `springCloud`, …); `None` for an unknown one.
///
/// ```
/// use soul_client::wire::soul::paths;
///
/// assert_eq!(paths::register("http"), Some("/soul-client/springmvc-register"));
/// assert_eq!(paths::register("HTTP"), None);
/// ```
#[must_use]
pub fn register(rpc_type: &str) -> Option<&'static str> {
    match rpc_type {
        "http" => Some(SPRING_MVC_REGISTER),
        "springCloud" => Some(SPRING_CLOUD_REGISTER),
        "dubbo" => Some(DUBBO_REGISTER),
        "sofa" => Some(SOFA_REGISTER),
        "tars" => Some(TARS_REGISTER),
        "grpc" => Some(GRPC_REGISTER),
        _ => None,
    }
}
