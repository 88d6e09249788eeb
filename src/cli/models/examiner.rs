//! Model examiner: sends test requests one after another and derives findings from the replies. Each request is its own
//! conversation, so a failure does not affect the others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::finding::{Capability, Finding, quoted};
use super::questions;
use crate::cli::text::{count, duration};
use crate::cli::view::{MissingUsage, dollars, tokens};
use crate::core::chat::{Message, Reply, Stop, Usage};
use crate::core::error::Failure;
use crate::core::lifecycle::Delta;
use crate::core::run::ToolAccess;
use crate::core::tool::Toolset;
use crate::core::trace::{SpanContext, Trace, TraceId};
use crate::ports::{Conversation, Model, ModelRequest};

/// A model under test and its usage so far.
pub(super) struct Examiner {
    model: Arc<dyn Model>,
    trace: SpanContext,
    usage: Usage,
    gaps: MissingUsage,
    replies: usize,
    counted: usize,
}

/// A reply and how it arrived.
struct TimedReply {
    reply: Result<Reply, Failure>,
    took: Duration,
    /// The number of text and reasoning fragments before the end.
    pieces: usize,
    first_piece: Option<Duration>,
}

impl Examiner {
    /// Creates an examiner that has sent no request yet.
    pub(super) fn new(model: Arc<dyn Model>) -> Self {
        let id = TraceId(uuid::Uuid::now_v7().into_bytes());
        let trace = Trace::new(id, false).context("models check");
        Self { model, trace, usage: Usage::default(), gaps: MissingUsage::default(), replies: 0, counted: 0 }
    }

    /// The total usage.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Requests a text: tests whether the model answers and streams.
    pub(super) async fn text(&mut self) -> Vec<Finding> {
        let timed = self.ask(questions::FOR_TEXT, &Arc::default(), None).await;
        let reply = match &timed.reply {
            Ok(reply) => reply,
            Err(failure) => {
                let streaming = Finding::untried(Capability::Streaming, "there was no answer");
                return vec![Finding::failed(Capability::Answers, failure), streaming];
            }
        };
        let (text, took) = (reply.joined_text(), milliseconds(timed.took));
        let from = reply.model.as_ref().map(|model| format!(", by {model}")).unwrap_or_default();
        let evidence = format!("{} in {}{from}", quoted(&text), duration(took));
        let answers = match text.trim() {
            "" if reply.stop != Stop::MaxTokens => {
                Finding::lacks(Capability::Answers, format!("the answer is empty ({:?})", reply.stop))
            }
            _ if reply.stop == Stop::MaxTokens => Finding::lacks(
                Capability::Answers,
                format!("the reply did not end within the token limit: {evidence}"),
            )
            .with_remedy(
                "use a model that follows instructions, with the chat template that its server has for it; give one \
                         that reasons a lower `reasoning: { effort: … }`",
            ),
            text if !questions::names_capital(text) => {
                Finding::lacks(Capability::Answers, format!("the text does not answer the question: {evidence}"))
                    .with_remedy(
                        "use a model that follows instructions, with the chat template that its server has for it",
                    )
            }
            _ => Finding::works(Capability::Answers, evidence),
        };
        vec![answers, streaming(&timed, reply)]
    }

    /// Requests a fact that only the tool knows: tests whether the model calls the tool and accepts the result.
    pub(super) async fn call(&mut self) -> Vec<Finding> {
        let tools = questions::tools();
        let question = Arc::new(Message::user(questions::FOR_CALL));
        let mut conversation = self.model.converse();
        let messages = [Arc::clone(&question)];
        let timed = self.reply(conversation.as_mut(), &messages, &tools, ToolAccess::Enabled, None).await;
        let untried = |why: &str| Finding::untried(Capability::ResultAccepted, why);
        let reply = match timed.reply {
            Ok(reply) => reply,
            Err(failure) => return vec![Finding::failed(Capability::ToolCall, &failure), untried("there was no call")],
        };
        let Some(call) = reply.calls().next() else {
            let evidence = format!("it answered {} and called no tool", quoted(&reply.joined_text()));
            let finding = Finding::lacks(Capability::ToolCall, evidence)
                .with_remedy("use a model, or a chat template of the server, that supports tools");
            return vec![finding, untried("there was no call")];
        };
        let called = match reply.calls().find_map(|call| questions::fault(&call, &tools)) {
            Some(fault) => Finding::lacks(Capability::ToolCall, fault),
            None => Finding::works(Capability::ToolCall, format!("{} {}", call.name, questions::call_arguments(&call))),
        };
        let messages = questions::answered(&question, &reply);
        let timed = self.reply(conversation.as_mut(), &messages, &tools, ToolAccess::Enabled, None).await;
        vec![called, accepted(timed.reply)]
    }

    /// Requests two facts at once: tests whether both calls arrive in one reply.
    pub(super) async fn calls(&mut self) -> Finding {
        let tools = questions::tools();
        let reply = match self.ask(questions::FOR_CALLS, &tools, None).await.reply {
            Ok(reply) => reply,
            Err(failure) => return Finding::failed(Capability::ParallelCalls, &failure),
        };
        let usable = reply.calls().filter(|call| questions::fault(call, &tools).is_none()).count();
        let evidence = format!("{} in one reply", count(usable, "call"));
        match usable {
            0 | 1 => Finding::lacks(Capability::ParallelCalls, evidence),
            _ => Finding::works(Capability::ParallelCalls, evidence),
        }
    }

