//! From the path of a request to the path its upstream sees.
//!
//! A service answers below its context path only in the gateway: what is in front of the service's own
//! path is cut off here, and nothing else of the request's target is touched. The rest of the path and the
//! query reach the upstream as the caller wrote them, escapes and empty segments included.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};
use soul_client::wire::soul::ContextMappingHandle;
use thiserror::Error;

use crate::model::{
    escape,
    matching::{
        ContextFields, Field,
        decode::{byte_at, path as decoded},
        text::non_blank,
    },
};

/// Which part of the path is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathPrefix {
    /// By the matching rule of plugin `context_path` if there is one, else the first segment: right for
    /// Feb-2021 and for 2.3.0 admins.
    #[default]
    Auto,
    /// By the matching rule of plugin `context_path`; without one nothing: 2.3.0.
    ContextPathRule,
    /// The first segment, whatever the rules say: Feb-2021.
    FirstSegment,
}

/// The path does not lie below the context path of the rule that matched (Soul's code -111).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "path `{path}` is not below context path `{context_path}`; correct the conditions or the handle of the `context_path` rule"
)]
pub struct ContextPathError {
    /// The path as sent.
    pub path: String,
    /// The context path of the rule.
    pub context_path: String,
}

/// A path, parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parted<'a> {
    /// The context path, decoded: the first segment with a slash in front, or what the rule says; absent when
    /// nothing was cut off.
    pub context_path: Option<Cow<'a, str>>,
    /// The path for the upstream, never empty: as sent, but for what was cut off; or the rule's own path.
    pub rest: Cow<'a, str>,
    /// By what it was parted.
    pub by: PartedBy,
}

/// By what a path was parted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartedBy {
    /// A `context_path` rule.
    Rule,
    /// Its first segment.
    FirstSegment,
    /// Nothing: the whole path is for the upstream.
    Nothing,
}

/// Parts the path of a request into context path and rest.
///
/// # Shape
/// - `raw_path`: as sent, without the query.
/// - `rule`: handle of the `context_path` rule that matched the request, if one did. One with a blank
///   context path counts as none.
///
/// # Errors
/// When the path is not below the rule's context path.
///
/// # Source
/// Soul specification, sections 5.2 and 5.3. Differs:
/// - the prefix is cut once and at a segment border, not by length (`//a/b` gives `/b`, Soul `a/b`), by a
///   regular expression, or inside a segment (`/httpx/y` is not below `/http`);
/// - the rest is a piece of the path as sent, where Soul decodes the path and encodes it again;
/// - an empty rest becomes `/`, since a request target cannot be empty; Soul sends `http://host:port`, which
///   its HTTP client turns into `/` too. A path that *is* the rule's context path gives `/`, not the path;
/// - the context path is compared by segments of the decoded path, as patterns match them: `//http/x` and
///   `/%68ttp/x` are below `/http`.
///
/// # Examples
/// ```
/// use soul_gateway_mini::gateway::context::{PathPrefix, part};
///
/// let parted = part("/http/order/a%2Fb", PathPrefix::Auto, None)?;
/// assert_eq!(parted.context_path.as_deref(), Some("/http"));
/// assert_eq!(parted.rest, "/order/a%2Fb");
/// # Ok::<(), soul_gateway_mini::gateway::context::ContextPathError>(())
/// ```
pub fn part<'a>(
    raw_path: &'a str,
    prefix: PathPrefix,
    rule: Option<&'a ContextMappingHandle>,
) -> Result<Parted<'a>, ContextPathError> {
    let rule = rule.filter(|_| prefix != PathPrefix::FirstSegment);
    let mapped = rule.and_then(|rule| Some((rule, non_blank(rule.context_path.as_deref())?)));
    match mapped {
        Some((rule, context_path)) => by_rule(raw_path, rule, context_path),
        None if prefix == PathPrefix::ContextPathRule => Ok(whole(raw_path)),
        None => Ok(by_first_segment(raw_path)),
    }
}

