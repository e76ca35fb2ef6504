//! Path patterns in Ant style, as Spring's `AntPathMatcher` of the 5.2 line reads them.
//!
//! A pattern is compiled once; a match allocates nothing and takes time bounded by the number of pattern
//! segments times the length of the path. Matching is case-sensitive and on the decoded path.

mod paths;
mod segment;

use super::{
    error::MatchError,
    index::{Filing, PathPlaces, Place, Sought},
};
use segment::Segment;

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
    segments: Box<[Segment]>,
    /// From here on every segment is `**`; the length when the last one is not.
    open_from: usize,
    shape: Shape,
}

/// Patterns for which one comparison of bytes proves a match; what it does not prove, the walk decides.
#[derive(Debug)]
enum Shape {
    /// Only literal segments: a path that is the pattern.
    Literal,
    /// Literal segments and then `/**`: a path below the text before it, whose length this is.
    Subtree(usize),
    /// A segment that cannot be tried; see [`is_potential`].
    Broken,
    /// Anything else.
    General,
}

impl AntPattern {
    /// Compiles a pattern; a segment with an unusable regular expression fails only when it is tried.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let segments: Box<[Segment]> = tokens(text).map(Segment::compile).collect();
        let open = segments.iter().rev().take_while(|segment| segment.is_any_depth()).count();
        let open_from = segments.len() - open;
        let shape = Shape::of(text, &segments, open_from);
        Self { text: text.into(), segments, open_from, shape }
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The segments that fail when they are tried, in order.
    pub fn problems(&self) -> impl Iterator<Item = &MatchError> {
        self.segments.iter().filter_map(Segment::problem)
    }

    /// How many segments need a regular expression engine.
    fn regexes(&self) -> usize {
        self.segments.iter().filter(|segment| segment.is_regex()).count()
    }

    /// Whether the pattern matches the whole decoded path.
    ///
    /// # Errors
    /// When a segment had to be tried whose regular expression is not usable.
    pub fn matches(&self, path: &str) -> Result<bool, &MatchError> {
        if self.text.starts_with('/') != path.starts_with('/') {
            return Ok(false);
        }
        match self.shape {
            Shape::Literal if path == &*self.text => Ok(true),
            Shape::Subtree(prefix) if is_below(path, &self.text[..prefix]) => Ok(true),
            Shape::Broken if !is_potential(&self.text, path) => Ok(false),
            _ => self.walk(path),
        }
    }

    /// Ways to find every path it matches, the better one first: by the segments before the first `**`, and by
    /// the one behind the last.
    fn filings(&self) -> Vec<Filing> {
        let mut places = PathPlaces::new(&self.text);
        let closed = self.segments.iter().take_while(|segment| !segment.is_any_depth());
        let mut parent = places.clone();
        for segment in closed.clone() {
            parent = places.clone();
            places.push(segment.literal());
        }
        if closed.count() == self.segments.len() {
            let mut filing = vec![places.exact()];
            if self.segments.last().is_some_and(Segment::is_star) {
                // It accepts the slash at the end of the path above.
                filing.push(parent.exact());
            }
            return vec![filing.into()];
        }
        let mut filings = vec![[places.below()].into()];
        if let Some(last) = self.segments.last().and_then(Segment::literal) {
            filings.push([Place::value(Sought::LastSegment, last)].into());
            if places.is_empty() {
                filings.reverse();
            }
        }
        filings
    }

    /// The general algorithm, segment by segment: from the left to the first `**`, from the right to the
    /// last, and then each group between two of them at its first place.
    fn walk(&self, path: &str) -> Result<bool, &MatchError> {
        let mut rest = tokens(path);
        let mut left = 0;
        loop {
            let Some(segment) = self.segments.get(left) else {
                return Ok(rest.next().is_none() && self.text.ends_with('/') == path.ends_with('/'));
            };
            if segment.is_any_depth() {
                break;
            }
            let Some(part) = rest.next() else {
                let is_last = left + 1 == self.segments.len();
                return Ok(is_last && segment.is_star() && path.ends_with('/'));
            };
            if !segment.matches(part)? {
                return Ok(false);
            }
            left += 1;
        }
        if left >= self.open_from {
            return Ok(true);
        }
        let mut right = self.segments.len();
        while let Some(segment) = self.segments[left..right].last().filter(|last| !last.is_any_depth()) {
            match rest.next_back() {
                Some(part) if segment.matches(part)? => right -= 1,
                _ => return Ok(false),
            }
        }
        groups_in_order(&self.segments[left..right], rest)
    }
}

impl Shape {
    fn of(text: &str, segments: &[Segment], open_from: usize) -> Self {
        let literal = segments.iter().take_while(|segment| segment.is_literal()).count();
        if segments.iter().any(|segment| segment.problem().is_some()) {
            Self::Broken
        } else if literal == segments.len() {
            Self::Literal
        } else if let Some(prefix) = text.strip_suffix("/**")
            && literal == open_from
        {
            Self::Subtree(prefix.len())
        } else {
            Self::General
        }
    }
}

/// The segments of a pattern or path; empty ones do not count.
fn tokens(text: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    text.split('/').filter(|segment| !segment.is_empty())
}

/// Whether the path is the prefix or goes on behind it at a segment border.
fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds each group of segments between two `**` at its first place, one behind the other.
///
/// The first place is enough: a later one leaves less of the path to the groups behind it.
fn groups_in_order<'s, 'p>(
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
            if starts_with_group(group, &mut probe)? {
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
    group: &'s [Segment],
    parts: &mut impl Iterator<Item = &'p str>,
) -> Result<bool, &'s MatchError> {
    for segment in group {
        match parts.next() {
            Some(part) if segment.matches(part)? => {}
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
