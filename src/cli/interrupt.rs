//! Interrupts of the program: counted Ctrl-C, and signals that end it.

use clap::ValueEnum;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The requested action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Ctrl-C: stop the run.
    Stop,
    /// SIGTERM, or the terminal was closed: release the run, so that another process resumes it.
    Leave,
}

/// The effect of the first Ctrl-C on a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OnInterrupt {
    // Without descriptions, so that the help of each flag stays on few lines.
    #[default]
    Cancel,
    Pause,
}

/// The interrupts since its creation. It loses no interrupt between two reads. Dropping it stops listening.
pub(super) struct Interrupts {
    pressed: mpsc::UnboundedReceiver<Interrupt>,
    listening: Vec<JoinHandle<()>>,
}

impl Interrupts {
    /// Listens, so that a signal no longer ends the process.
    pub(super) fn listen() -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        Self { pressed, listening: listeners(&press) }
    }

    /// The next interrupt.
    pub(super) async fn next(&mut self) -> Interrupt {
        match self.pressed.recv().await {
            Some(interrupt) => interrupt,
            // This platform has no signals to listen to. Other branches of the caller's `select!` continue.
            None => std::future::pending().await,
        }
    }
}

/// Spawns a task for each signal. It registers the handlers before it returns, not when the tasks first run: a user who
/// reads about Ctrl-C may press it at once.
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
    let is_heard = |(kind, _): &(SignalKind, Interrupt)| *kind != SignalKind::hangup() || !ignores_hangup_signal();
    kinds.into_iter().filter(is_heard).filter_map(listener).collect()
}

/// Whether the program was started with SIGHUP ignored, as `nohup` does. Call this before listening to SIGHUP.
#[cfg(unix)]
fn ignores_hangup_signal() -> bool {
    static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Only Linux provides this status in a file. Other platforms listen to the signal.
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
