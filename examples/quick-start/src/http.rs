//! A plain HTTP client, as small as the story needs it.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, StatusCode, header::CONTENT_TYPE};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::time::timeout;

use crate::world::Failure;

/// Longest a request may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Sends requests over connections that it keeps.
#[derive(Clone)]
pub(crate) struct Http(Client<HttpConnector, Full<Bytes>>);

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Http {
    pub(crate) fn new() -> Self {
        Self::with(HttpConnector::new())
    }

    /// A client whose connections come from `address`.
    pub(crate) fn from(address: IpAddr) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_local_address(Some(address));
        Self::with(connector)
    }

    fn with(connector: HttpConnector) -> Self {
        Self(Client::builder(TokioExecutor::new()).build(connector))
    }

    pub(crate) async fn get(&self, url: &str) -> Result<Answer, Failure> {
        self.send(Request::get(url).body(Full::default())).await
    }

    pub(crate) async fn patch(&self, url: &str, body: &Value) -> Result<Answer, Failure> {
        let request = Request::patch(url).header(CONTENT_TYPE, "application/json");
        self.send(request.body(body.to_string().into())).await
    }

    async fn send(
        &self,
        request: Result<Request<Full<Bytes>>, hyper::http::Error>,
    ) -> Result<Answer, Failure> {
        let request = request.map_err(Failure::of)?;
        let what = format!("{} {}", request.method(), request.uri());
        let exchange = async {
            let response = self.0.request(request).await.map_err(Failure::of)?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(Failure::of)?.to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            Ok::<_, Failure>(Answer { status: head.status, headers: head.headers, body })
        };
        match timeout(LIMIT, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(failure)) => Err(Failure::new(format!("{what}: {failure}"))),
            Err(_) => Err(Failure::new(format!("{what}: no answer within {LIMIT:?}"))),
        }
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_str(&self.body).map_err(|_| Failure::new(format!("no JSON: {}", self.body)))
    }
}
