//! What the gateway shows and cannot know itself: it comes from adapters, which only the composition root knows.

use async_trait::async_trait;

/// What surrounds a gateway.
#[async_trait]
pub trait Surroundings: Send + Sync {
    /// The metrics of the process as Prometheus reads them, if anybody keeps them.
    fn metrics(&self) -> Option<String> {
        None
    }
}

/// A gateway with a runner and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Surroundings for Alone {}
