//! The address of an upstream, read so that a connection can be made to it.

use std::{fmt, net::Ipv6Addr, str::FromStr};

/// Host and port of an upstream, as people write them: `10.0.0.2:8188`, `orders.internal:8188`, `[::1]:8188`, each
/// with `http://` or `https://` in front if they like.
///
/// # Examples
/// ```
/// use soul_gateway_mini::model::Target;
///
/// let target: Target = "http://[::1]:8188".parse()?;
/// assert_eq!((target.host(), target.port()), ("::1", 8188));
/// assert_eq!(target.to_string(), "[::1]:8188");
/// assert!("10.0.0.2:".parse::<Target>().is_err());
/// # Ok::<(), soul_gateway_mini::model::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    host: String,
    port: u16,
}

/// Why a text is not the address of an upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing is there.
    #[error("the address is blank, expected `host:port`")]
    Blank,
    /// No name or number of a host.
    #[error("`{0}` is not a host name or an IP address")]
    Host(String),
    /// An IPv6 address that cannot be told from its port.
    #[error("`{0}` has more than one colon, write an IPv6 address in brackets: `[::1]:8188`")]
    Brackets(String),
    /// No number from 1 to 65535.
    #[error("`{0}` is not a port, expected 1 to 65535")]
    Port(String),
    /// More than an address.
    #[error("`{0}` goes on behind the port, expected `host:port`")]
    Path(String),
}

impl Target {
    /// The host: a name, an IPv4 address, or an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 80 or, behind `https://`, 443 where the text has none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, default_port) = without_scheme(text.trim());
        if rest.is_empty() {
            return Err(TargetError::Blank);
        }
        if rest.contains(['/', '?', '#']) {
            return Err(TargetError::Path(text.to_owned()));
        }
        let (host, port) = match rest.strip_prefix('[') {
            Some(bracketed) => ipv6(bracketed, text)?,
            None => name(rest, text)?,
        };
        let port = port.map_or(Ok(default_port), parse_port)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

fn without_scheme(text: &str) -> (&str, u16) {
    for (scheme, port) in [("http://", 80), ("https://", 443)] {
        if let Some((head, rest)) = text.split_at_checked(scheme.len())
            && head.eq_ignore_ascii_case(scheme)
        {
            return (rest, port);
        }
    }
    (text, 80)
}

fn ipv6<'a>(bracketed: &'a str, text: &str) -> Result<(&'a str, Option<&'a str>), TargetError> {
    let bad = || TargetError::Host(text.to_owned());
    let (host, rest) = bracketed.split_once(']').ok_or_else(bad)?;
    host.parse::<Ipv6Addr>().map_err(|_| bad())?;
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(bad()),
    }
}

fn name<'a>(rest: &'a str, text: &str) -> Result<(&'a str, Option<&'a str>), TargetError> {
    let (host, port) = match rest.split_once(':') {
        Some((_, port)) if port.contains(':') => return Err(TargetError::Brackets(text.to_owned())),
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || !host.chars().all(allowed) {
        return Err(TargetError::Host(text.to_owned()));
    }
    Ok((host, port))
}

fn parse_port(text: &str) -> Result<u16, TargetError> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(TargetError::Port(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_way_to_write_an_address_is_read() {
        for (text, host, port) in [
            ("10.0.0.2:8188", "10.0.0.2", 8188),
            (" 10.0.0.2:8188 ", "10.0.0.2", 8188),
            ("http://10.0.0.2:8188", "10.0.0.2", 8188),
            ("HTTPS://10.0.0.2:8188", "10.0.0.2", 8188),
            ("localhost:1", "localhost", 1),
            ("my_service.ns:65535", "my_service.ns", 65535),
            ("example.com", "example.com", 80),
            ("https://example.com", "example.com", 443),
            ("[::1]:8188", "::1", 8188),
            ("http://[fe80::1]", "fe80::1", 80),
            ("10.0.0.2:08188", "10.0.0.2", 8188),
        ] {
            let target: Target = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!((target.host(), target.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_reason() {
        use TargetError::{Blank, Brackets, Host, Path, Port};

        for (text, reason) in [
            ("", Blank),
            ("http://", Blank),
            ("10.0.0.2:", Port(String::new())),
            ("10.0.0.2:0", Port("0".into())),
            ("10.0.0.2:65536", Port("65536".into())),
            ("10.0.0.2:+80", Port("+80".into())),
            ("10.0.0.2:8188/x", Path("10.0.0.2:8188/x".into())),
            ("::1:8188", Brackets("::1:8188".into())),
            ("[::1", Host("[::1".into())),
            ("[x]:1", Host("[x]:1".into())),
            (":8188", Host(":8188".into())),
            ("a b:1", Host("a b:1".into())),
            ("ws://a:1", Path("ws://a:1".into())),
        ] {
            assert_eq!(text.parse::<Target>(), Err(reason), "{text}");
        }
    }
}
