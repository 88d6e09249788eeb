//! Newtypes for the names and ids that travel through a run, so that one kind is never taken for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }
    };
}

text_id! {
    /// One execution of an agent, from a user message to an ending: `run_` and a UUIDv7.
    RunId
}
text_id! {
    /// A conversation made of successive runs.
    SessionId
}
text_id! {
    /// One tool call of a run. Unique within the run, whatever the provider repeats.
    CallId
}
text_id! {
    /// The configured name of an agent.
    AgentName
}
text_id! {
    /// The configured name of a model.
    ModelName
}
text_id! {
    /// The configured id of an MCP server: the operator's name for it, not what the server calls itself.
    ServerId
}
text_id! {
    /// On whose behalf a run acts: a user, a team, a key. Only compared, never parsed.
    Principal
}
text_id! {
    /// Whose runs and approvals they are: customers of one gateway who must not know of each other.
    Tenant
}
text_id! {
    /// A standing approval.
    GrantId
}
text_id! {
    /// A key that lets somebody in: its name in lists, never the secret.
    KeyId
}
text_id! {
    /// Where a tenant's webhooks go: `we_` and hex digits.
    EndpointId
}
text_id! {
    /// One message to one webhook endpoint, however often it is sent: `msg_` and hex digits.
    MessageId
}
text_id! {
    /// The process that drives a run; holds leases in the store.
    NodeId
}

impl Tenant {
    const LOCAL: &str = "default";

    /// Whether nobody said whose it is.
    pub fn is_default(&self) -> bool {
        self.as_str() == Self::LOCAL
    }
}

/// Everything that nobody names a tenant for: the command line's runs, and those of a gateway with one tenant.
impl Default for Tenant {
    fn default() -> Self {
        Self::from(Self::LOCAL)
    }
}
