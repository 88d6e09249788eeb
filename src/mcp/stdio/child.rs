//! Child process and its keeper task: reads its stderr, waits for its exit, and stops it on request or when its last
//! handle is dropped.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::environment;
use super::group::Group;
use super::output::Output;
use super::watchdog::Registration;
use crate::settings::StdioSettings;

/// How long a child may take to exit by itself after its stdin was closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// How long to wait for the rest of stderr; a descendant process may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A running child. Dropping it stops the process in the background.
#[derive(Debug)]
pub(crate) struct Child {
    pid: u32,
    output: Output,
    exit: watch::Receiver<Option<ExitStatus>>,
    wind_down: CancellationToken,
    _when_dropped: DropGuard,
}

/// Why the child could not be spawned.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error(
        "the command `{command}` was not found; install it, or give its full path in the server's `command` (PATH is \
         passed on)"
    )]
    NotFound { command: String },
    #[error("the working directory `{}` does not exist; create it or correct the server's `cwd`", cwd.display())]
    NoDirectory { cwd: PathBuf },
    #[error(
        "the command `{command}` could not be started: {source}; check that it is an executable file and that its interpreter exists"
    )]
    Failed { command: String, source: io::Error },
}

/// Spawns the process in its own process group and returns its stdout and its stdin. Its keeper runs on `tasks`: when
/// these are done, the whole group has ended.
pub(crate) fn spawn(
    settings: &StdioSettings,
    tasks: &TaskTracker,
) -> Result<(Child, ChildStdout, ChildStdin), SpawnError> {
    let mut command = Command::new(&settings.command);
    command.args(&settings.args).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    environment::apply(&mut command, settings);
    #[cfg(unix)]
    command.process_group(0);
    if let Some(cwd) = &settings.cwd {
        if !cwd.is_dir() {
            return Err(SpawnError::NoDirectory { cwd: cwd.clone() });
        }
        command.current_dir(cwd);
    }

    let name = || settings.command.clone();
    let mut watched = Registration::reserve();
    let mut process = command.spawn().map_err(|source| {
        // A script whose interpreter is missing is reported as "not found" as well.
        let not_found = source.kind() == io::ErrorKind::NotFound && !Path::new(&settings.command).exists();
        match not_found {
            true => SpawnError::NotFound { command: name() },
            false => SpawnError::Failed { command: name(), source },
        }
    })?;
    let pipes = (process.id(), process.stdin.take(), process.stdout.take(), process.stderr.take());
    let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(SpawnError::Failed { command: name(), source: io::Error::other("it has no pipes") });
    };

    watched.over(pid);

    let output = Output::new(settings);
    let (exited, exit) = watch::channel(None);
    let wind_down = CancellationToken::new();
    let keeper = Keeper { process, group: Group::led_by(pid), _watched: watched, output: output.clone(), exited };
    tasks.spawn(keeper.keep(stderr, wind_down.clone()));
    let child = Child { pid, output, exit, _when_dropped: wind_down.clone().drop_guard(), wind_down };
    Ok((child, stdout, stdin))
}

impl Child {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Its output besides the protocol.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    /// Whether the process has exited.
    pub(crate) fn has_exited(&self) -> bool {
        self.exit.borrow().is_some()
    }

    /// Waits until the process has exited with an error. Never ends after an exit without one.
    pub(crate) async fn failed(&self) {
        let exited = self.exit.clone().wait_for(Option::is_some).await.is_ok();
        if exited && self.exit.borrow().is_some_and(|status| status.success()) {
            std::future::pending::<()>().await;
        }
    }

    /// Its exit status, if it exits within the time; its stderr is then complete.
    pub(crate) async fn exit_within(&self, time: Duration) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(time, exit.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|status| *status)
    }

    /// Stops it and waits until the whole group has ended. Its stdin should already be closed.
    pub(crate) async fn shut_down(&self) {
        self.wind_down.cancel();
        let mut exit = self.exit.clone();
        while exit.changed().await.is_ok() {}
    }
}

/// Fields are dropped in this order: a group is under watch until it has ended.
struct Keeper {
    process: tokio::process::Child,
    group: Group,
    _watched: Registration,
    output: Output,
    exited: watch::Sender<Option<ExitStatus>>,
}

impl Keeper {
    async fn keep(mut self, stderr: ChildStderr, wind_down: CancellationToken) {
        let mut reading = JoinSet::new();
        reading.spawn(self.output.stderr().clone().fill_from(stderr));
        let status = tokio::select! {
            status = self.process.wait() => status.ok(),
            () = wind_down.cancelled() => self.wind_down().await,
        };
        // A launcher forks, exits without an error, and leaves the server behind. Any other process that it started is of
        // no use without it, and may keep its stderr open.
        let is_launcher = status.is_some_and(|status| status.success()) && !wind_down.is_cancelled();
        if !is_launcher {
            self.group.finish();
        }
        let _ = tokio::time::timeout(LAST_WORDS, reading.join_next()).await;
        self.exited.send_replace(status);
        if is_launcher {
            wind_down.cancelled().await;
            self.wind_down_group(&mut reading).await;
        }
    }

    /// Ends the processes that a launcher left behind. The end of stderr shows that they have exited.
    async fn wind_down_group(&mut self, stderr: &mut JoinSet<()>) {
        if tokio::time::timeout(GRACE, stderr.join_next()).await.is_err() {
            self.group.terminate();
            let _ = tokio::time::timeout(GRACE, stderr.join_next()).await;
        }
        self.group.finish();
    }

    async fn wind_down(&mut self) -> Option<ExitStatus> {
        if let Ok(status) = tokio::time::timeout(GRACE, self.process.wait()).await {
            return status.ok();
        }
        self.group.terminate();
        if let Ok(status) = tokio::time::timeout(GRACE, self.process.wait()).await {
            return status.ok();
        }
        self.group.kill();
        let _ = self.process.start_kill();
        self.process.wait().await.ok()
    }
}
