//! Findings of a model check.

use std::fmt;

use serde::Serialize;

use crate::cli::paint::Paint;
use crate::cli::text::one_line;
use crate::core::error::{ErrorCode, Failure};

/// The most characters of the model's text that a line quotes.
const QUOTED: usize = 60;

/// Remedies for failed model calls.
const REMEDIES: &[(ErrorCode, &str)] = &[
    (ErrorCode::ProviderAuth, "check the model's `api_key`, and that it belongs to this server"),
    (ErrorCode::ProviderBilling, "check the balance and the limits of the account with the provider"),
    (ErrorCode::ProviderRateLimit, "wait a little and try again"),
    (ErrorCode::ProviderUnavailable, "check the model's `base_url`, and that the server is running"),
    (ErrorCode::ProviderTimeout, "try again, or give the model longer `timeouts`"),
    (ErrorCode::ProviderRejected, "check that the server has this `model`, and that it takes what the message names"),
    (ErrorCode::ProviderInvalidResponse, "check that `base_url` leads to an API of the configured kind"),
    (ErrorCode::OutputTruncated, "raise the model's `max_tokens`"),
];

/// A capability under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Capability {
    Answers,
    /// The model streams its text.
    Streaming,
    /// The model calls the available tool with valid arguments.
    ToolCall,
    /// The model accepts the result of the tool and continues.
    ResultAccepted,
    /// The model calls several tools in one reply.
    ParallelCalls,
    /// The answer matches the requested schema.
    StructuredOutput,
    /// The provider reports token usage.
    Usage,
    /// The cost is known.
    Cost,
}

impl Capability {
    /// The capabilities that cannot be tested if the model does not answer.
    pub(super) const WITHOUT_AN_ANSWER: [Self; 4] =
        [Self::ToolCall, Self::ResultAccepted, Self::ParallelCalls, Self::StructuredOutput];
}

/// The result for one capability.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: Capability,
    /// Whether it works; `None` if it could not be tested.
    pub(super) works: Option<bool>,
    /// The observation behind the result.
    pub(super) evidence: String,
    /// The failure of the call, if it failed.
    pub(super) error: Option<Failure>,
    /// How to fix it.
    pub(super) remedy: Option<String>,
}

impl Finding {
    /// A finding that the capability works, with the observation.
    pub(super) fn works(check: Capability, evidence: impl Into<String>) -> Self {
        Self::new(check, Some(true), evidence)
    }

    /// A finding that the capability does not work, with the observation.
    pub(super) fn lacks(check: Capability, evidence: impl Into<String>) -> Self {
        Self::new(check, Some(false), evidence)
    }

    /// A finding that the capability could not be tested, with the reason.
    pub(super) fn untried(check: Capability, evidence: impl Into<String>) -> Self {
        Self::new(check, None, evidence)
    }

    /// A finding that the test call failed.
    pub(super) fn failed(check: Capability, failure: &Failure) -> Self {
        let remedy = remedy_for(failure.code).map(str::to_owned);
        Self { error: Some(failure.clone()), remedy, ..Self::lacks(check, "the call failed") }
    }

    /// Adds a remedy.
    pub(super) fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// The lines of this finding, printed after the findings `before`: each remedy is printed once.
    pub(super) fn lines(&self, before: &[Self], paint: Paint) -> Vec<String> {
        let mark = match self.works {
            Some(true) => paint.green("✓"),
            Some(false) => paint.red("✗"),
            None => paint.yellow("?"),
        };
        let text = self.error.as_ref().map_or_else(|| self.evidence.clone(), ToString::to_string);
        let mut lines = vec![format!("  {mark} {:<18}{text}", self.check.to_string())];
        let is_new = |remedy: &&String| before.iter().all(|earlier| earlier.remedy.as_ref() != Some(*remedy));
        lines.extend(self.remedy.iter().filter(is_new).map(|remedy| format!("    {} {remedy}", paint.cyan("help:"))));
        lines
    }

    fn new(check: Capability, works: Option<bool>, evidence: impl Into<String>) -> Self {
        Self { check, works, evidence: evidence.into(), error: None, remedy: None }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Answers => "answers",
            Self::Streaming => "streaming",
            Self::ToolCall => "tool call",
            Self::ResultAccepted => "result accepted",
            Self::ParallelCalls => "parallel calls",
            Self::StructuredOutput => "structured output",
            Self::Usage => "usage",
            Self::Cost => "cost",
        })
    }
}

/// The model's text in quotation marks, shortened.
pub(super) fn quoted(text: &str) -> String {
    match text.trim() {
        "" => "nothing".into(),
        text => format!("\"{}\"", one_line(text, QUOTED)),
    }
}

/// The remedy for an error code, if there is one.
pub(in crate::cli) fn remedy_for(code: ErrorCode) -> Option<&'static str> {
    REMEDIES.iter().find(|(known, _)| *known == code).map(|(_, remedy)| *remedy)
}
