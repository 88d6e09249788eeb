//! `kill -9` of processes that start runs of one session: the head and its run are written together, and the runs are
//! one chain, whatever the instant.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate::core::chat::{Role, Usage};
use toolgate::core::id::{RunId, SessionId, Tenant};
use toolgate::core::run::{Run, Status};
use toolgate::ports::{RunFilter, SessionRow};
use toolgate::runner::{AgentRunner, Execution, Request, RunnerError};

use super::kill::{lines, open_with};
use super::world::say;

const DIRECTORY: &str = "TOOLGATE_TEST_SESSION_KILL_DIRECTORY";
/// More turns than the children get through.
const TURNS: usize = 4_000;
/// The reports of a child before it is killed.
const REPORTS: usize = 3;

fn chat() -> SessionId {
    "chat".into()
}

/// A process whose model replies with these turns again and again, as its session gets longer.
async fn open(directory: &Path, turns: &[Value]) -> AgentRunner {
    open_with(directory, turns.iter().cycle().take(TURNS).cloned().collect()).await
}

/// The turns of a run that only answers.
fn answering() -> Vec<Value> {
    vec![say("Done.")]
}

/// The turns of a run that makes two calls, with the usage of each.
fn calling() -> Vec<Value> {
    let call = json!({"name": "mcp_ledger_enter"});
    let usage = |input: u64, output: u64| json!({"input_tokens": input, "output_tokens": output});
    vec![json!({"calls": [call, call], "usage": usage(10, 5)}), json!({"say": "Done.", "usage": usage(20, 7)})]
}

/// The usage of a run with [`calling`].
fn usage_of_a_call() -> Usage {
    Usage { input_tokens: Some(30), output_tokens: Some(12), ..Usage::default() }
}

