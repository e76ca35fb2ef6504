//! Headers on their way through: what ends at the gateway, what it adds, who the upstream thinks it is.
//!
//! The head of a request is written for its upstream straight from what the caller sent: nothing is copied into another
//! map first, and the caller's stays whole for whoever has to be asked next.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{CONNECTION, MAX_FORWARDS, UPGRADE, VIA},
};

use super::super::config::{Forwarded, HostHeader};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What a header is to a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing of its business.
    Plain,
    Host,
    Length,
    Coding,
    Connection,
    Upgrade,
    Expect,
    /// It speaks of one connection in yet another way.
    OfOneHop,
    ForwardedFor,
    ForwardedHost,
    ForwardedProto,
}

impl Role {
    pub(super) fn of(name: &HeaderName) -> Self {
        match name.as_str() {
            "host" => Self::Host,
            "content-length" => Self::Length,
            "transfer-encoding" => Self::Coding,
            "connection" => Self::Connection,
            "upgrade" => Self::Upgrade,
            "expect" => Self::Expect,
            "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authentication-info"
            | "proxy-authorization"
            | "te" => Self::OfOneHop,
            "x-forwarded-for" => Self::ForwardedFor,
            "x-forwarded-host" => Self::ForwardedHost,
            "x-forwarded-proto" => Self::ForwardedProto,
            _ => Self::Plain,
        }
    }

    /// Whether it speaks of one connection (RFC 9110, section 7.6.1, and RFC 2616, section 13.5.1).
    pub(super) fn is_of_one_hop(self) -> bool {
        matches!(self, Self::Coding | Self::Connection | Self::Upgrade | Self::OfOneHop)
    }
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
            | "trailer"
            | "authorization"
            | "cookie"
            | "set-cookie"
            | "expect"
            | "max-forwards"
            | "cache-control"
    );
    !read_before && !Role::of(name).is_of_one_hop()
}

/// What the headers of a request say that a gateway has to know, found by looking at each of them once.
pub(in crate::gateway) struct Said<'h> {
    pub(super) headers: &'h HeaderMap,
    /// The first `Host`.
    pub(in crate::gateway) host: Option<&'h HeaderValue>,
    /// Whether there is more than one.
    pub(in crate::gateway) several_hosts: bool,
    /// Whether the body is coded for transfer by `chunked`, once, or not at all. Any other coding ends at the gateway too,
    /// and it can undo none.
    pub(in crate::gateway) plainly_framed: bool,
    /// Whether the caller sends its body only after it was told to go on.
    pub(super) expects_continue: bool,
    has_length: bool,
    has_connection: bool,
    has_upgrade: bool,
    has_forwarded_for: bool,
    has_forwarded_host: bool,
    has_forwarded_proto: bool,
}

impl<'h> Said<'h> {
    pub(in crate::gateway) fn by(headers: &'h HeaderMap) -> Self {
        let mut said = Self {
            headers,
            host: None,
            several_hosts: false,
            plainly_framed: true,
            expects_continue: false,
            has_length: false,
            has_connection: false,
            has_upgrade: false,
            has_forwarded_for: false,
            has_forwarded_host: false,
            has_forwarded_proto: false,
        };
        let mut coded = false;
        for (name, value) in headers {
            match Role::of(name) {
                Role::Plain | Role::OfOneHop => {}
                Role::Host if said.host.is_some() => said.several_hosts = true,
                Role::Host => said.host = Some(value),
                Role::Coding => {
                    let chunked = value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
                    said.plainly_framed = chunked && !coded;
                    coded = true;
                }
                Role::Expect => {
                    said.expects_continue = value.as_bytes().eq_ignore_ascii_case(b"100-continue");
                }
                Role::Length => said.has_length = true,
                Role::Connection => said.has_connection = true,
                Role::Upgrade => said.has_upgrade = true,
                Role::ForwardedFor => said.has_forwarded_for = true,
                Role::ForwardedHost => said.has_forwarded_host = true,
                Role::ForwardedProto => said.has_forwarded_proto = true,
            }
        }
        said
    }

