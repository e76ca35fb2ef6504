//! What expanded code needs. Not part of the API: anything here may change in any release.

pub use inventory;

pub use crate::route::{Annotation, Class, Route, RpcType};

/// What a mounted handler is made of.
#[cfg(feature = "axum")]
pub mod mount {
    use std::any::Any;

    pub use axum::routing::{MethodFilter, any, on};

    use crate::route::Mount;

    /// A handler for these methods.
    #[must_use]
    pub const fn of(methods: &'static [&'static str], build: fn() -> Box<dyn Any>) -> Mount {
        Mount { methods, build }
    }

    /// Its type comes back in `soul_client::router`, for a router with the same state.
    #[must_use]
    pub fn erase<S: Clone + Send + Sync + 'static>(router: axum::routing::MethodRouter<S>) -> Box<dyn Any> {
        Box::new(router)
    }
}
