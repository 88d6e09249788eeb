//! Servers that change, disappear, and come back, as runs see them.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;
use toolgate::core::id::ServerId;
use toolgate::core::tool::FailureKind;
use toolgate::mcp::{ServerSettings, ServerState, Servers, Start};
use toolgate::ports::McpServers;

use super::support::*;

/// A server that does not start while the door is locked.
struct Moody {
    folder: TempDir,
    servers: Servers,
}

impl Moody {
    fn with(change: impl FnOnce(&mut ServerSettings)) -> Self {
        let folder = TempDir::new().expect("a folder");
        let mut settings = python("moody.py", &[folder.path().join("locked").to_str().expect("UTF-8")]);
        change(&mut settings);
        Self { servers: servers([("moody", settings)]), folder }
    }

    fn lock(&self) {
        std::fs::write(self.folder.path().join("locked"), "").expect("written");
    }

    fn unlock(&self) {
        std::fs::remove_file(self.folder.path().join("locked")).expect("removed");
    }

    fn kill(&self) {
        let pid = status(&self.servers, "moody").pid.expect("a process");
        let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not zero");
        kill_process(pid, Signal::KILL).expect("killed");
    }

    fn generation(&self) -> u64 {
        self.servers.generation(&[ServerId::from("moody"), ServerId::from("unheard-of")])
    }
}

#[tokio::test]
async fn an_announced_tool_is_listed_automatically() {
    let moody = Moody::with(|_| {});
    assert_eq!(names(&moody.servers, "moody").await, ["grumble", "learn"]);
    let before = moody.generation();
    returned(call(&moody.servers, "moody", "learn", json!({"name": "dance"})).await);
    eventually("the change is known", async || moody.generation() != before).await;
    assert_eq!(names(&moody.servers, "moody").await, ["dance", "grumble", "learn"]);
    assert_eq!(moody.generation(), before + 1, "five announcements were one change");
    moody.servers.close().await;
}

#[tokio::test]
async fn the_tools_of_a_server_that_is_away_are_kept_with_the_reason_until_it_is_back() {
    let moody = Moody::with(|_| {});
    list(&moody.servers, &["moody"]).await;
    let before = moody.generation();
    moody.lock();
    moody.kill();
    let is_locked_out = |message: &str| message.contains("the door is locked");
    eventually("it failed to start", async || {
        status(&moody.servers, "moody").last_error.is_some_and(|error| is_locked_out(&error.message))
    })
    .await;
    assert!(moody.generation() > before);
    let away = list(&moody.servers, &["moody"]).await.remove(0);
    assert_eq!((away.tools.len(), away.left_out), (2, vec![]));
    assert!(away.stale.as_deref().is_some_and(is_locked_out), "{:?}", away.stale);
    let (kind, message) = failed(call(&moody.servers, "moody", "learn", json!({"name": "dance"})).await);
    assert_eq!(kind, FailureKind::Unavailable, "{message}");
    assert!(is_locked_out(&message), "{message}");

    let away = status(&moody.servers, "moody");
    assert_eq!(away.tools, Some(2));
    assert!(away.stale.is_some() && away.restarts >= 2, "{away:?}");
    let shown = serde_json::to_value(&away).expect("JSON");
    assert!(matches!(shown["state"].as_str(), Some("backing_off" | "starting")), "{shown}");
    assert_eq!(shown["calls"], json!({"made": 0, "failed": 0, "in_flight": 0, "waiting": 0}));

    moody.unlock();
    let deadline = Instant::now() + Duration::from_secs(20);
    while status(&moody.servers, "moody").state != ServerState::Ready {
        assert!(Instant::now() < deadline, "it never came back: {:?}", status(&moody.servers, "moody"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(names(&moody.servers, "moody").await, ["grumble", "learn"]);
    assert_eq!(list(&moody.servers, &["moody"]).await[0].stale, None);
    moody.servers.close().await;
}

#[tokio::test]
async fn a_failed_call_reports_the_servers_output_meanwhile() {
    let moody = Moody::with(|settings| settings.call_timeout = Duration::from_millis(500));
    let (outcome, stderr) = ended(&moody.servers, "moody", "grumble", json!({}), None, &|_| {}).await;
    let (kind, message) = failed(outcome);
    assert_eq!(kind, FailureKind::Timeout);
    let told = "; it writes log lines to stdout (1 so far, the first: `I would rather not`); they belong on stderr";
    assert!(message.ends_with(told), "{message}");
    assert_eq!(stderr, ["asked to grumble"], "and not what it wrote before");
    let calls = status(&moody.servers, "moody").calls;
    assert_eq!((calls.made, calls.failed, calls.in_flight, calls.waiting, calls.latency), (1, 1, 0, 0, None));
    returned(call(&moody.servers, "moody", "learn", json!({"name": "dance"})).await);
    let calls = status(&moody.servers, "moody").calls;
    assert_eq!((calls.made, calls.failed), (2, 1));
    assert!(calls.latency.is_some_and(|latency| latency.last == latency.longest && !latency.last.is_zero()));
    moody.servers.close().await;
}

#[tokio::test]
async fn a_call_that_hangs_holds_its_own_slot_and_nothing_else() {
    let mut narrow = python("worker.py", &[]);
    narrow.max_concurrency = 2;
    let servers = servers([("narrow", narrow), ("other", python("worker.py", &[]))]);
    list(&servers, &["narrow", "other"]).await;
    let hang = || call(&servers, "narrow", "slow", json!({}));
    let meanwhile = async {
        eventually("both slots are taken", async || status(&servers, "narrow").calls.in_flight == 2).await;
        let third = call_with(&servers, "narrow", "report", json!({}), Some(Duration::from_millis(100)), &|_| {}).await;
        assert!(failed(third).1.contains("was busy with other calls for 0.1 s; the call was not made"));
        soon("the other server answers", async {
            report(&servers, "other").await;
            list(&servers, &["narrow", "other"]).await;
        })
        .await;
    };
    tokio::select! {
        outcome = async { tokio::join!(hang(), hang()) } => panic!("it ended: {outcome:?}"),
        () = meanwhile => {}
    }
    let calls = status(&servers, "narrow").calls;
    assert_eq!((calls.made, calls.failed, calls.in_flight, calls.waiting), (2, 0, 0, 0), "no caller waits for them");
    servers.close().await;
}

#[tokio::test]
async fn servers_are_started_together_unless_they_are_to_wait_until_they_are_needed() {
    let mut lazy = python("worker.py", &[]);
    lazy.start = Start::Lazy;
    let servers = servers([("one", python("worker.py", &[])), ("two", python("worker.py", &[])), ("lazy", lazy)]);
    servers.start();
    eventually("they are ready", async || ["one", "two"].iter().all(|id| status(&servers, id).tools.is_some())).await;
    let waiting = status(&servers, "lazy");
    assert_eq!((waiting.state, waiting.tools), (ServerState::Idle, None));
    report(&servers, "lazy").await;
    assert_eq!(status(&servers, "lazy").state, ServerState::Ready);
    servers.close().await;
}
