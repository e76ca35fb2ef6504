//! Parentheses.

use super::{ast::Node, parse::Parser, scan::Parsed};

const BEHIND: &str = "look-behind";

/// What a parenthesis opens.
enum Kind {
    /// A group, capturing or not: nothing here looks at what was captured.
    Plain,
    /// Flags for the rest of the group around it.
    Flags,
    /// Something our engine cannot run.
    Unsupported(&'static str),
}

impl Parser {
    /// A group; `None` for `(?flags)`, which ends with the group around it.
    pub(super) fn group(&mut self) -> Parsed<Option<Node>> {
        let at = self.scan.written();
        let flags = self.scan.flags;
        self.scan.take();
        let unsupported = if self.scan.peek() == Some('?') {
            self.scan.take_raw();
            match self.kind()? {
                Kind::Plain => None,
                Kind::Unsupported(what) => Some(what),
                Kind::Flags => return Ok(None),
            }
        } else {
            self.groups += 1;
            None
        };
        let body = self.deeper(Self::choice)?;
        if !self.scan.eat(')') {
            return self.scan.syntax("`(` without `)`");
        }
        self.scan.flags = flags;
        if unsupported == Some(BEHIND) && body.is_unbounded() {
            return self.scan.syntax("look-behind without a longest length");
        }
        Ok(Some(match unsupported {
            Some(what) => Node::Sequence(vec![Node::Unsupported(what, at), body]),
            None => body,
        }))
    }

    /// What stands between `(?` and the body.
    fn kind(&mut self) -> Parsed<Kind> {
        match self.scan.take_raw() {
            Some(':') => Ok(Kind::Plain),
            Some('=' | '!') => Ok(Kind::Unsupported("look-ahead")),
            Some('>') => Ok(Kind::Unsupported("an atomic group")),
            Some('<') if matches!(self.scan.peek(), Some('=' | '!')) => {
                self.scan.take();
                Ok(Kind::Unsupported(BEHIND))
            }
            Some('<') => {
                let name = self.name()?;
                if self.names.iter().any(|(other, _)| *other == name) {
                    return self.scan.syntax(format!("a second group named `{name}`"));
                }
                self.groups += 1;
                self.names.push((name, self.groups));
                Ok(Kind::Plain)
            }
            Some(first) => self.set_flags(first),
            None => self.scan.syntax("`(?` without anything behind it"),
        }
    }

    /// The name of a group, with the `>` at its end.
    pub(super) fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        while let Some(c) = self.scan.peek().filter(char::is_ascii_alphanumeric) {
            name.push(c);
            self.scan.take();
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return self.scan.syntax("a group name that does not start with an ASCII letter");
        }
        if !self.scan.eat('>') {
            return self.scan.syntax("a group name without `>` (letters and digits are allowed)");
        }
        Ok(name)
    }

    /// `i`, `-i`, `im-s` and so on, up to `)` or `:`.
    fn set_flags(&mut self, first: char) -> Parsed<Kind> {
        let mut on = true;
        let mut next = Some(first);
        loop {
            match next {
                Some('-') if on => on = false,
                Some('c') if on => {
                    let at = self.scan.written() - 1;
                    self.unsupported.get_or_insert(("flag `c`, canonical equivalence,", at));
                }
                Some('c') => {}
                Some(')') => return Ok(Kind::Flags),
                Some(':') => return Ok(Kind::Plain),
                Some(letter) if self.scan.flags.set(letter, on) => {}
                _ => {
                    return self.scan.syntax("an unknown flag (known are `i`, `u`, `U`, `m`, `s`, `d`, `x`)");
                }
            }
            next = self.scan.take();
        }
    }
}
