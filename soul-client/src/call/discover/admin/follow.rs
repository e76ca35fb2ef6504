//! Following one admin of several.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    Inner,
    api::{AdminApi, NEWER},
    read::{Fetched, Selectors},
};
use crate::{
    backoff::{Bounds, Delays},
    call::DiscoverError,
    wire::soul::ConfigGroup,
};

/// Waits between two rounds in which every admin failed.
const RETRY: Bounds = Bounds { min: Duration::from_secs(1), max: Duration::from_secs(30) };

/// An answer to a poll that comes sooner than this was not held.
const HELD: Duration = Duration::from_secs(1);

/// First and longest pause before the next poll, after the second answer in a row that was not held and brought nothing.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// What an admin wants echoed: the checksum of each group.
pub(super) type Checksums = HashMap<&'static str, String>;

/// Why following ended.
enum End {
    /// Nobody listens any more.
    Unheard,
    /// The admin failed; whether it had answered before.
    Failed { error: DiscoverError, after_success: bool },
}

/// Follows admins until nobody listens.
pub(super) async fn run(inner: Arc<Inner>) {
    let mut delays = Delays::from_rng(RETRY, fastrand::Rng::new());
    let mut failed_in_a_row = 0;
    for admin in inner.admins.iter().cycle() {
        let (error, after_success) = match follow(&inner, admin).await {
            End::Unheard => return,
            End::Failed { error, after_success } => (error, after_success),
        };
        if after_success {
            failed_in_a_row = 0;
            delays.reset();
        }
        failed_in_a_row += 1;
        let error = error.chain();
        if failed_in_a_row < inner.admins.len() {
            tracing::warn!(admin = admin.name(), error, "the admin failed, asking the next one");
            continue;
        }
        failed_in_a_row = 0;
        if !inner.fail(error) {
            return;
        }
        sleep(delays.next_delay()).await;
    }
}

async fn follow(inner: &Inner, admin: &AdminApi) -> End {
    let mut followed = match Followed::begin(admin).await {
        Ok(followed) => followed,
        Err(error) => return End::Failed { error, after_success: false },
    };
    loop {
        if !inner.publish(&followed.selectors) {
            return End::Unheard;
        }
        if let Err(error) = followed.wait(admin).await {
            return End::Failed { error, after_success: true };
        }
    }
}

/// What is known of the admin that is followed.
struct Followed {
    checksums: Checksums,
    selectors: Arc<Selectors>,
    /// Answers in a row that were not held and brought nothing.
    pointless: u32,
}

impl Followed {
    /// Asks for everything.
    async fn begin(admin: &AdminApi) -> Result<Self, DiscoverError> {
        let mut this = Self { checksums: Checksums::new(), selectors: Arc::default(), pointless: 0 };
        this.take(admin.fetch(&ConfigGroup::ALL.map(ConfigGroup::as_str)).await?);
        if admin.may_have_newer_groups() {
            // One by one: a request that names an unknown group fails as a whole.
            for group in NEWER {
                if let Ok(fetched) = admin.fetch(&[group]).await {
                    this.take(fetched);
                }
            }
        }
        Ok(this)
    }

    /// Returns when something changed, or the admin said that nothing did.
    async fn wait(&mut self, admin: &AdminApi) -> Result<(), DiscoverError> {
        let asked = Instant::now();
        let changed = admin.poll(&self.checksums).await?;
        let is_news = !changed.is_empty() && {
            let fetched = admin.fetch(&changed).await?;
            self.take(fetched)
        };
        if is_news || asked.elapsed() >= HELD {
            self.pointless = 0;
            return Ok(());
        }
        // One is normal: a Java admin answers everyone on any save. More would be a circle.
        self.pointless = self.pointless.saturating_add(1);
        if self.pointless > 1 {
            let (first, longest) = PAUSES;
            sleep((first * 2_u32.saturating_pow((self.pointless - 2).min(16))).min(longest)).await;
        }
        Ok(())
    }

    /// Gives whether a checksum is new.
    fn take(&mut self, fetched: Fetched) -> bool {
        let mut is_news = false;
        for (group, checksum) in fetched.checksums {
            is_news |= self.checksums.insert(group, checksum.clone()) != Some(checksum);
        }
        if fetched.selectors.is_some() || fetched.pushed.is_some() {
            self.selectors = Arc::new(Selectors {
                selectors: fetched.selectors.unwrap_or_else(|| self.selectors.selectors.clone()),
                pushed: fetched.pushed.unwrap_or_else(|| self.selectors.pushed.clone()),
            });
        }
        is_news
    }
}
