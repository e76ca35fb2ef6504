//! Headers on their way through: what ends at the gateway, what it adds, who the upstream thinks it is.
//!
//! The head of a request is written for its upstream straight from what the caller sent: nothing is copied into another
//! map first, and the caller's stays whole for whoever has to be asked next.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING, UPGRADE},
};

use super::super::config::{Forwarded, HostHeader};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Whether a header speaks of one connection (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1), apart from
/// `Connection` and what that names.
pub(super) fn is_of_one_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "te"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Whether a field may stand behind a body: none that says how to read the message or who may (RFC 9110, section 6.5.1).
pub(super) fn may_trail(name: &HeaderName) -> bool {
    let read_before = matches!(
        name.as_str(),
        "content-length"
            | "content-encoding"
            | "content-type"
            | "content-range"
            | "host"
            | "connection"
            | "trailer"
            | "authorization"
            | "cookie"
            | "set-cookie"
            | "expect"
            | "max-forwards"
            | "cache-control"
    );
    !read_before && !is_of_one_hop(name)
}

/// Whether the body is coded for transfer by `chunked`, once, or not at all. Any other coding ends at the gateway too, and
/// it can undo none.
pub(in crate::gateway) fn is_plainly_framed(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let plain =
        codings.next().is_none_or(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    plain && codings.next().is_none()
}

/// Whether the caller sends its body only after it was told to go on.
pub(super) fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The protocol that a caller wants to go on in, if a gateway can let it: any but HTTP/2, whose requests would pass
/// unseen.
pub(super) fn wanted_upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(UPGRADE).iter();
    let (Some(protocol), None) = (lines.next(), lines.next()) else { return None };
    let tokens = |value: &'_ HeaderValue, wanted: fn(&[u8]) -> bool| {
        value.as_bytes().split(|byte| *byte == b',').any(|token| wanted(token.trim_ascii()))
    };
    let named = |value| tokens(value, |token| token.eq_ignore_ascii_case(b"upgrade"));
    let of_http = |token: &[u8]| {
        let name = token.get(..4).unwrap_or(token);
        name.eq_ignore_ascii_case(b"http")
            || name.eq_ignore_ascii_case(b"h2c")
            || name.eq_ignore_ascii_case(b"h2")
    };
    (headers.get_all(CONNECTION).iter().any(named) && !tokens(protocol, of_http)).then_some(protocol)
}

/// The body of a request as its upstream is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    /// There is none; `Content-Length: 0` if the caller said so.
    Nothing,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// What stays the same whichever upstream is asked.
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) headers: &'a HeaderMap,
    /// Whom the caller asked for: the address in the request line, else `Host`.
    pub(super) host: Option<&'a HeaderValue>,
    /// The caller's address.
    pub(super) caller: &'a HeaderValue,
    pub(super) body: Announced,
    /// What the caller wants the connection to become, see [`wanted_upgrade`].
    pub(super) upgrade: Option<&'a HeaderValue>,
    pub(super) forwarded: Forwarded,
    /// Whether the caller speaks TLS.
    pub(super) secure: bool,
    pub(super) host_header: HostHeader,
}

