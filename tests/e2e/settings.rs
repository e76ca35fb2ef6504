//! Flags, environment and file: what is accepted, which one wins, and how a mistake is told.

use std::{cell::RefCell, fs, path::PathBuf};

use soul_client::ClientConfig;
use soul_tests::harness::{DEADLINE, Output, Program, client, text};
use tempfile::TempDir;

use crate::program;

fn file(content: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soul.toml");
    fs::write(&path, content).unwrap();
    (folder, path)
}

/// The program refused its settings, and says all of this on stderr.
#[track_caller]
fn assert_refused(output: &Output, said: &[&str]) {
    assert_eq!(output.code, Some(2), "{output:?}");
    assert_eq!(output.stdout, "", "{output:?}");
    for words in said {
        assert!(output.stderr.contains(words), "`{words}` in {}", output.stderr);
    }
}

#[tokio::test]
async fn version_goes_to_stdout() {
    let output = program().run(&["--version"]).await;
    assert_eq!(output.code, Some(0));
    assert_eq!(output.stdout, concat!("soul-gateway-mini ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[tokio::test]
async fn help_shows_every_setting_with_default_unit_and_variable() {
    let output = program().run(&["--help"]).await;
    assert_eq!(output.code, Some(0));
    let settings: Vec<_> =
        output.stdout.split("\n      --").skip(1).filter(|s| s.contains("[env: SOUL_")).collect();
    assert!(settings.len() >= 10, "{}", output.stdout);
    for setting in settings {
        let flag = setting.split_whitespace().next().unwrap();
        let variable = format!("[env: SOUL_{}]", flag.replace('-', "_").to_uppercase());
        assert!(setting.contains(&variable), "--{setting}");
        assert!(flag == "config" || setting.contains("[default: "), "--{setting}");
        if setting.contains("<SECONDS>") {
            assert!(setting.contains("seconds"), "--{setting}");
        }
    }
}

/// The settings in a help text.
fn flags(help: &str) -> Vec<&str> {
    let settings = help.split("\n      --").skip(1);
    settings.filter_map(|setting| setting.split([' ', '\n']).next()).collect()
}

#[tokio::test]
async fn help_of_a_part_shows_what_that_part_reads() {
    let all = program().run(&["--help"]).await.stdout;
    let admin = program().run(&["admin", "--help"]).await;
    let gateway = program().run(&["gateway", "--help"]).await;
    for (help, heading, other) in
        [(&admin.stdout, "\nAdmin:\n", "\nGateway:\n"), (&gateway.stdout, "\nGateway:\n", "\nAdmin:\n")]
    {
        assert!(help.contains(heading) && !help.contains(other), "{help}");
        assert!(help.contains("A flag beats its environment variable"), "{help}");
        assert!(help.contains("Exit codes"), "{help}");
    }
    let (admin, gateway) = (flags(&admin.stdout), flags(&gateway.stdout));
    let (both, either): (Vec<_>, Vec<_>) =
        flags(&all).into_iter().partition(|flag| admin.contains(flag) && gateway.contains(flag));
    assert_eq!(both, ["config", "data-dir", "log-level", "log-format", "drain-timeout"]);
    assert!(either.iter().all(|flag| admin.contains(flag) || gateway.contains(flag)), "{either:?}");
    assert!(admin.contains(&"admin-listen") && gateway.contains(&"status-listen"));
    let short = program().run(&["gateway", "-h"]).await.stdout;
    assert!(short.contains("--gateway-listen") && !short.contains("--admin-listen"), "{short}");
}

#[tokio::test]
async fn unknown_flag_is_refused_with_the_nearest() {
    let output = program().run(&["--admin-listn", "127.0.0.1:0"]).await;
    assert_refused(&output, &["--admin-listn", "--admin-listen"]);
}

#[tokio::test]
async fn unknown_subcommand_is_refused_with_the_nearest() {
    assert_refused(&program().run(&["gatewy"]).await, &["gatewy", "gateway"]);
}

#[tokio::test]
async fn bad_flag_names_the_flag_and_what_is_allowed() {
    for (args, said) in [
        (["--admin-listen", "localhost:9095"], ["--admin-listen", "write `127.0.0.1:9095`"]),
        (["--gateway-listen", "127.0.0.1:70000"], ["--gateway-listen", "0 (any free one) to 65535"]),
        (["--upstream-check-interval", "-1"], ["--upstream-check-interval", "from 0 to"]),
        (["--upstream-check-interval", "NaN"], ["--upstream-check-interval", "from 0 to"]),
        (["--upstream-check-interval", "10s"], ["--upstream-check-interval", "without a unit"]),
        (["--log-format", "xml"], ["--log-format", "json"]),
        (["--log-level", "loud"], ["--log-level", "`warn`"]),
        (["--data-dir", ""], ["--data-dir", "memory"]),
    ] {
        assert_refused(&program().run(&args).await, &said);
    }
    let output = program().run(&["gateway", "--admin", "127.0.0.1:9095"]).await;
    assert_refused(&output, &["--admin", "write `http://127.0.0.1:9095`"]);
}

#[tokio::test]
async fn bad_variable_is_named() {
    for (variable, value, said) in [
        ("SOUL_ADMIN_LISTEN", "nowhere", "`IP:PORT`"),
        ("SOUL_ADMIN", "http://a:1,b:2", "write `http://b:2`"),
        ("SOUL_LOG_FORMAT", "xml", "json"),
        ("SOUL_GATEWAY_CHECK_INTERVAL", "inf", "from 0 to"),
        ("RUST_LOG", "loud", "`warn`"),
    ] {
        let output = program().env(variable, value).run(&["gateway"]).await;
        assert_refused(&output, &[variable, value, said]);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_with_its_setting_and_what_to_do() {
    let (folder, file) = file("nothing that any of them wants\n");
    let missing = folder.path().join("missing");
    let below = folder.path().join("none").join("x");
    let (folder, file, missing, below) = (text(folder.path()), text(&file), text(&missing), text(&below));
    let tls = |file| vec!["--tls-certificate", file, "--tls-key", file];
    let identity = |file| vec!["--upstream-certificate", file, "--upstream-key", file];
    for (args, flag, path) in [
        (vec!["--upstream-ca", missing], "--upstream-ca", missing),
        (vec!["--upstream-ca", file], "--upstream-ca", file),
        (identity(missing), "--upstream-certificate", missing),
        (identity(file), "--upstream-certificate", file),
        (vec!["--access-log", below], "--access-log", below),
        (vec!["--access-log", folder], "--access-log", folder),
        (tls(missing), "--tls-certificate", missing),
        (tls(file), "--tls-certificate", file),
        (vec!["--takeover", below], "--takeover", below),
        (vec!["--takeover", file], "--takeover", file),
        (vec!["--config", missing], "--config", missing),
    ] {
        let mut all = vec!["gateway", "--gateway-listen", "127.0.0.1:0", "--status-listen", "127.0.0.1:0"];
        all.extend(args);
        let output = program().run(&all).await;
        assert_refused(&output, &[&format!("`{path}` (`{flag}`)"), "expected"]);
    }
    for args in [["--data-dir", file], ["--api-token-file", missing], ["--shenyu-password-file", missing]] {
        let output = program().run(&["admin", "--admin-listen", "127.0.0.1:0", args[0], args[1]]).await;
        assert_refused(&output, &[args[0], args[1], "expected"]);
    }
}

#[tokio::test]
async fn an_empty_variable_is_none_and_an_unknown_one_is_mentioned() {
    let args = ["admin", "--data-dir", "memory", "--admin-listen", "203.0.113.1:9", "--log-format", "text"];
    let program = program().env("SOUL_POLL_HOLD", "").env("SOUL_GATEWAY_REQUEST_TIMEOUT", "");
    let output = program.env("SOUL_ADMIN_LISTN", "x").run(&args).await;
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(!output.stderr.contains("SOUL_GATEWAY"), "{}", output.stderr);
    assert!(output.stderr.contains("did you mean `SOUL_ADMIN_LISTEN`?"), "{}", output.stderr);
}

#[tokio::test]
async fn one_environment_may_serve_services_admin_and_gateway() {
    let names = RefCell::new(Vec::new());
    let _ = ClientConfig::builder().vars(|name| {
        names.borrow_mut().push(name.to_owned());
        None
    });
    let mut names = names.into_inner();
    names.retain(|name| name.starts_with("SOUL_"));
    assert!(names.len() >= 20, "{names:?}");
    names.extend(["SOUL_CALL_POLICY".to_owned(), "SOUL_CALL_CLIENTS_ORDERS_RETRIES_NEXT".to_owned()]);
    let help = program().run(&["--help"]).await.stdout;
    let shared: Vec<_> = names.iter().filter(|name| help.contains(&format!("[env: {name}]"))).collect();
    assert!(shared.is_empty(), "two meanings: {shared:?}");

    // No value that any setting would take.
    let of_services = names.iter().fold(program(), |program, name| program.env(name, "of services"));
    let nowhere = ["--data-dir", "memory", "--gateway-listen", "203.0.113.1:9", "--log-format", "text"];
    for (said, warned) in [(None, true), (Some("http://127.0.0.1:1"), false)] {
        let program = of_services.clone();
        let program = said.into_iter().fold(program, |program, url| program.env("SOUL_ADMIN", url));
        let output = program.run(&[&["gateway"], &nowhere[..]].concat()).await;
        assert_eq!(output.code, Some(1), "{output:?}");
        let told: Vec<_> = output.stderr.lines().filter(|line| line.contains("did you mean")).collect();
        assert_eq!(told.len(), usize::from(warned), "{told:?}");
        assert!(told.iter().all(|line| line.contains("`SOUL_ADMIN`") && line.contains("SOUL_ADMIN_URL")));
    }
}

#[tokio::test]
async fn mistakes_in_the_file_are_all_told_with_their_lines() {
    let (_folder, path) =
        file("# mine\nadmin-listn = \"127.0.0.1:0\"\n\nupstream-check-interval = -5\nadmin = []\n");
    let output = program().run(&["--config", text(&path)]).await;
    let at = |line: usize| format!("{}:{line}: ", path.display());
    assert_refused(
        &output,
        &[
            &format!("{}`admin-listn`: no such setting; did you mean `admin-listen`?", at(2)),
            &format!("{}`upstream-check-interval`: expected seconds from 0", at(4)),
            &format!("{}`admin`: expected at least one", at(5)),
        ],
    );
}

#[tokio::test]
async fn file_that_is_no_toml_or_not_there_is_named() {
    let (_folder, path) = file("admin-listen\n");
    assert_refused(&program().run(&["--config", text(&path)]).await, &[&format!("{}:1: ", path.display())]);
    let output = program().env("SOUL_CONFIG", "/nowhere/soul.toml").run(&[]).await;
    assert_refused(&output, &["/nowhere/soul.toml"]);
}

#[tokio::test]
async fn flags_of_a_part_that_does_not_run_are_refused() {
    for (args, said) in [
        (&["admin", "--status-listen", "127.0.0.1:0"][..], ["`--status-listen`", "`admin`"]),
        (&["--admin-listen", "127.0.0.1:0", "gateway"][..], ["`--admin-listen`", "`gateway`"]),
        (&["--admin", "http://127.0.0.1:1"][..], ["`--admin`", "`soul-gateway-mini gateway`"]),
    ] {
        assert_refused(&program().run(args).await, &said);
    }
}

#[tokio::test]
async fn settings_of_tls_that_do_not_go_together_are_named() {
    for (args, said) in [
        (&["--tls-certificate", "a.pem"][..], "`--tls-certificate` has 1 files and `--tls-key` 0"),
        (&["--tls-key", "a.key,b.key", "--tls-certificate", "a.pem"], "1 files and `--tls-key` 2"),
        (&["--tls-client-ca", "ca.pem"], "`--tls-client-ca` is given without `--tls-certificate`"),
        (&["--upstream-key", "a.key"], "`--upstream-certificate` and `--upstream-key` go together"),
    ] {
        assert_refused(&program().run(args).await, &[said]);
    }
}

#[tokio::test]
async fn a_value_that_cannot_work_is_named_as_it_was_written() {
    let flag = program().run(&["gateway", "--panic-threshold", "101"]).await;
    assert_refused(&flag, &["`--panic-threshold` is 101, the most is 100 percent"]);
    let variable = program().env("SOUL_VIA", "a b").run(&["--sync-backoff-max", "0.1"]).await;
    assert_refused(
        &variable,
        &["`SOUL_VIA` is `a b`, give a name", "`--sync-backoff-max` is below `--sync-backoff-min`"],
    );
    let (_folder, path) = file("upstream-key = \"a.key\"\napi-token = \"a\"\n");
    let both = program().run(&["--config", text(&path)]).await;
    let said = format!("`--upstream-certificate` and `upstream-key` in `{}` go together", path.display());
    assert_refused(&both, &[&said]);
    let twice = program().run(&["admin", "--config", text(&path), "--api-token-file", text(&path)]).await;
    let said = format!("`api-token` in `{}` and `--api-token-file` are both given", path.display());
    assert_refused(&twice, &[&said]);
}

#[tokio::test]
async fn the_token_of_the_api_comes_from_a_file_or_a_variable_and_is_never_told() {
    let (_folder, path) = file("s3cret-of-the-file\n");
    let admin = |program: Program| async move {
        program
            .start(&[
                "admin",
                "--data-dir",
                "memory",
                "--admin-listen",
                "127.0.0.1:0",
                "--log-level",
                "trace",
            ])
            .await
    };
    for (variable, value, token) in [
        ("SOUL_API_TOKEN_FILE", text(&path), "s3cret-of-the-file"),
        ("SOUL_API_TOKEN", "s3cret-of-the-variable", "s3cret-of-the-variable"),
    ] {
        let mut admin = admin(program().env(variable, value)).await;
        let url = format!("{}/api/v1", admin.address("admin"));
        let http = client();
        assert_eq!(http.get(&url).send().await.unwrap().status(), 401, "{variable}");
        let with_token =
            http.get(&url).header("authorization", format!("Bearer {token}")).send().await.unwrap();
        assert_eq!(with_token.status(), 200, "{variable}");
        admin.signal("TERM").await;
        let (_, log) = admin.ended_within(DEADLINE).await;
        assert!(!log.contains("s3cret"), "{log}");
    }

    let both = program().env("SOUL_API_TOKEN", "a").run(&["admin", "--api-token-file", text(&path)]).await;
    assert_refused(&both, &["--api-token-file", "--api-token"]);
    let blank = program().run(&["admin", "--api-token", " "]).await;
    assert_refused(&blank, &["--api-token", "not blank"]);
    let nowhere = program().run(&["admin", "--api-token-file", "/nowhere/token"]).await;
    assert_refused(&nowhere, &["`/nowhere/token` (`--api-token-file`)"]);
}

#[tokio::test]
async fn the_password_of_shenyus_clients_comes_from_a_file_or_a_variable_and_is_never_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "s3cret of the file \n").unwrap();
    for (variable, value, password) in [
        ("SOUL_SHENYU_PASSWORD_FILE", text(&path), "s3cret of the file "),
        ("SOUL_SHENYU_PASSWORD", "s3cret-of-the-variable", "s3cret-of-the-variable"),
    ] {
        let args = ["admin", "--data-dir", "memory", "--admin-listen", "127.0.0.1:0", "--log-level", "trace"];
        let user = ["--shenyu-user", "rust", "--shenyu-token-life", "60"];
        let mut admin = program().env(variable, value).start(&[&args[..], &user].concat()).await;
        let http = client();
        let login = format!("{}/platform/login", admin.address("admin"));
        let ask = async |user: &str, password: &str| {
            let query = format!("userName={user}&password={}", password.replace(' ', "%20"));
            let answer = http.get(format!("{login}?{query}")).send().await.unwrap();
            let answer: serde_json::Value = answer.json().await.unwrap();
            answer
        };
        assert_eq!(ask("rust", password).await["data"]["expiredTime"], 60_000, "{variable}");
        assert_eq!(ask("admin", password).await["code"], 500, "{variable}");
        assert_eq!(ask("rust", "s3cret").await["code"], 500, "{variable}");
        let register = format!("{}/shenyu-client/register-uri", admin.address("admin"));
        assert_eq!(http.post(register).body("{}").send().await.unwrap().status(), 401, "{variable}");
        admin.signal("TERM").await;
        let (_, log) = admin.ended_within(DEADLINE).await;
        assert!(!log.contains("s3cret"), "{log}");
    }

    let both = program().env("SOUL_SHENYU_PASSWORD", "a");
    let both = both.run(&["admin", "--shenyu-password-file", text(&path)]).await;
    assert_refused(&both, &["--shenyu-password-file", "--shenyu-password"]);
    let nowhere = program().run(&["admin", "--shenyu-password-file", "/nowhere/password"]).await;
    assert_refused(&nowhere, &["`/nowhere/password` (`--shenyu-password-file`)"]);
    for empty in ["", "\n"] {
        std::fs::write(&path, empty).unwrap();
        let empty = program().run(&["admin", "--shenyu-password-file", text(&path)]).await;
        assert_refused(&empty, &["--shenyu-password-file", "not empty"]);
    }
    let blank = program().run(&["admin", "--shenyu-namespace", " "]).await;
    assert_refused(&blank, &["--shenyu-namespace", "not blank"]);
}

/// The table of settings in the README, which nobody has to keep by hand: what `--help` says.
#[tokio::test]
async fn the_readme_lists_every_setting_as_the_help_does() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../soul-gateway-mini/README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let output = program().run(&["--help"]).await;
    let settings = output.stdout.split("\n      --").skip(1).filter(|s| s.contains("[env: SOUL_"));
    let missing: Vec<_> = settings
        .filter_map(|setting| {
            let flag = setting.lines().next().unwrap();
            let mut help = setting.lines().skip(1).map(str::trim).take_while(|line| !line.is_empty());
            let help = help.by_ref().collect::<Vec<_>>().join(" ");
            let (meaning, default) = help.strip_suffix(']').and_then(|h| h.split_once(" [default: "))?;
            let row = format!("| `--{}` | {default} | {meaning} |", flag.replace('|', "\\|"));
            (!readme.contains(&row)).then_some(row)
        })
        .collect();
    assert!(missing.is_empty(), "put these rows into soul-gateway-mini/README.md:\n{}", missing.join("\n"));
}

/// Those that scripts rely on.
#[tokio::test]
async fn defaults_are_the_promised_ones() {
    let output = program().run(&["--help"]).await;
    for (flag, default) in [
        ("admin-listen <IP:PORT>", "127.0.0.1:9095"),
        ("gateway-listen <IP:PORT>", "127.0.0.1:9195"),
        ("status-listen <IP:PORT>", "127.0.0.1:9196"),
        ("admin <URL>", "http://127.0.0.1:9095"),
        ("data-dir <PATH|memory>", "soul-data"),
        ("upstream-check-interval <SECONDS>", "10"),
        ("gateway-check-interval <SECONDS>", "0"),
        ("poll-hold <SECONDS>", "60"),
        ("error-status <http|soul>", "http"),
    ] {
        let setting =
            output.stdout.split("\n      --").find(|setting| setting.starts_with(&format!("{flag}\n")));
        let setting = setting.unwrap_or_else(|| panic!("no `--{flag}` in {}", output.stdout));
        let words = setting.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&format!("[default: {default}]")), "--{setting}");
    }
}

