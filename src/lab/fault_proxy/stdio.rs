//! Stdio proxy: relays lines between the client and a server that it starts.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{Mutex as AsyncMutex, Notify, Semaphore};
use tokio::task::JoinSet;
use toolgate_settings::mcp::StdioSettings;

use super::faults::Fault;
use super::interceptor::{Delay, Interceptor, Outgoing};
use super::report::{Report, ServerFact};
use super::{MAX_MESSAGE, ProxyOptions, locked};
use crate::check::CheckTarget;
use crate::check::wire::log::{Direction, WireLog};
use crate::check::wire::process::{command, signal};

/// How long the server has to exit after its stdin ended, and again after SIGTERM. Clients kill the proxy after 2 s.
const EXIT: Duration = Duration::from_millis(800);
/// How long an answer waits for the next one.
const SWAP: Duration = Duration::from_secs(1);
/// The most bytes of answers that wait to be sent.
const MOST_DELAYED: usize = 4 * MAX_MESSAGE;
/// How long the rest of the output is read after the server ended.
const REST: Duration = Duration::from_millis(300);
/// The time between a request and the kill of its server.
const BEFORE_KILL: Duration = Duration::from_millis(100);

/// The writer to the client; `None` after the proxy closed it.
type Client = AsyncMutex<Option<Box<dyn AsyncWrite + Send + Unpin>>>;

struct Relay {
    settings: StdioSettings,
    interceptor: Mutex<Interceptor>,
    client: Client,
    server: AsyncMutex<ServerProcess>,
    /// The process id of the server, for a kill while another task writes to it.
    pid: AtomicU32,
    /// The readers of the server, and the answers that wait to be sent.
    tasks: Mutex<JoinSet<()>>,
    /// The bytes of answers that may still wait.
    delayed: Arc<Semaphore>,
    log: WireLog,
    ended: Notify,
}

/// The process of the server. Dropping it kills its process group.
struct ServerProcess {
    child: Child,
    pid: u32,
    stdin: Option<ChildStdin>,
    /// Distinguishes it from the processes before it.
    generation: u64,
}

/// Relays between the client's streams and the server until one of them ends, or `stop` is ready. The stderr of the server
/// is copied to that of this process.
///
/// # Errors
/// The server cannot be started.
pub async fn relay(
    settings: &StdioSettings,
    options: ProxyOptions,
    client: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stop: impl Future<Output = ()>,
) -> io::Result<Report> {
    relay_within(MOST_DELAYED, settings, options, client, stop).await
}

