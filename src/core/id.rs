//! Newtypes for the names and ids of a run, so that one kind is never mistaken for another.

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
    /// One tool call of a run. Unique within the run, even if the provider repeats its ids.
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
    /// The configured id of an MCP server: the operator's name for it, not the name the server reports.
    ServerId
}
text_id! {
    /// The principal on whose behalf a run acts: a user, a team, a key. Only compared, never parsed.
    Principal
}
text_id! {
    /// The owner of runs and approvals: customers of one gateway who must not know of each other.
    Tenant
}
text_id! {
    /// A grant: a saved approval.
    GrantId
}
text_id! {
    /// An API key: its name in lists, never the secret.
    KeyId
}
text_id! {
    /// A tenant's webhook endpoint: `we_` and hex digits.
    EndpointId
}
text_id! {
    /// One message to one webhook endpoint, however often it is sent: `msg_` and hex digits.
    MessageId
}
text_id! {
    /// An uploaded file: `file_` and a UUIDv7.
    FileId
}
text_id! {
    /// Feedback on a run: `feedback_` and hex digits.
    FeedbackId
}
text_id! {
    /// The process that drives a run; holds leases in the store.
    NodeId
}

impl Tenant {
    const LOCAL: &str = "default";

    /// Whether no tenant was named.
    pub fn is_default(&self) -> bool {
        self.as_str() == Self::LOCAL
    }
}

/// The tenant of everything that names no tenant: the command line's runs, and those of a gateway with one tenant.
impl Default for Tenant {
    fn default() -> Self {
        Self::from(Self::LOCAL)
    }
}
