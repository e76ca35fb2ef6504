//! How long it takes to collect 10,000 annotated handlers at start.
//!
//! `cargo bench -p soul-client --bench collect` prints the time of the first collection in a process, which is what a
//! service pays, and fails above 5 ms. The ratio is to sorting as many routes that are in memory already: the
//! part of it that no way of collecting can do without.

use std::{
    error::Error,
    process::Command,
    time::{Duration, Instant},
};

use soul_client::route::{Annotation, Collected, Route, collected};

/// Handlers below.
const HANDLERS: usize = 10_000;
/// Longest time.
const TARGET: Duration = Duration::from_millis(5);
/// Processes, of which the best counts: another program may be on the core.
const RUNS: usize = 9;
/// Tells this program to collect once.
const ONCE: &str = "SOUL_BENCH_COLLECT";

/// Ten times what stands in it, in modules of their own.
// Only where something is measured: 10,000 attributes would cost every check of the workspace some seconds.
#[cfg(not(debug_assertions))]
macro_rules! ten {
    (@ $a:ident $b:ident $c:ident $d:ident $e:ident $f:ident $g:ident $h:ident $i:ident $j:ident, $($inner:tt)*) => {
        mod $a { $($inner)* }
        mod $b { $($inner)* }
        mod $c { $($inner)* }
        mod $d { $($inner)* }
        mod $e { $($inner)* }
        mod $f { $($inner)* }
        mod $g { $($inner)* }
        mod $h { $($inner)* }
        mod $i { $($inner)* }
        mod $j { $($inner)* }
    };
    ($($inner:tt)*) => {
        ten!(@ m0 m1 m2 m3 m4 m5 m6 m7 m8 m9, $($inner)*);
    };
}

#[cfg(not(debug_assertions))]
#[allow(dead_code, reason = "a router would name them")]
mod handlers {
    ten! { ten! { ten! {
        #[soul_client::soul_client(path = "/order/zero")]
        pub(crate) fn zero() {}
        #[soul_client::soul_client(path = "/order/one")]
        pub(crate) fn one() {}
        #[soul_client::soul_client(path = "/order/two")]
        pub(crate) fn two() {}
        #[soul_client::soul_client(path = "/order/three")]
        pub(crate) fn three() {}
        #[soul_client::soul_client(path = "/order/four", desc = "the fourth")]
        pub(crate) fn four() {}
        #[soul_client::soul_client(path = "/order/five")]
        pub(crate) fn five() {}
        #[soul_client::soul_client(path = "/order/six")]
        pub(crate) fn six() {}
        #[soul_client::soul_client(path = "/order/seven")]
        pub(crate) fn seven() {}
        #[soul_client::soul_client(path = "/order/eight/**")]
        pub(crate) fn eight() {}
        #[soul_client::soul_client(path = "/order/nine")]
        pub(crate) fn nine() {}
    } } }
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os(ONCE).is_some() {
        let begin = Instant::now();
        let found = collected();
        let took = begin.elapsed();
        println!("{} {}", found.routes.len(), took.as_nanos());
        return Ok(());
    }
    // `cargo test --benches` runs this too, without the flag.
    if cfg!(debug_assertions) || !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        best = best.min(once()?);
    }
    let sorted = sorting();
    println!(
        "collecting {HANDLERS} handlers   {best:.2?}   target {TARGET:?}   ratio to sorting them {:.2}",
        best.as_secs_f64() / sorted.as_secs_f64()
    );
    if best >= TARGET {
        return Err(format!("collecting took {best:?}, more than {TARGET:?}").into());
    }
    Ok(())
}

/// In a process of its own, as at the start of a service: nothing was touched before.
fn once() -> Result<Duration, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).env(ONCE, "1").output()?;
    let text = String::from_utf8(output.stdout)?;
    let (found, nanos) = text.trim().split_once(' ').ok_or("no answer")?;
    if found.parse::<usize>()? != HANDLERS {
        return Err(format!("{found} of {HANDLERS} handlers were collected").into());
    }
    Ok(Duration::from_nanos(nanos.parse()?))
}

/// Grouping the same by hand, warm.
fn sorting() -> Duration {
    let routes: Vec<Route> = collected().routes;
    let shuffled: Vec<Route> = (0..routes.len()).map(|number| routes[number * 7 % routes.len()]).collect();
    let mut best = Duration::MAX;
    for _ in 0..RUNS {
        let shuffled = shuffled.clone();
        let begin = Instant::now();
        let grouped = Collected::group([], shuffled);
        best = best.min(begin.elapsed());
        assert_eq!(grouped.routes.len(), HANDLERS);
    }
    // Something of it has to be used.
    assert_ne!(routes[0].annotation, Annotation::new(""));
    best
}
