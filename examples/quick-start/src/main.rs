//! The quick start: the whole loop on real traffic, on this machine, in a few seconds.
//!
//! `cargo run --release` at the root starts an admin, a gateway and two instances of the example service, each a
//! process of its own; sends requests through the gateway; kills one instance and starts it again; and prints
//! what it sees. Every numbered line is checked: the exit code is 0 only if all of it was observed.
//!
//! ```text
//! cargo run --release                # watch and end
//! cargo run --release -- --serve     # watch, then leave everything running until Ctrl-C
//! ```

mod api;
mod http;
mod part;
mod story;
mod world;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use tokio::time::{Instant, timeout};

use world::{Failure, World};

/// Longest the whole story may take.
const WITHIN: Duration = Duration::from_secs(55);

/// Exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

/// Watches the whole loop work: register, sync, balance, probe, proxy.
#[derive(Parser, Debug)]
#[command(name = "quick-start", version)]
struct Options {
    /// Leaves everything running after the story, until Ctrl-C
    #[arg(long)]
    serve: bool,
}

fn main() -> ExitCode {
    if let Some(code) = part::run_as_part() {
        return code;
    }
    let options = Options::parse();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(run(options)),
        Err(error) => {
            eprintln!("error: start the runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The story, unless Ctrl-C ends it; whatever ends it, the parts end with it.
async fn run(options: Options) -> ExitCode {
    let world = tokio::select! {
        outcome = tell() => match outcome {
            Ok(world) => world,
            Err(code) => return code,
        },
        Ok(()) = tokio::signal::ctrl_c() => return ExitCode::from(INTERRUPTED),
    };
    if options.serve {
        serve(&world).await;
    }
    world.stop().await;
    ExitCode::SUCCESS
}

async fn tell() -> Result<World, ExitCode> {
    println!(
        "An admin, a gateway and two instances of a service, each a process of its own on this machine."
    );
    let begin = Instant::now();
    let mut world = World::start().await.map_err(|failure| not_observed(&failure))?;
    let outcome = timeout(WITHIN, story::observe_all(&mut world)).await;
    match outcome
        .unwrap_or_else(|_| Err(Failure::new(format!("the whole story took longer than {WITHIN:?}"))))
    {
        Ok(observed) => {
            println!("\nAll {observed} observed in {:.1} s.", begin.elapsed().as_secs_f64());
            Ok(world)
        }
        Err(failure) => {
            world.print_logs();
            Err(not_observed(&failure))
        }
    }
}

fn not_observed(failure: &Failure) -> ExitCode {
    println!("\nNOT OBSERVED: {failure}");
    ExitCode::FAILURE
}

/// Leaves everything running; Ctrl-C ends it.
async fn serve(world: &World) {
    println!("\nEverything keeps running until Ctrl-C. For example:");
    println!("  curl -i '{}/http/order/findById?id=95'", world.gateway_url());
    println!("  curl {}/api/v1/selectors", world.admin_url());
    println!("  curl {}/status", world.status_url());
    // OK to ignore: without the signal there is nothing to wait for.
    let _ = tokio::signal::ctrl_c().await;
}
