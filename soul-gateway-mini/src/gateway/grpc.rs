//! Callers of gRPC: what the gateway tells them itself. They look for the outcome behind the body, and show nothing else.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, Version, header::CONTENT_TYPE, request};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::{error::Refusal, forward::CallerFault};

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// What cannot stand in `grpc-message`, besides all that is not ASCII.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// Whether a request is one of gRPC; that of `grpc-web` is a plain one.
pub(super) fn is_asked(head: &request::Parts) -> bool {
    head.version == Version::HTTP_2
        && head.headers.get(CONTENT_TYPE).is_some_and(|value| {
            let rest = value.as_bytes().strip_prefix(b"application/grpc");
            rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
        })
}

/// How long the caller waits for the outcome of its call, if it says so: up to eight digits and a unit. What is written otherwise
/// is left to the service, as the header itself is.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let (unit, digits) = headers.get(GRPC_TIMEOUT)?.as_bytes().split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0_u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// The answer to a request of gRPC that no upstream answered: status 200, no body, and what went wrong in its place.
///
/// - `words`: for the caller.
pub(super) fn refusal(refusal: &Refusal, words: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, code(refusal).into());
    let message = utf8_percent_encode(words, ESCAPED).to_string();
    if let Ok(message) = HeaderValue::try_from(message) {
        headers.insert(GRPC_MESSAGE, message);
    }
    response
}

/// The codes of gRPC: as its clients would make them of the HTTP status, but where more is known than that.
fn code(refusal: &Refusal) -> u16 {
    const CANCELLED: u16 = 1;
    const DEADLINE_EXCEEDED: u16 = 4;
    const RESOURCE_EXHAUSTED: u16 = 8;
    const UNIMPLEMENTED: u16 = 12;
    const INTERNAL: u16 = 13;
    const UNAVAILABLE: u16 = 14;

    match refusal {
        Refusal::NotServed(_)
        | Refusal::NoSelector
        | Refusal::NoRule
        | Refusal::ContextPath(_)
        | Refusal::NoHttp2 { .. } => UNIMPLEMENTED,
        Refusal::Late { .. } | Refusal::GivenUp { .. } => DEADLINE_EXCEEDED,
        Refusal::HeadTooLarge | Refusal::Caller(CallerFault::TooLarge) => RESOURCE_EXHAUSTED,
        Refusal::Caller(CallerFault::Left | CallerFault::Stalled) => CANCELLED,
        Refusal::Malformed(_)
        | Refusal::Caller(CallerFault::Malformed)
        | Refusal::Condition(_)
        | Refusal::Unusable { .. } => INTERNAL,
        Refusal::NotReady
        | Refusal::Overloaded
        | Refusal::Busy
        | Refusal::NotDivided(_)
        | Refusal::NoUpstreamConfigured { .. }
        | Refusal::NoUpstream
        | Refusal::Connect { .. }
        | Refusal::ConnectLate { .. }
        | Refusal::Broken { .. } => UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn only_grpc_itself_is_grpc() {
        let asked = |version, kind: &str| {
            let request = Request::post("/a").version(version).header(CONTENT_TYPE, kind).body(());
            is_asked(&request.unwrap().into_parts().0)
        };
        for kind in ["application/grpc", "application/grpc+proto", "application/grpc;x=y"] {
            assert!(asked(Version::HTTP_2, kind), "{kind}");
            assert!(!asked(Version::HTTP_11, kind), "{kind}");
        }
        for kind in ["application/grpc-web", "application/grpc-web+proto", "application/json"] {
            assert!(!asked(Version::HTTP_2, kind), "{kind}");
        }
    }

    #[test]
    fn a_timeout_is_up_to_eight_digits_and_a_unit() {
        let read = |text: &'static str| {
            timeout(&HeaderMap::from_iter([(GRPC_TIMEOUT, HeaderValue::from_static(text))]))
        };
        let seconds = Duration::from_secs;
        for (text, expected) in [
            ("1H", seconds(3600)),
            ("2M", seconds(120)),
            ("00000003S", seconds(3)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
            ("99999999H", seconds(99_999_999 * 3600)),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "+1S", " 1S", "1 S", "1.5S", "123456789S", "1SS"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    #[test]
    fn a_refusal_is_told_by_code_and_words() {
        let upstream = "a:1".into();
        let source = std::io::ErrorKind::BrokenPipe.into();
        let told = refusal(&Refusal::Connect { upstream, source }, "100% gone\n… wirklich");
        assert_eq!(told.status(), 200);
        assert_eq!(told.headers()["grpc-status"], "14");
        assert_eq!(told.headers()["grpc-message"], "100%25 gone%0A%E2%80%A6 wirklich");
    }
}
