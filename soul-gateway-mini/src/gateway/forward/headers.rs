//! Headers on their way through: what ends at the gateway, what it adds, who the upstream thinks it is.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};

use super::super::config::{Forwarded, HostHeader};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const PROXY_AUTHENTICATION_INFO: HeaderName = HeaderName::from_static("proxy-authentication-info");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Headers that speak of one connection (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1).
static HOP_BY_HOP: [HeaderName; 9] = [
    KEEP_ALIVE,
    PROXY_CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHENTICATION_INFO,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what speaks of one connection only, and everything that `Connection` names.
///
/// `Content-Length` goes when `Transfer-Encoding` is there too, so that the next hop sees one framing; of
/// equal ones only the first stays (unequal ones were refused when the message was read).
pub(super) fn end_hop(headers: &mut HeaderMap) {
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    } else if let Some(length) = repeated_length(headers) {
        headers.insert(CONTENT_LENGTH, length);
    }
    if headers.contains_key(CONNECTION) {
        for name in named_by_connection(headers) {
            headers.remove(name);
        }
        headers.remove(CONNECTION);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// The one length of a message that gives it more than once: in several lines, or as a list in one.
fn repeated_length(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let line = lines.next()?;
    let first = line.as_bytes().split(|byte| *byte == b',').next()?.trim_ascii();
    (lines.next().is_some() || first != line.as_bytes()).then(|| HeaderValue::from_bytes(first).ok())?
}

/// Whether the body is coded for transfer by `chunked` or not at all. Any other coding ends at the gateway too, and it
/// can undo none.
pub(in crate::gateway) fn is_plainly_framed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    codings.all(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// The names in `Connection`, but for the two without which a message could be misread.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let tokens = headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
    tokens
        .filter_map(|token| HeaderName::from_bytes(token.trim_ascii()).ok())
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect()
}

/// The caller as later hops are to see it.
pub(super) struct Caller<'a> {
    /// Text of its address, prepared once a connection.
    pub(super) address: &'a HeaderValue,
    /// What it asked for.
    pub(super) host: Option<HeaderValue>,
}

/// Sets `X-Forwarded-For`, `-Proto` and `-Host`.
pub(super) fn tell_caller(headers: &mut HeaderMap, caller: Caller<'_>, mode: Forwarded) {
    match mode {
        Forwarded::Off => {}
        Forwarded::Append => {
            let list = appended(headers, caller.address);
            headers.insert(X_FORWARDED_FOR, list);
            headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
            if let Some(host) = caller.host {
                headers.entry(X_FORWARDED_HOST).or_insert(host);
            }
        }
        Forwarded::Replace => {
            headers.insert(X_FORWARDED_FOR, caller.address.clone());
            headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static("http"));
            match caller.host {
                Some(host) => headers.insert(X_FORWARDED_HOST, host),
                None => headers.remove(X_FORWARDED_HOST),
            };
        }
    }
}

/// All addresses so far, whatever number of lines they came in, and the caller's.
fn appended(headers: &HeaderMap, address: &HeaderValue) -> HeaderValue {
    let mut list = Vec::new();
    for value in headers.get_all(X_FORWARDED_FOR) {
        list.extend_from_slice(value.as_bytes());
        list.extend_from_slice(b", ");
    }
    if list.is_empty() {
        return address.clone();
    }
    list.extend_from_slice(address.as_bytes());
    HeaderValue::from_bytes(&list).unwrap_or_else(|_| address.clone())
}

/// Sets `Host`: the caller's, or the upstream's by setting and for callers of HTTP/1.0 that gave none.
pub(super) fn set_host(
    headers: &mut HeaderMap,
    asked: Option<HeaderValue>,
    upstream: &HeaderValue,
    mode: HostHeader,
) {
    let host = match (mode, asked) {
        (HostHeader::Preserve, Some(asked)) => asked,
        _ => upstream.clone(),
    };
    headers.insert(HOST, host);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    fn lines(headers: &HeaderMap) -> Vec<String> {
        headers.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect()
    }

    fn with_lines(input: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (n, v) in input {
            map.append(HeaderName::from_static(n), HeaderValue::from_static(v));
        }
        map
    }

    #[test]
    fn what_belongs_to_one_connection_ends_here() {
        let mut map = with_lines(&[
            ("connection", "close, X-Secret"),
            ("connection", " x-other ,keep-alive"),
            ("x-secret", "1"),
            ("x-other", "2"),
            ("te", "trailers"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "x"),
            ("proxy-connection", "x"),
            ("upgrade", "websocket"),
            ("trailer", "x-t"),
            ("accept", "a"),
            ("accept", "b"),
        ]);
        end_hop(&mut map);
        assert_eq!(lines(&map), ["accept: a", "accept: b"]);
    }

    #[test]
    fn one_framing_and_a_host_survive_whatever_connection_names() {
        let mut both = headers(&[("transfer-encoding", "chunked"), ("content-length", "5")]);
        end_hop(&mut both);
        assert_eq!(lines(&both), Vec::<String>::new());

        let mut twice = with_lines(&[("content-length", "5"), ("content-length", "5")]);
        end_hop(&mut twice);
        assert_eq!(lines(&twice), ["content-length: 5"]);
        let mut list = with_lines(&[("content-length", "5 , 5")]);
        end_hop(&mut list);
        assert_eq!(lines(&list), ["content-length: 5"]);

        let mut named =
            headers(&[("connection", "host, content-length"), ("host", "a"), ("content-length", "5")]);
        end_hop(&mut named);
        assert_eq!(named.len(), 2);
    }

    #[test]
    fn forwarded_headers_by_setting() {
        let address = HeaderValue::from_static("10.0.0.9");
        let told = |input: &[(&'static str, &'static str)], mode| {
            let mut map = with_lines(input);
            let caller = Caller { address: &address, host: Some(HeaderValue::from_static("shop.example")) };
            tell_caller(&mut map, caller, mode);
            lines(&map)
        };
        let before =
            [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2"), ("x-forwarded-proto", "https")];
        assert_eq!(
            told(&before, Forwarded::Append),
            [
                "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.9",
                "x-forwarded-proto: https",
                "x-forwarded-host: shop.example"
            ]
        );
        assert_eq!(
            told(&before, Forwarded::Replace),
            ["x-forwarded-for: 10.0.0.9", "x-forwarded-proto: http", "x-forwarded-host: shop.example"]
        );
        assert_eq!(
            told(&before, Forwarded::Off),
            ["x-forwarded-for: 1.1.1.1", "x-forwarded-for: 2.2.2.2", "x-forwarded-proto: https"]
        );
    }

    #[test]
    fn host_is_the_callers_or_the_upstreams() {
        let upstream = HeaderValue::from_static("10.0.0.2:8188");
        let host = |asked: Option<&'static str>, mode| {
            let mut map = HeaderMap::new();
            set_host(&mut map, asked.map(HeaderValue::from_static), &upstream, mode);
            map[HOST].to_str().unwrap().to_owned()
        };
        assert_eq!(host(Some("shop.example"), HostHeader::Preserve), "shop.example");
        assert_eq!(host(Some("shop.example"), HostHeader::Upstream), "10.0.0.2:8188");
        assert_eq!(host(None, HostHeader::Preserve), "10.0.0.2:8188");
    }
}
