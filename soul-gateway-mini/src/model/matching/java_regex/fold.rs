//! Letters in either case, as Java compares them.

use std::sync::LazyLock;

use super::{
    flags::Flags,
    set::{Set, set, union},
};

/// A character that is not its own upper case, or whose upper case is another's lower case.
struct Cased {
    it: u32,
    upper: u32,
    folded: u32,
}

/// All cased characters. They end well below U+20000; what lies above has no case.
static CASED: LazyLock<Vec<Cased>> = LazyLock::new(|| {
    let cased = ('\0'..='\u{1ffff}').filter_map(|it| {
        let upper = upper(it);
        let folded = lower(upper);
        let [it, upper, folded] = [it, upper, folded].map(u32::from);
        (it != upper || it != folded).then_some(Cased { it, upper, folded })
    });
    cased.collect()
});

/// The characters that match one from `low` to `high` under these flags.
pub(super) fn folded(flags: Flags, low: u32, high: u32) -> Set {
    let exact = set(&[(low, high)]);
    let range = low..=high;
    match (flags.ignore_case, flags.unicode_case) {
        (false, _) => exact,
        (true, false) => union(exact, &other_ascii_case(low, high)),
        (true, true) if low == high => with_fold_of(low),
        (true, true) => {
            let also = |cased: &Cased| range.contains(&cased.upper) || range.contains(&cased.folded);
            union(exact, &cased(also))
        }
    }
}

fn other_ascii_case(low: u32, high: u32) -> Set {
    let letters = ('A'..='Z').chain('a'..='z').map(u32::from).filter(|c| (low..=high).contains(c));
    set(&letters.map(|c| c ^ 0x20).map(|other| (other, other)).collect::<Vec<_>>())
}

/// All characters that fold to what `c` folds to.
fn with_fold_of(c: u32) -> Set {
    let fold = CASED.iter().find(|cased| cased.it == c).map_or(c, |cased| cased.folded);
    union(set(&[(fold, fold)]), &cased(|cased| cased.folded == fold))
}

fn cased(wanted: impl Fn(&Cased) -> bool) -> Set {
    set(&CASED.iter().filter(|cased| wanted(cased)).map(|cased| (cased.it, cased.it)).collect::<Vec<_>>())
}

/// Unicode's simple upper case, one character; the standard library has only the full one.
fn upper(c: char) -> char {
    let mut full = c.to_uppercase();
    match (full.next(), full.next(), c) {
        (Some(upper), None, _) => upper,
        // Greek letters with iota below, whose full upper case is two letters.
        (_, _, '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}') => shifted(c, 8),
        (_, _, '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}') => shifted(c, 9),
        _ => c,
    }
}

fn shifted(c: char, by: u32) -> char {
    char::from_u32(u32::from(c) + by).unwrap_or(c)
}

/// Unicode's simple lower case.
fn lower(c: char) -> char {
    let mut full = c.to_lowercase();
    match (full.next(), full.next()) {
        (Some(lower), None) => lower,
        // The one letter with a longer full lower case: capital I with a dot.
        _ => 'i',
    }
}