impl Asked<'_> {
    /// Writes the head for one upstream.
    ///
    /// - `target`: path and query, in two pieces.
    /// - `upstream`: the `Host` of the upstream itself, for the setting and for callers of HTTP/1.0 that gave none.
    pub(super) fn write(&self, out: &mut Vec<u8>, target: [&str; 2], upstream: &HeaderValue) {
        let [prefix, rest] = target;
        let start = [self.method.as_str(), " ", prefix, rest, " HTTP/1.1\r\nhost: "];
        start.iter().for_each(|piece| out.extend_from_slice(piece.as_bytes()));
        let host = match (self.host_header, self.host) {
            (HostHeader::Preserve, Some(host)) => host,
            _ => upstream,
        };
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(b"\r\n");
        let named = self.named_by_connection();
        for (name, value) in self.headers {
            if !self.ends_here(name) && !named.contains(name) {
                line(out, name.as_str(), value.as_bytes());
            }
        }
        if let Some(protocol) = self.upgrade {
            out.extend_from_slice(b"connection: upgrade\r\n");
            line(out, UPGRADE.as_str(), protocol.as_bytes());
        }
        self.tell_body(out);
        self.tell_caller(out, &named);
        out.extend_from_slice(b"\r\n");
    }

    /// Whether a header is left out, or written elsewhere.
    fn ends_here(&self, name: &HeaderName) -> bool {
        if *name == HOST || *name == CONTENT_LENGTH || *name == CONNECTION || is_of_one_hop(name) {
            return true;
        }
        if *name == EXPECT {
            return self.body == Announced::Nothing;
        }
        match self.forwarded {
            Forwarded::Off => false,
            Forwarded::Append => *name == X_FORWARDED_FOR,
            Forwarded::Replace => [X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST].contains(name),
        }
    }

    /// The names in `Connection`; `Host` and `Content-Length` are written apart from the others, whatever it names.
    fn named_by_connection(&self) -> Vec<HeaderName> {
        let mut named = Vec::new();
        for value in self.headers.get_all(CONNECTION) {
            let tokens = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            let others = tokens.filter(|token| {
                !token.eq_ignore_ascii_case(b"keep-alive") && !token.eq_ignore_ascii_case(b"close")
            });
            named.extend(others.filter_map(|token| HeaderName::from_bytes(token).ok()));
        }
        named
    }

    /// One framing, whatever the caller's headers say: that is how its body was read.
    fn tell_body(&self, out: &mut Vec<u8>) {
        match self.body {
            Announced::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            Announced::Length(length) => decimal_line(out, "content-length", length),
            Announced::Nothing if self.headers.contains_key(CONTENT_LENGTH) => {
                decimal_line(out, "content-length", 0);
            }
            Announced::Nothing => {}
        }
    }

    /// Writes `X-Forwarded-For`, `-Proto` and `-Host`. What is `named` in `Connection` was left out: nobody can make them
    /// vanish by that.
    fn tell_caller(&self, out: &mut Vec<u8>, named: &[HeaderName]) {
        if self.forwarded == Forwarded::Off {
            return;
        }
        out.extend_from_slice(b"x-forwarded-for: ");
        if self.forwarded == Forwarded::Append {
            for before in self.headers.get_all(X_FORWARDED_FOR) {
                out.extend_from_slice(before.as_bytes());
                out.extend_from_slice(b", ");
            }
        }
        out.extend_from_slice(self.caller.as_bytes());
        out.extend_from_slice(b"\r\n");
        let missing = |name: HeaderName| {
            self.forwarded == Forwarded::Replace || named.contains(&name) || !self.headers.contains_key(name)
        };
        if missing(X_FORWARDED_PROTO) {
            let scheme: &[u8] = if self.secure { b"https\r\n" } else { b"http\r\n" };
            out.extend_from_slice(b"x-forwarded-proto: ");
            out.extend_from_slice(scheme);
        }
        if let Some(host) = self.host
            && missing(X_FORWARDED_HOST)
        {
            line(out, "x-forwarded-host", host.as_bytes());
        }
    }
}

