//! Floor: a hand-written agent loop that calls the model, appends, runs the tools and appends. It has no journal, no
//! checks, no ids and no resume. It lists the tools once for all runs.

use std::sync::Arc;

use futures::future::join_all;
use toolgate::core::chat::{Message, Part, Role};
use toolgate::core::id::RunId;
use toolgate::core::run::ToolAccess;
use toolgate::core::tool::{CallReply, Origin, ToolCall, Toolset, ToolsetRules};
use toolgate::core::trace::{SpanContext, Trace, TraceId};
use toolgate::ports::{McpCall, McpServers, Model, ModelRequest};

use crate::world::Files;

pub async fn tools(servers: &dyn McpServers) -> Arc<Toolset> {
    let offers = servers.list(&[Files::id()], &trace()).await;
    Arc::new(Toolset::assemble(&[], &offers, &ToolsetRules::default()))
}

pub async fn run(model: Arc<dyn Model>, servers: Arc<dyn McpServers>, tools: Arc<Toolset>) -> Vec<Arc<Message>> {
    let trace = trace();
    let run = RunId::from("floor");
    let mut conversation = model.converse();
    let mut messages = vec![Arc::new(Message::user("read everything"))];
    loop {
        let request = ModelRequest {
            system: "",
            messages: &messages,
            tools: &tools,
            tool_access: ToolAccess::Enabled,
            output_schema: None,
            trace: &trace,
        };
        let reply = conversation.reply(&request, &|_| {}).await.expect("the fake answers");
        let calls: Vec<ToolCall> = reply.calls().collect();
        messages.push(said(Role::Assistant, reply.content));
        if calls.is_empty() {
            return messages;
        }
        let results = join_all(calls.iter().map(|asked| call(&*servers, &tools, &run, asked, &trace))).await;
        messages.push(said(Role::User, results));
    }
}

async fn call(servers: &dyn McpServers, tools: &Toolset, run: &RunId, asked: &ToolCall, trace: &SpanContext) -> Part {
    let Origin::Mcp { server, tool } = &tools.get(&asked.name).expect("the fake knows its tools").origin else {
        unreachable!("the fake has no external tools");
    };
    let arguments = asked.arguments.as_object().expect("the fake writes objects");
    let request = McpCall {
        run,
        call: &asked.id,
        server,
        tool,
        arguments,
        is_repeatable: false,
        trace,
        deadline: None,
        answered: None,
        elicitation: None,
    };
    let CallReply::Ended { outcome, .. } = servers.call(request, &|_| {}).await.reply else {
        unreachable!("these servers suspend no call")
    };
    Part::ToolResult { tool_use_id: asked.id.clone(), content: outcome.content(), is_error: outcome.is_error() }
}

fn trace() -> SpanContext {
    Trace::new(TraceId([7; 16]), true).context("floor")
}

fn said(role: Role, content: Vec<Part>) -> Arc<Message> {
    Arc::new(Message { role, content, provider_state: None })
}
