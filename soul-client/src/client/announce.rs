//! What is told about this instance: found out before a round, and kept once it is sure.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    address::{self, Announced, Facts},
    config::{AdminUrl, ClientConfig},
    error::Error,
    plan::{ClassDeclarations, Dialect, RegistrationPlan},
    wire::shenyu::InstanceInfo,
};

/// Everything a plan is made of but the address.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) config: Arc<ClientConfig>,
    pub(super) declarations: Arc<ClassDeclarations>,
    pub(super) listener: SocketAddr,
    /// When the client was started.
    pub(super) started: SystemTime,
}

impl Subject {
    pub(super) fn plan(&self, announced: &Announced, dialect: Dialect) -> Result<RegistrationPlan, Error> {
        let mut properties = self.config.properties(announced.host(), announced.port());
        properties.dialect = dialect;
        let since = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        properties.time_millis = i64::try_from(since.as_millis()).ok();
        properties.instance_info = Some(this_machine());
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

/// What heartbeats tell of the machine, as far as the standard library knows it.
fn this_machine() -> InstanceInfo {
    let processors = std::thread::available_parallelism().ok();
    InstanceInfo {
        arch: Some(std::env::consts::ARCH.to_owned()),
        operating_system: Some(std::env::consts::OS.to_owned()),
        available_processors: processors.and_then(|number| u32::try_from(number.get()).ok()),
        total_memory_size_gb: None,
    }
}

/// Finds the address out for one group of admins.
#[derive(Debug)]
pub(super) struct Announcer {
    subject: Subject,
    admins: Vec<AdminUrl>,
    current: Option<(Announced, Dialect)>,
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
    pub(super) async fn look(
        &mut self,
        dialect: Dialect,
    ) -> Result<Option<(Announced, RegistrationPlan)>, Error> {
        if !self.is_sure() {
            let facts = if self.subject.is_given() {
                Facts::default()
            } else {
                self.subject.config.wishes().apply(address::gather(&self.admins).await)
            };
            return self.decide(&facts, dialect);
        }
        match self.current.clone() {
            Some((announced, spoken)) if spoken != dialect => self.settle(announced, dialect),
            _ => Ok(None),
        }
    }

    fn is_sure(&self) -> bool {
        self.current.as_ref().is_some_and(|(current, _)| self.accepted || !current.is_provisional())
    }

    fn decide(
        &mut self,
        facts: &Facts,
        dialect: Dialect,
    ) -> Result<Option<(Announced, RegistrationPlan)>, Error> {
        let announced = self.subject.choose(facts);
        self.settle(announced, dialect)
    }

    fn settle(
        &mut self,
        announced: Announced,
        dialect: Dialect,
    ) -> Result<Option<(Announced, RegistrationPlan)>, Error> {
        let found = (announced, dialect);
        if self.current.as_ref() == Some(&found) {
            return Ok(None);
        }
        let plan = self.subject.plan(&found.0, dialect)?;
        self.current = Some(found.clone());
        Ok(Some((found.0, plan)))
    }

    /// The plan was of no use: it is made again.
    pub(super) fn forget(&mut self) {
        self.current = None;
    }

    /// Whether every admin is on this machine, by the way its address is written.
    pub(super) fn admins_are_local(&self) -> bool {
        self.admins.iter().all(AdminUrl::is_local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{Annotation, Collected, Route};

    fn announcer(listener: &str, admin: &str) -> Announcer {
        let config = ClientConfig::builder().admin_url(admin).context_path("/a").build().unwrap();
        let routes = Collected::group([], [Route::new(Annotation::new("/x"))]);
        let admins = config.admins().to_vec();
        let subject = Subject {
            config: Arc::new(config),
            declarations: Arc::new((&routes).into()),
            listener: listener.parse().unwrap(),
            started: SystemTime::now(),
        };
        Announcer::new(subject, admins)
    }

    fn facts(towards_admin: &str) -> Facts {
        Facts { towards_admin: towards_admin.parse().ok(), ..Facts::default() }
    }

    #[test]
    fn network_may_come_up_later() {
        let mut announcer = announcer("0.0.0.0:80", "http://admin");
        let (announced, plan) = announcer.decide(&facts(""), Dialect::Any).unwrap().unwrap();
        assert_eq!(announced.to_string(), "127.0.0.1:80");
        assert!(plan.registrations()[0].body().contains("127.0.0.1"));
        assert!(!announcer.is_sure());
        assert!(announcer.decide(&facts(""), Dialect::Any).unwrap().is_none(), "nothing new");

        let (announced, plan) = announcer.decide(&facts("10.1.2.3"), Dialect::Any).unwrap().unwrap();
        assert_eq!(announced.to_string(), "10.1.2.3:80");
        assert!(plan.registrations()[0].body().contains("10.1.2.3"));
        assert!(announcer.is_sure());
    }

    #[test]
    fn what_an_admin_accepted_stays() {
        let mut announcer = announcer("0.0.0.0:80", "http://admin");
        announcer.decide(&facts(""), Dialect::Any).unwrap();
        announcer.accept();
        assert!(announcer.is_sure());
    }

    #[tokio::test]
    async fn address_that_is_given_is_not_looked_for() {
        let mut announcer = announcer("127.0.0.1:80", "http://no-such-host.invalid");
        assert!(announcer.look(Dialect::Any).await.unwrap().is_some());
        assert!(announcer.is_sure() && announcer.look(Dialect::Any).await.unwrap().is_none());
    }

    #[test]
    fn local_admins() {
        for (admin, local) in [
            ("http://localhost:9095", true),
            ("http://127.0.0.1:9095,http://[::1]:9095", true),
            ("http://127.0.0.1:9095,http://10.0.0.7:9095", false),
            ("http://localhost.example:9095", false),
        ] {
            assert_eq!(announcer("127.0.0.1:80", admin).admins_are_local(), local, "{admin}");
        }
    }
}
