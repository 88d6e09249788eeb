//! A model that streams one fragment at a time, when a scenario says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use toolgate::core::chat::Reply;
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::lifecycle::Delta;
use toolgate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

/// A model whose attempts stream these fragments. All attempts but the last one fail after them.
pub(crate) struct StreamingModel {
    identity: ModelIdentity,
    stream: Stream,
}

/// The control of a streaming model.
#[derive(Clone)]
pub(crate) struct StreamControl {
    steps: Arc<Semaphore>,
    done: watch::Receiver<usize>,
}

#[derive(Clone)]
struct Stream {
    attempts: Arc<[Vec<Delta>]>,
    made: Arc<AtomicUsize>,
    steps: Arc<Semaphore>,
    done: Arc<watch::Sender<usize>>,
}

impl StreamingModel {
    pub(crate) fn with(attempts: Vec<Vec<Delta>>) -> (Self, StreamControl) {
        let name = || "streaming".to_owned();
        let identity = ModelIdentity { system: name(), provider: name(), model: name(), settings: Value::Null };
        let (sender, done) = watch::channel(0);
        let steps = Arc::new(Semaphore::new(0));
        let (attempts, made) = (attempts.into(), Arc::default());
        let stream = Stream { attempts, made, steps: steps.clone(), done: Arc::new(sender) };
        (Self { identity, stream }, StreamControl { steps, done })
    }
}

impl StreamControl {
    /// Lets the model make its next steps, and waits until it has streamed as many fragments in all. The end of an attempt
    /// is a step as well.
    pub(crate) async fn step(&mut self, steps: usize, streamed: usize) {
        self.steps.add_permits(steps);
        self.done.wait_for(|done| *done >= streamed).await.unwrap();
    }
}

impl Model for StreamingModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(self.stream.clone())
    }
}

#[async_trait]
impl Conversation for Stream {
    async fn reply(&mut self, _request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let attempt = self.made.fetch_add(1, Ordering::SeqCst);
        let mut text = String::new();
        for fragment in &self.attempts[attempt] {
            self.steps.acquire().await.unwrap().forget();
            if let Delta::Text { text: said } = fragment {
                text.push_str(said);
            }
            deltas(fragment.clone());
            self.done.send_modify(|done| *done += 1);
        }
        self.steps.acquire().await.unwrap().forget();
        match attempt + 1 < self.attempts.len() {
            true => Err(Failure::new(ErrorCode::ProviderUnavailable, "the connection broke").into()),
            false => Ok(Reply::text(text)),
        }
    }
}
