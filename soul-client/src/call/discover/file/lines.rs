//! Lines: a service, an address, words.

use serde_json::Value;

use super::{Lists, tree};
use crate::balance::Upstream;

/// Reads lines; the error names the line.
pub(super) fn read(text: &str) -> Result<Lists, String> {
    let mut lists = Lists::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let place = format!("line {number}");
        let mut words = line.split_whitespace();
        let Some(service) = words.next() else { continue };
        let Some(address) = words.next() else {
            return Err(format!("`{place}` has `{service}` and no address behind it"));
        };
        let begun = tree::word(Upstream::new(""), &place, "address", &Value::from(address))?;
        let upstream = words.try_fold(begun, |upstream, word| {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("`{place}` has `{word}`, expected `word=value`"));
            };
            tree::word(upstream, &place, key, &Value::from(value))
        })?;
        lists.entry(service.to_owned()).or_default().push(upstream);
    }
    Ok(lists)
}
