//! What conditions see of a request.

use std::{borrow::Cow, cell::OnceCell, fmt, net::IpAddr};

use http::{HeaderMap, HeaderName, HeaderValue};
use soul_client::balance::{JavaIpText, java_ip_text};

use super::decode;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Whose address `host` and `ip` conditions see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressResolver {
    /// The socket peer: Soul's default.
    #[default]
    Peer,
    /// The last element of `X-Forwarded-For` when that header occurs once, else the socket peer: Spring's
    /// `ForwardedRemoteAddressResolver` with one trusted hop. Only for a gateway behind a proxy that sets
    /// the header, since anyone else can write it too.
    Forwarded,
}

/// A field of the request's context, as a `post` condition finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// Its text.
    Text(Cow<'a, str>),
    /// It is there and not a text, for example a time: an error.
    NotText,
    /// There is no such field, or it is null.
    Absent,
}

/// Where `post` conditions look: the fields of Soul's request context, by their Java names.
pub trait ContextFields {
    /// The field `name`.
    fn field(&self, name: &str) -> Field<'_>;
}

/// A request as conditions see it: borrowed, and decoded at most once, when first asked for.
///
/// To make one costs nothing; asking for the path allocates only when it holds a `%`.
pub struct RequestView<'a> {
    method: &'a str,
    raw_path: &'a str,
    raw_query: Option<&'a str>,
    headers: &'a HeaderMap,
    peer: IpAddr,
    resolver: AddressResolver,
    context: Option<&'a (dyn ContextFields + Sync)>,
    path: OnceCell<Cow<'a, str>>,
    caller: OnceCell<Caller>,
}

/// Where the request comes from.
enum Caller {
    Address(JavaIpText),
    /// A name in `X-Forwarded-For`.
    Name(Box<str>),
}

impl fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestView")
            .field("method", &self.method)
            .field("raw_path", &self.raw_path)
            .field("raw_query", &self.raw_query)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl<'a> RequestView<'a> {
    /// A request by its parts.
    ///
    /// # Shape
    /// - `method`: as sent, upper case for the standard ones.
    /// - `raw_path`, `raw_query`: as sent; the query without its `?`.
    /// - `peer`: address of the socket peer.
    #[must_use]
    pub fn new(
        method: &'a str,
        raw_path: &'a str,
        raw_query: Option<&'a str>,
        headers: &'a HeaderMap,
        peer: IpAddr,
    ) -> Self {
        Self {
            method,
            raw_path,
            raw_query,
            headers,
            peer,
            resolver: AddressResolver::default(),
            context: None,
            path: OnceCell::new(),
            caller: OnceCell::new(),
        }
    }

    /// Sets whose address counts.
    #[must_use]
    pub fn with_resolver(mut self, resolver: AddressResolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// Sets where `post` conditions look; without it they find nothing.
    #[must_use]
    pub fn with_context(mut self, context: &'a (dyn ContextFields + Sync)) -> Self {
        self.context = Some(context);
        self
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &'a str {
        self.method
    }

    /// The path as sent.
    #[must_use]
    pub fn raw_path(&self) -> &'a str {
        self.raw_path
    }

    /// The decoded path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.get_or_init(|| decode::path(self.raw_path))
    }

    /// The first value of a query parameter; `None` when it is absent or has no `=`.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<Cow<'a, str>> {
        decode::query_value(self.raw_query?, name)
    }

    /// The first value of a header. Bytes that are not ASCII count as Latin-1, as in Netty.
    #[must_use]
    pub fn header(&self, name: &HeaderName) -> Option<Cow<'a, str>> {
        self.headers.get(name).map(header_text)
    }

    /// Every header with each of its values.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&'a HeaderName, Cow<'a, str>)> {
        self.headers.iter().map(|(name, value)| (name, header_text(value)))
    }

    /// Every query parameter that has a value.
    pub(super) fn query_pairs(&self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        decode::query_pairs(self.raw_query.unwrap_or_default())
    }

    /// The address of the caller as text in Java's form, or the name that `X-Forwarded-For` gives.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.caller() {
            Caller::Address(text) => text,
            Caller::Name(name) => name,
        }
    }

    /// The address of the caller as text in Java's form.
    ///
    /// `None` when `X-Forwarded-For` gives a name: Java would ask the DNS for it while matching.
    #[must_use]
    pub fn ip(&self) -> Option<&str> {
        match self.caller() {
            Caller::Address(text) => Some(text),
            Caller::Name(_) => None,
        }
    }

    fn caller(&self) -> &Caller {
        self.caller.get_or_init(|| match self.forwarded() {
            None => Caller::Address(java_ip_text(self.peer)),
            Some(text) => match parse_ip(&text) {
                Some(ip) => Caller::Address(java_ip_text(ip)),
                None => Caller::Name(text.into()),
            },
        })
    }

    /// A field of the context.
    #[must_use]
    pub fn context_field(&self, name: &str) -> Field<'a> {
        self.context.map_or(Field::Absent, |context| context.field(name))
    }

    /// The last element of the one `X-Forwarded-For`, if that is what counts.
    fn forwarded(&self) -> Option<String> {
        if self.resolver == AddressResolver::Peer {
            return None;
        }
        let mut lines = self.headers.get_all(X_FORWARDED_FOR).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return None };
        let line = header_text(line);
        // Java's split drops empty elements at the end.
        let last = line.split(", ").filter(|part| !part.is_empty()).last()?;
        (!last.trim().is_empty()).then(|| last.to_owned())
    }
}

