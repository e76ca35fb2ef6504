//! Every example runs, against an admin in this process, and does what it says at its top.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{process::Stdio, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use soul_client::{Dialect, ShenyuVersion, testing::FakeAdmin};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::timeout,
};

const LIMIT: Duration = Duration::from_secs(60);

/// A running example; it ends with this.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(path: &str, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(path);
        command.args(args).env_clear().envs(variables.iter().copied()).env("LISTEN", "127.0.0.1:0");
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self { child, lines: BufReader::new(stdout).lines() }
    }

    /// What follows `words` in the next line that has them.
    async fn says(&mut self, words: &str) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("ended without saying `{words}`"));
                if let Some((_, rest)) = line.split_once(words) {
                    return rest.to_owned();
                }
            }
        };
        timeout(LIMIT, next).await.unwrap_or_else(|_| panic!("has not said `{words}`"))
    }

    /// The port it says that it serves.
    async fn port(&mut self) -> u16 {
        let address = self.says("serving http://").await;
        let digits: String =
            address.split(':').nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    }

    /// Ends well, by itself or by SIGTERM.
    async fn ends(mut self, asked: bool) {
        if asked {
            let id = i32::try_from(self.child.id().unwrap()).unwrap();
            kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
        }
        let ended = async {
            while self.lines.next_line().await.unwrap().is_some() {}
            self.child.wait().await.unwrap()
        };
        let status = timeout(LIMIT, ended).await.unwrap();
        assert!(status.success(), "{status}");
    }
}

async fn ask(port: u16, method: &str, path: &str) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let answer = timeout(LIMIT, exchange).await.unwrap().unwrap();
    answer.rsplit_once("\r\n\r\n").map_or(answer.clone(), |(_, body)| body.to_owned())
}

async fn has(admin: &FakeAdmin, routes: &[&str]) {
    let wait = async {
        while admin.routes() != routes {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("has {:?}", admin.routes()));
}

#[tokio::test]
async fn plain_axum() {
    let admin = FakeAdmin::start(Dialect::Feb2021).await.unwrap();
    let variables = [("SOUL_ADMIN_URL", &*admin.url())];
    let mut program = Program::start(env!("CARGO_BIN_EXE_plain_axum"), &[], &variables);
    let port = program.port().await;
    has(&admin, &["/shop/order/*", "/shop/order/save"]).await;
    assert_eq!(ask(port, "GET", "/order/7").await, "order 7");
    program.ends(true).await;
}

#[tokio::test]
async fn nested() {
    let admin = FakeAdmin::start(Dialect::V2_3_0).await.unwrap();
    let variables = [("SOUL_ADMIN_URL", &*admin.url())];
    let mut program = Program::start(env!("CARGO_BIN_EXE_nested"), &[], &variables);
    let port = program.port().await;
    has(&admin, &["/shop/api/admin/purge", "/shop/api/v1/order/*", "/shop/api/v1/order/save"]).await;
    for (method, path, answer) in [
        ("GET", "/api/v1/order/7", "order 7 of the corner shop"),
        ("PUT", "/api/v1/order/save", "saved"),
        ("POST", "/api/admin/purge", "purged"),
        ("GET", "/order/7", "no such path"),
    ] {
        assert_eq!(ask(port, method, path).await, answer, "{path}");
    }
    program.ends(true).await;
}

#[tokio::test]
async fn port_zero() {
    let admin = FakeAdmin::start(Dialect::Any).await.unwrap();
    let variables = [("SOUL_ADMIN_URL", &*admin.url())];
    let mut program = Program::start(env!("CARGO_BIN_EXE_port_zero"), &[], &variables);
    let mut ports = [program.port().await, program.port().await];
    let both = async {
        while admin.instances().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, both).await.unwrap();
    let mut announced: Vec<u16> = admin
        .instances()
        .iter()
        .map(|instance| instance.rsplit_once(':').unwrap().1.parse().unwrap())
        .collect();
    announced.sort_unstable();
    ports.sort_unstable();
    assert_eq!(announced, ports);
    for port in ports {
        assert_eq!(ask(port, "GET", "/who").await, format!("port {port}\n"));
    }
    program.ends(true).await;
}

#[tokio::test]
async fn private_ca() {
    let mut program = Program::start(env!("CARGO_BIN_EXE_private_ca"), &[], &[]);
    let refused = program.says("without its authority: ").await;
    assert!(refused.contains("certificate"), "{refused}");
    assert!(program.says("with it: ").await.starts_with("registered /shop/order/save at https://"));
    program.ends(false).await;
}

#[tokio::test]
async fn two_admins() {
    let mut program = Program::start(env!("CARGO_BIN_EXE_two_admins"), &[], &[]);
    assert!(program.says(" is down: ").await.contains("register"));
    program.says(" has /shop/order/save").await;
    program.says(" is up and has /shop/order/save").await;
    program.ends(false).await;
}

#[tokio::test]
async fn shenyu() {
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_6)).await.unwrap();
    let variables = [
        ("SOUL_ADMIN_URL", &*admin.url()),
        ("SOUL_USERNAME", FakeAdmin::USERNAME),
        ("SOUL_PASSWORD", FakeAdmin::PASSWORD),
    ];
    let mut program = Program::start(env!("CARGO_BIN_EXE_shenyu"), &[], &variables);
    let port = program.port().await;
    has(&admin, &["/orders/item/*", "/orders/list"]).await;
    assert_eq!(ask(port, "GET", "/list").await, "orders of the corner shop");
    assert_eq!(ask(port, "GET", "/item/7").await, "order 7");
    program.ends(true).await;
    assert!(admin.instances().is_empty(), "it has said that it leaves");
}

#[tokio::test]
async fn hyper_with_a_file() {
    let admin = FakeAdmin::start(Dialect::Shenyu(ShenyuVersion::V2_7)).await.unwrap();
    // The environment wins over the file.
    let variables = [("SOUL_ADMIN_URL", &*admin.url())];
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/application.yml");
    let mut program = Program::start(env!("CARGO_BIN_EXE_hyper"), &[file], &variables);
    let port = program.port().await;
    has(&admin, &["/hyper/ping"]).await;
    assert_eq!(ask(port, "GET", "/ping").await, "pong");
    program.ends(true).await;
}
