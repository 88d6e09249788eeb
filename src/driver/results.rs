//! Processing of tool results before they are journaled: validated against the tool's output schema, cut to the limits
//! of journal and model, and stored in full before anything names them.

use toolgate_core::blob::Blob;
use toolgate_core::chat::Part;
use toolgate_core::id::RunId;
use toolgate_core::json;
use toolgate_core::run::Limits;
use toolgate_core::tool::result::{OverflowStorage, ResultCheck, bounded, bounded_message, shortened};
use toolgate_core::tool::{
    CallFailure, CallReply, ElicitationRequest, FailureKind, Outcome, Problem, Question, TaskHandle, Tool, ToolOutput,
    Validation,
};
use toolgate_ports::{BlobError, InputFindings, MAX_BLOB_BYTES};

use super::Ports;

/// The maximum length of a location or a message in a problem.
const PROBLEM_BYTES: usize = 400;
/// The fraction of a result's room that the note about problems may take.
const NOTE_PART: usize = 4;

/// The maximum size of an elicitation request in the journal.
const QUESTIONS_BYTES: usize = 1 << 20;
/// The maximum length of a task id, and of a task's status message.
const TASK_BYTES: usize = 4096;

/// How results of one server are processed, and how the arguments of its calls are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerResults {
    /// Bytes of text that one result adds to the conversation; `None` for the run's own limit.
    pub max_bytes: Option<u64>,
    /// The treatment of a structured result that does not match the tool's output schema.
    pub check: ResultCheck,
    /// The treatment of arguments that do not match the tool's input schema.
    pub validation: Validation,
}

impl Ports {
    /// The reply with a result that can be journaled. Everything it names is durable on return.
    pub async fn fit(&self, run: &RunId, limits: &Limits, tool: &Tool, reply: CallReply) -> CallReply {
        match reply {
            CallReply::Ended { outcome, stderr } => {
                CallReply::Ended { outcome: self.fit_outcome(run, limits, tool, outcome).await, stderr }
            }
            CallReply::NeedsInput(needed) => match oversize_reason(&needed) {
                None => CallReply::NeedsInput(needed),
                Some(why) => given_up(&why),
            },
            CallReply::Task(task) if task.id.len() > TASK_BYTES => {
                given_up(&format!("the id of its task has {} bytes; the maximum is {TASK_BYTES}", task.id.len()))
            }
            CallReply::Task(task) => {
                let message = task.message.map(|message| shortened(&message, TASK_BYTES));
                CallReply::Task(TaskHandle { message, ..task })
            }
        }
    }

    async fn fit_outcome(&self, run: &RunId, limits: &Limits, tool: &Tool, outcome: Outcome) -> Outcome {
        let rules = tool.server().and_then(|server| self.results.get(server)).copied().unwrap_or_default();
        let limits = Limits { max_result_bytes: rules.max_bytes.unwrap_or(limits.max_result_bytes), ..limits.clone() };
        let limit = limits.result_bytes();
        let is_unclear = outcome.may_have_taken_effect() && !tool.is_repeatable();
        match outcome.without_secrets(&self.store.secrets) {
            Outcome::Returned(output) => {
                Outcome::Returned(self.fit_output(run, tool, rules.check, limit, output).await)
            }
            Outcome::Failed(CallFailure { kind, message }) => {
                let tells = is_unclear && !message.contains("taken effect");
                let note = if tells { effect_note(&message) } else { String::new() };
                let message = bounded_message(message, limit - note.len()) + &note;
                Outcome::Failed(CallFailure { kind, message })
            }
            Outcome::Unknown => Outcome::Unknown,
        }
    }

    async fn fit_output(
        &self,
        run: &RunId,
        tool: &Tool,
        check: ResultCheck,
        limit: usize,
        mut output: ToolOutput,
    ) -> ToolOutput {
        let schema_violations = match check {
            ResultCheck::Off => Vec::new(),
            ResultCheck::Warn | ResultCheck::Fail => self.schema_violations(tool, &output).await,
        };
        // The unreadable content may be what the model asked for.
        let is_unreadable = output.problems.iter().any(|problem| problem.rule == Problem::UNREADABLE_CONTENT);
        output.is_error |= is_unreadable || (check == ResultCheck::Fail && !schema_violations.is_empty());
        output.problems.extend(schema_violations);
        let note = note(tool, &output.problems, limit / NOTE_PART);
        let room = limit - note.as_ref().map_or(0, |note| 2 * note.len());
        let mut output = self.store_excess(run, room, output).await;
        output.content.extend(note.map(Part::text));
        output
    }

