//! What an admin says.

use serde::{Deserialize, Serialize};

/// The whole body that says a registration was queued; any other body says that it was not, whatever the HTTP
/// status (ShenYu specification, section 1.1).
pub const SUCCESS: &str = "success";

/// `code` of an answer that says all is well.
pub const SUCCESS_CODE: i32 = 200;

/// `code` of an answer that refuses the token; such an answer also has HTTP status 401.
pub const CODE_BAD_TOKEN: i32 = 600;

/// Everything else that an admin says: mostly errors, and mostly under HTTP status 200.
///
/// ```
/// use soul_client::wire::shenyu::{AdminAnswer, CODE_BAD_TOKEN};
///
/// let answer: AdminAnswer = serde_json::from_str(r#"{"code":600,"message":"token is error"}"#)?;
/// assert!(answer.code == CODE_BAD_TOKEN && answer.data.is_none());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminAnswer<T = serde::de::IgnoredAny> {
    /// 200 is well; 500 an error, 404 a null pointer inside, 600 a bad token, 601 a lack of permission.
    pub code: i32,
    /// In words.
    #[serde(default)]
    pub message: Option<String>,
    /// What was asked for.
    #[serde(default = "none")]
    pub data: Option<T>,
}

/// A function of its own, so that `T` need not have a default.
fn none<T>() -> Option<T> {
    None
}

impl<T> AdminAnswer<T> {
    /// `code 500: the words`, for a message.
    #[must_use]
    pub fn describe(&self) -> String {
        let message = self.message.as_deref().unwrap_or("without a message");
        format!("the admin answered code {}: {message}", self.code)
    }

    /// Whether the answer of a `GET` says that the path exists and wants another method.
    ///
    /// # Source
    /// ShenYu specification, section 10.3: `Request method 'GET' not supported`, whatever words stand around it.
    #[must_use]
    pub fn says_method_not_supported(&self) -> bool {
        self.message.as_deref().is_some_and(|message| message.contains("not supported"))
    }
}
