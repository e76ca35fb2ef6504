//! Soul's example service in Rust: `OrderController` and `HttpTestController` behind a gateway.
//!
//! Shows annotated handlers (`src/controllers.rs`), and a service that registers once it listens (`src/service.rs`).
//! The quick start and the tests run it as a library, `cargo run -p http-service` as a program:
//!
//! ```text
//! $ cargo run -p soul-gateway-mini          # admin 127.0.0.1:9095, gateway 127.0.0.1:9195
//! $ cargo run -p http-service               # in another terminal
//! ready http=http://0.0.0.0:8188
//! $ curl -i '127.0.0.1:9195/http/order/findById?id=95'
//! x-served-by: …:8188
//! {"id":"95","name":"hello world findById"}
//! ```

mod controllers;
mod service;

use std::{
    ffi::OsString,
    io::{IsTerminal as _, Write as _},
    process::ExitCode,
};

use clap::Parser as _;

pub use controllers::{Order, User, router};
pub use service::{Options, SERVED_BY, Service};

/// The whole program: `args` begins with its name, as from [`std::env::args_os`].
///
/// Exit codes: 0 after SIGINT or SIGTERM, 1 when it cannot run, 2 for a bad flag.
#[must_use]
pub fn main<I>(args: I) -> ExitCode
where
    I: IntoIterator<Item = OsString>,
{
    let options = match Options::try_parse_from(args) {
        Ok(options) => options,
        Err(error) => {
            // OK to ignore: without a terminal there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(terminal).init();
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let service = Service::start(options.listen, options.client_config()?).await?;
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "ready http=http://{}", service.local_addr())?;
    stdout.flush()?;
    drop(stdout);
    soul_client::stop_signal().await?;
    service.shutdown().await;
    Ok(())
}

/// The example in the project's README, so that it is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
