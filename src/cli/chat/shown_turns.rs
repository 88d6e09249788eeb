//! Turns that a conversation shows and did not make: those before it was continued, and those of another process.

use super::conversation::Conversation;
use crate::cli::error::CliError;
use crate::cli::follow::Display;
use crate::cli::output::Output;
use crate::cli::runs::copied_length;
use crate::cli::text::count;
use crate::core::id::RunId;
use crate::runner::SessionMessage;
use crate::service::events_of;

/// The number of turns that a continued conversation begins with.
const SHOWN_TURNS: usize = 3;

impl Conversation<'_> {
    /// Prints the last turns of the session as they were shown while they ran.
    pub(super) async fn show_history(&self, messages: &[SessionMessage], out: &mut Output) -> Result<(), CliError> {
        let mut turns: Vec<&RunId> = messages.iter().map(|earlier| &earlier.run).collect();
        turns.dedup();
        let (before, last) = turns.split_at(turns.len().saturating_sub(SHOWN_TURNS));
        if let (false, Some(session)) = (before.is_empty(), &self.session) {
            let before = count(before.len(), "earlier turn");
            out.line(out.paint().dim(format!("… {before}: `toolgate sessions messages {session}`")));
        }
        for run in last {
            self.show_turn(run, out).await?;
        }
        Ok(())
    }

    async fn show_turn(&self, run: &RunId, out: &mut Output) -> Result<(), CliError> {
        let journal = self.app.runner.journal(run).await?;
        let mut display = Display::history(&self.views, copied_length(&journal), out);
        events_of(run, &journal).iter().for_each(|event| display.event(&event.event, out));
        display.unsettled(out);
        Ok(())
    }

    /// Shows the latest turn if another process made it, and refuses what the person entered without having seen it.
    pub(super) async fn refuse_unseen(&mut self, out: &mut Output) -> Result<(), CliError> {
        let newest = self.newest_run().await?;
        let (Some(session), Some(run)) = (&self.session, &newest) else { return Ok(()) };
        if self.forks || self.last.is_none() || newest == self.last {
            return Ok(());
        }
        out.note(format!("another process continued this conversation (`toolgate sessions messages {session}`):"));
        self.show_turn(run, out).await?;
        self.last = newest;
        Err(CliError::usage("nothing was done, because you had not seen this turn")
            .with_remedy("enter it again (Up recalls it)"))
    }
}
