//! One round: everything that is pending is sent, a few at a time.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::Status;
use crate::{
    error::{Error, Kind},
    meter::{Meter, Told},
    plan::{Dialect, RegistrationPlan, ShenyuVersion},
    transport::{Message, SendError, Transport},
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
    /// Admins of the lane that were told of the instance, as indices into `admins`, whether or not they answered.
    pub(super) told: Mutex<BTreeSet<usize>>,
    pub(super) stop: CancellationToken,
    pub(super) give_up: CancellationToken,
    pub(super) meter: Meter,
}

/// A registration, ready to be sent any number of times.
#[derive(Clone, Debug)]
pub(super) struct Item {
    message: Message,
    of: Of,
}

/// What is registered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// A route; those of one kind and namespace share a selector.
    Route(Arc<str>, Option<Arc<str>>),
    /// The instance itself, which an admin puts into a selector that is there.
    Instance,
}

impl Of {
    fn told(&self) -> Told {
        match self {
            Self::Route(..) => Told::Route,
            Self::Instance => Told::Instance,
        }
    }
}

/// The bodies of a plan: routes in its order, and then the instance. Those without an endpoint were refused at
/// start.
pub(super) fn items(plan: &RegistrationPlan, dialect: Dialect) -> Arc<[Item]> {
    let message = |endpoint, body: &str| message(dialect, endpoint, body);
    let routes = plan.registrations().iter().map(|registration| Item {
        message: message(registration.endpoint().unwrap_or_default(), registration.body()),
        of: Of::Route(registration.rpc_type().into(), registration.namespace().map(Into::into)),
    });
    let instances = plan.instances().iter();
    let instances = instances.map(|instance| Item {
        message: message(instance.endpoint(), instance.register()),
        of: Of::Instance,
    });
    routes.chain(instances).collect()
}

/// How many of them are routes.
pub(super) fn routes(items: &[Item]) -> usize {
    items.iter().filter(|item| item.of != Of::Instance).count()
}

/// A body for an admin of this dialect.
pub(super) fn message(dialect: Dialect, endpoint: &'static str, body: &str) -> Message {
    let needs_login = dialect.shenyu().is_some_and(ShenyuVersion::needs_login);
    Message { endpoint, body: body.into(), needs_login }
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
    ///
    /// The instance itself goes last, and only to admins that have a route of it to put it into.
    pub(super) async fn round(self: Arc<Self>, items: Arc<[Item]>, pending: Vec<usize>) -> Outcome {
        let left = pending.iter().copied().collect();
        let mut ledger = Ledger { left, cause: None, accepted_by: None };
        let mut start = 0;
        let is_instance = |number: &usize| items.get(*number).is_some_and(|item| item.of == Of::Instance);
        let (instances, routes): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_instance);
        let all_routes = self::routes(&items);
        let (leaders, others) = part(&items, &routes);
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

        self.several(&items, others, start, &mut ledger).await;
        if ledger.left.iter().filter(|number| !is_instance(number)).count() < all_routes {
            self.several(&items, instances, start, &mut ledger).await;
        }
        self.conclude(ledger)
    }

    /// Sends some, a few at a time.
    async fn several(self: &Arc<Self>, items: &[Item], some: Vec<usize>, start: usize, ledger: &mut Ledger) {
        let mut others = some.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.concurrency && !self.stop.is_cancelled() {
                let Some(route) = others.next() else { break };
                self.launch(&mut under_way, items, route, start);
            }
            if under_way.is_empty() {
                break;
            }
            self.next(&mut under_way, ledger).await;
        }
    }

    /// Says that the instance is still there, to the first admin that answers.
    pub(super) async fn beat(self: Arc<Self>, beats: Vec<Message>) -> Result<(), SendError> {
        for beat in beats {
            if self.stop.is_cancelled() {
                break;
            }
            let mut result = Ok(());
            for (_, url) in &self.admins {
                result = tokio::select! {
                    biased;
                    () = self.give_up.cancelled() => return Ok(()),
                    result = self.transport.send(url, beat.clone()) => result,
                };
                self.meter.heartbeat(url, &result);
                if !matches!(result, Err(SendError::Unanswered(_))) {
                    break;
                }
            }
            result?;
        }
        Ok(())
    }

    /// Those that were told of the instance: index in the lane, number in the status, address.
    pub(super) fn told(&self) -> Vec<(usize, String)> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().filter_map(|&index| self.admins.get(index).cloned()).collect()
    }

    /// Nothing could be sent to any admin of the lane.
    pub(super) fn fail_all(&self, items: usize, cause: &Arc<Error>) {
        self.status.send_modify(|status| {
            for (admin, _) in &self.admins {
                for number in 0..items {
                    status.failed(*admin, number, cause);
                    status.settle(self.lane, number, false);
                }
            }
        });
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
            // What is sent may arrive although nobody answers, and is then to be taken back.
            self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(by);
            let told = item.of.told();
            self.meter.attempt(url, told, self.status.borrow().has_failed(*admin, route));
            let result = self.transport.send(url, item.message.clone()).await;
            self.meter.registration(url, told, &result);
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
                    self.meter.panic();
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

/// The first route of each kind and namespace, and the others.
fn part(items: &[Item], pending: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut kinds = BTreeSet::new();
    let kind = |route: &usize| items.get(*route).map(|item| item.of.clone());
    pending.iter().partition(|route| kinds.insert(kind(route)))
}