/// A relay in which at most this many bytes of answers wait to be sent.
pub(super) async fn relay_within(
    most_delayed: usize,
    settings: &StdioSettings,
    options: ProxyOptions,
    client: (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    stop: impl Future<Output = ()>,
) -> io::Result<Report> {
    let target = CheckTarget::Stdio(settings.clone());
    let secrets = target.secrets();
    let (server, stdout, stderr) = ServerProcess::start(settings, 0)?;
    let relay = Arc::new(Relay {
        settings: settings.clone(),
        interceptor: Mutex::new(Interceptor::new(options.plan, secrets.clone())),
        client: AsyncMutex::new(Some(Box::new(client.1))),
        pid: AtomicU32::new(server.pid),
        server: AsyncMutex::new(server),
        tasks: Mutex::default(),
        delayed: Arc::new(Semaphore::new(most_delayed)),
        log: WireLog::new(options.wire, secrets),
        ended: Notify::new(),
    });
    relay.read(stdout, stderr, 0);
    let reading = relay.read_client(client.0);
    let closed = tokio::select! {
        () = reading => true,
        () = relay.ended.notified() => false,
        () = stop => false,
    };
    relay.end().await;
    relay.log.flush();
    Ok(locked(&relay.interceptor).finish(&target.in_words(), closed))
}

impl Relay {
    /// Reads a process of the server in the background.
    fn read(self: &Arc<Self>, stdout: ChildStdout, stderr: ChildStderr, generation: u64) {
        let relay = self.clone();
        self.spawn(async move { relay.read_server(stdout, generation).await });
        let relay = self.clone();
        self.spawn(async move {
            let (mut reader, mut line) = (BufReader::new(stderr), Vec::new());
            while next_line(&mut reader, &mut line).await {
                relay.log.record("server", Direction::Stderr, &line, None);
                let _ = tokio::io::stderr().write_all(&line).await;
            }
        });
    }

    /// Runs a task until the proxy ends.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    async fn read_client(self: &Arc<Self>, client: impl AsyncRead + Unpin) {
        let (mut reader, mut line) = (BufReader::new(client), Vec::new());
        while next_line(&mut reader, &mut line).await {
            self.log.record("client", Direction::Received, &line, None);
            let message = serde_json::from_slice::<Value>(&line).unwrap_or_default();
            let passage = locked(&self.interceptor).client_message("", &message);
            if passage.fault == Some(Fault::RestartsInside) {
                self.restart(passage.injection).await;
            }
            self.send_to_server(&line).await;
            if passage.fault == Some(Fault::Die) {
                tokio::time::sleep(BEFORE_KILL).await;
                let killed = |after_ms| ServerFact::Killed { after_ms };
                locked(&self.interceptor).server_fact(passage.injection, killed);
                self.log.record("server", Direction::Event, b"killed by the proxy", None);
                self.hang_up().await;
            }
        }
    }

    async fn read_server(self: &Arc<Self>, stdout: ChildStdout, generation: u64) {
        let (mut reader, mut line) = (BufReader::with_capacity(1 << 16, stdout), Vec::new());
        while next_line(&mut reader, &mut line).await {
            let content = line.strip_suffix(b"\n").unwrap_or(&line);
            let message = serde_json::from_slice::<Value>(content).unwrap_or_default();
            let dropped = message.get("jsonrpc").is_none().then_some("not a message");
            self.log.record("server", Direction::Received, &line, dropped);
            let outgoing = {
                let mut interceptor = locked(&self.interceptor);
                let is_answer = message.get("method").is_none();
                let id = message.get("id").filter(|_| is_answer);
                let number = id.and_then(|id| interceptor.number_of(id));
                match number {
                    Some(number) => interceptor.answer(number, &message, content),
                    None => vec![Outgoing::now(content)],
                }
            };
            for outgoing in outgoing {
                self.send(outgoing).await;
            }
        }
        self.server_ended(generation).await;
    }

    async fn send(self: &Arc<Self>, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Send(bytes, Delay::Nothing) => self.send_to_client(&bytes, b"\n").await,
            Outgoing::Send(bytes, delay) => self.send_later(bytes, delay).await,
            Outgoing::Unterminated(bytes) => self.send_to_client(&bytes, b"").await,
            Outgoing::Cut(bytes) => {
                self.send_to_client(&bytes, b"").await;
                self.hang_up().await;
            }
            Outgoing::Break => self.hang_up().await,
            Outgoing::Hold => self.log.record("client", Direction::Event, b"the proxy sends nothing", None),
            Outgoing::Swap => {
                let relay = self.clone();
                self.spawn(async move {
                    tokio::time::sleep(SWAP).await;
                    let swapped = locked(&relay.interceptor).take_swapped();
                    if let Some(bytes) = swapped {
                        relay.send_to_client(&bytes, b"\n").await;
                    }
                });
            }
        }
    }

    /// Sends an answer after its delay, while other messages pass. If too many bytes wait already, the server is not read
    /// during the delay, and an answer that waits for a cancellation is dropped.
    async fn send_later(self: &Arc<Self>, bytes: Vec<u8>, delay: Delay) {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let room = self.delayed.clone().try_acquire_many_owned(size);
        match (room, delay) {
            (Ok(room), delay) => {
                let relay = self.clone();
                self.spawn(async move {
                    delay.wait().await;
                    relay.send_to_client(&bytes, b"\n").await;
                    drop(room);
                });
            }
            (Err(_), Delay::Cancellation(_)) => {
                let event = b"the proxy dropped a late answer: too many wait for a cancellation";
                self.log.record("client", Direction::Event, event, None);
            }
            (Err(_), delay @ (Delay::Nothing | Delay::Time(_))) => {
                delay.wait().await;
                self.send_to_client(&bytes, b"\n").await;
            }
        }
    }

    async fn send_to_client(&self, bytes: &[u8], line_feed: &[u8]) {
        let mut client = self.client.lock().await;
        let Some(writer) = client.as_mut() else { return };
        self.log.record("client", Direction::Sent, bytes, None);
        let written = async {
            writer.write_all(bytes).await?;
            writer.write_all(line_feed).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            client.take();
        }
    }

    async fn send_to_server(&self, line: &[u8]) {
        let mut server = self.server.lock().await;
        let Some(stdin) = server.stdin.as_mut() else { return };
        self.log.record("server", Direction::Sent, line, None);
        if stdin.write_all(line).await.is_err() || stdin.flush().await.is_err() {
            server.stdin.take();
        }
    }

    /// Closes the stream to the client, and kills the server.
    async fn hang_up(&self) {
        signal::kill_group(self.pid.load(Ordering::Relaxed));
        if let Some(mut writer) = self.client.lock().await.take() {
            let _ = writer.shutdown().await;
        }
        self.ended.notify_one();
    }

    /// Kills the server and starts another process, without a handshake.
    async fn restart(self: &Arc<Self>, injection: Option<u64>) {
        let mut server = self.server.lock().await;
        let generation = server.generation + 1;
        signal::kill_group(server.pid);
        let _ = server.child.wait().await;
        self.log.record("server", Direction::Event, b"restarted by the proxy", None);
        match ServerProcess::start(&self.settings, generation) {
            Ok((process, stdout, stderr)) => {
                self.pid.store(process.pid, Ordering::Relaxed);
                *server = process;
                locked(&self.interceptor).server_fact(injection, |after_ms| ServerFact::Restarted { after_ms });
                self.read(stdout, stderr, generation);
            }
            Err(_) => self.ended.notify_one(),
        }
    }

    /// Records the exit of a process that ended by itself.
    async fn server_ended(&self, generation: u64) {
        let mut server = self.server.lock().await;
        if server.generation != generation {
            return;
        }
        let status = server.exit_within(EXIT).await.map_or("it closed its stdout".to_owned(), |it| it.to_string());
        drop(server);
        self.log.record("server", Direction::Event, status.as_bytes(), None);
        let exited = |after_ms| ServerFact::Exited { after_ms, status: status.clone() };
        locked(&self.interceptor).server_fact(None, exited);
        self.ended.notify_one();
    }

    /// Ends the server: by the end of its input, by SIGTERM, or by force.
    async fn end(&self) {
        let mut server = self.server.lock().await;
        server.stdin.take();
        if server.exit_within(EXIT).await.is_none() {
            signal::terminate(server.pid);
            let _ = server.exit_within(EXIT).await;
        }
        signal::kill_group(server.pid);
        drop(server);
        let mut tasks = std::mem::take(&mut *locked(&self.tasks));
        // What the server wrote before it ended is still in the pipes.
        let rest = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(REST, rest).await;
        tasks.shutdown().await;
        // Answers that the readers delayed meanwhile.
        let mut delayed = std::mem::take(&mut *locked(&self.tasks));
        delayed.shutdown().await;
    }
}

impl ServerProcess {
    fn start(settings: &StdioSettings, generation: u64) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let mut child = command(settings).stderr(Stdio::piped()).spawn()?;
        let no_pipes = || io::Error::other("the process has no pipes");
        let stdout = child.stdout.take().ok_or_else(no_pipes)?;
        let stderr = child.stderr.take().ok_or_else(no_pipes)?;
        let (pid, stdin) = (child.id().unwrap_or_default(), child.stdin.take());
        Ok((Self { child, pid, stdin, generation }, stdout, stderr))
    }

    async fn exit_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        tokio::time::timeout(limit, self.child.wait()).await.ok()?.ok()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        signal::kill_group(self.pid);
    }
}

/// Reads the next line with its line feed. Ends at the end of the stream, and at a line that is too large.
pub(super) async fn next_line(reader: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> bool {
    line.clear();
    let mut limited = (&mut *reader).take(MAX_MESSAGE as u64);
    let read = limited.read_until(b'\n', line).await;
    read.is_ok_and(|length| length > 0) && line.len() < MAX_MESSAGE
}
