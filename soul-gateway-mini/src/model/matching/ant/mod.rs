//! Path patterns in Ant style, as Spring's `AntPathMatcher` of the 5.2 line reads them.
//!
//! A pattern is compiled once; a match allocates nothing and takes time bounded by the number of pattern
//! segments times the length of the path. Matching is case-sensitive and on the decoded path.

mod paths;
mod segment;

use super::{
    error::MatchError,
    index::{Filing, PathPlaces, Place, Sought},
    text::has_line_break,
};
use segment::{ANY_DEPTH, Segment};

pub use paths::PathPatterns;

/// One compiled pattern.
///
/// | in the pattern | matches |
/// |---|---|
/// | `?` | one character of a segment |
/// | `*` | any run of characters inside a segment, also none |
/// | `{name}` | the same; the name has no meaning for matching |
/// | `{name:regex}` | what the Java regular expression matches |
/// | `**` as a whole segment | any number of segments, also none |
///
/// Empty segments vanish on both sides, so `/a//b` is `/a/b`. A slash at the end counts only where no `**`
/// took part: `/a` does not match `/a/`, `/a/**` matches `/a`, `/a/` and `/a/b`, and `/a/*` matches `/a/`
/// but not `/a`. Line breaks are matched by `**` alone.
///
/// # Source
/// Soul specification, section 4.6.
#[derive(Debug)]
pub struct AntPattern {
    text: Box<str>,
    shape: Shape,
}

/// What it takes to match. The first three hold nothing but the text: they are most patterns of a large configuration.
#[derive(Debug)]
enum Shape {
    /// Only literal segments: a path that is the pattern.
    Literal,
    /// Literal segments and then `/**`: a path below the text before it.
    Subtree,
    /// Literal segments, `*` and `{name}`.
    Wild,
    /// A segment that cannot be tried; see [`is_potential`].
    Broken(Box<[Segment]>),
    /// Anything else.
    General(Box<[Segment]>),
}

/// What a subtree ends with.
const BELOW: &str = "/**";

impl AntPattern {
    /// Compiles a pattern; a segment with an unusable regular expression fails only when it is tried.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), shape: Shape::of(text) }
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The segments that fail when they are tried, in order.
    pub fn problems(&self) -> impl Iterator<Item = &MatchError> {
        self.segments().iter().filter_map(Segment::problem)
    }

    /// How many segments need a regular expression engine.
    fn regexes(&self) -> usize {
        self.segments().iter().filter(|segment| segment.is_regex()).count()
    }

    /// What was compiled of it; nothing where the text says it all.
    fn segments(&self) -> &[Segment] {
        match &self.shape {
            Shape::Literal | Shape::Subtree | Shape::Wild => &[],
            Shape::Broken(segments) | Shape::General(segments) => segments,
        }
    }

    /// Whether the pattern matches the whole decoded path.
    ///
    /// # Errors
    /// When a segment had to be tried whose regular expression is not usable.
    pub fn matches(&self, path: &str) -> Result<bool, &MatchError> {
        if self.text.starts_with('/') != path.starts_with('/') {
            return Ok(false);
        }
        match &self.shape {
            // One comparison of bytes proves a match; empty segments are why it does not disprove one.
            Shape::Literal => Ok(path == &*self.text || self.is_same_path(path)),
            Shape::Subtree => {
                let prefix = self.text.strip_suffix(BELOW).unwrap_or_default();
                Ok(is_below(path, prefix) || starts_with_all(prefix, path).is_some())
            }
            Shape::Wild => Ok(self.is_like(path)),
            Shape::Broken(_) if !is_potential(&self.text, path) => Ok(false),
            Shape::Broken(segments) | Shape::General(segments) => self.walk(segments, path),
        }
    }

    /// The walk of literal segments.
    fn is_same_path(&self, path: &str) -> bool {
        starts_with_all(&self.text, path).is_some_and(|mut rest| rest.next().is_none())
            && self.text.ends_with('/') == path.ends_with('/')
    }

    /// The walk of literal segments and such that stand for any.
    fn is_like(&self, path: &str) -> bool {
        let (mut own, mut rest) = (tokens(&self.text), tokens(path));
        while let Some(token) = own.next() {
            let Some(part) = rest.next() else {
                return token == "*" && path.ends_with('/') && own.next().is_none();
            };
            let fits = if is_wild(token) { !has_line_break(part) } else { token == part };
            if !fits {
                return false;
            }
        }
        rest.next().is_none() && self.text.ends_with('/') == path.ends_with('/')
    }

    /// Ways to find every path it matches, the better one first: by the segments before the first `**`, and by
    /// the one behind the last.
    fn filings(&self) -> Vec<Filing> {
        let mut places = PathPlaces::new(&self.text);
        let closed = || tokens(&self.text).zip(self.literals()).take_while(|(text, _)| *text != ANY_DEPTH);
        let mut parent = places.clone();
        for (text, is_literal) in closed() {
            parent = places.clone();
            places.push(is_literal.then_some(text));
        }
        let Some(last) = tokens(&self.text).zip(self.literals()).last() else {
            return vec![[places.exact()].into()];
        };
        if closed().count() == tokens(&self.text).count() {
            let mut filing = vec![places.exact()];
            if last.0 == "*" {
                // It accepts the slash at the end of the path above.
                filing.push(parent.exact());
            }
            return vec![filing.into()];
        }
        let mut filings = vec![[places.below()].into()];
        if let (last, true) = last {
            filings.push([Place::value(Sought::LastSegment, last)].into());
            if places.is_empty() {
                filings.reverse();
            }
        }
        filings
    }

