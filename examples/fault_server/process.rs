//! Process behavior: exiting, refusing to exit, and orphaned child processes.

use std::process::{Command, Stdio};
use std::time::Duration;

/// The maximum lifetime, even of the most stubborn process.
const LIFETIME: Duration = Duration::from_secs(600);

/// Exits at once, whatever is still running.
pub(crate) fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Writes the environment to stderr, like a server that logs its configuration.
pub(crate) fn betray() {
    for (name, value) in std::env::vars_os() {
        eprintln!("{}={}", name.to_string_lossy(), value.to_string_lossy());
    }
}

/// Stays alive although everything tells it to exit.
pub(crate) async fn linger() {
    tokio::time::sleep(LIFETIME).await;
}

/// Ignores SIGTERM from now on.
#[cfg(unix)]
pub(crate) fn ignore_sigterm() -> std::io::Result<()> {
    // This replaces the default action for the rest of the process, even without a listener.
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(drop)
}

/// Other platforms have no SIGTERM.
#[cfg(not(unix))]
pub(crate) fn ignore_sigterm() -> std::io::Result<()> {
    Ok(())
}

/// Starts a copy that serves on the same pipes. `false` in the copy.
pub(crate) fn fork() -> std::io::Result<bool> {
    const IS_COPY: &str = "FAULT_SERVER_IS_COPY";
    if std::env::var_os(IS_COPY).is_some() {
        return Ok(false);
    }
    let arguments = std::env::args_os().skip(1);
    Command::new(std::env::current_exe()?).args(arguments).env(IS_COPY, "1").spawn().map(|_| true)
}

/// Starts a stubborn copy that keeps stderr open, and prints its process id there.
pub(crate) fn spawn_grandchild() {
    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let arguments = ["--fault", "hang-at-start", "--fault", "ignores-sigterm"];
    let grandchild = Command::new(program).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    match grandchild {
        Ok(grandchild) => eprintln!("grandchild {}", grandchild.id()),
        Err(error) => eprintln!("there is no grandchild: {error}"),
    }
}

/// Closes stdout and stays alive: the process is replaced by one with another stdout that never answers and never
/// exits.
#[cfg(unix)]
pub(crate) fn close_stdout() {
    use std::os::unix::process::CommandExt as _;

    if let Ok(program) = std::env::current_exe() {
        let arguments = ["--fault", "hang-at-start", "--fault", "ignores-stdin"];
        let error = Command::new(program).args(arguments).stdout(Stdio::null()).exec();
        eprintln!("stdout stays open: {error}");
    }
}

/// Exits on platforms where a process cannot be replaced.
#[cfg(not(unix))]
pub(crate) fn close_stdout() {
    end(0)
}
