//! The paths: read, check, hand to the store, answer in ShenYu's words.

use std::sync::Arc;

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::from_fn_with_state,
    response::Response,
    routing::{MethodRouter, get, post},
};
use soul_client::wire::shenyu::paths;

use super::{
    access,
    body::{self as registration_body, Incoming, Instance, Route},
    login::login,
    token::Tokens,
};
use crate::{
    admin::{
        answer::{BUSY, SOUL_FAILURE, failure},
        body,
        clock::Clock,
        metrics::Registered,
        problem::{Problem, sentence},
        register::{
            Dialect, Service,
            endpoint::{accepted, count_refused, link_local, may_be_json, register_at, revive, success},
        },
        shared::Shared,
        store::{Applied, Command, InstanceEvent, Outcome, Registration, Report},
        writer::SubmitError,
    },
    causes::chain,
};

/// What the handlers of this door share.
pub(super) struct Door {
    pub(super) shared: Arc<Shared>,
    pub(super) tokens: Tokens,
    pub(super) clock: Clock,
}

impl Door {
    pub(super) fn asks_for_token(&self) -> bool {
        self.shared.config().shenyu_login.is_some()
    }
}

/// The paths, with the check who may use them.
pub(crate) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let config = &shared.config();
    let tokens = Tokens::new(config.shenyu_login.as_ref(), config.shenyu_token_life);
    let door = Arc::new(Door { shared: Arc::clone(shared), tokens, clock: Clock::system() });
    let guarded = Router::new()
        .route(paths::REGISTER_METADATA, only_post(post(register_route)))
        .route(paths::REGISTER_URI, only_post(post(take_report)))
        .route(paths::OFFLINE, only_post(post(take_report)))
        .route(paths::REGISTER_API_DOC, only_post(post(take_note)))
        .route(paths::REGISTER_DISCOVERY_CONFIG, only_post(post(take_note)))
        .route(paths::REGISTER_MCP, only_post(post(not_served)))
        .route(paths::INSTANCE_BEAT, only_post(post(take_note)))
        .route_layer(from_fn_with_state(Arc::clone(&door), access::check))
        .with_state(Arc::clone(&door));
    let one_message = Service::ALL.into_iter().fold(Router::new(), |router, service| {
        let path = format!("/shenyu-client/{}-register", file_name(service));
        router.route(&path, register_at(service).fallback(wrong_method))
    });
    let one_message = one_message.route_layer(from_fn_with_state(Arc::clone(&door), access::check));
    Router::new()
        .route(paths::LOGIN, get(login).post(login).fallback(wrong_method))
        .with_state(door)
        .merge(guarded.with_state(()))
        .merge(one_message)
}

/// How the paths of 2.4.0 name a service.
fn file_name(service: Service) -> &'static str {
    match service {
        Service::SpringMvc => "springmvc",
        Service::SpringCloud => "springcloud",
        other => other.rpc_type(),
    }
}

fn only_post(route: MethodRouter<Arc<Door>>) -> MethodRouter<Arc<Door>> {
    route.fallback(wrong_method)
}

/// Clients find out which paths there are by this text (ShenYu specification, section 10.3).
async fn wrong_method(method: Method) -> Response {
    let message = format!("{method} method is not supported for this request. Supported methods are POST ");
    failure(StatusCode::OK, SOUL_FAILURE, &message)
}

async fn register_route(State(door): State<Arc<Door>>, request: Request) -> Response {
    let bytes = match read(&door, request).await {
        Ok(bytes) => bytes,
        Err(answer) => return answer,
    };
    match registration_body::route(&bytes, &door.shared.config().shenyu_namespace) {
        Err(problems) => refused(&door, &problems),
        Ok(Incoming::Ignored(why)) => ignored(&why),
        Ok(Incoming::Wanted(Route { service, body })) => {
            let (path, dialect) = (body.path.clone(), Dialect::Shenyu);
            let revive = revive(&door.shared.config());
            let registration = Registration { dialect, service, body, revive };
            let done = door.shared.store.submit(Command::Register(Box::new(registration))).await;
            if let Ok(Applied { outcome: Outcome::Changed { revision, .. }, .. }) = done {
                tracing::info!(revision, path, %service, "registered");
            }
            conclude(&door, done)
        }
    }
}

async fn take_report(State(door): State<Arc<Door>>, request: Request) -> Response {
    let bytes = match read(&door, request).await {
        Ok(bytes) => bytes,
        Err(answer) => return answer,
    };
    let config = &door.shared.config();
    match registration_body::instance(&bytes, &config.shenyu_namespace, link_local(config)) {
        Err(problems) => refused(&door, &problems),
        Ok(Incoming::Ignored(why)) => ignored(&why),
        Ok(Incoming::Wanted(Instance { service, body, protocol, event })) => {
            let (context, host, port) = (body.context_path.clone(), body.host.clone(), body.port);
            let (dialect, revive) = (Dialect::Shenyu, revive(config));
            let report = Report { dialect, service, body, protocol, event, revive };
            let done = door.shared.store.submit(Command::Instance(Box::new(report))).await;
            if let Ok(Applied { outcome: Outcome::Changed { revision, .. }, .. }) = done {
                let what = if event == InstanceEvent::Leaves { "offline" } else { "registered" };
                tracing::info!(revision, context, host, port, %service, "{what}");
            }
            conclude(&door, done)
        }
    }
}

/// Clients send it, and nothing here needs it.
async fn take_note() -> Response {
    success()
}

async fn not_served() -> Response {
    failure(StatusCode::OK, SOUL_FAILURE, "tools of the MCP are not registered here")
}

/// The whole body, or the answer that says why not.
async fn read(door: &Door, request: Request) -> Result<Bytes, Response> {
    let (parts, body) = request.into_parts();
    if !may_be_json(&parts.headers) {
        let why = Problem::new("content-type", "must be `application/json`");
        return Err(refused(door, &[why]));
    }
    let config = &door.shared.config();
    body::read(body, config.body_limit, config.body_timeout)
        .await
        .map_err(|error| refused(door, &[Problem::new("body", error.to_string())]))
}

fn conclude(door: &Door, done: Result<Applied, SubmitError>) -> Response {
    match done {
        Ok(applied) => accepted(&door.shared, applied),
        Err(error) => {
            count_refused(&door.shared, &error);
            let message = match &error {
                SubmitError::Rejected(rejected) => chain(rejected),
                other => format!("{BUSY}: {other}"),
            };
            tracing::warn!(reason = message, "a registration was refused");
            failure(StatusCode::OK, SOUL_FAILURE, &message)
        }
    }
}

fn refused(door: &Door, problems: &[Problem]) -> Response {
    door.shared.metrics.registered(Registered::Refused);
    let message = sentence(problems);
    tracing::warn!(reason = message, "a registration was refused");
    failure(StatusCode::OK, SOUL_FAILURE, &message)
}

/// As a Java admin does, which knows more and less from release to release.
fn ignored(why: &str) -> Response {
    tracing::warn!(reason = why, "a registration was ignored");
    success()
}
