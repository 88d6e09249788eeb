//! Terminal device of this process and its mode.
//!
//! While a question is open the terminal is in line mode: this program reads and echoes each byte itself, so that a
//! line can have any length, and pastes are marked (bracketed paste). The former mode is restored when the question is
//! closed, when the process is suspended, and when the program ends, on every path. Unread input was meant for this
//! program and is discarded on restore, because the shell would otherwise execute it.

use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr,
};

use crate::telemetry::logging;

const MARK_PASTES: &str = "\x1b[?2004h";
const MARK_NO_PASTES: &str = "\x1b[?2004l";
/// Input within this time belongs to the same burst: no person types so fast.
pub(super) const BURST: Duration = Duration::from_millis(50);
/// The most reads of leftover input at the end of the program.
const MOST_LEFTOVERS: usize = 1_000;
const USUAL_COLUMNS: usize = 80;
const USUAL_ROWS: usize = 24;

/// The device for reading and writing.
#[derive(Debug)]
pub(super) struct Device {
    input: OwnedFd,
    output: File,
    /// Whether the terminal supports escape sequences.
    is_smart: bool,
}

impl Device {
    /// Opens standard input and standard error, or `/dev/tty` in place of one that is not a terminal.
    fn open() -> Option<Self> {
        let terminal = || File::options().read(true).write(true).open("/dev/tty").ok();
        let (stdin, stderr) = (io::stdin(), io::stderr());
        let input = if stdin.is_terminal() {
            stdin.as_fd().try_clone_to_owned().ok()?
        } else if cfg!(target_os = "macos") && stderr.is_terminal() {
            // `/dev/tty` cannot be polled on macOS. Standard error is the same terminal, open for both directions.
            stderr.as_fd().try_clone_to_owned().ok()?
        } else {
            terminal()?.into()
        };
        let output = match stderr.is_terminal() {
            true => stderr.as_fd().try_clone_to_owned().ok()?.into(),
            false => terminal()?,
        };
        let is_smart = std::env::var("TERM").is_ok_and(|kind| !kind.is_empty() && kind != "dumb");
        Some(Self { input, output, is_smart })
    }

