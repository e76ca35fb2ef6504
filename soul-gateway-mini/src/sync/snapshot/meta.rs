//! What kind of service a path belongs to, as its metadata says (specification, section 5.1).

use std::collections::HashMap;

use soul_client::wire::soul::MetaData;

use crate::model::matching::PathPatterns;

/// Kinds that are not plain HTTP. Anything else counts as `http`, as in Soul.
const OTHER_KINDS: [&str; 5] = ["springCloud", "dubbo", "sofa", "tars", "grpc"];

/// Metadata, prepared to tell whether a path is served by something else than plain HTTP.
#[derive(Debug, Default)]
pub(crate) struct RpcKinds {
    /// By exact path. Empty, like `patterns`, when all is plain HTTP.
    exact: HashMap<Box<str>, Option<&'static str>>,
    patterns: Vec<(PathPatterns, Option<&'static str>)>,
}

impl RpcKinds {
    pub(super) fn new(meta_data: &[MetaData]) -> Self {
        if meta_data.iter().all(|data| kind(data).is_none()) {
            return Self::default();
        }
        let mut kinds = Self::default();
        for data in meta_data {
            let Some(path) = data.path.as_deref() else { continue };
            kinds.exact.insert(path.into(), kind(data));
            // One that cannot be compiled still counts as the exact path it may be.
            if let Ok(patterns) = PathPatterns::new(path) {
                kinds.patterns.push((patterns, kind(data)));
            }
        }
        kinds
    }

    /// The kind of service behind a decoded path, which is asked for only if it matters, if it is not plain HTTP.
    ///
    /// The entry for exactly this path counts, else the first one whose pattern matches. Java's order among several is
    /// undefined; ours is that of the list.
    pub(crate) fn other_than_http<'p>(&self, path: impl FnOnce() -> &'p str) -> Option<&'static str> {
        if self.exact.is_empty() {
            return None;
        }
        let path = path();
        if let Some(kind) = self.exact.get(path) {
            return *kind;
        }
        self.patterns
            .iter()
            .find(|(patterns, _)| patterns.matches(path) == Ok(true))
            .and_then(|(_, kind)| *kind)
    }
}

/// Its kind, if it is in force and not plain HTTP.
fn kind(data: &MetaData) -> Option<&'static str> {
    let named = data.rpc_type.as_deref().filter(|_| data.enabled == Some(true))?;
    OTHER_KINDS.into_iter().find(|kind| *kind == named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(path: &str, kind: &str, enabled: bool) -> MetaData {
        MetaData {
            path: Some(path.to_owned()),
            rpc_type: Some(kind.to_owned()),
            enabled: Some(enabled),
            ..MetaData::default()
        }
    }

    #[test]
    fn only_enabled_metadata_of_another_kind_takes_a_path_from_http() {
        let kinds = RpcKinds::new(&[
            meta("/a/**", "dubbo", true),
            meta("/a/plain", "http", true),
            meta("/b", "grpc", false),
            meta("/c", "motan", true),
        ]);
        assert_eq!(kinds.other_than_http(|| "/a/x"), Some("dubbo"));
        assert_eq!(kinds.other_than_http(|| "/a/plain"), None, "the exact entry counts");
        assert_eq!(kinds.other_than_http(|| "/b"), None);
        assert_eq!(kinds.other_than_http(|| "/c"), None);
        assert_eq!(RpcKinds::new(&[meta("/**", "http", true)]).other_than_http(|| "/a"), None);
    }
}
