//! What a backslash stands for.

use super::{
    ast::{Node, Place},
    parse::Parser,
    property::{DIGIT, SPACE},
    scan::Parsed,
    set::{Set, engine, negated, set},
};

/// Line breaks in the wide sense of `\R` and `\v`.
const VERTICAL: [(u32, u32); 3] = [(0x0a, 0x0d), (0x85, 0x85), (0x2028, 0x2029)];

/// `\h`
const HORIZONTAL: [(u32, u32); 9] = [
    (0x09, 0x09),
    (0x20, 0x20),
    (0xa0, 0xa0),
    (0x1680, 0x1680),
    (0x180e, 0x180e),
    (0x2000, 0x200a),
    (0x202f, 0x202f),
    (0x205f, 0x205f),
    (0x3000, 0x3000),
];

/// `\w`
const WORD: [(u32, u32); 4] = [(0x30, 0x39), (0x41, 0x5a), (0x5f, 0x5f), (0x61, 0x7a)];

/// What an escape stands for.
#[derive(Debug)]
pub(super) enum Escaped {
    /// A code point, which flags may fold; it may be a surrogate.
    One(u32),
    /// A class, which they do not.
    Set(Set),
    /// Something that cannot stand in a class.
    Node(Node),
}

impl Parser {
    /// An escape outside a class, from its backslash on.
    pub(super) fn escape(&mut self) -> Parsed<Escaped> {
        let (place, at) = (self.scan.place(), self.scan.written());
        let node = match self.scan.raw_at(1) {
            Some('1'..='9') => {
                self.scan.take_raw();
                self.reference(at)
            }
            Some('k') => {
                self.scan.take_raw();
                self.scan.take_raw();
                self.named_reference(at)?
            }
            Some('b') => {
                self.scan.back(place + 2);
                self.border(at)?
            }
            Some(c) => match node(c, at) {
                Some(node) => {
                    self.scan.back(place + 2);
                    node
                }
                None => return self.class_escape(false),
            },
            None => return self.scan.syntax("a backslash at the end"),
        };
        Ok(Escaped::Node(node))
    }

    /// `\b`, or `\b{g}`; any other brace is a quantifier.
    fn border(&mut self, at: usize) -> Parsed<Node> {
        if self.scan.peek() != Some('{') || self.scan.raw_at(1) != Some('g') {
            return Ok(Node::Place(Place::WordBorder, at));
        }
        if self.scan.raw_at(2) != Some('}') {
            return self.scan.syntax("`\\b{g` without `}`");
        }
        self.scan.back(self.scan.place() + 3);
        Ok(Node::Unsupported("`\\b{g}`", at))
    }

    /// `\12`: the group of the longest number that is one so far.
    fn reference(&mut self, at: usize) -> Node {
        let mut number = 0;
        while let Some(digit) = self.scan.peek().and_then(|c| c.to_digit(10)) {
            let longer = number * 10 + digit;
            if number > 0 && longer > self.groups {
                break;
            }
            number = longer;
            self.scan.take();
        }
        Node::Reference(number, at)
    }

    fn named_reference(&mut self, at: usize) -> Parsed<Node> {
        if !self.scan.eat('<') {
            return self.scan.syntax("`\\k` without `<name>`");
        }
        let name = self.name()?;
        match self.names.iter().find(|(other, _)| *other == name) {
            Some((_, number)) => Ok(Node::Reference(*number, at)),
            None => self.scan.syntax(format!("`\\k<{name}>` without a group of that name before it")),
        }
    }

    /// An escape that may stand in a class, from its backslash on; `in_range` where it begins or
    /// ends a range.
    pub(super) fn class_escape(&mut self, in_range: bool) -> Parsed<Escaped> {
        let at = self.scan.written();
        self.scan.take_raw();
        let Some(c) = self.scan.take_raw() else { return self.scan.syntax("a backslash at the end") };
        Ok(match c {
            // In a range, what `\v` was before Java 8.
            'v' if in_range => Escaped::One(0x0b),
            'd' | 's' | 'w' | 'h' | 'v' => Escaped::Set(self.named_set(c)),
            'D' | 'S' | 'W' | 'H' | 'V' => Escaped::Set(negated(self.named_set(c.to_ascii_lowercase()))),
            'p' | 'P' => {
                let property = self.property()?;
                Escaped::Set(if c == 'P' { negated(property) } else { property })
            }
            _ => Escaped::One(self.code(c, at)?),
        })
    }

