//! Head of a session's stream: a tool call waits for the answer to the GET that opens the stream.
//!
//! A server sends its own requests, such as a question to the user, on that stream, and some servers drop one that they
//! send before the stream is open. The SDK sends the GET and the first call at the same time, so a call on a kept
//! connection arrives before a GET that has to connect (decision 0023).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a call waits. Some servers send the head of the stream together with its first event.
const LIMIT: Duration = Duration::from_millis(300);

/// The session whose stream the server has answered, or that has waited long enough. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionStream(Arc<watch::Sender<Option<Arc<str>>>>);

impl SessionStream {
    /// Records that the server answered the GET of this session, with a stream or a refusal.
    pub(super) fn answered(&self, session: &Arc<str>) {
        self.0.send_replace(Some(Arc::clone(session)));
    }

    /// Waits until the stream of this session was answered, at most [`LIMIT`] for each session.
    pub(super) async fn ready(&self, session: &Arc<str>) {
        let mut answered = self.0.subscribe();
        let is_answered = answered.wait_for(|answered| answered.as_ref() == Some(session));
        if timeout(LIMIT, is_answered).await.is_err() {
            self.answered(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_for_the_answer_of_its_own_session() {
        let (stream, session) = (SessionStream::default(), Arc::from("new"));
        stream.answered(&Arc::from("old"));
        let started = Instant::now();
        let waiting = tokio::spawn({
            let (stream, session) = (stream.clone(), Arc::clone(&session));
            async move { stream.ready(&session).await }
        });
        tokio::time::sleep(LIMIT / 2).await;
        assert!(!waiting.is_finished());
        stream.answered(&session);
        waiting.await.expect("the wait ends");
        assert_eq!(started.elapsed(), LIMIT / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_first_calls_of_a_session_wait_for_a_stream_without_a_head() {
        let (stream, session) = (SessionStream::default(), Arc::from("silent"));
        let started = Instant::now();
        stream.ready(&session).await;
        stream.ready(&session).await;
        assert_eq!(started.elapsed(), LIMIT);
    }
}
