//! The session with one admin: a token, kept as long as it lives.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::header::HeaderValue;
use tokio::{sync::Mutex, time::Instant};

use super::{
    SendError,
    answer::{Answer, login_refused, rejected, unanswered, words},
};
use crate::{
    error::{Error, Kind},
    meter::{LoginReason, Meter},
    secret::Secret,
    wire::shenyu::{Login, paths},
};

/// Who logs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) username: String,
    pub(crate) password: Secret,
}

/// No two logins in vain are closer than this, and refused ones move apart up to [`LONGEST_PAUSE`]: an account may
/// be locked after too many, and every one stands in the admin's log. In vain is also one whose token is no good.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// No token is kept longer.
const LONGEST_LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A token is renewed when this part of its life is over.
const RENEWED_AFTER: f64 = 0.9;

/// The session with one admin. It knows no other: a token of one admin says nothing to the next.
pub(crate) struct Session {
    admin: String,
    credentials: Option<Credentials>,
    meter: Meter,
    /// Held during a login, so that there is one at a time and the others wait for its token.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    failure: Option<Failure>,
    /// The last pause, from which the next one follows; zero once a token was taken.
    pause: Duration,
}

impl State {
    /// Lets nobody log in for a while.
    fn fail(&mut self, error: SendError) {
        self.pause = match &error {
            SendError::Refused(_) => (self.pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
            SendError::Unanswered(_) => SHORTEST_PAUSE,
        };
        self.failure = Some(Failure { error, again_at: Instant::now() + self.pause });
    }
}

/// What came of the last login.
struct Failure {
    error: SendError,
    again_at: Instant,
}

/// A token, and what else the login told.
#[derive(Clone)]
pub(crate) struct Token {
    header: HeaderValue,
    renew_at: Instant,
    ends_at: Instant,
    /// The admin took it at least once.
    proven: Arc<AtomicBool>,
    /// The answer had a time of expiry: ShenYu 2.5 and later.
    pub(crate) tells_expiry: bool,
    /// The answer had a client id: ShenYu 2.7 and later.
    pub(crate) tells_client_id: bool,
}

impl Token {
    pub(crate) fn header(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Notes that the admin took it.
    pub(crate) fn prove(&self) {
        self.proven.store(true, Ordering::Relaxed);
    }

    fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Its text, to take it out of what is shown.
    pub(super) fn text(&self) -> &str {
        self.header.to_str().unwrap_or_default()
    }
}

/// What is asked of a login.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// That it is taken.
    Login,
    /// A token, too.
    Token,
}

/// What a login gave.
pub(crate) enum LoggedIn {
    Token(Token),
    /// The admin takes the login, or not even that, and has no tokens: Soul 2.2.
    WithoutToken,
}

impl Session {
    pub(crate) fn new(admin: &str, credentials: Option<Credentials>, meter: Meter) -> Self {
        Self { admin: admin.to_owned(), credentials, meter, state: Mutex::default() }
    }

    pub(crate) fn has_credentials(&self) -> bool {
        self.credentials.is_some()
    }

    /// A token that lives, from the last login or from a new one.
    ///
    /// # Cancel safety
    /// The next caller logs in instead.
    pub(crate) async fn token(&self, client: &reqwest::Client) -> Result<Token, SendError> {
        self.current(client, None).await
    }

    /// A token that is not `refused`.
    pub(crate) async fn token_instead_of(
        &self,
        client: &reqwest::Client,
        refused: &Token,
    ) -> Result<Token, SendError> {
        self.current(client, Some(refused)).await
    }

    async fn current(&self, client: &reqwest::Client, refused: Option<&Token>) -> Result<Token, SendError> {
        match self.enter_unless(client, refused, Need::Token).await? {
            LoggedIn::Token(token) => Ok(token),
            LoggedIn::WithoutToken => Err(self.no_token()),
        }
    }

    /// As [`token`](Self::token), for an admin that may have none to give.
    pub(crate) async fn enter(&self, client: &reqwest::Client) -> Result<LoggedIn, SendError> {
        self.enter_unless(client, None, Need::Login).await
    }

    async fn enter_unless(
        &self,
        client: &reqwest::Client,
        refused: Option<&Token>,
        need: Need,
    ) -> Result<LoggedIn, SendError> {
        let mut state = self.state.lock().await;
        if state.token.as_ref().is_some_and(Token::is_proven) {
            state.pause = Duration::ZERO;
        }
        let held =
            |refused: &&Token| state.token.as_ref().is_some_and(|token| token.header == refused.header);
        if let Some(refused) = refused.filter(held) {
            state.token = None;
            if !refused.is_proven() {
                state.fail(self.bad_token());
            }
        }
        let now = Instant::now();
        let alive = state.token.clone().filter(|token| now < token.ends_at).map(LoggedIn::Token);
        if let Some(LoggedIn::Token(token)) = &alive
            && now < token.renew_at
        {
            return Ok(LoggedIn::Token(token.clone()));
        }
        if let Some(failure) = state.failure.as_ref().filter(|failure| now < failure.again_at) {
            return alive.ok_or_else(|| failure.error.clone());
        }
        let reason = match (refused, &state.token) {
            (Some(_), _) => LoginReason::Refused,
            (None, Some(_)) => LoginReason::Expiry,
            (None, None) => LoginReason::First,
        };
        let result = match self.log_in(client).await {
            Ok(LoggedIn::WithoutToken) if need == Need::Token => Err(self.no_token()),
            other => other,
        };
        self.meter.login(&self.admin, reason, &result);
        match result {
            Ok(logged_in) => {
                state.failure = None;
                if let LoggedIn::Token(token) = &logged_in {
                    state.token = Some(token.clone());
                }
                Ok(logged_in)
            }
            Err(error) => {
                state.fail(error.clone());
                // What is left of its life is used.
                alive.ok_or(error)
            }
        }
    }

