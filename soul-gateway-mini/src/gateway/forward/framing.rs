//! Where the body of an answer ends (RFC 9112, sections 6 and 7).

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use super::{answer::Unreadable, headers};

/// Longest line with the size of a chunk, extensions included.
const MAX_SIZE_LINE: usize = 4 * 1024;

/// Bytes and lines of what may follow the last chunk.
const MAX_TRAILERS: usize = 16 * 1024;
const MAX_TRAILER_LINES: usize = 64;

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes, possibly none.
    Length(u64),
    /// Chunks up to an empty one.
    Chunked,
    /// Everything until the connection ends.
    Close,
}

impl Default for Framing {
    /// No body.
    fn default() -> Self {
        Self::Length(0)
    }
}

/// The body behind the head of an answer.
pub(super) fn of_answer(
    method: &Method,
    status: StatusCode,
    http_11: bool,
    chunked: bool,
    length: Option<u64>,
) -> Result<Framing, Unreadable> {
    if chunked && !http_11 {
        return Err(Unreadable::Coding);
    }
    let bodiless = method == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    Ok(match length {
        _ if bodiless => Framing::Length(0),
        _ if chunked => Framing::Chunked,
        Some(length) => Framing::Length(length),
        None => Framing::Close,
    })
}

/// A number in digits and nothing else.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    let add = |sum: u64, byte: &u8| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, add) }
}

/// Reads chunks.
#[derive(Debug)]
pub(super) struct Chunks(State);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The line with a size comes next.
    Size,
    /// So much of a chunk is still to come.
    Data(u64),
    /// The end of the line behind a chunk.
    DataEnd,
    /// What follows the last chunk.
    Trailers,
    End,
}

/// A part of a body in chunks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Data(Bytes),
    /// What came behind the last chunk; the body is over.
    Trailers(Box<HeaderMap>),
    End,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self(State::Size)
    }

    #[cfg(test)]
    fn ended(&self) -> bool {
        self.0 == State::End
    }

    /// Takes the next part out of `input`; `None` if more has to come.
    ///
    /// # Errors
    /// When these are no chunks.
    pub(super) fn next(&mut self, input: &mut BytesMut) -> Result<Option<Chunk>, Unreadable> {
        loop {
            match self.0 {
                State::Size => {
                    let Some(line) = line(input, MAX_SIZE_LINE)? else { return Ok(None) };
                    self.0 = match size(&line).ok_or(Unreadable::Chunk)? {
                        0 => State::Trailers,
                        size => State::Data(size),
                    };
                }
                State::Data(_) if input.is_empty() => return Ok(None),
                State::Data(left) => {
                    let piece = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                    let left = left - piece as u64;
                    self.0 = if left == 0 { State::DataEnd } else { State::Data(left) };
                    return Ok(Some(Chunk::Data(input.split_to(piece).freeze())));
                }
                State::DataEnd => {
                    if input.len() < 2 && b"\r\n".starts_with(input) {
                        return Ok(None);
                    }
                    if !input.starts_with(b"\r\n") {
                        return Err(Unreadable::Chunk);
                    }
                    drop(input.split_to(2));
                    self.0 = State::Size;
                }
                State::Trailers => {
                    let Some(trailers) = trailers(input)? else { return Ok(None) };
                    self.0 = State::End;
                    return Ok(Some(match trailers {
                        trailers if trailers.is_empty() => Chunk::End,
                        trailers => Chunk::Trailers(Box::new(trailers)),
                    }));
                }
                State::End => return Ok(Some(Chunk::End)),
            }
        }
    }
}

/// Takes a line out of `input`, its end included.
fn line(input: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, Unreadable> {
    match input.iter().take(limit).position(|byte| *byte == b'\n') {
        Some(end) if end > 0 && input[end - 1] == b'\r' => {
            let line = input.split_to(end + 1).freeze();
            Ok(Some(line.slice(..end - 1)))
        }
        // A line that ends otherwise may be read as two by others.
        Some(_) => Err(Unreadable::Chunk),
        None if input.len() >= limit => Err(Unreadable::Chunk),
        None => Ok(None),
    }
}

/// The size of a chunk, in front of extensions that nobody understands.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if !(1..=16).contains(&digits) {
        return None;
    }
    let size = std::str::from_utf8(&line[..digits]).ok()?;
    let size = u64::from_str_radix(size, 16).ok()?;
    let extension = line[digits..].trim_ascii();
    let readable = extension.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    (readable && (extension.is_empty() || extension[0] == b';')).then_some(size)
}

