//! Addresses: to listen on, of an admin, of proxies.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use url::Url;

use super::BadValue;
use crate::{config::layer::Written, gateway::Network};

/// Address and port to listen on; port 0 takes a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct ListenAddr(pub(in crate::config) SocketAddr);

impl FromStr for ListenAddr {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse().map(Self).map_err(|_| BadValue(format!("expected `IP:PORT`, {}", address_hint(text))))
    }
}

/// What is wrong with an address that is no `IP:PORT`: the likeliest slip, or two examples.
fn address_hint(text: &str) -> String {
    let examples = "such as `127.0.0.1:9095`, `0.0.0.0:0` or `[::1]:9095`";
    if text.contains("://") {
        return format!("without a scheme, {examples}");
    }
    if text.parse::<IpAddr>().is_ok() {
        return format!("the port is missing; {examples}");
    }
    match text.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_err() && !host.is_empty() => {
            format!("where the port is 0 (any free one) to 65535; {examples}")
        }
        Some(("", port)) => format!("the address is missing; write `0.0.0.0:{port}` for every interface"),
        Some(("localhost", port)) => format!("not a name; write `127.0.0.1:{port}`"),
        _ => examples.to_owned(),
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(ListenAddr, "a string `IP:PORT`, such as \"127.0.0.1:9095\"");

impl Written<SocketAddr> for ListenAddr {
    fn write(field: &SocketAddr) -> Self {
        Self(*field)
    }

    fn read(self) -> SocketAddr {
        self.0
    }
}

/// Base address of an admin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct AdminUrl(pub(in crate::config) Url);

impl FromStr for AdminUrl {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let text = text.trim();
        if !text.contains("://") {
            return Err(BadValue(format!("the scheme is missing; write `http://{text}`")));
        }
        let url = Url::parse(text).map_err(|e| BadValue(format!("{e}; {URL_EXAMPLE}")))?;
        if url.scheme() != "http" {
            return Err(BadValue(format!("scheme `{}` is not supported; {URL_EXAMPLE}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            // The address stands in logs and in `/status`, and nobody would be logged in by it.
            return Err(BadValue(format!(
                "a gateway logs in nowhere, leave out user and password; {URL_EXAMPLE}"
            )));
        }
        if url.host().is_none() || url.query().is_some() || url.fragment().is_some() {
            return Err(BadValue::new(URL_EXAMPLE));
        }
        Ok(Self(url))
    }
}

const URL_EXAMPLE: &str = "expected `http://HOST:PORT`, such as `http://10.0.0.7:9095`";

impl fmt::Display for AdminUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

text_value!(AdminUrl, "a string `http://HOST:PORT`, such as \"http://10.0.0.7:9095\"");

impl Written<Url> for AdminUrl {
    fn write(field: &Url) -> Self {
        Self(field.clone())
    }

    fn read(self) -> Url {
        self.0
    }
}

/// Proxies that are trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct ProxyNetwork(Network);

impl FromStr for ProxyNetwork {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.parse()
            .map(Self)
            .map_err(|_| BadValue::new("expected an address or a range such as `10.0.0.0/8`"))
    }
}

impl fmt::Display for ProxyNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Written<Network> for ProxyNetwork {
    fn write(field: &Network) -> Self {
        Self(*field)
    }

    fn read(self) -> Network {
        self.0
    }
}

text_value!(ProxyNetwork, "a string, such as \"10.0.0.0/8\"");

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;

    #[test]
    fn listen_address_is_ip_and_port() {
        for text in ["127.0.0.1:9095", "0.0.0.0:0", "[::1]:65535"] {
            assert_eq!(text.parse::<ListenAddr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn listen_address_refusals_name_the_slip() {
        for (text, hint) in [
            ("127.0.0.1", "port is missing"),
            ("127.0.0.1:65536", "0 (any free one) to 65535"),
            ("127.0.0.1:-1", "0 (any free one) to 65535"),
            (":9095", "write `0.0.0.0:9095`"),
            ("localhost:9095", "write `127.0.0.1:9095`"),
            ("http://127.0.0.1:9095", "without a scheme"),
            ("", "such as `127.0.0.1:9095`"),
        ] {
            let message = refusal::<ListenAddr>(text);
            assert!(message.contains(hint), "`{text}`: {message}");
        }
    }

    #[test]
    fn admin_address_needs_scheme_and_host() {
        assert_eq!("http://10.0.0.7:9095/".parse::<AdminUrl>().unwrap().to_string(), "http://10.0.0.7:9095");
        assert!(refusal::<AdminUrl>("10.0.0.7:9095").contains("write `http://10.0.0.7:9095`"));
        for text in
            ["https://10.0.0.7:9095", "ftp://x", "http://", "http://a:99999", "http://a/?x=1", "http://a/#x"]
        {
            assert!(refusal::<AdminUrl>(text).contains("expected `http://HOST:PORT`"), "{text}");
        }
        for text in ["http://root:geheim@a:9095", "http://root@a:9095", "http://:geheim@a:9095"] {
            assert!(refusal::<AdminUrl>(text).contains("leave out user and password"), "{text}");
        }
    }
}