#[tokio::test]
async fn the_folder_of_the_data_is_named_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["admin", "--admin-listen", "127.0.0.1:0", "--data-dir", text(folder.path())];
    program().start(&args).await.logged(text(folder.path())).await;
}

/// An address of documentation, which no machine has: listening fails, and the message tells which one was tried.
#[tokio::test]
async fn flag_beats_variable_beats_file_beats_default() {
    let (_folder, path) = file("admin-listen = \"203.0.113.3:9\"\ndata-dir = \"memory\"\n");
    let flag = ["--admin-listen", "203.0.113.1:9"];
    let variable = ("SOUL_ADMIN_LISTEN", "203.0.113.2:9");
    let config = ["--config", text(&path)];

    let of_file = program().run(&["admin", config[0], config[1]]).await;
    let of_variable = program().env(variable.0, variable.1).run(&[config[0], config[1], "admin"]).await;
    let of_flag =
        program().env(variable.0, variable.1).run(&[flag[0], flag[1], "admin", config[0], config[1]]).await;
    for (output, address) in
        [(of_file, "203.0.113.3"), (of_variable, "203.0.113.2"), (of_flag, "203.0.113.1")]
    {
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(&format!("`{address}:9` (`--admin-listen`)")), "{}", output.stderr);
    }
}
