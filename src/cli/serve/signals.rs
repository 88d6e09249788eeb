//! What signals want of a server. Another reading than a command's: there SIGHUP is a terminal that went away, here it is an
//! operator who changed the configuration.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGTERM or Ctrl-C.
    Stop,
    /// SIGHUP.
    Reload,
}

/// Every signal from its creation on, none lost between two looks.
pub(super) struct Signals {
    sent: mpsc::UnboundedReceiver<Signal>,
    _listening: JoinSet<()>,
}

impl Signals {
    /// Listens instead of letting the process die.
    pub(super) fn listen() -> Self {
        let (send, sent) = mpsc::unbounded_channel();
        Self { sent, _listening: listeners(&send) }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        match self.sent.recv().await {
            Some(signal) => signal,
            // Signals cannot be listened to here.
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
