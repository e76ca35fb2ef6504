//! The place in an expression.

use super::{
    super::text::LINE_BREAKS,
    error::{RegexErrorKind, Trouble},
    flags::Flags,
    quoting::without_quotes,
};

/// What parsing gives.
pub(super) type Parsed<T> = Result<T, Trouble>;

/// A cursor over the characters of an expression, after `\Q…\E` is rewritten.
#[derive(Debug)]
pub(super) struct Scanner {
    chars: Vec<(char, usize)>,
    at: usize,
    /// The flags in force here.
    pub(super) flags: Flags,
}

impl Scanner {
    pub(super) fn new(pattern: &str) -> Self {
        Self { chars: without_quotes(pattern), at: 0, flags: Flags::default() }
    }

    /// The place, to go [back](Self::back) to.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    pub(super) fn back(&mut self, place: usize) {
        self.at = place;
    }

    /// The next character as it stands.
    pub(super) fn raw(&self) -> Option<char> {
        self.raw_at(0)
    }

    /// The character `offset` places on, as it stands.
    pub(super) fn raw_at(&self, offset: usize) -> Option<char> {
        self.chars.get(self.at + offset).map(|(c, _)| *c)
    }

    /// Takes the next character as it stands.
    pub(super) fn take_raw(&mut self) -> Option<char> {
        let c = self.raw()?;
        self.at += 1;
        Some(c)
    }

    /// The next character that counts: with flag `x`, what is behind white space and comments, also inside a
    /// class.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.flags.comments {
            match self.raw()? {
                '\t'..='\r' | ' ' => self.at += 1,
                '#' => self.skip_comment(),
                _ => break,
            }
        }
        self.raw()
    }

    /// Takes the next character that counts.
    pub(super) fn take(&mut self) -> Option<char> {
        self.peek()?;
        self.take_raw()
    }

    /// Takes the next character that counts if it is `c`.
    pub(super) fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    /// Goes on to the line break, which is no part of the comment: those that are not ASCII count.
    fn skip_comment(&mut self) {
        let unix = self.flags.unix_lines;
        let ends = |c| c == '\n' || !unix && LINE_BREAKS.contains(&c);
        while self.raw().is_some_and(|c| !ends(c)) {
            self.at += 1;
        }
    }

    /// Where the next character stands in the expression as written.
    pub(super) fn written(&self) -> usize {
        let end = self.chars.last().map_or(0, |(_, at)| at + 1);
        self.chars.get(self.at).map_or(end, |(_, at)| *at)
    }

    /// Java's refusal, here.
    pub(super) fn syntax<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(Trouble { kind: RegexErrorKind::Syntax, at: self.written(), what: what.into() })
    }
}