    fn named_set(&self, letter: char) -> Set {
        let unicode = self.scan.flags.unicode_classes;
        let (ascii, wide): (&[(u32, u32)], &str) = match letter {
            'd' => (&DIGIT, r"\d"),
            's' => (&SPACE, r"\s"),
            'w' => (&WORD, r"\w"),
            'h' => return set(&HORIZONTAL),
            _ => return set(&VERTICAL),
        };
        if unicode { engine(wide).unwrap_or_else(Set::empty) } else { set(ascii) }
    }

    /// The code point of an escape of which `c` is taken already.
    fn code(&mut self, c: char, at: usize) -> Parsed<u32> {
        Ok(match c {
            'a' => 0x07,
            'e' => 0x1b,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            '0' => return self.octal(),
            'x' => return self.hexadecimal(),
            'u' => return self.utf16(),
            'c' => match self.scan.take() {
                Some(c) => u32::from(c) ^ 64,
                None => return self.scan.syntax("`\\c` without a control character"),
            },
            'N' => {
                self.name_of_character()?;
                self.unsupported.get_or_insert(("`\\N{…}`", at));
                0
            }
            c if c.is_ascii_alphanumeric() => {
                return self.scan.syntax(format!("`\\{c}`, which is no escape here"));
            }
            c => c.into(),
        })
    }

    /// One to three digits, the first of three at most 3.
    fn octal(&mut self) -> Parsed<u32> {
        let Some(first) = self.digit(8) else { return self.scan.syntax("`\\0` without an octal digit") };
        let mut value = first;
        for _ in 0..if first > 3 { 1 } else { 2 } {
            match self.digit(8) {
                Some(digit) => value = value * 8 + digit,
                None => break,
            }
        }
        Ok(value)
    }

    fn digit(&mut self, radix: u32) -> Option<u32> {
        // ASCII digits only, in Java as in `to_digit`.
        let digit = self.scan.peek()?.to_digit(radix)?;
        self.scan.take();
        Some(digit)
    }

    /// Two digits, or any number in braces.
    fn hexadecimal(&mut self) -> Parsed<u32> {
        if !self.scan.eat('{') {
            return match (self.digit(16), self.digit(16)) {
                (Some(high), Some(low)) => Ok(high * 16 + low),
                _ => self.scan.syntax("`\\x` without two hexadecimal digits"),
            };
        }
        let mut value = None;
        while let Some(digit) = self.digit(16) {
            let longer = value.unwrap_or(0) * 16 + digit;
            if longer > u32::from(char::MAX) {
                return self.scan.syntax("a code point above 10ffff");
            }
            value = Some(longer);
        }
        match value {
            Some(value) if self.scan.eat('}') => Ok(value),
            _ => self.scan.syntax("`\\x{` without hexadecimal digits and `}`"),
        }
    }

    /// Four digits, and if they are the first half of a surrogate pair, the second half as well.
    fn utf16(&mut self) -> Parsed<u32> {
        let first = self.four_digits()?;
        let place = self.scan.place();
        if (0xd800..0xdc00).contains(&first) && self.scan.eat('\\') && self.scan.eat('u') {
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                return Ok(0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00)));
            }
        }
        self.scan.back(place);
        Ok(first)
    }

    fn four_digits(&mut self) -> Parsed<u32> {
        let mut value = 0;
        for _ in 0..4 {
            match self.digit(16) {
                Some(digit) => value = value * 16 + digit,
                None => return self.scan.syntax("`\\u` without four hexadecimal digits"),
            }
        }
        Ok(value)
    }

    fn name_of_character(&mut self) -> Parsed<()> {
        if self.scan.eat('{') {
            while let Some(c) = self.scan.take_raw() {
                if c == '}' {
                    return Ok(());
                }
            }
        }
        self.scan.syntax("`\\N` without a name in braces")
    }
}

/// The escapes of one letter that cannot stand in a class.
fn node(c: char, at: usize) -> Option<Node> {
    Some(match c {
        'A' | 'G' => Node::Place(Place::Start, at),
        'Z' => Node::Place(Place::LastEnd, at),
        'z' => Node::Place(Place::End, at),
        'B' => Node::Place(Place::NoWordBorder, at),
        'R' => Node::line_break(set(&VERTICAL)),
        'X' => Node::Unsupported("`\\X`", at),
        _ => return None,
    })
}
