//! An expression, parsed.

use super::set::Set;

/// A piece of an expression.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Matches the empty text.
    Empty,
    /// One character.
    One(Set),
    /// One after the other.
    Sequence(Vec<Node>),
    /// The first that fits.
    Choice(Vec<Node>),
    /// Again and again.
    Repeat {
        node: Box<Node>,
        min: u32,
        /// Absent for no upper bound.
        max: Option<u32>,
        lazy: bool,
    },
    /// A place, with the character of the expression that asks for it.
    Place(Place, usize),
    /// A reference to a group, by number, with its place in the expression. One to a group that does not exist
    /// matches nothing.
    Reference(u32, usize),
    /// Something that Java accepts and our engine cannot run, with its name and place in the expression.
    Unsupported(&'static str, usize),
}

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The beginning: `^`, `\A`, `\G`.
    Start,
    /// `(?m)^`: the beginning, or behind a line break but not at the end.
    LineStart,
    /// The end: `\z`.
    End,
    /// `$`, `\Z`: the end, or in front of a line break at the end.
    LastEnd,
    /// `(?m)$`: the end, or in front of a line break.
    LineEnd,
    /// `\b`
    WordBorder,
    /// `\B`
    NoWordBorder,
}

impl Node {
    /// `\R`: a line break, where CR LF is one.
    pub(super) fn line_break(breaks: Set) -> Self {
        let crlf = ['\r', '\n'].map(|c| Self::One(super::set::chars(&[c])));
        Self::Choice(vec![Self::Sequence(crlf.into()), Self::One(breaks)])
    }

    /// The pieces of this piece.
    pub(super) fn children(&self) -> &[Self] {
        match self {
            Self::Sequence(nodes) | Self::Choice(nodes) => nodes,
            Self::Repeat { node, .. } => std::slice::from_ref(node),
            _ => &[],
        }
    }

    /// Whether Java finds no longest length for it and so cannot look behind with it. It does find one for a
    /// repetition without end of a single character.
    pub(super) fn is_unbounded(&self) -> bool {
        match self {
            Self::Reference(..) => true,
            Self::Repeat { node, max: None, .. } => !node.is_simple(),
            Self::Repeat { node, .. } => node.has_endless(),
            node => node.children().iter().any(Self::is_unbounded),
        }
    }

    /// One character or none, or something we refuse anyway.
    fn is_simple(&self) -> bool {
        match self {
            Self::Empty | Self::One(_) | Self::Place(..) | Self::Unsupported(..) => true,
            Self::Sequence(nodes) => matches!(nodes[..], [Self::Unsupported(..), ..]),
            _ => false,
        }
    }

    fn has_endless(&self) -> bool {
        matches!(self, Self::Repeat { max: None, .. } | Self::Reference(..))
            || self.children().iter().any(Self::has_endless)
    }
}
