//! Views of a run. Pure: they turn lifecycle events, journals and pending items into lines and do not print them.

mod approval;
mod asked;
mod explain;
mod live_view;
mod pending;
mod reach;
mod show;
mod spent;
mod summary;
#[cfg(test)]
mod tests;
mod waterfall;
mod words;

pub(super) use approval::{
    because, by_way_of, circumstances, clock, origin, pretty, second_look_at_arguments, term, whole,
};
pub(super) use asked::{answering, question_lines};
pub(super) use explain::Explanation;
pub(super) use live_view::{AnswerPlacement, LiveView, Shown};
pub(super) use pending::{Again, what_is_owed};
pub(super) use spent::{Gaps, Spent, dollars, tokens};
pub(super) use summary::Picture;
pub(super) use waterfall::Waterfall;
pub(super) use words::{findings, in_words, left_out_line, media_line};

use super::paint::Paint;

/// Display settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Coloured or plain.
    pub(super) paint: Paint,
    /// The number of columns.
    pub(super) width: usize,
}

impl Look {
    /// The columns that remain after `used` columns; never too few to show anything.
    pub(super) fn room(self, used: usize) -> usize {
        self.width.saturating_sub(used).max(24)
    }
}
