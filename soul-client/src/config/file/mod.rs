//! Settings from a YAML or TOML file, by the very keys that Soul and ShenYu have in an `application.yml`.
//!
//! A file may be that of a Java service: what is not about registering over HTTP is passed over. Inside the sections
//! below a key that is not known is a mistake, and is told.

mod flat;
mod keys;
mod nearest;

use std::path::Path;

use super::ClientConfigBuilder;
use crate::error::Problem;

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Yaml,
    Toml,
}

/// Reads a file by the ending of its name.
pub(super) fn read(path: &Path) -> ClientConfigBuilder {
    let shown = path.display().to_string();
    let format = match path.extension().and_then(|ending| ending.to_str()) {
        Some("yml" | "yaml") => Format::Yaml,
        Some("toml") => Format::Toml,
        _ => return unreadable(format!("`{shown}` ends in neither `.yml`, `.yaml` nor `.toml`")),
    };
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, format, &shown, |name| std::env::var(name).ok()),
        Err(error) => unreadable(format!("`{shown}` cannot be read: {error}")),
    }
}

/// Every setting of a text, key and value, by the ending of the file's name; for those who know other keys. `${NAME}` in a value stands for a
/// variable of the environment.
#[cfg(feature = "call")]
pub(crate) fn pairs(path: &Path, text: &str) -> Result<Vec<(String, String)>, String> {
    let shown = path.display();
    let is_toml = path.extension().is_some_and(|ending| ending == "toml");
    let value = value(text, if is_toml { Format::Toml } else { Format::Yaml });
    let value = value.map_err(|error| format!("`{shown}` cannot be read: {error}"))?;
    let resolved = |entry: flat::Entry| {
        let value = flat::resolve(&entry.value, &|name: &str| std::env::var(name).ok());
        let unset = |variable| {
            format!("`{}` in `{shown}` needs the variable `{variable}`, which is not set", entry.written)
        };
        value.map_err(unset).map(|value| (entry.written.clone(), value))
    };
    flat::flatten(&value).into_iter().map(resolved).collect()
}

/// Reads a text. `lookup` knows what `${NAME}` in a value stands for; `name` is for messages.
pub(super) fn parse(
    text: &str,
    format: Format,
    name: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> ClientConfigBuilder {
    match value(text, format) {
        Ok(value) => keys::settings(flat::flatten(&value), name, lookup),
        Err(error) => {
            let kind = if format == Format::Yaml { "YAML" } else { "TOML" };
            unreadable(format!("`{name}` is no {kind}: {error}"))
        }
    }
}

/// What a text says. Neither error repeats lines of it: one of them may hold a password.
fn value(text: &str, format: Format) -> Result<serde_json::Value, String> {
    let value: Result<_, String> = match format {
        Format::Yaml => serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string()),
        Format::Toml => toml::from_str(text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            format!("{} (line {})", error.message(), before.split('\n').count())
        }),
    };
    value.map_err(|error| error.trim_end().to_owned())
}

fn unreadable(text: String) -> ClientConfigBuilder {
    ClientConfigBuilder { unreadable: vec![Problem::new("file", text)], ..ClientConfigBuilder::default() }
}

#[cfg(test)]
mod tests;
