//! How long registering takes: 1,000 routes with an admin that answers at once, and 100 with one that takes its time.
//!
//! `cargo bench -p soul-client --features testing --bench register` prints the times for Soul and for ShenYu, and the ratio to the same
//! requests sent one after the other over one connection, which is what other clients do. It fails above the
//! targets: 0.5 s, 0.3 s. The admin is in this process, on threads of its own, so its work is in the first time.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use soul_client::{
    ClientConfig, Dialect, ShenyuVersion, SoulClient,
    plan::{Attributes, ClassDeclaration, ClassDeclarations},
    testing::{FakeAdmin, Recorded, Reply},
};
use tokio::runtime::{Builder, Runtime};

/// Where other work on the machine disturbs a run, the best of some says what the program can do.
const RUNS: usize = 5;
/// Longest that a run may take before it is given up.
const LIMIT: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is registered, with whom.
struct Case {
    dialect: Dialect,
    routes: usize,
    /// What the admin takes for an answer.
    delay: Duration,
    target: Duration,
}

impl Case {
    const fn at_once(dialect: Dialect) -> Self {
        Self { dialect, routes: 1_000, delay: Duration::ZERO, target: Duration::from_millis(500) }
    }

    const fn slow(dialect: Dialect) -> Self {
        let delay = Duration::from_millis(20);
        Self { dialect, routes: 100, delay, target: Duration::from_millis(300) }
    }
}

fn main() -> Result<()> {
    // `cargo test --benches` runs this too, without the flag.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let admins = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let own = Builder::new_current_thread().enable_all().build()?;
    println!(
        "{:<14}{:>8}{:>10}{:>12}{:>16}{:>8}{:>10}",
        "dialect", "routes", "answer", "registered", "one by one", "ratio", "target"
    );
    let mut missed = 0;
    let soul = [Dialect::Feb2021, Dialect::V2_3_0];
    let shenyu = [ShenyuVersion::V2_5, ShenyuVersion::V2_7].map(Dialect::Shenyu);
    for dialect in soul.into_iter().chain(shenyu) {
        for case in [Case::at_once(dialect), Case::slow(dialect)] {
            let (ours, plainly) = best(&admins, &own, &case)?;
            let met = ours < case.target;
            missed += usize::from(!met);
            println!(
                "{:<14}{:>8}{:>10}{:>12}{:>16}{:>8.2}{:>10}{}",
                dialect.as_str(),
                case.routes,
                format!("{:.0?}", case.delay),
                format!("{ours:.0?}"),
                format!("{plainly:.0?}"),
                ours.as_secs_f64() / plainly.as_secs_f64(),
                format!("{:.0?}", case.target),
                if met { "" } else { "  MISSED" }
            );
        }
    }
    if missed > 0 {
        return Err(format!("{missed} targets missed").into());
    }
    Ok(())
}

/// The best time of ours, and of the same requests one by one.
fn best(admins: &Runtime, own: &Runtime, case: &Case) -> Result<(Duration, Duration)> {
    let admin = admins.block_on(FakeAdmin::start(case.dialect))?;
    let delay = case.delay;
    admin.script(move |_| if delay.is_zero() { Reply::Usual } else { Reply::UsualAfter(delay) });
    let mut ours = Duration::MAX;
    for _ in 0..RUNS {
        admin.forget();
        drop(admin.take());
        ours = ours.min(own.block_on(register(&admin, case))?);
        if admin.routes().len() != case.routes || admin.instances().len() != 1 {
            return Err("not everything was registered".into());
        }
    }
    let requests = admin.take();
    let plainly = own.block_on(one_by_one(&admin, &requests))?;
    Ok((ours, plainly))
}

/// From the start of a client until all is accepted, the login included.
async fn register(admin: &FakeAdmin, case: &Case) -> Result<Duration> {
    let mut config = ClientConfig::builder()
        .admin_url(admin.url())
        .context_path("/orders")
        .app_name("orders")
        .host("192.168.1.20")
        .dialect(case.dialect)
        .refresh_interval(Duration::ZERO);
    if case.dialect.shenyu().is_some() {
        config = config.username(FakeAdmin::USERNAME).password(FakeAdmin::PASSWORD);
    }
    let config = config.build()?;
    let routes = (0..case.routes).map(|number| Attributes::new(format!("/route/{number}"))).collect();
    let class = ClassDeclaration::new(Some(Attributes::new("")), routes);
    let begin = Instant::now();
    let client = SoulClient::builder(config)
        .declarations(ClassDeclarations(vec![class]))
        .start("127.0.0.1:3000".parse()?)?;
    client.registered_within(LIMIT).await?;
    let took = begin.elapsed();
    client.shutdown().await;
    Ok(took)
}

/// The posts of a run again, each after the answer to the one before.
async fn one_by_one(admin: &FakeAdmin, requests: &[Recorded]) -> Result<Duration> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let begin = Instant::now();
    for request in requests.iter().filter(|request| request.method == "POST") {
        let mut post = client.post(format!("{}{}", admin.url(), request.path)).body(request.body.clone());
        if let Some(token) = &request.token {
            post = post.header("x-access-token", token);
        }
        let text = post.timeout(LIMIT).send().await?.text().await?;
        if text != "success" {
            return Err(format!("not accepted one by one: {text}").into());
        }
    }
    Ok(begin.elapsed())
}