    /// See [`wanted_upgrade`].
    pub(super) fn wanted_upgrade(&self) -> Option<&'h HeaderValue> {
        if self.has_upgrade && self.has_connection { wanted_upgrade(self.headers) } else { None }
    }
}

/// The protocol that a caller wants to go on in, if a gateway can let it: any but HTTP/2, whose requests would pass
/// unseen.
fn wanted_upgrade(headers: &HeaderMap) -> Option<&HeaderValue> {
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
    pub(super) said: &'a Said<'a>,
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
    /// How many more hops the request may go behind this one, if it counts them.
    pub(super) hops: Option<u64>,
    /// What the gateway adds to `Via`.
    pub(super) via: Option<&'a HeaderValue>,
    pub(super) host_header: HostHeader,
}

impl Asked<'_> {
    /// Writes the head for one upstream.
    ///
    /// - `target`: path and query, in two pieces.
    /// - `upstream`: the `Host` of the upstream itself, for the setting and for callers of HTTP/1.0 that gave none.
    pub(super) fn write(&self, out: &mut Vec<u8>, target: [&str; 2], upstream: &HeaderValue) {
        let [prefix, rest] = target;
        for piece in [self.method.as_str(), " ", prefix, rest, " HTTP/1.1\r\nhost: "] {
            out.extend_from_slice(piece.as_bytes());
        }
        let host = match (self.host_header, self.host) {
            (HostHeader::Preserve, Some(host)) => host,
            _ => upstream,
        };
        out.extend_from_slice(host.as_bytes());
        out.extend_from_slice(b"\r\n");
        let named = self.named_by_connection();
        for (name, value) in self.said.headers {
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
        if let Some(hops) = self.hops {
            decimal_line(out, MAX_FORWARDS.as_str(), hops);
        }
        if let Some(via) = self.via {
            line(out, VIA.as_str(), via.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Whether a header is left out, or written elsewhere.
    pub(super) fn ends_here(&self, name: &HeaderName) -> bool {
        match Role::of(name) {
            Role::Plain => self.hops.is_some() && *name == MAX_FORWARDS,
            Role::Expect => self.body == Announced::Nothing,
            Role::ForwardedFor => self.forwarded != Forwarded::Off,
            Role::ForwardedHost | Role::ForwardedProto => self.forwarded == Forwarded::Replace,
            Role::Host | Role::Length | Role::Coding | Role::Connection | Role::Upgrade | Role::OfOneHop => {
                true
            }
        }
    }

    /// The names in `Connection`; `Host` and `Content-Length` are written apart from the others, whatever it names.
    pub(super) fn named_by_connection(&self) -> Vec<HeaderName> {
        let mut named = Vec::new();
        if !self.said.has_connection {
            return named;
        }
        for value in self.said.headers.get_all(CONNECTION) {
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
            Announced::Nothing if self.said.has_length => decimal_line(out, "content-length", 0),
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
        let said = self.said;
        let append = self.forwarded == Forwarded::Append;
        if append && said.has_forwarded_for {
            for before in said.headers.get_all(X_FORWARDED_FOR) {
                out.extend_from_slice(before.as_bytes());
                out.extend_from_slice(b", ");
            }
        }
        out.extend_from_slice(self.caller.as_bytes());
        out.extend_from_slice(b"\r\n");
        let missing = |is_there: bool, name: HeaderName| !(append && is_there) || named.contains(&name);
        if missing(said.has_forwarded_proto, X_FORWARDED_PROTO) {
            let scheme: &[u8] = if self.secure { b"https\r\n" } else { b"http\r\n" };
            out.extend_from_slice(b"x-forwarded-proto: ");
            out.extend_from_slice(scheme);
        }
        if let Some(host) = self.host
            && missing(said.has_forwarded_host, X_FORWARDED_HOST)
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
        let headers = with_lines(headers);
        let asked = Asked {
            method: &Method::GET,
            said: &Said::by(&headers),
            host: host.as_ref(),
            caller: &HeaderValue::from_static("10.0.0.9"),
            body: case.body,
            upgrade: case.upgrade.as_ref(),
            forwarded: case.forwarded,
            secure: case.secure,
            hops: None,
            via: None,
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