    /// Logs in, whether there is a token or not.
    async fn log_in(&self, client: &reqwest::Client) -> Result<LoggedIn, SendError> {
        let Some(credentials) = &self.credentials else {
            let what = format!("log in at `{}`", self.admin);
            let why = "the admin wants a login: set `username` and `password`".to_owned();
            return Err(SendError::Refused(login_refused(what, why)));
        };
        let login = format!("{}{}", self.admin, paths::LOGIN);
        let mut url = reqwest::Url::parse(&login).map_err(|error| {
            SendError::Refused(Arc::new(Error::new(Kind::Config, self.attempt()).with_source(error)))
        })?;
        // No `clientId`: it would throw out whoever uses the dashboard as the same user (ShenYu specification,
        // section 1.2).
        url.query_pairs_mut()
            .append_pair("userName", &credentials.username)
            .append_pair("password", credentials.password.expose());
        let mut answer = self.read(client.get(url)).await?;
        if answer.says_path_exists() {
            // Releases to come may take the login by POST only.
            let body = serde_json::json!({
                "userName": credentials.username,
                "password": credentials.password.expose(),
            });
            let request =
                client.post(&login).header("content-type", "application/json").body(body.to_string());
            answer = self.read(request).await?;
        }
        self.judge(&answer)
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> Result<Answer, SendError> {
        let began = Instant::now();
        let response = request.send().await.map_err(|error| unanswered(self.attempt(), error))?;
        let answer = Answer::read(response).await.map_err(|error| unanswered(self.attempt(), error))?;
        tracing::debug!(
            admin = self.admin,
            elapsed_ms = began.elapsed().as_millis() as u64,
            "login answered"
        );
        Ok(answer)
    }

    fn judge(&self, answer: &Answer) -> Result<LoggedIn, SendError> {
        let Some(said) = answer.json::<Login>() else {
            // The body is not repeated: nobody knows what it says of the login.
            let why = format!("expected the answer of an admin, got status {}", answer.status);
            return Err(SendError::Unanswered(rejected(self.attempt(), why)));
        };
        if said.code != 200 {
            let why = format!("{}; check `username` and `password`", self.harmless(said.describe()));
            return Err(SendError::Refused(login_refused(self.attempt(), why)));
        }
        let Some((login, text)) =
            said.data.and_then(|mut login| login.token.take().map(|text| (login, text)))
        else {
            return Ok(LoggedIn::WithoutToken);
        };
        let Ok(mut header) = HeaderValue::from_str(&text) else {
            let why = "the admin gave a token that no header can carry".to_owned();
            return Err(SendError::Refused(login_refused(self.attempt(), why)));
        };
        header.set_sensitive(true);
        let life = login.expired_time.filter(|&life| life > 0).unwrap_or(Login::DEFAULT_TOKEN_LIFE_MS);
        // A year is long enough, and keeps the arithmetic safe; one that is over at once would mean a login for each message.
        let life = Duration::from_millis(life.unsigned_abs()).clamp(SHORTEST_PAUSE, LONGEST_LIFE);
        let now = Instant::now();
        Ok(LoggedIn::Token(Token {
            header,
            renew_at: now + life.mul_f64(RENEWED_AFTER),
            ends_at: now + life,
            proven: Arc::default(),
            tells_expiry: login.expired_time.is_some(),
            tells_client_id: login.has_client_id,
        }))
    }

    fn no_token(&self) -> SendError {
        let why = "the admin gave no token: is it one of Soul? set `dialect` to `any`, or to `auto`";
        SendError::Refused(login_refused(self.attempt(), why.to_owned()))
    }

    fn bad_token(&self) -> SendError {
        let why = "the admin refuses the token that it has just given: do several admins with keys of their own share \
                   this address?";
        SendError::Refused(login_refused(self.attempt(), why.to_owned()))
    }

    /// What an admin says of a login, unless it repeats the password.
    fn harmless(&self, said: String) -> String {
        let password = self.credentials.as_ref().map_or("", |credentials| credentials.password.expose());
        let encoded: String = reqwest::Url::parse_with_params("http://a/", [("", password)]).map_or_else(
            |_| String::new(),
            |url| url.query().unwrap_or_default().trim_start_matches('=').to_owned(),
        );
        let repeats = [password, &encoded].into_iter().any(|form| !form.is_empty() && said.contains(form));
        if repeats { "the admin says no, in words that hold the password".to_owned() } else { words(&said) }
    }

    fn attempt(&self) -> String {
        match &self.credentials {
            Some(credentials) => format!("log in at `{}` as `{}`", self.admin, credentials.username),
            None => format!("log in at `{}`", self.admin),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("admin", &self.admin)
            .field("credentials", &self.credentials)
            .finish_non_exhaustive()
    }
}
