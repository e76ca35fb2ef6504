//! Java's regular expressions (`java.util.regex`, Java 17) on an engine whose time is linear in the input.
//!
//! An expression is parsed as Java parses it, each class of characters is computed as a set, and the result
//! is handed to the `regex` crate in its own syntax. So `\d`, `\w` and `\s` are ASCII, `(?i)` folds ASCII
//! only, `.` stops at Java's five line breaks, `[a&&[^b]]` intersects, and `{a}` is an error.
//!
//! | refused as | what |
//! |---|---|
//! | [`Syntax`](RegexErrorKind::Syntax) | what Java refuses as well |
//! | [`Unsupported`](RegexErrorKind::Unsupported) | look-around, back-references, possessive quantifiers, atomic groups, `\X`, `\N{…}`, `\b{g}`, `(?c)`; `$`, `\Z` and `(?m)^` where more than the end or the beginning would have to be looked at |
//! | [`TooLarge`](RegexErrorKind::TooLarge) | more than 4,096 characters, 100 levels of nesting, or 1 MiB compiled |
//!
//! Known to differ: Unicode tables are the engine's (newer than Java 17's); `\b` beside a combining mark that
//! stands alone; `\R{2}` may take CR LF for two; `[a\p{L}&&]`, on which Java fails only while matching, is an
//! error at once.

mod ast;
mod blocks;
mod class;
mod emit;
mod error;
mod escape;
mod flags;
mod fold;
mod group;
mod parse;
mod prefix;
mod property;
mod quoting;
mod scan;
mod set;
mod split;

use regex::{Regex, RegexBuilder};

use emit::{Use, emit};

pub use error::{RegexError, RegexErrorKind};
pub(crate) use quoting::quote;
pub(crate) use split::Splitter;

/// Characters an expression may have.
const MAX_LENGTH: usize = 4096;

/// Bytes the compiled expression may take, and bytes of its lazily built automaton.
const MAX_COMPILED: usize = 1 << 20;

/// A compiled expression that matches whole texts, as Java's `Pattern.matches`.
#[derive(Debug)]
pub struct JavaRegex(Regex);

impl JavaRegex {
    /// Compiles an expression.
    ///
    /// # Errors
    /// When Java refuses it too, when it cannot run in linear time, or when it is too large; the error says
    /// which, where and what instead.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        compile(pattern, Use::Whole).map(Self)
    }

    /// Whether it matches the whole text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The whole segments that begin every path it matches, if something is known of the beginning: `/a/` of
    /// `/a/b\d+`, and the empty text for one that does not begin with a slash.
    pub(super) fn first_segments(&self) -> Option<String> {
        let beginning = prefix::of(self.0.as_str())?;
        let end = beginning.rfind('/').map_or(0, |slash| slash + 1);
        Some(beginning[..end].to_owned())
    }
}

fn compile(pattern: &str, purpose: Use) -> Result<Regex, RegexError> {
    if pattern.chars().count() > MAX_LENGTH {
        return Err(RegexError::too_large(pattern));
    }
    let tree = parse::parse(pattern)?;
    let text = emit(pattern, &tree, purpose)?;
    RegexBuilder::new(&text)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .nest_limit(u32::MAX)
        .build()
        .map_err(|_| RegexError::too_large(pattern))
}

#[cfg(test)]
mod tests;
