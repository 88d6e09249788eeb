//! A line at a prompt of a command, unless a signal comes first.

use super::interrupt::{Interrupt, Interrupts};
use super::prompt::{self, Menu, Recall};

/// What a person entered at a prompt.
pub(super) enum Entered {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, Esc at a choice, or the terminal is gone.
    End,
    /// A signal ends the program.
    Leave,
}

/// What a line is for.
pub(super) enum LineInput {
    /// The next message of a conversation.
    Message(Recall),
    /// The number of an option. Esc leaves the question.
    Choice(Menu),
}

/// Reads the next line.
pub(super) async fn next_line(question: &str, input: LineInput, interrupts: &mut Interrupts) -> Entered {
    let Some(mut prompt) = prompt::at_terminal() else { return Entered::End };
    // Dropping it withdraws the prompt.
    let _open = prompt.withdrawal();
    let question = question.to_owned();
    let reading = tokio::task::spawn_blocking(move || match input {
        LineInput::Message(recall) => prompt.message(&question, &recall),
        LineInput::Choice(menu) => prompt.pick(&question, &menu),
    });
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
