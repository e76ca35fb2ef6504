//! The answer to a login.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::AdminAnswer;

/// What an admin answers to `GET /platform/login`.
pub type LoginAnswer = AdminAnswer<Login>;

/// Who logged in, as far as a service needs it. Its `Debug` shows no token.
///
/// Older releases put the password in too; it is not even read.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Login {
    /// The user.
    pub user_name: Option<String>,
    /// Absent with Soul 2.2.
    pub token: Option<String>,
    /// Milliseconds that the token lives, 2.5.0 and later; see [`DEFAULT_TOKEN_LIFE_MS`](Self::DEFAULT_TOKEN_LIFE_MS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired_time: Option<i64>,
    /// Whether the key `clientId` is there, which it is in 2.7.0 and later, mostly as `null`.
    #[serde(rename = "clientId", with = "presence", skip_serializing_if = "is_absent")]
    pub has_client_id: bool,
}

impl Login {
    /// Life of a token whose admin does not say: a day, in milliseconds.
    pub const DEFAULT_TOKEN_LIFE_MS: i64 = 24 * 60 * 60 * 1000;
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user_name", &self.user_name)
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("expired_time", &self.expired_time)
            .field("has_client_id", &self.has_client_id)
            .finish()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_absent(present: &bool) -> bool {
    !present
}

/// A key that is there, whatever its value.
mod presence {
    use serde::{Deserialize, Deserializer, Serializer, de::IgnoredAny};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
    pub(super) fn serialize<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_every_age() {
        for (text, token, expires, has_client_id) in [
            (
                r#"{"code":200,"message":"login dashboard user success","data":{"id":"1","userName":"admin","role":1,
                "enabled":true,"clientId":null,"token":"T","expiredTime":86400000}}"#,
                Some("T"),
                Some(86_400_000),
                true,
            ),
            (
                r#"{"code":200,"message":"ok","data":{"userName":"admin","password":"x","token":"T"}}"#,
                Some("T"),
                None,
                false,
            ),
            (r#"{"code":200,"data":{"userName":"admin"}}"#, None, None, false),
        ] {
            let answer: LoginAnswer = serde_json::from_str(text).unwrap();
            let login = answer.data.unwrap();
            assert_eq!(
                (login.token.as_deref(), login.expired_time, login.has_client_id),
                (token, expires, has_client_id)
            );
        }
        for text in [
            r#"{"code":500,"message":"username or password error","data":null}"#,
            r#"{"code":404,"message":"not found exception","data":null}"#,
            r#"{"code":500,"message":"the user is disabled"}"#,
        ] {
            let answer: LoginAnswer = serde_json::from_str(text).unwrap();
            assert!(answer.code != 200 && answer.data.is_none());
        }
    }

    #[test]
    fn token_is_not_shown() {
        let login = Login { token: Some("secret".into()), ..Login::default() };
        assert!(!format!("{login:?}").contains("secret"));
    }
}
