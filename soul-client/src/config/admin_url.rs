//! The address of an admin, checked.

use std::{fmt, net::IpAddr};

/// Scheme, host, port and perhaps a path; no slash at the end, nothing secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AdminUrl {
    text: String,
    host: String,
    port: u16,
}

/// An address as somebody wrote it, before it is checked. Its `Debug` shows no user and password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Written(pub(super) String);

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&shown(&self.0), f)
    }
}

/// What of an address may stand in a message: what could be a user and a password is taken out, however odd the rest is.
fn shown(text: &str) -> String {
    let start = text.find("://").map_or(0, |scheme| scheme + 3);
    match text.rfind('@').filter(|&at| at >= start) {
        Some(at) => format!("{}***{}", &text[..start], &text[at..]),
        None => text.to_owned(),
    }
}

impl AdminUrl {
    /// Reads an address; the error says what would be right.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let shown = shown(text);
        if !text.contains("://") {
            return Err(format!("`{shown}` has no scheme: write `http://{shown}`"));
        }
        let url = reqwest::Url::parse(text).map_err(|error| format!("`{shown}` is no address: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            // Not repeated here: it would end up in a log.
            let host = url.host_str().unwrap_or_default();
            return Err(format!(
                "the address of `{host}` carries a user or password, which Soul has no use for"
            ));
        }
        match url.scheme() {
            "http" => {}
            "https" if cfg!(feature = "rustls") => {}
            "https" => {
                return Err(format!(
                    "`{text}` needs TLS, which this program was built without: turn the feature `rustls` of \
                     `soul-client` on"
                ));
            }
            scheme => return Err(format!("`{text}` has the scheme `{scheme}`, expected `http` or `https`")),
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!(
                "`{text}` has a query or fragment: write the address only, up to the port or path"
            ));
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("`{text}` names no host"));
        };
        let (host, port) = (host.trim_start_matches('[').trim_end_matches(']').to_owned(), port);
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), host, port })
    }

    /// The address, to which an endpoint is appended.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Name or IP, without brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether it is written as an address of this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }

    /// The port; that of the scheme if the address does not say.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Debug for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, url, host, port) in [
            ("http://localhost:9095", "http://localhost:9095", "localhost", 9095),
            ("http://localhost:9095/", "http://localhost:9095", "localhost", 9095),
            ("http://admin", "http://admin", "admin", 80),
            #[cfg(feature = "rustls")]
            ("https://admin", "https://admin", "admin", 443),
            ("http://10.0.0.7:9095/soul//", "http://10.0.0.7:9095/soul", "10.0.0.7", 9095),
            ("http://[::1]:9095", "http://[::1]:9095", "::1", 9095),
            ("HTTP://Admin:9095", "http://admin:9095", "admin", 9095),
        ] {
            let parsed = AdminUrl::parse(text).unwrap();
            assert_eq!((parsed.as_str(), parsed.host(), parsed.port()), (url, host, port), "{text}");
        }
    }

    #[test]
    fn refused_with_the_remedy() {
        for (text, part) in [
            ("localhost:9095", "write `http://localhost:9095`"),
            ("ftp://admin", "scheme `ftp`, expected `http` or `https`"),
            ("http://", "is no address"),
            ("http://admin:99999", "is no address"),
            ("http://admin?x=1", "query or fragment"),
        ] {
            let error = AdminUrl::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn password_is_not_repeated_however_odd_the_address_is() {
        for text in [
            "http://root:123456@admin:9095",
            "root:123456@admin:9095",
            "http://root:123456@admin:99999",
            "ftp://root:12@3456@admin?x#y",
            "http://root:123456@",
        ] {
            let error = AdminUrl::parse(text).unwrap_err();
            let written = format!("{:?}", Written(format!("http://a,{text}")));
            for part in ["root", "1234", "3456"] {
                assert!(!error.contains(part) && !written.contains(part), "{text}: {error} {written}");
            }
        }
        assert_eq!(format!("{:?}", Written("http://admin:9095".into())), "\"http://admin:9095\"");
        let error = AdminUrl::parse("http://root:123456@admin:9095").unwrap_err();
        assert!(error.contains("admin") && !error.contains("123456"), "{error}");
    }
}
