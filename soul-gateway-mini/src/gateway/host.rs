//! Whom a request asks for: whether what it says can be the name of a host at all.

use http::uri::Authority;

/// Whether `value` is a `Host`: empty, or a name or address with or without a port (RFC 9110, section 7.2).
///
/// What is not would be read as one host here and as another by whoever builds an address of it: `a/b`, `a@b`.
pub(super) fn is_host(value: &[u8]) -> bool {
    let host = match value {
        [b'[', rest @ ..] => {
            let address = rest.iter().take_while(|byte| is_in_name(**byte) || **byte == b':').count();
            if rest.get(address) != Some(&b']') {
                return false;
            }
            address + 2
        }
        name => name.iter().take_while(|byte| is_in_name(**byte)).count(),
    };
    match &value[host..] {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Unreserved, a sub-delimiter, or the sign of an escape (RFC 3986, section 3.2.2).
fn is_in_name(byte: u8) -> bool {
    IN_NAME[usize::from(byte)]
}

/// By byte, since every request is asked this of every byte of its host.
const IN_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let signs = b"-._~!$&'()*+,;=%";
    let mut at = 0;
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] |= byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// Whether the address in a request line names a host and nothing else: a user or password there is for nobody
/// behind (RFC 9110, section 4.2.4).
pub(super) fn is_plain(authority: &Authority) -> bool {
    is_host(authority.as_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_with_or_without_a_port() {
        for host in
            ["", "a", "a:1", "a:", "A.b-c_d.example:8080", "10.0.0.1:80", "[::1]", "[::1]:80", "x%20y", "a,b"]
        {
            assert!(is_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for host in [
            "a b", "a/b", "http://a", "u@a", "u:p@a", "a\\b", "a?b", "a#b", "a:b", "[::1", "::1", "a:1:2",
            "订", "[a]b",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
