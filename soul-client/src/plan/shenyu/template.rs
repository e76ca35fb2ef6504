//! From the path of a router to the pattern of a rule.

/// Joins pieces with exactly one slash between them and one in front. A slash at the end stays.
pub(in crate::plan) fn join(pieces: &[&str]) -> String {
    let mut path = String::new();
    for segment in pieces.iter().flat_map(|piece| piece.split('/')).filter(|segment| !segment.is_empty()) {
        path.push('/');
        path.push_str(segment);
    }
    if pieces.last().is_some_and(|last| last.ends_with('/')) {
        path.push('/');
    }
    path
}

/// Turns variables into wildcards; the error says what is wrong with the path, as the end of a sentence.
///
/// A variable (`{id}`, `:id`) becomes `*`, a rest (`{*rest}`, `*rest`) becomes `**`, which every release matches
/// alike. An admin that is sent `{id}` turns it into `/**` itself, which with two variables makes a pattern that
/// the gateway chokes on for *every* request of the service (ShenYu specification, section 1.9). What is a
/// wildcard already stays as it is.
pub(in crate::plan) fn pattern(path: &str) -> Result<String, String> {
    let segments: Vec<_> = path.split('/').collect();
    let last = segments.len() - 1;
    let mut written = Vec::with_capacity(segments.len());
    for (number, segment) in segments.into_iter().enumerate() {
        written.push(match rest(segment) {
            Some(_) if number == last => "**".to_owned(),
            Some(name) if segment.starts_with('{') => {
                return Err(format!("has `{{*{name}}}` before its end: a rest can only be the last segment"));
            }
            _ => one(segment)?,
        });
    }
    let doubles = written.iter().filter(|segment| *segment == "**").count();
    if doubles > 1 && written.last().is_some_and(|last| last == "**") {
        return Err(
            "has `**` before its end and at its end: a gateway of ShenYu then fails every request of the \
                    service, so keep one of them"
                .to_owned(),
        );
    }
    Ok(written.join("/"))
}

/// `:id`, `{*rest}` or `*rest`, which mean what they mean to routers only.
pub(in crate::plan) fn is_foreign_to_soul(segment: &str) -> bool {
    segment.strip_prefix(':').is_some_and(is_name) || rest(segment).is_some()
}

/// The name in `{*rest}` or `*rest`.
fn rest(segment: &str) -> Option<&str> {
    let inner = segment.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(segment);
    inner.strip_prefix('*').filter(|name| is_name(name))
}

fn one(segment: &str) -> Result<String, String> {
    if segment.strip_prefix(':').is_some_and(is_name) {
        return Ok("*".to_owned());
    }
    if segment.contains("{{") || segment.contains("}}") {
        return Err(
            "has a literal brace, which ShenYu takes for a variable: write `*` in its place".to_owned()
        );
    }
    let unbalanced = || "has a brace without its partner: write a variable as `{name}`".to_owned();
    let mut written = String::new();
    let mut left = segment;
    while let Some((before, variable)) = left.split_once('{') {
        let (name, after) = variable.split_once('}').ok_or_else(unbalanced)?;
        if before.contains('}') || name.contains('{') {
            return Err(unbalanced());
        }
        written.push_str(before);
        written.push('*');
        left = after;
    }
    if left.contains('}') {
        return Err(unbalanced());
    }
    written.push_str(left);
    Ok(written)
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// Percent-encodes what a request line cannot carry; what is encoded already stays.
pub(super) fn encode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut written = String::with_capacity(path.len());
    for (position, &byte) in bytes.iter().enumerate() {
        let encoded = byte == b'%'
            && bytes.get(position + 1..position + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        if encoded || byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_with_one_slash() {
        for (pieces, joined) in [
            (&["/orders", "", "/list"][..], "/orders/list"),
            (&["/orders", "/item/", "/list"], "/orders/item/list"),
            (&["orders", "item", "list"], "/orders/item/list"),
            (&["/orders/", "//list//new"], "/orders/list/new"),
            (&["/orders", ""], "/orders"),
            (&["/orders", "", "/"], "/orders/"),
            (&["/orders", "/list/"], "/orders/list/"),
            (&[""], ""),
        ] {
            assert_eq!(join(pieces), joined, "{pieces:?}");
        }
    }

    #[test]
    fn variables_become_wildcards() {
        for (path, expected) in [
            ("/a/list", "/a/list"),
            ("/a/{id}", "/a/*"),
            ("/a/:id", "/a/*"),
            ("/a/{id}/b/{name}", "/a/*/b/*"),
            ("/a/:id/b", "/a/*/b"),
            ("/a/{*rest}", "/a/**"),
            ("/a/*rest", "/a/**"),
            ("/a/{x}/{*rest}", "/a/*/**"),
            ("/a/{id:[0-9]+}", "/a/*"),
            ("/a/file-{id}.{ext}", "/a/file-*.*"),
            ("/a/{id}/", "/a/*/"),
            ("/a/*", "/a/*"),
            ("/a/**", "/a/**"),
            ("/a/**/b", "/a/**/b"),
            ("/a/*.html", "/a/*.html"),
            ("/a/*x/b", "/a/*x/b"),
            ("/a/b:c", "/a/b:c"),
            ("/a/订单/{id}", "/a/订单/*"),
        ] {
            assert_eq!(pattern(path).as_deref(), Ok(expected), "{path}");
        }
        for (path, part) in [
            ("/a/{*rest}/b", "only be the last"),
            ("/a/{{b}}", "literal brace"),
            ("/a/{b", "without its partner"),
            ("/a/b}", "without its partner"),
            ("/a/}b{c}", "without its partner"),
            ("/a/**/b/**", "fails every request"),
            ("/a/**/{*rest}", "fails every request"),
        ] {
            assert!(pattern(path).is_err_and(|error| error.contains(part)), "{path}: {:?}", pattern(path));
        }
    }

    #[test]
    fn paths_are_encoded_once() {
        for (path, encoded) in [
            ("/a/list/*", "/a/list/*"),
            ("/a b", "/a%20b"),
            ("/a%20b", "/a%20b"),
            ("/100%", "/100%25"),
            ("/a%2", "/a%252"),
            ("/订", "/%E8%AE%A2"),
            ("/a[1]", "/a%5B1%5D"),
        ] {
            assert_eq!(encode(path), encoded);
        }
    }
}
