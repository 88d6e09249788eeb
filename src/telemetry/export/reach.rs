//! Whether anybody is there at all. A receiver that was there once and is restarted is worth waiting for when the process
//! ends; a port where nobody ever listened, left in the environment by somebody, is not.
//!
//! What was learned holds for the process: whoever opens another way to the same receiver does not wait again.

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

/// How long a process that ends waits for a receiver that was never there, once.
pub(super) const GRACE: Duration = Duration::from_millis(1_500);

/// How often one is asked whether it is there, by whoever does not see the attempts.
const KNOCKING: Duration = Duration::from_millis(200);

/// What this process knows of each receiver, by scheme, host and port.
static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Past>>>> = LazyLock::new(Mutex::default);

/// What is known of one receiver. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    past: Arc<Past>,
    latest: watch::Sender<Latest>,
    /// Where to knock, if nobody tells how the attempts went.
    door: Option<(String, u16)>,
}

#[derive(Debug, Default)]
struct Past {
    was_there: AtomicBool,
    given_up: AtomicBool,
}

/// How the last attempt of this opening went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Latest {
    #[default]
    Untried,
    Refused,
    Answered,
}

impl Reach {
    /// Of a receiver with whom every attempt is [noted](Self::note).
    pub(super) fn noted(url: &Url) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let past = known.entry(url.origin().ascii_serialization()).or_default().clone();
        Self { past, latest: watch::Sender::default(), door: None }
    }

    /// Of a receiver whose attempts nobody sees: when it matters, somebody knocks.
    pub(super) fn knocking(url: &Url) -> Self {
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        Self { door: host.zip(url.port_or_known_default()), ..Self::noted(url) }
    }

    /// How an attempt went.
    pub(super) fn note(&self, failed: Option<&(dyn Error + 'static)>) {
        match failed {
            None => self.answered(),
            Some(error) if is_absence(error) => {
                self.latest.send_replace(Latest::Refused);
            }
            // Somebody may be there, and slow.
            Some(_) => {}
        }
    }

    /// Somebody is there.
    pub(super) fn answered(&self) {
        self.past.was_there.store(true, Ordering::Relaxed);
        self.latest.send_replace(Latest::Answered);
    }

    /// Comes when a process that ends since then need not wait any longer, because nobody was ever there. It does not
    /// come for a receiver that was.
    pub(super) async fn hopeless(&self, ending: Instant) {
        tokio::select! {
            () = self.refused_beyond_grace(ending) => self.past.given_up.store(true, Ordering::Relaxed),
            () = self.knock() => {}
        }
    }

    async fn refused_beyond_grace(&self, ending: Instant) {
        let mut latest = self.latest.subscribe();
        loop {
            // The sender is here, so it is not gone.
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

    /// Does not end.
    async fn knock(&self) {
        let Some((host, port)) = &self.door else { return pending().await };
        loop {
            let knocked = TcpStream::connect((host.as_str(), *port)).await;
            self.note(knocked.as_ref().err().map(|error| error as &dyn Error));
            sleep(KNOCKING).await;
        }
    }
}

/// Whether nobody is there: the port is closed, there is no way to it, or the name is unknown.
fn is_absence(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source());
    causes.any(|cause| match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => true,
        // Name resolution has no kind of its own.
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

    fn reach(port: u16) -> Reach {
        Reach::noted(&Url::parse(&format!("http://nobody.test:{port}/v1/traces")).unwrap())
    }

    /// How long it takes until something is hopeless, on time that flies; `None` if it never is.
    async fn waited(hopeless: impl Future<Output = ()>) -> Option<Duration> {
        let began = Instant::now();
        tokio::time::timeout(Duration::from_secs(60), hopeless).await.ok().map(|()| began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_never_there_is_waited_for_once_in_a_process() {
        for expected in [GRACE, Duration::ZERO] {
            let opening = reach(1);
            opening.note(Some(&refusal()));
            assert_eq!(waited(opening.hopeless(Instant::now())).await, Some(expected));
        }
        assert_eq!(waited(reach(1).hopeless(Instant::now())).await, None, "not tried yet");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_there_once_is_never_hopeless_whoever_opens_the_way() {
        reach(2).note(None);
        let later = reach(2);
        later.note(Some(&refusal()));
        assert_eq!(waited(later.hopeless(Instant::now())).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_within_the_grace_ends_the_wait() {
        let opening = reach(3);
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
    async fn an_attempt_that_fails_in_another_way_says_nothing() {
        let opening = reach(4);
        opening.note(Some(&io::Error::from(ErrorKind::TimedOut)));
        assert_eq!(waited(opening.hopeless(Instant::now())).await, None);
    }
}
