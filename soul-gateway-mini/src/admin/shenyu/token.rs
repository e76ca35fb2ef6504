//! Tokens: JSON web tokens with the claims of ShenYu's, signed with HS256.
//!
//! Nothing is kept of a token. The key comes from user and password, so that a token outlives a restart of the admin,
//! holds at every admin with the same login, and is void once the password changes; all this as in ShenYu,
//! whose clients do not log in again before a day is over, whatever they are answered.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::admin::config::ShenyuLogin;

/// What every token begins with: `{"typ":"JWT","alg":"HS256"}`.
const HEADER: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9";
/// No token of ours is near this.
const LONGEST: usize = 4 * 1024;

/// Makes tokens and knows them again.
#[derive(Clone)]
pub(super) struct Tokens {
    mac: Hmac<Sha256>,
    life: Duration,
}

/// What a token says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claims {
    user_name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    client_id: Option<String>,
    /// When it ends, seconds since the epoch.
    exp: i64,
}

impl Tokens {
    /// Tokens of a login. Without one there are tokens all the same, which nobody asks for.
    pub(super) fn new(login: Option<&ShenyuLogin>, life: Duration) -> Self {
        let password = login.map_or(&b""[..], |login| login.password.expose());
        let mut key = mac(password);
        key.update(b"soul-gateway-mini: tokens of ");
        key.update(login.map_or(&b""[..], |login| login.user.as_bytes()));
        Self { mac: mac(&key.finalize().into_bytes()), life }
    }

    /// A token for a user, from now on.
    pub(super) fn issue(&self, user: &str, client_id: Option<&str>, now_ms: i64) -> String {
        let life = i64::try_from(self.life.as_millis()).unwrap_or(i64::MAX);
        let exp = now_ms.saturating_add(life) / 1000;
        let claims = Claims { user_name: user.to_owned(), client_id: client_id.map(str::to_owned), exp };
        // Two texts and a number are always written.
        let claims = serde_json::to_vec(&claims).unwrap_or_default();
        let signed = format!("{HEADER}.{}", URL_SAFE_NO_PAD.encode(claims));
        let signature = self.mac.clone().chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    /// Whether a text is a token of ours that has not ended.
    pub(super) fn holds(&self, token: &str, now_ms: i64) -> bool {
        self.claims(token).is_some_and(|claims| claims.exp > now_ms / 1000)
    }

    fn claims(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.').filter(|_| token.len() <= LONGEST)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // In a time that does not tell how much of it is right.
        self.mac.clone().chain_update(signed.as_bytes()).verify_slice(&signature).ok()?;
        let (_, claims) = signed.split_once('.').filter(|(header, _)| *header == HEADER)?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("life", &self.life).finish_non_exhaustive()
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("OK because a key of this construction may have any length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::config::Password;

    const NOW: i64 = 1_752_000_000_000;
    const DAY: Duration = Duration::from_secs(86_400);

    fn tokens(user: &str, password: &str) -> Tokens {
        let login = ShenyuLogin { user: user.to_owned(), password: Password::new(password) };
        Tokens::new(Some(&login), DAY)
    }

    #[test]
    fn token_lives_its_life_and_outlives_a_restart() {
        let token = tokens("admin", "p").issue("admin", None, NOW);
        let after_a_restart = tokens("admin", "p");
        assert!(after_a_restart.holds(&token, NOW) && after_a_restart.holds(&token, NOW + 86_399_000));
        assert!(!after_a_restart.holds(&token, NOW + 86_400_000));
    }

    #[test]
    fn tokens_of_others_are_void() {
        let own = tokens("admin", "p");
        let token = own.issue("admin", Some("c"), NOW);
        for other in [tokens("admin", "q"), tokens("root", "p"), Tokens::new(None, DAY)] {
            assert!(!other.holds(&token, NOW));
        }
        let (head, signature) = token.rsplit_once('.').unwrap();
        let (header, claims) = head.split_once('.').unwrap();
        let later = URL_SAFE_NO_PAD.encode(r#"{"userName":"admin","exp":99999999999}"#);
        let unsigned = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let long = "x".repeat(LONGEST + 1);
        for forged in [
            "",
            ".",
            "..",
            "T",
            head,
            &format!("{head}."),
            &format!("{header}.{later}.{signature}"),
            &format!("{unsigned}.{claims}."),
            &format!("{token}x"),
            &long,
        ] {
            assert!(!own.holds(forged, NOW), "{forged}");
        }
        assert!(own.holds(&token, NOW));
    }

    #[test]
    fn token_is_a_web_token_with_shenyus_claims() {
        let token = tokens("admin", "p").issue("admin", None, NOW);
        let parts: Vec<_> = token.split('.').map(|part| URL_SAFE_NO_PAD.decode(part).unwrap()).collect();
        assert_eq!(parts[0], br#"{"typ":"JWT","alg":"HS256"}"#);
        assert_eq!(parts[1], br#"{"userName":"admin","exp":1752086400}"#);
        assert_eq!(parts[2].len(), 32);
        assert!(!format!("{:?}", tokens("admin", "secret")).contains("secret"));
    }
}