/// Writes one header line. Neither names nor values can hold the end of a line: they were read as such, or checked.
pub(super) fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn decimal_line(out: &mut Vec<u8>, name: &str, value: u64) {
    use std::io::Write as _;
    // OK to ignore: a vector takes everything.
    let _ = write!(out, "{name}: {value}\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_lines(input: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (n, v) in input {
            map.append(HeaderName::from_static(n), HeaderValue::from_static(v));
        }
        map
    }

    struct Case {
        host: Option<&'static str>,
        body: Announced,
        upgrade: Option<HeaderValue>,
        forwarded: Forwarded,
        secure: bool,
        host_header: HostHeader,
    }

    const PLAIN: Case = Case {
        host: Some("shop.example"),
        body: Announced::Nothing,
        upgrade: None,
        forwarded: Forwarded::Off,
        secure: false,
        host_header: HostHeader::Preserve,
    };

    /// What is written, line by line, without the empty one at the end.
    fn written(headers: &[(&'static str, &'static str)], case: &Case) -> Vec<String> {
        let host = case.host.map(HeaderValue::from_static);
        let asked = Asked {
            method: &Method::GET,
            headers: &with_lines(headers),
            host: host.as_ref(),
            caller: &HeaderValue::from_static("10.0.0.9"),
            body: case.body,
            upgrade: case.upgrade.as_ref(),
            forwarded: case.forwarded,
            secure: case.secure,
            host_header: case.host_header,
        };
        let mut out = Vec::new();
        asked.write(&mut out, ["/v1", "/x?y"], &HeaderValue::from_static("10.0.0.2:8188"));
        let text = String::from_utf8(out).unwrap();
        text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn what_belongs_to_one_connection_ends_here() {
        let lines = written(
            &[
                ("connection", "close, X-Secret"),
                ("connection", " x-other ,keep-alive"),
                ("x-secret", "1"),
                ("x-other", "2"),
                ("te", "trailers"),
                ("keep-alive", "timeout=5"),
                ("proxy-authorization", "x"),
                ("proxy-connection", "x"),
                ("upgrade", "websocket"),
                ("expect", "100-continue"),
                ("accept", "a"),
                ("accept", "b"),
            ],
            &PLAIN,
        );
        assert_eq!(lines, ["GET /v1/x?y HTTP/1.1", "host: shop.example", "accept: a", "accept: b"]);
    }

    #[test]
    fn one_framing_and_a_host_survive_whatever_the_caller_says() {
        let all = [
            ("transfer-encoding", "chunked"),
            ("content-length", "5"),
            ("content-length", "5"),
            ("connection", "host, content-length"),
            ("host", "other"),
        ];
        let framing = |body| written(&all, &Case { body, ..PLAIN })[1..].to_vec();
        assert_eq!(framing(Announced::Chunked), ["host: shop.example", "transfer-encoding: chunked"]);
        assert_eq!(framing(Announced::Length(5)), ["host: shop.example", "content-length: 5"]);
        assert_eq!(framing(Announced::Nothing), ["host: shop.example", "content-length: 0"]);
        assert_eq!(written(&[], &PLAIN).len(), 2);
    }

    #[test]
    fn forwarded_headers_by_setting() {
        let before =
            [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "2.2.2.2"), ("x-forwarded-proto", "https")];
        let told = |forwarded| written(&before, &Case { forwarded, ..PLAIN })[2..].to_vec();
        assert_eq!(
            told(Forwarded::Append),
            [
                "x-forwarded-proto: https",
                "x-forwarded-for: 1.1.1.1, 2.2.2.2, 10.0.0.9",
                "x-forwarded-host: shop.example"
            ]
        );
        assert_eq!(
            told(Forwarded::Replace),
            ["x-forwarded-for: 10.0.0.9", "x-forwarded-proto: http", "x-forwarded-host: shop.example"]
        );
        let secure = written(&before, &Case { forwarded: Forwarded::Replace, secure: true, ..PLAIN });
        assert_eq!(secure[3], "x-forwarded-proto: https");
        assert_eq!(
            told(Forwarded::Off),
            ["x-forwarded-for: 1.1.1.1", "x-forwarded-for: 2.2.2.2", "x-forwarded-proto: https"]
        );
    }

    #[test]
    fn host_is_the_callers_or_the_upstreams() {
        let host = |host, host_header| written(&[], &Case { host, host_header, ..PLAIN })[1].clone();
        assert_eq!(host(Some("shop.example"), HostHeader::Preserve), "host: shop.example");
        assert_eq!(host(Some("shop.example"), HostHeader::Upstream), "host: 10.0.0.2:8188");
        assert_eq!(host(None, HostHeader::Preserve), "host: 10.0.0.2:8188");
    }

    #[test]
    fn other_protocols_are_asked_for_and_other_versions_of_http_are_not() {
        let wanted = |connection, upgrade| {
            wanted_upgrade(&with_lines(&[("connection", connection), ("upgrade", upgrade)])).cloned()
        };
        let websocket = wanted("keep-alive, Upgrade", "websocket");
        assert_eq!(websocket, Some(HeaderValue::from_static("websocket")));
        for (connection, upgrade) in [
            ("keep-alive", "websocket"),
            ("upgrade", "h2c"),
            ("upgrade", "websocket, H2C"),
            ("upgrade", "HTTP/2.0"),
        ] {
            assert_eq!(wanted(connection, upgrade), None, "{connection} {upgrade}");
        }
        let lines = written(
            &[("connection", "upgrade"), ("upgrade", "websocket")],
            &Case { upgrade: websocket, ..PLAIN },
        );
        assert_eq!(lines[2..], ["connection: upgrade", "upgrade: websocket"]);
    }

    #[test]
    fn what_says_how_to_read_a_message_does_not_stand_behind_it() {
        for name in ["content-length", "transfer-encoding", "host", "te", "set-cookie", "upgrade"] {
            assert!(!may_trail(&HeaderName::from_static(name)), "{name}");
        }
        assert!(may_trail(&HeaderName::from_static("x-checksum")));
    }
}