    pub(super) fn is_smart(&self) -> bool {
        self.is_smart
    }

    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        (&self.output).write_all(text.as_bytes())
    }

    pub(super) fn columns(&self) -> usize {
        let size = tcgetwinsize(&self.output).ok().map(|size| usize::from(size.ws_col));
        size.filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS)
    }

    pub(super) fn rows(&self) -> usize {
        let size = tcgetwinsize(&self.output).ok().map(|size| usize::from(size.ws_row));
        size.filter(|rows| *rows > 0).unwrap_or(USUAL_ROWS)
    }

    /// Reads available bytes; `None` if there are no bytes yet. 0 bytes or an error mean that the terminal is gone.
    fn read(&self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        let mut input = [PollFd::new(&self.input, PollFlags::IN)];
        poll_all(&mut input, Some(Duration::ZERO))?;
        if input.iter().all(|input| input.revents().is_empty()) {
            return Ok(None);
        }
        match rustix::io::read(&self.input, bytes) {
            // A process that shares the terminal may have made it non-blocking.
            Err(Errno::INTR | Errno::AGAIN) => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    /// Waits until the terminal or `other` is readable, or the time is up; reports which of both is readable.
    pub(super) fn wait(&self, other: &impl AsFd, within: Option<Duration>) -> io::Result<(bool, bool)> {
        let mut both = [PollFd::new(&self.input, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
        poll_all(&mut both, within)?;
        let [input, other] = both.map(|polled| polled.revents());
        if input.contains(PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this terminal cannot be polled"));
        }
        Ok((!input.is_empty(), !other.is_empty()))
    }

    /// Whether this process is in the foreground process group of the terminal. In the background it must not touch the
    /// terminal: the system would stop the process.
    pub(super) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.input).is_ok_and(|group| group == rustix::process::getpgrp())
    }

    fn set(&self, how: OptionalActions, mode: &Termios) -> io::Result<()> {
        loop {
            match tcsetattr(&self.input, how, mode) {
                Err(Errno::INTR) => {}
                set => return Ok(set?),
            }
        }
    }

    /// Enters line mode. Signal keys are read as keys, so that the same bytes in a paste are content.
    fn enter(&self, former: &Termios) -> io::Result<()> {
        let mut mode = former.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        // Restoring the mode could otherwise wait forever for output that Ctrl-S holds back.
        mode.input_modes -= InputModes::IXON;
        mode.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.set(OptionalActions::Now, &mode)?;
        if self.is_smart { self.write(MARK_PASTES) } else { Ok(()) }
    }

    /// Restores the former mode and discards unread input. Errors of a vanished terminal are ignored.
    fn leave(&self, former: &Termios) {
        if self.is_smart {
            let _ = self.write(MARK_NO_PASTES);
        }
        let _ = self.set(OptionalActions::Flush, former);
    }

    /// Discards unread input and the rest of its burst.
    fn discard(&self) {
        let mut bytes = [0; 4096];
        let mut within = Duration::ZERO;
        for _ in 0..MOST_LEFTOVERS {
            let mut input = [PollFd::new(&self.input, PollFlags::IN)];
            let polled = poll_all(&mut input, Some(within));
            let is_readable = polled.is_ok() && input.iter().any(|input| input.revents().contains(PollFlags::IN));
            if !is_readable || !matches!(self.read(&mut bytes), Ok(Some(1..))) {
                break;
            }
            within = BURST;
        }
        let _ = tcflush(&self.input, QueueSelector::IFlush);
    }
}

fn poll_all(polled: &mut [PollFd<'_>], within: Option<Duration>) -> io::Result<()> {
    let within = within.and_then(|within| Timespec::try_from(within).ok());
    loop {
        match poll(polled, within.as_ref()) {
            Err(Errno::INTR) => {}
            polled => return Ok(polled.map(drop)?),
        }
    }
}

/// The terminal of this process, shared by the open prompt, the signal handlers and the end of the program.
static SHARED: Mutex<Shared> = Mutex::new(Shared { device: None, former: None, prompt: None, last: 0, is_over: false });

struct Shared {
    /// The device; `None` until the first prompt can be opened.
    device: Option<Arc<Device>>,
    /// The former mode, while the terminal is in line mode.
    former: Option<Termios>,
    prompt: Option<OpenPrompt>,
    last: u64,
    /// Whether the program ends: no further prompt is opened.
    is_over: bool,
}

struct OpenPrompt {
    id: PromptId,
    /// A byte on this pipe makes the prompt redraw; closing the pipe withdraws the prompt.
    commands: PipeWriter,
    /// Whether the prompt asks a question. A watch for keys draws nothing.
    asks: bool,
    /// Texts that the prompt shows above its question when it redraws.
    notices: Vec<String>,
}

/// A command to an open prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Command {
    /// Notices wait to be shown.
    ShowNotices = b'n',
    /// The prompt is no longer on the screen.
    Redraw = b'r',
}

/// Identifies a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PromptId(u64);

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The device, opened on first use. From then on no typed input reaches the shell.
    fn device(&mut self) -> Option<Arc<Device>> {
        if self.device.is_none() {
            self.device = Device::open().map(Arc::new);
        }
        self.device.clone()
    }

    /// Takes the open prompt away. Notices that it did not show follow `lead`.
    fn take_prompt(&mut self, lead: &str) {
        let notices = self.prompt.take().map(|prompt| prompt.notices.concat()).unwrap_or_default();
        if let Some(device) = self.device.as_ref().filter(|_| !notices.is_empty()) {
            let _ = device.write(&format!("{lead}{notices}"));
        }
    }

    fn restore(&mut self) {
        if let (Some(device), Some(former)) = (&self.device, self.former.take())
            && device.is_ours()
        {
            device.leave(&former);
        }
    }
}

/// Claims the terminal: from now on no typed input reaches the shell.
pub(super) fn claim() {
    let _ = shared().device();
}

/// Opens a prompt, which asks or only watches for keys, and withdraws the one that is open. `None` if there is no terminal
/// or the program ends.
pub(super) fn open(asks: bool) -> Option<(PromptId, Arc<Device>, PipeReader)> {
    let mut shared = shared();
    if shared.is_over {
        return None;
    }
    let device = shared.device()?;
    let (reader, commands) = io::pipe().ok()?;
    shared.take_prompt("");
    shared.last += 1;
    let id = PromptId(shared.last);
    shared.prompt = Some(OpenPrompt { id, commands, asks, notices: Vec::new() });
    drop(shared);
    // A log in a file is not the business of the terminal.
    if io::stderr().is_terminal() {
        logging::show_above_prompt(announce);
    }
    Some((id, device, reader))
}

