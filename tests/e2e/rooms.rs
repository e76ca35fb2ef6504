//! Who may know whom, read from the sources: what is not used from outside cannot be told by a compiler.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Rooms of the gateway crate, and those that each must not know.
const APART: [(&str, &[&str]); 4] = [
    ("model", &["admin", "sync", "gateway", "config", "app"]),
    ("admin", &["sync", "gateway", "config", "app"]),
    ("sync", &["admin", "gateway", "config", "app"]),
    ("gateway", &["admin", "config", "app"]),
];

/// Rooms without I/O and clock.
const PURE: [&str; 6] = [
    "soul-client/src/balance",
    "soul-client/src/plan",
    "soul-client/src/wire",
    "soul-gateway-mini/src/model",
    "soul-gateway-mini/src/admin/store",
    "soul-gateway-mini/src/admin/register/plan",
];

/// What only I/O, clocks and looks at the machine are made of.
const IMPURE: [&str; 11] = [
    "tokio::",
    "std::fs",
    "std::net::Tcp",
    "UdpSocket",
    "SystemTime::now",
    "Instant::now",
    "crate::clock",
    "std::thread",
    "thread::spawn",
    "available_parallelism",
    "env::var",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every source below a folder, or the one file, but for the tests that stand in files of their own.
fn sources(path: &Path) -> Vec<(PathBuf, String)> {
    if path.is_file() {
        return vec![(path.to_owned(), fs::read_to_string(path).unwrap())];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|e| panic!("`{}`: {e}", path.display()));
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name != "tests" && name != "tests.rs" && (path.is_dir() || name.ends_with(".rs")) {
            found.extend(sources(&path));
        }
    }
    found
}

/// The rooms that a source names behind `crate::`, alone or in a group.
fn rooms_named(source: &str) -> Vec<&str> {
    let first_word = |text: &str| {
        text.trim().find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.trim().len())
    };
    let mut named = Vec::new();
    for path in source.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            None => named.push(&path[..first_word(path)]),
            Some(group) => named.extend(members(group).map(|member| &member.trim()[..first_word(member)])),
        }
    }
    named
}

/// What stands between the commas of a group whose brace was opened, up to its end.
fn members(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let mut ended = false;
    group.split_inclusive([',', '{', '}']).filter(move |piece| {
        let begins_a_member = depth == 0 && !ended;
        match piece.chars().last() {
            Some('{') => depth += 1,
            Some('}') => depth -= 1,
            _ => {}
        }
        ended |= depth < 0;
        begins_a_member
    })
}

#[test]
fn rooms_know_only_those_below_them() {
    let named = rooms_named("use crate::{\n    admin::{a, b},\n    model::C,\n};\nuse sync::D;");
    assert!(
        named.starts_with(&["admin"]) && named.contains(&"model") && !named.contains(&"sync"),
        "{named:?}"
    );
    assert_eq!(rooms_named("x(crate::sync::chain(e))"), ["sync"]);
    for (room, strangers) in APART {
        let files = sources(&root().join("soul-gateway-mini/src").join(room));
        assert!(files.len() > 3, "`{room}` has {} files", files.len());
        for (path, source) in files {
            let named = rooms_named(&source);
            let stranger = strangers.iter().find(|stranger| named.iter().any(|name| name == *stranger));
            assert_eq!(stranger, None, "`{}` names a room that `{room}` must not know", path.display());
        }
    }
}

#[test]
fn arithmetic_and_state_read_no_clock_and_do_no_io() {
    for room in PURE {
        for (path, source) in sources(&root().join(room)) {
            let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
            for line in code {
                let impure = IMPURE.iter().find(|word| line.contains(*word));
                assert_eq!(impure, None, "`{}`: {line}", path.display());
            }
        }
    }
}

/// Where upstreams are chosen and judged; nowhere else.
const CORE: &str = "soul-client/src/balance";

/// What a second hash, weighted pick or breaker is made of, and who needs it for something else.
const SECOND: [(&str, &[&str]); 9] = [
    // The checksums of a configuration, on the wire and on disk, are MD5 too.
    (
        "use md5::{",
        &[
            "soul-client/src/wire/soul/md5.rs",
            "soul-gateway-mini/src/admin/persist/digest.rs",
            "soul-gateway-mini/src/sync/kept.rs",
        ],
    ),
    // Rules are found by an index of hashes; that chooses no upstream.
    ("xxh3", &["soul-gateway-mini/src/model/matching/index/key.rs"]),
    ("crc32", &[]),
    ("DefaultHasher", &[]),
    // Turns.
    ("fetch_add(1, Relaxed) %", &[]),
    // Weights are read, shown and passed on; whoever adds them up would choose by them.
    ("weight_at(", &[]),
    ("weight).sum", &[]),
    // Memory of failures.
    ("suspect_until", &[]),
    ("ejected_until_ms:", &[]),
];

#[test]
fn there_is_no_second_hash_weighted_pick_or_breaker() {
    let mut core = 0;
    for room in ["soul-client/src", "soul-gateway-mini/src"] {
        for (path, source) in sources(&root().join(room)) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            if name.starts_with(CORE) {
                core += SECOND.iter().filter(|(word, _)| source.contains(word)).count();
                continue;
            }
            for (word, exempt) in SECOND {
                let used = source.lines().filter(|line| !line.trim_start().starts_with("//"));
                let used: Vec<_> = used.filter(|line| line.contains(word)).collect();
                assert!(
                    used.is_empty() || exempt.contains(&name.as_str()),
                    "`{name}` has `{word}`, which belongs into `{CORE}`: {used:?}"
                );
            }
        }
    }
    // The words are those that the core itself is made of.
    assert!(core > 8, "{core}");
}
