//! One segment of a pattern.

use std::sync::LazyLock;

use regex::Regex;

use super::super::{
    error::MatchError,
    java_regex::{JavaRegex, quote},
    text::{LINE_BREAKS, has_line_break},
};

/// Spring's own expression for the wildcards of a segment. Our engine finds what Java's finds: the
/// leftmost, by the first alternative that fits.
#[expect(clippy::unwrap_used, reason = "a constant pattern; every test compiles it")]
static WILDCARDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\?|\*|\{(?:\{[^/]+?\}|[^/{}]|\\[{}])+?\}").unwrap());

/// Any number of path segments.
pub(super) const ANY_DEPTH: &str = "**";

/// A compiled segment, by what it takes to match it. Small, since a large configuration holds very many.
#[derive(Debug)]
pub(super) enum Segment {
    /// `**`: any number of path segments.
    AnyDepth,
    /// No wildcard: where it is in the pattern's text.
    Literal { start: u32, end: u32 },
    /// Nothing but `*`, `{name}` or several of them.
    Any {
        /// Exactly `*`, which also accepts the slash at the end of a path.
        star: bool,
    },
    /// Text with wildcards.
    Glob(Box<Glob>),
    /// A variable with a regular expression.
    Regex(Box<JavaRegex>),
    /// A variable whose regular expression cannot be used.
    Invalid(Box<MatchError>),
}

impl Segment {
    /// Whether a text between two slashes surely has no wildcard.
    pub(super) fn is_plain(text: &str) -> bool {
        !text.contains(['*', '?', '{'])
    }

    /// Whether a text between two slashes is `*` or `{name}`.
    pub(super) fn is_any(text: &str) -> bool {
        text == "*" || is_variable(text)
    }

    /// Compiles the text between two slashes, which begins at `start` of the pattern.
    pub(super) fn compile(text: &str, start: usize) -> Self {
        if text == ANY_DEPTH {
            return Self::AnyDepth;
        }
        // Most segments; the expression for wildcards costs far more than this look.
        if Self::is_plain(text) {
            return Self::literal_at(start, text);
        }
        if Self::is_any(text) {
            return Self::Any { star: text == "*" };
        }
        let pieces = pieces(text);
        let has_pattern = pieces.iter().any(|piece| matches!(piece, Piece::Pattern(_)));
        if let Some(glob) = Glob::new(&pieces).filter(|_| !has_pattern) {
            return Self::of_glob(glob, text, start);
        }
        match JavaRegex::new(&java_text(&pieces)) {
            Ok(regex) => Self::Regex(Box::new(regex)),
            Err(reason) => Self::Invalid(Box::new(reason.into())),
        }
    }

    fn of_glob(mut glob: Glob, text: &str, start: usize) -> Self {
        match &glob.rest {
            None if glob.first.iter().all(|unit| matches!(unit, Unit::Text(_))) => {
                Self::literal_at(start, text)
            }
            Some((middle, last)) if glob.first.is_empty() && middle.is_empty() && last.is_empty() => {
                Self::Any { star: text == "*" }
            }
            _ => {
                glob.shrink();
                Self::Glob(Box::new(glob))
            }
        }
    }

    fn literal_at(start: usize, text: &str) -> Self {
        // The numbers fit: a list of patterns has a limit of length.
        Self::Literal { start: start as u32, end: (start + text.len()) as u32 }
    }

    /// Whether the segment of the pattern `text` matches one non-empty segment of a path.
    ///
    /// # Errors
    /// When its regular expression cannot be used.
    pub(super) fn matches(&self, text: &str, part: &str) -> Result<bool, &MatchError> {
        match self {
            Self::AnyDepth => Ok(true),
            Self::Literal { start, end } => Ok(text.get(*start as usize..*end as usize) == Some(part)),
            Self::Any { .. } => Ok(!has_line_break(part)),
            Self::Glob(glob) => Ok(glob.matches(part)),
            Self::Regex(regex) => Ok(regex.is_match(part)),
            Self::Invalid(reason) => Err(reason),
        }
    }

    pub(super) fn is_any_depth(&self) -> bool {
        matches!(self, Self::AnyDepth)
    }

    pub(super) fn is_star(&self) -> bool {
        matches!(self, Self::Any { star: true })
    }

    pub(super) fn is_literal(&self) -> bool {
        matches!(self, Self::Literal { .. })
    }

    pub(super) fn is_regex(&self) -> bool {
        matches!(self, Self::Regex(_))
    }

