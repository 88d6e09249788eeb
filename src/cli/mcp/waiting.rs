//! Waiting for a server, and saying so: nobody should wonder whether anything happens.

use std::future::Future;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval_at};

use crate::cli::interrupt::{Interrupt, Interrupts};
use crate::cli::output::Output;

/// The first word where lines stay, in seconds; each further one after twice the time.
const FIRST_WORD: u64 = 5;

/// How a wait ended.
pub(super) enum Waited<T> {
    /// It came.
    Done(T),
    /// Somebody does not want to wait any more.
    Interrupted(Interrupt),
}

/// Waits one after another, with what is said meanwhile.
pub(super) struct Wait {
    interrupts: Interrupts,
    words: mpsc::UnboundedReceiver<String>,
    speaker: mpsc::UnboundedSender<String>,
}

impl Wait {
    /// Listens to Ctrl-C from now on.
    pub(super) fn new() -> Self {
        let (speaker, words) = mpsc::unbounded_channel();
        Self { interrupts: Interrupts::listen(), words, speaker }
    }

    /// Whoever has something to say while something is waited for.
    pub(super) fn speaker(&self) -> mpsc::UnboundedSender<String> {
        self.speaker.clone()
    }

    /// Waits for something that speaks for itself.
    pub(super) async fn quietly<T>(&mut self, work: impl Future<Output = T>, out: &mut Output) -> Waited<T> {
        out.passed();
        tokio::select! {
            done = work => Waited::Done(done),
            interrupt = self.interrupts.next() => Waited::Interrupted(interrupt),
        }
    }

    /// Waits for something. `doing` says in a word or two what for: it is shown as `starting… 3 s`.
    pub(super) async fn until<T>(&mut self, doing: &str, work: impl Future<Output = T>, out: &mut Output) -> Waited<T> {
        tokio::pin!(work);
        let (began, second) = (Instant::now(), Duration::from_secs(1));
        let mut ticks = interval_at(tokio::time::Instant::now() + second, second);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut next_word = FIRST_WORD;
        let waited = loop {
            tokio::select! {
                biased;
                Some(word) = self.words.recv() => out.note(word),
                done = &mut work => break Waited::Done(done),
                interrupt = self.interrupts.next() => break Waited::Interrupted(interrupt),
                _ = ticks.tick() => {
                    let seconds = began.elapsed().as_secs();
                    let line = out.note_paint().dim(format!("{doing}… {seconds} s"));
                    if seconds >= next_word && !out.notes_are_seen() {
                        next_word *= 2;
                        out.note(&line);
                    }
                    out.passing(&line);
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
