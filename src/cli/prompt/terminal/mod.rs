//! Terminal line editor: a small editor with bracketed paste that always restores the terminal. Decision 0014 explains
//! why it is not a library.

mod bell;
mod block;
mod device;
mod draft;
mod editor;
mod keys;
mod line;
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
use self::line::Line;
use self::recalled::{Recalled, listed};
use self::view::View;
use super::console::{Accepts, Console, Entry};
use super::menu::Menu;
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
        Some(Self { id, device, commands, keyboard: None, block: Block::default() })
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

    /// Shows the notices above the question.
    fn show_notices(&self, view: &mut View) -> io::Result<()> {
        let notices = device::take_notices(self.id);
        if notices.is_empty() {
            return Ok(());
        }
        view.erase()?;
        self.write(&self.block.with_notices(&notices, &self.device))
    }

    /// Finishes a line, which is part of the question from now on.
    fn finish(&mut self, view: &mut View, line: &Line) -> io::Result<()> {
        view.finish(line)?;
        self.block.add(&view.finished(), self.device.columns());
        Ok(())
    }

    /// A question as it is drawn, below the options of its menu.
    fn asked(&self, question: &str, menu: Option<&Menu>, marked: Option<usize>) -> String {
        let (columns, rows) = (self.device.columns(), self.device.rows());
        let question = wrap(question, columns);
        // A row is left for the answer, and one for the number of options that are not shown.
        let room = rows.saturating_sub(question.split('\n').count() + 2);
        let options = menu.map(|menu| menu.text(marked, columns, room)).unwrap_or_default();
        terminal_escape::escape(&format!("{options}{question}"), Paint::Plain)
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
        let menu = if let Accepts::Choice(menu) = accepts { Some(menu) } else { None };
        let mut marked = menu.and_then(Menu::usual);
        let mut view = View::new(self.asked(question, menu, marked), self.device.clone(), self.keyboard()?.echoes);
        let mut line = Line::default();
        let mut recalled = Recalled::new(accepts);
        match accepts {
            Accepts::Change(text) => line.replace(text),
            Accepts::Message(recall) => {
                let (text, is_entered) = match recall.sends_typed_ahead {
                    true => typed_ahead::take(),
                    false => (self.restored()?, false),
                };
                line.replace(&text);
                if is_entered {
                    self.finish(&mut view, &line)?;
                    return Ok(Some(Entry::new(&line)));
                }
            }
            Accepts::Draft => line.replace(&typed_ahead::line()),
            Accepts::Text | Accepts::Lines | Accepts::Key | Accepts::Choice(_) => {}
        }
        self.show_notices(&mut view)?;
        view.draw(&line)?;
        let mut rings_after = bell::after(accepts);
        loop {
            let keys = match self.next_event(rings_after)? {
                PromptEvent::Keys(keys) => keys,
                PromptEvent::Commanded(command) => {
                    if command == Command::Redraw {
                        view.begin_again();
                        self.device.write(self.block.again(&self.device))?;
                    }
                    self.show_notices(&mut view)?;
                    view.draw(&line)?;
                    continue;
                }
                PromptEvent::Quiet => {
                    if rings_after.take().is_some() {
                        self.write(bell::signal(self.device.is_smart()))?;
                    }
                    continue;
                }
            };
            let mut keys = keys.into_iter();
            while let Some(key) = keys.next() {
                match key {
                    Key::Char(_) if accepts == Accepts::Key => {
                        line.edit(key.clone());
                        let rest = self.rest_of_text(&key, keys)?;
                        if Self::is_message(&key, &rest) {
                            // The person began to type, and did not decide.
                            view.erase()?;
                            [key].into_iter().chain(rest).for_each(typed_ahead::edit);
                            self.end_typing()?;
                            view.begin_again();
                            line = Line::default();
                            break;
                        }
                        self.finish(&mut view, &line)?;
                        // Enter after the letter belongs to it.
                        let rest = rest.strip_prefix(&[Key::Enter]).unwrap_or(&rest);
                        return Ok(Some(Entry { dropped: line.drops(rest), ..Entry::new(&line) }));
                    }
                    Key::Enter
                        if (recalled.is_message() || accepts == Accepts::Draft) && line.continue_after_backslash() => {}
                    Key::Earlier | Key::Later => match menu.filter(|_| self.device.is_smart() && line.is_empty()) {
                        Some(menu) => {
                            marked = menu.step(marked, key == Key::Later);
                            view.ask(self.asked(question, Some(menu), marked));
                        }
                        None => recalled.step(&key, &mut line),
                    },
                    Key::Search => recalled.search(&mut line),
                    Key::Char('\t') if recalled.is_message() => {
                        let candidates = recalled.complete(&mut line);
                        if !candidates.is_empty() {
                            self.finish(&mut view, &line)?;
                            self.say(&listed(&candidates))?;
                            view.begin_again();
                        }
                    }
                    Key::BackTab => {
                        if let Some(command) = recalled.back_tab() {
                            // The next message prompt begins with what was typed.
                            typed_ahead::put(&line.text());
                            line.replace(command);
                            self.finish(&mut view, &line)?;
                            self.rest_of_burst(keys)?;
                            return Ok(Some(Entry::new(&line)));
                        }
                    }
                    Key::Enter => {
                        if let Some(at) = marked.filter(|_| line.is_empty() && marked != menu.and_then(Menu::usual)) {
                            line.replace(&(at + 1).to_string());
                        }
                        self.finish(&mut view, &line)?;
                        let rest = self.rest_of_burst(keys)?;
                        let is_last = rest.contains(&Key::EndOfInput);
                        if recalled.is_message() {
                            // The next message prompt begins with it.
                            rest.into_iter().for_each(typed_ahead::edit);
                            return Ok(Some(Entry { is_last, ..Entry::new(&line) }));
                        }
                        if accepts == Accepts::Draft {
                            typed_ahead::put(&line.text());
                            [Key::Enter].into_iter().chain(rest).for_each(typed_ahead::edit);
                            return Ok(Some(Entry::default()));
                        }
                        return Ok(Some(Entry { dropped: line.drops(&rest), is_last, ..Entry::new(&line) }));
                    }
                    Key::EndOfInput if line.is_empty() => {
                        self.finish(&mut view, &line)?;
                        self.rest_of_burst(keys)?;
                        return Ok(None);
                    }
                    Key::Escape if accepts.is_left_by_escape() => {
                        self.finish(&mut view, &line)?;
                        if accepts == Accepts::Draft {
                            typed_ahead::put(&line.text());
                        }
                        return Ok(None);
                    }
                    Key::Paste(_) | Key::OversizedPaste if accepts == Accepts::Key => {
                        self.finish(&mut view, &line)?;
                        self.rest_of_burst(keys)?;
                        return Ok(Some(Entry { has_paste: true, ..Entry::default() }));
                    }
                    Key::OversizedPaste => {
                        self.finish(&mut view, &line)?;
                        self.say("  the paste is too large and was dropped; pass a file instead (`--file`)")?;
                        view.begin_again();
                    }
                    Key::Interrupt if recalled.is_message() && !line.is_empty() => recalled.put_aside(&mut line),
                    Key::Interrupt | Key::Quit | Key::Suspend => self.handle_key(&key)?,
                    Key::Char(_)
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
                    | Key::Break
                    | Key::Home
                    | Key::End
                    | Key::EndOfInput
                    | Key::Escape
                    | Key::Paste(_) => line.edit(key),
                }
            }
            if accepts == Accepts::Draft {
                typed_ahead::put(&line.text());
                if line.is_empty() {
                    self.finish(&mut view, &line)?;
                    return Ok(Some(Entry::default()));
                }
            }
            view.draw(&line)?;
        }
    }
}

/// Sends the signal of a key to the processes that the system would send it to.
fn send(signal: Signal) -> io::Result<()> {
    Ok(kill_current_process_group(signal)?)
}

impl Entry {
    fn new(line: &Line) -> Self {
        Self { text: line.text(), has_paste: line.has_paste(), ..Self::default() }
    }
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
