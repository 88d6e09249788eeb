//! Interactive shell in a terminal of its own, with typed input.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::desk::Desk;

/// How pasted text arrives from a terminal that marks it.
pub(super) fn pasted(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}

/// The time limit for output on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// `bash` in a pseudo-terminal (`script` of util-linux makes one). Its prompt is `[exit code] ready> `.
pub(super) struct Shell {
    script: Child,
    keys: ChildStdin,
    screen: mpsc::Receiver<Vec<u8>>,
    shown: Vec<u8>,
    /// The length of the output that the test has matched.
    seen: usize,
}

impl Shell {
    pub(super) fn at(desk: &Desk) -> Self {
        Self::with_terminal(desk, "xterm")
    }

    pub(super) fn with_terminal(desk: &Desk, kind: &str) -> Self {
        desk.write("shellrc", "PS1='[$?] ready> '\nunset HISTFILE\n");
        // The parent process of the tests may ignore signals.
        let mut command = desk.program("env");
        command
            .args(["--default-signal", "script", "-qec", "bash --rcfile shellrc -i", "/dev/null"])
            .env("TERM", kind)
            .env("SHELL", "/bin/sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut script = command.spawn().expect("`script` (util-linux) and `bash` are needed");
        let (keys, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let (shows, screen) = mpsc::channel();
        std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut some)
                && shows.send(some[..count].to_vec()).is_ok()
            {}
        });
        let mut shell = Self { script, keys, screen, shown: Vec::new(), seen: 0 };
        shell.sees("[0] ready> ");
        shell
    }

    /// Presses these keys.
    pub(super) fn types(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self
    }

    /// Enters a command.
    pub(super) fn runs(&mut self, command: &str) -> &mut Self {
        self.types(&format!("{command}\r"))
    }

    /// Waits until this text appears after the matched output, and returns the text before it.
    pub(super) fn sees(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let news = String::from_utf8_lossy(&self.shown[self.seen..]).into_owned();
            if let Some(at) = news.find(text) {
                self.seen += at + text.len();
                return news[..at].to_owned();
            }
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(some) => self.shown.extend(some),
                Err(_) => panic!("`{text}` was not shown: {news}"),
            }
        }
    }

    /// The output up to the end of what the test has matched.
    pub(super) fn shown(&self) -> &[u8] {
        &self.shown[..self.seen]
    }

    /// Waits until the shell has executed everything that was typed so far.
    pub(super) fn has_executed_everything(&mut self) -> &mut Self {
        self.runs("echo every''thing");
        self.sees("everything\r\n");
        self
    }

    /// The settings of the terminal, as `stty` prints them for programs.
    pub(super) fn modes(&mut self) -> String {
        self.runs("echo mo''des=$(stty -g)=");
        self.sees("modes=");
        self.sees("=")
    }

    /// Closes the terminal, like closing its window.
    pub(super) fn close(self) {}
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The terminal ends with its program.
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