    /// Requests JSON with a schema: tests whether the answer matches it.
    pub(super) async fn json(&mut self) -> Finding {
        let schema = questions::answer_schema();
        match self.ask(questions::FOR_JSON, &Arc::default(), Some(&schema)).await.reply {
            Err(failure) => Finding::failed(Capability::StructuredOutput, &failure),
            Ok(reply) => {
                let text = reply.joined_text();
                match questions::misshapen(&text) {
                    None => Finding::works(Capability::StructuredOutput, quoted(&text)),
                    Some(why) => Finding::lacks(Capability::StructuredOutput, format!("{}: {why}", quoted(&text)))
                        .with_remedy("answers of an agent with `output_schema` are validated and requested again"),
                }
            }
        }
    }

    /// Whether the replies so far reported their token usage.
    pub(super) fn counts(&self) -> Finding {
        if self.replies == 0 {
            return Finding::untried(Capability::Usage, "there was no reply");
        }
        let evidence = format!("reported by {} of {} replies", self.counted, self.replies);
        if self.counted < self.replies {
            return Finding::lacks(Capability::Usage, evidence)
                .with_remedy("limits on tokens and cost count only reported usage");
        }
        Finding::works(Capability::Usage, format!("{evidence}: {}", tokens(&self.usage)))
    }

    /// Whether the cost of the check is known.
    pub(super) fn cost(&self, name: &str) -> Finding {
        match self.usage.cost_usd {
            Some(cost) if !self.gaps.in_cost() => Finding::works(Capability::Cost, format!("{} in all", dollars(cost))),
            Some(cost) => Finding::lacks(Capability::Cost, format!("at least {}", dollars(cost))),
            None if self.replies == 0 => Finding::untried(Capability::Cost, "there was no reply"),
            None => Finding::lacks(Capability::Cost, "unknown").with_remedy(format!(
                "say what it charges with `prices: {{ {name}: {{ input: …, output: … }} }}`, in dollars per million tokens"
            )),
        }
    }

    async fn ask(&mut self, question: &str, tools: &Arc<Toolset>, schema: Option<&Value>) -> TimedReply {
        let messages = [Arc::new(Message::user(question))];
        let tool_access = if tools.is_empty() { ToolAccess::BudgetExhausted } else { ToolAccess::Enabled };
        let mut conversation = self.model.converse();
        self.reply(conversation.as_mut(), &messages, tools, tool_access, schema).await
    }

    async fn reply(
        &mut self,
        conversation: &mut dyn Conversation,
        messages: &[Arc<Message>],
        tools: &Arc<Toolset>,
        tool_access: ToolAccess,
        output_schema: Option<&Value>,
    ) -> TimedReply {
        let trace = self.trace.clone();
        let request = ModelRequest { system: "", messages, tools, tool_access, output_schema, trace: &trace };
        let sent = Instant::now();
        let streamed = Mutex::new((0, None));
        let listen = |_: Delta| {
            let mut streamed = streamed.lock().unwrap_or_else(PoisonError::into_inner);
            streamed.0 += 1;
            streamed.1.get_or_insert_with(|| sent.elapsed());
        };
        let reply = conversation.reply(&request, &listen).await;
        let took = sent.elapsed();
        let (pieces, first_piece) = streamed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reply = reply.inspect(|reply| self.note(&reply.usage)).map_err(|failed| {
            self.usage.add(&failed.usage);
            self.gaps.failed(&failed.usage);
            failed.failure
        });
        TimedReply { reply, took, pieces, first_piece }
    }

    fn note(&mut self, usage: &Usage) {
        self.usage.add(usage);
        self.gaps.replied(usage);
        self.replies += 1;
        self.counted += usize::from(usage.input_tokens.is_some() && usage.output_tokens.is_some());
    }
}

fn streaming(timed: &TimedReply, reply: &Reply) -> Finding {
    let first = reply.first_token_ms.or(timed.first_piece.map(milliseconds));
    match (timed.pieces, first) {
        (2.., Some(first)) => {
            let evidence = format!("{}, the first after {}", count(timed.pieces, "piece"), duration(first));
            Finding::works(Capability::Streaming, evidence)
        }
        _ => Finding::lacks(Capability::Streaming, "the text came in one piece")
            .with_remedy("set `stream: true` on the model if its server can"),
    }
}

fn accepted(reply: Result<Reply, Failure>) -> Finding {
    let check = Capability::ResultAccepted;
    match reply {
        Err(failure) => Finding::failed(check, &failure),
        Ok(reply) if reply.joined_text().trim().is_empty() => Finding::lacks(
            check,
            if reply.calls().next().is_some() { "it called again" } else { "the answer is empty" },
        ),
        Ok(reply) if !questions::uses_result(&reply.joined_text()) => {
            Finding::lacks(check, format!("the answer does not use the result: {}", quoted(&reply.joined_text())))
        }
        Ok(reply) => Finding::works(check, quoted(&reply.joined_text())),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
