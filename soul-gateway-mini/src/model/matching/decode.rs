//! Decoding as a Java gateway does it: paths by `URI.getPath`, query parts by `URLDecoder`.
//!
//! A `%` that no two hexadecimal digits follow stays as it is. Java refuses such a request before it
//! matches anything; so does our gateway's HTTP parser or nothing does, and matching must not fail on it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The path as conditions see it: percent-decoded, `+` kept; bytes that are not UTF-8 become U+FFFD.
pub(crate) fn path(raw: &str) -> Cow<'_, str> {
    if raw.contains('%') { percent_decode_str(raw).decode_utf8_lossy() } else { Cow::Borrowed(raw) }
}

/// A name or value of a query: percent-decoded, with `+` for a space.
pub(crate) fn form(raw: &str) -> Cow<'_, str> {
    if !raw.contains('+') {
        return path(raw);
    }
    let spaced = raw.replace('+', " ");
    Cow::Owned(path(&spaced).into_owned())
}

/// One byte after decoding and the position behind it in the raw text.
///
/// `None` at the end of the text.
pub(crate) fn byte_at(raw: &str, at: usize) -> Option<(u8, usize)> {
    let bytes = raw.as_bytes();
    let first = *bytes.get(at)?;
    if first == b'%'
        && let (Some(high), Some(low)) = (hex_digit(bytes.get(at + 1)), hex_digit(bytes.get(at + 2)))
    {
        return Some((high << 4 | low, at + 3));
    }
    Some((first, at + 1))
}

fn hex_digit(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

/// The first value of query parameter `name`, as Spring reads a query.
///
/// A parameter without `=` has no value, one with nothing behind `=` has the empty value; a part that
/// starts with `=` loses it.
pub(crate) fn query_value<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    query_parts(query).find(|(key, _)| form(key) == name)?.1.map(form)
}

/// Every parameter that has a value, decoded.
pub(crate) fn query_pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query_parts(query).filter_map(|(key, value)| Some((form(key), form(value?))))
}

fn query_parts(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let parts = query.split('&').map(|part| part.trim_start_matches('=')).filter(|part| !part.is_empty());
    parts.map(|part| part.split_once('=').map_or((part, None), |(key, value)| (key, Some(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_plus_and_bad_escapes() {
        assert_eq!(path("/a+b%20c"), "/a+b c");
        assert_eq!(path("/%E8%AE%A2"), "/订");
        assert_eq!(path("/%E8%AE"), "/\u{fffd}");
        assert_eq!(path("/100%/%zz/%4"), "/100%/%zz/%4");
        assert!(matches!(path("/plain"), Cow::Borrowed("/plain")));
    }

    #[test]
    fn the_first_value_of_a_parameter_counts() {
        let query = "a=1&b=&c&=x&a=2&d=%26%3D&e=x+y&f=g=h&%61%2B=p";
        let of = |name| query_value(query, name);
        assert_eq!(of("a").as_deref(), Some("1"));
        assert_eq!(of("b").as_deref(), Some(""));
        assert_eq!(of("c"), None);
        assert_eq!(of("x"), None);
        assert_eq!(of(""), None);
        assert_eq!(of("d").as_deref(), Some("&="));
        assert_eq!(of("e").as_deref(), Some("x y"));
        assert_eq!(of("f").as_deref(), Some("g=h"));
        assert_eq!(of("a+").as_deref(), Some("p"));
        assert_eq!(of("A"), None);
        // The first occurrence decides even when it has no value.
        assert_eq!(query_value("c&c=1", "c"), None);
    }

    #[test]
    fn bytes_are_decoded_in_place() {
        assert_eq!(byte_at("a%2Fb", 0), Some((b'a', 1)));
        assert_eq!(byte_at("a%2Fb", 1), Some((b'/', 4)));
        assert_eq!(byte_at("a%2", 1), Some((b'%', 2)));
        assert_eq!(byte_at("a", 1), None);
    }
}