fn header_text(value: &HeaderValue) -> Cow<'_, str> {
    match value.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.as_bytes().iter().copied().map(char::from).collect()),
    }
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<'a>(headers: &'a HeaderMap, resolver: AddressResolver) -> RequestView<'a> {
        let peer = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        RequestView::new("GET", "/a%20b", Some("x=1"), headers, peer).with_resolver(resolver)
    }

    fn caller(lines: &[&str], resolver: AddressResolver) -> (String, Option<String>) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(X_FORWARDED_FOR, line.parse().unwrap());
        }
        let view = view(&headers, resolver);
        (view.host().to_owned(), view.ip().map(str::to_owned))
    }

    #[test]
    fn the_caller_is_the_peer_unless_forwarding_is_trusted() {
        let peer = || ("0:0:0:0:0:0:0:1".to_owned(), Some("0:0:0:0:0:0:0:1".to_owned()));
        assert_eq!(caller(&["203.0.113.7"], AddressResolver::Peer), peer());
        let ip = |text: &str| (text.to_owned(), Some(text.to_owned()));
        for (lines, expected) in [
            (vec!["203.0.113.7"], ip("203.0.113.7")),
            (vec!["10.9.9.9, 203.0.113.7"], ip("203.0.113.7")),
            (vec!["10.9.9.9, "], ip("10.9.9.9")),
            (vec!["2001:db8::5"], ip("2001:db8:0:0:0:0:0:5")),
            (vec!["[2001:db8::5]"], ip("2001:db8:0:0:0:0:0:5")),
            (vec!["client.example"], ("client.example".to_owned(), None)),
            (vec!["10.9.9.9,203.0.113.7"], ("10.9.9.9,203.0.113.7".to_owned(), None)),
            (vec!["203.0.113.7", "1.1.1.1"], peer()),
            (vec![""], peer()),
            (vec![], peer()),
        ] {
            assert_eq!(caller(&lines, AddressResolver::Forwarded), expected, "{lines:?}");
        }
    }

    #[test]
    fn header_bytes_beyond_ascii_are_latin_1() {
        let mut headers = HeaderMap::new();
        headers.insert("x-a", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        let view = view(&headers, AddressResolver::Peer);
        assert_eq!(view.header(&HeaderName::from_static("x-a")).as_deref(), Some("café"));
        assert_eq!(view.header(&HeaderName::from_static("x-b")), None);
    }

    #[test]
    fn only_an_escaped_path_is_copied() {
        let headers = HeaderMap::new();
        let escaped = view(&headers, AddressResolver::Peer);
        assert_eq!((escaped.path(), escaped.raw_path()), ("/a b", "/a%20b"));
        let raw_path = "/plain";
        let plain = RequestView::new("GET", raw_path, None, &headers, [127, 0, 0, 1].into());
        assert!(std::ptr::eq(plain.path(), raw_path));
        assert_eq!((plain.query("x"), escaped.query("x").as_deref()), (None, Some("1")));
    }
}
