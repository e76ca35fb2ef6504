//! The head of an answer: read, checked, and made one for the caller.
//!
//! An upstream is trusted no more than a caller: what could be read in two ways is refused (RFC 9112, sections 6 and 11),
//! and the caller gets a message of ours with the upstream's status, headers and bytes, never its text as it came.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{CONNECTION, CONTENT_LENGTH, UPGRADE},
};
use hyper::ext::ReasonPhrase;

use super::{
    framing::{self, Framing},
    headers,
};

/// Header lines an upstream may answer with.
const MAX_HEADERS: usize = 256;

/// Bytes of the head of an answer.
pub(super) const MAX_HEAD: usize = 128 * 1024;

/// What an upstream says before its body.
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// Whether the connection may carry another request.
    pub(super) keep: bool,
    /// The protocol it changes to, with status 101.
    pub(super) switches: bool,
}

/// Why what came is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::gateway) enum Unreadable {
    #[error("it is not HTTP")]
    NotHttp,
    #[error("its head is longer than 128 KiB")]
    TooLong,
    #[error("it has more than 256 header lines")]
    TooMany,
    #[error("its `Content-Length` is none, or there are several")]
    Length,
    #[error("its transfer coding is not `chunked`")]
    Coding,
    #[error("a chunk of its body cannot be read")]
    Chunk,
}

/// What the beginning of `input` is.
pub(super) enum Parsed {
    /// More has to come.
    Partial,
    /// An interim answer, taken out of `input`; another one follows.
    Interim,
    /// The answer, taken out of `input`.
    Final(Box<Head>),
}

/// Reads a head from the beginning of `input`.
///
/// - `method`: of the request, since there is no body behind the head of an answer to HEAD, whatever it says.
///
/// # Errors
/// When what came is no answer, or one that could be read in two ways.
pub(super) fn parse(input: &mut BytesMut, method: &Method) -> Result<Parsed, Unreadable> {
    let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut answer, input, &mut lines);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(Parsed::Partial),
        Ok(_) => return Err(Unreadable::TooLong),
        Err(httparse::Error::TooManyHeaders) => return Err(Unreadable::TooMany),
        Err(_) => return Err(Unreadable::NotHttp),
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Unreadable::NotHttp)?;
    if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
        drop(input.split_to(length));
        return Ok(Parsed::Interim);
    }
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    let http_11 = answer.version == Some(1);
    let hop = Hop::read(answer.headers)?;
    let framing = framing::of_answer(method, status, http_11, hop.chunked, hop.length)?;
    // The places of names and values: the head becomes one piece of memory that all values share. What is empty may
    // be anywhere in memory.
    let base = input.as_ptr().addr();
    let place = |part: &[u8]| {
        let start = if part.is_empty() { 0 } else { part.as_ptr().addr().saturating_sub(base) };
        start..start + part.len()
    };
    let reason = answer.reason.filter(|r| !r.is_empty() && Some(*r) != status.canonical_reason());
    let reason = reason.map(|reason| place(reason.as_bytes()));
    let mut names = [const { (0..0, 0..0) }; 32];
    let mut more = Vec::new();
    let count = answer.headers.len();
    for (index, line) in answer.headers.iter().enumerate() {
        let places = (place(line.name.as_bytes()), place(line.value));
        match names.get_mut(index) {
            Some(slot) => *slot = places,
            None => more.push(places),
        }
    }
    let head = input.split_to(length).freeze();
    let lines = names.iter().take(count).chain(&more);
    let mut map = HeaderMap::with_capacity(count);
    for (name, value) in lines {
        let name = HeaderName::from_bytes(&head[name.clone()]).map_err(|_| Unreadable::NotHttp)?;
        if hop.ends(&name) && !(switches && name == UPGRADE)
            || name == CONTENT_LENGTH && (hop.chunked || map.contains_key(CONTENT_LENGTH))
        {
            continue;
        }
        let value =
            HeaderValue::from_maybe_shared(head.slice(value.clone())).map_err(|_| Unreadable::NotHttp)?;
        map.append(name, value);
    }
    if let (true, Some(length)) = (hop.repeated_length, hop.length) {
        map.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = map;
    if let Some(reason) = reason
        && let Ok(reason) = ReasonPhrase::try_from(Bytes::copy_from_slice(&head[reason]))
    {
        response.extensions_mut().insert(reason);
    }
    let keep = (if http_11 { !hop.close } else { hop.keep_alive && !hop.close })
        && !hop.length_and_coding
        && framing != Framing::Close;
    Ok(Parsed::Final(Box::new(Head { response, framing, keep, switches })))
}

/// What a head says about this one connection and the body.
#[derive(Debug, Default)]
struct Hop {
    close: bool,
    keep_alive: bool,
    chunked: bool,
    length: Option<u64>,
    /// The length was given more than once, in several lines or as a list.
    repeated_length: bool,
    length_and_coding: bool,
    /// Names in `Connection` that are not headers of one connection anyway.
    named: Vec<HeaderName>,
}

