//! The program under test: the same `main` as `soul-gateway-mini`, built with the tests so that they always
//! find one that is as new as they are.

use std::process::ExitCode;

fn main() -> ExitCode {
    soul_gateway_mini::app::main(std::env::args_os())
}
