//! How a server of the modern era says that its tools changed: on a stream that it was asked for. Ended streams are
//! asked for again for as long as the connection lasts, less and less often if they do not last.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::time::{Instant, sleep, timeout};

use super::signals::Signals;

/// How long a server may take to acknowledge that it was asked.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(30);

/// Rings whenever the tools changed, until the connection is closed or the server turns out to have no such streams.
pub(super) async fn follow(peer: Peer<RoleClient>, signals: Signals) {
    let mut pauses = Pauses::default();
    let mut has_listened = false;
    while !peer.is_transport_closed() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let opened = timeout(ACKNOWLEDGEMENT, peer.listen(filter)).await;
        let lasted = match opened {
            Ok(Ok(subscription)) => {
                if std::mem::replace(&mut has_listened, true) {
                    // Whatever changed since the last stream ended was told to nobody.
                    signals.tools_changed.notify_one();
                }
                let begun = Instant::now();
                listen(subscription, &signals).await;
                // It may be a long time until there is another one.
                signals.tools_changed.notify_one();
                begun.elapsed()
            }
            Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => return,
            Ok(Err(error)) => {
                tracing::debug!(%error, "an MCP server offers no stream of changes now");
                Duration::ZERO
            }
            Err(_) => {
                tracing::debug!("an MCP server does not acknowledge that it was asked for a stream of changes");
                Duration::ZERO
            }
        };
        sleep(pauses.after(lasted)).await;
    }
}

async fn listen(mut subscription: Subscription, signals: &Signals) {
    while let Ok(Some(said)) = subscription.next().await {
        if let ServerNotification::ToolListChangedNotification(_) = said {
            signals.tools_changed.notify_one();
        }
    }
}

/// How long nobody asks after a stream ended, or did not come about.
#[derive(Debug, Default)]
struct Pauses {
    /// Streams in a row that were not worth asking for.
    vain: u32,
}

impl Pauses {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// A stream that lasted that long was worth it. What a shorter one brings, the list tells as well.
    const LASTING: Duration = Duration::from_secs(10);

    fn after(&mut self, lasted: Duration) -> Duration {
        if lasted >= Self::LASTING {
            self.vain = 0;
        }
        let pause = Self::FIRST.saturating_mul(1 << self.vain.min(16)).min(Self::LONGEST);
        self.vain = self.vain.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use rmcp::model::{ProtocolVersion, ServerCapabilities, ServerPeerInfo};
    use rmcp::service::serve_directly;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::mcp::era::{Era, introduction};
    use crate::mcp::listener::Listener;

    /// When it was asked for a stream, in seconds from the first time on.
    type Asked = Arc<Mutex<Vec<Instant>>>;

    /// A server whose streams last as long as these, the last one of them and all after it for no time at all.
    async fn serve(pipe: DuplexStream, asked: Asked, mut lasting: Vec<Duration>) {
        let (reading, mut writing) = tokio::io::split(pipe);
        let mut lines = BufReader::new(reading).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).expect("a message");
            assert_eq!(request["method"], "subscriptions/listen");
            asked.lock().expect("not poisoned").push(Instant::now());
            let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
            let method = "notifications/subscriptions/acknowledged";
            let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
            let acknowledged = json!({"jsonrpc": "2.0", "method": method, "params": params});
            let result = json!({"resultType": "complete", "_meta": meta});
            let ended = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
            writing.write_all(format!("{acknowledged}\n").as_bytes()).await.expect("written");
            sleep(lasting.pop().unwrap_or_default()).await;
            writing.write_all(format!("{ended}\n").as_bytes()).await.expect("written");
        }
    }

    /// How many seconds lie between the ends of streams and the next question, for so many questions.
    async fn pauses(lasting: &[u64], questions: usize) -> Vec<u64> {
        let (ours, theirs) = tokio::io::duplex(4096);
        let asked = Asked::default();
        let streams: Vec<Duration> = lasting.iter().rev().map(|seconds| Duration::from_secs(*seconds)).collect();
        let serving = tokio::spawn(serve(theirs, asked.clone(), streams));
        let signals = Signals::default();
        let listener = Listener::new(introduction(Era::Modern, false), signals.clone(), CancellationToken::new());
        let (reading, writing) = tokio::io::split(ours);
        let info = ServerPeerInfo::new(ProtocolVersion::V_2026_07_28, ServerCapabilities::default());
        let running = serve_directly(listener, AsyncRwTransport::new_client(reading, writing), Some(info));
        let following = tokio::spawn(follow(running.peer().clone(), signals));
        while asked.lock().expect("not poisoned").len() < questions {
            sleep(Duration::from_millis(100)).await;
        }
        following.abort();
        serving.abort();
        let asked = asked.lock().expect("not poisoned");
        let apart = asked.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
        let lasted = lasting.iter().copied().chain(std::iter::repeat(0));
        apart.zip(lasted).map(|(apart, lasted)| apart - lasted).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_whose_streams_end_at_once_is_asked_ever_less_often() {
        assert_eq!(pauses(&[], 9).await, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_stream_that_lasted_makes_the_next_pause_short_again() {
        assert_eq!(pauses(&[0, 0, 5, 600, 0, 30], 8).await, [1, 2, 4, 1, 2, 1, 2]);
    }
}
