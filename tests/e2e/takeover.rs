//! One gateway takes over from another while callers ask without a pause; and one that ends alone.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use soul_tests::harness::{
    DEADLINE, GatewayApi, Part, Running, Upstream, eventually, free_addr, own_address, text,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use crate::program;

/// An admin with `/shop`, whose upstream counts.
struct Shop {
    admin: Part,
    upstream: Upstream,
    /// Where its gateways tell their status, one after the other.
    status: String,
}

impl Shop {
    async fn open() -> Self {
        let admin = Part::start(&["admin"]).await;
        let upstream = Upstream::start().await;
        admin.admin().register("/shop", "/shop/**", upstream.addr()).await;
        Self { admin, upstream, status: format!("{}:0", own_address()) }
    }

    fn args(&self, listen: &str, more: &[&str]) -> Vec<String> {
        let mut args = vec!["gateway", "--data-dir", "memory", "--gateway-listen", listen];
        let admin = self.admin.admin_url();
        args.extend(["--status-listen", &self.status, "--admin", &admin]);
        args.extend(more);
        args.into_iter().map(str::to_owned).collect()
    }

    /// A gateway that serves `/shop`.
    async fn gateway(&self, listen: &str, more: &[&str]) -> Running {
        let args = self.args(listen, more);
        let running = program().start(&args.iter().map(String::as_str).collect::<Vec<_>>()).await;
        running.gateway().learned("/shop", 1, 1).await;
        running
    }
}

/// Callers that ask without a pause.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    /// Connections that the gateway said it would close.
    closed: Arc<AtomicUsize>,
    callers: JoinSet<Result<(), String>>,
}

impl Load {
    /// Four that keep their connection for as long as they may, and four with a new one for every request.
    fn start(gateway: SocketAddr) -> Self {
        let mut load = Self {
            stop: Arc::default(),
            answered: Arc::default(),
            closed: Arc::default(),
            callers: JoinSet::new(),
        };
        for number in 0..8 {
            let (stop, answered, closed) =
                (Arc::clone(&load.stop), Arc::clone(&load.answered), Arc::clone(&load.closed));
            load.callers.spawn(async move {
                let keep = number % 2 == 0;
                while !stop.load(Relaxed) {
                    let mut connection =
                        TcpStream::connect(gateway).await.map_err(|error| format!("connect: {error}"))?;
                    while !stop.load(Relaxed) {
                        let last = ask(&mut connection, keep).await?;
                        answered.fetch_add(1, Relaxed);
                        if last {
                            closed.fetch_add(usize::from(keep), Relaxed);
                            break;
                        }
                    }
                }
                Ok(())
            });
        }
        load
    }

    /// Waits for so many answers more.
    async fn answers(&self, more: usize) {
        let until = self.answered.load(Relaxed) + more;
        eventually("more answers", async || (self.answered.load(Relaxed) >= until).then_some(())).await;
    }

    /// Ends it; gives how many answers there were, and how many connections were told that they were at their last one.
    async fn stop(mut self) -> (usize, usize) {
        self.stop.store(true, Relaxed);
        while let Some(caller) = timeout(DEADLINE, self.callers.join_next()).await.expect("callers end") {
            caller.expect("no panic").unwrap_or_else(|lost| panic!("a request was lost: {lost}"));
        }
        (self.answered.load(Relaxed), self.closed.load(Relaxed))
    }
}

