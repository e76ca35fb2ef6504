//! Gson's lenient reader: text in, tree out.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use super::{error::GsonError, number};

/// How deep arrays and objects may be nested; guards the stack. Gson's own default limit.
pub(super) const MAX_DEPTH: usize = 255;

/// A value as it stands in the text: numbers keep their digits, since Java may want them as a string.
#[derive(Debug)]
pub(super) enum Node<'t> {
    Null(Null<'t>),
    Bool(bool),
    Number(&'t str),
    Text(Cow<'t, str>),
    Array(Vec<Node<'t>>),
    /// Names are unique.
    Object(Vec<(Cow<'t, str>, Node<'t>)>),
}

/// A `null`. What it means depends on the type that wants it, which is known only while it is being read.
#[derive(Debug, Default)]
pub(super) struct Null<'t> {
    pub(super) meaning: Cell<Meaning>,
    /// An earlier value of the same name, which stays if this `null` turns out to set nothing.
    pub(super) earlier: Option<Box<Node<'t>>>,
}

/// What a `null` turned out to mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Not yet wanted, or wanted as a string.
    #[default]
    Open,
    /// Sets nothing: the field keeps its default.
    Skipped,
    /// An option of something other than a string: `None`.
    Absent,
}

/// Reads one value; `None` for a text without any.
pub(super) fn parse(text: &str) -> Result<Option<Node<'_>>, GsonError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.skip_blank()?;
    if reader.rest().starts_with(NON_EXECUTE_PREFIX) {
        reader.at += NON_EXECUTE_PREFIX.len();
        reader.skip_blank()?;
    }
    if reader.peek().is_none() {
        return Ok(None);
    }
    let node = reader.value()?;
    // Gson looks for more only after a value: whatever follows `null` is ignored. Here it is no longer lenient,
    // so comments are refused.
    let more = reader.rest().trim_matches([' ', '\t', '\r', '\n']);
    if more.is_empty() || matches!(node, Node::Null(_)) {
        Ok(Some(node))
    } else {
        Err(reader.error("expected nothing more after the value"))
    }
}

/// Some servers put this before JSON so that it is not runnable as a script; Gson steps over it.
const NON_EXECUTE_PREFIX: &str = ")]}'\n";

