//! Settings and log files of a running process, by signal.

use std::{fs, path::Path};

use soul_tests::harness::{Running, Upstream, eventually, own_address, text};

use crate::program;

/// Writes the file of settings of a process with both parts.
fn write(file: &Path, more: &str) {
    let own = own_address();
    let ports = format!(
        "data-dir = \"memory\"\nadmin-listen = \"{own}:0\"\ngateway-listen = \"{own}:0\"\nstatus-listen = \"{own}:0\"\n"
    );
    fs::write(file, ports + more).expect("write the settings");
}

/// A process that serves `/shop` by one upstream.
async fn serving(args: &[&str]) -> (Running, Upstream) {
    let upstream = Upstream::start().await;
    let running = program().start(args).await;
    running.admin().register("/shop", "/shop/**", upstream.addr()).await;
    running.gateway().learned("/shop", 1, 1).await;
    (running, upstream)
}

#[tokio::test]
async fn settings_are_read_anew_at_sighup_and_a_flag_still_beats_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("soul.toml");
    write(&file, "forwarded = \"append\"\n");
    let (mut running, _upstream) =
        serving(&["--config", text(&file), "--host-header", "preserve", "--log-level", "info"]).await;
    let gateway = running.gateway();
    let forwarded =
        async || gateway.seen("/shop/x").await.is_some_and(|seen| !seen.header("x-forwarded-for").is_empty());
    assert!(forwarded().await);

    write(
        &file,
        "forwarded = \"off\"\nhost-header = \"upstream\"\ngateway-threads = 1\nerror-status = \"soul\"\n",
    );
    running.signal("HUP").await;
    running.logged("reloaded, all parts").await;
    assert!(!forwarded().await, "the file counts at once");
    let seen = gateway.seen("/shop/x").await.expect("an answer");
    assert!(
        !seen.header("host").iter().any(|host| *host == seen.served_by),
        "the flag counts more: {seen:?}"
    );
    assert_eq!(gateway.error("/nowhere/x").await.0, 200, "also for the gateway's own answers");
    running.logged("needs a restart").await;
    let log = running.log();
    assert!(
        log.lines().any(|line| line.contains("gateway-threads") && line.contains("needs a restart")),
        "{log}"
    );
    assert!(!log.contains("\"host-header\""), "nothing changed of it: {log}");

    write(&file, "forwarded = \"append\"\npool-max-idle = \"many\"\n");
    running.signal("HUP").await;
    running.logged("soul.toml:6: `pool-max-idle`: expected a whole number").await;
    assert!(!forwarded().await, "a file with a mistake changes nothing");

    let missing = folder.path().join("ca.pem");
    write(&file, &format!("forwarded = \"append\"\nupstream-ca = {missing:?}\n"));
    running.signal("HUP").await;
    running.logged("certificates for upstreams: read").await;
    running.logged("not reloaded, the old settings serve on").await;
    assert!(!forwarded().await, "nor does a file that cannot be used");

    write(&file, "forwarded = \"append\"\n");
    running.signal("HUP").await;
    eventually("the file put right counts", async || forwarded().await.then_some(())).await;
    running.signal("TERM").await;
    let (status, log) = running.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn lines_are_logged_by_another_level_after_sighup() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("soul.toml");
    write(&file, "log-level = \"warn\"\n");
    let (mut running, _upstream) = serving(&["--config", text(&file)]).await;
    assert_eq!(running.log(), "", "nothing to warn of");
    write(&file, "log-level = \"info\"\n");
    running.signal("HUP").await;
    running.logged("reloaded, all parts").await;
}

#[tokio::test]
async fn a_rotated_access_log_loses_no_line_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = text(&path).to_owned();
    let own = format!("{}:0", own_address());
    let (mut running, upstream) = serving(&[
        "--data-dir",
        "memory",
        "--admin-listen",
        &own,
        "--gateway-listen",
        &own,
        "--status-listen",
        &own,
        "--access-log",
        &log,
    ])
    .await;
    let gateway = running.gateway();
    let mut asked = 0;
    for (round, signal) in ["USR1", "HUP", "USR1"].into_iter().enumerate() {
        let load = async {
            for _ in 0..200 {
                assert!(gateway.seen("/shop/x").await.is_some());
            }
        };
        let rotate = async {
            fs::rename(&path, folder.path().join(format!("access.log.{round}"))).expect("move the log");
            running.signal(signal).await;
        };
        tokio::join!(load, rotate);
        asked += 200;
        eventually("the log is there again", async || path.exists().then_some(())).await;
    }
    assert!(upstream.count() >= asked);
    running.signal("TERM").await;
    let (status, told) = running.ended_within(soul_tests::harness::DEADLINE).await;
    assert_eq!(status.code(), Some(0), "{told}");
    let mut lines = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let content = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(content.is_empty() || content.ends_with('\n'), "whole lines");
        for line in content.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("a whole line");
            assert_eq!(line["path"], "/shop/x");
            lines += 1;
        }
    }
    assert_eq!(lines, asked);
}