    /// Whether each segment is a text without wildcards.
    fn literals(&self) -> impl Iterator<Item = bool> {
        let compiled = self.segments();
        tokens(&self.text)
            .enumerate()
            .map(|(at, text)| compiled.get(at).map_or_else(|| !is_wild(text), Segment::is_literal))
    }

    /// The general algorithm, segment by segment: from the left to the first `**`, from the right to the
    /// last, and then each group between two of them at its first place.
    fn walk<'s>(&'s self, segments: &'s [Segment], path: &str) -> Result<bool, &'s MatchError> {
        let text = &*self.text;
        let mut rest = tokens(path);
        let mut left = 0;
        loop {
            let Some(segment) = segments.get(left) else {
                return Ok(rest.next().is_none() && text.ends_with('/') == path.ends_with('/'));
            };
            if segment.is_any_depth() {
                break;
            }
            let Some(part) = rest.next() else {
                let is_last = left + 1 == segments.len();
                return Ok(is_last && segment.is_star() && path.ends_with('/'));
            };
            if !segment.matches(text, part)? {
                return Ok(false);
            }
            left += 1;
        }
        let mut right = segments.len();
        if segments[left..].iter().all(Segment::is_any_depth) {
            return Ok(true);
        }
        while let Some(segment) = segments[left..right].last().filter(|last| !last.is_any_depth()) {
            match rest.next_back() {
                Some(part) if segment.matches(text, part)? => right -= 1,
                _ => return Ok(false),
            }
        }
        groups_in_order(text, &segments[left..right], rest)
    }
}

impl Shape {
    fn of(text: &str) -> Self {
        let literal = tokens(text).take_while(|token| Segment::is_plain(token)).count();
        match tokens(text).count() {
            all if all == literal => return Self::Literal,
            all if all == literal + 1 && text.ends_with(BELOW) => return Self::Subtree,
            _ if tokens(text).all(|token| Segment::is_plain(token) || Segment::is_any(token)) => {
                return Self::Wild;
            }
            _ => {}
        }
        let segments = compiled(text);
        if segments.iter().any(|segment| segment.problem().is_some()) {
            Self::Broken(segments)
        } else {
            Self::General(segments)
        }
    }
}

/// Every segment of a pattern, compiled.
fn compiled(text: &str) -> Box<[Segment]> {
    let mut end = 0;
    tokens(text)
        .map(|token| {
            // Tokens come in order and none is empty, so each is found where it is.
            let start = end + text[end..].find(token).unwrap_or_default();
            end = start + token.len();
            Segment::compile(token, start)
        })
        .collect()
}

/// The segments of a pattern or path; empty ones do not count.
fn tokens(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.split('/').filter(|segment| !segment.is_empty())
}

/// Whether a segment of a text that says it all is no literal.
fn is_wild(token: &str) -> bool {
    token.starts_with(['*', '{'])
}

/// What of the path is behind the segments of `literal`, if it begins with them.
fn starts_with_all<'p>(literal: &str, path: &'p str) -> Option<impl Iterator<Item = &'p str> + use<'p>> {
    let mut rest = tokens(path);
    tokens(literal).all(|token| rest.next() == Some(token)).then_some(rest)
}

/// Whether the path is the prefix or goes on behind it at a segment border.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds each group of segments between two `**` at its first place, one behind the other.
///
/// The first place is enough: a later one leaves less of the path to the groups behind it.
fn groups_in_order<'s, 'p>(
    text: &str,
    segments: &'s [Segment],
    mut rest: impl Iterator<Item = &'p str> + Clone,
) -> Result<bool, &'s MatchError> {
    let mut left = rest.clone().count();
    for group in segments.split(Segment::is_any_depth).filter(|group| !group.is_empty()) {
        loop {
            // Without this a segment would be tried that Java, which counts first, does not try.
            if left < group.len() {
                return Ok(false);
            }
            let mut probe = rest.clone();
            if starts_with_group(text, group, &mut probe)? {
                rest = probe;
                left -= group.len();
                break;
            }
            rest.next();
            left -= 1;
        }
    }
    Ok(true)
}

fn starts_with_group<'s, 'p>(
    text: &str,
    group: &'s [Segment],
    parts: &mut impl Iterator<Item = &'p str>,
) -> Result<bool, &'s MatchError> {
    for segment in group {
        match parts.next() {
            Some(part) if segment.matches(text, part)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Spring's quick look before the real match: whether the literal beginnings of the pattern's segments can
/// be found in the path.
///
/// It never refuses what would match, so it matters only for a pattern with an unusable segment: where it
/// says no, that segment is not tried and nothing fails. Java compares UTF-16 units, hence the vectors.
fn is_potential(pattern: &str, path: &str) -> bool {
    let path: Vec<u16> = path.encode_utf16().collect();
    let slash = u16::from(b'/');
    let mut at = 0;
    for segment in tokens(pattern) {
        at += path[at.min(path.len())..].iter().take_while(|unit| **unit == slash).count();
        let segment: Vec<u16> = segment.encode_utf16().collect();
        let skipped = skip_segment(&path, at, &segment);
        if skipped < segment.len() {
            return skipped > 0 || segment.first().is_some_and(|unit| is_wildcard(*unit));
        }
        at += skipped;
    }
    true
}

/// How many units of the segment are met in the path from `at` on; 0 when the path ends first.
fn skip_segment(path: &[u16], at: usize, segment: &[u16]) -> usize {
    let mut skipped = 0;
    for unit in segment {
        if is_wildcard(*unit) {
            return skipped;
        }
        match path.get(at + skipped) {
            None => return 0,
            Some(other) if other == unit => skipped += 1,
            Some(_) => {}
        }
    }
    skipped
}

fn is_wildcard(unit: u16) -> bool {
    [b'*', b'?', b'{'].map(u16::from).contains(&unit)
}

#[cfg(test)]
mod tests;
