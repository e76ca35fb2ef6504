//! One round: everything that is pending is sent, a few at a time.

use std::{collections::BTreeSet, sync::Arc};

use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::Status;
use crate::{
    error::{Error, Kind},
    plan::RegistrationPlan,
    transport::{SendError, Transport},
};

/// What a round needs; shared by the tasks of the round.
pub(super) struct Crew<T> {
    pub(super) transport: T,
    /// The admins of this lane: their number in the status and their address.
    pub(super) admins: Vec<(usize, String)>,
    /// Number of the lane in the status.
    pub(super) lane: usize,
    pub(super) status: Arc<watch::Sender<Status>>,
    pub(super) concurrency: usize,
    pub(super) stop: CancellationToken,
    pub(super) give_up: CancellationToken,
}

/// A registration, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(super) struct Item {
    endpoint: &'static str,
    body: Arc<str>,
    /// Routes of one kind share a selector.
    rpc_type: Arc<str>,
}

/// The bodies of a plan, in its order. Those without an endpoint were refused at start.
pub(super) fn items(plan: &RegistrationPlan) -> Arc<[Item]> {
    let item = |registration: &crate::plan::Registration| Item {
        endpoint: registration.endpoint().unwrap_or_default(),
        body: registration.body().into(),
        rpc_type: registration.rpc_type().into(),
    };
    plan.registrations().iter().map(item).collect()
}

/// How a round ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What is to be sent again, in the order of the plan.
    pub(super) left: Vec<usize>,
    /// Why; one cause out of many.
    pub(super) cause: Option<Arc<Error>>,
    /// Address of an admin that accepted something.
    pub(super) accepted_by: Option<String>,
}

/// What became of one registration; admins are indices into those of the lane.
struct Tried {
    route: usize,
    answer: Answer,
    /// Who did not answer, and why.
    silent: Vec<(usize, Arc<Error>)>,
}

enum Answer {
    Accepted { by: usize },
    Refused { by: usize, cause: Arc<Error> },
    None,
}

/// The books of a round.
struct Ledger {
    left: BTreeSet<usize>,
    cause: Option<Arc<Error>>,
    accepted_by: Option<usize>,
}

impl Ledger {
    fn book(&mut self, tried: &Tried) {
        match &tried.answer {
            Answer::Accepted { by } => {
                self.left.remove(&tried.route);
                self.accepted_by = Some(*by);
            }
            // What an admin says weighs more than that another one is away.
            Answer::Refused { cause, .. } => self.cause = Some(Arc::clone(cause)),
            Answer::None => {
                let last = tried.silent.last().map(|(_, cause)| Arc::clone(cause));
                self.cause = self.cause.take().or(last);
            }
        }
    }
}

