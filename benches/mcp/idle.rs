//! Memory of an idle connected server in this process. Each subject runs in its own process, so that leftovers of one
//! do not distort the other.

use std::process::Command;

use crate::path::{Era, PATHS, Wire};
use crate::subject::{HttpServer, Subject};

/// Bytes per idle server; `None` if the system does not report memory.
#[derive(Clone, Debug)]
pub struct Idle {
    pub subject: &'static str,
    pub path: &'static str,
    pub bytes: Option<i64>,
}

pub fn measure(servers: usize) -> Vec<Idle> {
    let mut idle = Vec::new();
    for path in PATHS.iter().filter(|path| path.era == Era::Modern) {
        for subject in ["bare rmcp", "toolgate"] {
            let word = format!("{subject}/{}", path.name);
            let mut command = Command::new(std::env::current_exe().unwrap());
            let output = command.args(["idle", &word, &servers.to_string()]).output().unwrap();
            let bytes = String::from_utf8_lossy(&output.stdout).trim().parse().ok();
            idle.push(Idle { subject, path: path.name, bytes });
        }
    }
    idle
}

/// Connects to this many servers and prints the bytes per server.
pub fn child(word: &str, servers: usize) {
    let (subject, name) = word.split_once('/').unwrap();
    let path = PATHS.iter().find(|path| path.name == name).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let http = (path.wire == Wire::Http).then(HttpServer::start);
        let url = http.as_ref().map_or("", |http| http.url.as_str());
        let connect = async |servers| match subject {
            "toolgate" => Subject::ours(path, url, servers).await,
            _ => Subject::bare(path, url, servers).await,
        };
        // The first connection pays the shared cost.
        let first = connect(1).await;
        let before = resident();
        let all = connect(servers).await;
        let after = resident();
        if let Some((before, after)) = before.zip(after) {
            println!("{}", (after - before) / i64::try_from(servers).unwrap());
        }
        first.close().await;
        all.close().await;
    });
}

fn resident() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.split_whitespace().next()?.parse::<i64>().ok()? * 1024)
}