/// Asks once; says whether the answer is the last one on this connection.
async fn ask(connection: &mut TcpStream, keep: bool) -> Result<bool, String> {
    let close = if keep { "" } else { "Connection: close\r\n" };
    let request = format!("GET /shop/x HTTP/1.1\r\nHost: shop\r\n{close}\r\n");
    connection.write_all(request.as_bytes()).await.map_err(|error| format!("ask: {error}"))?;
    let mut answer = Vec::new();
    loop {
        let read = connection.read_buf(&mut answer).await.map_err(|error| format!("answer: {error}"))?;
        if read == 0 {
            return Err(format!("closed after {:?}", String::from_utf8_lossy(&answer)));
        }
        let told = String::from_utf8_lossy(&answer).to_lowercase();
        let Some((head, body)) = told.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.and_then(|length| length.parse().ok()) == Some(body.len()) {
            return if head.starts_with("http/1.1 200") {
                Ok(head.contains("\r\nconnection: close"))
            } else {
                Err(format!("answered by {head}"))
            };
        }
    }
}

fn address(running: &Running) -> SocketAddr {
    running.address("gateway").trim_start_matches("http://").parse().expect("an address")
}

fn takeover(path: &Path) -> [&str; 2] {
    ["--takeover", text(path)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_gateway_takes_over_under_load_and_no_request_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let mut running = shop.gateway(&format!("{}:0", own_address()), &takeover(&path)).await;
    let at = address(&running);
    let load = Load::start(at);
    // With as many threads, with more and with fewer than the one before.
    for threads in ["2", "3", "1"] {
        load.answers(200).await;
        let mut more = takeover(&path).to_vec();
        more.extend(["--gateway-threads", threads]);
        let next = shop.gateway(&at.to_string(), &more).await;
        assert_eq!(next.ready, running.ready, "the same ports");
        let (status, log) = running.ended().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("another gateway has taken over"), "{log}");
        running = next;
    }
    load.answers(200).await;
    let (answered, closed) = load.stop().await;
    assert!(answered >= 800 && closed >= 3, "{answered} answers, {closed} connections");
    assert!(shop.upstream.count() >= answered);
}

#[tokio::test]
async fn one_sigterm_to_a_gateway_that_drains_already_cuts_nothing_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let mut first = shop.gateway(&format!("{}:0", own_address()), &takeover(&path)).await;
    let at = address(&first);
    let mut connection = TcpStream::connect(at).await.expect("connect");
    ask(&mut connection, true).await.expect("an answer");
    let head = "POST /shop/x HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n\r\n{";
    connection.write_all(head.as_bytes()).await.expect("half of a body");
    let _second = shop.gateway(&at.to_string(), &takeover(&path)).await;
    first.logged("another gateway has taken over").await;
    first.signal("TERM").await;
    first.logged("it drains already").await;
    connection.write_all(b"}").await.expect("the other half");
    let mut answer = Vec::new();
    timeout(DEADLINE, connection.read_to_end(&mut answer)).await.expect("an answer").expect("not cut off");
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let (status, log) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_gateway_that_never_gets_ready_takes_nothing_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let mut running = shop.gateway(&format!("{}:0", own_address()), &takeover(&path)).await;
    let at = address(&running);
    let nobody = format!("http://{}", free_addr());
    let mut args = shop.args(&at.to_string(), &takeover(&path));
    let admin = args.iter().position(|arg| arg == "--admin").expect("it is there") + 1;
    args[admin] = nobody;
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let mut next = program().spawn(&args);
    next.logged("no configuration is learned").await;
    let mut connection = TcpStream::connect(at).await.expect("connect");
    ask(&mut connection, true).await.expect("the old one serves");
    next.kill().await;
    running.logged("this one serves on").await;
    ask(&mut connection, true).await.expect("the old one serves on");

    running.kill().await;
    let next = shop.gateway(&at.to_string(), &takeover(&path)).await;
    assert_eq!(address(&next), at, "a file that nobody listens at is no obstacle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_start_together_one_is_left_and_it_can_be_taken_over_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let first = shop.gateway(&format!("{}:0", own_address()), &takeover(&path)).await;
    let at = address(&first);
    let load = Load::start(at);
    let (listen, more) = (at.to_string(), takeover(&path));
    let (second, third) = tokio::join!(shop.gateway(&listen, &more), shop.gateway(&listen, &more));
    let (status, log) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    let mut ends = [Box::pin(second.ended()), Box::pin(third.ended())];
    let [second, third] = &mut ends;
    let (status, log) = tokio::select! {
        ended = second => ended,
        ended = third => ended,
    };
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("another gateway has taken over"), "{log}");
    load.answers(200).await;
    load.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    std::fs::write(&path, "somebody's work").unwrap();
    let shop = Shop::open().await;
    let args = shop.args(&format!("{}:0", own_address()), &takeover(&path));
    let running = program().spawn(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let (status, log) = running.ended().await;
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(
        log.contains("(`--takeover`)") && log.contains(": something that is no socket is there"),
        "{log}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's work");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_keep_asking_are_told_of_the_end_and_lose_nothing_at_sigterm() {
    let shop = Shop::open().await;
    let running = shop.gateway(&format!("{}:0", own_address()), &[]).await;
    let at = address(&running);
    let mut callers = JoinSet::new();
    let answered = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let answered = Arc::clone(&answered);
        callers.spawn(async move {
            let mut connection = TcpStream::connect(at).await.map_err(|error| error.to_string())?;
            while !ask(&mut connection, true).await? {
                answered.fetch_add(1, Relaxed);
            }
            Ok::<_, String>(())
        });
    }
    eventually("load", async || (answered.load(Relaxed) >= 200).then_some(())).await;
    running.signal("TERM").await;
    while let Some(caller) = timeout(DEADLINE, callers.join_next()).await.expect("every caller is told") {
        caller.expect("no panic").unwrap_or_else(|lost| panic!("a request was lost: {lost}"));
    }
    let (status, log) = running.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(TcpStream::connect(at).await.is_err(), "nobody listens any more");
}

