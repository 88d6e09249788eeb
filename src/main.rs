//! The `toolgate` program. Everything is in the library.

use std::process::ExitCode;

/// Keeps less memory for runs in flight than the allocator of the system (decision 0062).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    toolgate::cli::main()
}
