//! Prompts at the terminal: a small line editor with bracketed paste, over a terminal that is always given back as it was.
//! Why it is no library: decision 0014.

mod device;
mod keys;
mod line;
mod signals;

use std::io::{self, PipeReader, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_current_process_group};

use self::device::{BURST, Device, PromptId};
use self::keys::{Bindings, Decoder, Key};
use self::line::{Line, layout};
use super::console::{Accepts, Console, Entry};
use crate::cli::guard;
use crate::cli::paint::Paint;

/// A person needs longer to read a question and to answer it. A key that is pressed twice comes within this time.
const READING: Duration = Duration::from_millis(300);
/// How long the end of a paste is waited for that began before its question was there.
const REST_OF_PASTE: Duration = Duration::from_secs(2);
/// How long an interrupted prompt waits for the program to withdraw it.
const WITHDRAWAL: Duration = Duration::from_secs(2);

/// The terminal with a prompt open. Dropping it closes the prompt.
pub(in crate::cli) struct Terminal {
    id: PromptId,
    device: Arc<Device>,
    commands: PipeReader,
    /// Known in line mode.
    keyboard: Option<Keyboard>,
}

struct Keyboard {
    decoder: Decoder,
    /// Whether the terminal shows what is typed. One that did not is not shown it.
    echoes: bool,
}

/// Withdraws the prompt when it is dropped.
pub(in crate::cli) struct Withdrawal(PromptId);

/// Gives the terminal back at the end of the program when it is dropped, and discards what was typed for the program.
pub(in crate::cli) struct Restored;

/// What can happen to an open prompt.
enum Heard {
    Keys(Vec<Key>),
    /// Nothing, for as long as was waited.
    Quiet,
    /// The process was suspended and goes on: the prompt is not on the screen any more.
    Resumed,
}

impl Terminal {
    /// Opens a prompt at the terminal of this process, if there is one.
    pub(super) fn open() -> Option<Self> {
        let (id, device, commands) = device::open()?;
        signals::listen();
        Some(Self { id, device, commands, keyboard: None })
    }

    /// What withdraws this prompt.
    pub(super) fn withdrawal(&self) -> Withdrawal {
        Withdrawal(self.id)
    }

    fn keyboard(&mut self) -> io::Result<&mut Keyboard> {
        if self.keyboard.is_none() {
            let former = device::enter(self.id)?;
            let echoes = former.local_modes.contains(rustix::termios::LocalModes::ECHO);
            self.keyboard = Some(Keyboard { decoder: Decoder::new(Bindings::of(&former)), echoes });
        }
        self.keyboard.as_mut().ok_or_else(device::withdrawn)
    }

    fn hear(&mut self, within: Option<Duration>) -> io::Result<Heard> {
        self.keyboard()?;
        let (is_readable, is_commanded) = self.device.wait(&self.commands, within)?;
        if is_commanded {
            let mut command = [0];
            return match self.commands.read(&mut command)? {
                0 => Err(device::withdrawn()),
                _ => Ok(Heard::Resumed),
            };
        }
        if !is_readable {
            return Ok(Heard::Quiet);
        }
        let mut bytes = [0; 4096];
        let count = match device::read(self.id, &mut bytes)? {
            None => return Ok(Heard::Keys(Vec::new())),
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(count) => count,
        };
        Ok(Heard::Keys(self.keyboard()?.decoder.decode(bytes.get(..count).unwrap_or_default())))
    }

    /// Ctrl-C. The signal reaches the part of the program that decides what it means, which withdraws this prompt. Where
    /// nothing listens it ends the program, so the terminal is as before when it is sent.
    fn interrupted(&mut self) -> io::Error {
        while matches!(self.hear(Some(BURST)), Ok(Heard::Keys(_))) {}
        let shown = self.device.write("^C\n");
        device::suspend();
        let sent = shown.and_then(|()| send(Signal::INT));
        let until = Instant::now() + WITHDRAWAL;
        while sent.is_ok()
            && let Some(rest) = until.checked_duration_since(Instant::now())
            && self.hear(Some(rest)).is_ok()
        {}
        device::withdrawn()
    }

    /// Does what a key does wherever it is pressed.
    fn obey(&mut self, key: &Key) -> io::Result<()> {
        match key {
            Key::Interrupt => Err(self.interrupted()),
            Key::Quit => send(Signal::QUIT),
            Key::Suspend => send(Signal::TSTP),
            Key::Char(_)
            | Key::Enter
            | Key::Erase
            | Key::EraseWord
            | Key::EraseLine
            | Key::Delete
            | Key::Left
            | Key::Right
            | Key::Home
            | Key::End
            | Key::EndOfInput
            | Key::Paste(_)
            | Key::OversizedPaste => Ok(()),
        }
    }

