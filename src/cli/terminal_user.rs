//! Prompts for the person at the terminal: the pending items of a run, and elicitations of calls that stay open while
//! the run continues. An answer that may not fit is recorded in the journal before the next question. Decisions are recorded
//! after the last one, because the person may go back to them; Ctrl-C records them too.

mod round;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::runtime::Handle;

use self::round::{Round, is_approval, is_holdable};
use super::answers::approval;
use super::argument_lines::{PresentFile, argument_lines};
use super::error::CliError;
use super::follow::Follow;
use super::interrupt::Interrupt;
use super::output::Output;
use super::paint::Paint;
use super::past_calls::read_past_calls;
use super::prompt::{self, AskedItem, CallRecord, Prompt, Reply, Terminal};
use super::refusal;
use super::text::block;
use super::view::marked;
use super::wrap::cut;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, Coverage, PendingCall, PendingItem, Resume, ResumeError, Scope};
use crate::runner::{Report, RunnerError};
use crate::service::binding_digest;

/// The poll interval for answers of other processes, and for results of calls in progress, while a prompt is open.
const POLL: Duration = Duration::from_millis(500);

/// How many calls in progress are named above a prompt.
const MEANWHILE: usize = 3;

const FILE_CHANGED: &str = "A file changed after a call on it was approved, so nothing was decided about that call";

/// What became of an answer.
enum Recorded {
    Yes,
    /// The answer does not fit, for this reason, and the item still waits for one.
    No(String),
    /// The item accepts no answer any more: it expired, or changed.
    TooLate,
}

/// How a question about an item ended.
enum QuestionEnd {
    Replied(Box<(Prompt<Terminal>, Reply)>),
    /// The item no longer waits: another process answered it, or it expired. The journal had this length.
    Settled(u64),
    Interrupted(Interrupt),
    /// The terminal cannot be read, which counts as no person.
    Unreadable,
}

/// What the person at the prompts did.
#[derive(Default)]
pub(super) struct Prompted {
    /// The calls that no longer wait: answered here or by another process, or expired.
    settled: Vec<CallId>,
    /// Whether the run is to be stopped, after a denial.
    pub(super) stops: bool,
    /// Whether Ctrl-C ended the prompts: what was decided is kept, and nothing is to start.
    pub(super) is_interrupted: bool,
    /// The arguments of approved calls as they were shown, with the files that they change.
    shown: BTreeMap<CallId, Vec<String>>,
}

impl Prompted {
    /// Removes the items that no longer wait, and returns how many of them there are.
    pub(super) fn remove_settled(&self, items: &mut Vec<PendingItem>) -> usize {
        let all = items.len();
        items.retain(|item| item.call_id().is_none_or(|call| !self.settled.contains(call)));
        all - items.len()
    }

    /// Whether the run has news: an answer from here or from another process, or an expired item.
    pub(super) fn has_news(&self) -> bool {
        !self.settled.is_empty()
    }
}

/// Prompts for the pending items of a run.
pub(super) async fn answer(follow: &mut Follow<'_>, report: &Report, out: &mut Output) -> Result<Prompted, CliError> {
    let items = unanswered(follow, &report.pending);
    note_policy_change(follow, &report.run_id, &items, out).await?;
    prompt_for(follow, &report.run_id, report.version, items, out).await
}

/// Prompts for the open calls of an active run. Releases a call when the person leaves its prompt open.
pub(super) async fn ask(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    loop {
        let state = follow.app.runner.load(run).await?;
        let held: Vec<PendingItem> = state.pending_items().into_iter().filter(PendingItem::is_held).collect();
        let items = unanswered(follow, &held);
        if items.is_empty() {
            return Ok(());
        }
        let calls: Vec<CallId> = items.iter().filter_map(|item| item.call_id().cloned()).collect();
        let settled = prompt_for(follow, run, state.length(), items, out).await?.settled;
        for call in calls.iter().filter(|call| !settled.contains(call)) {
            follow.app.runner.release_held(run, call);
        }
        if settled.is_empty() {
            return Ok(());
        }
    }
}

