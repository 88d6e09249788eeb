//! Orphaned processes: no process of a server outlives toolgate, however toolgate ends.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toolgate");

/// A server that never answers and ignores the end of its stdin and SIGTERM, as does its child.
const STUBBORN: &str = "trap '' TERM; (while :; do sleep 1; done) & echo $$ > group.new; mv group.new group; wait";

/// toolgate, busy with a server.
struct Busy {
    folder: TempDir,
    toolgate: Child,
    group: u32,
}

impl Busy {
    /// Runs this command, and waits until the watchdog watches the server.
    fn with(arguments: &[&str], server: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let config = "
models: { played: { scripted: { file: conversation.yaml } } }
servers: { odd: { stdio: { command: sh, args: [odd.sh] } } }
agents: { desk: { servers: [odd] } }
";
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
        write("toolgate.yaml", config);
        write("conversation.yaml", "turns: [{ say: Done. }]");
        write("odd.sh", server);
        // A shell starts background jobs with Ctrl-C ignored, and child processes inherit that.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", PROGRAM]).args(arguments).current_dir(folder.path()).env_clear();
        let programs = Path::new(PROGRAM).parent().expect("a folder").display().to_string();
        command.env("PATH", format!("{programs}:{}", std::env::var("PATH").expect("PATH")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let toolgate = command.spawn().expect("it starts");
        let mut busy = Self { folder, toolgate, group: 0 };
        busy.group = busy.wait_for("the server writes its process id", |busy| {
            fs::read_to_string(busy.folder.path().join("group")).ok()?.trim().parse().ok()
        });
        busy
    }

    fn watchdog(&self) -> u32 {
        self.wait_for("there is a watchdog", |busy| watchdog_of(busy.toolgate.id()))
    }

    fn send(&self, signal: Signal) {
        send(self.toolgate.id(), signal);
    }

    fn wait_for<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "it never came about that {what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the end of toolgate, and asserts that no process of the server is left two seconds later.
    fn ends_with_everything(mut self) -> Option<i32> {
        let watchdog = watchdog_of(self.toolgate.id());
        let code = self.toolgate.wait().expect("a child").code();
        let ended = Instant::now();
        let is_ours = |process: &Process| process.group == self.group || Some(process.pid) == watchdog;
        let is_exhausted = || Process::all().iter().any(|process| is_ours(process) && process.is_alive());
        self.wait_for("nothing is left", |_| (!is_exhausted()).then_some(()));
        assert!(ended.elapsed() < Duration::from_secs(2), "only after {:?}", ended.elapsed());
        code
    }
}

/// A failed test leaves no processes either.
impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.toolgate.kill();
        let _ = self.toolgate.wait();
    }
}

#[test]
fn two_seconds_after_toolgate_was_killed_nothing_of_a_stubborn_server_is_left() {
    let busy = Busy::with(&["tools"], STUBBORN);
    busy.watchdog();
    busy.send(Signal::KILL);
    assert_eq!(busy.ends_with_everything(), None);
}

#[test]
fn a_watchdog_that_is_killed_is_replaced() {
    let busy = Busy::with(&["tools"], STUBBORN);
    let first = busy.watchdog();
    send(first, Signal::KILL);
    busy.wait_for("there is another watchdog", |busy| watchdog_of(busy.toolgate.id()).filter(|pid| *pid != first));
    assert!(Process::read(first).is_none(), "it was reaped before the other one was started");
    busy.send(Signal::KILL);
    assert_eq!(busy.ends_with_everything(), None);
}

#[test]
fn a_command_that_ctrl_c_ends_at_once_leaves_nothing() {
    let busy = Busy::with(&["tools"], STUBBORN);
    busy.watchdog();
    busy.send(Signal::INT);
    assert_eq!(busy.ends_with_everything(), Some(130));
}

#[test]
fn a_run_that_ctrl_c_cancels_leaves_nothing() {
    let busy = Busy::with(&["run", "hello"], STUBBORN);
    busy.send(Signal::INT);
    assert_eq!(busy.ends_with_everything(), Some(130));
}

#[test]
fn an_orderly_end_leaves_neither_the_server_nor_its_launcher_nor_the_watchdog() {
    let launcher = "sleep 100 & echo $$ > group.new; mv group.new group; toolgate demo-server; exit";
    let busy = Busy::with(&["tools"], launcher);
    assert_eq!(busy.ends_with_everything(), Some(0));
}

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
    kill_process(pid, signal).expect("it is there");
}

/// A process, as Linux reports it.
struct Process {
    pid: u32,
    parent: u32,
    group: u32,
    is_zombie: bool,
}

impl Process {
    fn all() -> Vec<Self> {
        let pids =
            fs::read_dir("/proc").expect("Linux").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(Self::read).collect()
    }

    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit(") ").next()?.split(' ');
        let is_zombie = fields.next()? == "Z";
        Some(Self { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()?, is_zombie })
    }

    /// Whether it runs. Init reaps orphans in its own time.
    fn is_alive(&self) -> bool {
        !self.is_zombie
    }
}

/// The watchdog among the children of a process.
fn watchdog_of(parent: u32) -> Option<u32> {
    let is_watchdog = |process: &Process| {
        let command = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&command).contains("toolgate-watchdog")
    };
    Process::all().into_iter().find(|process| process.parent == parent && is_watchdog(process)).map(|found| found.pid)
}
