//! From text to tree, by Java's rules of where what may stand.

use super::{
    ast::{Node, Place},
    error::{RegexError, RegexErrorKind, Trouble},
    escape::Escaped,
    fold::folded,
    scan::{Parsed, Scanner},
    set::{Set, chars, negated},
};

/// Levels of groups and classes inside one another.
const MAX_DEPTH: usize = 100;

/// An expression, parsed.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Node,
    /// How many capturing groups there are.
    pub(super) groups: u32,
}

pub(super) fn parse(pattern: &str) -> Result<Tree, RegexError> {
    let mut parser = Parser::new(pattern);
    let parsed = parser.choice().and_then(|root| match parser.scan.peek() {
        None => Ok(root),
        Some(_) => parser.scan.syntax("`)` without `(`"),
    });
    parsed
        .map(|root| Tree { root: parser.with_unsupported(root), groups: parser.groups })
        .map_err(|trouble| RegexError::new(pattern, &trouble))
}

pub(super) struct Parser {
    pub(super) scan: Scanner,
    /// Capturing groups so far.
    pub(super) groups: u32,
    /// Names of capturing groups so far, with their numbers.
    pub(super) names: Vec<(String, u32)>,
    /// Something Java accepts and we cannot run, where there is no node for it: in a class or a flag.
    pub(super) unsupported: Option<(&'static str, usize)>,
    depth: usize,
}

impl Parser {
    fn new(pattern: &str) -> Self {
        Self { scan: Scanner::new(pattern), groups: 0, names: Vec::new(), unsupported: None, depth: 0 }
    }

    fn with_unsupported(&self, root: Node) -> Node {
        match self.unsupported {
            Some((what, at)) => Node::Sequence(vec![Node::Unsupported(what, at), root]),
            None => root,
        }
    }

    /// Parses something inside a group or class, which may be only so deep.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} levels of groups and classes");
            return Err(Trouble { kind: RegexErrorKind::TooLarge, at: self.scan.written(), what });
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// `a|b|c`
    pub(super) fn choice(&mut self) -> Parsed<Node> {
        let first = self.sequence()?;
        if self.scan.peek() != Some('|') {
            return Ok(first);
        }
        let mut choices = vec![first];
        while self.scan.eat('|') {
            choices.push(self.sequence()?);
        }
        Ok(Node::Choice(choices))
    }

    fn sequence(&mut self) -> Parsed<Node> {
        let mut nodes = Vec::new();
        while let Some(c) = self.scan.peek().filter(|c| !matches!(c, '|' | ')')) {
            // A group that only sets flags is not there to be repeated.
            let Some(node) = self.item(c)? else { continue };
            nodes.push(self.repeated(node)?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    /// What one quantifier would repeat.
    fn item(&mut self, c: char) -> Parsed<Option<Node>> {
        let at = self.scan.written();
        Ok(Some(match c {
            '(' => return self.group(),
            '[' => Node::One(self.class()?),
            '\\' => match self.escape()? {
                Escaped::One(code) => Node::One(folded(self.scan.flags, code, code)),
                Escaped::Set(set) => Node::One(set),
                Escaped::Node(node) => node,
            },
            '?' | '*' | '+' => return self.scan.syntax(format!("`{c}` with nothing before it to repeat")),
            // The counted quantifier has nothing to repeat either, but there Java repeats the empty text.
            '{' => Node::Empty,
            _ => {
                self.scan.take();
                match c {
                    '^' => Node::Place(self.line_start(), at),
                    '$' => Node::Place(self.line_end(), at),
                    '.' => Node::One(self.dot()),
                    c => Node::One(folded(self.scan.flags, c.into(), c.into())),
                }
            }
        }))
    }

    fn line_start(&self) -> Place {
        if self.scan.flags.multi_line { Place::LineStart } else { Place::Start }
    }

    fn line_end(&self) -> Place {
        if self.scan.flags.multi_line { Place::LineEnd } else { Place::LastEnd }
    }

    fn dot(&self) -> Set {
        negated(chars(match self.scan.flags {
            flags if flags.dot_all => &[],
            flags if flags.unix_lines => &['\n'],
            _ => &super::super::text::LINE_BREAKS,
        }))
    }

    /// A quantifier, if one follows; exactly one, since Java takes a second for an item of its own.
    pub(super) fn repeated(&mut self, node: Node) -> Parsed<Node> {
        let at = self.scan.written();
        let (min, max) = match self.scan.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => self.counts()?,
            _ => return Ok(node),
        };
        self.scan.take();
        let lazy = self.scan.eat('?');
        if !lazy && self.scan.eat('+') {
            return Ok(Node::Sequence(vec![
                Node::Unsupported("a possessive quantifier", at),
                Node::Repeat { node: Box::new(node), min, max, lazy },
            ]));
        }
        Ok(Node::Repeat { node: Box::new(node), min, max, lazy })
    }

    /// `{2}`, `{2,}` or `{2,3}`, up to the brace at its end, which is left.
    fn counts(&mut self) -> Parsed<(u32, Option<u32>)> {
        self.scan.take();
        // Flag `x` does not skip a blank here, though it does behind the digits.
        if !self.scan.raw().is_some_and(|c| c.is_ascii_digit()) {
            return self.scan.syntax("`{` that is no count such as `{2,3}` (a brace itself is `\\{`)");
        }
        let min = self.number()?;
        let max = if !self.scan.eat(',') {
            Some(min)
        } else if self.scan.peek() == Some('}') {
            None
        } else {
            Some(self.number()?)
        };
        match self.scan.peek() {
            Some('}') if max.is_some_and(|max| max < min) => {
                self.scan.syntax("a repetition whose second count is less than its first")
            }
            Some('}') => Ok((min, max)),
            _ => self.scan.syntax("a count without `}`"),
        }
    }

    fn number(&mut self) -> Parsed<u32> {
        let mut number: Option<u32> = None;
        while let Some(digit) = self.scan.peek().and_then(|c| c.to_digit(10)) {
            self.scan.take();
            let next = number.unwrap_or(0).checked_mul(10).and_then(|n| n.checked_add(digit));
            number = match next.filter(|next| i32::try_from(*next).is_ok()) {
                None => return self.scan.syntax("a count above 2147483647"),
                next => next,
            };
        }
        match number {
            Some(number) => Ok(number),
            None => self.scan.syntax("a count without its second number"),
        }
    }
}
