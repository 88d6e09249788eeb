//! Empty answers. Some models answer a tool result with neither text, call nor media: Gemini in some deployments in one of
//! ten turns (google-gemini/gemini-cli 28351), Claude after results that look final to it. The model is asked once
//! more, as the correction of an answer, and the run completes with a warning if the next answer is empty, too.

use super::state::{Correction, Phase};
use super::{Event, Output, OutputVerdict, Run};
use crate::chat::Stop;
use crate::tool::Problem;

/// The request to go on. Anthropic's documentation names a user message as the remedy: a repeated request gets an empty
/// answer again.
pub(super) const CONTINUE_NOTE: &str = "[toolgate] Your last reply was empty. Continue: call the tools that you still \
                                        need, or answer the user in text.";

impl Run {
    /// The correction of an empty answer, if the model was not just asked once more. A run that validates its answers
    /// corrects an empty one like every other.
    pub(super) fn empty_answer_correction(&self, answer: &Output) -> Option<Event> {
        let budget = &self.budget;
        let is_asked_again = self.correction == Some(Correction::EmptyAnswer);
        if !answer.is_blank() || is_asked_again || budget.corrections >= budget.limits.max_corrections {
            return None;
        }
        let problem = Problem::whole("empty", "the answer has neither text nor media");
        Some(Event::OutputValidated { verdict: OutputVerdict::Invalid { problems: vec![problem] } })
    }

    /// Whether this verdict about the answer of the current phase may be recorded without a validator.
    pub(super) fn is_about_empty_answer(&self, verdict: &OutputVerdict) -> bool {
        let Phase::Validating { answer, stop, tool_access } = &self.phase else { return false };
        matches!(verdict, OutputVerdict::Invalid { .. })
            && !self.started.spec.rules.validate_output
            && !self.is_last_word(*tool_access)
            && Stop::is_whole(*stop)
            && self.empty_answer_correction(answer).is_some()
    }
}
