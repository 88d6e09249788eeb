//! Receiver reachability. When the process ends, it waits for a receiver that was reachable once and is restarting. It
//! does not wait for a port without a listener, such as one left over in the environment.
//!
//! The result is kept for the process: a second connection to the same receiver does not wait again.

use std::collections::HashMap;
use std::error::Error;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

/// How long an ending process waits, once, for a receiver that was never reachable.
pub(super) const GRACE: Duration = Duration::from_millis(1_500);

/// The interval of connection probes, for transports that do not report their attempts.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);

/// The state of each receiver in this process, by scheme, host and port.
static KNOWN: LazyLock<Mutex<HashMap<String, Arc<ReceiverHistory>>>> = LazyLock::new(Mutex::default);

/// The reachability of one receiver. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Reachability {
    past: Arc<ReceiverHistory>,
    latest: watch::Sender<Latest>,
    /// The address to probe, if the transport does not report its attempts.
    probe_address: Option<(String, u16)>,
}

#[derive(Debug, Default)]
struct ReceiverHistory {
    was_there: AtomicBool,
    given_up: AtomicBool,
}

/// The result of the last attempt of this connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Latest {
    #[default]
    Untried,
    Refused,
    Answered,
}

impl Reachability {
    /// The reachability of a receiver whose every attempt is [noted](Self::note).
    pub(super) fn noted(url: &Url) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let past = known.entry(url.origin().ascii_serialization()).or_default().clone();
        Self { past, latest: watch::Sender::default(), probe_address: None }
    }

    /// The reachability of a receiver whose attempts are not reported: an ending process probes it.
    pub(super) fn probing(url: &Url) -> Self {
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        Self { probe_address: host.zip(url.port_or_known_default()), ..Self::noted(url) }
    }

    /// Notes the result of an attempt.
    pub(super) fn note(&self, failed: Option<&(dyn Error + 'static)>) {
        match failed {
            None => self.answered(),
            Some(error) if is_absence(error) => {
                self.latest.send_replace(Latest::Refused);
            }
            // The receiver may be reachable and slow.
            Some(_) => {}
        }
    }

    /// Notes that the receiver responded.
    pub(super) fn answered(&self) {
        self.past.was_there.store(true, Ordering::Relaxed);
        self.latest.send_replace(Latest::Answered);
    }

    /// Completes when a process that ends at that time may stop waiting, because the receiver was never reachable. It
    /// never completes for a receiver that was.
    pub(super) async fn hopeless(&self, ending: Instant) {
        tokio::select! {
            () = self.refused_beyond_grace(ending) => self.past.given_up.store(true, Ordering::Relaxed),
            () = self.probe() => {}
        }
    }

    async fn refused_beyond_grace(&self, ending: Instant) {
        let mut latest = self.latest.subscribe();
        loop {
            // `self` owns the channel, so it is open.
            let _ = latest.wait_for(|latest| *latest == Latest::Refused).await;
            if self.past.was_there.load(Ordering::Relaxed) {
                return pending().await;
            }
            let known = self.past.given_up.load(Ordering::Relaxed);
            let until = if known { ending } else { ending + GRACE };
            tokio::select! {
                () = sleep_until(until) => return,
                _ = latest.wait_for(|latest| *latest != Latest::Refused) => {}
            }
        }
    }

    /// Probes the address. Never completes.
    async fn probe(&self) {
        let Some((host, port)) = &self.probe_address else { return pending().await };
        loop {
            let probed = TcpStream::connect((host.as_str(), *port)).await;
            self.note(probed.as_ref().err().map(|error| error as &dyn Error));
            sleep(PROBE_INTERVAL).await;
        }
    }
}

/// Whether the error means that the receiver is absent: the port is closed, the host is unreachable, or the name is
/// unknown.
fn is_absence(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.any(|cause| match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => true,
        // Name resolution has no error kind of its own.
        Some(_) | None => {
            let said = cause.to_string();
            said.starts_with("failed to lookup address") || said.starts_with("dns error")
        }
    })
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    fn refusal() -> io::Error {
        io::Error::from(ErrorKind::ConnectionRefused)
    }

    fn reachability(port: u16) -> Reachability {
        Reachability::noted(&Url::parse(&format!("http://unknown.test:{port}/v1/traces")).unwrap())
    }

    /// The time until the receiver is given up, on paused time; `None` if it never is.
    async fn waited(hopeless: impl Future<Output = ()>) -> Option<Duration> {
        let began = Instant::now();
        tokio::time::timeout(Duration::from_secs(60), hopeless).await.ok().map(|()| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_waits_once_for_an_unreachable_receiver() {
        for expected in [GRACE, Duration::ZERO] {
            let opening = reachability(1);
            opening.note(Some(&refusal()));
            assert_eq!(waited(opening.hopeless(Instant::now())).await, Some(expected));
        }
        assert_eq!(waited(reachability(1).hopeless(Instant::now())).await, None, "not tried yet");
    }

    #[tokio::test(start_paused = true)]
    async fn a_receiver_that_was_reachable_is_never_given_up() {
        reachability(2).note(None);
        let later = reachability(2);
        later.note(Some(&refusal()));
        assert_eq!(waited(later.hopeless(Instant::now())).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_within_the_grace_ends_the_wait() {
        let opening = reachability(3);
        opening.note(Some(&refusal()));
        let answer = async {
            sleep(GRACE / 2).await;
            opening.answered();
            pending::<()>().await;
        };
        let hopeless = async {
            tokio::select! { () = opening.hopeless(Instant::now()) => {}, () = answer => {} }
        };
        assert_eq!(waited(hopeless).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn other_failures_do_not_prove_an_absent_receiver() {
        let opening = reachability(4);
        opening.note(Some(&io::Error::from(ErrorKind::TimedOut)));
        assert_eq!(waited(opening.hopeless(Instant::now())).await, None);
    }
}
