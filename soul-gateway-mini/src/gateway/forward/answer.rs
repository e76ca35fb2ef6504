//! The head of an answer: read, checked, and made one for the caller.
//!
//! An upstream is trusted no more than a caller: what could be read in two ways is refused (RFC 9112, sections 6 and 11),
//! and the caller gets a message of ours with the upstream's status, headers and bytes, never its text as it came.

use std::{
    mem::MaybeUninit,
    ops::Range,
    sync::{Mutex, PoisonError},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_LENGTH, UPGRADE},
};
use hyper::ext::ReasonPhrase;

use super::{
    framing::{self, Framing},
    headers::Role,
    interim::Interim,
};
use crate::gateway::spare;

/// Header lines an upstream may answer with.
const MAX_HEADERS: usize = 256;

/// Lines of a head that are remembered.
const MAX_LINES: usize = 32;

/// Bytes of the head of an answer.
pub(super) const MAX_HEAD: usize = 128 * 1024;

/// Bytes of interim answers before an answer. Somebody who sends them without an end would take up the whole lane.
pub(super) const MAX_INTERIM: usize = 1024 * 1024;

/// What an upstream says before its body.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// Other words than the usual ones for the status.
    pub(super) reason: Option<ReasonPhrase>,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    /// Whether the connection may carry another request.
    pub(super) keep: bool,
    /// The protocol it changes to, with status 101.
    pub(super) switches: bool,
}

/// The lines of the head that an upstream sent last. It names the same headers again and again, and a name that stood in the
/// same place before need not be read anew.
///
/// The connections of one lane to an upstream have them in common: so they are at hand, which those of a connection that waited
/// for a while would not be. Nobody ever waits for the lock.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<Vec<Line>>);

#[derive(Debug)]
struct Line {
    /// Its name as it was written.
    text: Box<str>,
    name: HeaderName,
    role: Role,
    /// Where its value is.
    value: Range<usize>,
    /// Whether the caller gets it.
    passes: bool,
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
    #[error("more than 1 MiB of interim answers came before it")]
    Endless,
    #[error("its `Content-Length` is none, or there are several")]
    Length,
    #[error("its transfer coding is not `chunked`")]
    Coding,
    #[error("a chunk of its body cannot be read")]
    Chunk,
}

/// What the beginning of `input` is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    /// More has to come.
    Partial,
    /// An interim answer, taken out of `input`; another one follows.
    Interim(Interim),
    /// The answer, taken out of `input`.
    Final,
}

impl Lines {
    /// Reads a head from the beginning of `input`.
    ///
    /// - `method`: of the request, since there is no body behind the head of an answer to HEAD, whatever it says.
    /// - `head`: where a final one is written.
    ///
    /// # Errors
    /// When what came is no answer, or one that could be read in two ways.
    pub(super) fn parse(
        &self,
        input: &mut BytesMut,
        method: &Method,
        head: &mut Head,
    ) -> Result<Parsed, Unreadable> {
        // A name and its text belong together at any moment.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let parsed = parse(input, method, &mut lines, head);
        if lines.len() > MAX_LINES {
            *lines = Vec::new();
        }
        parsed
    }
}

fn parse(
    input: &mut BytesMut,
    method: &Method,
    lines: &mut Vec<Line>,
    head: &mut Head,
) -> Result<Parsed, Unreadable> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut answer, input, &mut fields);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD => return Ok(Parsed::Partial),
        Ok(_) => return Err(Unreadable::TooLong),
        Err(httparse::Error::TooManyHeaders) => return Err(Unreadable::TooMany),
        Err(_) => return Err(Unreadable::NotHttp),
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Unreadable::NotHttp)?;
    head.switches = status == StatusCode::SWITCHING_PROTOCOLS;
    if status.is_informational() && !head.switches {
        let fields: Vec<_> = answer.headers.iter().map(|field| (field.name, field.value)).collect();
        let interim = Interim::new(status, answer.reason, &fields);
        drop(input.split_to(length));
        return Ok(Parsed::Interim(interim));
    }
    head.status = status;
    let reason = answer.reason.filter(|r| !r.is_empty() && Some(*r) != status.canonical_reason());
    head.reason = reason.and_then(|r| ReasonPhrase::try_from(Bytes::copy_from_slice(r.as_bytes())).ok());
    let http_11 = answer.version == Some(1);
    let hop = Hop::read(answer.headers, input.as_ptr().addr(), head.switches, lines)?;
    head.framing = framing::of_answer(method, status, http_11, hop.chunked, hop.length)?;
    head.keep = (if http_11 { !hop.close } else { hop.keep_alive && !hop.close })
        && !(hop.chunked && hop.length.is_some())
        && head.framing != Framing::Close;
    // One piece of memory that all values share.
    let text = input.split_to(length).freeze();
    // Now and not when it was asked: the map of the request that was answered last is still at hand.
    head.headers = spare::map();
    head.headers.reserve(lines.len());
    for line in lines.iter().filter(|line| line.passes) {
        let value = HeaderValue::from_maybe_shared(text.slice(line.value.clone()));
        head.headers.append(line.name.clone(), value.map_err(|_| Unreadable::NotHttp)?);
    }
    if let (true, Some(length)) = (hop.repeated_length && !hop.chunked, hop.length) {
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(Parsed::Final)
}

