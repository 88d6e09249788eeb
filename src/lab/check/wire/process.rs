//! Process of a stdio server: start, lines in both directions, stderr, and how it ends.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use secrecy::ExposeSecret;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use toolgate_settings::mcp::{StdioSettings, is_harmless};

use super::inbox::Inbox;
use super::lines::Lines;
use super::log::{Direction, WireLog};
use crate::check::rules::wire;

/// The number of stderr lines that are kept, counted from the end.
const KEPT_STDERR: usize = 30;
/// The longest line of stdout, in bytes. The rest of a longer line is dropped.
const MAX_LINE: u64 = 64 << 20;
/// The same for stderr. A longer line is read as several ones.
const MAX_STDERR_LINE: u64 = 64 << 10;

/// Lines that wait to be written to stdin.
type Outgoing = mpsc::UnboundedSender<Vec<u8>>;

/// A running server. Dropping it kills its process group.
pub(in crate::check) struct Process {
    pid: u32,
    outgoing: Mutex<Option<Outgoing>>,
    exit: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<Vec<String>>>,
    first_byte: Arc<Mutex<Option<Duration>>>,
    label: Arc<str>,
    log: WireLog,
    _tasks: JoinSet<()>,
}

impl Process {
    /// Starts the command in a process group of its own.
    pub(in crate::check) fn start(
        settings: &StdioSettings,
        label: &str,
        inbox: &Arc<Inbox>,
        log: &WireLog,
    ) -> io::Result<Arc<Self>> {
        let began = Instant::now();
        let mut child = command(settings).spawn()?;
        log.record(label, Direction::Event, b"started", None);
        let pid = child.id().unwrap_or_default();
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let label: Arc<str> = label.into();
        let (exited, exit) = watch::channel(None);
        let (outgoing, waiting) = mpsc::unbounded_channel();
        let (kept, first_byte) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Option<Duration>>>::default());
        let mut tasks = JoinSet::new();
        let reading_stderr = read_stderr(stderr, kept.clone(), log.clone(), label.clone());
        let reading = read_stdout(
            stdout,
            Reader {
                inbox: inbox.clone(),
                log: log.clone(),
                label: label.clone(),
                replies: outgoing.downgrade(),
                first_byte: first_byte.clone(),
                began,
            },
        );
        tasks.spawn(write_stdin(stdin, waiting, inbox.clone(), log.clone(), label.clone()));
        let (inbox, logged, name) = (inbox.clone(), log.clone(), label.clone());
        tasks.spawn(async move {
            let stderr_done = tokio::spawn(reading_stderr);
            let stdout_done = tokio::spawn(reading);
            let status = child.wait().await;
            // What it wrote before it ended is still in the pipes; a descendant may keep them open.
            let _ = tokio::time::timeout(Duration::from_millis(300), async {
                let _ = stdout_done.await;
                let _ = stderr_done.await;
            })
            .await;
            let text = status.as_ref().map_or_else(|_| "ended".to_owned(), |status| format!("exited: {status}"));
            logged.record(&name, Direction::Event, text.as_bytes(), None);
            exited.send_replace(status.ok());
            inbox.close(&format!("the process {text}"));
        });
        let outgoing = Mutex::new(Some(outgoing));
        Ok(Arc::new(Self { pid, outgoing, exit, stderr: kept, first_byte, label, log: log.clone(), _tasks: tasks }))
    }

    /// Queues a line for its stdin. A server that does not read holds no sender up.
    pub(in crate::check) fn send(&self, line: Vec<u8>) {
        if let Some(outgoing) = &*self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = outgoing.send(line);
        }
    }

    /// Closes its stdin after the queued lines.
    pub(in crate::check) fn close_stdin(&self) {
        self.log.record(&self.label, Direction::Event, b"stdin closed", None);
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Its exit status, if it exits within the time.
    pub(in crate::check) async fn exit_within(&self, limit: Duration) -> Option<ExitStatus> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(limit, exit.wait_for(Option::is_some)).await;
        ended.ok()?.ok().and_then(|status| *status)
    }

    /// Sends SIGTERM to its process group: commands like `npx` start the server as a child.
    pub(in crate::check) fn terminate(&self) {
        self.log.record(&self.label, Direction::Event, b"SIGTERM", None);
        signal::terminate(self.pid);
    }

    /// Kills its process group.
    pub(in crate::check) fn kill(&self) {
        signal::kill_group(self.pid);
    }

    /// The last lines of its stderr.
    pub(in crate::check) fn stderr(&self) -> Vec<String> {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time until its first byte on stdout.
    pub(in crate::check) fn first_byte(&self) -> Option<Duration> {
        *self.first_byte.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resident memory of the process and its descendants, in bytes, where it is known.
    pub(in crate::check) fn memory(&self) -> Option<u64> {
        super::memory::resident(self.pid)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn command(settings: &StdioSettings) -> Command {
    let mut command = Command::new(&settings.command);
    command.args(&settings.args).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !settings.inherit_env {
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_harmless)));
    }
    command.envs(settings.env.iter().map(|(name, value)| (name, value.expose_secret())));
    if let Some(cwd) = &settings.cwd {
        command.current_dir(cwd);
    }
    #[cfg(unix)]
    command.process_group(0);
    command
}

