//! How a row is packed: every field behind the one before, numbers in as few bytes as they need, a text that is a
//! well-known word, or was in the row before, in one, and so the well-known pieces of a handle.

use std::sync::Arc;

/// Texts of nearly every row. What is packed never leaves the process, so this list may change.
const WORDS: [&str; 16] = [
    "",
    "/",
    "divide",
    "context_path",
    "uri",
    "match",
    "=",
    "like",
    "regEx",
    "header",
    "query",
    "host",
    "ip",
    "post",
    "req_method",
    "http",
];

/// What handles are made of besides names and numbers, the longer of two that begin alike first. Each begins with one of
/// [`PIECE_STARTS`].
pub(super) const PIECES: [&str; 24] = [
    // Of rules that nobody changed, or changed in the way alone.
    r#"{"loadBalance":"random","retry":0,"timeout":3000}"#,
    r#"{"loadBalance":"roundRobin","retry":0,"timeout":3000}"#,
    r#"{"loadBalance":"hash","retry":0,"timeout":3000}"#,
    // Of selectors as they are registered, and parts of all others.
    r#"[{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":""#,
    r#"},{"upstreamHost":"localhost","protocol":"http://","upstreamUrl":""#,
    r#"","protocol":"http://","upstreamUrl":""#,
    r#"","weight":50,"status":true,"timestamp":0,"warmup":"#,
    r#","status":true,"timestamp":"#,
    r#"[{"upstreamHost":""#,
    r#"},{"upstreamHost":""#,
    r#""upstreamHost":""#,
    r#""protocol":""#,
    r#""upstreamUrl":""#,
    r#""weight":"#,
    r#""status":"#,
    r#""timestamp":"#,
    r#""warmup":"#,
    r#""gray":false"#,
    r#"{"loadBalance":""#,
    r#""loadBalance":""#,
    r#"","retry":0,"timeout":3000"#,
    r#""retry":"#,
    r#""timeout":"#,
    r#"{"contextPath":""#,
];

const PIECE_STARTS: [char; 5] = ['[', '{', '}', '"', ','];

/// Texts of a row that a later one may refer to: its first.
const REMEMBERED: usize = 8;

// What stands in front of a text: nothing, a word, a text before, or the length.
const ABSENT: u64 = 0;
const WORD: u64 = 1;
const BEFORE: u64 = WORD + WORDS.len() as u64;
const LENGTH: u64 = BEFORE + REMEMBERED as u64;

/// A field, or a structure of fields.
pub(super) trait Pack {
    fn pack(&self, packer: &mut Packer);
    fn unpack(from: &mut Unpacker<'_>) -> Self;
}

/// Puts fields together.
#[derive(Default)]
pub(super) struct Packer {
    packed: Vec<u8>,
    /// Where the first texts are.
    texts: Vec<(usize, usize)>,
}

impl Packer {
    pub(super) fn pack(data: &impl Pack) -> Arc<[u8]> {
        let mut packer = Self::default();
        data.pack(&mut packer);
        packer.packed.into()
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.packed.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.packed.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        if let Some(word) = WORDS.iter().position(|word| *word == text) {
            return self.number(WORD + word as u64);
        }
        let before = |(start, end): &(usize, usize)| self.packed.get(*start..*end) == Some(text.as_bytes());
        if let Some(before) = self.texts.iter().position(before) {
            return self.number(BEFORE + before as u64);
        }
        self.number(LENGTH + text.len() as u64);
        let start = self.packed.len();
        self.packed.extend_from_slice(text.as_bytes());
        if self.texts.len() < REMEMBERED {
            self.texts.push((start, self.packed.len()));
        }
    }
}

impl Packer {
    /// A handle: the number of its parts, one more than there are, and then each: the number of a piece, or how long it is and its
    /// text.
    pub(super) fn handle(&mut self, handle: Option<&str>) {
        let Some(handle) = handle else { return self.number(ABSENT) };
        let parts = || Parts { rest: handle };
        self.number(1 + parts().count() as u64);
        for part in parts() {
            match part {
                Part::Piece(piece) => self.number(piece as u64),
                Part::Text(text) => {
                    self.number((PIECES.len() + text.len()) as u64);
                    self.packed.extend_from_slice(text.as_bytes());
                }
            }
        }
    }
}

/// The parts of a handle.
struct Parts<'t> {
    rest: &'t str,
}

