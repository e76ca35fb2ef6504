//! `GET /configs/fetch`: whole groups (specification, section 10.2).

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::StatusCode,
    response::Response,
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use soul_client::wire::soul::ConfigGroup;
use url::form_urlencoded;

use super::{
    answer::{BUSY, SOUL_FAILURE, failure, response},
    publish::{FetchError, Published},
    shared::Shared,
};
use crate::causes::chain;

/// Name of the parameter.
const PARAMETER: &str = "groupKeys";

/// Answers with the groups that were asked for.
pub(crate) async fn fetch(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Response {
    // Soul says no more of a missing or unknown group than that it is busy.
    let Some(groups) = groups(query.as_deref().unwrap_or_default()) else {
        return failure(StatusCode::OK, SOUL_FAILURE, BUSY);
    };
    shared.metrics.fetches.inc();
    match pieces(&shared.store.published(), &groups).await {
        Ok(pieces) => response(StatusCode::OK, "application/json", Body::new(Pieces(pieces))),
        Err(error) => {
            tracing::error!(error = chain(&error), "the configuration could not be given");
            failure(StatusCode::OK, SOUL_FAILURE, BUSY)
        }
    }
}

/// The groups of a query, each once: the parameter repeated, or a comma list. `None` if one is unknown, or the
/// parameter is missing.
fn groups(query: &str) -> Option<Vec<ConfigGroup>> {
    let mut asked = false;
    let mut groups = Vec::new();
    for (_, list) in form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == PARAMETER) {
        asked = true;
        for name in list.split(',').map(str::trim).filter(|_| !list.is_empty()) {
            let group = name.parse().ok()?;
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    asked.then_some(groups)
}

/// The answer in pieces; the large ones are shared by all who fetch.
async fn pieces(published: &Published, groups: &[ConfigGroup]) -> Result<VecDeque<Bytes>, FetchError> {
    let mut pieces = VecDeque::from([Bytes::from_static(br#"{"code":200,"message":"success","data":{"#)]);
    for (at, group) in groups.iter().enumerate() {
        let image = published.image.group(*group);
        let comma = if at == 0 { "" } else { "," };
        let head = format!(
            r#"{comma}"{group}":{{"md5":"{}","lastModifyTime":{},"data":"#,
            image.md5, image.last_modify_time
        );
        pieces.extend([head.into(), published.fetch_text(*group).await?, Bytes::from_static(b"}")]);
    }
    pieces.push_back(Bytes::from_static(b"}}"));
    Ok(pieces)
}

/// A body of pieces, whose length is known.
struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_repeated_or_listed() {
        use ConfigGroup::{Plugin, Rule};
        for (query, expected) in [
            ("groupKeys=PLUGIN&groupKeys=RULE", Some(vec![Plugin, Rule])),
            ("groupKeys=PLUGIN,RULE", Some(vec![Plugin, Rule])),
            ("groupKeys=PLUGIN%2C%20RULE&groupKeys=PLUGIN", Some(vec![Plugin, Rule])),
            ("groupKeys=", Some(vec![])),
            ("", None),
            ("other=PLUGIN", None),
            ("groupKeys=PLUGIN&groupKeys=plugin", None),
            ("groupKeys=PLUGIN,", None),
        ] {
            assert_eq!(groups(query), expected, "{query}");
        }
    }
}
