//! The golden vectors: one JSON array a file, produced by the Java systems.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

/// Folder of the vectors: `SOUL_VECTORS` when set, else the copy in the project. A relative one is looked for from the
/// root of the project, where the command was given; tests themselves run in the folder of their package.
#[must_use]
pub fn folder() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    match env::var_os("SOUL_VECTORS") {
        Some(folder) => package.join("..").join(folder),
        None => package.join("vectors"),
    }
}

/// Every case of one file, for example `ant_path`.
///
/// # Panics
/// When the file is missing, is not a JSON array of `T`, or is empty: a test over nothing proves nothing.
#[must_use]
pub fn load<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path = folder().join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("read `{}`: {e}", path.display()));
    let cases: Vec<T> =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("parse `{}`: {e}", path.display()));
    assert!(!cases.is_empty(), "`{}` holds no case", path.display());
    cases
}

/// Panics with a summary unless nothing failed: how many, and the first few.
///
/// # Panics
/// When `failures` is not empty.
pub fn assert_none(name: &str, cases: usize, failures: &[String]) {
    let shown = failures.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{name}: {} of {cases} cases failed\n{shown}", failures.len());
}
