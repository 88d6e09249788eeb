//! One run of a test: an app of its own, the run, and the answers to its pending items until it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;

use super::answers::Answers;
use super::error::TestError;
use crate::app::{App, Models};
use crate::config::{Settings, StoreSettings};
use crate::core::id::{AgentName, RunId, ServerId};
use crate::core::run::{Event, Input, JournalEntry, PendingItem, Resume, Status};
use crate::lab::recording::RecordedServers;
use crate::ports::{McpServers, Update};
use crate::runner::{Execution, PollOutcome, Report, Request, RunnerError};

/// Limit of resumes. It ends a run whose model or server asks without end.
const MOST_RESUMES: usize = 200;

/// A run to be made. The models are those of the settings, and these.
pub(super) struct TestRun {
    pub(super) settings: Settings,
    pub(super) models: Models,
    pub(super) agent: AgentName,
    pub(super) task: String,
    /// Recorded servers in place of real ones, with their ids.
    pub(super) recorded: Option<(Vec<ServerId>, RecordedServers)>,
    /// The time after which the run is cancelled.
    pub(super) time_limit: Duration,
}

/// A run that has ended, or waits for an answer that the file does not have.
pub(super) struct FinishedRun {
    pub(super) journal: Vec<JournalEntry>,
    /// The pending items without an answer.
    pub(super) unanswered: Vec<PendingItem>,
    pub(super) took: Duration,
    /// Whether the run was cancelled because of its time limit.
    pub(super) timed_out: bool,
}

impl TestRun {
    /// Makes the run. A failed run is a result like any other; an error means that the run could not begin.
    pub(super) async fn execute(mut self, answers: &mut dyn Answers) -> Result<FinishedRun, TestError> {
        self.settings.store = StoreSettings::Memory;
        self.settings.log_folder = None;
        let app = App::open_with_models(self.settings, self.models).await?;
        let mut request = Request::new(self.agent, self.task);
        if let Some((ids, servers)) = self.recorded {
            let servers: Arc<dyn McpServers> = Arc::new(servers);
            request = ids.into_iter().fold(request, |request, id| request.inject(id, servers.clone()));
        }
        let finished = finish(&app, request, answers, self.time_limit).await;
        // The run does not depend on the export of its spans.
        app.close().await;
        finished
    }
}

async fn finish(
    app: &App,
    request: Request,
    answers: &mut dyn Answers,
    time_limit: Duration,
) -> Result<FinishedRun, TestError> {
    let began = Instant::now();
    let execution = app.runner.start(request).await?;
    let id = execution.run.clone();
    let ended = tokio::time::timeout(time_limit, until_answers_end(app, execution, answers)).await;
    let timed_out = ended.is_err();
    let report = match ended {
        Ok(report) => report?,
        Err(_) => app.runner.cancel(&id, Some("the time limit of the test is over".to_owned()), None).await?,
    };
    let journal = app.runner.journal(&id).await?;
    let unanswered = report.pending.into_iter().filter(PendingItem::wants_answer).collect();
    Ok(FinishedRun { journal, unanswered, took: began.elapsed(), timed_out })
}

/// Answers pending items until the run ends, or an item has no answer.
async fn until_answers_end(
    app: &App,
    mut execution: Execution,
    answers: &mut dyn Answers,
) -> Result<Report, RunnerError> {
    let run = execution.run.clone();
    let mut report = until_idle(app, execution, answers).await?;
    let mut resumes = 0;
    while report.status == Status::Pending && resumes < MOST_RESUMES {
        let resume = answered(&report.pending, answers);
        execution = if !resume.is_empty() {
            resumes += 1;
            app.runner.resume_run(&run, Input::Resume(resume.partial()), None).await?
        } else if report.pending.iter().any(PendingItem::wants_answer) {
            break;
        } else {
            match app.runner.poll_tasks(&run).await? {
                PollOutcome::GoesOn(execution) => execution,
                PollOutcome::NoTasks(_) => break,
                PollOutcome::StillWaits { again_in, .. } => {
                    tokio::time::sleep(again_in).await;
                    continue;
                }
            }
        };
        report = until_idle(app, execution, answers).await?;
    }
    Ok(report)
}

fn answered(items: &[PendingItem], answers: &mut dyn Answers) -> Resume {
    let mut resume = Resume::new();
    for item in items {
        if let Some(call) = item.call_id()
            && let Some(answer) = answers.answer(item)
        {
            resume = resume.with(call.clone(), answer);
        }
    }
    resume
}

/// Waits until the run is idle. Elicitations on open calls are answered while the calls are held.
async fn until_idle(app: &App, execution: Execution, answers: &mut dyn Answers) -> Result<Report, RunnerError> {
    let run = execution.run.clone();
    let _attendance = app.runner.attend(&run);
    let (mut updates, rest) = execution.split();
    let mut rest = Box::pin(rest.fuse());
    loop {
        tokio::select! {
            biased;
            report = &mut rest => return report,
            update = updates.next() => match update {
                Some(Update::JournalEntry(JournalEntry { event: Event::InputRequested { .. }, .. })) => {
                    answer_held(app, &run, answers).await?;
                }
                Some(_) => {}
                None => return rest.await,
            },
        }
    }
}

async fn answer_held(app: &App, run: &RunId, answers: &mut dyn Answers) -> Result<(), RunnerError> {
    let held: Vec<PendingItem> =
        app.runner.load(run).await?.pending_items().into_iter().filter(PendingItem::is_held).collect();
    let resume = answered(&held, answers);
    for call in held.iter().filter_map(PendingItem::call_id) {
        if !resume.answers.iter().any(|(answered, _)| answered == call) {
            app.runner.release_held(run, call);
        }
    }
    if !resume.is_empty() {
        app.runner.resume_run(run, Input::Resume(resume.partial()), None).await?;
    }
    Ok(())
}
