//! The terminal device of this process and the mode it is in.
//!
//! While a question is open the terminal is in line mode: this program reads each byte and shows it itself, so that a line
//! may be of any length, and pastes are marked (bracketed paste). The mode the terminal had before comes back when the
//! question is closed, when the process is suspended, and when the program ends, by whatever path. Whatever is still unread
//! then was meant for this program, and is discarded: the shell behind it would execute it.

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

const MARK_PASTES: &str = "\x1b[?2004h";
const MARK_NO_PASTES: &str = "\x1b[?2004l";
/// What follows within this time belongs to what came before it: no person types so fast.
pub(super) const BURST: Duration = Duration::from_millis(50);
/// How many reads of leftover input the end of the program waits for, at most.
const MOST_LEFTOVERS: usize = 1_000;
const USUAL_COLUMNS: usize = 80;

/// Where is read and where is written.
#[derive(Debug)]
pub(super) struct Device {
    input: OwnedFd,
    output: File,
    /// Whether the terminal knows escape sequences.
    is_smart: bool,
}

impl Device {
    /// Standard input may be taken by a message that was piped in, and standard error by a file; the terminal itself is
    /// opened then.
    fn open() -> Option<Self> {
        let terminal = || File::options().read(true).write(true).open("/dev/tty").ok();
        let (stdin, stderr) = (io::stdin(), io::stderr());
        let input = if stdin.is_terminal() {
            stdin.as_fd().try_clone_to_owned().ok()?
        } else if cfg!(target_os = "macos") && stderr.is_terminal() {
            // `/dev/tty` cannot be polled there. Standard error is the same terminal, open for both directions.
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

    /// Reads what is there. `None` where there is nothing. 0 bytes, or an error, say that the terminal is gone.
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

    /// Waits until there is something to read, or `other` has something, or the time is up; which of both has.
    pub(super) fn wait(&self, other: &impl AsFd, within: Option<Duration>) -> io::Result<(bool, bool)> {
        let mut both = [PollFd::new(&self.input, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
        poll_all(&mut both, within)?;
        let [input, other] = both.map(|polled| polled.revents());
        if input.contains(PollFlags::NVAL) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this terminal cannot be polled"));
        }
        Ok((!input.is_empty(), !other.is_empty()))
    }

    /// Whether the terminal listens to this process and not to one before it, such as the shell that put it in the
    /// background. Another one's terminal is not to be touched: the system would stop this process for it.
    fn is_ours(&self) -> bool {
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

    /// Line mode. Keys that send signals are read as keys, so that the same bytes in a paste are content.
    fn enter(&self, former: &Termios) -> io::Result<()> {
        let mut mode = former.clone();
        mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        // Output that Ctrl-S holds back could not be waited for when the mode is left.
        mode.input_modes -= InputModes::IXON;
        mode.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.set(OptionalActions::Now, &mode)?;
        if self.is_smart { self.write(MARK_PASTES) } else { Ok(()) }
    }

    /// The former mode, without what is unread. Nothing can be done about a terminal that went away.
    fn leave(&self, former: &Termios) {
        if self.is_smart {
            let _ = self.write(MARK_NO_PASTES);
        }
        let _ = self.set(OptionalActions::Flush, former);
    }

    /// Discards what is unread, and what follows at once.
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

/// The one terminal of this process, shared by the open prompt, the signals and the end of the program.
static SHARED: Mutex<Shared> = Mutex::new(Shared { device: None, former: None, prompt: None, last: 0, is_over: false });

struct Shared {
    /// The terminal, once something may be asked there.
    device: Option<Arc<Device>>,
    /// The mode that the terminal had before line mode, while it is in line mode.
    former: Option<Termios>,
    /// The open prompt.
    prompt: Option<Opened>,
    last: u64,
    /// The program ends: no prompt is opened any more.
    is_over: bool,
}

struct Opened {
    id: PromptId,
    /// A byte has the prompt shown again; closed, it withdraws the prompt.
    commands: PipeWriter,
}

/// Which prompt it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PromptId(u64);

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// The terminal of this process, which is opened when it is needed first. From then on nothing that is typed leaves
    /// the program.
    fn device(&mut self) -> Option<Arc<Device>> {
        if self.device.is_none() {
            self.device = Device::open().map(Arc::new);
        }
        self.device.clone()
    }

    fn restore(&mut self) {
        if let (Some(device), Some(former)) = (&self.device, self.former.take())
            && device.is_ours()
        {
            device.leave(&former);
        }
    }
}

/// From now on nothing that is typed leaves the program.
pub(super) fn claim() {
    let _ = shared().device();
}

/// Opens a prompt, and withdraws the one that is open. `None` where there is no terminal, or the program ends.
pub(super) fn open() -> Option<(PromptId, Arc<Device>, PipeReader)> {
    let mut shared = shared();
    if shared.is_over {
        return None;
    }
    let device = shared.device()?;
    let (heard, commands) = io::pipe().ok()?;
    shared.last += 1;
    let id = PromptId(shared.last);
    shared.prompt = Some(Opened { id, commands });
    Some((id, device, heard))
}

/// Puts the terminal into line mode, and says what its mode was.
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
    // Noted first: what fails half way is undone as well.
    shared.former = Some(former.clone());
    device.enter(&former)?;
    Ok(former)
}

/// Reads for an open prompt. `None` where there is nothing to read; a prompt that was withdrawn never waits for a line that
/// is meant for the next one.
pub(super) fn read(id: PromptId, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    let shared = shared();
    match (&shared.device, &shared.prompt) {
        (Some(device), Some(prompt)) if prompt.id == id && shared.former.is_some() => device.read(bytes),
        _ => Err(withdrawn()),
    }
}

/// Ends line mode, unless another prompt is open by now.
pub(super) fn close(id: PromptId) {
    let mut shared = shared();
    if shared.prompt.as_ref().is_some_and(|prompt| prompt.id != id) {
        return;
    }
    shared.prompt = None;
    shared.restore();
}

/// Withdraws a prompt: whatever is being typed is not read any more.
pub(super) fn withdraw(id: PromptId) {
    let mut shared = shared();
    if shared.prompt.as_ref().is_some_and(|prompt| prompt.id == id) {
        shared.prompt = None;
        shared.restore();
    }
}

/// The terminal as it was, for the time the process is suspended.
pub(super) fn suspend() {
    let shared = shared();
    if let (Some(device), Some(former)) = (&shared.device, &shared.former)
        && device.is_ours()
    {
        device.leave(former);
    }
}

/// Line mode again, after the process was suspended.
pub(super) fn resume() {
    let mut shared = shared();
    let Shared { device, former, prompt, .. } = &mut *shared;
    if let (Some(device), Some(former), Some(prompt)) = (device, former, prompt)
        && device.is_ours()
        && device.enter(former).is_ok()
    {
        let _ = prompt.commands.write_all(b"r");
    }
}

/// The end of the program: the terminal is as it was before, and nothing that was typed for this program is left in it.
pub(super) fn end() {
    let mut shared = shared();
    shared.is_over = true;
    shared.prompt = None;
    let Some(device) = shared.device.clone().filter(|device| device.is_ours()) else { return };
    let Some(former) = shared.former.take().or_else(|| tcgetattr(&device.input).ok()) else { return };
    // What has no line's end yet can be read only in line mode.
    let _ = device.enter(&former);
    device.discard();
    device.leave(&former);
}

/// The error of a prompt that was withdrawn.
pub(super) fn withdrawn() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the question was withdrawn")
}
