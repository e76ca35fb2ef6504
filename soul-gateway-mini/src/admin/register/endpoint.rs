//! The six registration URLs, and the one by which an instance leaves: read, check, hand to the store, answer in Soul's
//! words.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::Response,
    routing::{MethodRouter, post},
};
use soul_client::wire::soul::paths;

use super::{
    Service,
    body::{self as registration_body, Incoming},
    fields::LinkLocal,
};
use crate::{
    admin::{
        answer::{BUSY, SOUL_FAILURE, answer, failure, response},
        body,
        config::AdminConfig,
        metrics::Registered,
        problem::{Problem, sentence},
        shared::Shared,
        store::{Applied, Command, InstanceEvent, Outcome, Registration, Rejected, Report, Revive},
        writer::SubmitError,
    },
    causes::chain,
};

/// The body of an answer that all is done.
const SUCCESS: &str = "success";
/// The media type of that body, as a Java admin writes it.
const TEXT: &str = "text/plain;charset=UTF-8";

/// The registration URLs. Their answers tell of the other one, which Soul's admins do not have.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    let router = Service::ALL.into_iter().fold(Router::new(), |router, service| {
        match paths::register(service.rpc_type()) {
            Some(path) => router.route(path, register_at(service)),
            None => router,
        }
    });
    router.layer(map_response(announce)).route(paths::OFFLINE, post(offline))
}

async fn announce(mut response: Response) -> Response {
    let header = HeaderName::from_static(paths::EXTENSIONS_HEADER);
    response.headers_mut().insert(header, HeaderValue::from_static(paths::EXTENSION_OFFLINE));
    response
}

/// The URL of a service.
pub(crate) fn register_at(service: Service) -> MethodRouter<Arc<Shared>> {
    post(move |State(shared): State<Arc<Shared>>, request: Request| async move {
        match register(&shared, service, request).await {
            Ok(applied) => accepted(&shared, applied),
            Err(failed) => refused(&shared, &failed),
        }
    })
}

/// Why a registration was not done.
enum Failed {
    /// The sender has to change something.
    Refused(StatusCode, String, Vec<Problem>),
    /// The store did not do it.
    Store(SubmitError),
}

async fn offline(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match leave(&shared, request).await {
        Ok(applied) => accepted(&shared, applied),
        Err(failed) => refused(&shared, &failed),
    }
}

/// Takes the instance of a body out of its selector.
async fn leave(shared: &Shared, request: Request) -> Result<Applied, Failed> {
    let Incoming { dialect, service, body } = read(shared, Service::SpringMvc, request).await?;
    let (host, port) = (body.host.clone(), body.port);
    let (event, revive) = (InstanceEvent::Leaves, revive(&shared.config()));
    let report = Report { dialect, service, body, protocol: String::new(), event, revive };
    let applied = shared.store.submit(Command::Instance(Box::new(report))).await.map_err(Failed::Store)?;
    if let Outcome::Changed { revision, .. } = applied.outcome {
        tracing::info!(revision, host, port, %service, "offline");
    }
    Ok(applied)
}

async fn register(shared: &Shared, url: Service, request: Request) -> Result<Applied, Failed> {
    let Incoming { dialect, service, body } = read(shared, url, request).await?;
    let revive = revive(&shared.config());
    let (path, host, port) = (body.path.clone(), body.host.clone(), body.port);
    let registration = Registration { dialect, service, body, revive };
    let applied =
        shared.store.submit(Command::Register(Box::new(registration))).await.map_err(Failed::Store)?;
    if let Outcome::Changed { revision, .. } = applied.outcome {
        tracing::info!(revision, path, host, port, %service, "registered");
    }
    Ok(applied)
}

async fn read(shared: &Shared, url: Service, request: Request) -> Result<Incoming, Failed> {
    let (parts, body) = request.into_parts();
    if !may_be_json(&parts.headers) {
        let why = "the body must be sent with `content-type: application/json`".to_owned();
        return Err(Failed::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why, Vec::new()));
    }
    let config = &shared.config();
    let bytes = body::read(body, config.body_limit, config.body_timeout).await;
    let bytes = bytes.map_err(|e| Failed::Refused(e.status(), e.to_string(), Vec::new()))?;
    registration_body::read(url, &bytes, link_local(config))
        .map_err(|problems| Failed::Refused(StatusCode::BAD_REQUEST, sentence(&problems), problems))
}

/// Which addresses may register.
pub(crate) fn link_local(config: &AdminConfig) -> LinkLocal {
    if config.allow_link_local { LinkLocal::Allowed } else { LinkLocal::Refused }
}

/// What becomes of a node that is known as dead and registers.
pub(crate) fn revive(config: &AdminConfig) -> Revive {
    if config.checks_upstreams() { Revive::AfterProbe } else { Revive::AtOnce }
}

/// Clients that say no media type are taken at their word; a web page of another site, which can send a body
/// without one, always names its origin.
pub(crate) fn may_be_json(headers: &HeaderMap) -> bool {
    body::is_json(headers)
        || (!headers.contains_key(header::CONTENT_TYPE) && !headers.contains_key(header::ORIGIN))
}

/// Answers what was done.
pub(crate) fn accepted(shared: &Shared, applied: Applied) -> Response {
    if let Some(url) = applied.probe {
        shared.probe(url);
    }
    shared.metrics.registered(match applied.outcome {
        Outcome::Changed { .. } => Registered::Changed,
        Outcome::NoChange => Registered::Unchanged,
    });
    success()
}

/// The answer that all is done.
pub(crate) fn success() -> Response {
    response(StatusCode::OK, TEXT, SUCCESS)
}

/// Counts what the store did not do.
pub(crate) fn count_refused(shared: &Shared, error: &SubmitError) {
    shared.metrics.registered(match error {
        SubmitError::Rejected(_) => Registered::Refused,
        SubmitError::NotDurable(_) | SubmitError::Stopped => Registered::Failed,
    });
}

fn refused(shared: &Shared, failed: &Failed) -> Response {
    match failed {
        Failed::Refused(..) => shared.metrics.registered(Registered::Refused),
        Failed::Store(error) => count_refused(shared, error),
    }
    match failed {
        Failed::Refused(status, message, problems) => {
            tracing::warn!(reason = message, "a registration was refused");
            answer(*status, SOUL_FAILURE, message, (!problems.is_empty()).then_some(problems))
        }
        // The one refusal that Soul words as a plain text.
        Failed::Store(SubmitError::Rejected(Rejected::PathTaken)) => {
            response(StatusCode::OK, TEXT, Rejected::PathTaken.to_string())
        }
        Failed::Store(SubmitError::Rejected(rejected)) => {
            let message = chain(rejected);
            tracing::warn!(reason = message, "a registration was refused");
            failure(StatusCode::CONFLICT, SOUL_FAILURE, &message)
        }
        Failed::Store(error) => {
            failure(StatusCode::SERVICE_UNAVAILABLE, SOUL_FAILURE, &format!("{BUSY}: {error}"))
        }
    }
}
