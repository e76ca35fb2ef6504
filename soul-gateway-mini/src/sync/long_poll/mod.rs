//! HTTP long polling of one of several admins (specification, sections 10.2 and 10.3).
//!
//! One admin is followed as long as it answers; when it fails, the next one is, from a full fetch on. Its
//! checksums and times are echoed and never computed or compared with another admin's, so admins of different
//! make may stand behind one gateway.

mod admin;
mod answer;
mod http;
mod pace;

use soul_client::wire::soul::ConfigGroup;
use url::Url;

pub use self::http::RequestError;
use self::{
    admin::AdminApi,
    answer::{Echo, Known},
    http::HttpClient,
    pace::Pace,
};
use super::{Source, SyncConfig, SyncError, Update};
use crate::causes::chain;

/// An admin, and whether it failed when it was last asked.
struct Followable {
    api: AdminApi,
    failed: bool,
}

/// Follows one of several admins.
pub(crate) struct LongPoll {
    admins: Vec<Followable>,
    followed: usize,
    /// What the followed admin wants echoed, one a group; `None` until its configuration was fetched whole.
    echoes: Option<[Echo; 5]>,
    /// What was read last: an answer has whole groups, of which most is as before.
    known: Known,
    pace: Pace,
}

impl LongPoll {
    pub(crate) fn new(admins: &[Url], config: &SyncConfig) -> Self {
        let http = HttpClient::new(config);
        let admin = |url| Followable { api: AdminApi::new(url, http.clone(), config), failed: false };
        let admins = admins.iter().map(admin).collect();
        Self { admins, followed: 0, echoes: None, known: Known::default(), pace: Pace::default() }
    }

    /// Asks the followed admin: for everything at first contact, for changes from then on.
    async fn ask(&mut self) -> Result<Update, SyncError> {
        let admin = &self.admins[self.followed].api;
        let Some(echoes) = &mut self.echoes else {
            let fetched = admin.fetch(&ConfigGroup::ALL, &mut self.known).await?;
            let (echoes, learned) = fetched.into_iter().map(|f| (f.echo, f.learned)).unzip();
            self.echoes = in_wire_order(echoes);
            self.pace = Pace::default();
            return Ok(Update::Refresh(learned));
        };
        self.pace.wait().await;
        let asked = self.pace.start();
        let changed = admin.poll(echoes).await?;
        if changed.is_empty() {
            self.pace.unchanged(asked, admin.name());
            return Ok(Update::Unchanged);
        }
        let mut learned = Vec::with_capacity(changed.len());
        for fetched in admin.fetch(&changed, &mut self.known).await? {
            let echo = &mut echoes[fetched.group as usize];
            // The checksum decides; a time that went back (a restarted admin) is the admin's own affair.
            if echo.md5 != fetched.echo.md5 {
                learned.push(fetched.learned);
            }
            *echo = fetched.echo;
        }
        if learned.is_empty() {
            self.pace.same_checksum(&changed, admin.name());
            return Ok(Update::Unchanged);
        }
        self.pace.changed();
        Ok(Update::Groups(learned))
    }

    /// The followed admin answered.
    fn works(&mut self) {
        let admin = &mut self.admins[self.followed];
        if admin.failed {
            admin.failed = false;
            tracing::info!(admin = admin.api.name(), "the admin answers again");
        }
    }

    /// The followed admin failed; the next one is followed, from the start. Its first failure is told here if another
    /// one is asked at once, else by whoever hears the error.
    fn go_on(&mut self, error: &SyncError, others: bool) {
        let admin = &mut self.admins[self.followed];
        if others && !admin.failed {
            tracing::warn!(
                admin = admin.api.name(),
                error = chain(error),
                "the admin failed, asking the next one"
            );
        }
        admin.failed = true;
        self.echoes = None;
        self.followed = (self.followed + 1) % self.admins.len();
    }
}

/// The echoes of a full fetch, which come in the order of [`ConfigGroup::ALL`].
fn in_wire_order(echoes: Vec<Echo>) -> Option<[Echo; 5]> {
    echoes.try_into().ok()
}

impl Source for LongPoll {
    fn describe(&self) -> String {
        self.admins.get(self.followed).map_or_else(String::new, |admin| admin.api.name().to_owned())
    }

    async fn next(&mut self) -> Result<Update, SyncError> {
        let mut last = None;
        for left in (0..self.admins.len()).rev() {
            match self.ask().await {
                Ok(update) => {
                    self.works();
                    return Ok(update);
                }
                Err(error) => {
                    self.go_on(&error, left > 0);
                    last = Some(error);
                }
            }
        }
        match last {
            Some(error) if self.admins.len() == 1 => Err(error),
            Some(error) => Err(SyncError::NoAdmin { admins: self.admins.len(), source: Box::new(error) }),
            None => Err(SyncError::NoAdminGiven),
        }
    }
}
