//! Saying that this instance leaves, once nothing of it registers any more.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::Status;
use crate::{
    error::{Error, Kind},
    meter::Meter,
    transport::{Message, SendError, Transport},
};

/// What is to be said at the end, to one admin that was told of this instance.
#[derive(Clone, Debug)]
pub(super) struct Farewell {
    pub(super) admin: usize,
    pub(super) lane: usize,
    pub(super) url: String,
    /// One for each namespace; none where an admin knows no such message.
    pub(super) messages: Vec<Message>,
}

/// Tells every admin at the same time, and no longer than `limit`.
///
/// Admins without such a message count as left: their probe finds the closed port.
pub(super) async fn say<T: Transport + Clone>(
    transport: &T,
    farewells: Vec<Farewell>,
    limit: Duration,
    status: &watch::Sender<Status>,
    meter: &Meter,
) {
    let mut under_way = JoinSet::new();
    for farewell in &farewells {
        let (transport, farewell) = (transport.clone(), farewell.clone());
        under_way.spawn(async move {
            let said = tokio::time::timeout(limit, one(&transport, &farewell)).await;
            let result = said.unwrap_or_else(|_| {
                let what = format!("go offline at `{}`: no answer within {limit:?}", farewell.url);
                Err(Arc::new(Error::new(Kind::Timeout, what)))
            });
            (farewell, result)
        });
    }
    while let Some(done) = under_way.join_next().await {
        let Ok((farewell, result)) = done else { continue };
        if !farewell.messages.is_empty() {
            meter.farewell(&farewell.url, result.is_ok());
        }
        match &result {
            Ok(()) if farewell.messages.is_empty() => {
                tracing::info!(admin = farewell.url, "leaving; this admin finds out by its probe");
            }
            Ok(()) => tracing::info!(admin = farewell.url, "offline"),
            Err(error) => tracing::warn!(
                admin = farewell.url,
                "not offline, the admin finds out by its probe: {}",
                error.chain()
            ),
        }
        let told = !farewell.messages.is_empty();
        status.send_modify(|status| status.left(farewell.admin, farewell.lane, told, result));
    }
}

async fn one<T: Transport>(transport: &T, farewell: &Farewell) -> Result<(), Arc<Error>> {
    for message in &farewell.messages {
        let sent = transport.send(&farewell.url, message.clone()).await;
        sent.map_err(|error| match error {
            SendError::Unanswered(cause) | SendError::Refused(cause) => cause,
        })?;
    }
    Ok(())
}
