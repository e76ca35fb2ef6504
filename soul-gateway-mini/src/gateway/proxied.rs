//! Who calls, where others stand in between: proxies that are trusted to say for whom they ask, and the PROXY protocol, in
//! which a load balancer says it before anything else.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use http::{HeaderMap, HeaderName};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A range of addresses, such as `10.0.0.0/8` or `::1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// With all other bits 0. Those of version 4 stand as they are mapped into version 6.
    first: u128,
    /// Bits that count, of 128.
    bits: u32,
    given: IpAddr,
}

/// A text that is no [`Network`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network, expected an address or a range such as `10.0.0.0/8`")]
pub struct BadNetwork(String);

impl Network {
    /// Whether an address lies in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        mask(number(address), self.bits) == self.first
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
    .to_bits()
}

fn mask(number: u128, bits: u32) -> u128 {
    if bits == 0 { 0 } else { number >> (128 - bits) << (128 - bits) }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.to_owned());
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text.trim(), None),
        };
        let given: IpAddr = address.parse().map_err(|_| bad())?;
        let width = if given.is_ipv4() { 32 } else { 128 };
        let bits: u32 = bits.map_or(Ok(width), str::parse).map_err(|_| bad())?;
        if bits > width {
            return Err(bad());
        }
        let bits = bits + 128 - width;
        Ok(Self { first: mask(number(given), bits), bits, given })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.given.is_ipv4() { 32 } else { 128 };
        write!(f, "{}/{}", self.given, self.bits + width - 128)
    }
}

/// The caller behind trusted proxies: the last address in `X-Forwarded-For` that is none of theirs.
///
/// `None` if the peer itself is none of them, or does not say: whoever else writes the header may write what it likes.
pub(super) fn behind(trusted: &[Network], peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if trusted.is_empty() || !is_trusted(peer) {
        return None;
    }
    let mut caller = None;
    let lines: Vec<_> = headers.get_all(X_FORWARDED_FOR).iter().collect();
    let addresses = lines.iter().rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    for address in addresses {
        let Some(address) = std::str::from_utf8(address).ok().and_then(|text| read_address(text.trim()))
        else {
            break;
        };
        caller = Some(address);
        if !is_trusted(address) {
            break;
        }
    }
    caller
}

/// An address with or without a port.
fn read_address(text: &str) -> Option<IpAddr> {
    let bare =
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(text, |(address, _)| address);
    bare.parse().ok().or_else(|| text.parse().ok().map(|socket: std::net::SocketAddr| socket.ip()))
}

/// How every connection begins, of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Longest line of version 1.
const MAX_LINE: usize = 107;

/// Most bytes behind the first sixteen of version 2: addresses, and more about the connection that nobody here asks for.
const MAX_LENGTH: usize = 4096;

