//! All doors of the admin on one address.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{Method, Request, StatusCode, Uri},
    response::Response,
    routing::get,
};
use hyper::{body::Incoming, service::Service as _};
use hyper_util::service::TowerToHyperService;
use soul_client::wire::soul::paths;

use super::{
    answer::failure,
    api,
    fetch::fetch,
    long_poll::listener,
    register::endpoint,
    serve::{Answer, Service},
    shared::Shared,
    shenyu, status,
};

/// The doors, and what they share.
pub(crate) struct Doors {
    shared: Arc<Shared>,
    router: TowerToHyperService<Router>,
}

impl Doors {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let router = Router::new()
            .merge(endpoint::routes())
            .merge(shenyu::routes(&shared))
            .merge(status::routes())
            .merge(api::routes(&shared))
            .route(paths::CONFIGS_FETCH, get(fetch))
            // The polls themselves do not come here, see `call`.
            .route(paths::CONFIGS_LISTENER, axum::routing::post(wrong_method))
            .fallback(nowhere)
            .method_not_allowed_fallback(wrong_method)
            .with_state(Arc::clone(&shared));
        Self { shared, router: TowerToHyperService::new(router) }
    }
}

impl Service for Doors {
    /// Polls go past the router, which would keep its own state for each of them while they wait.
    fn call(&self, mut request: Request<Incoming>, peer: SocketAddr) -> Answer {
        if request.method() == Method::POST && request.uri().path() == paths::CONFIGS_LISTENER {
            return Box::pin(listener(Arc::clone(&self.shared), request));
        }
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.call(request.map(Body::new));
        Box::pin(async move { answer.await.unwrap_or_else(|never| match never {}) })
    }
}

async fn nowhere(uri: Uri) -> Response {
    failure(StatusCode::NOT_FOUND, 404, &format!("no such path: `{}`", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    let message = format!("`{}` does not take `{method}`", uri.path());
    failure(StatusCode::METHOD_NOT_ALLOWED, 405, &message)
}
