// Of several definitions of a link the first one counts: here come those for rustdoc, and the page ends with others, for
// readers elsewhere. What a feature brings is found in the table of features without it.
#![allow(rustdoc::redundant_explicit_links, reason = "definitions must come before those of the page")]
#![cfg_attr(all(feature = "http", feature = "macros"), doc = include_str!("../docs/links.md"))]
#![cfg_attr(
    feature = "axum",
    doc = "[`Scope`]: crate::Scope\n[`router`]: crate::router\n[`serve`]: crate::serve\n"
)]
#![cfg_attr(
    not(feature = "axum"),
    doc = "[`Scope`]: #features\n[`router`]: #features\n[`serve`]: #features\n"
)]
#![cfg_attr(all(feature = "http", feature = "testing"), doc = "[`testing`]: crate::testing\n")]
#![cfg_attr(not(feature = "testing"), doc = "[`testing`]: #features\n")]
#![cfg_attr(
    all(feature = "axum", feature = "file", feature = "macros"),
    doc = "[from Java]: crate::guide::from_java\n[from shenyu-client-rust]: crate::guide::from_shenyu_client_rust\n\n"
)]
#![cfg_attr(
    not(all(feature = "axum", feature = "file", feature = "macros")),
    doc = "[from Java]: #features\n[from shenyu-client-rust]: #features\n\n"
)]
#![cfg_attr(
    all(feature = "axum", feature = "call", feature = "file", feature = "macros"),
    doc = "[load balancing]: crate::guide::load_balancing\n\n"
)]
#![cfg_attr(
    not(all(feature = "axum", feature = "call", feature = "file", feature = "macros")),
    doc = "[load balancing]: #features\n\n"
)]
// Its examples are whole programs, which need the feature `axum`, so only with that are they compiled.
#![cfg_attr(
    all(feature = "http", feature = "macros", any(feature = "axum", not(doctest))),
    doc = include_str!("../README.md")
)]
#![cfg_attr(
    not(all(feature = "http", feature = "macros")),
    doc = "Parts of the Soul client that do without some feature; the guide is in the documentation with default features."
)]

/// The README of the project, whose program is compiled, too.
#[cfg(all(doctest, feature = "http", feature = "macros"))]
#[doc = include_str!("../../README.md")]
mod project {}

pub mod balance;
#[cfg(feature = "call")]
pub mod call;
// Its links need every feature that it speaks of.
#[cfg(all(doc, feature = "axum", feature = "file", feature = "macros"))]
pub mod guide;
pub mod plan;
pub mod route;
#[cfg(all(feature = "http", any(test, feature = "testing")))]
pub mod testing;
pub mod wire;

#[cfg(feature = "http")]
mod address;
#[cfg(feature = "http")]
mod backoff;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod config;
mod error;
#[cfg(feature = "http")]
mod life;
#[cfg(feature = "http")]
mod meter;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "axum")]
mod mount;
#[cfg(feature = "axum")]
mod scope;
#[cfg(feature = "http")]
mod secret;
#[cfg(feature = "http")]
mod transport;

#[cfg(feature = "macros")]
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

#[cfg(feature = "http")]
pub use address::{AddressReason, Announced};
#[cfg(feature = "http")]
pub use client::{
    AdminStatus, InstanceStatus, RouteState, RouteStatus, SoulClient, SoulClientBuilder, Status,
};
#[cfg(feature = "http")]
pub use config::{AdminsRule, ClientConfig, ClientConfigBuilder};
pub use error::{Error, Problem};
#[cfg(feature = "axum")]
pub use life::serve;
#[cfg(feature = "http")]
pub use life::{Life, Stop, stop_signal};
#[cfg(feature = "axum")]
pub use mount::{router, router_of};
pub use plan::{Dialect, RegistrationPlan, ShenyuVersion};
#[cfg(feature = "axum")]
pub use scope::Scope;
#[cfg(feature = "http")]
pub use secret::Secret;

