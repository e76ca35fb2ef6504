//! What a held poll costs: 5,000 gateways poll an admin at once, then one change answers them all.
//!
//! `cargo bench -p soul-gateway-mini --bench held_polls` prints the resident memory a poll takes in the admin's
//! process, and the time from the change to the last answer; it fails above 20 KB and 1 s. The admin is a
//! process of its own, so that only its memory is counted.

use std::{
    env,
    error::Error,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use soul_gateway_mini::admin::{Admin, AdminConfig, DataDir};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// Gateways that poll.
const POLLS: usize = 5_000;
/// Most memory a poll may take, in bytes.
const BYTES_LIMIT: usize = 20 * 1024;
/// Longest time from the change to the last answer.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// Tells this program to be the admin.
const ADMIN: &str = "SOUL_BENCH_ADMIN";
/// A registration: the change.
const BODY: &str = r#"{"appName":"http","context":"/http","path":"/http/**","rpcType":"http","host":"10.0.0.2","port":8188,"ruleName":"/http/**","enabled":true,"registerMetaData":false}"#;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    // `cargo test --benches` runs this too, without the flag.
    if !env::args().any(|argument| argument == "--bench") && env::var_os(ADMIN).is_none() {
        return Ok(());
    }
    raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if env::var_os(ADMIN).is_some() { runtime.block_on(be_the_admin()) } else { runtime.block_on(measure()) }
}

/// Every connection is a descriptor.
fn raise_descriptor_limit() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(())
}

async fn be_the_admin() -> Result<()> {
    let config = AdminConfig {
        listen: "127.0.0.1:0".parse()?,
        data: DataDir::Memory,
        upstream_check_interval: Duration::ZERO,
        ..AdminConfig::default()
    };
    let admin = Admin::start(config).await?;
    println!("{}", admin.local_addr());
    std::future::pending().await
}

/// The admin's process, ended with this one.
struct AdminProcess(Child);

impl Drop for AdminProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn measure() -> Result<()> {
    let mut child = Command::new(env::current_exe()?).env(ADMIN, "1").stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("no output of the admin")?;
    let admin = AdminProcess(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let address: SocketAddr = line.trim().parse()?;

    // One round warms up what is made once: allocator, router, buffers of the runtime.
    round(address, 64, None).await?;
    let before = resident(admin.0.id())?;
    let (held, took) = round(address, POLLS, Some(admin.0.id())).await?;
    let bytes = held.saturating_sub(before) / POLLS;
    println!("polls held            {POLLS}");
    println!("resident memory       {} KiB before, {} KiB held", before / 1024, held / 1024);
    println!("per poll              {:.1} KiB (limit {} KiB)", bytes as f64 / 1024.0, BYTES_LIMIT / 1024);
    println!("change to last answer {took:.0?} (limit {TIME_LIMIT:?})");
    if bytes >= BYTES_LIMIT || took >= TIME_LIMIT {
        return Err("a limit is exceeded".into());
    }
    Ok(())
}

/// Holds polls, changes something, waits for all answers; returns the memory while they were held, and the time.
async fn round(address: SocketAddr, polls: usize, process: Option<u32>) -> Result<(usize, Duration)> {
    let form = form(address).await?;
    let mut streams = Vec::with_capacity(polls);
    for _ in 0..polls {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(post("/configs/listener", "application/x-www-form-urlencoded", &form).as_bytes())
            .await?;
        streams.push(stream);
    }
    until_held(address, polls).await?;
    let held = process.map_or(Ok(0), resident)?;
    let mut answers = JoinSet::new();
    for mut stream in streams {
        answers.spawn(async move {
            let mut buffer = [0; 512];
            let read = stream.read(&mut buffer).await?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&buffer[..read]).contains("SELECTOR"))
        });
    }
    let started = Instant::now();
    // Each round changes another selector.
    let context = format!("/bench{polls}");
    request(
        address,
        &post("/soul-client/springmvc-register", "application/json", &BODY.replace("/http", &context)),
    )
    .await?;
    while let Some(answer) = answers.join_next().await {
        if !answer?? {
            return Err("a poll got another answer".into());
        }
    }
    Ok((held, started.elapsed()))
}

fn post(path: &str, media_type: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: admin\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends one request on a connection of its own and reads the whole answer.
async fn request(address: SocketAddr, text: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(text.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// The form of a gateway that has everything.
async fn form(address: SocketAddr) -> Result<String> {
    let status = request(address, "GET /status HTTP/1.1\r\nhost: admin\r\n\r\n").await?;
    let body = status.split_once("\r\n\r\n").ok_or("no body")?.1;
    let status: serde_json::Value = serde_json::from_str(body)?;
    let groups = status["groups"].as_array().ok_or("no groups")?;
    let pairs = groups.iter().map(|group| {
        let text = |field: &str| group[field].as_str().unwrap_or_default().to_owned();
        format!("{}={}%2C{}", text("group"), text("md5"), group["lastModifyTime"])
    });
    Ok(pairs.collect::<Vec<_>>().join("&"))
}

async fn until_held(address: SocketAddr, expected: usize) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        let status = request(address, "GET /status HTTP/1.1\r\nhost: admin\r\n\r\n").await?;
        if status.contains(&format!("\"pollsHeld\": {expected},")) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("the polls are not held".into())
}

/// Resident memory of a process in bytes, from `/proc`.
fn resident(process: u32) -> Result<usize> {
    let text = fs::read_to_string(format!("/proc/{process}/statm"))?;
    let pages: usize = text.split(' ').nth(1).ok_or("no resident size")?.parse()?;
    Ok(pages * rustix::param::page_size())
}