/// Writes the queued lines, until the queue or the pipe is closed.
async fn write_stdin(
    mut stdin: ChildStdin,
    mut waiting: mpsc::UnboundedReceiver<Vec<u8>>,
    inbox: Arc<Inbox>,
    log: WireLog,
    label: Arc<str>,
) {
    while let Some(mut line) = waiting.recv().await {
        log.record(&label, Direction::Sent, &line, None);
        line.push(b'\n');
        if stdin.write_all(&line).await.is_err() {
            // The reader of stdout learns the reason soon, if there is another one.
            tokio::time::sleep(Duration::from_secs(1)).await;
            return inbox.close("the server closed its stdin");
        }
    }
}

struct Reader {
    inbox: Arc<Inbox>,
    log: WireLog,
    label: Arc<str>,
    replies: mpsc::WeakUnboundedSender<Vec<u8>>,
    first_byte: Arc<Mutex<Option<Duration>>>,
    began: Instant,
}

async fn read_stdout(stdout: ChildStdout, reader: Reader) {
    let Reader { inbox, log, label, replies, first_byte, began } = reader;
    let mut lines = Lines::new(&inbox, &log, &label);
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    let (mut line, mut is_rest) = (Vec::new(), false);
    loop {
        line.clear();
        match (&mut stdout).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        first_byte.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| began.elapsed());
        let (is_complete, was_rest) = (line.ends_with(b"\n"), is_rest);
        is_rest = !is_complete && (was_rest || line.len() as u64 == MAX_LINE);
        if was_rest {
            continue;
        }
        if is_rest {
            lines.drop_beginning(&line, MAX_LINE >> 20);
            continue;
        }
        if !is_complete {
            inbox.report(&wire::JSON_MALFORMED, "the output ended in the middle of a line");
        }
        for reply in lines.take(&line) {
            let _ = replies.upgrade().map(|replies| replies.send(reply.to_string().into_bytes()));
        }
    }
    lines.release();
    inbox.close("the server closed its stdout");
}

async fn read_stderr(stderr: impl AsyncRead + Unpin, kept: Arc<Mutex<Vec<String>>>, log: WireLog, label: Arc<str>) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    while (&mut stderr).take(MAX_STDERR_LINE).read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        log.record(&label, Direction::Stderr, &line, None);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_STDERR {
            kept.remove(0);
        }
        kept.push(String::from_utf8_lossy(&line).trim_end().chars().take(400).collect());
        drop(kept);
        line.clear();
    }
}

#[cfg(unix)]
pub(crate) mod signal {
    use rustix::process::{Pid, Signal, kill_process_group};

    fn pid(number: u32) -> Option<Pid> {
        i32::try_from(number).ok().and_then(Pid::from_raw)
    }

    pub(crate) fn terminate(number: u32) {
        if let Some(pid) = pid(number) {
            let _ = kill_process_group(pid, Signal::TERM);
        }
    }

    /// A group that has already ended is the best case, so errors are ignored.
    pub(crate) fn kill_group(number: u32) {
        if let Some(pid) = pid(number) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
pub(crate) mod signal {
    pub(crate) fn terminate(_number: u32) {}
    pub(crate) fn kill_group(_number: u32) {}
}
