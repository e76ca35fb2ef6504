//! What expanded code needs. Not part of the API: anything here may change in any release.

pub use inventory;

pub use crate::__mount as mount;
pub use crate::route::{Annotation, Class, Route, RpcType};

/// Makes what a mounted handler is made of, for all methods or some.
#[cfg(feature = "axum")]
#[doc(hidden)]
#[macro_export]
macro_rules! __mount {
    (any, [$($method:ident)*], $state:ty, $handler:expr) => {
        $crate::__private::mount::of(&[$(::core::stringify!($method)),*], || {
            $crate::__private::mount::erase::<$state>($crate::__private::mount::any($handler))
        })
    };
    (on, [$first:ident $($other:ident)*], $state:ty, $handler:expr) => {
        $crate::__private::mount::of(
            &[::core::stringify!($first) $(, ::core::stringify!($other))*],
            || {
                let filter = $crate::__private::mount::MethodFilter::$first;
                $(let filter = filter.or($crate::__private::mount::MethodFilter::$other);)*
                $crate::__private::mount::erase::<$state>($crate::__private::mount::on(filter, $handler))
            },
        )
    };
}

/// Says why there is none.
#[cfg(not(feature = "axum"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __mount {
    ($($anything:tt)*) => {
        ::core::compile_error!(
            "`get` and its like mount the handler in a router of axum: turn on the feature `axum` of `soul-client`"
        )
    };
}

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
