//! For benchmarks only: the proxy that most people would write, an axum fallback that asks reqwest. It streams in both
//! directions, takes turns among its upstreams, and does nothing else that a gateway does.
//!
//! ```sh
//! naive-proxy 127.0.0.1:8080 127.0.0.1:9001 127.0.0.1:9002
//! ```

use std::{
    env, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};

struct Proxy {
    client: reqwest::Client,
    upstreams: Vec<String>,
    turn: AtomicUsize,
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let listen = arguments.next().unwrap_or_default();
    let upstreams: Vec<String> = arguments.collect();
    if upstreams.is_empty() {
        return Err(io::Error::other("usage: naive-proxy LISTEN UPSTREAM…"));
    }
    let client = reqwest::Client::builder().no_proxy().build().map_err(io::Error::other)?;
    let proxy = Arc::new(Proxy { client, upstreams, turn: AtomicUsize::new(0) });
    let listener = tokio::net::TcpListener::bind(&listen).await?;
    axum::serve(listener, Router::new().fallback(forward).with_state(proxy)).await
}

async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let upstream = &proxy.upstreams[proxy.turn.fetch_add(1, Relaxed) % proxy.upstreams.len()];
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let asked = proxy
        .client
        .request(head.method, format!("http://{upstream}{target}"))
        .headers(end_to_end(head.headers))
        .body(reqwest::Body::wrap_stream(body.into_data_stream()))
        .send()
        .await;
    match asked {
        Ok(answer) => {
            let (status, headers) = (answer.status(), end_to_end(answer.headers().clone()));
            (status, headers, Body::from_stream(answer.bytes_stream())).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

fn end_to_end(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::CONNECTION, header::TE, header::TRANSFER_ENCODING, header::UPGRADE] {
        headers.remove(name);
    }
    headers
}
