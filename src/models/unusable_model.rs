//! Unusable model: a configured model that cannot be called. Listing and validation work without it; only a call fails,
//! with the reason and the fix.

use async_trait::async_trait;
use serde_json::json;
use toolgate_core::chat::Reply;
use toolgate_core::error::Failure;
use toolgate_ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

/// Fails every call with the same error.
#[derive(Clone, Debug)]
pub struct UnusableModel {
    identity: ModelIdentity,
    failure: Failure,
}

impl UnusableModel {
    /// A model named `name` that fails with `failure`.
    pub fn new(name: impl Into<String>, failure: Failure) -> Self {
        let identity = ModelIdentity {
            system: "unknown".into(),
            provider: "unknown".into(),
            model: name.into(),
            settings: json!({}),
        };
        Self { identity, failure }
    }
}

impl Model for UnusableModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Conversation for UnusableModel {
    async fn reply(&mut self, _request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        Err(self.failure.clone().into())
    }
}
