//! Addresses of services, and what becomes of them when an upstream is chosen.
//!
//! Everything behind the authority goes to the upstream as it was written: nothing is decoded, encoded, resolved or sorted.

use std::{fmt, net::Ipv6Addr};

use http::uri::{Authority, PathAndQuery, Scheme};

use crate::balance::Upstream;

/// Scheme of an upstream that names none, called by a request that names none.
const DEFAULT_SCHEME: &str = "http";

/// An address whose authority is the name of a service, as `lb://orders/api/hello`.
///
/// `http://orders/…` and `https://orders/…` are read as well, since that is what a client with Ribbon under it was given. A
/// name may hold underscores, which `java.net.URI` takes for no host at all.
///
/// # Examples
/// ```
/// use soul_client::call::ServiceUri;
///
/// let uri = ServiceUri::parse("lb://orders/api/hello?name=a%20b")?;
/// assert_eq!((uri.service(), uri.target()), ("orders", "/api/hello?name=a%20b"));
///
/// let error = ServiceUri::parse("lb://orders:8080/api").unwrap_err();
/// assert!(error.to_string().contains("drop `:8080`"));
/// # Ok::<(), soul_client::call::UriError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceUri<'a> {
    scheme: &'a str,
    service: &'a str,
    target: &'a str,
}

impl<'a> ServiceUri<'a> {
    /// Reads an address.
    ///
    /// # Errors
    /// If it has no scheme, or another than `lb`, `http` or `https`; if the service is missing, has a port or has letters
    /// that no name has; if there are blanks or control characters in it. The text says how to write it.
    pub fn parse(text: &'a str) -> Result<Self, UriError> {
        let parts = Parts::of(text)?;
        let Some(scheme) = parts.scheme else { return Err(no_scheme(text)) };
        if !["lb", "http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
            let remedy = format!("has the scheme `{scheme}`: write `lb://`, `http://` or `https://`");
            return Err(UriError::new(text, remedy));
        }
        let service = parts.host;
        if let Some((name, port)) = service.rsplit_once(':') {
            let remedy =
                format!("has a port at the service `{name}`: its upstreams have theirs, so drop `:{port}`");
            return Err(UriError::new(text, remedy));
        }
        check_name(service).map_err(|remedy| UriError::new(text, remedy))?;
        Ok(Self { scheme, service, target: parts.target })
    }

    /// The scheme, as written.
    #[must_use]
    pub fn scheme(&self) -> &'a str {
        self.scheme
    }

    /// Name of the service.
    #[must_use]
    pub fn service(&self) -> &'a str {
        self.service
    }

    /// Path, query and fragment, as written; may be empty.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.target
    }
}

/// Whether a text can name a service; the error says what it lacks.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("names no service: write it behind `lb://`, as in `lb://orders/api`".to_owned());
    }
    match name.chars().find(|&c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        None => Ok(()),
        Some(letter) => Err(format!(
            "names a service `{name}` with `{letter}` in it: use letters, digits, `-`, `_` and `.`"
        )),
    }
}

/// Gives the address of a request at the upstream that was chosen for it.
///
/// | part | comes from |
/// |---|---|
/// | scheme | the upstream; if it names none ([`Upstream::with_protocol`] with an empty text), the request; for `lb`, `http` |
/// | user info | the request |
/// | host and port | the upstream; IPv6 gets its brackets if it lacks them |
/// | path | the base path of the upstream, if its address has one (`10.0.0.2:80/base`), then that of the request |
/// | query, fragment | the request |
///
/// Path, query and fragment stay byte for byte. A request that is only a path, `/api/hello`, is fine too.
///
/// # Errors
/// If the address of the upstream is empty or has a query, or if there are blanks or control characters in either.
///
/// # Source
/// Ribbon's `LoadBalancerContext#reconstructURIWithServer`; differs: base path, IPv6 and `lb`.
///
/// # Examples
/// ```
/// use soul_client::{balance::Upstream, call::reconstruct_uri};
///
/// let upstream = Upstream::new("192.168.1.101:8088");
/// let uri = reconstruct_uri("http://ServerA/api/sayHello?name=a%2Fb#top", &upstream)?;
/// assert_eq!(uri, "http://192.168.1.101:8088/api/sayHello?name=a%2Fb#top");
/// # Ok::<(), soul_client::call::UriError>(())
/// ```
#[doc(alias = "reconstructURIWithServer")]
pub fn reconstruct_uri(request: &str, upstream: &Upstream) -> Result<String, UriError> {
    let parts = Parts::of(request)?;
    let place = Place::of(upstream)?;
    let scheme = place.scheme.or(parts.scheme.filter(|scheme| !scheme.eq_ignore_ascii_case("lb")));
    let scheme = scheme.unwrap_or(DEFAULT_SCHEME);
    let (open, close) = place.brackets();
    let user = parts.user_info.map_or(String::new(), |user| format!("{user}@"));
    let (host, base, target) = (place.host, place.base, parts.target);
    Ok(format!("{scheme}://{user}{open}{host}{close}{base}{target}"))
}