    pub(super) fn problem(&self) -> Option<&MatchError> {
        match self {
            Self::Invalid(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Whether it is surely a variable without an expression: `{id}`. Nearly all wildcards are such or `*`, and while no
/// other is met, neither the expression for them nor the engine behind it takes time or memory.
fn is_variable(text: &str) -> bool {
    let name = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(['{', '}', ':', '\\']))
}

/// What a segment is written of.
#[derive(Debug)]
enum Piece<'t> {
    /// Text that stands for itself, never empty.
    Text(&'t str),
    /// `?`
    One,
    /// `*` or `{name}`
    Run,
    /// The expression of `{name:expression}`
    Pattern(&'t str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut end = 0;
    for found in WILDCARDS.find_iter(text) {
        if found.start() > end {
            pieces.push(Piece::Text(&text[end..found.start()]));
        }
        pieces.push(match found.as_str() {
            "?" => Piece::One,
            "*" => Piece::Run,
            variable => variable[1..variable.len() - 1]
                .split_once(':')
                .map_or(Piece::Run, |(_, pattern)| Piece::Pattern(pattern)),
        });
        end = found.end();
    }
    if end < text.len() {
        pieces.push(Piece::Text(&text[end..]));
    }
    pieces
}

/// The regular expression that Spring makes of a segment. It is put together as text, so that an expression
/// which is whole only together with its surroundings means here what it means there.
fn java_text(pieces: &[Piece<'_>]) -> String {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => quote(text),
            Piece::One => ".".to_owned(),
            Piece::Run => "(.*)".to_owned(),
            Piece::Pattern(pattern) => format!("({pattern})"),
        })
        .collect()
}

/// [`java_text`] of a segment as written.
#[cfg(test)]
pub(super) fn java_text_of(text: &str) -> String {
    java_text(&pieces(text))
}

/// Text with `?` and runs: a beginning, and behind a run texts in order and an end.
#[derive(Debug)]
pub(super) struct Glob {
    first: Vec<Unit>,
    /// Absent when there is no run: then the beginning is all.
    rest: Option<(Vec<Box<str>>, Vec<Unit>)>,
}

#[derive(Debug)]
enum Unit {
    Text(Box<str>),
    One,
}

impl Glob {
    /// `None` for a `?` between two runs, which would need more than one try a place.
    fn new(pieces: &[Piece<'_>]) -> Option<Self> {
        let mut parts = pieces.split(|piece| matches!(piece, Piece::Run)).map(units);
        let first = parts.next().unwrap_or_default();
        let mut parts: Vec<Vec<Unit>> = parts.collect();
        let Some(last) = parts.pop() else { return Some(Self { first, rest: None }) };
        let mut middle = Vec::new();
        for part in parts {
            for unit in part {
                match unit {
                    Unit::Text(text) => middle.push(text),
                    Unit::One => return None,
                }
            }
        }
        Some(Self { first, rest: Some((middle, last)) })
    }

    fn shrink(&mut self) {
        self.first.shrink_to_fit();
        if let Some((middle, last)) = &mut self.rest {
            middle.shrink_to_fit();
            last.shrink_to_fit();
        }
    }

    /// Whether the whole of `part` fits.
    ///
    /// Each text is taken at its first place. That is also right for line breaks, which no wildcard
    /// matches: the texts hold exactly as many as `part`, in order, so there is one way to place them.
    fn matches(&self, part: &str) -> bool {
        let Some(mut open) = strip_units(&self.first, part) else { return false };
        let Some((middle, last)) = &self.rest else { return open.is_empty() };
        match strip_units_back(last, open) {
            Some(rest) => open = rest,
            None => return false,
        }
        for text in middle {
            match open.split_once(&**text) {
                Some((run, rest)) if !has_line_break(run) => open = rest,
                _ => return false,
            }
        }
        !has_line_break(open)
    }
}

fn units(pieces: &[Piece<'_>]) -> Vec<Unit> {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => Unit::Text((*text).into()),
            _ => Unit::One,
        })
        .collect()
}

fn strip_units<'p>(units: &[Unit], mut part: &'p str) -> Option<&'p str> {
    for unit in units {
        part = match unit {
            Unit::Text(text) => part.strip_prefix(&**text)?,
            Unit::One => part.strip_prefix(is_no_line_break)?,
        };
    }
    Some(part)
}

fn strip_units_back<'p>(units: &[Unit], mut part: &'p str) -> Option<&'p str> {
    for unit in units.iter().rev() {
        part = match unit {
            Unit::Text(text) => part.strip_suffix(&**text)?,
            Unit::One => part.strip_suffix(is_no_line_break)?,
        };
    }
    Some(part)
}

fn is_no_line_break(c: char) -> bool {
    !LINE_BREAKS.contains(&c)
}