/// Reads what a load balancer says about a connection: the caller's address, or `None` if the connection is its own.
///
/// # Errors
/// When the connection does not begin with that; then nothing of it can be trusted.
pub(super) async fn proxy_protocol(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == SIGNATURE { version_2(stream).await } else { version_1(stream, &start).await }
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

async fn version_2(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version_and_command, family, high, low] = head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if version_and_command >> 4 != 2 || length > MAX_LENGTH {
        return Err(bad("not version 2 of the PROXY protocol"));
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    match (version_and_command & 0xf, family >> 4) {
        // The load balancer itself, for one to see whether somebody is there.
        (0, _) => Ok(None),
        (1, 1) => address::<4>(&rest).map(|octets| Some(Ipv4Addr::from(octets).into())),
        (1, 2) => address::<16>(&rest).map(|octets| Some(Ipv6Addr::from(octets).into())),
        (1, _) => Ok(None),
        _ => Err(bad("an unknown command of the PROXY protocol")),
    }
}

/// The first address; behind it stands the other one, and two ports.
fn address<const N: usize>(rest: &[u8]) -> io::Result<[u8; N]> {
    let whole = rest.len() >= 2 * N + 4;
    let first = rest.first_chunk().copied().filter(|_| whole);
    first.ok_or_else(|| bad("the addresses of the PROXY protocol are cut off"))
}

async fn version_1(stream: &mut (impl AsyncRead + Unpin), start: &[u8]) -> io::Result<Option<IpAddr>> {
    let none = || bad("no line of the PROXY protocol");
    if !start.starts_with(b"PROXY ") {
        return Err(none());
    }
    let mut line = start.to_vec();
    // One byte at a time, so that none of what follows is taken; a hundred of them at most, once a connection.
    while !line.ends_with(b"\r\n") {
        if line.len() >= MAX_LINE {
            return Err(none());
        }
        line.push(stream.read_u8().await?);
    }
    let line = std::str::from_utf8(&line[..line.len() - 2]).map_err(|_| none())?;
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["PROXY", "UNKNOWN", ..] => Ok(None),
        ["PROXY", family @ ("TCP4" | "TCP6"), source, destination, from, to] => {
            let is_port =
                |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
            let address = |text: &str| {
                let address = text.parse::<IpAddr>().ok();
                address.filter(|address| address.is_ipv4() == (family == "TCP4")).ok_or_else(none)
            };
            let (source, _) = (address(source)?, address(destination)?);
            [from, to].into_iter().all(is_port).then_some(Some(source)).ok_or_else(none)
        }
        _ => Err(none()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<Network> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn networks_are_ranges_or_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("192.168.1.77/24", "::ffff:192.168.1.1", "192.168.2.1"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("0.0.0.0/0", "1.2.3.4", "::1"),
            ("::1", "::1", "::2"),
        ] {
            let [network] = networks(&[network])[..] else { panic!("one network") };
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(network.to_string().parse(), Ok(network));
        }
        for text in ["", "a", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0/8", "10.0.0.0/8/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_trusted_proxies_say_for_whom_they_ask() {
        let trusted = networks(&["10.0.0.0/8", "::1"]);
        let caller = |peer: &str, lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(X_FORWARDED_FOR, HeaderValue::from_static(line));
            }
            behind(&trusted, peer.parse().unwrap(), &headers).map(|address| address.to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(caller("9.9.9.9", &["1.1.1.1"]), None, "it is not trusted");
        assert_eq!(caller("10.0.0.1", &[]), None);
        assert_eq!(caller("10.0.0.1", &["1.1.1.1"]), some("1.1.1.1"));
        assert_eq!(
            caller("10.0.0.1", &["6.6.6.6, 1.1.1.1, 10.0.0.2"]),
            some("1.1.1.1"),
            "the last untrusted"
        );
        assert_eq!(caller("10.0.0.1", &["6.6.6.6", "1.1.1.1:80", "10.0.0.2"]), some("1.1.1.1"));
        assert_eq!(caller("::1", &["[2001:db8::1]:80"]), some("2001:db8::1"));
        assert_eq!(
            caller("10.0.0.1", &["1.1.1.1, nonsense, 10.0.0.2"]),
            some("10.0.0.2"),
            "as far as it is known"
        );
        assert_eq!(caller("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), some("10.0.0.3"), "all are trusted");
        assert_eq!(behind(&[], "10.0.0.1".parse().unwrap(), &HeaderMap::new()), None);
    }

    async fn read(bytes: &[u8]) -> io::Result<(Option<IpAddr>, Vec<u8>)> {
        let mut stream = bytes;
        let address = proxy_protocol(&mut stream).await?;
        Ok((address, stream.to_vec()))
    }

    fn version_2_of(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&SIGNATURE[..], &[0x20 | command, family], &length, rest, b"GET"].concat()
    }

    #[tokio::test]
    async fn both_versions_are_read_and_nothing_behind_them() {
        let ip = |text: &str| Some(text.parse().unwrap());
        for (line, address) in [
            ("PROXY TCP4 1.2.3.4 5.6.7.8 100 200\r\n", ip("1.2.3.4")),
            ("PROXY TCP6 2001:db8::1 ::1 100 200\r\n", ip("2001:db8::1")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN a b c\r\n", None),
        ] {
            let read = read(format!("{line}GET").as_bytes()).await.unwrap();
            assert_eq!(read, (address, b"GET".to_vec()), "{line:?}");
        }
        let v4 = [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2, 0xff, 0xff];
        assert_eq!(read(&version_2_of(1, 0x11, &v4)).await.unwrap(), (ip("1.2.3.4"), b"GET".to_vec()));
        let v6 = [&[0x20, 1, 0xd, 0xb8][..], &[0; 32]].concat();
        assert_eq!(read(&version_2_of(1, 0x21, &v6)).await.unwrap().0, ip("2001:db8::"));
        assert_eq!(read(&version_2_of(0, 0, &[])).await.unwrap().0, None);
    }

    #[tokio::test]
    async fn what_is_no_such_beginning_is_refused() {
        for line in [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 100\r\n",
            "PROXY TCP4 ::1 ::1 100 200\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 100 70000\r\n",
            "PROXY TCP4  1.2.3.4 5.6.7.8 100 200\r\n",
            "PROXY TCP4 1.2.3.4 5.6.7.8 100 200",
            "proxy TCP4 1.2.3.4 5.6.7.8 100 200\r\n",
        ] {
            assert!(read(line.as_bytes()).await.is_err(), "{line:?}");
        }
        assert!(read(format!("PROXY UNKNOWN {}\r\n", "x".repeat(200)).as_bytes()).await.is_err());
        assert!(read(&version_2_of(1, 0x11, &[1, 2, 3, 4])).await.is_err());
        assert!(read(&version_2_of(7, 0x11, &[0; 12])).await.is_err());
    }
}
