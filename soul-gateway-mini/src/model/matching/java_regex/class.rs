//! Character classes in brackets.
//!
//! Java's rules, which differ from others': a `]` that comes first is a character; classes nest, and a
//! nested one is joined to what stands before it; `&&` intersects all on its left with all on its right;
//! POSIX's `[:alpha:]` is a nested class of six characters.

use super::{
    escape::Escaped,
    fold::folded,
    parse::Parser,
    scan::Parsed,
    set::{Set, negated, union},
};

/// What a class holds so far.
#[derive(Default)]
struct Parts {
    /// Everything but the single characters below U+0100.
    joined: Option<Set>,
    /// The single characters below U+0100. Java keeps them apart, and so joins them *again* to what an
    /// intersection left of them when more of them follow.
    singles: Option<Set>,
    /// Whether `singles` are still to be joined.
    pending: bool,
    /// What was joined last, unless a single character came after it. An intersection without a right side
    /// is one with this.
    last: Option<Set>,
}

impl Parts {
    fn join(&mut self, part: Set) {
        self.joined = Some(match self.joined.take() {
            Some(joined) => union(joined, &part),
            None => part.clone(),
        });
        self.last = Some(part);
    }

    fn add_single(&mut self, part: &Set) {
        self.singles = Some(union(self.singles.take().unwrap_or_else(Set::empty), part));
        self.pending = true;
        self.last = None;
    }

    fn is_empty(&self) -> bool {
        self.joined.is_none() && !self.pending
    }

    fn intersect(&mut self, right: Option<Set>) -> Result<(), &'static str> {
        if self.pending {
            let singles = self.singles.clone().unwrap_or_else(Set::empty);
            match self.joined.take() {
                None => {
                    self.joined = Some(singles.clone());
                    self.last = Some(singles);
                }
                Some(joined) => self.joined = Some(union(joined, &singles)),
            }
            self.pending = false;
        }
        if right.is_some() {
            self.last.clone_from(&right);
        }
        match (&mut self.joined, &self.last, right) {
            (Some(joined), Some(last), _) => joined.intersect(last),
            (None, _, Some(right)) => self.joined = Some(right),
            // Java accepts some of these and then fails while matching.
            _ => return Err("`&&` without a right side"),
        }
        Ok(())
    }

    fn all(self) -> Set {
        let joined = self.joined.unwrap_or_else(Set::empty);
        match self.singles.filter(|_| self.pending) {
            Some(singles) => union(joined, &singles),
            None => joined,
        }
    }
}

impl Parser {
    /// A class, from its `[` on.
    pub(super) fn class(&mut self) -> Parsed<Set> {
        self.scan.take();
        // With flag `x`, a blank between makes the `^` a character.
        let negate = self.scan.raw() == Some('^');
        if negate {
            self.scan.take_raw();
        }
        let set = self.deeper(Self::class_items)?;
        self.scan.take();
        Ok(if negate { negated(set) } else { set })
    }

    /// The items of a class up to its `]`, which is left.
    fn class_items(&mut self) -> Parsed<Set> {
        let mut parts = Parts::default();
        loop {
            match self.scan.peek() {
                Some('[') => {
                    let nested = self.class()?;
                    parts.join(nested);
                }
                Some('&') if self.eat_and() => {
                    let right = self.right_side()?;
                    if let Err(what) = parts.intersect(right) {
                        return self.scan.syntax(what);
                    }
                }
                Some(']') if !parts.is_empty() => return Ok(parts.all()),
                None => return self.scan.syntax("`[` without `]`"),
                Some(_) => self.class_item(&mut parts)?,
            }
        }
    }

    /// Takes `&&`.
    fn eat_and(&mut self) -> bool {
        let place = self.scan.place();
        let found = self.scan.eat('&') && self.scan.eat('&');
        if !found {
            self.scan.back(place);
        }
        found
    }

    /// What `&&` intersects with: nested classes and the rest of this one; `None` when nothing follows.
    fn right_side(&mut self) -> Parsed<Option<Set>> {
        let mut right: Option<Set> = None;
        while let Some(c) = self.scan.peek().filter(|c| !matches!(c, ']' | '&')) {
            let part = if c == '[' { self.class()? } else { self.deeper(Self::class_items)? };
            right = Some(match right {
                Some(right) => union(right, &part),
                None => part,
            });
        }
        Ok(right)
    }

    /// A character, a range, or an escape.
    fn class_item(&mut self, parts: &mut Parts) -> Parsed<()> {
        let low = match self.class_character(false)? {
            Escaped::One(code) => code,
            Escaped::Set(set) => {
                parts.join(set);
                return Ok(());
            }
            Escaped::Node(_) => return self.scan.syntax("an escape that cannot stand in a class"),
        };
        let flags = self.scan.flags;
        let is_range = self.scan.peek() == Some('-') && !matches!(self.scan.raw_at(1), Some('[' | ']'));
        if !is_range {
            let one = folded(flags, low, low);
            if low < 0x100 && !(flags.ignore_case && flags.unicode_case && folds_outside(&one)) {
                parts.add_single(&one);
            } else {
                parts.join(one);
            }
            return Ok(());
        }
        self.scan.take();
        match self.class_character(true)? {
            Escaped::One(high) if low <= high => {
                parts.join(folded(flags, low, high));
                Ok(())
            }
            _ => self.scan.syntax("a range whose end is before its beginning"),
        }
    }

    fn class_character(&mut self, ends_range: bool) -> Parsed<Escaped> {
        if self.scan.peek() == Some('\\') {
            let begins_range = self.scan.raw_at(2) == Some('-');
            return self.class_escape(ends_range || begins_range);
        }
        match self.scan.take() {
            Some(c) => Ok(Escaped::One(c.into())),
            None => self.scan.syntax("`[` without `]`"),
        }
    }
}

/// Whether a letter below U+0100 has another case above.
fn folds_outside(folded: &Set) -> bool {
    folded.iter().any(|range| range.end() > '\u{ff}')
}