/// Callers that connect for every request, and see nobody listen in the end: who was connected was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_took_over_loses_no_request_at_sigterm_either() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let first = shop.gateway(&format!("{}:0", own_address()), &takeover(&path)).await;
    let at = address(&first);
    let second = shop.gateway(&at.to_string(), &takeover(&path)).await;
    let (status, log) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    let mut callers = JoinSet::new();
    let answered = Arc::new(AtomicUsize::new(0));
    for _ in 0..8 {
        let answered = Arc::clone(&answered);
        callers.spawn(async move {
            while let Ok(mut connection) = TcpStream::connect(at).await {
                ask(&mut connection, false).await?;
                answered.fetch_add(1, Relaxed);
            }
            Ok::<_, String>(())
        });
    }
    eventually("load", async || (answered.load(Relaxed) >= 200).then_some(())).await;
    second.signal("TERM").await;
    while let Some(caller) = timeout(DEADLINE, callers.join_next()).await.expect("nobody listens in the end")
    {
        caller.expect("no panic").unwrap_or_else(|lost| panic!("a request was lost: {lost}"));
    }
    let (status, log) = second.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_socket_of_the_service_manager_keeps_connections_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takeover");
    let shop = Shop::open().await;
    let socket = TcpListener::bind((own_address(), 0)).unwrap();
    let at = socket.local_addr().unwrap();
    let program = program().on_socket(socket);
    let args = shop.args(&at.to_string(), &takeover(&path));
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let before = program.start(&args).await;
    // Which has the socket from the one before, and leaves it as open as that one would.
    let first = shop.gateway(&at.to_string(), &takeover(&path)).await;
    let (status, log) = before.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(address(&first), at);
    let mut connection = TcpStream::connect(at).await.expect("connect");
    ask(&mut connection, false).await.expect("an answer");
    first.signal("TERM").await;
    let (status, log) = first.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");

    let mut waiting = TcpStream::connect(at).await.expect("it waits in the socket");
    let second = program.start(&args).await;
    let gateway: GatewayApi = second.gateway();
    gateway.learned("/shop", 1, 1).await;
    timeout(DEADLINE, ask(&mut waiting, true)).await.expect("in time").expect("an answer of the second");
}
