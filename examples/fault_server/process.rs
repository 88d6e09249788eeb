//! What the process does as a process: dying, refusing to die, and leaving others behind.

use std::process::{Command, Stdio};
use std::time::Duration;

/// However stubborn, nothing of this is left after that time.
const LIFETIME: Duration = Duration::from_secs(600);

/// Ends it, whatever is still under way.
pub(crate) fn end(code: i32) -> ! {
    std::process::exit(code)
}

/// Writes the environment to stderr, as a server does that logs its configuration.
pub(crate) fn betray() {
    for (name, value) in std::env::vars_os() {
        eprintln!("{}={}", name.to_string_lossy(), value.to_string_lossy());
    }
}

/// Lives on when everything tells it to go.
pub(crate) async fn linger() {
    tokio::time::sleep(LIFETIME).await;
}

/// Does nothing about SIGTERM from now on.
#[cfg(unix)]
pub(crate) fn ignore_sigterm() -> std::io::Result<()> {
    // The default is replaced for the rest of the process; nobody needs to listen.
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).map(drop)
}

/// There is no SIGTERM here.
#[cfg(not(unix))]
pub(crate) fn ignore_sigterm() -> std::io::Result<()> {
    Ok(())
}

/// Starts a stubborn copy that keeps this one's stderr open, and says its process id there.
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

/// Closes stdout and lives on: the process becomes one that has another stdout, answers nothing and does not go.
#[cfg(unix)]
pub(crate) fn close_stdout() {
    use std::os::unix::process::CommandExt as _;

    if let Ok(program) = std::env::current_exe() {
        let arguments = ["--fault", "hang-at-start", "--fault", "ignores-stdin"];
        let error = Command::new(program).args(arguments).stdout(Stdio::null()).exec();
        eprintln!("stdout stays open: {error}");
    }
}

/// Where a process cannot become another one it ends.
#[cfg(not(unix))]
pub(crate) fn close_stdout() {
    end(0)
}