    /// The result within its limit, with the omitted part stored. The call has happened and may have had effects: if
    /// nothing can be stored, its result is recorded all the same, without the omitted part.
    async fn store_excess(&self, run: &RunId, limit: usize, output: ToolOutput) -> ToolOutput {
        let (fit, wholes) = bounded(output.clone(), limit, self.overflow_storage());
        match self.keep_all(run, wholes).await {
            Ok(()) => fit,
            Err(error) => {
                tracing::warn!(%run, %error, "failed to store large result");
                bounded(output, limit, OverflowStorage::Failed("the store could not be used")).0
            }
        }
    }

    /// The violations of the tool's output schema by the structured form. A result that the tool reports as an error is
    /// not validated.
    async fn schema_violations(&self, tool: &Tool, output: &ToolOutput) -> Vec<Problem> {
        if tool.output_schema.is_none() || output.is_error {
            return Vec::new();
        }
        let Some(structured) = &output.structured else {
            return vec![Problem::whole(
                "structured",
                "the tool declares an output schema, and returned no structured result",
            )];
        };
        match self.inputs.check_result(tool, structured).await {
            InputFindings::Valid => Vec::new(),
            InputFindings::Invalid(problems) => problems.into_iter().map(brief).collect(),
        }
    }

    /// Whether there is a store for large content.
    pub fn overflow_storage(&self) -> OverflowStorage<'static> {
        match &self.blobs {
            Some(_) => OverflowStorage::UpTo(MAX_BLOB_BYTES),
            None => OverflowStorage::Nowhere("there is no place for large results here"),
        }
    }

    /// Stores the content that a result is about to name. Durable on return.
    pub async fn keep_all(&self, run: &RunId, wholes: Vec<Blob>) -> Result<(), BlobError> {
        let Some(blobs) = &self.blobs else { return Ok(()) };
        for blob in wholes {
            self.put(blobs.as_ref(), run, blob).await?;
        }
        Ok(())
    }
}

/// The reason why an elicitation request cannot be journaled, if it is too large: an event that could be written and
/// not read back would end its run.
pub(super) fn oversize_reason(needed: &ElicitationRequest) -> Option<String> {
    let is_too_deep = |question: &Question| match question {
        Question::Form { schema, .. } => json::is_deeper_than(schema, json::MAX_DEPTH),
        Question::Url { .. } => false,
    };
    if needed.questions.values().any(is_too_deep) {
        return Some(format!("a form in it is nested deeper than {} levels", json::MAX_DEPTH));
    }
    let bytes = serde_json::to_string(needed).map_or(usize::MAX, |json| json.len());
    (bytes > QUESTIONS_BYTES).then(|| format!("it has {bytes} bytes; the maximum is {QUESTIONS_BYTES}"))
}

/// The end of the message of a failed call that may have been run: a model would otherwise repeat it.
fn effect_note(message: &str) -> String {
    // The last lines may be quoted from the server.
    let separator = if message.contains('\n') { "\n" } else { ". " };
    format!("{separator}The call may or may not have taken effect; check before you call it again.")
}

fn given_up(why: &str) -> CallReply {
    let message = format!(
        "The server suspended this call with a request that cannot be recorded: {why}. The call was abandoned. It \
         may or may not have taken effect; its server has to ask for less."
    );
    Outcome::failed(FailureKind::Unreadable, message).into()
}

fn note(tool: &Tool, problems: &[Problem], most: usize) -> Option<String> {
    let (violations, schema_violations): (Vec<Problem>, Vec<Problem>) =
        problems.iter().cloned().partition(Problem::violates_mcp);
    let server = tool.server().map(|server| format!(" `{server}`")).unwrap_or_default();
    let violating = format!(
        "[toolgate] The MCP server{server} sent content that violates MCP. That is a fault of the server and not of the \
         arguments; the call was made and may have taken effect:"
    );
    let misfitting = "[toolgate] The structured result does not fit the tool's output schema:";
    let notes = [(violating.as_str(), violations), (misfitting, schema_violations)]
        .into_iter()
        .filter(|(_, found)| !found.is_empty());
    let feedback: Vec<String> = notes.map(|(headline, found)| Problem::feedback(headline, &found)).collect();
    (!feedback.is_empty()).then(|| shortened(&feedback.join("\n"), most))
}

/// Shortens a problem: a server's data determines its text, so it may have any length.
fn brief(problem: Problem) -> Problem {
    let path = shortened(&problem.path, PROBLEM_BYTES);
    Problem { path, message: shortened(&problem.message, PROBLEM_BYTES), ..problem }
}
