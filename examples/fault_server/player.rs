//! Execution of scripts. Immediate actions complete before the next message is read. Actions that take time run in the
//! background until they end or are cancelled.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::task::AbortHandle;

use crate::process;
use crate::script::{Action, HttpAnswer, Repeat, Script, Target};

/// Output of a transport.
pub(crate) trait Outlet: Send + Sync {
    /// Sends a message of that exchange.
    fn send(&self, exchange: u64, to: Target, message: &Value);
    /// Sends bytes in place of an answer of that exchange.
    fn send_bytes(&self, exchange: u64, bytes: &[u8]);
    /// Sends a message repeatedly.
    fn repeat(&self, exchange: u64, repeat: Repeat);
    /// Writes text to stdout that is not a message.
    fn print(&self, text: &str);
    /// Answers the request of that exchange with another HTTP response.
    fn answer_http(&self, exchange: u64, answer: HttpAnswer);
    /// Ends the exchange.
    fn close(&self, exchange: u64);
    /// Breaks the connection of that exchange.
    fn break_off(&self, exchange: u64);
    /// Breaks all connections with unfinished answers.
    fn break_everything(&self);
    /// Forgets all sessions.
    fn forget_sessions(&self);
}

/// The running scripts.
pub(crate) struct Player {
    outlet: Arc<dyn Outlet>,
    playing: Mutex<HashMap<u64, AbortHandle>>,
}

impl Player {
    /// A player without scripts.
    pub(crate) fn new(outlet: Arc<dyn Outlet>) -> Arc<Self> {
        Arc::new(Self { outlet, playing: Mutex::default() })
    }

    /// Runs these scripts; those that take time run in the background.
    pub(crate) async fn play(self: &Arc<Self>, scripts: Vec<Script>) {
        for script in scripts {
            let takes_time = script.actions.iter().any(|action| matches!(action, Action::Wait(_)));
            if !takes_time {
                self.perform(script).await;
                continue;
            }
            let (exchange, player) = (script.exchange, self.clone());
            let task = tokio::spawn(async move { player.perform(script).await });
            self.playing.lock().unwrap_or_else(PoisonError::into_inner).insert(exchange, task.abort_handle());
        }
    }

    /// Runs a script from its first to its last action.
    pub(crate) async fn perform(&self, script: Script) {
        let exchange = script.exchange;
        for action in script.actions {
            match action {
                Action::Send { to, message } => self.outlet.send(exchange, to, &message),
                Action::SendBytes(bytes) => self.outlet.send_bytes(exchange, &bytes),
                Action::Repeat(repeat) => self.outlet.repeat(exchange, repeat),
                Action::Print(text) => self.outlet.print(&text),
                Action::Complain(line) => eprintln!("{line}"),
                Action::Flood { mebibytes } => flood(mebibytes),
                Action::Betray => process::betray(),
                Action::Wait(time) => tokio::time::sleep(time).await,
                Action::Hold => return,
                Action::AnswerHttp(answer) => self.outlet.answer_http(exchange, answer),
                Action::ForgetSessions => self.outlet.forget_sessions(),
                Action::BreakConnection => self.outlet.break_off(exchange),
                Action::BreakEverything => self.outlet.break_everything(),
                Action::Cancel { exchange } => self.cancel(exchange),
                Action::SpawnGrandchild => process::spawn_grandchild(),
                Action::Exit(code) => process::end(code),
            }
        }
        self.outlet.close(exchange);
    }

    fn cancel(&self, exchange: u64) {
        if let Some(task) = self.playing.lock().unwrap_or_else(PoisonError::into_inner).remove(&exchange) {
            task.abort();
        }
        self.outlet.close(exchange);
    }
}

/// A client that does not read stderr blocks the server here.
fn flood(mebibytes: usize) {
    let line = format!("{}\n", "DEBUG polling the queue, nothing there ".repeat(26));
    let mut stderr = std::io::stderr().lock();
    for _ in 0..(mebibytes << 20).div_ceil(line.len()) {
        let _ = stderr.write_all(line.as_bytes());
    }
}