/// Shows whole lines, which are escaped, above the question of the open prompt. Returns whether there is such a prompt.
pub(in crate::cli) fn announce(text: &str) -> bool {
    let mut shared = shared();
    let Some(prompt) = shared.prompt.as_mut().filter(|prompt| prompt.asks) else { return false };
    // One command is enough for all: a prompt that reads none must not stop its writer.
    let is_told = !prompt.notices.is_empty() || prompt.tell(Command::ShowNotices);
    if is_told {
        prompt.notices.push(text.to_owned());
    }
    is_told
}

impl OpenPrompt {
    fn tell(&mut self, command: Command) -> bool {
        self.commands.write_all(&[command as u8]).is_ok()
    }
}

/// Takes the lines to show above the question.
pub(super) fn take_notices(id: PromptId) -> Vec<String> {
    let mut shared = shared();
    let prompt = shared.prompt.as_mut().filter(|prompt| prompt.id == id);
    prompt.map(|prompt| std::mem::take(&mut prompt.notices)).unwrap_or_default()
}

/// Puts the terminal into line mode and returns the former mode.
pub(super) fn enter(id: PromptId) -> io::Result<Termios> {
    let mut shared = shared();
    let is_open = shared.prompt.as_ref().is_some_and(|prompt| prompt.id == id);
    let Some(device) = shared.device.clone().filter(|_| is_open && !shared.is_over) else {
        return Err(withdrawn());
    };
    if let Some(former) = &shared.former {
        return Ok(former.clone());
    }
    let former = tcgetattr(&device.input)?;
    // Stored first, so that a partial failure is undone too.
    shared.former = Some(former.clone());
    device.enter(&former)?;
    Ok(former)
}

/// Reads for an open prompt; `None` if there are no bytes yet. A withdrawn prompt never takes input that is meant for
/// the next one.
pub(super) fn read(id: PromptId, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    let shared = shared();
    match (&shared.device, &shared.prompt) {
        (Some(device), Some(prompt)) if prompt.id == id && shared.former.is_some() => device.read(bytes),
        _ => Err(withdrawn()),
    }
}

/// Ends line mode, unless another prompt has been opened.
pub(super) fn close(id: PromptId) {
    let mut shared = shared();
    if shared.prompt.as_ref().is_some_and(|prompt| prompt.id != id) {
        return;
    }
    shared.take_prompt("");
    shared.restore();
}

/// Withdraws a prompt: it reads no further input.
pub(super) fn withdraw(id: PromptId) {
    let mut shared = shared();
    if shared.prompt.as_ref().is_some_and(|prompt| prompt.id == id) {
        // The cursor is still behind the question.
        shared.take_prompt("\n");
        shared.restore();
    }
}

/// Restores the former mode while the process is suspended.
pub(super) fn suspend() {
    let shared = shared();
    if let (Some(device), Some(former)) = (&shared.device, &shared.former)
        && device.is_ours()
    {
        device.leave(former);
    }
}

/// Enters line mode again after the process was suspended.
pub(super) fn resume() {
    let mut shared = shared();
    let Shared { device, former, prompt, .. } = &mut *shared;
    if let (Some(device), Some(former), Some(prompt)) = (device, former, prompt)
        && device.is_ours()
        && device.enter(former).is_ok()
    {
        prompt.tell(Command::Redraw);
    }
}

/// Restores the terminal at the end of the program and discards input typed for the program.
pub(super) fn end() {
    let mut shared = shared();
    shared.is_over = true;
    shared.take_prompt("");
    let Some(device) = shared.device.clone().filter(|device| device.is_ours()) else { return };
    let Some(former) = shared.former.take().or_else(|| tcgetattr(&device.input).ok()) else { return };
    // Input without a line end can be read only in line mode.
    let _ = device.enter(&former);
    device.discard();
    device.leave(&former);
}

/// The error of a prompt that was withdrawn.
pub(super) fn withdrawn() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the question was withdrawn")
}
