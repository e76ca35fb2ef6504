//! `\Q…\E`, both ways.

/// The expression that matches exactly `text`: Java's `Pattern.quote`.
pub(crate) fn quote(text: &str) -> String {
    format!(r"\Q{}\E", text.replace(r"\E", r"\E\\E\Q"))
}

/// The characters of an expression with each quoted part written as escapes, and the place each came from.
///
/// Java rewrites an expression so before it parses it, which decides what `\Qab\E+` repeats (the `b`) and
/// what `[\Q]\E]` holds.
pub(super) fn without_quotes(pattern: &str) -> Vec<(char, usize)> {
    let mut out = Vec::new();
    let mut input = pattern.chars().enumerate().peekable();
    while let Some((at, c)) = input.next() {
        let next = input.peek().map(|(_, next)| *next);
        match (c, next) {
            ('\\', Some('Q')) => {
                input.next();
                quoted(&mut input, &mut out);
            }
            ('\\', Some(next)) => {
                out.extend([(c, at), (next, at + 1)]);
                input.next();
            }
            _ => out.push((c, at)),
        }
    }
    out
}

/// Rewrites up to `\E` or the end.
fn quoted(
    input: &mut std::iter::Peekable<impl Iterator<Item = (usize, char)>>,
    out: &mut Vec<(char, usize)>,
) {
    let mut is_first = true;
    while let Some((at, c)) = input.next() {
        if c == '\\' && input.next_if(|(_, next)| *next == 'E').is_some() {
            return;
        }
        match c {
            // A first digit could otherwise continue an escape that stands in front of the quote.
            '0'..='9' if is_first => out.extend([('\\', at), ('x', at), ('3', at), (c, at)]),
            c if c.is_ascii_alphanumeric() || !c.is_ascii() => out.push((c, at)),
            c => out.extend([('\\', at), (c, at)]),
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(pattern: &str) -> String {
        without_quotes(pattern).into_iter().map(|(c, _)| c).collect()
    }

    #[test]
    fn quotes_become_escapes() {
        assert_eq!(rewritten(r"a\Qb.c\E+"), r"ab\.c+");
        assert_eq!(rewritten(r"\Q*\E"), r"\*");
        assert_eq!(rewritten(r"\\Qa"), r"\\Qa");
        assert_eq!(rewritten(r"\0\Q12"), r"\0\x312");
        assert_eq!(rewritten(r"\Qa\\E.\Q.\E"), r"a\\.\.");
        assert_eq!(rewritten(r"\Q订 x"), r"订\ x");
        assert_eq!(rewritten(r"a\E"), r"a\E");
        assert_eq!(rewritten("a\\"), "a\\");
    }

    #[test]
    fn quoting_survives_an_end_of_quote_in_the_text() {
        assert_eq!(quote(r"a\Eb"), r"\Qa\E\\E\Qb\E");
        assert_eq!(rewritten(&quote(r"a\Eb")), r"a\\Eb");
    }
}
