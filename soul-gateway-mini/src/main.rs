//! The binary; its story is [`soul_gateway_mini::app::main`], which the quick start and the tests run too.

use std::process::ExitCode;

fn main() -> ExitCode {
    soul_gateway_mini::app::main(std::env::args_os())
}
