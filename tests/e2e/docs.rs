//! Pages that are read outside of rustdoc: their links and commands lead somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const PAGES: &[&str] = &[
    "README.md",
    "soul-client/README.md",
    "soul-client/docs/choices.md",
    "soul-client/docs/from-java.md",
    "soul-client/docs/from-shenyu-client-rust.md",
    "soul-client/docs/load-balancing.md",
    "soul-gateway-mini/API.md",
    "soul-gateway-mini/README.md",
    "soul-gateway-mini/docs/performance.md",
    "tests/bench/README.md",
    "tests/vectors/README.md",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Text without what stands between fences, where brackets mean something else.
fn without_code(page: &str) -> String {
    let mut inside = false;
    let outside = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    };
    page.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

/// Every `](target)`.
fn inline(text: &str) -> Vec<String> {
    text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// Every `[name]: target`.
fn defined(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: "));
    lines.map(|(name, target)| (name.to_owned(), target.to_owned())).collect()
}

/// Every `` [`name`] `` that is followed by no target of its own.
fn referred(text: &str) -> Vec<String> {
    let names = text.split("[`").skip(1).filter_map(|rest| rest.split_once("`]"));
    names.filter(|(_, behind)| !behind.starts_with(['(', ':'])).map(|(name, _)| format!("`{name}`")).collect()
}

/// What a heading is called in an address.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(page: &str) -> BTreeSet<String> {
    let headings = without_code(page);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// What follows a flag of cargo, such as `-p`, wherever a command is shown.
fn named_after<'a>(text: &'a str, flag: &str) -> Vec<&'a str> {
    let words: Vec<_> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == flag);
    pairs.map(|pair| pair[1].trim_end_matches(['`', ',', '.', ':', ';', '\'', ')'])).collect()
}

/// Every package of the workspace, and every program that has a file of its own.
fn packages_and_programs() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = [")).unwrap();
    for member in members.trim_end_matches(']').split(", ").map(|member| member.trim_matches('"')) {
        let manifest = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap();
        found.insert(name.trim_matches('"').to_owned());
        let Ok(programs) = fs::read_dir(root().join(member).join("src/bin")) else { continue };
        found.extend(
            programs.map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()),
        );
    }
    found
}

#[test]
fn commands_of_every_page_name_what_is_there() {
    let there = packages_and_programs();
    let mut unknown = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let named = ["-p", "--bin"].into_iter().flat_map(|flag| named_after(&text, flag));
        unknown.extend(
            named.filter(|name| *name != "NAME" && !there.contains(*name)).map(|n| format!("{page}: {n}")),
        );
    }
    assert_eq!(unknown, [""; 0], "neither packages nor programs of this workspace");
}

/// A clone is all that a reader has.
#[test]
fn no_page_names_a_place_outside_of_a_clone() {
    // Where the clone is, and whose it is.
    let clone = root().canonicalize().unwrap().display().to_string();
    let private: Vec<_> =
        [clone].into_iter().chain(std::env::var("HOME").ok().filter(|h| h.len() > 1)).collect();
    let mut found = Vec::new();
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).unwrap();
        found.extend(
            private.iter().filter(|place| text.contains(place.as_str())).map(|p| format!("{page}: {p}")),
        );
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn links_of_every_page_lead_somewhere() {
    let root = root();
    let mut dead = Vec::new();
    for page in PAGES {
        let path = root.join(page);
        let text = without_code(&fs::read_to_string(&path).unwrap());
        let defined = defined(&text);
        let undefined = referred(&text).into_iter().filter(|name| !defined.contains_key(name));
        dead.extend(undefined.map(|name| format!("{page}: [{name}] has no target")));
        for target in inline(&text).iter().chain(defined.values()) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") {
                continue;
            }
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            if !file.exists() {
                dead.push(format!("{page}: `{target}` is no file"));
            } else if !heading.is_empty() && !anchors(&fs::read_to_string(&file).unwrap()).contains(heading) {
                dead.push(format!("{page}: `{target}` is no heading"));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}
