//! When to say that the instance is still there.

use tokio::time::Instant;

use crate::{error::Error, plan::Heartbeat, transport::Message};

/// Refusals in a row, each after a registration that was accepted, until it is clear that the admin knows no
/// heartbeat.
const REFUSALS: u32 = 3;

/// Beats only after a registration that was accepted: an admin that gets a heartbeat of an instance it does not know
/// may publish an empty list to the gateways (ShenYu specification, section 1.11).
#[derive(Debug, Default)]
pub(super) struct Heart {
    period: Option<Heartbeat>,
    beats: Vec<Message>,
    next: Option<Instant>,
    refusals: u32,
}

impl Heart {
    pub(super) fn new(period: Option<Heartbeat>, beats: Vec<Message>) -> Self {
        let period = period.filter(|_| !beats.is_empty());
        Self { period, beats, next: None, refusals: 0 }
    }

    /// When the next beat is due; `None`: never.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn beats(&self) -> Vec<Message> {
        self.beats.clone()
    }

    /// A registration was accepted. One that only repeats another changes nothing.
    pub(super) fn start(&mut self) {
        if self.next.is_none() {
            self.next = self.period.map(|period| Instant::now() + period.first);
        }
    }

    /// A registration failed.
    pub(super) fn still(&mut self) {
        self.next = None;
    }

    pub(super) fn was_taken(&mut self) {
        self.refusals = 0;
        self.next = self.period.map(|period| Instant::now() + period.period);
    }

    /// A beat failed: none until the next registration. Whether there will be any then.
    pub(super) fn was_refused(&mut self, cause: &Error) -> bool {
        self.next = None;
        self.refusals = if cause.is_rejected() { self.refusals + 1 } else { 0 };
        if self.refusals >= REFUSALS {
            self.period = None;
        }
        self.period.is_some()
    }
}
