//! A line at a prompt of a command, unless a signal comes first.

use super::interrupt::{Interrupt, Interrupts};
use super::prompt::{self, Recall};

/// What a person entered at a prompt.
pub(super) enum Entered {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal is gone.
    End,
    /// A signal ends the program.
    Leave,
}

/// Reads the next line.
pub(super) async fn next_line(question: &str, recall: &Recall, interrupts: &mut Interrupts) -> Entered {
    let Some(mut prompt) = prompt::at_terminal() else { return Entered::End };
    // Dropping it withdraws the prompt.
    let _open = prompt.withdrawal();
    let (question, recall) = (question.to_owned(), recall.clone());
    let reading = tokio::task::spawn_blocking(move || prompt.message(&question, &recall));
    tokio::select! {
        biased;
        interrupt = interrupts.next() => match interrupt {
            Interrupt::Stop => Entered::Interrupt,
            Interrupt::Leave => Entered::Leave,
        },
        read = reading => match read {
            Ok(Ok(Some(line))) => Entered::Line(line),
            Ok(Ok(None) | Err(_)) | Err(_) => Entered::End,
        },
    }
}
