//! Scripted model: plays a conversation file, for tests, demonstrations, and replaying an agent against an MCP server
//! without model costs.
//!
//! It is deterministic: the number of assistant messages in the transcript selects the turn, so a run that another
//! process resumes continues at the same turn. The summary of a compaction counts those that it replaces. It is strict: it rejects every transcript that a real provider would
//! reject. It never guesses: the end of the script is a failure, not an empty answer.

mod reply;
mod script;
mod strict;

use std::collections::HashMap;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

pub use script::{Expectation, Script, ScriptError, ScriptedCall, ScriptedFailure, ScriptedTurn, Streaming};
pub use strict::{TranscriptFault, check_transcript};

use toolgate_core::chat::{Message, Part, Reply, Role};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::run::COMPACTION_INSTRUCTION;
use toolgate_ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

/// The most characters of an unexpected message that a failure shows.
const SHOWN_CHARS: usize = 300;

/// The key of the attempts at a summary.
const SUMMARY: usize = usize::MAX;

/// The beginning of the last part of a summary: the number of replies that it replaces, so that the script continues.
const REPLIES_BEFORE: &str = "[replies before: ";

/// A model whose replies come from a script.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    identity: Arc<ModelIdentity>,
    script: Arc<Script>,
}

impl ScriptedModel {
    /// A model named `name` that plays `script` from the start in every conversation.
    pub fn new(name: impl Into<String>, script: Script) -> Self {
        let identity = ModelIdentity {
            system: "scripted".into(),
            provider: "scripted".into(),
            model: name.into(),
            settings: json!({}),
        };
        Self { identity: Arc::new(identity), script: Arc::new(script) }
    }
}

impl Model for ScriptedModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(ScriptedConversation { model: self.clone(), attempts: HashMap::new() })
    }
}

/// One run's view of the script. It holds only the number of attempts of each turn; the transcript holds the rest.
struct ScriptedConversation {
    model: ScriptedModel,
    attempts: HashMap<usize, u32>,
}

#[async_trait]
impl Conversation for ScriptedConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        check_transcript(request.messages).map_err(|fault| self.refuse(&fault.to_string()))?;
        let index = assistant_messages(request.messages) + replies_before(request.messages);
        let script = Arc::clone(&self.model.script);
        if is_compaction(request.messages) {
            let Some(turn) = &script.summary else { return Err(self.refuse("the script has no `summary`").into()) };
            let mut reply = self.play(turn, SUMMARY, index, request, &|_| {}).await?;
            reply.content.push(Part::text(format!("{REPLIES_BEFORE}{index}]")));
            return Ok(reply);
        }
        let Some(turn) = script.turns.get(index) else {
            let (turns, asked) = (script.turns.len(), index + 1);
            return Err(self.refuse(&format!("the script has {turns} turns and was asked for turn {asked}")).into());
        };
        self.play(turn, index, index, request, deltas).await
    }
}

impl ScriptedConversation {
    /// The reply of a turn, unless it fails or hangs. `counted`: the turn whose attempts are counted.
    async fn play(
        &mut self,
        turn: &ScriptedTurn,
        counted: usize,
        index: usize,
        request: &ModelRequest<'_>,
        deltas: DeltaSink<'_>,
    ) -> Result<Reply, ModelFailure> {
        let number = index + 1;
        self.check_expectation(turn, number, request.messages)?;

        pause(turn.latency_ms).await;
        let attempt = self.attempts.entry(counted).or_default();
        *attempt = attempt.saturating_add(1);
        if let Some(failure) = turn.fail.as_ref().and_then(|fail| fail.on_attempt(*attempt, number)) {
            return Err(failure.into());
        }
        let mut reply = turn.reply(number, request);
        reply.model = Some(self.model.identity.model.clone());
        if let Some(streaming) = turn.stream {
            // The scripted value instead of a measured one: two runs of one script write the same journal.
            reply.first_token_ms = Some(turn.latency_ms.saturating_add(streaming.delay_ms));
            stream(&reply, streaming, deltas).await;
        }
        if turn.hang {
            future::pending::<()>().await;
        }
        Ok(reply)
    }

    fn check_expectation(&self, turn: &ScriptedTurn, number: usize, messages: &[Arc<Message>]) -> Result<(), Failure> {
        let Some(expectation) = &turn.expect else { return Ok(()) };
        let said = messages.last().map(|message| reply::all_text(&message.content)).unwrap_or_default();
        if said.contains(&expectation.contains) {
            return Ok(());
        }
        let wanted = &expectation.contains;
        let said: String = said.chars().take(SHOWN_CHARS).collect();
        Err(self.refuse(&format!("turn {number} expects the last message to contain {wanted:?}, it is {said:?}")))
    }

    fn refuse(&self, why: &str) -> Failure {
        let name = &self.model.identity.model;
        Failure::new(ErrorCode::ProviderRejected, format!("scripted model {name}: {why}"))
    }
}

fn assistant_messages(messages: &[Arc<Message>]) -> usize {
    messages.iter().filter(|message| message.role == Role::Assistant).count()
}

/// Whether the request is for the summary of a compaction.
fn is_compaction(messages: &[Arc<Message>]) -> bool {
    let last = messages.last().and_then(|message| message.content.last());
    last.and_then(Part::as_text) == Some(COMPACTION_INSTRUCTION)
}

/// The replies that a summary in the transcript replaced, as the summary counts them.
fn replies_before(messages: &[Arc<Message>]) -> usize {
    let texts = messages.iter().filter(|message| message.role == Role::User).flat_map(|message| &message.content);
    let counted =
        texts.filter_map(Part::as_text).filter_map(|text| text.rsplit_once(REPLIES_BEFORE)?.1.strip_suffix(']'));
    counted.filter_map(|count| count.parse().ok()).next_back().unwrap_or(0)
}

async fn stream(reply: &Reply, streaming: Streaming, deltas: DeltaSink<'_>) {
    for fragment in reply::fragments(&reply.content, streaming.fragments) {
        pause(streaming.delay_ms).await;
        deltas(fragment);
    }
}

async fn pause(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}