    /// Takes what comes in the same burst as the last key: nothing of it is meant for what is asked next. Says what it was.
    fn rest_of_burst(&mut self, begun: impl IntoIterator<Item = Key>) -> io::Result<Vec<Key>> {
        let mut rest: Vec<Key> = begun.into_iter().collect();
        let mut obeyed = 0;
        loop {
            for key in rest.get(obeyed..).unwrap_or_default().to_vec() {
                self.obey(&key)?;
            }
            obeyed = rest.len();
            let within = if self.keyboard()?.decoder.is_in_paste() { REST_OF_PASTE } else { BURST };
            match self.hear(Some(within))? {
                Heard::Keys(keys) => rest.extend(keys),
                Heard::Resumed => {}
                Heard::Quiet => return Ok(rest),
            }
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.device.write(text)
    }
}

impl Console for Terminal {
    fn say(&mut self, text: &str) -> io::Result<()> {
        self.write(&format!("{}\n", guard::shown(text, Paint::Plain)))
    }

    /// Keys that were pressed while the run was under way, or pressed twice, would approve a call that was not seen.
    fn discard_typed_ahead(&mut self) -> io::Result<()> {
        let until = Instant::now() + READING;
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            if let Heard::Keys(keys) = self.hear(Some(rest))? {
                self.rest_of_burst(keys)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, question: &str, accepts: Accepts) -> io::Result<Option<Entry>> {
        let mut view = View::new(guard::shown(question, Paint::Plain), self.device.clone(), self.keyboard()?.echoes);
        let mut line = Line::default();
        view.draw(&line)?;
        loop {
            let keys = match self.hear(None)? {
                Heard::Keys(keys) => keys,
                Heard::Resumed => {
                    view.begin_again();
                    view.draw(&line)?;
                    continue;
                }
                Heard::Quiet => continue,
            };
            let mut keys = keys.into_iter();
            while let Some(key) = keys.next() {
                match key {
                    Key::Enter => {
                        view.finish(&line)?;
                        let rest = self.rest_of_burst(keys)?;
                        let is_last = rest.contains(&Key::EndOfInput);
                        return Ok(Some(Entry { dropped: dropped(&line, &rest), is_last, ..Entry::of(&line) }));
                    }
                    Key::EndOfInput if line.is_empty() => {
                        view.finish(&line)?;
                        self.rest_of_burst(keys)?;
                        return Ok(None);
                    }
                    Key::Paste(_) | Key::OversizedPaste if accepts == Accepts::Key => {
                        view.finish(&line)?;
                        self.rest_of_burst(keys)?;
                        return Ok(Some(Entry { has_paste: true, ..Entry::default() }));
                    }
                    Key::OversizedPaste => {
                        view.finish(&line)?;
                        self.say("  the paste is too large and was dropped; pass a file instead (`--file`)")?;
                        view.begin_again();
                    }
                    Key::Interrupt | Key::Quit | Key::Suspend => self.obey(&key)?,
                    Key::Char(_)
                    | Key::Erase
                    | Key::EraseWord
                    | Key::EraseLine
                    | Key::Delete
                    | Key::Left
                    | Key::Right
                    | Key::Home
                    | Key::End
                    | Key::EndOfInput
                    | Key::Paste(_) => line.edit(key),
                }
            }
            view.draw(&line)?;
        }
    }
}

/// Sends the signal that a key stands for, to those the system would send it to.
fn send(signal: Signal) -> io::Result<()> {
    Ok(kill_current_process_group(signal)?)
}

impl Entry {
    fn of(line: &Line) -> Self {
        Self { text: line.text(), has_paste: line.has_paste(), ..Self::default() }
    }
}

/// Whether more than the line came with it. A key that is pressed twice is not more, and neither is a second Enter.
fn dropped(line: &Line, rest: &[Key]) -> bool {
    let again: Vec<Key> = line.text().chars().map(Key::Char).chain([Key::Enter]).collect();
    let is_repeated = !line.is_empty() && rest.chunks(again.len()).all(|keys| again.starts_with(keys));
    !is_repeated && rest.iter().any(|key| matches!(key, Key::Char(_) | Key::Paste(_) | Key::OversizedPaste))
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

impl Drop for Restored {
    fn drop(&mut self) {
        device::end();
    }
}

/// From now on nothing that is typed leaves the program: questions may come at any time, and what was typed for them is
/// not for the shell.
pub(super) fn claim() {
    device::claim();
}

/// A question and the answer as far as it is typed, on the screen.
struct View {
    question: String,
    device: Arc<Device>,
    echoes: bool,
    /// What is on the screen before the cursor and behind it.
    before: String,
    after: String,
    is_there: bool,
}

impl View {
    fn new(question: String, device: Arc<Device>, echoes: bool) -> Self {
        Self { question, device, echoes, before: String::new(), after: String::new(), is_there: false }
    }

    /// Shows the line as it is now.
    fn draw(&mut self, line: &Line) -> io::Result<()> {
        let (before, after) = if self.echoes { line.shown() } else { Default::default() };
        let (before, after) = (format!("{}{before}", self.question), after);
        let columns = self.device.columns();
        let text = match before.strip_prefix(&self.before) {
            Some("") if self.is_there && self.after == after => return Ok(()),
            // Typed at the end: nothing else changes.
            Some(more) if self.is_there && self.after.is_empty() && after.is_empty() => {
                let (.., is_full) = layout(&before, columns);
                format!("{more}{}", if is_full { "\n" } else { "" })
            }
            _ if self.device.is_smart() => format!("{}{}", self.erased(columns), placed(&before, &after, columns)),
            _ if self.is_there => format!("\n{before}{after}"),
            _ => format!("{before}{after}"),
        };
        self.device.write(&text)?;
        (self.before, self.after, self.is_there) = (before, after, true);
        Ok(())
    }

    /// What takes away what is on the screen.
    fn erased(&self, columns: usize) -> String {
        if !self.is_there {
            return String::new();
        }
        match layout(&self.before, columns) {
            (0, ..) => "\r\x1b[J".to_owned(),
            (rows, ..) => format!("\x1b[{rows}A\r\x1b[J"),
        }
    }

    /// The line is finished: what comes next begins on a line of its own.
    fn finish(&mut self, line: &Line) -> io::Result<()> {
        self.draw(line)?;
        let columns = self.device.columns();
        let (row, ..) = layout(&self.before, columns);
        let (last, column, is_full) = layout(&format!("{}{}", self.before, self.after), columns);
        if last > row && self.device.is_smart() {
            self.device.write(&format!("\x1b[{}B", last - row))?;
        }
        if is_full && column == 0 { Ok(()) } else { self.device.write("\n") }
    }

    /// Something else is on the screen now.
    fn begin_again(&mut self) {
        (self.before, self.after, self.is_there) = (String::new(), String::new(), false);
    }
}

/// The text, with the cursor between both parts.
fn placed(before: &str, after: &str, columns: usize) -> String {
    let whole = format!("{before}{after}");
    let (last, _, is_full) = layout(&whole, columns);
    let mut text = whole;
    if is_full {
        text.push('\n');
    }
    if !after.is_empty() {
        let (row, column, _) = layout(before, columns);
        if last > row {
            text.push_str(&format!("\x1b[{}A", last - row));
        }
        text.push('\r');
        if column > 0 {
            text.push_str(&format!("\x1b[{column}C"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        let mut line = Line::default();
        text.chars().for_each(|c| line.edit(Key::Char(c)));
        line
    }

    fn keys(text: &str) -> Vec<Key> {
        text.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) }).collect()
    }

    #[test]
    fn a_key_that_is_pressed_twice_drops_nothing_and_any_other_line_does() {
        for rest in ["", "a", "a\n", "a\na\n", "\n"] {
            assert!(!dropped(&line("a"), &keys(rest)), "{rest:?}");
        }
        for rest in ["b\n", "a\nb", "touch pwned\n"] {
            assert!(dropped(&line("a"), &keys(rest)), "{rest:?}");
        }
        assert!(!dropped(&line(""), &keys("\n\n")));
        assert!(dropped(&line(""), &keys("x")));
    }

    #[test]
    fn the_cursor_is_put_between_both_parts() {
        assert_eq!(placed("? ab", "", 80), "? ab");
        assert_eq!(placed("? ab", "cd", 80), "? abcd\r\x1b[4C");
        assert_eq!(placed("? a", "bcd", 4), "? abcd\x1b[1A\r\x1b[3C");
        assert_eq!(placed("? a", "b", 4), "? ab\n\x1b[1A\r\x1b[3C");
    }
}
