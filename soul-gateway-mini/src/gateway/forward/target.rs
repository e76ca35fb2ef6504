//! What an upstream is asked for: mostly the end of what the caller asked for, and then nothing is copied.

use http::{Uri, uri::PathAndQuery};

/// Path and query as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum RequestTarget {
    /// What the caller asked for, from there on.
    From(usize),
    /// Something else.
    Other(PathAndQuery),
}

impl RequestTarget {
    /// The target for the rest of a path. `None` if it cannot be sent, which only a configuration can bring about.
    ///
    /// - `rest`: the path for the upstream, as `context::part` gave it.
    pub(in crate::gateway) fn new(rest: &str, asked: &Uri) -> Option<Self> {
        let (path, query) = (asked.path(), asked.query());
        let whole = asked.path_and_query().map_or(0, |whole| whole.as_str().len());
        // Nearly always, and then nothing has to be copied or checked. A path that the caller left out is not in the text.
        if whole == path.len() + query.map_or(0, |query| 1 + query.len()) && path.ends_with(rest) {
            return Some(Self::From(path.len() - rest.len()));
        }
        let target = query.map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
        PathAndQuery::try_from(target).ok().map(Self::Other)
    }

    /// Its text; `asked` as before.
    pub(in crate::gateway) fn text<'t>(&'t self, asked: &'t Uri) -> &'t str {
        match self {
            Self::From(start) => {
                asked.path_and_query().and_then(|whole| whole.as_str().get(*start..)).unwrap_or("/")
            }
            Self::Other(target) => target.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_is_kept_to_the_byte() {
        for (asked, rest, expected) in [
            ("/a/x", "/x", "/x"),
            ("/a/x?", "/x", "/x?"),
            ("/a/x??x=1", "/x", "/x??x=1"),
            ("/a/x?a&=x&b=%27", "/x", "/x?a&=x&b=%27"),
            ("/a/x?q", "/other", "/other?q"),
            ("/a?q", "/", "/?q"),
            ("/a", "/", "/"),
            ("/", "/", "/"),
            ("*", "*", "*"),
            ("http://a", "/", "/"),
            ("http://a?q", "/", "/?q"),
            ("http://a/x/y?q", "/y", "/y?q"),
            ("a.example:80", "", "/"),
        ] {
            let asked: Uri = asked.parse().unwrap();
            assert_eq!(RequestTarget::new(rest, &asked).unwrap().text(&asked), expected, "{asked}");
        }
        assert_eq!(RequestTarget::new("/a b", &Uri::from_static("/x")), None);
    }
}
