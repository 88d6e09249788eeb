//! Small verbs to call a model through its port.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use toolgate::core::chat::{Message, Part, Reply, Role};
use toolgate::core::error::Failure;
use toolgate::core::lifecycle::Delta;
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{ExternalTool, ToolCall, Toolset, ToolsetRules};
use toolgate::core::trace::{SpanContext, SpanId, TraceId};
use toolgate::ports::{Conversation, ModelRequest};

/// All parts of a request, with plain defaults.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) system: String,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) tools: Arc<Toolset>,
    pub(crate) tool_access: ToolAccess,
    pub(crate) output_schema: Option<Value>,
    pub(crate) trace: SpanContext,
}

pub(crate) fn ask(messages: impl IntoIterator<Item = Message>) -> Ask {
    Ask {
        system: String::new(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Arc::default(),
        tool_access: ToolAccess::Enabled,
        output_schema: None,
        trace: SpanContext {
            trace: TraceId([0xab; 16]),
            span: SpanId([0xcd; 8]),
            sampled: true,
            state: None,
            baggage: None,
        },
    }
}

impl Ask {
    pub(crate) fn offering(self, tool_access: ToolAccess) -> Self {
        Self { tool_access, ..self }
    }

    pub(crate) fn with_tools(self, names: &[&str]) -> Self {
        Self { tools: tools(names), ..self }
    }

    /// The same, with this server as the author of every replayable turn.
    pub(crate) fn at_home(&self, base_url: &str) -> Self {
        let at_home = |message: &Arc<Message>| {
            let mut message = Message::clone(message);
            if let Some(state) = &mut message.provider_state {
                state.origin = Some(origin(base_url));
            }
            Arc::new(message)
        };
        Self { messages: self.messages.iter().map(at_home).collect(), ..self.clone() }
    }

    pub(crate) fn request(&self) -> ModelRequest<'_> {
        ModelRequest {
            system: &self.system,
            messages: &self.messages,
            tools: &self.tools,
            tool_access: self.tool_access,
            output_schema: self.output_schema.as_ref(),
            trace: &self.trace,
        }
    }

    pub(crate) async fn of(&self, conversation: &mut dyn Conversation) -> Result<Reply, Failure> {
        conversation.reply(&self.request(), &|_| {}).await.map_err(|failed| failed.failure)
    }

    pub(crate) async fn watched(&self, conversation: &mut dyn Conversation) -> (Result<Reply, Failure>, Vec<Delta>) {
        let seen = Mutex::new(Vec::new());
        let reply = conversation.reply(&self.request(), &|delta| seen.lock().unwrap().push(delta)).await;
        (reply.map_err(|failed| failed.failure), seen.into_inner().unwrap())
    }
}

/// The server of an address in the form that turns record.
pub(crate) fn origin(base_url: &str) -> String {
    base_url.split('/').nth(2).unwrap().to_owned()
}

pub(crate) fn tools(names: &[&str]) -> Arc<Toolset> {
    let external: Vec<ExternalTool> = names
        .iter()
        .map(|name| ExternalTool {
            name: (*name).into(),
            description: format!("does {name}"),
            input_schema: serde_json::json!({"type": "object"}),
            result_schema: None,
            priority: 0,
            deadline_s: None,
        })
        .collect();
    Arc::new(Toolset::assemble(&external, &[], &ToolsetRules::default()))
}

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

pub(crate) fn says(text: &str) -> Message {
    Message::assistant(text)
}

pub(crate) fn calls(ids: &[&str]) -> Message {
    let content = ids.iter().map(|id| ToolCall::new(*id, "ext_look", Value::Null).into_part()).collect();
    Message { role: Role::Assistant, content, provider_state: None }
}

pub(crate) fn results(results: &[(&str, &str)]) -> Message {
    let content = results.iter().map(|(id, text)| result(id, text, false)).collect();
    Message { role: Role::User, content, provider_state: None }
}

pub(crate) fn result(id: &str, text: &str, is_error: bool) -> Part {
    Part::ToolResult { tool_use_id: id.into(), content: vec![Part::text(text)], is_error }
}
