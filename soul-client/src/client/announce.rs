//! What is told about this instance: found out before a round, and kept once it is sure.

use std::{net::SocketAddr, sync::Arc};

use crate::{
    address::{self, Announced, Facts},
    config::{AdminUrl, ClientConfig},
    error::Error,
    plan::{ClassDeclarations, RegistrationPlan},
};

/// Everything a plan is made of but the address.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) config: Arc<ClientConfig>,
    pub(super) declarations: Arc<ClassDeclarations>,
    pub(super) listener: SocketAddr,
}

impl Subject {
    pub(super) fn plan(&self, announced: &Announced) -> Result<RegistrationPlan, Error> {
        let properties = self.config.properties(announced.host(), announced.port());
        Ok(RegistrationPlan::new(&properties, &self.declarations)?)
    }

    pub(super) fn choose(&self, facts: &Facts) -> Announced {
        address::choose(self.config.host(), self.config.port(), self.listener, facts)
    }

    /// Whether the address follows from the settings alone.
    fn is_given(&self) -> bool {
        self.config.host().is_some() || !self.listener.ip().to_canonical().is_unspecified()
    }
}

/// Finds the address out for one group of admins.
#[derive(Debug)]
pub(super) struct Announcer {
    subject: Subject,
    admins: Vec<AdminUrl>,
    current: Option<Announced>,
    /// An admin has accepted it: from then on it stays, so that it never alternates between two.
    accepted: bool,
}

impl Announcer {
    pub(super) fn new(subject: Subject, admins: Vec<AdminUrl>) -> Self {
        Self { subject, admins, current: None, accepted: false }
    }

    pub(super) fn accept(&mut self) {
        self.accepted = true;
    }

    /// Looks again unless the answer is sure, and gives the plan if it is another one than before.
    ///
    /// A machine whose network is not up yet has nothing but loopback to offer. Looking before each round
    /// until one succeeds means that the network may come up after the service.
    pub(super) async fn look(&mut self) -> Result<Option<(Announced, RegistrationPlan)>, Error> {
        if self.current.as_ref().is_some_and(|current| self.accepted || !current.is_provisional()) {
            return Ok(None);
        }
        let facts =
            if self.subject.is_given() { Facts::default() } else { address::gather(&self.admins).await };
        let announced = self.subject.choose(&facts);
        if self.current.as_ref() == Some(&announced) {
            return Ok(None);
        }
        let plan = self.subject.plan(&announced)?;
        self.current = Some(announced.clone());
        Ok(Some((announced, plan)))
    }
}
