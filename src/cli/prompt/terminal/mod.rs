//! Terminal line editor: a small editor with bracketed paste that always restores the terminal. Decision 0014 explains
//! why it is not a library.

mod bell;
mod block;
mod device;
mod draft;
mod editor;
mod keys;
mod line;
mod open_line;
mod recalled;
mod signals;
pub(in crate::cli) mod typed_ahead;
mod view;

use std::io::{self, PipeReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_current_process_group};

use self::block::Block;
pub(in crate::cli) use self::device::announce;
use self::device::{BURST, Command, Device, PromptId};
use self::keys::{Bindings, Decoder, Key};
use super::console::{Accepts, Console, Entry};
use crate::cli::paint::Paint;
use crate::cli::terminal_escape;
use crate::cli::wrap::wrap;

/// The longest wait for the end of a paste that began before the question was shown.
const REST_OF_PASTE: Duration = Duration::from_secs(2);
/// The longest time that an interrupted prompt waits for the program to withdraw it.
const WITHDRAWAL: Duration = Duration::from_secs(2);

/// The terminal with an open prompt. Dropping it closes the prompt.
pub(in crate::cli) struct Terminal {
    id: PromptId,
    device: Arc<Device>,
    commands: PipeReader,
    /// The key decoder, set in line mode.
    keyboard: Option<Keyboard>,
    block: Block,
    /// Whether the last letter that decided was pressed several times.
    is_repeated: bool,
}

struct Keyboard {
    decoder: Decoder,
    /// Whether the terminal echoed input before. If not, the editor does not echo it either.
    echoes: bool,
}

/// A guard that withdraws the prompt when dropped.
pub(in crate::cli) struct Withdrawal(PromptId);

/// A guard for the end of the program: when dropped, it restores the terminal and discards input typed for the program.
pub(in crate::cli) struct TerminalGuard;

/// An event of an open prompt.
enum PromptEvent {
    Keys(Vec<Key>),
    /// No event within the wait.
    Quiet,
    Commanded(Command),
}

impl Terminal {
    /// Opens a prompt at the terminal of this process, if there is one.
    pub(super) fn open() -> Option<Self> {
        Self::opened(true)
    }

    /// Opens the terminal of this process, if there is one, to read keys without a question.
    pub(super) fn open_for_keys() -> Option<Self> {
        Self::opened(false)
    }

    fn opened(asks: bool) -> Option<Self> {
        let (id, device, commands) = device::open(asks)?;
        signals::listen();
        Some(Self { id, device, commands, keyboard: None, block: Block::default(), is_repeated: false })
    }

    /// A guard that withdraws this prompt when dropped.
    pub(super) fn withdrawal(&self) -> Withdrawal {
        Withdrawal(self.id)
    }

    /// Waits until Esc is pressed alone; fails when the prompt is withdrawn. Other keys are text for the next message,
    /// except those that send a signal. A process in the background waits for no key: reading one would stop it.
    pub(super) fn escape(&mut self) -> io::Result<()> {
        loop {
            if !self.device.is_ours() {
                return Err(device::withdrawn());
            }
            self.keyboard()?;
            let (is_readable, _) = self.device.wait(&self.commands, None)?;
            if is_readable && !self.device.is_ours() {
                return Err(device::withdrawn());
            }
            match self.next_event(Some(Duration::ZERO))? {
                PromptEvent::Keys(keys) if keys.contains(&Key::Interrupt) => {
                    // The terminal sends the next Ctrl-C itself.
                    device::suspend();
                    send(Signal::INT)?;
                    return Err(device::withdrawn());
                }
                PromptEvent::Keys(keys) => {
                    let is_escaped = keys.contains(&Key::Escape);
                    for key in keys {
                        self.handle_key(&key)?;
                        typed_ahead::edit(key);
                    }
                    if is_escaped {
                        return Ok(());
                    }
                }
                PromptEvent::Quiet | PromptEvent::Commanded(_) => {}
            }
        }
    }

    fn keyboard(&mut self) -> io::Result<&mut Keyboard> {
        if self.keyboard.is_none() {
            let former = device::enter(self.id)?;
            let echoes = former.local_modes.contains(rustix::termios::LocalModes::ECHO);
            self.keyboard = Some(Keyboard { decoder: Decoder::new(Bindings::new(&former)), echoes });
        }
        self.keyboard.as_mut().ok_or_else(device::withdrawn)
    }

