//! Two services call each other through the balancer, while one instance is killed, restored, slowed and restored.
//!
//! ```sh
//! cargo run --release -p calling
//! ```
//!
//! A call to `orders` asks `stock`, which asks `orders` for a price: `/order/7` is answered `orders-1 < stock-B < orders-2 < 95`.
//! What is printed is who of `stock` answered. Each line is checked, and the exit code is 0 only if all of it was observed:
//!
//! ```text
//! 1. all are well                   A  57 ###########     B  38 #######         C  55 ###########     0 failed
//! 2. B is killed                    A  81 ################ B   0                 C  69 #############   0 failed
//! …
//! 4. C takes 120 ms for an answer   A  77 ############### B  60 ############    C  13 ##              0 failed
//! ```

mod instance;

use std::{
    collections::BTreeMap,
    error::Error,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use instance::{Answered, Instance};
use soul_client::{
    balance::Upstream,
    balance::{CheckSettings, policy::PeakEwma},
    call::{
        ClientFactory, ServiceConfig,
        discover::{BoxFuture, Discover, DiscoverError, Feed, Listed, Publisher, feed},
        probe::Probing,
    },
};
use tokio::{task::JoinSet, time::timeout};

type Failure = Box<dyn Error + Send + Sync>;

/// Longest the whole story may take.
const WITHIN: Duration = Duration::from_secs(40);

/// Calls in each part of the story, and how many of them at once.
const CALLS: u32 = 150;
const AT_ONCE: u32 = 10;

/// The registry: here a table in the process.
struct Registry(BTreeMap<&'static str, Publisher>);

impl Discover for Registry {
    fn fetch<'a>(&'a self, service: &'a str) -> BoxFuture<'a, Listed> {
        let publisher = self.0.get(service);
        let unknown = || DiscoverError::unknown_service(format!("look for `{service}` in the table"));
        let listed = publisher.ok_or_else(unknown).map(|p| p.now().upstreams.unwrap_or_default().to_vec());
        Box::pin(async move { listed })
    }

    fn watch(&self, service: &str) -> Option<Feed> {
        self.0.get(service).map(Publisher::subscribe)
    }
}

/// Quick enough for a story of a few seconds; the built-in times are for days.
fn settings() -> ServiceConfig {
    let every = Duration::from_millis(100);
    let checks =
        CheckSettings { every, every_in_doubt: every / 2, every_down: every, ..CheckSettings::default() };
    ServiceConfig::default()
        .policy(PeakEwma { tau: Duration::from_millis(400), ..PeakEwma::default() })
        .probe(Probing { settings: checks, ..Probing::tcp() })
        .read_timeout(Duration::from_secs(5))
}

struct World {
    factory: ClientFactory,
    answered: Answered,
    /// By name; those of `stock` are known by their letter.
    instances: BTreeMap<&'static str, Instance>,
}

impl World {
    async fn start() -> Result<Self, Failure> {
        let publishers: BTreeMap<_, _> = ["orders", "stock"].map(|service| (service, feed().0)).into();
        let registry = Arc::new(Registry(publishers.clone()));
        let factory =
            || ClientFactory::builder().discover(Arc::clone(&registry)).defaults(settings()).build();
        // Each service calls with what it has seen itself, as it would in a process of its own.
        let (outside, of_orders, of_stock) = (factory()?, factory()?, factory()?);
        let answered = Answered::default();
        let mut instances = BTreeMap::new();
        for (name, calls) in [
            ("orders-1", &of_orders),
            ("orders-2", &of_orders),
            ("stock-A", &of_stock),
            ("stock-B", &of_stock),
            ("stock-C", &of_stock),
        ] {
            instances.insert(name, Instance::start(name, calls, &answered).await?);
        }
        for (service, publisher) in &publishers {
            let of_it = instances.iter().filter(|(name, _)| name.starts_with(service));
            publisher.publish(of_it.map(|(_, i)| Upstream::new(i.address.to_string())).collect());
        }
        Ok(Self { factory: outside, answered, instances })
    }

    fn instance(&mut self, name: &str) -> Result<&mut Instance, Failure> {
        self.instances.get_mut(name).ok_or_else(|| format!("there is no {name}").into())
    }

    /// Makes so many calls and prints who answered.
    async fn observe(&self, what: &str, calls: u32) -> Result<Seen, Failure> {
        self.answered.lock().unwrap_or_else(|e| e.into_inner()).clear();
        let mut workers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let factory = self.factory.clone();
            workers.spawn(async move {
                let mut failed = Vec::new();
                for _ in 0..calls / AT_ONCE {
                    match factory.get("lb://orders/order/7").send().await {
                        Ok(answer) if answer.status().is_success() => drop(answer.text().await),
                        Ok(answer) => failed.push(answer.text().await.unwrap_or_default()),
                        Err(error) => failed.push(error.chain()),
                    }
                }
                failed
            });
        }
        let failed = workers.join_all().await.concat();
        let answered = self.answered.lock().unwrap_or_else(|e| e.into_inner()).clone();
        let of = |name: &str| answered.get(name).copied().unwrap_or(0);
        let seen = Seen { a: of("stock-A"), b: of("stock-B"), c: of("stock-C"), failed };
        seen.print(what);
        Ok(seen)
    }
}

/// Who of `stock` answered how often.
struct Seen {
    a: u32,
    b: u32,
    c: u32,
    failed: Vec<String>,
}

impl Seen {
    fn print(&self, what: &str) {
        let bar = |count: u32| "#".repeat((count / 5) as usize);
        let Self { a, b, c, failed } = self;
        println!(
            "{what:32} A {a:3} {:20} B {b:3} {:20} C {c:3} {:20} {} failed",
            bar(*a),
            bar(*b),
            bar(*c),
            failed.len()
        );
    }

    fn check(&self, holds: bool, what: &str) -> Result<(), Failure> {
        match self.failed.first() {
            Some(failed) => {
                Err(format!("no call failed; {} did, the first: {failed}", self.failed.len()).into())
            }
            None if !holds => Err(format!("{what}: A {}, B {}, C {}", self.a, self.b, self.c).into()),
            None => Ok(()),
        }
    }
}

async fn story() -> Result<(), Failure> {
    let mut world = World::start().await?;
    let answer = world.factory.get("lb://orders/order/7").send().await?;
    println!("/order/7 is answered {}\n", answer.text().await?);

    let seen = world.observe("1. all are well", CALLS).await?;
    seen.check(seen.a > 0 && seen.b > 0 && seen.c > 0, "all of them answered")?;

    world.instance("stock-B")?.kill().await;
    let seen = world.observe("2. B is killed", CALLS).await?;
    seen.check(seen.b == 0 && seen.a > 0 && seen.c > 0, "only A and C answered")?;

    world.instance("stock-B")?.restart().await?;
    until(&world, "3. B is started again, calls until it answers", |seen| seen.b > 0).await?;
    let seen = world.observe("   afterwards", CALLS).await?;
    seen.check(seen.a > 0 && seen.b > 0 && seen.c > 0, "all of them answered")?;

    world.instance("stock-C")?.take(Duration::from_millis(120));
    let seen = world.observe("4. C takes 120 ms for an answer", CALLS).await?;
    seen.check(seen.c * 5 < CALLS && seen.a > 0 && seen.b > 0, "C answered less than a fifth")?;

    world.instance("stock-C")?.take(Duration::from_millis(1));
    until(&world, "5. C is as quick as before, calls until it has its share", |seen| {
        seen.c * 5 >= AT_ONCE * 3
    })
    .await?;
    let seen = world.observe("   afterwards", CALLS).await?;
    seen.check(seen.c * 6 >= CALLS, "C answered at least a sixth")
}

/// Calls until a wish comes true, and prints after how long.
async fn until(world: &World, what: &str, wish: impl Fn(&Seen) -> bool) -> Result<(), Failure> {
    let begin = Instant::now();
    println!("{what}");
    loop {
        let seen = world.observe("   …", AT_ONCE * 3).await?;
        seen.check(true, "")?;
        if wish(&seen) {
            println!("   after {:.2} s", begin.elapsed().as_secs_f64());
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let begin = Instant::now();
    let told = timeout(WITHIN, story()).await;
    match told.unwrap_or_else(|_| Err(format!("the whole story took longer than {WITHIN:?}").into())) {
        Ok(()) => {
            println!("\nAll observed in {:.1} s.", begin.elapsed().as_secs_f64());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("\nNOT OBSERVED: {failure}");
            ExitCode::FAILURE
        }
    }
}
