//! Callers that make a connection for every request, while the gateway ends.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::task::JoinSet;

use super::{
    super::{Drained, GatewayConfig, Sockets},
    peers::{eventually, within},
    setup::{ConfigData, Running, config, handle, service},
};

/// How many gateways end, one after the other.
const ROUNDS: usize = 3;
const CALLERS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(20);

/// Connects and asks, again and again, until nobody listens any more; counts the answers.
///
/// # Errors
/// When a connection was made and the request on it got no answer.
fn call(gateway: SocketAddr, answered: &AtomicUsize) -> io::Result<()> {
    while let Ok(mut stream) = TcpStream::connect_timeout(&gateway, PATIENCE) {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"GET /nobody HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if !answer.starts_with("HTTP/1.1 404 ") {
            return Err(io::Error::other(format!("answered by {answer:?}")));
        }
        answered.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Has another gateway serve by the sockets of this one, which ends.
async fn taken_over(before: Running) -> Running {
    let (listen, status_listen) = (before.address(), before.gateway.status_addr());
    let config = GatewayConfig { listen, status_listen, threads: 2, ..config() };
    let sockets = before.gateway.sockets().unwrap();
    let next = Running::on(sockets, config, &service(&[], &handle("random", 0, 3000))).await;
    assert_eq!(next.address(), listen);
    assert_eq!(within(before.gateway.hand_over()).await, Drained::All);
    next
}

/// Ends a gateway that is being asked, after so many others took over from it. Gives how many callers lost a request, and how
/// many requests were answered.
async fn end_under_load(listen: &str, takeovers: usize) -> (Vec<io::Error>, usize) {
    let config = GatewayConfig { listen: listen.parse().unwrap(), threads: 2, ..config() };
    let mut running = Running::with(config, &service(&[], &handle("random", 0, 3000))).await;
    let address = running.address();
    let answered = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let answered = Arc::clone(&answered);
        callers.spawn_blocking(move || call(address, &answered));
    }
    for takeovers in 1..=takeovers {
        eventually("they ask", async || answered.load(Relaxed) >= 50 * takeovers).await;
        running = taken_over(running).await;
    }
    eventually("they ask", async || answered.load(Relaxed) >= 50 * (takeovers + 1)).await;
    assert_eq!(within(running.gateway.shutdown()).await, Drained::All);
    let ended = within(callers.join_all()).await;
    (ended.into_iter().filter_map(Result::err).collect(), answered.load(Relaxed))
}

/// Ends one gateway after the other, each after so many others took over from it.
async fn end_again_and_again(listen: &str, takeovers: usize) {
    let (mut lost, mut answered) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (more, times) = end_under_load(listen, takeovers).await;
        lost.extend(more);
        answered += times;
    }
    assert!(lost.is_empty(), "{} lost, {answered} answered: {lost:?}", lost.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_connects_while_it_ends_is_answered_or_turned_away() {
    end_again_and_again("127.0.0.1:0", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_by_one_that_took_over() {
    end_again_and_again("127.0.0.1:0", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_by_ipv6() {
    end_again_and_again("[::1]:0", 0).await;
}

/// Whether handshakes are passed over at the end, so that those under way come in, where other gateways were given the sockets before, and
/// some of them gave them up.
#[cfg(target_os = "linux")]
async fn passes_handshakes_over(running: Running, given: usize, taken_back: usize) -> bool {
    let address = running.address();
    // They stay open, so that it shows.
    let sockets: Vec<_> = (0..given).map(|_| running.gateway.sockets().unwrap()).collect();
    (0..taken_back).for_each(|_| running.gateway.take_back());
    assert_eq!(within(running.gateway.shutdown()).await, Drained::All);
    let late = tokio::task::spawn_blocking(move || {
        TcpStream::connect_timeout(&address, Duration::from_millis(300)).err().map(|error| error.kind())
    });
    let late = within(late).await.unwrap();
    drop(sockets);
    assert!(late.is_none_or(|kind| kind == io::ErrorKind::TimedOut), "{late:?}");
    late.is_some()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_takeover_that_failed_changes_nothing_about_the_end() {
    let start = async || Running::start(&ConfigData::default()).await;
    assert!(passes_handshakes_over(start().await, 1, 1).await, "nobody else has the sockets any more");
    assert!(passes_handshakes_over(start().await, 2, 2).await);
    assert!(!passes_handshakes_over(start().await, 1, 0).await, "the other one serves by them");
    assert!(!passes_handshakes_over(start().await, 2, 1).await);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn whoever_took_over_ends_as_the_one_that_opened_the_sockets_would_have() {
    let mut running = Running::start(&ConfigData::default()).await;
    for _ in 0..2 {
        running = taken_over(running).await;
    }
    assert!(passes_handshakes_over(running, 1, 1).await, "gateways alone have them");

    let passed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = GatewayConfig { listen: passed.local_addr().unwrap(), ..config() };
    let sockets = Sockets { requests: vec![passed], ..Sockets::default() };
    let running = Running::on(sockets, config, &ConfigData::default()).await;
    assert!(!passes_handshakes_over(taken_over(running).await, 1, 1).await, "a service manager has them");
}
