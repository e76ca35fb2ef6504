//! What conditions see of a request.

use std::{borrow::Cow, cell::OnceCell, fmt, net::IpAddr};

use http::{HeaderMap, HeaderName, HeaderValue};

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
    host: OnceCell<Box<str>>,
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
            host: OnceCell::new(),
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

    /// The address of the caller as text in Java's form, or the name that `X-Forwarded-For` gives.
    #[must_use]
    pub fn host(&self) -> &str {
        self.host.get_or_init(|| match self.forwarded() {
            Some(text) => parse_ip(&text).map_or_else(|| text.into(), |ip| java_ip(ip).into()),
            None => java_ip(self.peer).into(),
        })
    }

    /// The address of the caller as text in Java's form.
    ///
    /// `None` when `X-Forwarded-For` gives a name: Java would ask the DNS for it while matching.
    #[must_use]
    pub fn ip(&self) -> Option<&str> {
        Some(self.host()).filter(|host| parse_ip(host).is_some())
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

/// The text of an address as Java writes it: IPv6 in eight groups, none left out.
fn java_ip(ip: IpAddr) -> String {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.segments().map(|group| format!("{group:x}")).join(":"),
    }
}
