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

/// What every message of the attribute has in common with no other one: a new message needs a line here and a file.
const MESSAGES: &[&str] = &[
    // Arguments.
    "missing `path`: write `#[soul_client(path",
    "missing `path`: write `class! {",
    "expected `,` before",
    "write a single `=`",
    "expected a value: `",
    "expected a key before `=`",
    "`, perhaps `rule_name`; expected one of",
    "unknown key `timeout`; expected one of",
    "`desc` is given twice",
    "`get` is given twice",
    "a value needs its key",
    "expected `key = value`",
    "expected `key = value` such as `path",
    "needs `=` and a value: `enabled = true`",
    "needs `=` and a value: `path = \"/order/find\"`",
    "needs `=` and a value: `path = \"/order/purge\"`",
    "`state` is for a handler that is mounted",
    "`handler` is for a handler that is mounted",
    // Values.
    "expected a string in quotes, found a character",
    "expected a string in quotes, found a number",
    "expected a string in quotes, found a byte string",
    "expected a string in quotes, found a C string",
    "expected a string in quotes, found a byte:",
    "expected a string in quotes, found a truth value",
    "expected `true` or `false`, found a string",
    "expected `true` or `false`, found `yes`",
    "expected `true` or `false` without quotes",
    "expected a string in quotes written here",
    "`path` is empty",
    "`path` must not contain white space",
    "`path` must not contain `?`",
    "`path` must not contain `#`",
    "`path` must start with `/`, below the context path\n",
    "`path` must start with `/`, below the context path: write",
    "unknown `rpc_type` `springcloud`, perhaps",
    "unknown `rpc_type` `dubbo`; expected one of",
    "expected a type, as in",
    "expected the path of a function",
    "`Self` is unknown where the router is made",
    "expected a path to the crate",
    // Items.
    "`save` has no body",
    "the module must be inline",
    "this `struct` cannot be annotated",
    "this cannot be annotated",
    "a module is not mounted",
    "an impl block is not mounted",
    "the implementation of a trait cannot be annotated",
    "expected a type that has a name",
    "an impl block that is generic cannot be annotated",
    // Functions to be mounted.
    "a router has no `self`",
    "the type of an `impl` argument cannot be said",
    "is generic: say which instance is mounted",
    "stands in an impl block: annotate that",
    "turn on the feature `axum`",
    // Names that the compiler prints.
    "_SOUL_CLIENT_CANNOT_STAND_IN_A_TRAIT",
    "_SOUL_CLIENT_NEEDS_ITS_IMPL_BLOCK_ANNOTATED_TOO",
    "_SOUL_CLIENT_ONLY_ONE_IMPL_BLOCK_OF_ORDERS_CAN_HAVE_A_PATH",
];

#[test]
fn every_message_is_recorded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let files = std::fs::read_dir(folder).expect("the folder of this package");
    let recorded: String = files
        .map(|file| file.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "stderr"))
        .map(|path| std::fs::read_to_string(path).expect("a recorded output"))
        .collect();
    let missing: Vec<_> = MESSAGES.iter().filter(|message| !recorded.contains(**message)).collect();
    assert!(missing.is_empty(), "not recorded: {missing:#?}");
}
