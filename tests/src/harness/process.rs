//! The program as a process, for stories about its command line, its signals and its sudden end.

use std::{
    net::TcpListener,
    os::fd::OwnedFd,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    sync::watch,
    time::timeout,
};

use super::{admin::AdminApi, gateway::GatewayApi, wait::DEADLINE};

/// A program that can be started again and again.
#[derive(Clone, Debug)]
pub struct Program {
    path: &'static str,
    variables: Vec<(String, String)>,
    descriptors: Option<u32>,
    socket: Option<Arc<TcpListener>>,
}

/// What a process said and how it ended.
#[derive(Debug)]
pub struct Output {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Everything on stdout.
    pub stdout: String,
    /// Everything on stderr.
    pub stderr: String,
}

impl Program {
    /// The executable at `path`; its environment has no settings of the person running the tests.
    #[must_use]
    pub fn new(path: &'static str) -> Self {
        Self { path, variables: Vec::new(), descriptors: None, socket: None }
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, variable: &str, value: &str) -> Self {
        self.variables.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Starts it with so few open files allowed; it may raise that itself, as after `ulimit -S -n`.
    #[must_use]
    pub fn descriptors(mut self, allowed: u32) -> Self {
        self.descriptors = Some(allowed);
        self
    }

    /// Starts it with a socket that listens already, as a service manager does.
    #[must_use]
    pub fn on_socket(mut self, socket: TcpListener) -> Self {
        self.socket = Some(Arc::new(socket));
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let shell = |script: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script, self.path]);
            shell
        };
        let mut command = match (self.descriptors, &self.socket) {
            (Some(allowed), _) => shell(&format!("ulimit -S -n {allowed} && exec \"$0\" \"$@\"")),
            // Sockets begin at 3, and the process is told of them by its own number, which only it knows.
            (_, Some(_)) => shell("export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$0\" \"$@\" 3<&0 </dev/null"),
            _ => Command::new(self.path),
        };
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if name.starts_with("SOUL_") || name == "RUST_LOG" {
                command.env_remove(&variable);
            }
        }
        command.args(args).envs(self.variables.iter().cloned());
        let socket = self.socket.as_ref().map(|socket| socket.try_clone().expect("the socket once more"));
        let stdin = socket.map_or_else(Stdio::null, |socket| Stdio::from(OwnedFd::from(socket)));
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started or does not end in time.
    pub async fn run(&self, args: &[&str]) -> Output {
        let output = timeout(DEADLINE, self.command(args).output()).await;
        let output = output.unwrap_or_else(|_| panic!("`{args:?}` did not end")).expect("start the program");
        Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts it without waiting for anything.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(&self, args: &[&str]) -> Running {
        let mut child = self.command(args).spawn().expect("start the program");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        let (write, log) = watch::channel(String::new());
        tokio::spawn(async move {
            while let Ok(Some(line)) = stderr.next_line().await {
                write.send_modify(|log| log.extend([&line, "\n"]));
            }
        });
        Running { child, stdout, log, ready: String::new() }
    }

    /// Starts it with a stderr whose reader is gone.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn_unread(&self, args: &[&str]) -> Running {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut child = self.command(args).stderr(writer).spawn().expect("start the program");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let (_, log) = watch::channel(String::new());
        Running { child, stdout, log, ready: String::new() }
    }

    /// Starts it and waits for its `ready` line.
    ///
    /// # Panics
    /// When it ends, or stays silent, instead; the message holds its log.
    pub async fn start(&self, args: &[&str]) -> Running {
        let mut running = self.spawn(args);
        running.wait_ready().await;
        running
    }
}

/// A process that runs; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    /// What it has logged so far; its sender ends with the process.
    log: watch::Receiver<String>,
    /// The line it printed when it began to serve.
    pub ready: String,
}

impl Running {
    /// Waits for the `ready` line.
    ///
    /// # Panics
    /// When there is none in time.
    pub async fn wait_ready(&mut self) {
        let line = timeout(DEADLINE, self.stdout.next_line()).await;
        match line {
            Ok(Ok(Some(line))) => self.ready = line,
            Ok(_) => panic!("ended before it was ready: {}", self.whole_log().await),
            Err(_) => panic!("was not ready in time"),
        }
    }

    /// An address out of the `ready` line, for example `http://127.0.0.1:41234` for `admin`.
    ///
    /// # Panics
    /// When the line does not name it.
    #[must_use]
    pub fn address(&self, key: &str) -> String {
        let mut words = self.ready.split_whitespace();
        let found = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_else(|| panic!("no `{key}=` in `{}`", self.ready)).to_owned()
    }

    /// The admin in it.
    #[must_use]
    pub fn admin(&self) -> AdminApi {
        AdminApi::new(self.address("admin"))
    }

    /// The gateway in it.
    #[must_use]
    pub fn gateway(&self) -> GatewayApi {
        GatewayApi::new(self.address("gateway"), self.address("status"))
    }

    /// Waits until its log holds this text.
    ///
    /// # Panics
    /// When it ends, or the time is over, before that.
    pub async fn logged(&mut self, text: &str) {
        let found = matches!(timeout(DEADLINE, self.log.wait_for(|log| log.contains(text))).await, Ok(Ok(_)));
        assert!(found, "`{text}` is not in the log: {}", *self.log.borrow());
    }

    /// Its log so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// The log, once it is complete.
    async fn whole_log(&mut self) -> String {
        // OK to ignore: an error is what says that the log is complete.
        let _ = timeout(DEADLINE, self.log.wait_for(|_| false)).await;
        self.log.borrow().clone()
    }

    /// The number of the process.
    ///
    /// # Panics
    /// When it has ended already.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id().expect("still running")
    }

    /// Sends a signal by its name, for example `TERM`.
    ///
    /// # Panics
    /// When it has ended already.
    pub async fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let status = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &id]).status().await;
        assert!(status.expect("run `kill`").success(), "kill -s {name} {id}");
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("kill the program");
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn ended(mut self) -> (ExitStatus, String) {
        self.ended_within(DEADLINE).await
    }

    /// Waits for its end, no longer than `deadline`; gives its exit status and its log.
    ///
    /// # Panics
    /// When it does not end in time.
    pub async fn ended_within(&mut self, deadline: Duration) -> (ExitStatus, String) {
        let status = timeout(deadline, self.child.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("did not end within {deadline:?}"));
        (status.expect("wait for the program"), self.whole_log().await)
    }
}

/// The text of a path, for a command line.
///
/// # Panics
/// When it is not UTF-8.
#[must_use]
pub fn text(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
