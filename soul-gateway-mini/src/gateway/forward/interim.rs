//! Interim answers: which of them a caller is told, and in which words.

use http::{HeaderMap, HeaderName, StatusCode, Version, header::CONNECTION, request};

use super::headers::{Role, line};
use crate::gateway::connection::Interims;

/// How many a caller is told of one exchange, and how long their heads may be. They are advice: the others end here.
const MAX_TOLD: u8 = 16;
const MAX_HEAD: usize = 16 * 1024;

/// A caller that may be told.
pub(super) struct Listener<'c> {
    interims: &'c Interims,
    /// Whether it has asked whether its body is wanted, which hyper tells it when that is asked for.
    expects_continue: bool,
    told: u8,
}

impl<'c> Listener<'c> {
    /// - `interims`: of the connection, where such answers can be sent on it.
    ///
    /// `None` if the caller can be told nothing: HTTP/1.0 has no such answers.
    pub(super) fn new(
        interims: Option<&'c Interims>,
        head: &request::Parts,
        expects_continue: bool,
    ) -> Option<Self> {
        let interims = interims.filter(|_| head.version == Version::HTTP_11)?;
        Some(Self { interims, expects_continue, told: 0 })
    }

    /// Passes on what an upstream says.
    pub(super) fn tell(&mut self, interim: &Interim) {
        let asked = interim.status == StatusCode::CONTINUE && self.expects_continue;
        if !asked && interim.text.len() <= MAX_HEAD && self.told < MAX_TOLD {
            self.told += 1;
            self.interims.tell(&interim.text);
        }
    }
}

/// An interim answer, written anew for a caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Interim {
    pub(super) status: StatusCode,
    text: Vec<u8>,
}

impl Interim {
    /// - `reason`: the upstream's words for the status.
    pub(super) fn new(status: StatusCode, reason: Option<&str>, fields: &[(&str, &[u8])]) -> Self {
        let words =
            reason.filter(|words| !words.is_empty()).or(status.canonical_reason()).unwrap_or_default();
        let mut text = format!("HTTP/1.1 {} {words}\r\n", status.as_str()).into_bytes();
        let named = |name: &str| {
            let lines = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(CONNECTION.as_str()));
            let mut tokens = lines.flat_map(|(_, value)| value.split(|byte| *byte == b','));
            tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        };
        for (name, value) in fields.iter().filter(|(name, _)| passes(name) && !named(name)) {
            line(&mut text, &name.to_ascii_lowercase(), value);
        }
        text.extend_from_slice(b"\r\n");
        Self { status, text }
    }

    pub(super) fn of_http2(status: StatusCode, headers: &HeaderMap) -> Self {
        let fields: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        Self::new(status, None, &fields)
    }
}

/// Whether a caller is told of a header. There is no body whose length could be told.
fn passes(name: &str) -> bool {
    let role = HeaderName::from_bytes(name.as_bytes()).map(|name| Role::of(&name));
    role.is_ok_and(|role| !role.is_of_one_hop() && role != Role::Length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_one_hop_ends_here() {
        let fields: [(&str, &[u8]); 8] = [
            ("Link", b"</x>; rel=preload"),
            ("Connection", b"close, X-Hop"),
            ("x-hop", b"1"),
            ("Keep-Alive", b"5"),
            ("Transfer-Encoding", b"chunked"),
            ("Content-Length", b"5"),
            ("link", b"</y>"),
            ("X-Empty", b""),
        ];
        let interim = Interim::new(StatusCode::EARLY_HINTS, Some("Soon"), &fields);
        let text = "HTTP/1.1 103 Soon\r\nlink: </x>; rel=preload\r\nlink: </y>\r\nx-empty: \r\n\r\n";
        assert_eq!(String::from_utf8(interim.text).unwrap(), text);
        let own = StatusCode::from_u16(199).unwrap();
        let plain = Interim::new(own, Some(""), &[]);
        assert_eq!(plain.text, b"HTTP/1.1 199 \r\n\r\n");
        let known = Interim::of_http2(StatusCode::PROCESSING, &HeaderMap::new());
        assert_eq!(known.text, b"HTTP/1.1 102 Processing\r\n\r\n");
    }
}