fn whole(raw_path: &str) -> Parted<'_> {
    Parted { context_path: None, rest: raw_path.into(), by: PartedBy::Nothing }
}

fn by_rule<'a>(
    raw_path: &'a str,
    rule: &'a ContextMappingHandle,
    context_path: &'a str,
) -> Result<Parted<'a>, ContextPathError> {
    let end = end_of_prefix(raw_path, context_path).ok_or_else(|| ContextPathError {
        path: raw_path.to_owned(),
        context_path: context_path.to_owned(),
    })?;
    let fixed = non_blank(rule.real_url.as_deref());
    Ok(Parted {
        context_path: Some(context_path.into()),
        rest: fixed.map_or_else(|| rest_from(raw_path, end), written_out),
        by: PartedBy::Rule,
    })
}

fn by_first_segment(raw_path: &str) -> Parted<'_> {
    let start = skip_slashes(raw_path, 0);
    if start == 0 {
        // Not a path: the `*` of `OPTIONS *`.
        return whole(raw_path);
    }
    let end = end_of_segment(raw_path, start);
    let segment = decoded(&raw_path[start..end]);
    // The slash in front of the segment is part of the text unless it is escaped.
    let context_path = match segment {
        Cow::Borrowed(_) if raw_path[..start].ends_with('/') => Cow::Borrowed(&raw_path[start - 1..end]),
        segment => Cow::Owned(format!("/{segment}")),
    };
    Parted { context_path: Some(context_path), rest: rest_from(raw_path, end), by: PartedBy::FirstSegment }
}

/// The path that a rule gives, as it can stand in a request: a slash in front, and escapes for characters that
/// cannot. What is escaped already stays so.
fn written_out(path: &str) -> Cow<'_, str> {
    let escaped = escape::target(path);
    if escaped.starts_with('/') { escaped } else { Cow::Owned(format!("/{escaped}")) }
}

/// Where the prefix ends in the raw path, which is below it; `None` when it is not.
fn end_of_prefix(raw_path: &str, prefix: &str) -> Option<usize> {
    let mut at = 0;
    for segment in prefix.split('/').filter(|segment| !segment.is_empty()) {
        let start = skip_slashes(raw_path, at);
        let end = end_of_segment(raw_path, start);
        if start == at || decoded(&raw_path[start..end]) != segment {
            return None;
        }
        at = end;
    }
    raw_path.starts_with('/').then_some(at)
}

fn skip_slashes(raw_path: &str, mut at: usize) -> usize {
    while let Some((b'/', next)) = byte_at(raw_path, at) {
        at = next;
    }
    at
}

/// An escaped slash ends a segment too: the path that conditions matched was the decoded one, and what is
/// forwarded must not be another.
fn end_of_segment(raw_path: &str, mut at: usize) -> usize {
    while let Some((_, next)) = byte_at(raw_path, at).filter(|(byte, _)| *byte != b'/') {
        at = next;
    }
    at
}

fn rest_from(raw_path: &str, at: usize) -> Cow<'_, str> {
    match byte_at(raw_path, at) {
        None => Cow::Borrowed("/"),
        Some(_) if raw_path[at..].starts_with('/') => Cow::Borrowed(&raw_path[at..]),
        // The border is an escaped slash; a path starts with a plain one.
        Some((_, next)) => Cow::Owned(format!("/{}", &raw_path[next..])),
    }
}

/// Soul's request context, as far as `post` conditions can ask for it; its fields are made when asked for.
#[derive(Clone, Copy, Debug)]
pub struct SoulContext<'a> {
    /// The request's method.
    pub method: &'a str,
    /// The path as sent.
    pub raw_path: &'a str,
    /// The request's headers, for `appKey`, `sign` and `timestamp`.
    pub headers: &'a HeaderMap,
    /// The path, parted; absent while `context_path` rules are matched.
    pub parted: Option<&'a Parted<'a>>,
}

