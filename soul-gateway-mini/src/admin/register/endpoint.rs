//! The six registration URLs: read, check, hand to the store, answer in Soul's words.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
    routing::{MethodRouter, post},
};
use soul_client::wire::soul::paths;

use super::{
    Service,
    body::{self as registration_body, Incoming, LinkLocal},
};
use crate::{
    admin::{
        answer::{BUSY, SOUL_FAILURE, answer, failure, response},
        body,
        metrics::Registered,
        problem::{Problem, sentence},
        shared::Shared,
        store::{Applied, Command, Outcome, Registration, Rejected, Revive},
        writer::SubmitError,
    },
    causes::chain,
};

/// The body of an answer that all is done.
const SUCCESS: &str = "success";
/// The media type of that body, as a Java admin writes it.
const TEXT: &str = "text/plain;charset=UTF-8";

/// The registration URLs.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Service::ALL.into_iter().fold(Router::new(), |router, service| {
        match paths::register(service.rpc_type()) {
            Some(path) => router.route(path, register_at(service)),
            None => router,
        }
    })
}

fn register_at(service: Service) -> MethodRouter<Arc<Shared>> {
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

async fn register(shared: &Shared, url: Service, request: Request) -> Result<Applied, Failed> {
    let (parts, body) = request.into_parts();
    if !may_be_json(&parts.headers) {
        let why = "the body must be sent with `content-type: application/json`".to_owned();
        return Err(Failed::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, why, Vec::new()));
    }
    let config = &shared.config;
    let bytes = body::read(body, config.body_limit, config.body_timeout).await;
    let bytes = bytes.map_err(|e| Failed::Refused(e.status(), e.to_string(), Vec::new()))?;
    let link_local = if config.allow_link_local { LinkLocal::Allowed } else { LinkLocal::Refused };
    let incoming = registration_body::read(url, &bytes, link_local)
        .map_err(|problems| Failed::Refused(StatusCode::BAD_REQUEST, sentence(&problems), problems))?;
    let Incoming { dialect, service, body } = incoming;
    let revive = if config.checks_upstreams() { Revive::AfterProbe } else { Revive::AtOnce };
    let (path, host, port) = (body.path.clone(), body.host.clone(), body.port);
    let registration = Registration { dialect, service, body, revive };
    let applied =
        shared.store.submit(Command::Register(Box::new(registration))).await.map_err(Failed::Store)?;
    if let Outcome::Changed { revision, .. } = applied.outcome {
        tracing::info!(revision, path, host, port, %service, "registered");
    }
    Ok(applied)
}

/// Clients that say no media type are taken at their word; a web page of another site, which can send a body
/// without one, always names its origin.
fn may_be_json(headers: &HeaderMap) -> bool {
    body::is_json(headers)
        || (!headers.contains_key(header::CONTENT_TYPE) && !headers.contains_key(header::ORIGIN))
}

fn accepted(shared: &Shared, applied: Applied) -> Response {
    if let Some(url) = applied.probe {
        shared.probe(url);
    }
    shared.metrics.registered(match applied.outcome {
        Outcome::Changed { .. } => Registered::Changed,
        Outcome::NoChange => Registered::Unchanged,
    });
    response(StatusCode::OK, TEXT, SUCCESS)
}

fn refused(shared: &Shared, failed: &Failed) -> Response {
    let outcome = match failed {
        Failed::Refused(..) | Failed::Store(SubmitError::Rejected(_)) => Registered::Refused,
        Failed::Store(_) => Registered::Failed,
    };
    shared.metrics.registered(outcome);
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
