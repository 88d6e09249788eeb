//! Change notifications of a server of the modern era, on a stream that the client opens. Ended streams are opened
//! again for as long as the connection lasts, with growing pauses if they do not last.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};
use tokio::time::{Instant, sleep, timeout};

use super::signals::Signals;

/// How long a server may take to acknowledge a subscription.
const ACKNOWLEDGEMENT: Duration = Duration::from_secs(30);

/// Signals every change of the tools, until the connection is closed or the server turns out not to support
/// subscriptions.
pub(super) async fn follow(peer: Peer<RoleClient>, signals: Signals) {
    let mut pauses = Pauses::default();
    let mut has_listened = false;
    while !peer.is_transport_closed() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let opened = timeout(ACKNOWLEDGEMENT, peer.listen(filter)).await;
        let lasted = match opened {
            Ok(Ok(subscription)) => {
                if std::mem::replace(&mut has_listened, true) {
                    // Changes since the end of the last stream were not reported.
                    signals.tools_changed.notify_one();
                }
                let begun = Instant::now();
                listen(subscription, &signals).await;
                // It may take a long time to open another stream.
                signals.tools_changed.notify_one();
                begun.elapsed()
            }
            Ok(Err(ServiceError::McpError(error))) if error.code == ErrorCode::METHOD_NOT_FOUND => return,
            Ok(Err(error)) => {
                tracing::debug!(%error, "change stream of an MCP server unavailable");
                Duration::ZERO
            }
            Err(_) => {
                tracing::debug!("change stream not acknowledged by an MCP server");
                Duration::ZERO
            }
        };
        sleep(pauses.after(lasted)).await;
    }
}

async fn listen(mut subscription: Subscription, signals: &Signals) {
    while let Ok(Some(notification)) = subscription.next().await {
        if let ServerNotification::ToolListChangedNotification(_) = notification {
            signals.tools_changed.notify_one();
        }
    }
}

/// The pause after a stream ended or could not be opened.
#[derive(Debug, Default)]
struct Pauses {
    /// Consecutive streams that did not last.
    vain: u32,
}

impl Pauses {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// The minimum duration of a stream that resets the pauses. The changes of a shorter one appear in the list as
    /// well.
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
    use crate::client_handler::McpClientHandler;
    use crate::negotiation::{Era, introduction};

    /// The times of the subscription requests, relative to the first one.
    type RequestTimes = Arc<Mutex<Vec<Instant>>>;

    /// A server whose streams last this long; the last stream and all after it end at once.
    async fn serve(pipe: DuplexStream, requested_at: RequestTimes, mut lasting: Vec<Duration>) {
        let (reading, mut writing) = tokio::io::split(pipe);
        let mut lines = BufReader::new(reading).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request: Value = serde_json::from_str(&line).expect("a message");
            assert_eq!(request["method"], "subscriptions/listen");
            requested_at.lock().expect("not poisoned").push(Instant::now());
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

    /// The seconds between the end of a stream and the next request, for this many requests.
    async fn pauses(lasting: &[u64], questions: usize) -> Vec<u64> {
        let (ours, theirs) = tokio::io::duplex(4096);
        let requested_at = RequestTimes::default();
        let streams: Vec<Duration> = lasting.iter().rev().map(|seconds| Duration::from_secs(*seconds)).collect();
        let serving = tokio::spawn(serve(theirs, requested_at.clone(), streams));
        let signals = Signals::default();
        let client_handler =
            McpClientHandler::new(introduction(Era::Modern, false), signals.clone(), CancellationToken::new());
        let (reading, writing) = tokio::io::split(ours);
        let info = ServerPeerInfo::new(ProtocolVersion::V_2026_07_28, ServerCapabilities::default());
        let running = serve_directly(client_handler, AsyncRwTransport::new_client(reading, writing), Some(info));
        let following = tokio::spawn(follow(running.peer().clone(), signals));
        while requested_at.lock().expect("not poisoned").len() < questions {
            sleep(Duration::from_millis(100)).await;
        }
        following.abort();
        serving.abort();
        let requested_at = requested_at.lock().expect("not poisoned");
        let apart = requested_at.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs());
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
