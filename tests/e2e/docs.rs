//! Pages that are read outside of rustdoc: their links lead somewhere.

use std::{collections::BTreeMap, fs, path::Path};

const PAGES: &[&str] = &[
    "README.md",
    "soul-client/README.md",
    "soul-client/docs/from-java.md",
    "soul-client/docs/from-shenyu-client-rust.md",
    "soul-gateway-mini/API.md",
];

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

#[test]
fn links_of_every_page_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut dead = Vec::new();
    for page in PAGES {
        let path = root.join(page);
        let text = without_code(&fs::read_to_string(&path).unwrap());
        let defined = defined(&text);
        let undefined = referred(&text).into_iter().filter(|name| !defined.contains_key(name));
        dead.extend(undefined.map(|name| format!("{page}: [{name}] has no target")));
        for target in inline(&text).iter().chain(defined.values()) {
            let file = target.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://");
            if !elsewhere && !path.with_file_name(file).exists() {
                dead.push(format!("{page}: `{target}` is no file"));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}
