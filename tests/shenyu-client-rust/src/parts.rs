//! What the stories stand on: the program under test as a process, a service, and waiting for conditions.

use std::{
    io::{BufRead as _, BufReader},
    net::Ipv4Addr,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use shenyu_client_rust::axum_impl::ShenYuRouter;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::DEADLINE;

/// An admin and a gateway in a process of their own, which ends with this value.
pub struct Parts {
    process: Child,
    pub admin: String,
    pub gateway: String,
}

impl Parts {
    /// Starts the program on free ports, and waits until it serves.
    pub fn start(program: &str, flags: &[&str]) -> Result<Self, String> {
        let listen = ["--admin-listen", "--gateway-listen", "--status-listen"];
        let mut process = Command::new(program)
            .args(listen.iter().flat_map(|flag| [*flag, "127.0.0.1:0"]))
            .args(["--data-dir", "memory", "--log-level", "error"])
            .args(flags)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("start `{program}`: {error}"))?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        let address = |name: &str| {
            let found = line.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
            found.unwrap_or_default().to_owned()
        };
        let parts = Self { admin: address("admin"), gateway: address("gateway"), process };
        if parts.admin.is_empty() || parts.gateway.is_empty() {
            return Err(format!("`{program}` said `{}` where its addresses were expected", line.trim()));
        }
        Ok(parts)
    }

    /// How many selectors the admin holds.
    pub fn selectors(&self) -> Result<usize, String> {
        let answer = ureq::get(&format!("{}/configs/fetch?groupKeys=SELECTOR", self.admin)).call();
        let text =
            answer.map_err(|error| error.to_string())?.into_string().map_err(|error| error.to_string())?;
        Ok(text.matches("\"pluginName\"").count())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // One that has ended already needs no word.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A service on every interface, since the crate announces the address that the machine has in its network.
pub struct Service {
    runtime: Option<Runtime>,
    pub port: u16,
}

impl Service {
    pub fn start(router: ShenYuRouter) -> Result<Self, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)));
        let listener = listener.map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let app: axum::Router = router.into();
        runtime.spawn(async move { axum::serve(listener, app).await });
        Ok(Self { runtime: Some(runtime), port })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The status of an answer; `None` where there is none.
pub fn status(url: &str) -> Option<u16> {
    match ureq::get(url).call() {
        Ok(answer) => Some(answer.status()),
        Err(ureq::Error::Status(status, _)) => Some(status),
        Err(ureq::Error::Transport(_)) => None,
    }
}

/// Looks until something is so.
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) -> Result<(), String> {
    let until = Instant::now() + DEADLINE;
    while Instant::now() < until {
        if look() {
            return Ok(());
        }
        thread::sleep(std::time::Duration::from_millis(20));
    }
    Err(format!("within {DEADLINE:?} there was no: {what}"))
}
