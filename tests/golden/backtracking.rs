//! Which regular expressions may be refused, decided without our translation.

/// Whether an expression uses what only backtracking can run: look-around, back-references, possessive
/// quantifiers, atomic groups; and what is look-ahead in disguise: `$` or `\\Z` that is not at the end,
/// `(?m)` with `^` or `$`, `\\X`, `\\b{g}`, `\\N{…}`.
///
/// Looks at the text alone, so that a gap of our translation cannot pass as one of these.
pub(crate) fn needs_backtracking(pattern: &str) -> bool {
    let chars: Vec<char> = pattern.chars().collect();
    let mut is_quantified = false;
    let mut at = 0;
    while at < chars.len() {
        let rest: String = chars[at..].iter().collect();
        let starts_with_any = |texts: &[&str]| texts.iter().any(|text| rest.starts_with(text));
        if starts_with_any(&["(?=", "(?!", "(?<=", "(?<!", "(?>", r"\k<", r"\X", r"\b{g", r"\N{", "(?c"]) {
            return true;
        }
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let quoted = quoted.split(r"\E").next().unwrap_or_default();
            at += 4 + quoted.chars().count();
            is_quantified = false;
            continue;
        }
        if let Some(behind) = rest.strip_prefix('$').or_else(|| rest.strip_prefix(r"\Z"))
            && !behind.is_empty()
            && !behind.starts_with([')', '|'])
        {
            return true;
        }
        if rest.starts_with("(?m") && rest.contains(['^', '$']) {
            return true;
        }
        if let Some(escaped) = rest.strip_prefix('\\') {
            if escaped.starts_with(|c| ('1'..='9').contains(&c)) {
                return true;
            }
            at += 2;
            is_quantified = false;
            continue;
        }
        if rest.starts_with('+') && is_quantified {
            return true;
        }
        is_quantified = rest.starts_with(['*', '+', '?', '}']);
        at += 1;
    }
    false
}

#[test]
fn backtracking_is_known_when_seen() {
    for pattern in [
        r"(?=a)b", r"(?!a)", r"(?<=a)", r"(?<!a)", r"(?>a)", r"(.)\1", r"\k<x>", "a++", "a{2}+", "a?+",
        r"a$\n", "(?m)^a",
    ] {
        assert!(needs_backtracking(pattern), "{pattern}");
    }
    for pattern in [
        r"a+",
        r"a\++",
        r"(?<n>a)",
        r"(?:a)",
        r"\\1",
        r"\Q(?=a++\E",
        r"[a-z]+\d{2,}",
        r"a+\+",
        r"\Q*\E+",
        "(^a$|^b$)",
        "^a$",
    ] {
        assert!(!needs_backtracking(pattern), "{pattern}");
    }
}
