//! What an admin answers to `/configs/fetch` and `/configs/listener` (specification, section 10), read tolerantly: unknown members are passed
//! over, and numbers may be strings.

use std::{error::Error, fmt};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// Why an answer carries nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum BadAnswer {
    /// It is not the JSON of an admin, but for example a login page.
    NotAnAdmin {
        /// The beginning of the body.
        body: String,
        /// What the reader stumbled over.
        source: serde_json::Error,
    },
    /// The admin reports an error of its own.
    Refused {
        /// The admin's code; 200 would be success.
        code: String,
        /// The admin's words.
        message: String,
    },
}

impl fmt::Display for BadAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnAdmin { body, .. } => write!(f, "it is not an admin's, it begins with `{body}`"),
            Self::Refused { code, message } => write!(f, "it has code {code} and says `{message}`"),
        }
    }
}

impl Error for BadAnswer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotAnAdmin { source, .. } => Some(source),
            Self::Refused { .. } => None,
        }
    }
}

#[derive(Deserialize)]
struct Envelope<D> {
    code: Value,
    #[serde(default)]
    message: Value,
    data: Option<D>,
}

impl<D> Envelope<D> {
    fn is_good(&self) -> bool {
        number_text(&self.code) == "200"
    }

    fn refusal(&self) -> BadAnswer {
        let message = self.message.as_str().unwrap_or_default().to_owned();
        BadAnswer::Refused { code: number_text(&self.code), message }
    }
}

/// What an answer carries, read at once, for it may be long; `None` where that is `null`.
///
/// # Errors
/// When the admin says that something is wrong, or this is no admin's answer.
///
/// # Examples
/// ```
/// use soul_client::wire::soul::answer::payload;
///
/// let changed: Option<Vec<String>> = payload(br#"{"code":"200","data":["RULE"]}"#)?;
/// assert_eq!(changed, Some(vec!["RULE".to_owned()]));
/// let refused = payload::<Vec<String>>(br#"{"code":500,"message":"busy"}"#).unwrap_err();
/// assert_eq!(refused.to_string(), "it has code 500 and says `busy`");
/// # Ok::<(), soul_client::wire::soul::answer::BadAnswer>(())
/// ```
pub fn payload<'b, D: Deserialize<'b>>(body: &'b [u8]) -> Result<Option<D>, BadAnswer> {
    match serde_json::from_slice::<Envelope<D>>(body) {
        Ok(envelope) if envelope.is_good() => Ok(envelope.data),
        Ok(envelope) => Err(envelope.refusal()),
        // What is in it is of no interest if the admin says that something is wrong.
        Err(source) => match serde_json::from_slice::<Envelope<IgnoredAny>>(body) {
            Ok(envelope) if !envelope.is_good() => Err(envelope.refusal()),
            _ => Err(BadAnswer::NotAnAdmin { body: beginning(body), source }),
        },
    }
}

/// One group of a fetched configuration, with entries as the reader wants them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "E: Deserialize<'de>"))]
pub struct AnsweredGroup<E> {
    #[serde(default)]
    md5: Option<String>,
    #[serde(default)]
    last_modify_time: Value,
    data: Option<Vec<E>>,
}

/// One group that is all there.
#[derive(Debug)]
pub struct WholeGroup<E> {
    /// The checksum, to be echoed as it is.
    pub md5: String,
    /// The admin's clock when the group was made, to be echoed as it is.
    pub last_modify_time: String,
    /// The entries.
    pub entries: Vec<E>,
}

impl<E> AnsweredGroup<E> {
    /// All of it; `None` if it lacks its list or its checksum, and so must not be taken for an empty one.
    #[must_use]
    pub fn whole(self) -> Option<WholeGroup<E>> {
        let md5 = self.md5.filter(|md5| !md5.is_empty())?;
        let last_modify_time = number_text(&self.last_modify_time);
        Some(WholeGroup { md5, last_modify_time, entries: self.data? })
    }
}

/// The beginning of a body, fit for one line of a log.
#[must_use]
pub fn beginning(body: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A number, or a string that stands for one.
fn number_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => "0".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_there_or_it_is_said_why_not() {
        for (body, expected) in [
            (r#"{"code":200,"data":[1]}"#, Ok(Some(vec![1]))),
            (r#"{"code":" 200","message":null,"data":null,"more":{}}"#, Ok(None)),
            (r#"{"code":500,"message":"busy","data":null}"#, Err("it has code 500 and says `busy`")),
            (r#"{"code":500,"data":{"x":1}}"#, Err("it has code 500 and says ``")),
            (
                "{\"code\":200,\n\"data\":{}}",
                Err("it is not an admin's, it begins with `{\"code\":200, \"data\":{}}`"),
            ),
            (r#"{"data":[]}"#, Err("it is not an admin's, it begins with `{\"data\":[]}`")),
            ("[]", Err("it is not an admin's, it begins with `[]`")),
            ("", Err("it is not an admin's, it begins with ``")),
        ] {
            let read = payload::<Vec<u8>>(body.as_bytes()).map_err(|error| error.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{body}");
        }
    }

    #[test]
    fn a_group_is_whole_with_a_list_and_a_checksum() {
        for (text, whole) in [
            (r#"{"md5":"a","lastModifyTime":7,"data":[1,2]}"#, Some(("a", "7", 2))),
            (r#"{"md5":"a","lastModifyTime":"7","data":[]}"#, Some(("a", "7", 0))),
            (r#"{"md5":"a","data":[]}"#, Some(("a", "0", 0))),
            (r#"{"md5":"","data":[]}"#, None),
            (r#"{"data":[]}"#, None),
            (r#"{"md5":"a","data":null}"#, None),
            (r#"{"md5":"a"}"#, None),
        ] {
            let group: AnsweredGroup<u8> = serde_json::from_str(text).unwrap();
            let group = group.whole();
            let seen = group.as_ref().map(|g| (g.md5.as_str(), g.last_modify_time.as_str(), g.entries.len()));
            assert_eq!(seen, whole, "{text}");
        }
    }
}
