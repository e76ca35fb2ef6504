//! The loop of one group of admins that are told together. It ends by shutdown only.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    announce::{Announcer, Subject},
    heart::Heart,
    leave::Farewell,
    report::Reporter,
    round::{Crew, Item, Outcome, items, message, routes},
};
use crate::{
    backoff::Delays,
    error::{Error, Kind},
    plan::{Dialect, RegistrationPlan},
    transport::{Message, Transport},
    wire::soul::paths::OFFLINE,
};

/// Everything the loop owns.
pub(super) struct Lane<T> {
    crew: Arc<Crew<T>>,
    subject: Subject,
    announcer: Announcer,
    delays: Delays,
    report: Reporter,
    /// What the admins speak; [`Dialect::Auto`] until that is found out.
    dialect: Dialect,
    /// What is sent, once the address is known.
    items: Arc<[Item]>,
    /// What has not been accepted since the last round that left nothing.
    pending: Vec<usize>,
    heart: Heart,
    /// What takes the instance out.
    leaves: Vec<Message>,
}

impl<T: Transport> Lane<T> {
    pub(super) fn new(crew: Crew<T>, subject: Subject, announcer: Announcer, delays: Delays) -> Self {
        let report = Reporter::new(&crew.admins);
        Self {
            crew: Arc::new(crew),
            dialect: subject.config.dialect(),
            subject,
            announcer,
            delays,
            report,
            items: Arc::new([]),
            pending: Vec::new(),
            heart: Heart::default(),
            leaves: Vec::new(),
        }
    }

    /// Rounds and waits, until the client is stopped; gives what is to be said then.
    pub(super) async fn run(mut self) -> Vec<Farewell> {
        let stop = self.crew.stop.clone();
        while !stop.is_cancelled() {
            let wait = self.step().await;
            self.rest(wait).await;
        }
        let lane = self.crew.lane;
        let farewell = |(admin, url): (usize, String)| {
            let takes = self.dialect.shenyu().is_some() || self.crew.transport.takes_farewell(&url);
            let messages = if takes { self.leaves.clone() } else { Vec::new() };
            Farewell { admin, lane, url, messages }
        };
        self.crew.told().into_iter().map(farewell).collect()
    }

    /// Waits for the next round, and beats meanwhile. A beat that fails calls for a round at once.
    async fn rest(&mut self, wait: Option<Duration>) {
        let stop = self.crew.stop.clone();
        let round_at = wait.map(|wait| Instant::now() + wait);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = until(round_at) => return,
                () = until(self.heart.next()) => if !self.beat().await { return },
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
            self.heart.still();
            let all = self.items_expected();
            self.crew.fail_all(all, &cause);
            let left = (0..all).collect();
            return Some(self.failed(&Outcome { left, cause: Some(cause), accepted_by: None }));
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
                self.heart.start();
                self.report.succeeded(routes(&self.items), accepted_by);
                self.delays.reset();
                self.subject.config.refresh_interval().map(|interval| self.delays.around(interval))
            }
            accepted_by => {
                match accepted_by {
                    Some(_) => self.announcer.accept(),
                    // It may be another one than before.
                    None => self.dialect = self.subject.config.dialect(),
                }
                self.heart.still();
                Some(self.failed(&outcome))
            }
        }
    }

    /// Finds out what to announce and how, if that is not sure yet.
    async fn look(&mut self) -> Result<(), Arc<Error>> {
        if self.dialect == Dialect::Auto {
            // With `auto` every admin has a lane of its own.
            let Some((_, url)) = self.crew.admins.first() else { return Ok(()) };
            let detected = self.crew.transport.detect(url).await;
            self.crew.meter.detection(url, &detected);
            self.dialect = detected.map_err(|error| Arc::clone(error.cause()))?;
            self.report.detected(self.dialect);
        }
        let Some((announced, plan)) = self.announcer.look(self.dialect).await.map_err(Arc::new)? else {
            return Ok(());
        };
        self.refuse_failures(&plan)?;
        let doubt = announced.doubt(self.announcer.admins_are_local());
        self.report.announcing(&self.subject, &announced, plan.registrations().len(), doubt);
        let (admins, lane, dialect) = (self.admins(), self.crew.lane, self.dialect);
        self.crew.status.send_modify(|status| {
            status.plan(&admins, lane, &plan, dialect);
            status.announce(&admins, &announced);
        });
        self.adopt(&plan);
        Ok(())
    }

    /// A plan that was good for one dialect may not be for the one that was found.
    fn refuse_failures(&mut self, plan: &RegistrationPlan) -> Result<(), Arc<Error>> {
        let Some(failure) = plan.failures().first() else { return Ok(()) };
        self.announcer.forget();
        Err(Arc::new(failure.clone().into()))
    }

    fn adopt(&mut self, plan: &RegistrationPlan) {
        let dialect = self.dialect;
        self.items = items(plan, dialect);
        // Another address, or another dialect, is another registration of every route.
        self.pending.clear();
        let instances = plan.instances().iter();
        let beats = instances
            .clone()
            .filter_map(|instance| Some(message(dialect, instance.endpoint(), instance.heartbeat()?)));
        let period = self.subject.config.heartbeat(dialect);
        self.heart = Heart::new(period, beats.collect());
        let leaves = instances.filter_map(|instance| {
            instance.leave().map(|leave| message(dialect, leave.endpoint, &leave.body))
        });
        self.leaves = leaves.collect();
        let farewells = plan.farewells().into_iter();
        self.leaves.extend(farewells.map(|of| message(dialect, OFFLINE, of.body())));
    }

    /// Says that the instance is still there; whether nothing is to be done about the answer.
    async fn beat(&mut self) -> bool {
        let beat = Arc::clone(&self.crew).beat(self.heart.beats());
        let cause = match AbortOnDropHandle::new(tokio::spawn(beat)).await {
            Ok(Ok(())) => {
                self.heart.was_taken();
                return true;
            }
            Ok(Err(error)) => Arc::clone(error.cause()),
            Err(error) => Arc::new(self.panicked("send a heartbeat", error)),
        };
        let still_beating = self.heart.was_refused(&cause);
        if self.crew.stop.is_cancelled() {
            return false;
        }
        if still_beating {
            self.report.missed_beat(&cause)
        } else {
            self.report.beats_refused(&cause)
        }
        self.pending.clear();
        false
    }

    /// A round in a task of its own: if it panics, that is counted, and everything is sent again.
    async fn guarded_round(&mut self) -> Outcome {
        let round = Arc::clone(&self.crew).round(Arc::clone(&self.items), self.pending.clone());
        match AbortOnDropHandle::new(tokio::spawn(round)).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let cause = self.panicked("send a round of registrations", error);
                Outcome { left: self.pending.clone(), cause: Some(Arc::new(cause)), accepted_by: None }
            }
        }
    }

    fn panicked(&self, what: &str, error: tokio::task::JoinError) -> Error {
        if error.is_panic() {
            self.report.panicked();
            self.crew.meter.panic();
            self.crew.status.send_modify(|status| status.panics += 1);
        }
        Error::new(Kind::Panicked, what).with_source(error)
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

    /// Rows of the status.
    fn items_expected(&self) -> usize {
        self.crew.status.borrow().rows(self.crew.lane)
    }
}

/// For ever, if there is nothing to wait for.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