    fn next_event(&mut self, within: Option<Duration>) -> io::Result<PromptEvent> {
        self.keyboard()?;
        let (is_readable, is_commanded) = self.device.wait(&self.commands, within)?;
        if is_commanded {
            let mut command = [0];
            return match self.commands.read(&mut command)? {
                0 => Err(device::withdrawn()),
                _ if command == [Command::Redraw as u8] => Ok(PromptEvent::Commanded(Command::Redraw)),
                _ => Ok(PromptEvent::Commanded(Command::ShowNotices)),
            };
        }
        if !is_readable {
            return Ok(PromptEvent::Quiet);
        }
        let mut bytes = [0; 4096];
        let count = match device::read(self.id, &mut bytes)? {
            None => return Ok(PromptEvent::Keys(Vec::new())),
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(count) => count,
        };
        let mut keys = self.keyboard()?.decoder.decode(bytes.get(..count).unwrap_or_default());
        // The rest of a sequence arrives in the same burst; after Esc itself there is no more.
        if self.keyboard()?.decoder.is_after_escape()
            && self.device.wait(&self.commands, Some(BURST))? == (false, false)
        {
            keys.extend(self.keyboard()?.decoder.take_escape());
        }
        Ok(PromptEvent::Keys(keys))
    }

    /// Handles Ctrl-C. The signal reaches the part of the program that decides its effect, which withdraws this prompt.
    /// Without a handler the signal ends the program, so the terminal is restored before it is sent.
    fn interrupted(&mut self) -> io::Error {
        while matches!(self.next_event(Some(BURST)), Ok(PromptEvent::Keys(_))) {}
        let shown = self.device.write("^C\n");
        device::suspend();
        let sent = shown.and_then(|()| send(Signal::INT));
        let until = Instant::now() + WITHDRAWAL;
        while sent.is_ok()
            && let Some(rest) = until.checked_duration_since(Instant::now())
            && self.next_event(Some(rest)).is_ok()
        {}
        device::withdrawn()
    }

    /// Applies a key that acts everywhere.
    fn handle_key(&mut self, key: &Key) -> io::Result<()> {
        match key {
            Key::Interrupt => Err(self.interrupted()),
            Key::Quit => send(Signal::QUIT),
            Key::Suspend => send(Signal::TSTP),
            Key::Char(_)
            | Key::Enter
            | Key::Erase
            | Key::EraseWord
            | Key::EraseLine
            | Key::EraseRest
            | Key::InsertErased
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::WordLeft
            | Key::WordRight
            | Key::Earlier
            | Key::Later
            | Key::Search
            | Key::Break
            | Key::BackTab
            | Key::Home
            | Key::End
            | Key::EndOfInput
            | Key::Escape
            | Key::Paste(_)
            | Key::OversizedPaste => Ok(()),
        }
    }

    /// Drains and returns the rest of the burst of the last key, which is not meant for the next question.
    fn rest_of_burst(&mut self, begun: impl IntoIterator<Item = Key>) -> io::Result<Vec<Key>> {
        let mut rest: Vec<Key> = begun.into_iter().collect();
        let mut obeyed = 0;
        loop {
            for key in rest.get(obeyed..).unwrap_or_default().to_vec() {
                self.handle_key(&key)?;
            }
            obeyed = rest.len();
            let within = if self.keyboard()?.decoder.is_in_paste() { REST_OF_PASTE } else { BURST };
            match self.next_event(Some(within))? {
                PromptEvent::Keys(keys) => rest.extend(keys),
                PromptEvent::Commanded(_) => {}
                PromptEvent::Quiet => return Ok(rest),
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.device.write(text)
    }
}

impl Console for Terminal {
    fn paint(&self) -> Paint {
        Paint::choose(true, |name| std::env::var(name).ok())
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        let columns = self.device.columns();
        let text = format!("{}\n", terminal_escape::escape(&wrap(text, columns), self.paint()));
        self.block.add(&text, columns);
        self.write(&text)
    }

    fn begin_question(&mut self) {
        self.block = Block::default();
    }

    /// Keys pressed while the run was executing, or pressed twice, would approve a call that the user has not seen. A message
    /// that was being typed is ended before, so that none of its letters decides.
    fn discard_typed_ahead(&mut self) -> io::Result<()> {
        self.end_typing()
    }

    fn editor(&mut self, text: &str, error: Option<&str>) -> io::Result<Option<String>> {
        let Some(command) = editor::command() else { return Ok(None) };
        self.keyboard()?;
        device::suspend();
        let edited = editor::edit(&command, text, error);
        device::resume();
        self.block.displace();
        // No line is open, so there is none to draw again.
        if self.device.wait(&self.commands, Some(Duration::ZERO))?.1 && self.commands.read(&mut [0])? == 0 {
            return Err(device::withdrawn());
        }
        edited.map(Some)
    }

    fn line(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<Entry>> {
        self.read_line(question, accepts)
    }
}

/// Sends the signal of a key to the processes that the system would send it to.
fn send(signal: Signal) -> io::Result<()> {
    Ok(kill_current_process_group(signal)?)
}

impl Drop for Terminal {
    fn drop(&mut self) {
        device::close(self.id);
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        device::withdraw(self.0);
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        device::end();
    }
}

/// Claims the terminal, because a question can come at any time: from now on no typed input reaches the shell.
pub(super) fn claim() {
    device::claim();
}