impl ContextFields for SoulContext<'_> {
    fn field(&self, name: &str) -> Field<'_> {
        let context_path = || self.parted.and_then(|parted| parted.context_path.as_deref());
        let text = match name {
            "path" => Some(decoded(self.raw_path)),
            "httpMethod" => Some(self.method.into()),
            "rpcType" => Some("http".into()),
            "contextPath" | "module" => context_path().map(Into::into),
            "realUrl" => self.parted.map(|parted| decoded(&parted.rest)),
            "method" => Some(self.soul_method()),
            "appKey" => self.header("appkey"),
            "sign" => self.header("sign"),
            "timestamp" => self.header("timestamp"),
            "startDateTime" => return Field::NotText,
            _ => None,
        };
        text.map_or(Field::Absent, Field::Text)
    }
}

impl SoulContext<'_> {
    /// Soul's `method` is no HTTP method: the path behind the first segment, or the whole path where the
    /// first segment is not cut off.
    fn soul_method(&self) -> Cow<'_, str> {
        match self.parted {
            Some(parted) if parted.by == PartedBy::FirstSegment => decoded(&parted.rest),
            _ => decoded(self.raw_path),
        }
    }

    fn header(&self, name: &'static str) -> Option<Cow<'_, str>> {
        self.headers.get(HeaderName::from_static(name))?.to_str().ok().map(Into::into)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn handle(context_path: &str, real_url: Option<&str>) -> ContextMappingHandle {
        ContextMappingHandle {
            context_path: Some(context_path.to_owned()),
            real_url: real_url.map(str::to_owned),
        }
    }

    #[test]
    fn the_first_segment_is_cut_off_at_its_border() {
        let ignored = handle("/none", None);
        for (path, context_path, rest) in [
            ("/http/order/findById", "/http", "/order/findById"),
            ("/http", "/http", "/"),
            ("/http/", "/http", "/"),
            ("/", "/", "/"),
            ("//", "/", "/"),
            ("//a/b", "/a", "/b"),
            ("///a//b", "/a", "//b"),
            ("/http//x/", "/http", "//x/"),
            ("/%68ttp/x", "/http", "/x"),
            ("/%E8%AE%A2/%E8%AE%A2", "/订", "/%E8%AE%A2"),
            ("/http/a%2Fb%3F+;v=1", "/http", "/a%2Fb%3F+;v=1"),
            ("/http%2Fx/y", "/http", "/x/y"),
            ("%2Fhttp/x", "/http", "/x"),
            ("/%zz/x", "/%zz", "/x"),
            ("/a/b/c", "/a", "/b/c"),
        ] {
            let parted = part(path, PathPrefix::FirstSegment, Some(&ignored)).unwrap();
            assert_eq!(parted.context_path.as_deref(), Some(context_path), "{path}");
            assert_eq!(parted.rest, rest, "{path}");
            assert_eq!(parted.by, PartedBy::FirstSegment);
        }
    }

    #[test]
    fn a_rule_cuts_its_prefix_once() {
        for (context_path, path, rest) in [
            ("/http", "/http/x/http/y", Some("/x/http/y")),
            ("/http", "/http", Some("/")),
            ("/http", "/http/", Some("/")),
            ("/http", "/httpx/y", None),
            ("/http", "/HTTP/y", None),
            ("/http", "/other", None),
            ("/http", "/", None),
            ("/http", "//http/x", Some("/x")),
            ("/http", "/%68ttp/x%20y", Some("/x%20y")),
            ("/http", "/http%2Fx", Some("/x")),
            ("/http/", "/http/x", Some("/x")),
            ("/a/b", "/a/b/c", Some("/c")),
            ("/a/b", "/a%2Fb/c", Some("/c")),
            ("/a/b", "/a//b//c", Some("//c")),
            ("/a/b", "/a", None),
            ("/a.b", "/axb/c", None),
            ("/a(b", "/a(b/c", Some("/c")),
            ("/", "/x/y", Some("/x/y")),
            ("/订单", "/%E8%AE%A2%E5%8D%95/1", Some("/1")),
            ("/a b", "/a%20b/c", Some("/c")),
        ] {
            let handle = handle(context_path, None);
            for prefix in [PathPrefix::Auto, PathPrefix::ContextPathRule] {
                let parted = part(path, prefix, Some(&handle));
                assert_eq!(parted.ok().map(|parted| parted.rest).as_deref(), rest, "{context_path} {path}");
            }
        }
    }

    #[test]
    fn a_rule_may_name_the_path_to_send() {
        let handle = handle("/http", Some("/fixed"));
        let parted = part("/http/x", PathPrefix::Auto, Some(&handle)).unwrap();
        assert_eq!((parted.context_path.as_deref(), &*parted.rest), (Some("/http"), "/fixed"));
        assert!(part("/x", PathPrefix::Auto, Some(&handle)).is_err());
        for (real_url, rest) in
            [("fixed", "/fixed"), ("/订 {x}#%20", "/%E8%AE%A2%20%7Bx%7D%23%20"), (" ", "/x")]
        {
            let handle = self::handle("/http", Some(real_url));
            assert_eq!(part("/http/x", PathPrefix::Auto, Some(&handle)).unwrap().rest, rest);
        }
    }

    #[test]
    fn without_a_rule_the_setting_decides() {
        let blank = handle(" ", None);
        for rule in [None, Some(&blank)] {
            assert_eq!(part("/a/b", PathPrefix::Auto, rule).unwrap().rest, "/b");
            let whole = part("/a/b", PathPrefix::ContextPathRule, rule).unwrap();
            assert_eq!((whole.context_path, &*whole.rest, whole.by), (None, "/a/b", PartedBy::Nothing));
        }
        assert_eq!(part("*", PathPrefix::Auto, None).unwrap().rest, "*");
    }

    #[test]
    fn post_conditions_see_souls_fields() {
        let mut headers = HeaderMap::new();
        headers.insert("appKey", "k1".parse().unwrap());
        let parted = part("/http/a%20b", PathPrefix::Auto, None).unwrap();
        let context =
            SoulContext { method: "GET", raw_path: "/http/a%20b", headers: &headers, parted: Some(&parted) };
        for (name, expected) in [
            ("path", Some("/http/a b")),
            ("module", Some("/http")),
            ("contextPath", Some("/http")),
            ("method", Some("/a b")),
            ("realUrl", Some("/a b")),
            ("httpMethod", Some("GET")),
            ("rpcType", Some("http")),
            ("appKey", Some("k1")),
            ("sign", None),
            ("nosuch", None),
        ] {
            let expected = expected.map_or(Field::Absent, |text| Field::Text(text.into()));
            assert_eq!(context.field(name), expected, "{name}");
        }
        assert_eq!(context.field("startDateTime"), Field::NotText);
    }

    fn segments(path: &str) -> Vec<String> {
        path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn parting_loses_no_segment(path in "/[a-c/%2F6.]{0,12}", prefix in "(/[a-c]){0,2}/?") {
            let handle = handle(&prefix, None);
            for (setting, rule) in [(PathPrefix::FirstSegment, None), (PathPrefix::ContextPathRule, Some(&handle))] {
                let Ok(parted) = part(&path, setting, rule) else {
                    prop_assert!(!segments(&decoded(&path)).starts_with(&segments(&prefix)));
                    continue;
                };
                prop_assert!(parted.rest.starts_with('/') && path.ends_with(&parted.rest[1..]));
                let mut both = segments(parted.context_path.as_deref().unwrap_or_default());
                both.extend(segments(&decoded(&parted.rest)));
                prop_assert_eq!(both, segments(&decoded(&path)));
            }
        }

        #[test]
        fn no_path_panics(path in any::<String>(), prefix in any::<String>()) {
            let handle = handle(&prefix, Some(&path));
            for setting in [PathPrefix::Auto, PathPrefix::ContextPathRule, PathPrefix::FirstSegment] {
                let _ = part(&path, setting, None);
                let _ = part(&path, setting, Some(&handle));
            }
        }
    }
}
