//! Links the program so that fewer of its pages are in memory.

use std::{env, process::Command};

/// `0` for what is to run on systems that are older than the one that builds it.
const WANTED: &str = "SOUL_PACK_RELOCATIONS";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={WANTED}");
    if env::var(WANTED).as_deref() != Ok("0") && loads_packed_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the loader of the system that this is built for reads the packed list of addresses that depend on where the program is
/// loaded: 20 KB instead of 700, all of which are read when it starts. GNU's does since 2.36. It is asked only where what is
/// built runs on the system that it is built on.
fn loads_packed_relocations() -> bool {
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|v| v == value);
    let has = |variable: &str, part: &str| env::var(variable).is_ok_and(|v| v.split(',').any(|p| p == part));
    let here = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    here && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && !has("CARGO_CFG_TARGET_FEATURE", "crt-static")
        && glibc().is_some_and(|version| version >= (2, 36))
}

/// The version of the system's own library, if it can be told.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
