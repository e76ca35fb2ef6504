//! Checks that there is something to register, and starts the tasks.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use tokio::{runtime::Handle, sync::watch, task::JoinSet};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    SoulClient, Status,
    announce::{Announcer, Subject},
    lane::Lane,
    leave, report,
    round::Crew,
};
use crate::{
    address::Facts,
    backoff::Delays,
    config::{AdminUrl, AdminsRule, ClientConfig},
    error::{Error, Kind, Problem},
    meter::Meter,
    plan::{ClassDeclarations, RegistrationPlan},
    route::{self, Collected, Route},
    transport::{HttpTransport, Transport},
};

/// Starts a [`SoulClient`] with routes of one's own choice.
///
/// # Examples
///
/// ```no_run
/// use soul_client::{ClientConfig, SoulClient, route::{Annotation, Route}};
///
/// # async fn run(config: ClientConfig, listener: tokio::net::TcpListener) -> Result<(), Box<dyn std::error::Error>> {
/// let client = SoulClient::builder(config)
///     .routes([Route::new(Annotation::new("/order/save").desc("Save order"))])
///     .start(listener.local_addr()?)?;
/// client.registered().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `start`"]
pub struct SoulClientBuilder {
    config: ClientConfig,
    /// `None`: what the program collected.
    declarations: Option<ClassDeclarations>,
}

impl SoulClientBuilder {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self { config, declarations: None }
    }

    pub(crate) fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Registers these routes, which stand in no class, instead of those that were collected.
    pub fn routes(self, routes: impl IntoIterator<Item = Route>) -> Self {
        let collected = Collected::group([], routes.into_iter().map(|route| route.module("")));
        self.collected(&collected)
    }

    /// Registers these classes and routes instead of those that were collected; to add to those, begin with
    /// [`route::collected`].
    pub fn collected(self, collected: &Collected) -> Self {
        self.declarations(collected.into())
    }

    /// Registers what a program computed, instead of what was collected.
    pub fn declarations(mut self, declarations: ClassDeclarations) -> Self {
        self.declarations = Some(declarations);
        self
    }

    /// As [`declarations`](Self::declarations), unless there are some.
    #[cfg(feature = "axum")]
    pub(crate) fn or_declarations(mut self, declarations: ClassDeclarations) -> Self {
        self.declarations.get_or_insert(declarations);
        self
    }

    /// Starts, as [`SoulClient::start`] does.
    ///
    /// # Errors
    /// As [`SoulClient::start`].
    pub fn start(self, listener: SocketAddr) -> Result<SoulClient, Error> {
        let transport = HttpTransport::new(&self.config)?;
        self.start_over(transport, fastrand::Rng::new(), listener)
    }

    /// Starts over a transport and a source of randomness.
    pub(super) fn start_over<T: Transport + Clone>(
        self,
        transport: T,
        mut rng: fastrand::Rng,
        listener: SocketAddr,
    ) -> Result<SoulClient, Error> {
        let runtime = Handle::try_current().map_err(|error| {
            Error::new(Kind::Config, "start the soul client outside of a Tokio runtime").with_source(error)
        })?;
        let declarations = self.declarations.unwrap_or_else(|| (&route::collected()).into());
        let started = SystemTime::now();
        let (config, declarations) = (Arc::new(self.config), Arc::new(declarations));
        let subject = Subject { config, declarations, listener, started };
        let plan = check(&subject)?;
        report::odd(&plan, subject.config.app_name().is_some());

        let config = Arc::clone(&subject.config);
        let urls: Vec<_> = config.admin_urls().collect();
        let groups = groups(&config);
        let status = Status::new(&urls, config.admins_rule(), groups.len(), &plan, config.dialect());
        let (status, watched) = watch::channel(status);
        let status = Arc::new(status);
        let give_up = CancellationToken::new();
        let stop = give_up.child_token();
        let leave = CancellationToken::new();

        let meter = Meter::new(&config);
        let running = TaskTracker::new();
        let mut lanes = JoinSet::new();
        for (lane, group) in groups.into_iter().enumerate() {
            let crew = Crew {
                transport: transport.clone(),
                admins: group.iter().map(|(admin, url)| (*admin, url.as_str().to_owned())).collect(),
                lane,
                status: Arc::clone(&status),
                concurrency: config.concurrency(),
                told: Mutex::default(),
                stop: stop.clone(),
                give_up: give_up.clone(),
                meter: meter.clone(),
            };
            let announcer = Announcer::new(subject.clone(), group.into_iter().map(|(_, url)| url).collect());
            let delays = Delays::from_rng(config.retry_bounds(), rng.fork());
            let lane = Lane::new(crew, subject.clone(), announcer, delays);
            lanes.spawn_on(running.track_future(lane.run()), &runtime);
        }
        running.close();
        let tasks = TaskTracker::new();
        #[cfg(feature = "metrics")]
        tasks.spawn_on(meter.clone().follow(watched.clone()), &runtime);
        tasks.spawn_on(
            {
                let (leave, limit) = (leave.clone(), config.offline_timeout());
                async move {
                    let mut farewells = Vec::new();
                    while let Some(done) = lanes.join_next().await {
                        farewells.extend(done.unwrap_or_default());
                    }
                    // From here on nothing registers this instance any more.
                    let leaves = leave.is_cancelled();
                    if leaves {
                        leave::say(&transport, farewells, limit, &status, &meter).await;
                    }
                    status.send_modify(|status| status.stop(leaves));
                }
            },
            &runtime,
        );
        tasks.close();
        Ok(SoulClient {
            status: watched,
            running,
            tasks,
            stop,
            leave,
            shutdown_timeout: config.shutdown_timeout(),
            _guard: give_up.clone().drop_guard(),
            give_up,
        })
    }
}

/// Who is told together, by the rule.
fn groups(config: &ClientConfig) -> Vec<Vec<(usize, AdminUrl)>> {
    let numbered = config.admins().iter().cloned().enumerate();
    match config.admins_rule() {
        AdminsRule::FirstThatAnswers => vec![numbered.collect()],
        AdminsRule::Each => numbered.map(|admin| vec![admin]).collect(),
    }
}

/// Makes the plan with whatever address comes first: it has the same routes as with the right one.
fn check(subject: &Subject) -> Result<RegistrationPlan, Error> {
    let plan = subject.plan(&subject.choose(&Facts::default()), subject.config.dialect())?;
    if !plan.failures().is_empty() {
        let problems = plan.failures().iter().flat_map(|failure| failure.problems().to_vec());
        return Err(Error::config(problems.collect()));
    }
    if plan.is_empty() {
        return Err(Error::config(vec![Problem::new(
            "routes",
            format!("there is none: {}", route::EMPTY_HINT),
        )]));
    }
    let lost = plan.registrations().iter().filter(|registration| registration.endpoint().is_none());
    let problems: Vec<_> = lost
        .map(|registration| {
            let (path, rpc_type) = (registration.path(), registration.rpc_type());
            Problem::new(
                "rpc_type",
                format!("`{rpc_type}` of `{path}` is unknown, expected `http` or `springCloud`"),
            )
        })
        .collect();
    if problems.is_empty() { Ok(plan) } else { Err(Error::config(problems)) }
}
