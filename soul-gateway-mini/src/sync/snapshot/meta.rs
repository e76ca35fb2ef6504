//! What kind of service a path belongs to, as its metadata says (specification, section 5.1).

use std::{collections::HashMap, sync::Arc};

use soul_client::wire::soul::MetaData;

use crate::model::{
    Row,
    matching::{PathPatterns, PathTable, RequestView},
};

/// Kinds that are not plain HTTP. Anything else counts as `http`, as in Soul.
const OTHER_KINDS: [&str; 5] = ["springCloud", "dubbo", "sofa", "tars", "grpc"];

/// Metadata, prepared to tell whether a path is served by something else than plain HTTP.
#[derive(Debug, Default)]
pub(crate) struct RpcKinds {
    /// What it was made of.
    rows: Arc<[Row<MetaData>]>,
    exact: HashMap<Box<str>, Option<&'static str>>,
    patterns: PathTable<Option<&'static str>>,
}

impl RpcKinds {
    /// - `previous`: what was made of the metadata before; it stays if the rows do.
    pub(super) fn new(meta_data: &Arc<[Row<MetaData>]>, previous: Option<&Arc<Self>>) -> Arc<Self> {
        if let Some(previous) = previous.filter(|previous| previous.rows == *meta_data) {
            return Arc::clone(previous);
        }
        if meta_data.iter().all(|row| kind(&MetaData::from(row)).is_none()) {
            return Arc::new(Self { rows: Arc::clone(meta_data), ..Self::default() });
        }
        let mut exact = HashMap::new();
        let mut patterns = Vec::new();
        for data in meta_data.iter().map(MetaData::from) {
            let Some(path) = data.path.as_deref() else { continue };
            exact.insert(path.into(), kind(&data));
            // One that cannot be compiled still counts as the exact path it may be.
            if let Ok(compiled) = PathPatterns::new(path) {
                patterns.push((compiled, kind(&data)));
            }
        }
        Arc::new(Self { rows: Arc::clone(meta_data), exact, patterns: PathTable::new(patterns) })
    }

    /// The kind of service behind a request's path, if it is not plain HTTP.
    ///
    /// The entry for exactly this path counts, else the first one whose pattern matches. Java's order among several is
    /// undefined; ours is that of the list.
    pub(crate) fn other_than_http(&self, view: &RequestView<'_>) -> Option<&'static str> {
        if self.exact.is_empty() {
            return None;
        }
        if let Some(kind) = self.exact.get(view.path()) {
            return *kind;
        }
        self.patterns.first(view).copied().flatten()
    }
}

/// Its kind, if it is in force and not plain HTTP.
fn kind(data: &MetaData) -> Option<&'static str> {
    let named = data.rpc_type.as_deref().filter(|_| data.enabled == Some(true))?;
    OTHER_KINDS.into_iter().find(|kind| *kind == named)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn meta(path: &str, kind: &str, enabled: bool) -> Row<MetaData> {
        Row::from(&MetaData {
            path: Some(path.to_owned()),
            rpc_type: Some(kind.to_owned()),
            enabled: Some(enabled),
            ..MetaData::default()
        })
    }

    fn kinds(rows: &[Row<MetaData>], previous: Option<&Arc<RpcKinds>>) -> Arc<RpcKinds> {
        RpcKinds::new(&rows.into(), previous)
    }

    fn kind_of(kinds: &RpcKinds, path: &str) -> Option<&'static str> {
        let headers = HeaderMap::new();
        kinds.other_than_http(&RequestView::new("GET", path, None, &headers, [127, 0, 0, 1].into()))
    }

    #[test]
    fn only_enabled_metadata_of_another_kind_takes_a_path_from_http() {
        let rows = [
            meta("/a/**", "dubbo", true),
            meta("/a/plain", "http", true),
            meta("/b", "grpc", false),
            meta("/c", "motan", true),
            meta("/d/{id:[}, /d/**", "grpc", true),
        ];
        let some = kinds(&rows, None);
        assert_eq!(kind_of(&some, "/a/x"), Some("dubbo"));
        assert_eq!(kind_of(&some, "/%61/x"), Some("dubbo"));
        assert_eq!(kind_of(&some, "/a/plain"), None, "the exact entry counts");
        assert_eq!(kind_of(&some, "/b"), None);
        assert_eq!(kind_of(&some, "/c"), None);
        assert_eq!(kind_of(&some, "/d/1"), None, "what fails does not match");
        assert_eq!(kind_of(&kinds(&[meta("/**", "http", true)], None), "/a"), None);
    }

    #[test]
    fn what_was_made_of_the_same_rows_stays() {
        let some = kinds(&[meta("/a/**", "dubbo", true)], None);
        assert!(Arc::ptr_eq(&some, &kinds(&[meta("/a/**", "dubbo", true)], Some(&some))));
        let next = kinds(&[meta("/b/**", "dubbo", true)], Some(&some));
        assert_eq!((kind_of(&next, "/a"), kind_of(&next, "/b")), (None, Some("dubbo")));
    }
}
