//! The answers of the API.

use axum::{
    body::Bytes,
    extract::{FromRequestParts, Path, Request},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::admin::{
    answer::{answer, failure},
    body::{self, BodyError},
    problem::{Problem, sentence},
    shared::Shared,
    store::{Applied, Command, Edit, Outcome, Rejected, Store},
    writer::SubmitError,
};

/// The word of every success, as in Soul.
const SUCCESS: &str = "success";

/// A success.
pub(super) struct Reply;

impl Reply {
    /// Data at a revision.
    pub(super) fn ok<T: Serialize>(revision: u64, data: &T) -> Response {
        Self::with_status(StatusCode::OK, revision, data)
    }

    /// Rows at a revision.
    pub(super) fn list<T: Serialize>(store: &Store, page: &Page, items: impl Iterator<Item = T>) -> Response {
        let mut total = 0;
        let mut shown = Vec::new();
        for (at, item) in items.enumerate() {
            total += 1;
            if at >= page.offset && shown.len() < page.limit {
                shown.push(item);
            }
        }
        let list = List { revision: store.revision(), total, items: shown };
        Self::ok(store.revision(), &list)
    }

    /// One row at a revision.
    pub(super) fn item<T: Serialize>(store: &Store, item: T) -> Response {
        Self::ok(store.revision(), &Item { revision: store.revision(), changed: None, item })
    }

    fn with_status<T: Serialize>(status: StatusCode, revision: u64, data: &T) -> Response {
        let mut response = answer(status, i32::from(status.as_u16()), SUCCESS, data);
        if let Ok(tag) = HeaderValue::from_str(&format!("\"{revision}\"")) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }
}

/// Several rows.
#[derive(Serialize)]
struct List<T> {
    revision: u64,
    total: usize,
    items: Vec<T>,
}

/// One row.
#[derive(Serialize)]
struct Item<T> {
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<bool>,
    item: T,
}

/// What a change does besides: nothing, or it makes a row that is found at a path.
pub(super) enum Made {
    /// The row was there.
    Changed,
    /// The row is new; found below this path by its id.
    New(&'static str),
}

/// Sends a change to the store and answers with the row as it is then.
pub(super) async fn submit<T: Serialize>(
    shared: &Shared,
    headers: &HeaderMap,
    edit: Edit,
    made: Made,
    view: impl FnOnce(&Store, &str) -> Option<T>,
) -> Result<Response, Failure> {
    let applied = shared.store.submit_at(Command::Edit(edit), if_match(headers)?).await?;
    let Applied { outcome, subject, .. } = applied;
    let id = subject.unwrap_or_default();
    let store = shared.store.store();
    let changed = matches!(outcome, Outcome::Changed { .. });
    if let Outcome::Changed { revision, .. } = outcome {
        tracing::info!(revision, id, "changed through the API");
    }
    let item = Item { revision: store.revision(), changed: Some(changed), item: view(&store, &id) };
    Ok(match made {
        Made::Changed => Reply::ok(store.revision(), &item),
        Made::New(below) => {
            let mut response = Reply::with_status(StatusCode::CREATED, store.revision(), &item);
            if let Ok(location) = HeaderValue::from_str(&format!("{below}/{id}")) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            response
        }
    })
}

/// The revision a change was made from, if the sender says so.
fn if_match(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let revision = text.trim_matches('"').parse();
    revision.map(Some).map_err(|_| {
        Failure::invalid(vec![Problem::new(
            "if-match",
            "must be the revision of an answer, as its ETag says it",
        )])
    })
}

/// Reads a JSON object.
pub(super) async fn object(
    shared: &Shared,
    request: Request,
) -> Result<(HeaderMap, Map<String, Value>), Failure> {
    let (parts, body) = request.into_parts();
    let bytes: Bytes = body::read(body, shared.config().body_limit, shared.config().body_timeout).await?;
    let bad = |why: String| Failure::invalid(vec![Problem::new("body", why)]);
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(fields)) => Ok((parts.headers, fields)),
        Ok(_) => Err(bad("must be a JSON object".to_owned())),
        Err(error) => Err(bad(format!("is no JSON: {error}"))),
    }
}

/// The variable parts of a path. As axum's `Path`, whose own refusal is not in the shape of the API.
pub(super) struct Segments<T>(pub(super) T);

impl<S, T> FromRequestParts<S> for Segments<T>
where
    S: Send + Sync,
    T: DeserializeOwned + Send,
{
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(refused) => Err(Failure::invalid(vec![Problem::new("path", refused.body_text())])),
        }
    }
}

/// Which rows of a list are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Rows left out before.
    pub(super) offset: usize,
    /// Rows at most.
    pub(super) limit: usize,
}

/// A request that was not done.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    message: String,
    problems: Vec<Problem>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, message: String) -> Self {
        Self { status, message, problems: Vec::new() }
    }

    pub(super) fn not_found(message: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn invalid(problems: Vec<Problem>) -> Self {
        Self { problems: problems.clone(), ..Self::new(StatusCode::BAD_REQUEST, sentence(&problems)) }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.to_string())
    }
}

impl From<SubmitError> for Failure {
    fn from(error: SubmitError) -> Self {
        let message = error.to_string();
        match error {
            SubmitError::Rejected(rejected) => match rejected {
                Rejected::NotFound { .. } => Self::not_found(message),
                Rejected::Invalid(problems) => Self::invalid(problems),
                Rejected::Exists { .. } | Rejected::Registration(_) | Rejected::PathTaken => {
                    Self::new(StatusCode::CONFLICT, message)
                }
                Rejected::Stale { .. } => Self::new(StatusCode::PRECONDITION_FAILED, message),
            },
            SubmitError::NotDurable(_) | SubmitError::Stopped => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let code = i32::from(self.status.as_u16());
        let mut response = if self.problems.is_empty() {
            failure(self.status, code, &self.message)
        } else {
            answer(self.status, code, &self.message, &self.problems)
        };
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
