//! What the documentation says is pinned by a test is pinned by a test that exists.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names of all functions below a folder that are tests.
fn tests_below(path: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.extend(tests_in(&fs::read_to_string(&path).unwrap()));
        }
    }
}

fn tests_in(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_marked = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_marked) {
            found.push(rest.split(['(', '<']).next().unwrap().to_owned());
            is_marked = false;
        }
    }
    found
}

/// Words in backticks that have the form of a test's name.
fn named_in(text: &str) -> Vec<&str> {
    let words = text.split('`').skip(1).step_by(2);
    let is_name = |word: &&str| {
        word.matches('_').count() >= 2
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    words.filter(is_name).collect()
}

/// Every name of a test that a page has is one, and every row of its tables names one in its last column, or a decision.
/// Gives how many rows there are.
fn rows_pinned_in(page: &str) -> usize {
    let mut tests = HashSet::new();
    for folder in
        ["soul-client/src", "soul-client/tests", "soul-gateway-mini/src", "tests/e2e", "tests/golden"]
    {
        tests_below(&root().join(folder), &mut tests);
    }
    assert!(tests.len() > 500, "{} tests", tests.len());

    let text = fs::read_to_string(root().join(page)).unwrap();
    let missing: Vec<_> = named_in(&text).into_iter().filter(|name| !tests.contains(*name)).collect();
    assert_eq!(missing, [""; 0], "named in {page}, and no test");

    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.contains("pinned by"));
    let mut count = 0;
    for row in rows {
        count += 1;
        let pinned = row.trim_end_matches('|').rsplit('|').next().unwrap();
        assert!(!named_in(pinned).is_empty() || pinned.contains("decision:"), "{row}");
    }
    count
}

#[test]
fn every_row_on_load_balancing_names_tests_that_exist_or_a_decision() {
    assert_eq!(
        tests_in("#[test]\nfn a() {}\nfn b() {}\n#[tokio::test(x)]\n#[cfg(y)]\nasync fn c() {}"),
        ["a", "c"]
    );
    let count = rows_pinned_in("soul-client/docs/load-balancing.md");
    // The checklist's rows, and two more; the complaints'.
    assert!(count >= 20 + 35, "{count} rows");
}

#[test]
fn every_row_on_http_names_tests_that_exist() {
    let count = rows_pinned_in("soul-gateway-mini/docs/http.md");
    assert!(count >= 50, "{count} rows");
}