/// The same for a request of the crate `http`, which knows no fragment.
///
/// # Errors
/// As [`reconstruct_uri`].
pub fn rewrite_uri(request: &http::Uri, upstream: &Upstream) -> Result<http::Uri, UriError> {
    let place = Place::of(upstream)?;
    let wrong = |error: http::Error| UriError::new(&request.to_string(), format!("cannot be sent: {error}"));
    let scheme = match place.scheme {
        Some(scheme) => Scheme::try_from(scheme).map_err(|error| wrong(error.into()))?,
        None => match request.scheme() {
            Some(scheme) if !scheme.as_str().eq_ignore_ascii_case("lb") => scheme.clone(),
            _ => Scheme::HTTP,
        },
    };
    let (open, close) = place.brackets();
    let user = request.authority().and_then(|a| a.as_str().rsplit_once('@')).map(|(user, _)| user);
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    let authority = Authority::try_from(format!("{user}{open}{}{close}", place.host))
        .map_err(|error| wrong(error.into()))?;
    let path = match request.path_and_query() {
        Some(path) if place.base.is_empty() => path.clone(),
        path => {
            let path = path.map_or("", PathAndQuery::as_str);
            PathAndQuery::try_from(format!("{}{path}", place.base)).map_err(|error| wrong(error.into()))?
        }
    };
    http::Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().map_err(wrong)
}

/// The parts of a request's address, none of them changed.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    user_info: Option<&'a str>,
    /// With the port, if there is one.
    host: &'a str,
    /// Path, query and fragment.
    target: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, UriError> {
        check_letters(text).map_err(|remedy| UriError::new(text, remedy))?;
        // A `://` behind the first slash belongs to a path or a query.
        let scheme = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme));
        let Some((scheme, rest)) = scheme else {
            // Behind an authority `@else` and `:80` would belong to it.
            if !(text.is_empty() || text.starts_with(['/', '?', '#'])) {
                return Err(no_scheme(text));
            }
            return Ok(Self { scheme: None, user_info: None, host: "", target: text });
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        // Whoever reads it as browsers do takes it for a slash, and the call would go to what stands before it.
        if authority.contains('\\') {
            return Err(UriError::new(text, "has a `\\` before its path: write `/`"));
        }
        let (user_info, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        Ok(Self { scheme: Some(scheme), user_info, host, target })
    }
}

fn no_scheme(text: &str) -> UriError {
    let (_, path) = without_user(text);
    UriError::new(text, format!("has no scheme: write `lb://{}`", path.trim_start_matches('/')))
}

/// The scheme of an address, and what follows the user info: in between there may be a password.
fn without_user(uri: &str) -> (&str, &str) {
    let (scheme, rest) = uri.split_at(uri.find("://").map_or(0, |at| at + 3));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let user = rest[..end].rfind('@').map_or(0, |at| at + 1);
    (scheme, &rest[user..])
}

fn is_scheme(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn check_letters(text: &str) -> Result<(), String> {
    match text.chars().find(|c| c.is_whitespace() || c.is_control()) {
        None => Ok(()),
        Some(' ') => Err("has a blank in it: write `%20`".to_owned()),
        Some(letter) => Err(format!("has the character {letter:?} in it: percent-encode it")),
    }
}

/// Where an upstream is.
struct Place<'a> {
    scheme: Option<&'a str>,
    /// With the port.
    host: &'a str,
    /// Without a slash at its end.
    base: &'a str,
}

impl<'a> Place<'a> {
    fn of(upstream: &'a Upstream) -> Result<Self, UriError> {
        let address = upstream.address();
        let wrong = |remedy: String| UriError::new(address, remedy);
        check_letters(address).map_err(wrong)?;
        let end = address.find(['/', '?', '#']).unwrap_or(address.len());
        let (host, base) = address.split_at(end);
        if host.is_empty() {
            return Err(wrong("is no address of an upstream: write `host:port`".to_owned()));
        }
        if base.contains(['?', '#']) {
            let remedy = "has a query: the address of an upstream is `host:port`, or that with a path";
            return Err(wrong(remedy.to_owned()));
        }
        let scheme = Some(upstream.protocol().trim_end_matches("://")).filter(|scheme| !scheme.is_empty());
        Ok(Self { scheme, host, base: base.trim_end_matches('/') })
    }

    /// What stands around the host: a bare IPv6 address, which then has no port, lacks its brackets.
    fn brackets(&self) -> (&'static str, &'static str) {
        if self.host.parse::<Ipv6Addr>().is_ok() { ("[", "]") } else { ("", "") }
    }
}

/// An address that cannot be called, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriError {
    uri: String,
    remedy: String,
}

impl UriError {
    pub(crate) fn new(uri: &str, remedy: impl Into<String>) -> Self {
        Self { uri: uri.to_owned(), remedy: remedy.into() }
    }

    /// The address, as it was given.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = without_user(&self.uri);
        write!(f, "`{scheme}{rest}` {}", self.remedy)
    }
}

impl std::error::Error for UriError {}

#[cfg(test)]
mod tests;