impl Hop {
    fn read(lines: &[httparse::Header<'_>]) -> Result<Self, Unreadable> {
        let mut hop = Self::default();
        for line in lines {
            match line.name.len() {
                10 if line.name.eq_ignore_ascii_case("connection") => hop.connection(line.value),
                14 if line.name.eq_ignore_ascii_case("content-length") => hop.content_length(line.value)?,
                17 if line.name.eq_ignore_ascii_case("transfer-encoding") => {
                    // More than one coding, or `chunked` twice, would have to be undone in turn.
                    if hop.chunked || !line.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err(Unreadable::Coding);
                    }
                    hop.chunked = true;
                }
                _ => {}
            }
        }
        hop.length_and_coding = hop.chunked && hop.length.is_some();
        Ok(hop)
    }

    fn connection(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if token.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if token.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if let Ok(name) = HeaderName::from_bytes(token)
                && name != CONTENT_LENGTH
            {
                self.named.push(name);
            }
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Unreadable> {
        for (index, number) in value.split(|byte| *byte == b',').enumerate() {
            let number = framing::decimal(number.trim_ascii()).ok_or(Unreadable::Length)?;
            if self.length.is_some_and(|before| before != number) {
                return Err(Unreadable::Length);
            }
            self.repeated_length |= index > 0 || self.length.is_some();
            self.length = Some(number);
        }
        Ok(())
    }

    /// Whether a header ends at the gateway.
    fn ends(&self, name: &HeaderName) -> bool {
        headers::is_of_one_hop(name) || *name == CONNECTION || self.named.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Head, BytesMut), Unreadable> {
        let mut input = BytesMut::from(text);
        match parse(&mut input, &Method::GET)? {
            Parsed::Final(head) => Ok((*head, input)),
            Parsed::Partial | Parsed::Interim => panic!("no final answer: {text:?}"),
        }
    }

    fn refused(text: &str) -> Unreadable {
        read(text).err().unwrap_or_else(|| panic!("it was read: {text:?}"))
    }

    #[test]
    fn a_head_is_taken_out_of_what_came_and_the_body_stays() {
        let (head, rest) =
            read("HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\nx-a: 2\r\n\r\nhi").unwrap();
        let values: Vec<_> =
            head.response.headers().get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!((values, &rest[..]), (vec![&b"1"[..], b"2"], &b"hi"[..]));
        assert_eq!((head.framing, head.keep), (Framing::Length(2), true));
        let many: String = (0..200).map(|i| format!("x-{i}: {i}\r\n")).collect();
        let (head, _) = read(&format!("HTTP/1.1 204 No Content\r\n{many}\r\n")).unwrap();
        assert_eq!(
            (head.response.headers().len(), &head.response.headers()["x-199"]),
            (200, &"199".parse().unwrap())
        );
    }

    #[test]
    fn what_is_empty_is_no_trouble() {
        let (head, _) = read("HTTP/1.1 200\r\nX-A:\r\nX-B: \r\nContent-Length: 0\r\n\r\n").unwrap();
        let headers = head.response.headers();
        assert_eq!(
            (&headers["x-a"], &headers["x-b"], headers.len()),
            (&"".parse().unwrap(), &"".parse().unwrap(), 3)
        );
        assert!(
            read("HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n").unwrap().0.response.extensions().is_empty()
        );
    }

    #[test]
    fn whether_a_connection_may_be_kept() {
        for (text, keep) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\n\r\n", false),
            ("HTTP/1.1 204 No Content\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", true),
        ] {
            let (head, _) = read(text).unwrap();
            assert_eq!(head.keep, keep, "{text:?}");
            assert!(!head.response.headers().contains_key(CONNECTION));
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for (text, why) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Unreadable::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", Unreadable::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Unreadable::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", Unreadable::Length),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Unreadable::Length),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Unreadable::Coding),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                Unreadable::Coding,
            ),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Unreadable::Coding),
            ("HTTP/1.1 200 OK\r\nX: 1\r\n folded\r\n\r\n", Unreadable::NotHttp),
            ("HTTP/1.1 200 OK\r\nX : 1\r\n\r\n", Unreadable::NotHttp),
            ("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", Unreadable::NotHttp),
            ("HTTP/1.1 20 OK\r\n\r\n", Unreadable::NotHttp),
            ("HTTP/2 200 OK\r\n\r\n", Unreadable::NotHttp),
            ("\0\0\0\0", Unreadable::NotHttp),
        ] {
            assert_eq!(refused(text), why, "{text:?}");
        }
        let lines = "x: 1\r\n".repeat(300);
        assert_eq!(refused(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n")), Unreadable::TooMany);
        let long = format!("HTTP/1.1 200 OK\r\nx: {}", "a".repeat(MAX_HEAD));
        assert_eq!(refused(&long), Unreadable::TooLong);
    }

    #[test]
    fn interim_answers_are_passed_over() {
        let mut input = BytesMut::from("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 2");
        let parsed = parse(&mut input, &Method::GET).unwrap();
        assert!(matches!(parsed, Parsed::Interim));
        assert!(matches!(parse(&mut input, &Method::GET).unwrap(), Parsed::Partial));
    }
}
