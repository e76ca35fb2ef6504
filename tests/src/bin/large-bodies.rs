//! Bodies of any size pass with back-pressure: many callers send a large body and get it back at the same time, some of them
//! slowly, and the gateway must not grow by more than a limit. Every byte is compared.
//!
//! ```sh
//! cargo run --release -p soul-tests --bin large-bodies -- --at-once 64 --megabytes 32 --slow 8 --growth 50 -- [FLAG OF THE GATEWAY]…
//! ```
//!
//! Exit status 1 when the memory grew by more, in MiB, than `--growth`, or a byte was wrong.

use std::{
    io,
    net::SocketAddr,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use soul_tests::load::{Head, Loaded, Times, flags, mebibytes, option};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

/// Bytes that are read or written at once.
const PIECE: usize = 64 * 1024;

/// After so many bytes they begin again: a prime, so that no buffer of a usual size holds the same ones twice.
const PERIOD: usize = 1_000_003;

/// How long a slow caller waits before it reads another piece.
const PAUSE: Duration = Duration::from_millis(4);

/// What every body consists of, as often as it takes.
struct Pattern(Vec<u8>);

impl Pattern {
    fn new() -> Self {
        // Steele and Vigna's SplitMix64 stirs the number of a byte well enough.
        let byte = |index: usize| {
            let stirred = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((stirred ^ (stirred >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 56) as u8
        };
        Self((0..PERIOD + PIECE).map(|index| byte(index % PERIOD)).collect())
    }

    /// The bytes from `offset` on, at most `length` of them.
    fn at(&self, offset: u64, length: u64) -> &[u8] {
        let start = (offset % PERIOD as u64) as usize;
        &self.0[start..start + length.min(PIECE as u64) as usize]
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let at_once: usize = option("--at-once", 64);
    let length = option("--megabytes", 32_u64) * 1024 * 1024;
    let slow: usize = option("--slow", 8);
    let growth: f64 = option("--growth", 50.0);

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let upstream = listener.local_addr().expect("it has an address");
    tokio::spawn(echo(listener));
    let gateway = Loaded::start(upstream, &flags()).await;
    // Whether all of it is fast enough is not what is asked here.
    gateway.allow(Duration::from_secs(60)).await;
    let pattern = Arc::new(Pattern::new());
    exchange(gateway.address, &pattern, 1000, Duration::ZERO).await.expect("a first exchange");

    let before = gateway.resident();
    let memory = gateway.watch();
    let began = Instant::now();
    let mut callers = JoinSet::new();
    for index in 0..at_once {
        let (address, pattern) = (gateway.address, Arc::clone(&pattern));
        let pause = if index < slow { PAUSE } else { Duration::ZERO };
        callers.spawn(async move { exchange(address, &pattern, length, pause).await });
    }
    let small = Arc::new(Mutex::new(Times::default()));
    let noting = tokio::spawn(small_ones(gateway.address, Arc::clone(&pattern), Arc::clone(&small)));
    let mut failed = 0;
    while let Some(caller) = callers.join_next().await {
        if let Err(error) = caller.unwrap_or_else(|error| Err(io::Error::other(error))) {
            eprintln!("a caller failed: {error}");
            failed += 1;
        }
    }
    let took = began.elapsed().as_secs_f64();
    let grown = mebibytes(memory.grown());
    noting.abort();
    let mut small = std::mem::take(&mut *small.lock().unwrap_or_else(PoisonError::into_inner));
    let passed = mebibytes(length) * at_once as f64 * 2.0;
    println!("{at_once} at once, {slow} of them slow readers, {} MiB each way", mebibytes(length));
    println!("{passed:.0} MiB in {took:.1} s: {:.0} MiB/s through the gateway", passed / took);
    println!(
        "{} small requests beside them: p50 {:.1} ms, p99 {:.1} ms",
        small.count(),
        small.within(0.5),
        small.within(0.99)
    );
    println!(
        "resident memory: {:.1} MiB before, +{grown:.1} MiB at most, {:.1} MiB after; allowed are +{growth} MiB",
        mebibytes(before),
        mebibytes(gateway.resident())
    );
    if failed > 0 || grown > growth {
        eprintln!("FAILED: {failed} callers failed, memory grew by {grown:.1} MiB");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Notes how long small requests take, each on a connection of its own, one after the other.
async fn small_ones(gateway: SocketAddr, pattern: Arc<Pattern>, times: Arc<Mutex<Times>>) {
    loop {
        let asked = Instant::now();
        if exchange(gateway, &pattern, 100, Duration::ZERO).await.is_ok() {
            times.lock().unwrap_or_else(PoisonError::into_inner).add(asked.elapsed());
        }
        sleep(PAUSE).await;
    }
}

/// One caller: sends a body and compares what comes back, both at once.
async fn exchange(gateway: SocketAddr, pattern: &Pattern, length: u64, pause: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect(gateway).await?;
    let (mut reader, mut writer) = stream.split();
    let send = async {
        let head = format!("POST /api/echo HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        writer.write_all(head.as_bytes()).await?;
        let mut sent = 0;
        while sent < length {
            let piece = pattern.at(sent, length - sent);
            writer.write_all(piece).await?;
            sent += piece.len() as u64;
        }
        Ok::<_, io::Error>(())
    };
    let receive = async {
        let head = Head::read(&mut reader).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if head.second() != "200" || head.length() != length {
            return Err(io::Error::other(format!("not the answer: {head:?}")));
        }
        let mut piece = head.rest;
        let mut received = 0;
        loop {
            if pattern.at(received, piece.len() as u64) != piece {
                return Err(io::Error::other(format!("other bytes came after {received}")));
            }
            received += piece.len() as u64;
            if received == length {
                return Ok(());
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
            piece.resize(PIECE, 0);
            let read = reader.read(&mut piece).await?;
            piece.truncate(read);
            if read == 0 {
                return Err(io::Error::other(format!("it ended after {received} bytes")));
            }
        }
    };
    tokio::try_join!(send, receive).map(drop)
}

/// An upstream that sends back what it gets, piece by piece.
async fn echo(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        connections.spawn(async move {
            while let Some(head) = Head::read(&mut stream).await? {
                let mut left = head.length();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n");
                stream.write_all(answer.as_bytes()).await?;
                let mut piece = head.rest;
                while left > 0 {
                    stream.write_all(&piece).await?;
                    left -= piece.len() as u64;
                    piece.resize(PIECE.min(left as usize), 0);
                    if left > 0 {
                        let read = stream.read(&mut piece).await?;
                        piece.truncate(read);
                        if read == 0 {
                            return Ok(());
                        }
                    }
                }
            }
            Ok::<_, io::Error>(())
        });
    }
}
