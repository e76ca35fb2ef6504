//! MD5 as Soul writes it.

use md5::{Digest, Md5};

/// The MD5 of a text's UTF-8 bytes, in lower-case hexadecimal.
///
/// ```
/// assert_eq!(soul_client::wire::soul::md5_hex("[]"), "d751713988987e9331980363e24189ce");
/// ```
#[must_use]
pub fn md5_hex(text: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    Md5::digest(text)
        .iter()
        .flat_map(|b| [b >> 4, b & 15])
        .map(|d| char::from(DIGITS[usize::from(d)]))
        .collect()
}
