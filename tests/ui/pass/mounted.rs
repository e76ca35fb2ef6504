//! One annotation mounts the handler, too.

use axum::Router;
use axum::extract::{Path, State};
use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/item/{id}", "item"),
    ("/save", "save"),
    ("/rest/**", "rest"),
    ("/plain", "plain"),
    ("/quoted", "quoted"),
];

#[derive(Clone)]
pub(crate) struct Shop(&'static str);

#[soul_client(path = "/mounted")]
pub(crate) mod orders {
    use super::*;

    #[soul_client(get, path = "/item/{id}", desc = "One order")]
    pub(crate) async fn item(Path(id): Path<u64>) -> String {
        format!("item {id}")
    }

    #[soul_client(post, put, path = "/save", state = Shop)]
    pub(crate) async fn save(State(shop): State<Shop>) -> &'static str {
        shop.0
    }

    #[soul_client(any, path = "/rest/**")]
    pub(crate) async fn rest(Path(rest): Path<String>) -> String {
        rest
    }

    #[soul_client(get, path = "/quoted", state = "Shop")]
    pub(crate) async fn quoted(State(shop): State<Shop>) -> &'static str {
        shop.0
    }

    /// Is registered and not mounted.
    #[soul_client(path = "/plain")]
    pub(crate) async fn plain() {}

    pub(crate) const PLAIN: fn() = || drop(plain());
}

fn app() -> Result<Router, soul_client::Error> {
    Ok(soul_client::router()?.with_state(Shop("books")))
}

/// Asks a router as it stands, without a port.
pub(crate) async fn call(router: Router, method: &str, path: &str) -> (u16, String) {
    let request = axum::http::Request::builder().method(method).uri(path).body(axum::body::Body::empty());
    let request = request.expect("a method and a path");
    let response = match tower::ServiceExt::oneshot(router, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.expect("a short body");
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn mounted_handlers_answer_below_the_path_of_their_class() {
    for (method, path, expected) in [
        ("GET", "/mounted/item/7", (200, "item 7")),
        ("POST", "/mounted/item/7", (405, "")),
        ("POST", "/mounted/save", (200, "books")),
        ("PUT", "/mounted/save", (200, "books")),
        ("GET", "/mounted/save", (405, "")),
        ("DELETE", "/mounted/rest/a/b", (200, "a/b")),
        ("GET", "/mounted/quoted", (200, "books")),
        ("GET", "/mounted/plain", (404, "")),
        ("GET", "/item/7", (404, "")),
    ] {
        let (code, body) = call(app().unwrap(), method, path).await;
        assert_eq!((code, body.as_str()), expected, "{method} {path}");
    }
}

#[tokio::test]
async fn what_the_router_does_not_serve_is_found_in_one_line() {
    (orders::PLAIN)();
    let missing = soul_client::testing::unserved(app().unwrap()).await;
    let here: Vec<_> = missing.iter().filter(|(path, _)| path.starts_with("/mounted")).collect();
    assert_eq!(here.len(), 1, "{missing:?}");
    assert_eq!(here[0].0, "/mounted/plain");
    assert!(here[0].1.file.ends_with("mounted.rs"));
}
