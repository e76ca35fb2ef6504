//! Handlers of axum keep being handlers.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] = &[
    ("/custom", "custom"),
    ("/fallible", "fallible"),
    ("/generic", "generic"),
    ("/state/{id}", "with_state"),
];

pub(crate) trait Store: Send + Sync + 'static {
    fn name(&self, id: u64) -> String;
}

struct Numbers;

impl Store for Numbers {
    fn name(&self, id: u64) -> String {
        format!("order {id}")
    }
}

pub(crate) struct Method(String);

impl<S: Sync> FromRequestParts<S> for Method {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        Ok(Self(parts.method.to_string()))
    }
}

#[soul_client(path = "/state/{id}")]
pub(crate) async fn with_state(
    State(store): State<Arc<dyn Store>>,
    Path(id): Path<u64>,
) -> impl IntoResponse {
    (StatusCode::CREATED, store.name(id))
}

#[soul_client(path = "/generic")]
pub(crate) async fn generic<T: From<u8> + Into<u64>>(Json(order): Json<u8>) -> Json<u64> {
    Json(T::from(order).into())
}

#[soul_client(path = "/fallible")]
pub(crate) async fn fallible(Json(order): Json<u8>) -> Result<impl IntoResponse, StatusCode> {
    if order == 0 { Err(StatusCode::NOT_FOUND) } else { Ok(Json(order)) }
}

#[soul_client(path = "/custom")]
pub(crate) async fn custom(Method(method): Method) -> String {
    method
}

#[tokio::test]
async fn handlers_are_mounted_and_answer() {
    let router: Router = Router::new()
        .route("/state/{id}", get(with_state))
        .route("/generic", post(generic::<u32>))
        .route("/fallible", post(fallible))
        .route("/custom", get(custom))
        .with_state(Arc::new(Numbers) as Arc<dyn Store>);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let base = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let http =
        soul_tests::harness::client_builder().timeout(std::time::Duration::from_secs(10)).build().unwrap();

    let answer = http.get(format!("{base}/state/7")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.text().await.unwrap().as_str()), (201, "order 7"));
    let answer = http.post(format!("{base}/generic")).json(&7).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "7");
    let answer = http.post(format!("{base}/fallible")).json(&0).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 404);
    let answer = http.get(format!("{base}/custom")).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "GET");
    server.abort();
}
