//! Policy analysis: lints of rules, the verdict of a changed policy on past calls, and rules suggested from past approvals.
//!
//! All functions are pure: their callers read the journals and the grants, and render the findings.

mod backtest;
mod command_proposal;
mod condition_words;
mod decision_history;
mod grant_proposal;
mod grant_proposals;
mod suggestion;
mod warnings;

pub use backtest::{PastCall, PastOutcome, past_calls};
pub use condition_words::{condition_in_words, nearest_command_criteria};
pub use decision_history::{Approval, DecisionHistory, ExclusionReason, RefusedCall, arguments_hash};
pub use grant_proposal::{GrantProposal, PastCoverage};
pub use grant_proposals::{HARMLESS, command_argument, grant_proposals, likely_proposal};
pub use suggestion::{SkipReason, SkippedTool, SuggestedRule, Suggestion, suggestions};
pub use warnings::{RuleWarning, count_examples, examples_missing, matches_any_server, rule_warnings};