impl Line {
    /// Reads the line at `index`, taking its name from the one that was there, if that is the same.
    ///
    /// - `base`: where in memory the head begins.
    fn read<'l>(
        lines: &'l mut Vec<Self>,
        index: usize,
        field: &httparse::Header<'_>,
        base: usize,
    ) -> Result<&'l mut Self, Unreadable> {
        // What is empty may be anywhere in memory.
        let start = if field.value.is_empty() { 0 } else { field.value.as_ptr().addr().saturating_sub(base) };
        let value = start..start + field.value.len();
        if lines.get(index).is_none_or(|line| *line.text != *field.name) {
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Unreadable::NotHttp)?;
            lines.truncate(index);
            let role = Role::of(&name);
            lines.push(Self { text: field.name.into(), name, role, value: 0..0, passes: true });
        }
        let line = lines.get_mut(index).ok_or(Unreadable::NotHttp)?;
        line.value = value;
        Ok(line)
    }
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
    /// Names in `Connection` that are not headers of one connection anyway.
    named: Vec<HeaderName>,
}

impl Hop {
    /// Reads all lines and decides which of them pass.
    fn read(
        fields: &[httparse::Header<'_>],
        base: usize,
        switches: bool,
        lines: &mut Vec<Line>,
    ) -> Result<Self, Unreadable> {
        let mut hop = Self::default();
        for (index, field) in fields.iter().enumerate() {
            let line = Line::read(lines, index, field, base)?;
            let role = line.role;
            line.passes = !role.is_of_one_hop() || role == Role::Upgrade && switches;
            match role {
                Role::Connection => hop.connection(field.value),
                Role::Length => {
                    line.passes = hop.length.is_none();
                    hop.content_length(field.value)?;
                }
                Role::Coding => {
                    // More than one coding, or `chunked` twice, would have to be undone in turn.
                    if hop.chunked || !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                        return Err(Unreadable::Coding);
                    }
                    hop.chunked = true;
                }
                _ => {}
            }
        }
        lines.truncate(fields.len());
        if hop.chunked || !hop.named.is_empty() {
            for line in lines {
                let named = hop.named.contains(&line.name) && !(switches && line.name == UPGRADE);
                line.passes &= !(named || hop.chunked && line.name == CONTENT_LENGTH);
            }
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a head behind the head of another answer.
    fn read_after(lines: &mut Vec<Line>, text: &str) -> Result<(Head, BytesMut), Unreadable> {
        let (mut input, mut head) = (BytesMut::from(text), Head::default());
        let parsed = parse(&mut input, &Method::GET, lines, &mut head)?;
        assert_eq!(parsed, Parsed::Final, "no final answer: {text:?}");
        Ok((head, input))
    }

    fn read(text: &str) -> Result<(Head, BytesMut), Unreadable> {
        read_after(&mut Vec::new(), text)
    }

    fn refused(text: &str) -> Unreadable {
        read(text).err().unwrap_or_else(|| panic!("it was read: {text:?}"))
    }

    #[test]
    fn a_head_is_taken_out_of_what_came_and_the_body_stays() {
        let (head, rest) =
            read("HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\nx-a: 2\r\n\r\nhi").unwrap();
        let values: Vec<_> = head.headers.get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!((values, &rest[..]), (vec![&b"1"[..], b"2"], &b"hi"[..]));
        assert_eq!((head.framing, head.keep), (Framing::Length(2), true));
        let many: String = (0..200).map(|i| format!("x-{i}: {i}\r\n")).collect();
        let (head, _) = read(&format!("HTTP/1.1 204 No Content\r\n{many}\r\n")).unwrap();
        assert_eq!((head.headers.len(), &head.headers["x-199"]), (200, &"199".parse().unwrap()));
    }

    #[test]
    fn a_head_is_read_the_same_whatever_came_before() {
        let heads = [
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nContent-Length: 2\r\nX-B: 3\r\n\r\n",
            "HTTP/1.1 200 OK\r\nx-a: 11\r\nconnection: x-b\r\nX-B: 3\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\nUpgrade: a\r\n\r\n",
        ];
        let mut lines = Vec::new();
        for (first, second) in heads.iter().flat_map(|first| heads.iter().map(move |second| (first, second)))
        {
            read_after(&mut lines, first).unwrap();
            let (after, alone) = (read_after(&mut lines, second).unwrap().0, read(second).unwrap().0);
            assert_eq!(format!("{after:?}"), format!("{alone:?}"), "{first:?}");
        }
    }

    #[test]
    fn what_is_empty_is_no_trouble() {
        let (head, _) = read("HTTP/1.1 200\r\nX-A:\r\nX-B: \r\nContent-Length: 0\r\n\r\n").unwrap();
        let headers = &head.headers;
        assert_eq!(
            (&headers["x-a"], &headers["x-b"], headers.len()),
            (&"".parse().unwrap(), &"".parse().unwrap(), 3)
        );
        let (head, _) = read("HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n").unwrap();
        assert!(head.reason.is_none());
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
            assert!(!head.headers.contains_key("connection"));
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
    fn interim_answers_are_taken_out_of_the_way() {
        let mut input = BytesMut::from("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 2");
        let mut next = || parse(&mut input, &Method::GET, &mut Vec::new(), &mut Head::default()).unwrap();
        assert!(matches!(next(), Parsed::Interim(Interim { status: StatusCode::EARLY_HINTS, .. })));
        assert_eq!(next(), Parsed::Partial);
    }
}
