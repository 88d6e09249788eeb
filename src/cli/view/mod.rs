//! Views of a run. Pure: they turn lifecycle events, journals and pending items into lines and do not print them.

mod activity;
mod approval;
mod approval_scope;
mod conversation;
mod explain;
mod feedback;
mod live_view;
mod markdown;
mod pending;
mod question;
mod result_forms;
mod show;
mod spans;
mod summary;
#[cfg(test)]
mod tests;
mod typesetter;
mod usage;
mod waterfall;
mod whole_call;
mod words;

pub(super) use activity::{Activities, StartingServers};
pub(super) use approval::{
    brief_because, by_way_of, circumstances, clock, marked, origin, second_look_at_arguments, term, whole,
};
pub(super) use approval_scope::{any_arguments_warning, decided};
pub(super) use conversation::message_lines;
pub(super) use explain::Explanation;
pub(super) use feedback::feedback_lines;
pub(super) use live_view::{AnswerPlacement, LiveOutput, LiveView, SharedViewState};
pub(super) use pending::{RepeatedFlags, can_continue_with_message, continuing_keys, pending_lines};
pub(super) use question::{answering, question_lines};
pub(super) use result_forms::ShownForms;
pub(super) use summary::RunSummary;
pub(super) use usage::{MissingUsage, UsageJson, cost, dollars, tokens, total};
pub(super) use waterfall::Waterfall;
pub(super) use whole_call::WholeCall;
pub(super) use words::{findings, in_words, left_out_lines, media_line};

use super::paint::Paint;

#[derive(Clone, Copy, Debug)]
pub(super) struct DisplaySettings {
    /// Coloured or plain.
    pub(super) paint: Paint,
    /// The number of columns.
    pub(super) width: usize,
}

impl DisplaySettings {
    /// The columns that remain after `used` columns; never too few to show anything.
    pub(super) fn room(self, used: usize) -> usize {
        self.width.saturating_sub(used).max(24)
    }
}
