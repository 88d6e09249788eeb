//! The `toolgate` program. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate::cli::main()
}