/// Annotates the module of a file as a class, from inside that file.
///
/// `#[soul_client]` can stand on an inline module only, because an attribute does not see the content of
/// another file. This stands in the file instead, once, and takes the same keys.
///
/// # Examples
///
/// ```
/// // In `orders.rs`:
/// soul_client::class! { path = "/order" }
///
/// #[soul_client::soul_client(path = "/save")] // registers `/order/save`
/// async fn save() {}
/// # fn main() {}
/// ```
#[cfg(feature = "macros")]
pub use soul_client_macros::class;
/// Announces a handler, or a class of handlers, to the gateway.
///
/// The attribute leaves a function exactly as it is and adds a constant [`Route`](route::Route), which
/// [`route::collected`] finds when the program runs. The path is what the gateway shall know, below the context path of
/// the service. With `get` or another method the handler is also mounted by `soul_client::router()`; without, it is not
/// mounted in a router, and its path is a pattern of the gateway.
///
/// A documentation comment is for readers of the source and is not sent: `desc` is.
///
/// On an inline module or an impl block it is Soul's annotation of a controller class. Its path is put before the paths of
/// the handlers in it (nearest annotated one only), as written and without a look at slashes. A path
/// whose first `*` stands at the third character or later, such as `/test/**`, registers the class as one
/// route instead, and its handlers not at all; only then do the other keys of the class count. The module of
/// a file is annotated by [`class!`](class!).
///
/// # Examples
///
/// ```standalone_crate
/// use axum::Json;
/// use axum::extract::Path;
/// use soul_client::{route, soul_client};
///
/// #[soul_client(path = "/order", desc = "Orders")]
/// mod order {
///     use super::*;
///
///     /// Registered as `/order/save`.
///     #[soul_client(path = "/save", desc = "Save order", rule_name = "save order")]
///     pub async fn save(Json(order): Json<String>) -> Json<String> {
///         Json(order)
///     }
///
///     /// A wildcard is Soul's way to register a path with a variable.
///     #[soul_client(path = "/find/**")]
///     pub async fn find(Path(id): Path<u64>) -> String {
///         format!("order {id}")
///     }
/// }
///
/// struct Admin;
///
/// impl Admin {
///     #[soul_client(path = "/admin/purge", enabled = false)]
///     async fn purge() {}
/// }
///
/// struct Stock;
///
/// #[soul_client(path = "/stock")]
/// impl Stock {
///     #[soul_client(path = "/count")]
///     async fn count() {}
/// }
///
/// fn main() {
///     let collected = route::collected();
///     let (stock, order) = (&collected.classes[0], &collected.classes[1]);
///     assert_eq!(order.class.annotation.path, "/order");
///     assert_eq!(order.routes[0].annotation.path, "/find/**");
///     assert_eq!(order.routes[1].annotation.rule_name, "save order");
///     assert_eq!(collected.routes[0].annotation.path, "/admin/purge");
///     assert_eq!(stock.routes[0].annotation.path, "/count");
/// #   let _ = (Stock::count(), Admin::purge(), order::save(Json(String::new())), order::find(Path(1)));
/// }
/// ```
///
/// # Where it may stand
///
/// On a function with a body, async or not, generic or not, in a module, in a function or in an `impl`
/// block, above or below other attributes; and on an inline module or an impl block. A handler that `#[cfg]` takes away
/// is not registered. Several attributes on one handler are several routes.
///
/// To be *mounted*, a function must have a name that the router can call it by. In an impl block that is annotated
/// itself, if only by `#[soul_client]`, it has one. Of a generic function `handler` says which instance is meant, in
/// several attributes for several of them; and in an impl block that is generic, or not annotated, which type:
///
/// ```
/// # #[cfg(feature = "axum")]
/// # mod example {
/// use axum::extract::Path;
/// use soul_client::soul_client;
///
/// #[soul_client(get, path = "/double/{number}", handler = double::<u64>)]
/// async fn double<N: Copy + ToString + std::ops::Add<Output = N>>(Path(number): Path<N>) -> String {
///     (number + number).to_string()
/// }
///
/// struct Shelf<T>(T);
///
/// impl<T: Send + 'static> Shelf<T> {
///     #[soul_client(get, path = "/shelf", handler = Shelf::<u8>::list)]
///     async fn list() -> &'static str {
///         std::any::type_name::<T>()
///     }
/// }
/// # }
/// # fn main() {}
/// ```
///
/// Not in the implementation of a trait, where no constant can be added: the compiler then names a constant
/// `_SOUL_CLIENT_CANNOT_STAND_IN_A_TRAIT_…`. Nor can a value be anything but a literal, since an attribute
/// sees words and not what a constant or `concat!` stands for. Where either is needed, write the
/// [`Route`](route::Route) by hand.
///
/// # What the linker leaves out
///
/// Handlers in a *dependency* crate that the program never names are not linked, hence not collected.
/// `use that_crate as _;` in the program brings them back. [`route::EMPTY_HINT`] says this where it matters.
///
/// # Targets and linkers
///
/// | target | linkers | ways of building |
/// |---|---|---|
/// | x86-64 Linux, glibc, dynamic and static | lld (Rust's own), GNU ld, gold, mold | debug; release with 1 and 16 codegen units, without LTO, with thin and fat LTO, stripped, `panic = "abort"` |
///
/// `tests/linkers/run` of the project builds and runs two small programs by each of these, and CI runs it. musl, ARM, macOS and
/// Windows rely on the same mechanism (the crate `inventory`: functions that run before `main`) and were not tried here.
/// Where it does not work, such as on WebAssembly without a start function, [`Collected::group`](route::Collected::group)
/// gives the same result for routes written by hand.
///
/// # A crate of another name
///
/// Where `soul-client` is renamed, or reached through a crate that re-exports it, `crate` tells the
/// expansion where to find it:
///
/// ```
/// use ::soul_client as soul; // stands for `soul = { package = "soul-client" }` in `Cargo.toml`
///
/// #[soul::soul_client(path = "/ping", crate = soul)]
/// async fn ping() {}
/// # fn main() {}
/// ```
#[cfg(feature = "macros")]
pub use soul_client_macros::soul_client;