/// Starts the next run of the session, unless another one is live.
async fn next_run(runner: &AgentRunner, text: &str) -> Option<Execution> {
    let request = Request { session: Some(chat()), ..Request::new("clerk", text) };
    match runner.start(request).await {
        Ok(execution) => Some(execution),
        Err(RunnerError::SessionBusy { .. } | RunnerError::SessionChanging(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Continues the runs whose process was killed, as their leases expire.
async fn recover(runner: &AgentRunner) {
    for execution in runner.recover().await.unwrap() {
        // Another process continues it if this one is too slow for its lease.
        let _ = execution.until_idle().await;
    }
}

/// A child process: answers in one run of the session after the other, and reports each that has ended.
#[tokio::test]
async fn the_process_that_answers() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runner = open(Path::new(&directory), &answering()).await;
    loop {
        recover(&runner).await;
        match next_run(&runner, "Hello").await {
            Some(execution) => {
                let report = execution.until_idle().await.unwrap();
                writeln!(std::io::stdout().lock(), "ack {}.", report.run_id).unwrap();
            }
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

/// A child process: makes calls in runs of the session, beside another one that does the same.
#[tokio::test]
async fn the_process_that_calls() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runner = open(Path::new(&directory), &calling()).await;
    for number in 0.. {
        recover(&runner).await;
        match next_run(&runner, &format!("{}/{number}", std::process::id())).await {
            Some(execution) => drop(execution.until_idle().await),
            None => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
}

fn child(name: &str, directory: &Path, output: Stdio) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([&format!("runner::session_kill::{name}"), "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdout(output)
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn session(runner: &AgentRunner) -> SessionRow {
    runner.session(&Tenant::default(), &chat()).await.unwrap().expect("a session")
}

/// The runs of the session, oldest first: from the head back to the first one. There are no others, and each continues
/// the whole run before it.
async fn chain(runner: &AgentRunner) -> Vec<(RunId, Run)> {
    let row = session(runner).await;
    let mut next = row.head.as_ref().map(|head| head.run.clone());
    let mut chain: Vec<(RunId, Run)> = Vec::new();
    while let Some(id) = next {
        let run = runner.load(&id).await.unwrap();
        next = run.started().predecessor.as_ref().map(|predecessor| predecessor.run.clone());
        if let Some((later, continued)) = chain.last() {
            let position = continued.started().predecessor.as_ref().map(|predecessor| predecessor.position);
            assert_eq!(position, Some(run.length()), "{later} continues all of {id}");
            assert!(run.status().is_ended(), "{id}, before {later}");
        }
        chain.push((id, run));
    }
    chain.reverse();
    let filter = RunFilter { session: Some(chat()), limit: usize::MAX, ..RunFilter::default() };
    let listed: BTreeSet<RunId> = runner.list(&filter).await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(chain.iter().map(|(id, _)| id.clone()).collect::<BTreeSet<_>>(), listed);
    assert_eq!((row.version, row.runs), (chain.len() as u64, chain.len() as u64));
    chain
}

/// Runs the child until it has reported some runs, and kills it at this fraction of the time between two reports, while
/// it starts, executes or ends another run. Returns the reported runs.
fn kill_at(directory: &Path, fraction: f64) -> Vec<RunId> {
    let mut child = child("the_process_that_answers", directory, Stdio::piped());
    let (mut reported, mut before) = (Vec::new(), Instant::now());
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        // The test harness has begun the first line, and the kill may have cut off the last one.
        let Some((_, run)) = line.split_once("ack ") else { continue };
        let Some(run) = run.strip_suffix('.') else { continue };
        reported.push(RunId::from(run));
        if reported.len() == REPORTS {
            std::thread::sleep(before.elapsed().mul_f64(fraction));
            child.kill().unwrap();
        }
        before = Instant::now();
    }
    assert!(!child.wait().unwrap().success());
    assert!(reported.len() >= REPORTS, "the child ended by itself after {} runs", reported.len());
    reported
}

#[tokio::test]
async fn a_process_killed_while_it_starts_and_ends_runs_leaves_each_head_with_its_run() {
    let directory = tempfile::TempDir::new().unwrap();
    let mut reported = BTreeSet::new();
    for round in 0..16 {
        reported.extend(kill_at(directory.path(), 0.5 + f64::from(round) / 16.0));

        let runner = open(directory.path(), &answering()).await;
        let chain = chain(&runner).await;

        let (id, head) = chain.last().unwrap();
        let row = session(&runner).await.head.unwrap();
        assert_eq!((&row.run, row.status, row.version), (id, head.status(), head.length()), "round {round}");
        let ended = chain.iter().filter(|(_, run)| run.status() == Status::Completed).map(|(id, _)| id.clone());
        assert!(ended.collect::<BTreeSet<_>>().is_superset(&reported), "round {round}: a reported run is missing");
        runner.close().await;
    }
}

/// Kills two children that race for the session: the first one after a new call, the second one some milliseconds
/// before or after it.
fn kill_both(directory: &Path, round: u64) {
    let before = lines(directory).len();
    let mut children = [(); 2].map(|()| child("the_process_that_calls", directory, Stdio::null()));
    let began = Instant::now();
    while lines(directory).len() == before {
        assert!(began.elapsed() < Duration::from_secs(60), "the children do nothing");
        for child in &mut children {
            assert!(child.try_wait().unwrap().is_none(), "a child ended by itself");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for (child, milliseconds) in children.iter_mut().zip([round * 7 % 40, round * 11 % 30]) {
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
    }
    for mut child in children {
        child.wait().unwrap();
    }
}

#[tokio::test]
async fn two_processes_killed_in_one_session_leave_one_conversation() {
    let directory = tempfile::TempDir::new().unwrap();
    for round in 0..20 {
        kill_both(directory.path(), round);
    }
    let runner = open(directory.path(), &calling()).await;
    let began = Instant::now();
    while !session(&runner).await.head.unwrap().status.is_ended() {
        assert!(began.elapsed() < Duration::from_secs(60), "the last run is not recovered");
        recover(&runner).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let chain = chain(&runner).await;
    let messages = runner.session_messages(&Tenant::default(), &chat()).await.unwrap();
    let calls = lines(directory.path());

    assert_eq!(calls.len(), calls.iter().collect::<BTreeSet<_>>().len(), "a call was made twice");
    let conversation: Vec<_> = messages
        .iter()
        .filter(|of| !of.message.text().is_empty())
        .map(|of| (of.run.clone(), of.message.role, of.message.text()))
        .collect();
    let expected = chain.iter().flat_map(|(id, run)| {
        assert_eq!(run.status(), Status::Completed, "{id}");
        let asked = (id.clone(), Role::User, run.started().input.text());
        [asked, (id.clone(), Role::Assistant, "Done.".to_owned())]
    });
    assert_eq!(conversation, expected.collect::<Vec<_>>());
    let answered = messages.iter().flat_map(|of| &of.message.content).filter(|part| part.tool_use().is_some()).count();
    assert_eq!(answered, 2 * chain.len(), "every turn with calls is in the conversation");
    let mut total = Usage::default();
    chain.iter().for_each(|_| total.add(&usage_of_a_call()));
    assert_eq!(session(&runner).await.total_usage(), total);
}
