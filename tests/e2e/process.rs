//! The program as scripts meet it: the ready line, signals, exit codes.

use std::time::Duration;

use soul_tests::harness::{DEADLINE, Upstream, client, eventually, free_addr, own_address};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::program;

fn free() -> String {
    format!("{}:0", own_address())
}

#[tokio::test]
async fn the_ready_line_names_the_parts_that_run() {
    let (admin, gateway, status) = (free(), free(), free());
    let args = [
        "--data-dir",
        "memory",
        "--admin-listen",
        &admin,
        "--gateway-listen",
        &gateway,
        "--status-listen",
        &status,
    ];
    let both = program().start(&args).await;
    let words: Vec<_> = both.ready.split(' ').map(|word| word.split('=').next().unwrap()).collect();
    assert_eq!(words, ["ready", "admin", "gateway", "status"]);
    for (key, path) in
        [("admin", "/healthz"), ("admin", "/readyz"), ("status", "/healthz"), ("status", "/readyz")]
    {
        let url = format!("{}{path}", both.address(key));
        assert_eq!(client().get(&url).send().await.unwrap().status(), 200, "{url}");
    }

    let alone = program().start(&["admin", "--data-dir", "memory", "--admin-listen", &free()]).await;
    assert!(alone.ready.starts_with("ready admin=http://127."), "{}", alone.ready);
    assert_eq!(alone.ready.split(' ').count(), 2);

    let url = both.address("admin");
    let args = [
        "gateway",
        "--data-dir",
        "memory",
        "--admin",
        &url,
        "--gateway-listen",
        &free(),
        "--status-listen",
        &free(),
    ];
    let gateway = program().start(&args).await;
    let words: Vec<_> = gateway.ready.split(' ').map(|word| word.split('=').next().unwrap()).collect();
    assert_eq!(words, ["ready", "gateway", "status"]);
}

#[tokio::test]
async fn both_signals_end_it_with_exit_code_0() {
    for signal in ["TERM", "INT"] {
        let args = [
            "--data-dir",
            "memory",
            "--admin-listen",
            &free(),
            "--gateway-listen",
            &free(),
            "--status-listen",
            &free(),
        ];
        let running = program().start(&args).await;
        running.signal(signal).await;
        let (status, log) = running.ended().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains(&format!("SIG{signal}")), "{log}");
    }
}

#[tokio::test]
async fn a_gateway_that_waits_for_its_first_configuration_ends_at_a_signal_too() {
    let nobody = format!("http://{}", free_addr());
    let mut running = program().spawn(&[
        "gateway",
        "--data-dir",
        "memory",
        "--admin",
        &nobody,
        "--gateway-listen",
        &free(),
        "--status-listen",
        &free(),
    ]);
    // Its handler stands before the first log line is written; nothing else tells that it has begun to wait.
    running.logged("no configuration").await;
    running.signal("TERM").await;
    let (status, log) = running.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_end_and_a_second_signal_does_not_wait() {
    for (second_signal, code) in [(false, 0), (true, 130)] {
        let upstream = Upstream::slow(Duration::from_secs(if second_signal { 20 } else { 1 })).await;
        let args = [
            "--data-dir",
            "memory",
            "--admin-listen",
            &free(),
            "--gateway-listen",
            &free(),
            "--status-listen",
            &free(),
        ];
        let mut running = program().start(&args).await;
        running.admin().register("/slow", "/slow/**", upstream.addr()).await;
        let gateway = running.gateway();
        gateway.learned("/slow", 1, 1).await;
        let asked = tokio::spawn(async move { gateway.seen("/slow/order").await });
        eventually("the request at the upstream", async || (upstream.count() > 0).then_some(())).await;
        running.signal("TERM").await;
        if second_signal {
            running.logged("SIGTERM").await;
            running.signal("INT").await;
        } else {
            let seen = asked.await.unwrap().expect("the request in flight is answered");
            assert_eq!(seen.served_by, upstream.addr().to_string());
        }
        let (status, log) = running.ended_within(Duration::from_secs(10)).await;
        assert_eq!(status.code(), Some(code), "{log}");
    }
}

#[tokio::test]
async fn an_address_that_is_taken_is_named_with_its_flag() {
    let taken = std::net::TcpListener::bind((own_address(), 0)).unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for flag in ["--admin-listen", "--gateway-listen", "--status-listen"] {
        let mut args = vec!["--data-dir".to_owned(), "memory".to_owned()];
        for other in ["--admin-listen", "--gateway-listen", "--status-listen"] {
            args.extend([other.to_owned(), if other == flag { taken.clone() } else { free() }]);
        }
        let output = program().run(&args.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(&format!("`{taken}` (`{flag}`)")), "{}", output.stderr);
        assert_eq!(output.stdout, "", "not ready");
    }
}

#[tokio::test]
async fn a_reader_of_the_log_that_goes_away_takes_nothing_along() {
    let mut running = program().spawn_unread(&["admin", "--data-dir", "memory", "--admin-listen", &free()]);
    running.wait_ready().await;
    let admin = running.address("admin");
    for _ in 0..3 {
        // Every refusal is a line of the log.
        let refused = client()
            .post(format!("{admin}/soul-client/springmvc-register"))
            .header("content-type", "application/json")
            .body("{}")
            .send()
            .await;
        assert_eq!(refused.expect("an answer").status(), 400);
    }
    running.signal("TERM").await;
    let (status, _) = running.ended().await;
    assert_eq!(status.code(), Some(0));
}

#[tokio::test]
async fn without_a_reader_a_failure_still_has_its_exit_code() {
    let nowhere = ["admin", "--data-dir", "memory", "--admin-listen", "203.0.113.1:9"];
    for (args, code) in [(&nowhere[..], 1), (&["admin", "--config", "/nonexistent"], 2)] {
        let running = program().spawn_unread(args);
        let (status, _) = running.ended().await;
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
}

#[tokio::test]
async fn more_connections_than_can_be_counted_are_no_limit() {
    let most = usize::MAX.to_string();
    let args = ["admin", "--data-dir", "memory", "--admin-listen", &free(), "--admin-max-connections", &most];
    let running = program().start(&args).await;
    let url = format!("{}/healthz", running.address("admin"));
    assert_eq!(client().get(&url).send().await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn a_low_limit_of_open_files_is_raised() {
    let args = ["admin", "--data-dir", "memory", "--admin-listen", &free()];
    let running = program().descriptors(48).start(&args).await;
    let address = running.address("admin").replace("http://", "");
    let mut held = Vec::new();
    for number in 0..150 {
        let mut connection = TcpStream::connect(&address).await.expect("connect");
        connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: admin\r\n\r\n").await.expect("ask");
        let mut answer = [0; 15];
        let read = timeout(DEADLINE, connection.read_exact(&mut answer)).await;
        read.unwrap_or_else(|_| panic!("no answer on connection {number}")).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        held.push(connection);
    }
}