struct Reader<'t> {
    text: &'t str,
    /// Byte offset; always at a character border.
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next byte. Everything with a meaning is ASCII; other bytes belong to strings.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Steps over the next byte, which the caller has seen to be ASCII.
    fn skip_one(&mut self) {
        self.at += 1;
    }

    fn error(&self, what: &str) -> GsonError {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        GsonError::new(format!("{what} at line {line} column {column}"))
    }

    /// Steps over white space and comments.
    fn skip_blank(&mut self) -> Result<(), GsonError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.skip_one(),
                Some(b'#') => self.skip_line(),
                Some(b'/') if self.rest().starts_with("//") => self.skip_line(),
                Some(b'/') if self.rest().starts_with("/*") => match self.rest()[2..].find("*/") {
                    Some(end) => self.at += end + 4,
                    None => return Err(self.error("expected `*/` to end the comment that begins")),
                },
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let rest = self.rest();
        self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
    }

    /// A value; the reader stands at its first byte.
    fn value(&mut self) -> Result<Node<'t>, GsonError> {
        match self.peek() {
            None => Err(self.error("expected a value, found the end of the text")),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote).map(Node::Text),
            Some(_) => self.literal(),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Node<'t>, GsonError>,
    ) -> Result<Node<'t>, GsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(&format!("nested deeper than {MAX_DEPTH}")));
        }
        self.depth += 1;
        self.skip_one();
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn array(&mut self) -> Result<Node<'t>, GsonError> {
        let mut items = Vec::new();
        loop {
            self.skip_blank()?;
            match self.peek() {
                Some(b']') if items.is_empty() => break,
                // Nothing between two separators is a null: `[1,]` has two elements.
                Some(b']' | b',' | b';') => items.push(Node::Null(Null::default())),
                _ => {
                    let index = items.len();
                    items.push(self.value().map_err(|e| e.in_element(index))?);
                }
            }
            self.skip_blank()?;
            match self.peek() {
                Some(b']') => break,
                Some(b',' | b';') => self.skip_one(),
                _ => return Err(self.error("expected `,` or `]` in an array")),
            }
        }
        self.skip_one();
        Ok(Node::Array(items))
    }

    fn object(&mut self) -> Result<Node<'t>, GsonError> {
        let mut fields = Vec::new();
        loop {
            self.skip_blank()?;
            if self.peek() == Some(b'}') && fields.is_empty() {
                break;
            }
            let name = self.name()?;
            self.skip_blank()?;
            self.colon()?;
            self.skip_blank()?;
            let value = self.value().map_err(|e| e.in_field(&name))?;
            fields.push((name, value));
            self.skip_blank()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b',' | b';') => self.skip_one(),
                _ => return Err(self.error("expected `,` or `}` in an object")),
            }
        }
        self.skip_one();
        Ok(Node::Object(last_of_each(fields)))
    }

    fn name(&mut self) -> Result<Cow<'t, str>, GsonError> {
        match self.peek() {
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote),
            Some(b) if is_literal(b) => Ok(Cow::Borrowed(self.literal_text())),
            _ => Err(self.error("expected the name of a field")),
        }
    }

    fn colon(&mut self) -> Result<(), GsonError> {
        match self.peek() {
            Some(b':') => self.skip_one(),
            Some(b'=') if self.rest().starts_with("=>") => self.at += 2,
            Some(b'=') => self.skip_one(),
            _ => return Err(self.error("expected `:` after the name of a field")),
        }
        Ok(())
    }

    /// A keyword, a number, or an unquoted string.
    fn literal(&mut self) -> Result<Node<'t>, GsonError> {
        let text = self.literal_text();
        if text.is_empty() {
            return Err(self.error("expected a value"));
        }
        Ok(if text.eq_ignore_ascii_case("null") {
            Node::Null(Null::default())
        } else if text.eq_ignore_ascii_case("true") {
            Node::Bool(true)
        } else if text.eq_ignore_ascii_case("false") {
            Node::Bool(false)
        } else if number::is_json_number(text) {
            Node::Number(text)
        } else {
            Node::Text(Cow::Borrowed(text))
        })
    }

    fn literal_text(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.bytes().position(|b| !is_literal(b)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A string in quotes; the reader stands at the opening one.
    fn quoted(&mut self, quote: u8) -> Result<Cow<'t, str>, GsonError> {
        self.skip_one();
        let start = self.at;
        let mut unescaped: Option<Vec<u16>> = None;
        loop {
            let rest = self.rest();
            let Some(end) = rest.bytes().position(|b| b == quote || b == b'\\') else {
                return Err(self.error("expected a quote to end the string that begins"));
            };
            let plain = &rest[..end];
            self.at += end + 1;
            if let Some(units) = &mut unescaped {
                units.extend(plain.encode_utf16());
            }
            if rest.as_bytes()[end] == quote {
                break;
            }
            let so_far = &self.text[start..self.at - 1];
            let unit = self.escape()?;
            // UTF-16, as in Java: two escapes may be the halves of one character.
            unescaped.get_or_insert_with(|| so_far.encode_utf16().collect()).push(unit);
        }
        Ok(match unescaped {
            Some(units) => Cow::Owned(String::from_utf16_lossy(&units)),
            None => Cow::Borrowed(&self.text[start..self.at - 1]),
        })
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<u16, GsonError> {
        let unit = match self.peek() {
            Some(b't') => 0x09,
            Some(b'b') => 0x08,
            Some(b'n') => 0x0a,
            Some(b'r') => 0x0d,
            Some(b'f') => 0x0c,
            Some(b @ (b'\n' | b'\'' | b'"' | b'\\' | b'/')) => u16::from(b),
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("invalid escape")),
        };
        self.skip_one();
        Ok(unit)
    }

    fn unicode_escape(&mut self) -> Result<u16, GsonError> {
        let digits = self.rest().get(1..5).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u16::from_str_radix(d, 16).ok()) {
            Some(unit) => {
                self.at += 5;
                Ok(unit)
            }
            None => Err(self.error("expected four hexadecimal digits after `\\u`")),
        }
    }
}

/// Whether a byte may be part of something unquoted.
fn is_literal(b: u8) -> bool {
    !matches!(
        b,
        b'/' | b'\\'
            | b';'
            | b'#'
            | b'='
            | b'{'
            | b'}'
            | b'['
            | b']'
            | b':'
            | b','
            | b' '
            | b'\t'
            | 0x0c
            | b'\r'
            | b'\n'
    )
}

/// Of fields of one name the last stays, in the place of the first.
fn last_of_each<'t>(fields: Vec<(Cow<'t, str>, Node<'t>)>) -> Vec<(Cow<'t, str>, Node<'t>)> {
    let mut places: HashMap<Cow<'t, str>, usize> = HashMap::with_capacity(fields.len());
    let mut kept: Vec<(Cow<'t, str>, Node<'t>)> = Vec::with_capacity(fields.len());
    for (name, mut node) in fields {
        if let Some(&place) = places.get(&name) {
            let slot = &mut kept[place].1;
            if let Node::Null(null) = &mut node {
                null.earlier = match std::mem::replace(slot, Node::Bool(false)) {
                    // Not a chain of nulls: one would be dropped by recursion.
                    Node::Null(before) => before.earlier,
                    before => Some(Box::new(before)),
                };
            }
            *slot = node;
        } else {
            places.insert(name.clone(), kept.len());
            kept.push((name, node));
        }
    }
    kept
}