/// Prompts for the approvals of an active run.
pub(super) async fn decide_early(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<Prompted, CliError> {
    let state = follow.app.runner.load(run).await?;
    let mut items = unanswered(follow, &state.pending_items());
    items.retain(is_approval);
    // Several calls may have started, and the stream has shown the first of them.
    follow.catch_up(run, state.length(), out).await?;
    if !items.is_empty() && follow.is_calling() {
        out.note("meanwhile in progress:");
        for call in follow.calls_in_progress().take(MEANWHILE) {
            out.note(cut(&format!("  {call}"), out.width()));
        }
        let more = follow.calls_in_progress().skip(MEANWHILE).count();
        if more > 0 {
            out.note(format!("  and {more} more"));
        }
    }
    prompt_for(follow, run, state.length(), items, out).await
}

/// Names the policy that asked about these calls, if it changed since: the present one judges a call only after its approval.
async fn note_policy_change(
    follow: &Follow<'_>,
    run: &RunId,
    items: &[PendingItem],
    out: &mut Output,
) -> Result<(), CliError> {
    let state = follow.app.runner.load(run).await?;
    let spec = &state.started().spec;
    let Ok(agent) = follow.app.runner.agent(&spec.agent) else { return Ok(()) };
    let present = agent.policy_of(spec).mark();
    let asked_by = |item: &PendingItem| {
        if let PendingItem::Approval(approval) = item { approval.policy.clone() } else { None }
    };
    if let Some(before) = items.iter().filter_map(asked_by).find(|policy| *policy != present) {
        let (before, present) = (marked(&before), marked(&present));
        out.note(format!("{before} asked, and has changed since: {present} judges each call again before it is sent"));
    }
    Ok(())
}

/// The items that the person has not left open.
fn unanswered(follow: &Follow<'_>, items: &[PendingItem]) -> Vec<PendingItem> {
    let is_news = |item: &&PendingItem| item.wants_answer() && !follow.left_open.contains(&named(item));
    items.iter().filter(is_news).cloned().collect()
}

/// Prompts for each item in turn. An answer that does not fit is asked for again. Withdraws the prompt when another process
/// answers the item; the display of events then shows the decision and its author. Records the answers, whatever ends the
/// prompts.
async fn prompt_for(
    follow: &mut Follow<'_>,
    run: &RunId,
    version: u64,
    items: Vec<PendingItem>,
    out: &mut Output,
) -> Result<Prompted, CliError> {
    let mut prompts = Prompts { follow, run, version, round: Round::new(items), prompted: Prompted::default() };
    let ended = prompts.ask_all(out).await;
    prompts.record_held(out).await?;
    ended.map(|()| prompts.prompted)
}

/// The prompts about the items of a run.
struct Prompts<'p, 'a> {
    follow: &'p mut Follow<'a>,
    run: &'p RunId,
    /// The version of the run that is shown.
    version: u64,
    round: Round,
    prompted: Prompted,
}

impl Prompts<'_, '_> {
    async fn ask_all(&mut self, out: &mut Output) -> Result<(), CliError> {
        if self.round.current().is_none() {
            return Ok(());
        }
        out.passed();
        let Some(mut prompt) = prompt::at_terminal() else { return Ok(()) };
        // Dropping it withdraws the prompt.
        let mut open = Some(prompt.withdrawal());
        loop {
            let Some(asked) = self.round.asked() else {
                if self.reopen_changed(". Look again:", out) {
                    continue;
                }
                return Ok(());
            };
            let (item, further) = (asked.item.clone(), asked.further.clone());
            let state = self.follow.app.runner.load(self.run).await?;
            let is_pending = state.pending_items().iter().any(|pending| pending.is_same_request(&item));
            let ended = if is_pending {
                let asking = ask_about(prompt, self.follow, self.run, asked);
                self.follow.left_open.insert(named(&item));
                wait_for_reply(asking, self.follow, self.run, &item, out).await?
            } else {
                // Another process answered it while an earlier question was open.
                QuestionEnd::Settled(state.length())
            };
            let reply = match ended {
                QuestionEnd::Replied(replied) => {
                    let (returned, reply) = *replied;
                    prompt = returned;
                    reply
                }
                QuestionEnd::Unreadable => return Ok(()),
                QuestionEnd::Settled(length) => {
                    drop(open.take());
                    if is_pending {
                        // The prompt does not end its line.
                        out.note("");
                    }
                    self.settled_elsewhere(&item, length, out).await?;
                    let Some(again) = prompt::at_terminal() else { return Ok(()) };
                    prompt = again;
                    open = Some(prompt.withdrawal());
                    continue;
                }
                QuestionEnd::Interrupted(Interrupt::Stop) => {
                    self.interrupt(out);
                    return Ok(());
                }
                QuestionEnd::Interrupted(Interrupt::Leave) => return Err(CliError::Terminated(self.run.clone())),
            };
            match reply {
                Reply::LeftPending => self.round.next(),
                Reply::Back => self.round.back(),
                Reply::Stopped(call, answer) => {
                    self.prompted.stops = true;
                    self.round.hold(vec![(call, answer)], |_, _, _| false);
                    return Ok(());
                }
                Reply::Answered(answers) if answers.iter().all(|(_, answer)| is_holdable(answer)) => {
                    self.hold(answers, &item, &further, out).await?;
                }
                Reply::Answered(answers) => self.record_at_once(answers, &item, &mut prompt, out).await?,
            }
        }
    }

    /// Asks again about the approved calls whose file is another one than the one that was shown. Returns whether there are
    /// such calls.
    fn reopen_changed(&mut self, end: &str, out: &mut Output) -> bool {
        let changed = changed_files(&self.round, &self.prompted.shown);
        if !changed.is_empty() {
            out.note(format!("\n  {FILE_CHANGED}{end}"));
            self.round.reopen(&changed);
        }
        !changed.is_empty()
    }

    /// Shows the answer of another process, and goes on to the next item.
    async fn settled_elsewhere(&mut self, item: &PendingItem, length: u64, out: &mut Output) -> Result<(), CliError> {
        self.version = length;
        self.follow.left_open.remove(&named(item));
        self.prompted.settled.extend(item.call_id().cloned());
        self.follow.catch_up(self.run, length, out).await?;
        self.round.fix();
        self.round.next();
        Ok(())
    }

    /// Ends the prompts for Ctrl-C. Only they are withdrawn: the answers before are kept, and the other items stay pending.
    fn interrupt(&mut self, out: &mut Output) {
        self.prompted.is_interrupted = true;
        self.reopen_changed("", out);
        self.follow.left_open.extend(self.round.remaining().map(named));
    }

    /// Holds decisions until the last item is answered, and names the calls that one of them covers.
    async fn hold(
        &mut self,
        answers: Vec<(CallId, Answer)>,
        item: &PendingItem,
        further: &[PendingItem],
        out: &mut Output,
    ) -> Result<(), CliError> {
        let state = self.follow.app.runner.load(self.run).await?;
        let unusable = answers.iter().find_map(|(call, answer)| state.unusable_decision(call, answer.decision()?));
        if let Some(error) = unusable {
            out.note(format!("  {error}"));
            return Ok(());
        }
        let is_answered = |call: &CallId| answers.iter().any(|(answered, _)| answered == call);
        for item in [item].into_iter().chain(further) {
            if let Some(call) = item.call_id().filter(|call| is_answered(call)) {
                self.prompted.shown.insert(call.clone(), present(item));
            }
        }
        for covered in self.round.hold(answers, |decision, call, other| state.would_cover(decision, call, other)) {
            let line = self.round.named(covered).unwrap_or_default();
            out.note(format!("  {line}: approved too, because your approval covers it"));
        }
        Ok(())
    }

    /// Records an answer that may not fit, and goes on to the next item if it does.
    async fn record_at_once(
        &mut self,
        answers: Vec<(CallId, Answer)>,
        item: &PendingItem,
        prompt: &mut Prompt<Terminal>,
        out: &mut Output,
    ) -> Result<(), CliError> {
        self.record_held(out).await?;
        // An answered item may need another prompt, because its server asks another question.
        self.follow.left_open.remove(&named(item));
        match record(self.follow, self.run, self.version, answers.clone(), item, out).await? {
            Recorded::No(why) => {
                let edits = answers
                    .iter()
                    .filter_map(|(call, answer)| Some((call, answer.decision()?.edited_arguments.as_ref()?)));
                edits.for_each(|(call, edited)| prompt.refuse_edit(call, edited, &why));
            }
            recorded @ (Recorded::Yes | Recorded::TooLate) => {
                if matches!(recorded, Recorded::Yes) {
                    self.round.note_recorded(&answers);
                }
                self.prompted.settled.extend(item.call_id().cloned());
                self.round.fix();
                self.round.next();
            }
        }
        Ok(())
    }

    /// Records the answers that are held.
    async fn record_held(&mut self, out: &mut Output) -> Result<(), CliError> {
        for (item, call, answer) in self.round.take_held() {
            self.follow.left_open.remove(&named(&item));
            if let Some(shown) = self.prompted.shown.get(&call) {
                if *shown != present(&item) {
                    out.note(format!("\n  {FILE_CHANGED}"));
                    continue;
                }
                self.follow.shown_here(call.clone());
            }
            // A decision does not depend on the version: its digest binds it to the item.
            let answers = vec![(call.clone(), answer)];
            match record(self.follow, self.run, 0, answers.clone(), &item, out).await? {
                Recorded::Yes => {
                    self.round.note_recorded(&answers);
                    self.prompted.settled.push(call);
                }
                Recorded::TooLate => self.prompted.settled.push(call),
                Recorded::No(_) => {}
            }
        }
        Ok(())
    }
}

/// Waits until the question about an item ends.
async fn wait_for_reply(
    asking: impl Future<Output = Option<(Prompt<Terminal>, Reply)>>,
    follow: &mut Follow<'_>,
    run: &RunId,
    item: &PendingItem,
    out: &mut Output,
) -> Result<QuestionEnd, CliError> {
    let operator = follow.app.operator();
    let settled = operator.settled(run, item, POLL);
    tokio::pin!(asking, settled);
    loop {
        tokio::select! {
            answered = &mut asking => {
                return Ok(answered.map_or(QuestionEnd::Unreadable, |replied| QuestionEnd::Replied(Box::new(replied))));
            }
            length = &mut settled => return Ok(QuestionEnd::Settled(length)),
            interrupt = follow.interrupts.next() => return Ok(QuestionEnd::Interrupted(interrupt)),
            () = tokio::time::sleep(POLL) => beside_question(follow, run, out).await?,
        }
    }
}

/// Sends the messages that were entered before the open question is answered, so that they are not lost with the process, and
/// shows the results of the calls in progress above the question.
async fn beside_question(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    let (mut collecting, collected) = out.collecting();
    follow.send_entered(run, &mut collecting).await;
    if follow.is_calling() {
        follow.catch_up(run, u64::MAX, &mut collecting).await?;
    }
    let lines = std::mem::take(&mut *collected.lock().unwrap_or_else(PoisonError::into_inner));
    let lines = String::from_utf8_lossy(&lines);
    if !lines.is_empty() && !prompt::announce(&lines) {
        out.bytes(lines.as_bytes());
    }
    Ok(())
}

/// The approved calls whose file is another one than the one that was shown.
fn changed_files(round: &Round, shown: &BTreeMap<CallId, Vec<String>>) -> Vec<usize> {
    let is_other =
        |item: &PendingItem| item.call_id().and_then(|call| shown.get(call)).is_some_and(|was| *was != present(item));
    round.approved().filter(|(_, item)| is_other(item)).map(|(at, _)| at).collect()
}

/// The arguments of a call as they are shown now, compared with the present file.
fn present(item: &PendingItem) -> Vec<String> {
    let lines = |call: PendingCall<'_>| argument_lines(&call.arguments, PresentFile::Compared(&[]), Paint::Plain);
    item.call().map(lines).unwrap_or_default()
}

/// Asks about an item on a thread of its own. `None` if the terminal cannot be read.
fn ask_about(
    mut prompt: Prompt<Terminal>,
    follow: &Follow<'_>,
    run: &RunId,
    asked: AskedItem,
) -> impl Future<Output = Option<(Prompt<Terminal>, Reply)>> + use<> {
    let (runner, of_run, runtime) = (follow.app.runner.clone(), run.clone(), Handle::current());
    let asking = tokio::task::spawn_blocking(move || {
        let past = || {
            let call = asked.item.call()?;
            runtime.block_on(read_past_calls(&runner, &of_run, &call)).ok()
        };
        let refusal = |condition: &str| {
            let wanted = approval(Scope::Session, Some(Coverage::When(condition.to_owned())), None);
            let state = runtime.block_on(runner.load(&of_run)).ok()?;
            state.unusable_decision(asked.item.call_id()?, &wanted).map(|error| error.to_string())
        };
        let record = CallRecord { past: &past, refusal: &refusal };
        let reply = prompt.ask(&asked, record);
        reply.map(|reply| (prompt, reply))
    });
    async move { asking.await.ok()?.ok() }
}

/// Records the answer to an item as it was shown at this version of the run.
async fn record(
    follow: &mut Follow<'_>,
    run: &RunId,
    version: u64,
    answers: Vec<(CallId, Answer)>,
    item: &PendingItem,
    out: &mut Output,
) -> Result<Recorded, CliError> {
    let mut given = answers.into_iter().collect::<Resume>().partial();
    for (_, answer) in &mut given.answers {
        match answer {
            // An approval covers the call that was shown, whatever changed since.
            Answer::Decision { digest: shown, .. } => *shown = binding_digest(run, item),
            // The same answer to another question has another meaning.
            Answer::Elicitation(_) => given.expected_version = Some(version),
            Answer::Result(_) | Answer::Question(_) => {}
        }
    }
    let app = follow.app;
    let calls: Vec<CallId> = given.answers.iter().map(|(call, _)| call.clone()).collect();
    let Err(error) = app.operator().record_as_shown(run, given, std::slice::from_ref(item)).await else {
        calls.into_iter().for_each(|call| follow.decided_here(call));
        return Ok(Recorded::Yes);
    };
    let is_too_late = is_too_late(&error);
    let error = refusal::with_journal_details(error, &app.runner.journal(run).await?);
    let why = error.to_string();
    out.note(format!("error: {}", block(&why)));
    let still_waits = || async { Ok::<_, CliError>(app.runner.load(run).await?.pending_items().contains(item)) };
    Ok(if is_too_late || !still_waits().await? { Recorded::TooLate } else { Recorded::No(why) })
}

fn is_too_late(error: &RunnerError) -> bool {
    let RunnerError::Refused(refusals) = error else { return false };
    refusals.iter().any(|refusal| matches!(refusal, ResumeError::TooLate { .. }))
}

fn named(item: &PendingItem) -> (Option<CallId>, &'static str) {
    (item.call_id().cloned(), item.kind())
}
