//! Progress display while a command waits for a server, so that the user can see that the command is still running.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::cli::interrupt::{Interrupt, Interrupts};
use crate::cli::output::Output;

/// Delay of the first message where lines cannot be overwritten, in seconds. The delay doubles for each further
/// message.
const FIRST_WORD: u64 = 5;

/// The end of a wait.
pub(super) enum WaitOutcome<T> {
    /// The result arrived.
    Done(T),
    /// The user interrupted the wait.
    Interrupted(Interrupt),
}

/// A sequence of waits, with the messages that they show.
pub(super) struct Wait {
    interrupts: Interrupts,
    words: mpsc::UnboundedReceiver<String>,
    speaker: mpsc::UnboundedSender<String>,
}

impl Wait {
    /// Listens for Ctrl-C from this moment.
    pub(super) fn new() -> Self {
        let (speaker, words) = mpsc::unbounded_channel();
        Self { interrupts: Interrupts::listen(), words, speaker }
    }

    /// A sender for messages to show during a wait.
    pub(super) fn speaker(&self) -> mpsc::UnboundedSender<String> {
        self.speaker.clone()
    }

    /// Waits for work that shows its own progress.
    pub(super) async fn quietly<T>(&mut self, work: impl Future<Output = T>, out: &mut Output) -> WaitOutcome<T> {
        out.passed();
        tokio::select! {
            done = work => WaitOutcome::Done(done),
            interrupt = self.interrupts.next() => WaitOutcome::Interrupted(interrupt),
        }
    }

    /// Waits for work. `doing` names the work in a word or two, for a display like `starting… 3 s`.
    pub(super) async fn until<T>(
        &mut self,
        doing: &str,
        work: impl Future<Output = T>,
        out: &mut Output,
    ) -> WaitOutcome<T> {
        tokio::pin!(work);
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut ticks = interval_at(tokio::time::Instant::now() + second, second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut next_word = FIRST_WORD;
        let waited = loop {
            tokio::select! {
                biased;
                Some(word) = self.words.recv() => out.note(word),
                done = &mut work => break WaitOutcome::Done(done),
                interrupt = self.interrupts.next() => break WaitOutcome::Interrupted(interrupt),
                _ = ticks.tick() => {
                    let seconds = began.elapsed().as_secs();
                    let line = out.note_paint().dim(format!("{doing}… {seconds} s"));
                    if seconds >= next_word && !out.shows_passing() {
                        next_word *= 2;
                        out.note(&line);
                    }
                    out.passing(&[line]);
                }
            }
        };
        out.passed();
        while let Ok(word) = self.words.try_recv() {
            out.note(word);
        }
        waited
    }
}
