//! The way of a request: how far it may still go, and through whom it went (RFC 9110, section 7.6).

use http::{HeaderValue, Method, Version, header::MAX_FORWARDS, request};

use super::framing::decimal;

/// How many more hops a request may go, if it is one that counts them; what is no number is left alone.
pub(in crate::gateway) fn left(head: &request::Parts) -> Option<u64> {
    if !matches!(head.method, Method::OPTIONS | Method::TRACE) {
        return None;
    }
    let mut values = head.headers.get_all(MAX_FORWARDS).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => decimal(value.as_bytes()),
        _ => None,
    }
}

/// What stands in `Via` for this gateway, by what the request came in.
#[derive(Debug)]
pub(super) struct Via {
    http_1_0: HeaderValue,
    http_1_1: HeaderValue,
    http_2: HeaderValue,
}

impl Via {
    /// - `name`: by which it is known; `None` if it cannot stand there.
    pub(super) fn new(name: &str) -> Option<Self> {
        let by = |version: &str| HeaderValue::from_str(&format!("{version} {name}")).ok();
        Some(Self { http_1_0: by("1.0")?, http_1_1: by("1.1")?, http_2: by("2")? })
    }

    pub(super) fn of(&self, version: Version) -> &HeaderValue {
        match version {
            Version::HTTP_10 => &self.http_1_0,
            Version::HTTP_2 => &self.http_2,
            _ => &self.http_1_1,
        }
    }
}

/// Whether a name can stand in `Via`: a token, which a port may follow.
pub(in crate::gateway) fn is_name(name: &str) -> bool {
    let (name, port) = name.split_once(':').unwrap_or((name, "0"));
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token) && port.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn only_two_methods_count_their_hops() {
        let hops = |method: &str, values: &[&str]| {
            let mut request = Request::builder().method(method);
            for value in values {
                request = request.header(MAX_FORWARDS, *value);
            }
            left(&request.body(()).unwrap().into_parts().0)
        };
        assert_eq!((hops("OPTIONS", &["3"]), hops("TRACE", &["0"])), (Some(3), Some(0)));
        assert_eq!((hops("GET", &["3"]), hops("OPTIONS", &[])), (None, None));
        for values in [&["-1"][..], &["x"], &[""], &["1", "2"], &["99999999999999999999"]] {
            assert_eq!(hops("OPTIONS", values), None, "{values:?}");
        }
    }

    #[test]
    fn names_are_tokens() {
        for name in ["gateway", "shop.example:80", "a_b-c"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ":80", "a b", "a,b", "a:b", "a (b)", "ü", "a\r\nx: y"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
