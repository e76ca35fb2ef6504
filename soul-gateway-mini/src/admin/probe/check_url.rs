//! How Soul takes an address apart before it probes it: specification, section 9.2.
//!
//! Kept as a pure function for comparison. This admin probes by [`Target`](crate::model::Target), which also understands
//! names and IPv6, where Soul asks the resolver for `localhost:8188` as a whole and so finds the node dead.

use soul_client::wire::gson::is_blank;

/// What Soul does with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckUrl {
    /// Dead at once.
    Blank,
    /// A TCP connection to these.
    Connect {
        /// Dotted IPv4, as written.
        host: String,
        /// Port.
        port: u16,
    },
    /// The whole text is looked up as a host name and pinged.
    Reachable {
        /// The whole text.
        host: String,
    },
    /// Java fails: the port is missing, or too large.
    Throws {
        /// What had been read by then.
        parsed: Option<(String, u32)>,
    },
}

/// Takes an address apart as Soul does.
///
/// # Source
/// Soul `UpstreamCheckUtils#checkUrl`, the same in Feb-2021 and 2.3.0.
///
/// # Examples
/// ```
/// use soul_gateway_mini::admin::probe::{CheckUrl, check_url};
///
/// assert_eq!(check_url(Some("http://10.0.0.2:80")), CheckUrl::Connect { host: "10.0.0.2".into(), port: 80 });
/// assert_eq!(check_url(Some("localhost:80")), CheckUrl::Reachable { host: "localhost:80".into() });
/// ```
#[must_use]
pub fn check_url(url: Option<&str>) -> CheckUrl {
    let Some(url) = url.filter(|url| !is_blank(url)) else { return CheckUrl::Blank };
    let Some((host, digits)) = dotted_address(url) else {
        return CheckUrl::Reachable { host: url.to_owned() };
    };
    if digits.is_empty() {
        return CheckUrl::Throws { parsed: None }; // Java's split yields no second part
    }
    // Up to five digits always fit.
    let port: u32 = digits.parse().unwrap_or(u32::MAX);
    match u16::try_from(port) {
        Ok(port) => CheckUrl::Connect { host: host.to_owned(), port },
        Err(_) => CheckUrl::Throws { parsed: Some((host.to_owned(), port)) },
    }
}

/// Host and port digits of a text of Soul's address pattern: scheme or none, dotted IPv4, colon, up to five digits.
fn dotted_address(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url);
    let (host, digits) = rest.split_once(':')?;
    let octets: Vec<&str> = host.split('.').collect();
    let port = digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit());
    (port && octets.len() == 4 && octets.into_iter().all(is_octet)).then_some((host, digits))
}

/// An octet by Soul's pattern: 0 to 255 in at most three places, where a comma may stand for a leading 0 or 1,
/// because the character class was written `[0,1]`.
fn is_octet(text: &str) -> bool {
    match text.as_bytes() {
        [b'2', b'5', last] => (b'0'..=b'5').contains(last),
        [b'2', middle, last] => (b'0'..=b'4').contains(middle) && last.is_ascii_digit(),
        [b'0' | b'1' | b',', rest @ ..] | rest if (1..=2).contains(&rest.len()) => {
            rest.iter().all(u8::is_ascii_digit)
        }
        [single] => single.is_ascii_digit(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_the_pattern() {
        for yes in ["0", "9", "10", "99", "001", "199", ",1", ",99", "249", "255", "1"] {
            assert!(is_octet(yes), "{yes}");
        }
        for no in ["", "256", "260", "300", "0001", ",", "a", "1a", ",100", "2,5", "-1"] {
            assert!(!is_octet(no), "{no}");
        }
    }
}