enum Part<'t> {
    /// Its place among [`PIECES`].
    Piece(usize),
    Text(&'t str),
}

/// The well-known piece that a text begins with.
fn piece(text: &str) -> Option<usize> {
    text.starts_with(PIECE_STARTS).then(|| PIECES.iter().position(|piece| text.starts_with(piece)))?
}

impl<'t> Iterator for Parts<'t> {
    type Item = Part<'t>;

    fn next(&mut self) -> Option<Part<'t>> {
        if let Some(found) = piece(self.rest) {
            self.rest = &self.rest[PIECES[found].len()..];
            return Some(Part::Piece(found));
        }
        let mut starts = self.rest.match_indices(PIECE_STARTS).map(|(at, _)| at);
        let end = starts.find(|at| piece(&self.rest[*at..]).is_some()).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!text.is_empty()).then_some(Part::Text(text))
    }
}

/// Takes fields apart again, in the same order.
///
/// It is only ever given what a [`Packer`] made; of anything else it would make absent fields.
pub(super) struct Unpacker<'r> {
    rest: &'r [u8],
    texts: [&'r str; REMEMBERED],
    known: usize,
}

impl<'r> Unpacker<'r> {
    pub(super) fn new(packed: &'r [u8]) -> Self {
        Self { rest: packed, texts: [""; REMEMBERED], known: 0 }
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        let mut shift = 0;
        while let Some((byte, rest)) = self.rest.split_first() {
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 || shift > 56 {
                break;
            }
            shift += 7;
        }
        number
    }

    pub(super) fn handle(&mut self) -> Option<String> {
        let parts = self.number().checked_sub(1)?;
        let mut handle = String::new();
        for _ in 0..parts {
            let number = self.number() as usize;
            match PIECES.get(number) {
                Some(piece) => handle.push_str(piece),
                None => {
                    let (text, rest) = self.rest.split_at_checked(number - PIECES.len())?;
                    self.rest = rest;
                    handle.push_str(str::from_utf8(text).ok()?);
                }
            }
        }
        Some(handle)
    }

    pub(super) fn text(&mut self) -> Option<&'r str> {
        match self.number() {
            ABSENT => None,
            word @ WORD..BEFORE => WORDS.get((word - WORD) as usize).copied(),
            before @ BEFORE..LENGTH => self.texts.get((before - BEFORE) as usize).copied(),
            length => {
                let (text, rest) = self.rest.split_at_checked((length - LENGTH) as usize)?;
                self.rest = rest;
                let text = str::from_utf8(text).ok()?;
                if let Some(place) = self.texts.get_mut(self.known) {
                    *place = text;
                    self.known += 1;
                }
                Some(text)
            }
        }
    }
}

impl Pack for Option<String> {
    fn pack(&self, packer: &mut Packer) {
        match self {
            None => packer.number(ABSENT),
            Some(text) => packer.text(text),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.text().map(str::to_owned)
    }
}

impl Pack for Option<bool> {
    fn pack(&self, packer: &mut Packer) {
        packer.number(self.map_or(0, |flag| 1 + u64::from(flag)));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Some(from.number().checked_sub(1)? > 0)
    }
}

/// Small numbers of either sign are short: 0, -1, 1, -2, 2 and so on.
impl Pack for Option<i32> {
    fn pack(&self, packer: &mut Packer) {
        let folded = |number: i32| u64::from((number << 1 ^ number >> (i32::BITS - 1)).cast_unsigned());
        packer.number(self.map_or(0, |number| 1 + folded(number)));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let folded = from.number().checked_sub(1)? as u32;
        Some((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }
}

impl<T: Pack> Pack for Option<Vec<Option<T>>> {
    fn pack(&self, packer: &mut Packer) {
        packer.number(self.as_ref().map_or(0, |list| 1 + list.len() as u64));
        for element in self.iter().flatten() {
            element.is_some().then_some(true).pack(packer);
            element.iter().for_each(|element| element.pack(packer));
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let length = from.number().checked_sub(1)?;
        Some((0..length).map(|_| Option::<bool>::unpack(from).map(|_| T::unpack(from))).collect())
    }
}
