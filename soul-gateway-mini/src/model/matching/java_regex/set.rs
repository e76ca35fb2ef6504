//! Sets of characters.

use regex_syntax::{
    Parser,
    hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind},
};

use super::super::text::LINE_BREAKS;

/// A set of characters.
pub(super) type Set = ClassUnicode;

/// The set of some ranges of code points, both ends included. Surrogates are no characters of a Rust text;
/// what names them matches nothing.
pub(super) fn set(ranges: &[(u32, u32)]) -> Set {
    let below = ranges.iter().filter_map(|(low, high)| range(*low, (*high).min(0xd7ff)));
    let above = ranges.iter().filter_map(|(low, high)| range((*low).max(0xe000), *high));
    Set::new(below.chain(above))
}

fn range(low: u32, high: u32) -> Option<ClassUnicodeRange> {
    let (low_char, high_char) = (char::from_u32(low)?, char::from_u32(high)?);
    (low <= high).then(|| ClassUnicodeRange::new(low_char, high_char))
}

/// The set of some characters.
pub(super) fn chars(chars: &[char]) -> Set {
    Set::new(chars.iter().map(|c| ClassUnicodeRange::new(*c, *c)))
}

/// The set that `class`, in the engine's own syntax, stands for; `None` when it knows no such class.
pub(super) fn engine(class: &str) -> Option<Set> {
    let parsed = Parser::new().parse(class).ok()?;
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(set)) => Some(set),
        // A class of one character.
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(chars(&text.chars().collect::<Vec<_>>()))
        }
        _ => Some(Set::empty()),
    }
}

pub(super) fn negated(mut set: Set) -> Set {
    set.negate();
    set
}

pub(super) fn union(mut set: Set, other: &Set) -> Set {
    set.union(other);
    set
}

/// Whether the set holds a line break.
pub(super) fn has_line_break(set: &Set) -> bool {
    LINE_BREAKS.iter().any(|c| set.iter().any(|range| range.start() <= *c && *c <= range.end()))
}
