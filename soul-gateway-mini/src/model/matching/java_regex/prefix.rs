//! The text with which everything begins that an expression matches.

use regex_syntax::{
    ParserBuilder,
    hir::{Hir, HirKind},
};

/// The text; `None` when there is none. `expression` is one that our engine compiled and that matches whole texts.
pub(super) fn of(expression: &str) -> Option<String> {
    let tree = ParserBuilder::new().nest_limit(u32::MAX).build().parse(expression).ok()?;
    let mut prefix = Vec::new();
    gather(&tree, &mut prefix);
    let valid = match std::str::from_utf8(&prefix) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&prefix[..error.valid_up_to()]).ok()?,
    };
    (!valid.is_empty()).then(|| valid.to_owned())
}

/// Adds what must be there, and tells whether what follows comes right behind it.
fn gather(tree: &Hir, prefix: &mut Vec<u8>) -> bool {
    match tree.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(text) => {
            prefix.extend_from_slice(&text.0);
            true
        }
        HirKind::Capture(group) => gather(&group.sub, prefix),
        HirKind::Concat(parts) => parts.iter().all(|part| gather(part, prefix)),
        HirKind::Class(_) | HirKind::Repetition(_) | HirKind::Alternation(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::JavaRegex;

    #[test]
    fn only_what_every_match_begins_with_counts() {
        for (pattern, expected) in [
            ("/a/b/.*", Some("/a/b/")),
            ("/a/b\\d+", Some("/a/")),
            ("/a/b+", Some("/a/")),
            ("/a/(b/c)/.*", Some("/a/b/c/")),
            ("\\Q/a.b/\\E.*", Some("/a.b/")),
            ("^/a/.*$", Some("/a/")),
            ("/a/|/b/", None),
            ("/a/x|b", None),
            ("(?i)/a/.*", Some("/")),
            ("(/a)?/b", None),
            ("/订/1.*", Some("/订/")),
            ("abc/.*", Some("abc/")),
            ("abc.*", Some("")),
            (".*", None),
        ] {
            let found = JavaRegex::new(pattern).unwrap().first_segments();
            assert_eq!(found.as_deref(), expected, "{pattern}");
        }
    }
}
