//! How a server of the modern era says that its tools changed: on a stream that it was asked for. Ended streams are
//! asked for again, less and less often, for as long as the connection lasts.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, Subscription};

use super::signals::Signals;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Rings whenever the tools changed, until the connection is closed or the server turns out to have no such streams.
pub(super) async fn follow(peer: Peer<RoleClient>, signals: Signals) {
    let mut pause = FIRST_PAUSE;
    while !peer.is_transport_closed() {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(subscription) => {
                pause = FIRST_PAUSE;
                listen(subscription, &signals).await;
                // Whatever changed before the next stream begins is told by nobody.
                signals.tools_changed.notify_one();
            }
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => return,
            Err(error) => tracing::debug!(%error, "an MCP server offers no stream of changes now"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn listen(mut subscription: Subscription, signals: &Signals) {
    while let Ok(Some(said)) = subscription.next().await {
        if let ServerNotification::ToolListChangedNotification(_) = said {
            signals.tools_changed.notify_one();
        }
    }
}
