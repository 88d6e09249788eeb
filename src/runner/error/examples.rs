//! An example of each error, for tests of surfaces that map them.

use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::id::{AgentName, CallId, RunId, ServerId, Tenant};
use toolgate_core::run::{ResumeError, Status, WiderLimit};
use toolgate_core::tool::ForeignName;
use toolgate_driver::DriveError;
use toolgate_ports::{QuotaExceeded, QuotaOwner, QuotaUnit, SessionHead, SessionRow, StoreError};

use super::RunnerError;
use crate::envelope::EnvelopeError;

/// An example of each error and of each rejection, for tests of an API that maps them.
#[doc(hidden)]
pub fn every_error() -> Vec<RunnerError> {
    let call = || CallId::from("call_1");
    let (run, agent, server) = (|| RunId::from("run_1"), || AgentName::from("desk"), || ServerId::from("shop"));
    let at = Timestamp::UNIX_EPOCH;
    let text = || "text".to_owned();
    let head = || SessionHead {
        run: run(),
        status: Status::Pending,
        version: 3,
        usage: Default::default(),
        iterations: 0,
        updated_at: at,
    };
    let session = || SessionRow {
        id: "chat".into(),
        tenant: Tenant::default(),
        agent: agent(),
        principal: None,
        head: None,
        version: 2,
        runs: 0,
        usage: Default::default(),
        iterations: 0,
        runtime: None,
        title: text(),
        settings: Default::default(),
        created_by: None,
        authors: Default::default(),
        created_at: at,
        updated_at: at,
        deleted_at: None,
    };
    let refusals = vec![
        ResumeError::UnknownCall { call_id: call() },
        ResumeError::AlreadySettled { call_id: call() },
        ResumeError::WrongKind { call_id: call(), expected: text(), given: text() },
        ResumeError::Duplicate { call_id: call() },
        ResumeError::Drifted { call_id: call() },
        ResumeError::TooLate { call_id: call() },
        ResumeError::RepeatUnconfirmed { call_id: call() },
        ResumeError::NotLater { call_id: call(), until: at },
        ResumeError::NoDeadline { call_id: call() },
        ResumeError::InThePast { call_id: call(), until: at },
        ResumeError::Incomplete { missing: vec![call()] },
        ResumeError::Invalid { call_id: call(), what: text(), at: String::new(), problems: text() },
        ResumeError::VersionConflict { expected: 1, actual: 2, status: text() },
        ResumeError::RunEnded { status: text() },
        ResumeError::Oversized { what: text(), most: 1 },
        ResumeError::EmptyMessage,
        ResumeError::NotPaused,
    ];
    let mut errors: Vec<RunnerError> =
        refusals.into_iter().map(|refusal| RunnerError::Refused(vec![refusal])).collect();
    errors.extend([
        RunnerError::Incomplete("store"),
        RunnerError::ModelTwice { agent: agent(), model: "m".into() },
        RunnerError::NoSuchAgent { name: agent(), known: Vec::new() },
        RunnerError::NoSuchTool { agent: agent(), tool: text() },
        RunnerError::NotOfAServer(text()),
        RunnerError::InvalidSession { member: "title", why: text() },
        RunnerError::InvalidArguments { tool: text(), problems: text() },
        RunnerError::FileMissing,
        RunnerError::NoSuchModel { agent: agent(), model: "m".into(), known: vec!["n".into()] },
        RunnerError::UnusableCondition(text()),
        RunnerError::NoSuchServer { agent: agent(), server: server() },
        RunnerError::ForeignTool { agent: agent(), foreign: ForeignName { list: "allow", index: 0, name: text() } },
        RunnerError::WiderLimit {
            agent: agent(),
            limit: WiderLimit { name: "max_iterations", wanted: text(), most: text() },
        },
        RunnerError::InjectionMissing { run: run(), server: server() },
        RunnerError::ServerMissing { run: run(), agent: agent(), server: server() },
        RunnerError::ServerTwice(server()),
        RunnerError::DuplicateTool(text()),
        RunnerError::UnusableTool { place: 0, tool: text(), why: text() },
        RunnerError::UnusableOutputSchema(text()),
        RunnerError::UnusableModelOptions { model: "large".into(), option: Some("temperature"), why: text() },
        RunnerError::InstructionsRefused(agent()),
        RunnerError::EmptyMessage,
        RunnerError::NoSuchRun(run()),
        RunnerError::Purged { run: run(), at },
        RunnerError::NotOver { run: run(), status: Status::Running },
        RunnerError::NotEnded { run: run(), status: Status::Pending },
        RunnerError::NotTheHead { run: run(), head: Some(Box::new(head())) },
        RunnerError::StillDriven(run()),
        RunnerError::SessionBusy { session: "chat".into(), head: Box::new(head()) },
        RunnerError::NoSuchSession("chat".into()),
        RunnerError::SessionDeleted { session: "chat".into(), at },
        RunnerError::SessionExists("chat".into()),
        RunnerError::InvalidFeedback { member: "score", why: text() },
        RunnerError::FeedbackLimit(run()),
        RunnerError::NoSuchFeedback { run: run(), id: "feedback_1".into() },
        RunnerError::SessionVersion(Box::new(session())),
        RunnerError::RunOfAnotherSession { run: run(), session: "chat".into() },
        RunnerError::SessionChanging("chat".into()),
        RunnerError::SessionLimit { session: "chat".into(), limit: "max_tokens", max: text() },
        RunnerError::WiderThanSession {
            session: "chat".into(),
            limit: WiderLimit { name: "max_tokens", wanted: text(), most: text() },
        },
        RunnerError::NoSuchMode { agent: agent(), mode: text(), known: vec![text()] },
        RunnerError::ModeMissing { run: run(), agent: agent(), mode: text() },
        RunnerError::SessionHasHistory("chat".into()),
        RunnerError::SessionOfAnotherAgent { session: "chat".into(), agent: agent() },
        RunnerError::SessionOfAnotherPrincipal("chat".into()),
        RunnerError::NoSuchPosition { run: run(), length: 1, at: 2 },
        RunnerError::DrivenElsewhere { run: run(), node: "node_1".into() },
        RunnerError::Closed,
        RunnerError::Busy,
        RunnerError::Released(run()),
        RunnerError::Drive(StoreError::Unavailable(text()).into()),
        RunnerError::Drive(StoreError::Corrupt(text()).into()),
        RunnerError::Drive(DriveError::Owned("node_1".into())),
        RunnerError::Drive(DriveError::OverQuota(Box::new(QuotaExceeded {
            owner: QuotaOwner::Tenant,
            unit: QuotaUnit::Runs,
            limit: text(),
            used: text(),
            resets_at: at,
            retry_after: Duration::ZERO,
        }))),
        RunnerError::Lost(run()),
    ]);
    errors.extend([
        RunnerError::Envelope(EnvelopeError::NotPending { run: run(), status: "running" }),
        RunnerError::Envelope(EnvelopeError::Spent { run: run() }),
        RunnerError::Envelope(EnvelopeError::Diverged { run: run() }),
        RunnerError::Envelope(EnvelopeError::Expired { at }),
        RunnerError::Envelope(EnvelopeError::Forged),
    ]);
    errors
}
