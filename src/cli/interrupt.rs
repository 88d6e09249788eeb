//! Interrupts of the program: Ctrl-C, counted, and signals that ask it to go.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Ctrl-C: stop the run.
    Stop,
    /// SIGTERM, or the terminal was closed: release the run, so that another process resumes it.
    Leave,
}

/// Every interrupt from its creation on, none lost between two looks. Stops listening when dropped.
pub(super) struct Interrupts {
    pressed: mpsc::UnboundedReceiver<Interrupt>,
    listening: Vec<JoinHandle<()>>,
}

impl Interrupts {
    /// Listens instead of letting the process die.
    pub(super) fn listen() -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        Self { pressed, listening: listeners(&press) }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Interrupt {
        match self.pressed.recv().await {
            Some(interrupt) => interrupt,
            // Signals cannot be listened to here; whoever waits for something else as well goes on waiting.
            None => std::future::pending().await,
        }
    }
}

/// Who tells of each signal. Signals are listened to before this returns, and not when the tasks get their first turn:
/// whoever reads that Ctrl-C does something may press it at once.
#[cfg(unix)]
fn listeners(press: &mpsc::UnboundedSender<Interrupt>) -> Vec<JoinHandle<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = |(kind, interrupt)| {
        let (mut signals, press) = (signal(kind).ok()?, press.clone());
        let tell = async move { while signals.recv().await.is_some() && press.send(interrupt).is_ok() {} };
        Some(tokio::spawn(tell))
    };
    let kinds = [
        (SignalKind::interrupt(), Interrupt::Stop),
        (SignalKind::terminate(), Interrupt::Leave),
        (SignalKind::hangup(), Interrupt::Leave),
    ];
    let is_heard = |(kind, _): &(SignalKind, Interrupt)| *kind != SignalKind::hangup() || !outlives_its_terminal();
    kinds.into_iter().filter(is_heard).filter_map(listener).collect()
}

/// Whether the program was started with SIGHUP ignored, as `nohup` does it. To be asked before SIGHUP is listened to.
#[cfg(unix)]
fn outlives_its_terminal() -> bool {
    static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Only Linux says so in a file; elsewhere the signal is listened to.
    *IGNORED.get_or_init(|| std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status)))
}

/// Whether a process with this status ignores SIGHUP, the first signal.
#[cfg(unix)]
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(not(unix))]
fn listeners(press: &mpsc::UnboundedSender<Interrupt>) -> Vec<JoinHandle<()>> {
    let press = press.clone();
    let tell = async move { while tokio::signal::ctrl_c().await.is_ok() && press.send(Interrupt::Stop).is_ok() {} };
    vec![tokio::spawn(tell)]
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_says_whether_sighup_is_among_them() {
        for (mask, is_ignored) in [("0000000000001001", true), ("0000000000001002", false), ("x", false)] {
            assert_eq!(ignores_hangup(&format!("Name:\ttoolgate\nSigIgn:\t{mask}\n")), is_ignored, "{mask}");
        }
        assert!(!ignores_hangup(""));
    }
}
