//! Signals of the server process. SIGHUP differs from other commands: there it means a closed terminal, here it reloads
//! the configuration.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The requested action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM or Ctrl-C.
    Stop,
    Reload,
}

/// The signals since its creation. It loses no signal between two reads.
pub(super) struct Signals {
    sent: mpsc::UnboundedReceiver<Signal>,
    _listening: JoinSet<()>,
}

impl Signals {
    /// Listens, so that a signal no longer ends the process.
    pub(super) fn listen() -> Self {
        let (send, sent) = mpsc::unbounded_channel();
        Self { sent, _listening: listeners(&send) }
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> Signal {
        match self.sent.recv().await {
            Some(signal) => signal,
            // This platform has no signals to listen to.
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
fn listeners(send: &mpsc::UnboundedSender<Signal>) -> JoinSet<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        (SignalKind::terminate(), Signal::Stop),
        (SignalKind::interrupt(), Signal::Stop),
        (SignalKind::hangup(), Signal::Reload),
    ];
    let mut listening = JoinSet::new();
    for (kind, wanted) in kinds {
        let (Ok(mut signals), send) = (signal(kind), send.clone()) else { continue };
        listening.spawn(async move { while signals.recv().await.is_some() && send.send(wanted).is_ok() {} });
    }
    listening
}

#[cfg(not(unix))]
fn listeners(send: &mpsc::UnboundedSender<Signal>) -> JoinSet<()> {
    let (mut listening, send) = (JoinSet::new(), send.clone());
    listening.spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && send.send(Signal::Stop).is_ok() {} });
    listening
}
