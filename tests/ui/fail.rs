//! One mistake a file in `fail/`; beside each stands what the user reads.
//!
//! After a change of a message: `TRYBUILD=overwrite cargo test -p soul-ui-fail`, then read the difference.

use std::process::Command;

/// The compiler that the recorded output belongs to; others word and draw things differently.
const RECORDED_WITH: &str = "rustc 1.95.";

#[test]
fn every_mistake_is_explained() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("the compiler tells its version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(RECORDED_WITH) {
        println!("skipped: the output was recorded with {RECORDED_WITH}x, this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("*.rs");
}
