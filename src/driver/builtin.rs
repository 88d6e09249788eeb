//! Builtin tools: when they are available, and how they run.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::run::Run;
use toolgate_core::tool::result::{ReadRequest, read};
use toolgate_core::tool::{Builtin, FailureKind, Outcome, ToolOutput, Toolset};

use super::{Driver, Ports};

impl Driver<'_> {
    /// The live toolset with the builtin tools that the run can use. Returns the same allocation as long as nothing
    /// changes.
    pub(super) fn with_builtins(&self, run: &Run, live: Arc<Toolset>) -> Arc<Toolset> {
        if !run.has_cut_results() || live.get(Builtin::ResultRead.name()).is_some() {
            return live;
        }
        let spec = &run.started().spec;
        let rules = self.agent.toolset_rules(spec, run.pins());
        let more = self.agent.within_tool_limit(&spec.model, live.with_builtin(Builtin::ResultRead, &rules));
        if more.offers_the_same_as(&live) { live } else { Arc::new(more) }
    }
}

/// A call of a builtin tool: its action, or the reason to refuse it.
#[derive(Clone, Debug)]
pub(super) enum BuiltinCall {
    /// Read a piece of a result.
    Read { reading: ReadRequest, limit: usize },
    /// Accept the arguments as the answer of the run.
    Finish,
    /// Report an invalid call to the model.
    Refuse(String),
}

impl BuiltinCall {
    /// Parses a call. Only results of the same run can be read.
    pub(super) fn new(builtin: Option<Builtin>, arguments: &Map<String, Value>, run: &Run) -> Self {
        match builtin {
            // A question is answered from outside.
            None | Some(Builtin::AskHuman) => {
                Self::Refuse("This version of toolgate does not have this builtin tool.".into())
            }
            Some(Builtin::Finish) if run.calls_in_turn() > 1 => Self::Refuse(
                "Not accepted: call `finish` alone, once you have read the results of the other calls.".into(),
            ),
            Some(Builtin::Finish) => Self::Finish,
            Some(Builtin::ResultRead) => match ReadRequest::parse(arguments) {
                Err(complaint) => Self::Refuse(complaint),
                Ok(reading) if !run.blobs().contains(&reading.handle) => Self::Refuse(unknown(&reading.handle)),
                Ok(reading) => Self::Read { reading, limit: run.started().spec.limits.result_bytes() },
            },
        }
    }
}

impl Ports {
    /// Runs the call. It has no side effects, so it may run any number of times.
    pub(super) async fn run_builtin(&self, builtin: &BuiltinCall) -> Outcome {
        let (reading, limit) = match builtin {
            BuiltinCall::Finish => return Outcome::Returned(ToolOutput::text("The answer was received.")),
            BuiltinCall::Refuse(complaint) => return Outcome::Returned(ToolOutput::error(complaint)),
            BuiltinCall::Read { reading, limit } => (reading.clone(), *limit),
        };
        let turn = self.reads.clone().acquire_owned().await;
        let handle = reading.handle;
        let found = match &self.blobs {
            Some(blobs) => blobs.get(&handle).await,
            None => Ok(None),
        };
        let blob = match found {
            Ok(Some(blob)) => blob,
            Ok(None) => {
                let gone = format!("{handle} is no longer in the store. Call the tool it came from again.");
                return Outcome::Returned(ToolOutput::error(gone));
            }
            Err(error) => {
                tracing::warn!(%handle, %error, "failed to read stored result");
                return Outcome::failed(
                    FailureKind::Unavailable,
                    "The store is not available at the moment. Try again.",
                );
            }
        };
        // Megabytes of JSON take their time, during which other runs continue. The permit is held as long as the
        // memory.
        let reading = tokio::task::spawn_blocking(move || (piece(&blob, &reading, limit), drop(turn)).0);
        match reading.await {
            Ok(piece) => Outcome::Returned(piece),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Outcome::failed(FailureKind::Unavailable, "Not read: the program is shutting down."),
        }
    }
}

fn piece(blob: &Blob, reading: &ReadRequest, limit: usize) -> ToolOutput {
    let (handle, size) = (&reading.handle, blob.bytes().len());
    match std::str::from_utf8(blob.bytes()) {
        Ok(text) => read(text, reading, limit),
        Err(_) => {
            ToolOutput::error(format!("{handle} is {} of {size} bytes, and no text to be read.", blob.media_type))
        }
    }
}

fn unknown(handle: &BlobHandle) -> String {
    format!("No result of this run is kept as {handle}. Copy the handle exactly from the result.")
}
