//! `cargo run -p http-service`.

use std::process::ExitCode;

fn main() -> ExitCode {
    http_service::main(std::env::args_os())
}
