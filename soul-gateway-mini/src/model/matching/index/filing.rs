//! Under what an entry is filed: places where every request comes by that the entry could take.

use http::HeaderName;

use super::{super::view::RequestView, key::Key};
use crate::slices;

/// Segments of a path that lead to a place; what is behind them is for the entry itself to judge.
const MAX_SEGMENTS: usize = 16;

/// Wildcards among them. A request goes two ways at each, so this bounds the ways of one request.
const MAX_WILDCARDS: usize = 3;

/// Ways to file an entry, of which one is enough.
///
/// Each is a list of places such that the entry's conditions are false, and not an error, for every request that
/// comes by none of them. None at all is an entry that has to be tried for every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filings(Box<[Filing]>);

impl Drop for Filings {
    fn drop(&mut self) {
        slices::step();
    }
}

/// The places of one way to file an entry; without any, no request can match.
pub(crate) type Filing = Box<[Place]>;

impl Filings {
    /// Filings a list may have: each is a bit in the set of those used.
    const MAX: usize = 32;

    pub(crate) fn new(mut filings: Vec<Filing>) -> Self {
        filings.truncate(Self::MAX);
        Self(filings.into())
    }

    pub(super) fn all(&self) -> &[Filing] {
        &self.0
    }
}

/// Where a request comes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Its decoded path begins with these segments.
    Path(PathPlace),
    /// Something of it is equal to a text.
    Value(Sought, Key),
}

impl Place {
    pub(crate) fn value(sought: Sought, text: &str) -> Self {
        let key = sought.key().then(text);
        Self::Value(sought, key)
    }

    /// What tells it from other places.
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Path(path) if path.exact => path.end().exactly(),
            Self::Path(path) => path.end(),
            Self::Value(_, key) => *key,
        }
    }
}

/// The keys of a path's beginning, one a segment, each behind the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPlace {
    pub(super) start: Key,
    pub(super) chain: Box<[Link]>,
    /// Whether the path ends there.
    pub(super) exact: bool,
}

/// One step down a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) key: Key,
    pub(super) wild: bool,
}

impl PathPlace {
    pub(super) fn end(&self) -> Key {
        self.chain.last().map_or(self.start, |link| link.key)
    }
}

/// Gathers the segments of a path's beginning.
#[derive(Clone, Debug)]
pub(crate) struct PathPlaces {
    start: Key,
    chain: Vec<Link>,
    wildcards: usize,
    full: bool,
}

impl PathPlaces {
    pub(crate) fn new(text: &str) -> Self {
        Self { start: start(text), chain: Vec::new(), wildcards: 0, full: false }
    }

    /// The next segment: a text, or any.
    pub(crate) fn push(&mut self, segment: Option<&str>) {
        let too_wild = segment.is_none() && self.wildcards == MAX_WILDCARDS;
        self.full |= too_wild || self.chain.len() == MAX_SEGMENTS;
        if self.full {
            return;
        }
        self.wildcards += usize::from(segment.is_none());
        let last = self.chain.last().map_or(self.start, |link| link.key);
        let key = segment.map_or_else(|| last.any(), |text| last.then(text));
        self.chain.push(Link { key, wild: segment.is_none() });
    }

    /// Paths of exactly these segments.
    pub(crate) fn exact(&self) -> Place {
        self.place(!self.full)
    }

    /// Paths of these segments and any behind them.
    pub(crate) fn below(&self) -> Place {
        self.place(false)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    fn place(&self, exact: bool) -> Place {
        Place::Path(PathPlace { start: self.start, chain: self.chain.as_slice().into(), exact })
    }
}

/// Where the way down a path or a pattern starts.
pub(super) fn start(text: &str) -> Key {
    if text.starts_with('/') { Key::ABSOLUTE } else { Key::RELATIVE }
}

/// What of a request is compared with a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sought {
    Header(HeaderName),
    Query(Box<str>),
    Host,
    Ip,
    Method,
    /// The last segment of the path.
    LastSegment,
}

impl Sought {
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Header(name) => Self::header_key(name.as_str()),
            Self::Query(name) => Self::query_key(name),
            Self::Host => Key::of(2, ""),
            Self::Ip => Key::of(3, ""),
            Self::Method => Key::of(4, ""),
            Self::LastSegment => Key::of(5, ""),
        }
    }

    pub(super) fn header_key(name: &str) -> Key {
        Key::of(0, name)
    }

    pub(super) fn query_key(name: &str) -> Key {
        Key::of(1, name)
    }

    /// The key of the request's own value; `None` when it has none. `base` is [`key`](Self::key).
    pub(super) fn value_key(&self, base: Key, view: &RequestView<'_>) -> Option<Key> {
        match self {
            Self::Header(name) => view.header(name).map(|text| base.then(&*text)),
            Self::Query(name) => view.query(name).map(|text| base.then(&*text)),
            Self::Host => Some(base.then(view.host())),
            Self::Ip => view.ip().map(|text| base.then(text)),
            Self::Method => Some(base.then(view.method())),
            Self::LastSegment => segments(view.path()).next_back().map(|text| base.then(text)),
        }
    }
}

/// The segments of a path; empty ones do not count. As bytes, which are quicker to part than text is.
pub(super) fn segments(path: &str) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    path.as_bytes().split(|byte| *byte == b'/').filter(|segment| !segment.is_empty())
}
