//! The text of an address as Java writes it, which is what Soul hashes.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
    ops::Deref,
};

/// Longest text: eight groups of four digits and seven colons.
const LONGEST: usize = 39;

/// An address as text, kept on the stack; reads like a `&str`.
#[derive(Clone, Copy)]
pub struct JavaIpText {
    /// ASCII, the first `len` bytes.
    bytes: [u8; LONGEST],
    len: usize,
}

impl JavaIpText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("OK because only whole strings are appended")
    }
}

impl Deref for JavaIpText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for JavaIpText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for JavaIpText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Write for JavaIpText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// Writes an address as Java's `InetAddress.getHostAddress` does: IPv6 as eight groups without compression, an
/// IPv4 address mapped into IPv6 as IPv4. Allocates nothing.
///
/// Rust writes `::1` where Java writes `0:0:0:0:0:0:0:1`, and Soul hashes the text, so the two forms reach
/// different upstreams. The zone of a link-local address (`%eth0`) is not part of an [`IpAddr`] and is left out.
///
/// # Examples
/// ```
/// use soul_client::balance::java_ip_text;
///
/// assert_eq!(&*java_ip_text("::1".parse()?), "0:0:0:0:0:0:0:1");
/// assert_eq!(&*java_ip_text("::ffff:10.0.0.2".parse()?), "10.0.0.2");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn java_ip_text(ip: IpAddr) -> JavaIpText {
    let mut text = JavaIpText { bytes: [0; LONGEST], len: 0 };
    let written = match ip.to_canonical() {
        // By hand, for it is done for every connection of a gateway.
        IpAddr::V4(ip) => ip.octets().into_iter().enumerate().try_for_each(|(index, octet)| {
            let digits = [octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit);
            let leading = usize::from(octet < 100) + usize::from(octet < 10);
            if index > 0 {
                text.write_char('.')?;
            }
            digits[leading..].iter().try_for_each(|digit| text.write_char(char::from(*digit)))
        }),
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, g, h] = ip.segments();
            write!(text, "{a:x}:{b:x}:{c:x}:{d:x}:{e:x}:{f:x}:{g:x}:{h:x}")
        }
    };
    debug_assert!(written.is_ok(), "OK because no address is longer than `LONGEST`");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_java() {
        for (ip, java) in [
            ("127.0.0.1", "127.0.0.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("::", "0:0:0:0:0:0:0:0"),
            ("fe80::1", "fe80:0:0:0:0:0:0:1"),
            ("2001:0db8::0a00:00ff", "2001:db8:0:0:0:0:a00:ff"),
            ("::ffff:192.168.1.10", "192.168.1.10"),
            ("::192.168.1.10", "0:0:0:0:0:0:c0a8:10a"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            assert_eq!(java_ip_text(ip.parse().unwrap()).as_str(), java);
            assert_eq!(java_ip_text(ip.parse().unwrap()).to_string(), java);
        }
    }
}
