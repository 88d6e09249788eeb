//! Admission of the call for a summary: the governor, and the worst case of the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::run::{Channel, Event, Limits, OnExceed, Status, TighterLimits, Unpause};
use toolgate::ports::{Governor, PlannedCall};
use toolgate::runner::Resume;

use super::compacting::{at, compacted, compacting, conversation, reading, say_to, used};
use super::world::{Given, Kept, World, on_every_store, say};

/// The interval at which a driver looks for a cancel of another process.
const POLL: Duration = Duration::from_millis(50);

/// Admits every call but one, in whose verdict it misbehaves.
struct Misbehaving {
    /// The number of that call, from 0.
    call: usize,
    manner: Manner,
    asked: AtomicUsize,
    misbehaves: Notify,
}

#[derive(Clone, Copy)]
enum Manner {
    Hangs,
    Panics,
    Refuses,
}

impl Misbehaving {
    fn at(call: usize, manner: Manner) -> Arc<Self> {
        Arc::new(Self { call, manner, asked: AtomicUsize::new(0), misbehaves: Notify::new() })
    }
}

#[async_trait]
impl Governor for Misbehaving {
    async fn admit(&self, _call: PlannedCall<'_>) -> Result<(), String> {
        if self.asked.fetch_add(1, Ordering::SeqCst) != self.call {
            return Ok(());
        }
        self.misbehaves.notify_one();
        match self.manner {
            Manner::Hangs => std::future::pending().await,
            Manner::Panics => panic!("the governor panics on demand"),
            Manner::Refuses => Err("the team has spent enough".into()),
        }
    }
}

/// A run that is compacted between its two turns: the second call that the governor judges is the one for the summary.
fn given_a_compaction() -> Given {
    let turns = json!([used(100, reading()), say("Read.")]);
    compacting(json!({"turns": turns, "summary": say("They read.")}), at(50)).0.that_polls_every(POLL)
}

/// The failures of compactions in a run's journal.
async fn failures(world: &World, run: &toolgate::core::id::RunId) -> Vec<Failure> {
    let journal = world.runner.journal(run).await.unwrap();
    let failure = |event: Event| if let Event::CompactionFailed { error, .. } = event { Some(error) } else { None };
    journal.into_iter().filter_map(|recorded| failure(recorded.event)).collect()
}

on_every_store! {
    async fn a_cancel_ends_a_run_whose_governor_hangs_before_a_compaction(kept: Kept) {
        for from_another_process in [false, true] {
            let governor = Misbehaving::at(1, Manner::Hangs);
            let world = given_a_compaction().with_the_governor(governor.clone()).kept(kept).await;
            let execution = world.start().await;
            governor.misbehaves.notified().await;

            match from_another_process {
                false => world.runner.cancel(&execution.run, None, None).await.unwrap(),
                true => world.another_process().await.cancel(&execution.run, None, None).await.unwrap(),
            };
            let ended = execution.until_idle().await.unwrap();

            assert_eq!(ended.status, Status::Cancelled, "from another process: {from_another_process}");
            let journal = world.journal(&ended.run_id).await;
            assert_eq!(journal[journal.len() - 2..], ["compaction.started", "execution.ended"]);
        }
    }

    async fn a_governor_that_panics_before_a_compaction_costs_the_summary_alone(kept: Kept) {
        let world = given_a_compaction().with_the_governor(Misbehaving::at(1, Manner::Panics)).kept(kept).await;

        let report = world.run().await;

        assert_eq!((report.status, report.output.unwrap().text), (Status::Completed, "Read.".to_owned()));
        let failures = failures(&world, &report.run_id).await;
        assert_eq!(failures.len(), 1);
        assert_eq!(failures[0].code, ErrorCode::Internal);
        assert!(failures[0].message.contains("the governor"), "{failures:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_governor_without_a_verdict_refuses_a_compaction_after_its_time() {
    let world = given_a_compaction().with_the_governor(Misbehaving::at(1, Manner::Hangs)).ready().await;
    let began = tokio::time::Instant::now();

    let report = world.run().await;

    assert_eq!((report.status, began.elapsed().as_secs()), (Status::Completed, 10));
    let expected = Failure::new(ErrorCode::TurnLimit, "the governor gave no verdict within 10 s");
    assert_eq!(failures(&world, &report.run_id).await, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_governor_that_misbehaves_fails_a_compaction_on_request() {
    for (manner, code) in [(Manner::Panics, ErrorCode::Internal), (Manner::Refuses, ErrorCode::TurnLimit)] {
        let (given, read) = compacting(json!({"turns": [say("One.")], "summary": say("They began.")}), at(1_000_000));
        let world = given.with_the_governor(Misbehaving::at(1, manner)).ready().await;
        say_to(&world.runner, "First").await;
        let before = conversation(&world).await;

        let failed = compacted(&world).await;

        assert_eq!((failed.status, failed.error.map(|error| error.code)), (Status::Failed, Some(code)));
        assert_eq!(read.lock().unwrap().len(), 1, "no summary was requested");
        assert_eq!(conversation(&world).await, before);
    }
}

#[tokio::test(start_paused = true)]
async fn row_3_13_a_compaction_whose_worst_case_exceeds_the_limit_is_not_sent() {
    let turns = json!([used(100, reading()), say("Read.")]);
    let (given, read) = compacting(json!({"turns": turns, "summary": say("They read.")}), at(50));
    let world = given
        .within(Limits { max_tokens: Some(150), ..Limits::default() })
        .that(|agent| agent.rules.on_exceed = OnExceed::Ask)
        .ready()
        .await;

    let paused = world.run().await;

    assert_eq!((paused.status, paused.budget.iterations, read.lock().unwrap().len()), (Status::Pending, 1, 1));
    let reason = "the worst case of the next model call exceeds `max_tokens`";
    let refused = Failure::new(ErrorCode::TurnLimit, reason);
    assert_eq!(failures(&world, &paused.run_id).await, [refused]);
    let limits = TighterLimits { max_tokens: Some(10_000), ..TighterLimits::default() };
    let unpause = Some(Unpause { by: "ann".into(), via: Channel::Library, limits });
    let done = world.runner.resume(&paused.run_id, Resume { unpause, ..Resume::default() }).await.unwrap();
    assert_eq!((done.status, done.output.unwrap().text), (Status::Completed, "Read.".to_owned()));
}
