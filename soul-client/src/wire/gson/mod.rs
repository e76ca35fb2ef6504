//! JSON as Soul's Java systems write and read it, by the Gson library.
//!
//! Soul's texts are compared byte by byte (the md5 of a group is taken over its text), so writing is exact:
//! fields in declaration order, absent ones left out, HTML-safe escapes, no spaces. Reading is as tolerant
//! as Gson is, because the Java dashboard really stores `"weight":"50"`.
//!
//! | text | write with | read with |
//! |---|---|---|
//! | registration bodies over HTTP | [`to_plain`] | [`from_plain`] |
//! | `handle` texts, websocket messages, the text whose md5 is compared, `/configs/listener` | [`to_soul`] | [`from_str`] |
//! | Jackson's answers, for example `/configs/fetch` (nulls are written there and mean "absent") | `serde_json` | [`from_plain`] |
//!
//! Body types stay plain serde types; a struct says with `#[serde(default)]` what its missing fields mean.
//!
//! # Source
//! Soul specification, section 0.2; behaviour of Gson 2.10 (`JsonWriter`, lenient `JsonReader`).

mod access;
mod de;
mod error;
mod number;
mod read;
mod ser;
mod text;

use serde::{Serialize, de::DeserializeOwned};

pub use error::GsonError;
pub use text::{is_blank, is_whitespace};

use de::Nulls;
use ser::Dialect;

/// Writes what Gson with default settings writes: `null` fields left out, blank strings kept.
///
/// # Errors
/// For what no Soul body carries: fractions that are not finite, raw bytes, enum variants with data, map keys
/// that are not text.
///
/// # Examples
/// ```
/// use soul_client::wire::{gson, soul::SpringMvcRegisterDto};
///
/// let body = SpringMvcRegisterDto { path: Some("/a=b".into()), path_desc: Some("".into()), ..Default::default() };
/// assert_eq!(
///     gson::to_plain(&body)?,
///     r#"{"path":"/a\u003db","pathDesc":"","enabled":false,"registerMetaData":false}"#
/// );
/// # Ok::<(), gson::GsonError>(())
/// ```
pub fn to_plain<T: Serialize + ?Sized>(value: &T) -> Result<String, GsonError> {
    ser::write(value, Dialect::Plain)
}

/// Writes what Soul's shared Gson instance writes: as [`to_plain`], and a blank string (see [`is_blank`]) counts
/// as `null`, so a field that holds one is left out.
///
/// # Errors
/// As [`to_plain`].
///
/// # Examples
/// ```
/// use soul_client::wire::{gson, soul::PluginData};
///
/// let plugin = PluginData { id: Some("5".into()), name: Some("divide".into()), config: Some(" ".into()), ..Default::default() };
/// assert_eq!(gson::to_soul(&[plugin])?, r#"[{"id":"5","name":"divide"}]"#);
/// # Ok::<(), gson::GsonError>(())
/// ```
pub fn to_soul<T: Serialize + ?Sized>(value: &T) -> Result<String, GsonError> {
    ser::write(value, Dialect::Soul)
}

/// Reads as Soul's `GsonUtils` does: a string that is `null` becomes empty, any other `null` becomes the
/// field's default. Text without a value, and `null`, give `None`.
///
/// Accepted as in Gson: comments, unquoted and single-quoted names and strings, `=` and `=>` for `:`, `;` for `,`,
/// numbers and booleans as strings, numbers as strings, `50.0` and `5e1` as integers; unknown names
/// are ignored and the last of two equal names wins. A list may be nested 255 deep.
///
/// # Errors
/// On text that Gson refuses, on a value of another kind (`50.5` or `""` for an integer, a boolean for a
/// string), on text after the value. The message names the field.
///
/// # Examples
/// ```
/// use soul_client::wire::{gson, soul::DivideUpstream};
///
/// let nodes: Option<Vec<DivideUpstream>> =
///     gson::from_str(r#"[{upstreamUrl:'10.0.0.2:8188', "weight":"50", "status":true}]"#)?;
/// assert_eq!(nodes.unwrap_or_default()[0].weight, 50);
///
/// let refused = gson::from_str::<Vec<DivideUpstream>>(r#"[{"weight":50.5}]"#);
/// assert!(refused.is_err_and(|e| e.to_string().starts_with("`[0].weight`: ")));
/// # Ok::<(), gson::GsonError>(())
/// ```
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<Option<T>, GsonError> {
    de::read(text, Nulls::AsEmptyText)
}

/// Reads as Gson with default settings does: as [`from_str`], but `null` means absent for strings too, and
/// booleans may stand for strings. The one to use for Jackson's answers, where absent values are written as `null`.
///
/// # Errors
/// As [`from_str`].
///
/// # Examples
/// ```
/// use soul_client::wire::{gson, soul::RuleData};
///
/// let rule: Option<RuleData> = gson::from_plain(r#"{"id":"1","name":null,"sort":"1"}"#)?;
/// let rule = rule.unwrap_or_default();
/// assert_eq!((rule.name, rule.sort), (None, Some(1)));
/// # Ok::<(), gson::GsonError>(())
/// ```
pub fn from_plain<T: DeserializeOwned>(text: &str) -> Result<Option<T>, GsonError> {
    de::read(text, Nulls::Absent)
}

#[cfg(test)]
mod tests;
