//! What kind of admin this is, found out by questions that change nothing.
//!
//! A `GET` on a path that takes `POST` only registers nothing; what it answers tells whether the path exists.
//!
//! Source: ShenYu specification, section 10.3.

use super::{
    SendError,
    answer::{Answer, login_refused, rejected, unanswered},
    session::{LoggedIn, Session, Token},
};
use crate::{
    plan::{Dialect, ShenyuVersion},
    wire::{
        shenyu::paths::{self, TOKEN_HEADER},
        soul,
    },
};

/// Asks `admin` until it is clear what it speaks.
pub(super) async fn dialect(
    client: &reqwest::Client,
    admin: &str,
    session: Option<&Session>,
) -> Result<Dialect, SendError> {
    let session = session.filter(|session| session.has_credentials());
    let mut token = match session {
        None => None,
        Some(session) => match session.enter(client).await? {
            LoggedIn::Token(token) => Some(token),
            // No token is ever needed there.
            LoggedIn::WithoutToken => return soul(client, admin, None).await,
        },
    };
    let mut first = Question { client, admin, token: token.as_ref() }.ask(paths::REGISTER_METADATA).await?;
    if let (true, Some(session), Some(refused)) = (first.refuses_token(), session, token.clone()) {
        // It is one from before the admin was restarted.
        token = Some(session.token_instead_of(client, &refused).await?);
        first = Question { client, admin, token: token.as_ref() }.ask(paths::REGISTER_METADATA).await?;
    }
    if let Some(token) = token.as_ref().filter(|_| first.is_of_an_admin() && !first.refuses_token()) {
        token.prove();
    }
    let question = Question { client, admin, token: token.as_ref() };
    if first.says_path_exists() {
        if token.is_none() && question.exists(soul::paths::OFFLINE).await? {
            // The admin of this project: it has the paths of every release, and can be left in Soul's words without a login.
            return Ok(Dialect::Any);
        }
        return Ok(Dialect::Shenyu(question.version().await?));
    }
    if question.exists(paths::SPRING_MVC_REGISTER).await? {
        return Ok(Dialect::Shenyu(ShenyuVersion::V2_4_0));
    }
    soul(client, admin, token.as_ref()).await
}

async fn soul(client: &reqwest::Client, admin: &str, token: Option<&Token>) -> Result<Dialect, SendError> {
    let question = Question { client, admin, token };
    let mut answer = question.ask(soul::paths::SPRING_MVC_REGISTER).await?;
    if answer.says_path_exists() || (answer.status == 200 && answer.is_of_an_admin()) {
        return Ok(Dialect::Any);
    }
    let what = question.attempt();
    if answer.refuses_token() && token.is_none() {
        let why = "the admin wants a login: set `username` and `password`".to_owned();
        return Err(SendError::Refused(login_refused(what, why)));
    }
    answer.hide(token);
    let why = format!("neither Soul nor ShenYu answers there: {}", answer.describe());
    Err(SendError::Unanswered(rejected(what, why)))
}

struct Question<'a> {
    client: &'a reqwest::Client,
    admin: &'a str,
    token: Option<&'a Token>,
}

impl Question<'_> {
    /// An admin that has `register-metadata`: which one.
    async fn version(&self) -> Result<ShenyuVersion, SendError> {
        let Some(token) = self.token else {
            // Open to everyone in this one only.
            return Ok(ShenyuVersion::V2_4_1);
        };
        if token.tells_client_id {
            let latest = self.exists(paths::REGISTER_MCP).await?;
            return Ok(if latest { ShenyuVersion::V2_7 } else { ShenyuVersion::V2_7_0 });
        }
        if self.exists(paths::OFFLINE).await? {
            return Ok(ShenyuVersion::V2_6);
        }
        // 2.4.2 cannot be told from 2.4.3, and would take a `DELETED` for a registration.
        Ok(if token.tells_expiry { ShenyuVersion::V2_5 } else { ShenyuVersion::V2_4_2 })
    }

    async fn exists(&self, path: &str) -> Result<bool, SendError> {
        Ok(self.ask(path).await?.says_path_exists())
    }

    async fn ask(&self, path: &str) -> Result<Answer, SendError> {
        let mut request = self.client.get(format!("{}{path}", self.admin));
        if let Some(token) = self.token {
            request = request.header(TOKEN_HEADER, token.header());
        }
        let response = request.send().await.map_err(|error| unanswered(self.attempt(), error))?;
        Answer::read(response).await.map_err(|error| unanswered(self.attempt(), error))
    }

    fn attempt(&self) -> String {
        format!("find out what kind of admin `{}` is", self.admin)
    }
}
