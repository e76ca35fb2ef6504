//! What can be mounted beside plain functions: functions of impl blocks, instances of generic ones, and handlers below
//! other attributes. All of it under strict lints.

#![forbid(unsafe_code)]
#![deny(unused, unused_qualifications, unused_results, clippy::all, clippy::pedantic)]
#![allow(clippy::unused_async, reason = "what a handler of axum is, is async")]

use std::fmt::Display;
use std::str::FromStr;

use axum::debug_handler;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use soul_client::soul_client;
use tracing::instrument;

use super::mounted::call;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/anywhere/above", "above"),
    ("/anywhere/below", "below"),
    ("/anywhere/by-key/{id}", "by_key"),
    ("/anywhere/described", "described"),
    ("/anywhere/float/{number}", "twice"),
    ("/found/{id}", "find"),
    ("/anywhere/integer/{number}", "twice"),
    ("/match", "match"),
    ("/on", "on"),
    ("/quiet", "quiet"),
    ("/stored/{id}", "stored"),
    ("/typed/{number}", "typed"),
];

/// A controller.
pub(crate) struct Orders;

/// What handlers of the controller share.
#[derive(Clone)]
pub(crate) struct Stock(u64);

#[soul_client(path = "/anywhere", desc = "A controller is an impl block")]
impl Orders {
    /// In an annotated block nothing more is needed.
    #[soul_client(get, path = "/found/{id}")]
    async fn find(Path(id): Path<u64>) -> impl IntoResponse {
        format!("found {id}")
    }

    /// With a state of its own.
    #[soul_client(get, path = "/stored/{id}", state = Stock)]
    async fn stored(State(stock): State<Stock>, Path(id): Path<u64>) -> String {
        format!("{} of {id}", stock.0)
    }

    /// A generic one, and the type of the block in its signature.
    #[soul_client(get, path = "/typed/{number}", handler = Orders::typed::<u8>)]
    async fn typed<T: FromStr + Display>(Path(number): Path<String>) -> Result<String, Self> {
        number.parse::<T>().map(|number| format!("typed {number}")).map_err(|_| Self)
    }

    /// Registered only.
    #[cfg_attr(test, soul_client(path = "/quiet"))]
    pub(crate) fn quiet(&self) -> &Self {
        self
    }
}

impl IntoResponse for Orders {
    fn into_response(self) -> axum::response::Response {
        "no number".into_response()
    }
}

/// A block that is not annotated, and generic.
pub(crate) struct Shelf<T>(T);

impl<T: Default + Display> Shelf<T> {
    #[soul_client(get, path = "/anywhere/by-key/{id}", handler = Shelf::<u16>::by_key)]
    async fn by_key(Path(id): Path<u64>) -> String {
        format!("key {id} of {}", Self(T::default()).0)
    }
}

/// A free function of the name that a function of the block has: it must not be mounted in its place.
#[expect(dead_code, reason = "stands in the way on purpose")]
async fn find() -> &'static str {
    "the wrong one"
}

/// Two instances of one function.
#[soul_client(get, path = "/anywhere/integer/{number}", handler = twice::<u64>)]
#[soul_client(get, post, path = "/anywhere/float/{number}", handler = "twice::<f64>")]
async fn twice<N>(Path(number): Path<N>) -> String
where
    N: Copy + Display + std::ops::Add<Output = N>,
{
    (number + number).to_string()
}

#[soul_client(get, path = "/anywhere/above")]
#[debug_handler]
#[instrument]
async fn above() -> &'static str {
    "above"
}

#[debug_handler]
#[instrument]
#[soul_client(get, path = "/anywhere/below")]
async fn below() -> &'static str {
    "below"
}

#[utoipa::path(get, path = "/anywhere/described", responses((status = 200, body = String)))]
#[soul_client(get, path = "/anywhere/described")]
async fn described() -> &'static str {
    "described"
}

#[soul_client(path = "/anywhere")]
mod deep {
    pub(super) mod deeper {
        #[soul_client::soul_client(any, path = "/match")]
        pub(in super::super) async fn r#match() -> &'static str {
            "raw"
        }

        #[soul_client::soul_client(get, path = "/on")]
        #[cfg(test)]
        async fn on() -> &'static str {
            "on"
        }

        #[soul_client::soul_client(get, path = "/off")]
        #[cfg(not(test))]
        async fn on() -> &'static str {
            "off"
        }
    }
}

#[tokio::test]
async fn all_of_them_answer() {
    use utoipa::OpenApi;

    #[derive(OpenApi)]
    #[openapi(paths(described))]
    struct Docs;

    assert_eq!(deep::deeper::r#match().await, "raw");
    let _: &Orders = Orders.quiet();
    assert!(Docs::openapi().paths.paths.contains_key("/anywhere/described"));

    let app: axum::Router = soul_client::router().unwrap().with_state(Stock(3));
    for (path, expected) in [
        ("/anywhere/found/7", (200, "found 7")),
        ("/anywhere/stored/7", (200, "3 of 7")),
        ("/anywhere/typed/8", (200, "typed 8")),
        ("/anywhere/typed/800", (200, "no number")),
        ("/anywhere/by-key/7", (200, "key 7 of 0")),
        ("/anywhere/integer/7", (200, "14")),
        ("/anywhere/float/0.25", (200, "0.5")),
        ("/anywhere/above", (200, "above")),
        ("/anywhere/below", (200, "below")),
        ("/anywhere/described", (200, "described")),
        ("/anywhere/match", (200, "raw")),
        ("/anywhere/on", (200, "on")),
        ("/anywhere/off", (404, "")),
        ("/anywhere/quiet", (404, "")),
    ] {
        let (code, body) = call(app.clone(), "GET", path).await;
        assert_eq!((code, body.as_str()), expected, "{path}");
    }
}
