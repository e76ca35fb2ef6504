//! From tree to the engine's own syntax.

use std::fmt::Write as _;

use super::{
    ast::{Node, Place},
    error::{RegexError, RegexErrorKind, Trouble},
    parse::Tree,
    set::{Set, has_line_break},
};

/// Bytes of the engine's syntax: a class such as `\p{L}` is written out, some ten thousand.
const MAX_TEXT: usize = 1 << 20;

/// What the expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// To match a whole text.
    Whole,
    /// To find places in a text.
    Find,
}

/// The expression in the engine's syntax, anchored for [`Use::Whole`].
///
/// # Why anchors can be translated at all
/// The engine cannot look ahead or behind, and Java's `$` is "the end, or in front of a last line break".
/// But a whole text has to match: whatever follows `$` must match the rest. If nothing that follows can match
/// a line break, that rest is empty, and `$` is the end. Likewise `(?m)^` is the beginning if nothing in
/// front of it can match a line break. Otherwise it is refused.
pub(super) fn emit(pattern: &str, tree: &Tree, purpose: Use) -> Result<String, RegexError> {
    let mut emitter = Emitter { out: String::new(), groups: tree.groups };
    let around = match purpose {
        Use::Whole => Around { before: false, behind: false },
        Use::Find => Around { before: true, behind: false },
    };
    emitter.node(&tree.root, around).map_err(|trouble| RegexError::new(pattern, &trouble))?;
    let text = emitter.out;
    Ok(if purpose == Use::Whole { format!(r"\A(?:{text})\z") } else { text })
}

/// Whether what stands around a node may match a line break.
#[derive(Clone, Copy, Debug)]
struct Around {
    before: bool,
    behind: bool,
}

struct Emitter {
    out: String,
    groups: u32,
}

impl Emitter {
    fn node(&mut self, node: &Node, around: Around) -> Result<(), Trouble> {
        if self.out.len() > MAX_TEXT {
            let what = "more classes than compile to 1 MiB".to_owned();
            return Err(Trouble { kind: RegexErrorKind::TooLarge, at: 0, what });
        }
        match node {
            Node::Empty => self.out.push_str("(?:)"),
            Node::One(set) => self.set(set),
            Node::Sequence(nodes) => return self.sequence(nodes, around),
            Node::Choice(nodes) => return self.choice(nodes, around),
            Node::Repeat { node, min, max, lazy } => return self.repeat(node, *min, *max, *lazy, around),
            Node::Place(place, at) => return self.place(*place, *at, around),
            Node::Reference(group, _) if *group > self.groups => self.set(&Set::empty()),
            Node::Reference(_, at) => return Err(unsupported("a back-reference", *at)),
            Node::Unsupported(what, at) => return Err(unsupported(what, *at)),
        }
        Ok(())
    }

    fn set(&mut self, set: &Set) {
        let ranges = set.ranges();
        match ranges {
            [] => self.out.push_str(r"[^\x{0}-\x{10FFFF}]"),
            [one] if one.start() == one.end() => {
                self.out.push_str(&regex::escape(one.start().encode_utf8(&mut [0; 4])));
            }
            ranges => {
                self.out.push('[');
                for range in ranges {
                    let (low, high) = (u32::from(range.start()), u32::from(range.end()));
                    // Writing to a String cannot fail.
                    let _ = write!(self.out, r"\x{{{low:x}}}-\x{{{high:x}}}");
                }
                self.out.push(']');
            }
        }
    }

    fn sequence(&mut self, nodes: &[Node], around: Around) -> Result<(), Trouble> {
        self.out.push_str("(?:");
        let breaking: Vec<bool> = nodes.iter().map(may_match_line_break).collect();
        let last = breaking.iter().rposition(|breaks| *breaks);
        let mut before = around.before;
        for (at, node) in nodes.iter().enumerate() {
            let behind = around.behind || last.is_some_and(|last| last > at);
            self.node(node, Around { before, behind })?;
            before |= breaking[at];
        }
        self.out.push(')');
        Ok(())
    }

    fn choice(&mut self, nodes: &[Node], around: Around) -> Result<(), Trouble> {
        for (at, node) in nodes.iter().enumerate() {
            self.out.push_str(if at == 0 { "(?:" } else { "|" });
            self.node(node, around)?;
        }
        self.out.push(')');
        Ok(())
    }

    fn repeat(
        &mut self,
        node: &Node,
        min: u32,
        max: Option<u32>,
        lazy: bool,
        mut around: Around,
    ) -> Result<(), Trouble> {
        if max != Some(1) && may_match_line_break(node) {
            around = Around { before: true, behind: true };
        }
        self.out.push_str("(?:");
        self.node(node, around)?;
        self.out.push(')');
        match (min, max) {
            (0, None) => self.out.push('*'),
            (1, None) => self.out.push('+'),
            (0, Some(1)) => self.out.push('?'),
            (min, max) => {
                let max = max.map(|max| max.to_string()).unwrap_or_default();
                let _ = write!(self.out, "{{{min},{max}}}");
            }
        }
        if lazy {
            self.out.push('?');
        }
        Ok(())
    }

    fn place(&mut self, place: Place, at: usize, around: Around) -> Result<(), Trouble> {
        self.out.push_str(match place {
            Place::LastEnd | Place::LineEnd if around.behind => {
                return Err(unsupported("`$` or `\\Z` in front of what may match a line break", at));
            }
            Place::LineStart if around.before => {
                return Err(unsupported("`(?m)^` behind what may match a line break", at));
            }
            Place::Start | Place::LineStart => r"\A",
            Place::End | Place::LastEnd | Place::LineEnd => r"\z",
            Place::WordBorder => r"\b",
            Place::NoWordBorder => r"\B",
        });
        Ok(())
    }
}

fn unsupported(what: &str, at: usize) -> Trouble {
    Trouble { kind: RegexErrorKind::Unsupported, at, what: what.to_owned() }
}

fn may_match_line_break(node: &Node) -> bool {
    match node {
        Node::One(set) => has_line_break(set),
        node => node.children().iter().any(may_match_line_break),
    }
}