/// Takes what follows the last chunk out of `input`.
fn trailers(input: &mut BytesMut) -> Result<Option<HeaderMap>, Unreadable> {
    if input.starts_with(b"\r\n") {
        drop(input.split_to(2));
        return Ok(Some(HeaderMap::new()));
    }
    let mut lines = [httparse::EMPTY_HEADER; MAX_TRAILER_LINES];
    let (length, map) = match httparse::parse_headers(input, &mut lines) {
        Ok(httparse::Status::Complete((length, lines))) if length <= MAX_TRAILERS => {
            let mut map = HeaderMap::with_capacity(lines.len());
            for line in lines {
                let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| Unreadable::Chunk)?;
                let value = HeaderValue::from_bytes(line.value).map_err(|_| Unreadable::Chunk)?;
                if headers::may_trail(&name) {
                    map.append(name, value);
                }
            }
            (length, map)
        }
        Ok(httparse::Status::Partial) if input.len() <= MAX_TRAILERS => return Ok(None),
        _ => return Err(Unreadable::Chunk),
    };
    drop(input.split_to(length));
    Ok(Some(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads chunks that come in pieces of `step` bytes.
    fn read(text: &[u8], step: usize) -> Result<(Vec<u8>, Option<HeaderMap>, bool), Unreadable> {
        let (mut input, mut chunks) = (BytesMut::new(), Chunks::new());
        let (mut body, mut trailers) = (Vec::new(), None);
        for piece in text.chunks(step) {
            input.extend_from_slice(piece);
            while !chunks.ended() {
                match chunks.next(&mut input)? {
                    Some(Chunk::Data(data)) => body.extend_from_slice(&data),
                    Some(Chunk::Trailers(map)) => trailers = Some(*map),
                    Some(Chunk::End) => {}
                    None => break,
                }
            }
        }
        Ok((body, trailers, chunks.ended()))
    }

    #[test]
    fn chunks_are_the_same_in_whatever_pieces_they_come() {
        let text =
            b"5;x=\"y\"\r\nhello\r\n00A \t; z\r\n, world...\r\n0\r\nX-Sum: 1\r\nContent-Length: 3\r\n\r\n";
        for step in 1..text.len() {
            let (body, trailers, ended) = read(text, step).unwrap();
            let trailers = trailers.unwrap();
            assert_eq!((&body[..], ended, trailers.len()), (&b"hello, world..."[..], true, 1), "{step}");
            assert_eq!(trailers["x-sum"], "1");
        }
        assert_eq!(read(b"0\r\n\r\n", 1), Ok((Vec::new(), None, true)));
        assert_eq!(read(b"2\r\nhi\r\n", 3), Ok((b"hi".to_vec(), None, false)));
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\na\r\n",
            " 1\r\na\r\n",
            "1 2\r\na\r\n",
            "1\na\n",
            "1;\x01\r\na\r\n",
            "2\r\nhix\r\n",
            "2\r\nhi\n",
            "2\r\nhi\rx",
            "10000000000000000\r\n",
            "0\r\nbad header\r\n\r\n",
            "0\r\nx: 1\r\n y\r\n\r\n",
        ] {
            for step in [1, text.len()] {
                assert_eq!(read(text.as_bytes(), step), Err(Unreadable::Chunk), "{text:?}");
            }
        }
        let endless = format!("1;{}", "x".repeat(MAX_SIZE_LINE));
        assert_eq!(read(endless.as_bytes(), 100), Err(Unreadable::Chunk));
        let endless = format!("0\r\nx: {}", "x".repeat(MAX_TRAILERS));
        assert_eq!(read(endless.as_bytes(), 100), Err(Unreadable::Chunk));
    }

    #[test]
    fn numbers_are_digits() {
        assert_eq!(decimal(b"0012"), Some(12));
        for text in ["", "+1", "-1", "1 2", "0x1", "18446744073709551616"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }
}
