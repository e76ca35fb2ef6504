//! Twice the load that an upstream can carry: the gateway sheds what is too much with 503, and those it accepts are served
//! nearly as fast as without the load.
//!
//! ```sh
//! cargo run --release -p soul-tests --bin overload -- --workers 8 --service-ms 5 --seconds 4 -- [FLAG OF THE GATEWAY]…
//! ```
//!
//! The upstream works on `--workers` requests at once, `--service-ms` on each, and lets all others wait, as most do. Requests
//! come at a fixed rate, whether or not earlier ones were answered, and their time counts from when they were due. First
//! at half of what can be carried, then at twice of it. Once for each way to limit the load: by upstream, over all, and
//! with the defaults; with flags given, for those alone. A limit that finds itself takes a moment: what came in the first
//! `--onset` (1) seconds is told and not judged.
//!
//! Then `--polls` (400) callers are held by the upstream for half a second again and again, which is no overload however
//! long it takes. At last it tells how late a 504 comes.
//!
//! Exit status 1 when 99 % of those accepted take more than `--ratio` (4) times as long as without the load, when the
//! memory grows by more than `--growth` (50) MiB, when a caller gets something else than 200 or 503, or when a poll is
//! refused.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use soul_tests::load::{Head, Loaded, Times, flags, mebibytes, option};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

/// How long polls are held.
const HELD: Duration = Duration::from_millis(500);

