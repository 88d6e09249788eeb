//! Priced model: adds a cost to every attempt of a model.

use std::sync::Arc;

use async_trait::async_trait;
use toolgate_core::chat::{Part, Price, Reply};
use toolgate_core::run::ModelOptions;
use toolgate_core::tool::Tool;
use toolgate_ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest, ToolFit};

/// A model decorator that adds the cost to replies and failed attempts that report tokens without a cost. It replaces
/// the model everywhere: a method added to [`Model`] must be forwarded here.
pub struct Priced {
    model: Arc<dyn Model>,
    price: Price,
}

impl Priced {
    /// The same model at that price.
    pub fn new(model: Arc<dyn Model>, price: Price) -> Self {
        Self { model, price }
    }
}

impl Model for Priced {
    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    fn fit(&self, tool: &Tool) -> ToolFit {
        self.model.fit(tool)
    }

    fn most_tools(&self) -> Option<usize> {
        self.model.most_tools()
    }

    fn price(&self) -> Option<&Price> {
        Some(&self.price)
    }

    fn with_options(&self, options: &ModelOptions) -> Result<Arc<dyn Model>, String> {
        Ok(Arc::new(Self { model: self.model.with_options(options)?, price: self.price }))
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(PricedConversation { conversation: self.model.converse(), price: self.price })
    }
}

struct PricedConversation {
    conversation: Box<dyn Conversation>,
    price: Price,
}

#[async_trait]
impl Conversation for PricedConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let mut answer = self.conversation.reply(request, deltas).await;
        // The provider's own cost wins.
        match &mut answer {
            Ok(reply) => {
                let images = reply.content.iter().filter(|part| matches!(part, Part::Image(_))).count();
                self.price.complete(&mut reply.usage, images);
            }
            Err(failed) => self.price.complete(&mut failed.usage, 0),
        }
        answer
    }
}
