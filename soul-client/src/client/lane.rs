//! The loop of one group of admins that are told together. It ends by shutdown only.

use std::{sync::Arc, time::Duration};

use tokio_util::task::AbortOnDropHandle;

use super::{
    announce::{Announcer, Subject},
    report::Reporter,
    round::{Crew, Item, Outcome, items},
};
use crate::{
    backoff::Delays,
    error::{Error, Kind},
    transport::Transport,
};

/// Everything the loop owns.
pub(super) struct Lane<T> {
    crew: Arc<Crew<T>>,
    subject: Subject,
    announcer: Announcer,
    delays: Delays,
    report: Reporter,
    /// What is sent, once the address is known.
    items: Arc<[Item]>,
    /// What has not been accepted since the last round that left nothing.
    pending: Vec<usize>,
}

impl<T: Transport> Lane<T> {
    pub(super) fn new(crew: Crew<T>, subject: Subject, announcer: Announcer, delays: Delays) -> Self {
        let report = Reporter::new(&crew.admins);
        Self {
            crew: Arc::new(crew),
            subject,
            announcer,
            delays,
            report,
            items: Arc::new([]),
            pending: Vec::new(),
        }
    }

    /// Rounds and waits, until the client is stopped.
    pub(super) async fn run(mut self) {
        let stop = self.crew.stop.clone();
        while !stop.is_cancelled() {
            let wait = self.step().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = sleep(wait) => {}
            }
        }
    }

    /// One round; says how long to wait for the next, `None` for ever.
    async fn step(&mut self) -> Option<Duration> {
        let stop = self.crew.stop.clone();
        let looked = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            looked = self.look() => looked,
        };
        if let Err(cause) = looked {
            // The same plan was made at start, so this does not happen; if it does, it is visible.
            return Some(self.failed(&Outcome {
                left: Vec::new(),
                cause: Some(Arc::new(cause)),
                accepted_by: None,
            }));
        }
        if self.pending.is_empty() {
            self.pending = (0..self.items.len()).collect();
        }

        let outcome = self.guarded_round().await;
        self.pending.clone_from(&outcome.left);
        match outcome.accepted_by.as_deref() {
            Some(_) if stop.is_cancelled() => None,
            Some(accepted_by) if outcome.left.is_empty() => {
                self.announcer.accept();
                self.report.succeeded(self.items.len(), accepted_by);
                self.delays.reset();
                self.subject.config.refresh_interval().map(|interval| self.delays.around(interval))
            }
            accepted_by => {
                if accepted_by.is_some() {
                    self.announcer.accept();
                }
                Some(self.failed(&outcome))
            }
        }
    }

    /// Finds out what to announce, if that is not sure yet.
    async fn look(&mut self) -> Result<(), Error> {
        let Some((announced, plan)) = self.announcer.look().await? else { return Ok(()) };
        let doubt = announced.doubt(self.announcer.admins_are_local());
        self.report.announcing(&self.subject, &announced, plan.registrations().len(), doubt);
        let admins = self.admins();
        self.crew.status.send_modify(|status| status.announce(&admins, &announced));
        self.items = items(&plan);
        // Another address is another registration of every route.
        self.pending.clear();
        Ok(())
    }

    /// A round in a task of its own: if it panics, that is counted, and everything is sent again.
    async fn guarded_round(&mut self) -> Outcome {
        let round = Arc::clone(&self.crew).round(Arc::clone(&self.items), self.pending.clone());
        match AbortOnDropHandle::new(tokio::spawn(round)).await {
            Ok(outcome) => outcome,
            Err(error) => {
                if error.is_panic() {
                    self.report.panicked();
                    self.crew.status.send_modify(|status| status.panics += 1);
                }
                let cause = Error::new(Kind::Panicked, "send a round of registrations").with_source(error);
                Outcome { left: self.pending.clone(), cause: Some(Arc::new(cause)), accepted_by: None }
            }
        }
    }

    fn failed(&mut self, outcome: &Outcome) -> Duration {
        let delay = self.delays.next_delay();
        if !self.crew.stop.is_cancelled() {
            let admins = self.admins();
            self.crew.status.send_modify(|status| status.retry_in(&admins, delay));
            self.report.failed(outcome.left.len(), outcome.cause.as_ref(), delay);
        }
        delay
    }

    fn admins(&self) -> Vec<usize> {
        self.crew.admins.iter().map(|(admin, _)| *admin).collect()
    }
}

/// For ever, if there is nothing to wait for.
async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}
