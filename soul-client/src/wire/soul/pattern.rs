//! Which registered paths are patterns.

/// Whether Soul takes a path for a pattern: `path.indexOf('*') > 1`, so the first star stands at index 2 or later.
///
/// A client registers a class with such a path as one route; an admin gives a rule with such a path the operator
/// `match`, and any other `=`. It is not "more than one star": `/**` is no pattern here, `/a*` is one. Java's index
/// counts UTF-16 units, so a star behind one character outside the basic plane stands at 2.
///
/// ```
/// use soul_client::wire::soul::is_pattern;
///
/// assert!(is_pattern("/order/**") && is_pattern("/a*"));
/// assert!(!is_pattern("/**") && !is_pattern("/order/{id}"));
/// ```
#[must_use]
pub fn is_pattern(path: &str) -> bool {
    path.find('*').is_some_and(|star| path[..star].encode_utf16().take(2).count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_star_decides() {
        for (path, pattern) in [
            ("/test/**", true),
            ("/a*", true),
            ("/**", false),
            ("/*", false),
            ("*", false),
            ("**", false),
            ("", false),
            ("/order", false),
            ("/a/{id}", false),
            ("订*", false),
            ("/订*", true),
            ("\u{1F600}*", true),
        ] {
            assert_eq!(is_pattern(path), pattern, "{path}");
        }
    }
}