impl<T: Transport> Crew<T> {
    /// Sends `pending`, and says what is left.
    ///
    /// The first route of each kind goes alone: it makes the selector, and an admin of February 2021 that gets
    /// two at once may make it twice or fail (specification, section 2.7). It also finds out which
    /// admin answers, and whether any does: if none, the others are not even tried.
    pub(super) async fn round(self: Arc<Self>, items: Arc<[Item]>, pending: Vec<usize>) -> Outcome {
        let left = pending.iter().copied().collect();
        let mut ledger = Ledger { left, cause: None, accepted_by: None };
        let mut start = 0;
        let (leaders, others) = part(&items, &pending);
        for leader in leaders {
            let mut alone = JoinSet::new();
            self.launch(&mut alone, &items, leader, start);
            let Some(tried) = self.next(&mut alone, &mut ledger).await else { continue };
            match tried.answer {
                Answer::Accepted { by } | Answer::Refused { by, .. } => start = by,
                Answer::None => {
                    self.nobody_answers(&ledger, &tried);
                    return self.conclude(ledger);
                }
            }
        }

        let mut others = others.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.concurrency && !self.stop.is_cancelled() {
                let Some(route) = others.next() else { break };
                self.launch(&mut under_way, &items, route, start);
            }
            if under_way.is_empty() {
                break;
            }
            self.next(&mut under_way, &mut ledger).await;
        }
        self.conclude(ledger)
    }

    fn launch(self: &Arc<Self>, tasks: &mut JoinSet<Tried>, items: &[Item], route: usize, start: usize) {
        let Some(item) = items.get(route).cloned() else { return };
        let crew = Arc::clone(self);
        tasks.spawn(async move { crew.try_admins(item, route, start).await });
    }

    /// Asks the admins of the lane one after the other, beginning with `start`, until one answers.
    async fn try_admins(&self, item: Item, route: usize, start: usize) -> Tried {
        let mut silent = Vec::new();
        let admins = self.admins.iter().enumerate().cycle().skip(start).take(self.admins.len());
        for (by, (admin, url)) in admins {
            if self.stop.is_cancelled() {
                break;
            }
            let result = self.transport.send(url, item.endpoint, Arc::clone(&item.body)).await;
            self.note(*admin, url, route, &result);
            let answer = match result {
                Ok(()) => Answer::Accepted { by },
                Err(SendError::Refused(cause)) => Answer::Refused { by, cause },
                Err(SendError::Unanswered(cause)) => {
                    silent.push((by, cause));
                    continue;
                }
            };
            return Tried { route, answer, silent };
        }
        Tried { route, answer: Answer::None, silent }
    }

    fn note(&self, admin: usize, url: &str, route: usize, result: &Result<(), SendError>) {
        match result {
            Ok(()) => tracing::trace!(admin = url, route, "registration accepted"),
            Err(error) => {
                tracing::debug!(admin = url, route, error = %error.cause().chain(), "registration failed")
            }
        }
        self.status.send_modify(|status| match result {
            Ok(()) => {
                status.accepted(admin, route);
                status.settle(self.lane, route, true);
            }
            Err(error) => status.failed(admin, route, error.cause()),
        });
    }

    /// Waits for one of the tasks and books it; `None` if it panicked or was given up.
    async fn next(&self, tasks: &mut JoinSet<Tried>, ledger: &mut Ledger) -> Option<Tried> {
        let done = tokio::select! {
            biased;
            () = self.give_up.cancelled() => {
                tasks.shutdown().await;
                return None;
            }
            done = tasks.join_next() => done?,
        };
        match done {
            Ok(tried) => {
                ledger.book(&tried);
                Some(tried)
            }
            Err(error) => {
                if error.is_panic() {
                    self.status.send_modify(|status| status.panics += 1);
                    ledger.cause = Some(Arc::new(Error::new(Kind::Panicked, "register").with_source(error)));
                }
                None
            }
        }
    }

    /// The others would have met the same silence.
    fn nobody_answers(&self, ledger: &Ledger, leader: &Tried) {
        self.status.send_modify(|status| {
            for (index, cause) in &leader.silent {
                let Some((admin, _)) = self.admins.get(*index) else { continue };
                for &route in ledger.left.iter().filter(|&&route| route != leader.route) {
                    status.failed(*admin, route, cause);
                }
            }
        });
    }

    fn conclude(&self, ledger: Ledger) -> Outcome {
        self.status.send_modify(|status| {
            for &route in &ledger.left {
                status.settle(self.lane, route, false);
            }
        });
        let accepted_by = ledger.accepted_by.and_then(|by| self.admins.get(by)).map(|(_, url)| url.clone());
        Outcome { left: ledger.left.into_iter().collect(), cause: ledger.cause, accepted_by }
    }
}

/// The first route of each kind, and the others.
fn part(items: &[Item], pending: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut kinds = BTreeSet::new();
    let kind = |route: &usize| items.get(*route).map(|item| Arc::clone(&item.rpc_type));
    pending.iter().partition(|route| kinds.insert(kind(route)))
}
