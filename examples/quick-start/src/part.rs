//! The parts of the demonstration: each is this same program, started again with a role.
//!
//! A part is a process of its own, so killing one is what it is in real life. Its log goes to a file, its
//! `ready …` line is read from its stdout, and its stdin is a pipe from here: when this program ends, however
//! it ends, the pipe closes and the part ends too.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    thread,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    time::timeout,
};

/// First argument that makes this program a part; not meant for people.
const PART: &str = "__part";

/// Longest a part may take until it serves.
const READY_WITHIN: Duration = Duration::from_secs(15);

/// Longest a part may take to end.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Admin,
    Gateway,
    Service,
}

impl Role {
    const ALL: [Self; 3] = [Self::Admin, Self::Gateway, Self::Service];

    fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Gateway => "gateway",
            Self::Service => "service",
        }
    }
}

/// Runs as a part, if that is what the arguments say.
pub(crate) fn run_as_part() -> Option<ExitCode> {
    let mut args = env::args_os().skip(1);
    if args.next()? != PART {
        return None;
    }
    let name = args.next()?;
    let role = Role::ALL.into_iter().find(|role| name == role.name())?;
    end_with_parent();
    Some(match role {
        Role::Admin | Role::Gateway => {
            soul_gateway_mini::app::main([OsString::from("soul-gateway-mini"), name].into_iter().chain(args))
        }
        Role::Service => http_service::main([OsString::from("http-service")].into_iter().chain(args)),
    })
}

/// Ends this process when the pipe on stdin closes, which is when the program that started it has ended.
fn end_with_parent() {
    thread::spawn(|| {
        let mut byte = [0];
        while io::stdin().read(&mut byte).is_ok_and(|read| read > 0) {}
        std::process::exit(0);
    });
}

/// A running part.
pub(crate) struct Part {
    name: String,
    child: Child,
    ready: String,
}

impl Part {
    /// Starts a part and waits for its `ready` line.
    ///
    /// # Errors
    /// When it cannot be started, or ends or stays silent instead of becoming ready.
    pub(crate) async fn start(name: &str, role: Role, folder: &Path, args: &[&str]) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(log_file(folder, name))?;
        let mut command = Command::new(env::current_exe()?);
        command.arg(PART).arg(role.name()).args(args);
        // The demonstration says what it needs by flags; settings of the user's own gateway must not leak in.
        for (variable, _) in env::vars_os() {
            let text = variable.to_string_lossy();
            if text.starts_with("SOUL_") || text == "RUST_LOG" {
                command.env_remove(&variable);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut child = command.spawn()?;
        let ready = match timeout(READY_WITHIN, ready_line(&mut child)).await {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => return Err(failed(name, "ended before it was ready")),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(failed(name, "was not ready in time")),
        };
        Ok(Self { name: name.to_owned(), child, ready })
    }

    /// An address out of the `ready` line, for example `http://127.0.0.1:41234` for `admin`.
    pub(crate) fn address(&self, key: &str) -> io::Result<String> {
        let mut words = self.ready.split_whitespace();
        let found = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found
            .map(str::to_owned)
            .ok_or_else(|| failed(&self.name, &format!("printed no `{key}=` in `{}`", self.ready)))
    }

    /// Kills the part at once, as `kill -9` does, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// Ends the part by closing the pipe on its stdin, and kills it when it does not end.
    pub(crate) async fn stop(mut self) {
        drop(self.child.stdin.take());
        if timeout(STOP_WITHIN, self.child.wait()).await.is_err() {
            // OK to ignore: a part that cannot be killed has ended.
            let _ = self.child.kill().await;
        }
    }
}

async fn ready_line(child: &mut Child) -> io::Result<Option<String>> {
    let Some(stdout) = child.stdout.take() else { return Ok(None) };
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        if line.starts_with("ready ") {
            return Ok(Some(line));
        }
    }
    Ok(None)
}

fn failed(name: &str, what: &str) -> io::Error {
    io::Error::other(format!("{name} {what}"))
}

fn log_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

/// The last lines of a part's log.
pub(crate) fn log_tail(folder: &Path, name: &str, lines: usize) -> Vec<String> {
    let text = fs::read_to_string(log_file(folder, name)).unwrap_or_default();
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect()
}
