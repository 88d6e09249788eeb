//! Stdio transport: the server as a child process, one message per line.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::log::Log;
use crate::message;
use crate::player::{Outlet, Player};
use crate::process;
use crate::script::{FLOODED, HttpAnswer, Origin, Repeat, Target};
use crate::server::Server;

/// Serves until stdin ends.
pub(crate) async fn serve(mut server: Server, log: Log) {
    let player = Player::new(Arc::new(Stdout { log: log.clone() }));
    player.perform(server.opening()).await;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut origin = Origin::default();
    while let Ok(Some(line)) = lines.next_line().await {
        origin.exchange += 1;
        match serde_json::from_str(&line) {
            Ok(message) => {
                log.received(&message);
                player.play(server.receive(&origin, &message)).await;
            }
            Err(error) => {
                log.note("unreadable", &json!(line));
                let refusal = message::refusal(&Value::Null, -32700, &error.to_string());
                print(&format!("{refusal}\n"));
            }
        }
    }
    log.note("stdin", &json!("ended"));
}

struct Stdout {
    log: Log,
}

impl Outlet for Stdout {
    fn send(&self, _: u64, _: Target, message: &Value) {
        self.log.sent(message);
        print(&format!("{message}\n"));
    }

    fn send_bytes(&self, _: u64, bytes: &[u8]) {
        self.log.note("spoilt", &json!(String::from_utf8_lossy(bytes)));
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    }

    fn repeat(&self, _: u64, repeat: Repeat) {
        let log = self.log.clone();
        match repeat.answer {
            Some(_) => drop(std::thread::spawn(move || flood(&repeat, &log))),
            None => flood(&repeat, &log),
        }
    }

    fn print(&self, text: &str) {
        self.log.note("printed", &json!(text));
        print(text);
    }

    fn break_off(&self, _: u64) {
        self.log.note("stdout", &json!("closed"));
        process::close_stdout();
    }

    // Stdio has one stream without sessions, which does not end with an exchange.
    fn close(&self, _: u64) {}
    fn answer_http(&self, _: u64, _: HttpAnswer) {}
    fn break_everything(&self) {}
    fn forget_sessions(&self) {}
}

/// Writes a flood until stdout is closed.
fn flood(repeat: &Repeat, log: &Log) {
    for number in 0_u64.. {
        let mut lines = format!("{}\n", repeat.message.replace('@', &number.to_string()));
        if let Some((_, answer)) = repeat.answer.as_ref().filter(|(times, _)| *times == number) {
            log.sent(answer);
            lines += &format!("{answer}\n");
        }
        if number == FLOODED {
            log.note("flooded", &json!(number));
        }
        if std::io::stdout().lock().write_all(lines.as_bytes()).is_err() {
            process::end(0);
        }
    }
}

/// A failed write means that the client is gone; the end of stdin reports that.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
