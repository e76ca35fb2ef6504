//! What the load programs of `tests/bench` have in common: the gateway as a process of its own and what it takes, messages
//! on raw sockets, and numbers in order.

use std::{env, fs, io, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    task::JoinHandle,
    time::interval,
};

use crate::harness::{AdminApi, Program, Running};

/// Pause between two looks at the memory of the gateway.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What follows a flag of this program, such as `32` after `--megabytes`; `default` without it.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn option<T: FromStr>(flag: &str, default: T) -> T {
    let mut arguments = env::args().skip(1).take_while(|argument| argument != "--");
    let Some(_) = arguments.find(|argument| argument == flag) else { return default };
    let value = arguments.next().unwrap_or_default();
    value.parse().unwrap_or_else(|_| panic!("`{value}` after `{flag}` is not understood"))
}

/// What stands behind `--`: flags for the gateway.
#[must_use]
pub fn flags() -> Vec<String> {
    env::args().skip_while(|argument| argument != "--").skip(1).collect()
}

/// A gateway alone in its process, with one service `/api` behind it.
#[derive(Debug)]
pub struct Loaded {
    gateway: Running,
    admin: AdminApi,
    _admin: Running,
    /// Where it takes requests.
    pub address: SocketAddr,
}

impl Loaded {
    /// Starts it, with an admin of its own in another process.
    ///
    /// # Panics
    /// When the programs are not there or do not start.
    pub async fn start(upstream: SocketAddr, flags: &[String]) -> Self {
        let program = Program::new(beside("gateway-under-test"));
        let free = "127.0.0.1:0";
        let admin = ["admin", "--admin-listen", free, "--data-dir", "memory", "--log-level", "error"];
        let admin = program.start(&admin).await;
        let api = admin.admin();
        api.register("/api", "/api/**", upstream).await;
        let url = admin.address("admin");
        let mut all = vec!["gateway", "--gateway-listen", free, "--status-listen", free, "--admin", &url];
        all.extend(["--data-dir", "memory", "--log-level", "error"]);
        all.extend(flags.iter().map(String::as_str));
        let gateway = program.start(&all).await;
        gateway.gateway().learned("/api", 1, 1).await;
        let address = gateway.address("gateway");
        let address = address.trim_start_matches("http://").parse().expect("an address");
        Self { gateway, admin: api, _admin: admin, address }
    }

    /// Changes how long the service may take, and waits until that serves.
    ///
    /// # Panics
    /// When it never does.
    pub async fn allow(&self, timeout: Duration) {
        let rule = format!("rules/{}", self.admin.id("rules", "/api/**").await);
        let before = self.gateway.gateway().status().await["config"]["revision"].clone();
        self.admin.change(&rule, serde_json::json!({ "timeout": timeout.as_millis() as u64 })).await;
        crate::harness::eventually("the change serves", async || {
            (self.gateway.gateway().status().await["config"]["revision"] != before).then_some(())
        })
        .await;
    }

    /// Its resident memory, in bytes.
    ///
    /// # Panics
    /// When the system does not tell, as on others than Linux.
    #[must_use]
    pub fn resident(&self) -> u64 {
        resident(self.gateway.id())
    }

    /// Notes its memory from now on.
    #[must_use]
    pub fn watch(&self) -> Watch {
        let id = self.gateway.id();
        let before = self.resident();
        let (told, most) = tokio::sync::watch::channel(before);
        let task = tokio::spawn(async move {
            let mut looks = interval(LOOK_EVERY);
            loop {
                looks.tick().await;
                let now = resident(id);
                told.send_if_modified(|most| std::mem::replace(most, now.max(*most)) < now);
            }
        });
        Watch { before, most, task }
    }
}

/// The memory of a gateway over some time.
#[derive(Debug)]
pub struct Watch {
    before: u64,
    most: tokio::sync::watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Watch {
    /// By how much it grew at most, in bytes, since before.
    #[must_use]
    pub fn grown(&self) -> u64 {
        *self.most.borrow() - self.before
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("the gateway runs, on Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory is told");
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("in kB");
    kibibytes * 1024
}

/// A program that was built together with this one.
fn beside(name: &str) -> &'static str {
    let own = env::current_exe().expect("this program is somewhere");
    let path: PathBuf = own.with_file_name(name);
    assert!(
        path.exists(),
        "`{}` is not there, run `cargo build -p soul-tests` with the same profile",
        path.display()
    );
    // For the life of this program, which is short.
    String::leak(path.to_string_lossy().into_owned())
}

/// The head of a message, and what of its body came along.
#[derive(Debug)]
pub struct Head {
    text: String,
    /// What came behind it.
    pub rest: Vec<u8>,
}

impl Head {
    /// Reads it; `None` if the connection ends before.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut read = Vec::with_capacity(1024);
        loop {
            if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let rest = read.split_off(end + 4);
                return Ok(Some(Self { text: String::from_utf8_lossy(&read).into_owned(), rest }));
            }
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// The second word of its first line: the target of a request, the status of an answer.
    #[must_use]
    pub fn second(&self) -> &str {
        self.text.split(' ').nth(1).unwrap_or_default()
    }

    /// The length of its body, as it is announced.
    #[must_use]
    pub fn length(&self) -> u64 {
        let line = self.text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then_some(value.trim())
        });
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

/// Durations, to be asked for the time that so many of them stay within.
#[derive(Debug, Default)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that a part of them, such as 0.99, stays within, in milliseconds; 0 without any.
    #[must_use]
    pub fn within(&mut self, part: f64) -> f64 {
        self.0.sort_unstable();
        let index = ((self.0.len() as f64 * part).ceil() as usize).saturating_sub(1);
        self.0.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// In mebibytes.
#[must_use]
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}