/// No answer takes longer, but for a gateway that has lost it.
const LOST: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> ExitCode {
    let workers: usize = option("--workers", 8);
    let service = Duration::from_secs_f64(option("--service-ms", 5.0) / 1000.0);
    let seconds: f64 = option("--seconds", 4.0);
    let (ratio, growth): (f64, f64) = (option("--ratio", 4.0), option("--growth", 50.0));
    let (onset, polls): (f64, usize) = (option("--onset", 1.0), option("--polls", 400));

    let listener = listen().expect("a free port");
    let upstream = listener.local_addr().expect("it has an address");
    tokio::spawn(serve(listener, workers, service));
    let twice = (2 * workers).to_string();
    let ways: Vec<Vec<String>> = match flags() {
        given if !given.is_empty() => vec![given],
        _ => vec![
            vec!["--upstream-max-requests".to_owned(), twice.clone()],
            vec!["--max-requests".to_owned(), twice],
            Vec::new(),
        ],
    };
    let mut failed = false;
    for flags in ways {
        let gateway = Loaded::start(upstream, &flags).await;
        let named = if flags.is_empty() { "defaults".to_owned() } else { flags.join(" ") };
        let capacity = capacity(gateway.address, workers, seconds / 2.0).await;
        let [_, mut calm] = offer(gateway.address, capacity / 2.0, 0.0, seconds).await;
        let memory = gateway.watch();
        let [mut begins, mut storm] = offer(gateway.address, capacity * 2.0, onset, seconds).await;
        let (unloaded, loaded, grown) =
            (calm.accepted.within(0.99), storm.accepted.within(0.99), mebibytes(memory.grown()));
        println!("{named}: the upstream carries {capacity:.0} requests/s");
        println!("  half of it:  {}", calm.told());
        println!("  twice of it: {}", storm.told());
        println!("     at first: {}", begins.told());
        println!("  p99 of those accepted: {:.1} times; memory: +{grown:.1} MiB", loaded / unloaded);
        let others = [&calm, &begins, &storm].iter().any(|outcome| outcome.others() > 0);
        if loaded > ratio * unloaded || others || grown > growth {
            eprintln!("FAILED: {named}");
            failed = true;
        }
    }
    let mut held = hold(upstream, polls, seconds).await;
    println!("{polls} polls held for half a second: {}", held.told());
    if held.accepted.count() == 0 || held.shed.count() + held.others() > 0 {
        eprintln!("FAILED: polls");
        failed = true;
    }
    late(upstream).await;
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What became of requests.
#[derive(Default)]
struct Outcome {
    statuses: BTreeMap<String, usize>,
    accepted: Times,
    shed: Times,
}

impl Outcome {
    fn note(&mut self, status: String, took: Duration) {
        match status.as_str() {
            "200" => self.accepted.add(took),
            "503" => self.shed.add(took),
            _ => {}
        }
        *self.statuses.entry(status).or_default() += 1;
    }

    fn others(&self) -> usize {
        self.statuses
            .iter()
            .filter(|(status, _)| !["200", "503"].contains(&status.as_str()))
            .map(|(_, n)| n)
            .sum()
    }

    fn told(&mut self) -> String {
        let all: usize = self.statuses.values().sum();
        let share = |count: usize| 100.0 * count as f64 / all as f64;
        let statuses: Vec<_> =
            self.statuses.iter().map(|(status, count)| format!("{status} {:.1} %", share(*count))).collect();
        let (half, most) = (self.accepted.within(0.5), self.accepted.within(0.99));
        let shed = self.shed.within(0.99);
        format!("{}; accepted p50 {half:.2} ms, p99 {most:.2} ms; shed p99 {shed:.2} ms", statuses.join(", "))
    }
}

/// Requests a second that are answered when as many callers as there are workers never pause.
async fn capacity(gateway: SocketAddr, workers: usize, seconds: f64) -> f64 {
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut callers = JoinSet::new();
    for _ in 0..workers {
        callers.spawn(async move {
            let (mut stream, mut answered) = (None, 0);
            while Instant::now() < until {
                let status = ask(gateway, "/api/x", &mut stream).await;
                answered += usize::from(status.is_ok_and(|status| status == "200"));
            }
            answered
        });
    }
    let answered: usize = callers.join_all().await.into_iter().sum();
    answered as f64 / seconds
}

/// Asks so many times a second, however long the answers take. What became of those of the first seconds, and of the others.
async fn offer(gateway: SocketAddr, rate: f64, onset: f64, seconds: f64) -> [Outcome; 2] {
    let outcomes: [Arc<Mutex<Outcome>>; 2] = Default::default();
    let idle: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let (began, seconds) = (Instant::now(), onset + seconds);
    let (mut ticks, mut asked, mut callers) = (interval(Duration::from_millis(1)), 0_u32, JoinSet::new());
    while f64::from(asked) < rate * seconds {
        ticks.tick().await;
        while f64::from(asked) < rate * began.elapsed().as_secs_f64().min(seconds) {
            let after = f64::from(asked) / rate;
            let due = began + Duration::from_secs_f64(after);
            asked += 1;
            let (outcome, idle) = (Arc::clone(&outcomes[usize::from(after >= onset)]), Arc::clone(&idle));
            callers.spawn(async move {
                let mut stream = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let status = asked_once(gateway, "/api/x", &mut stream).await;
                outcome.lock().unwrap_or_else(PoisonError::into_inner).note(status, due.elapsed());
                idle.lock().unwrap_or_else(PoisonError::into_inner).extend(stream);
            });
        }
        while callers.try_join_next().is_some() {}
    }
    callers.join_all().await;
    outcomes.map(|outcome| std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Callers that ask for what is held again and again, through a gateway with its defaults.
async fn hold(upstream: SocketAddr, polls: usize, seconds: f64) -> Outcome {
    let gateway = Loaded::start(upstream, &[]).await;
    let (address, outcome) = (gateway.address, Arc::<Mutex<Outcome>>::default());
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let mut callers = JoinSet::new();
    for caller in 0..polls {
        let outcome = Arc::clone(&outcome);
        callers.spawn(async move {
            let mut stream = None;
            // Some are answered soon, which is how fast this service can be.
            let mut path = if caller % 8 == 0 { "/api/soon" } else { "/api/held" };
            while Instant::now() < until {
                let asked = Instant::now();
                let status = asked_once(address, path, &mut stream).await;
                outcome.lock().unwrap_or_else(PoisonError::into_inner).note(status, asked.elapsed());
                path = "/api/held";
            }
        });
    }
    callers.join_all().await;
    std::mem::take(&mut *outcome.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The status of an answer, or why there was none.
async fn asked_once(gateway: SocketAddr, path: &str, stream: &mut Option<TcpStream>) -> String {
    match timeout(LOST, ask(gateway, path, stream)).await {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => error.kind().to_string(),
        Err(_) => "lost".to_owned(),
    }
}

/// Sends a request and gives the status of its answer. `stream` is the connection to use, and the one to use next.
async fn ask(gateway: SocketAddr, path: &str, stream: &mut Option<TcpStream>) -> io::Result<String> {
    let mut open = match stream.take() {
        Some(open) => open,
        None => {
            let open = TcpStream::connect(gateway).await?;
            open.set_nodelay(true)?;
            open
        }
    };
    open.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await?;
    let head = Head::read(&mut open).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let mut left = vec![0; head.length() as usize - head.rest.len()];
    open.read_exact(&mut left).await?;
    *stream = Some(open);
    Ok(head.second().to_owned())
}

/// Tells how long after the time of its rule a caller is told that it is over.
async fn late(upstream: SocketAddr) {
    let gateway = Loaded::start(upstream, &[]).await;
    let allowed = Duration::from_millis(200);
    gateway.allow(allowed).await;
    let (mut stream, mut over) = (None, Times::default());
    for _ in 0..20 {
        let asked = Instant::now();
        let status = ask(gateway.address, "/api/never", &mut stream).await;
        if status.is_ok_and(|status| status == "504") {
            over.add(asked.elapsed().saturating_sub(allowed));
        }
    }
    println!(
        "504 after a rule's {} ms, {} of 20: late by {:.1} ms at half of them, {:.1} ms at most",
        allowed.as_millis(),
        over.count(),
        over.within(0.5),
        over.within(1.0)
    );
}

/// A port where all callers may come in one moment: none is to be late for waiting to be accepted.
fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    socket.listen(4096)
}

/// An upstream that works on some requests at once.
async fn serve(listener: TcpListener, workers: usize, service: Duration) {
    let workers = Arc::new(Semaphore::new(workers));
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let workers = Arc::clone(&workers);
        connections.spawn(async move {
            while let Some(head) = Head::read(&mut stream).await? {
                if head.second() == "/never" {
                    std::future::pending::<()>().await;
                }
                match head.second() {
                    "/held" => sleep(HELD).await,
                    "/soon" => {}
                    _ => {
                        let at_work = workers.acquire().await.map_err(io::Error::other)?;
                        sleep(service).await;
                        drop(at_work);
                    }
                }
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await?;
            }
            Ok::<_, io::Error>(())
        });
        while connections.try_join_next().is_some() {}
    }
}
