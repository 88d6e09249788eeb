//! Validation of an input before it is recorded, and the blobs that are stored with it.

use toolgate_core::blob::Blob;
use toolgate_core::id::{CallId, RunId, ServerId};
use toolgate_core::run::{Answer, Call, Decision, ElicitationAnswer, Event, Input, Resume, ResumeError, Run, Spec};
use toolgate_core::tool::result::{bounded, bounded_message};
use toolgate_core::tool::{Action, Arguments, Outcome, Problem, Question};
use toolgate_driver::{Agent, DriveError, Journal};
use toolgate_ports::{BlobError, InputFindings, StoreError};

use super::run_servers::RunServers;
use super::{AgentRunner, RunnerError};

/// The validated form of an input for one state of the journal. If the journal has grown, the input must be validated
/// again: a result that matched one definition of a tool may not match another.
pub(super) struct ValidatedInput {
    pub(super) events: Vec<Event>,
    /// The blobs to store before the events are written.
    pub(super) blobs: Vec<Blob>,
}

impl AgentRunner {
    /// Validates everything about an input that can be validated before it is written, against the current state of the
    /// run.
    pub(super) async fn validate_input(
        &self,
        journal: &Journal,
        current: &Run,
        input: &Input,
    ) -> Result<ValidatedInput, RunnerError> {
        let (trimmed, blobs) = self.trim_results(journal, input);
        // Content is validated only if the call waits for it, so the pending items come first.
        let bound = BoundInput::new(journal, current, trimmed)?;
        if let Input::Resume(resume) = &bound.0 {
            let misdirected = current.misdirected(resume);
            if !misdirected.is_empty() {
                return Err(RunnerError::Refused(misdirected));
            }
        }
        if let Input::Resume(resume) = input {
            self.check(current, resume).await?;
            if let Some(unpause) = &resume.unpause {
                self.check_raised_limits(current, journal.created_at(), &unpause.limits).await?;
            }
        }
        let refused = |call_id| ResumeError::Invalid {
            call_id,
            what: "the answer".into(),
            at: String::new(),
            problems: "contains a secret of the configuration, which no journal may hold; leave it out".into(),
        };
        let with_secrets = input.calls_with_secrets(&self.inner.ports.store.secrets);
        if !with_secrets.is_empty() {
            return Err(RunnerError::Refused(with_secrets.into_iter().map(refused).collect()));
        }
        Ok(ValidatedInput { events: self.input_events(current, &bound)?, blobs })
    }

    /// Results must match their tool's result schema, edited arguments the tool's input schema, and answers to a server
    /// the schema of its form. Entries for calls that do not wait for them repeat an earlier input.
    async fn check(&self, run: &Run, resume: &Resume) -> Result<(), RunnerError> {
        let pending = run.pending_items();
        let mut refusals = Vec::new();
        for (id, answer) in resume.answers.iter().filter(|(id, answer)| answer.settles(id, &pending)) {
            match answer {
                Answer::Result(outcome) => refusals.extend(self.result_problem(run, id, outcome).await),
                Answer::Decision { decision, .. } => refusals.extend(self.edit_problem(run, id, decision).await),
                Answer::Elicitation(given) => refusals.extend(self.form_problems(run, id, given).await),
                Answer::Question(_) => {}
            }
        }
        if refusals.is_empty() { Ok(()) } else { Err(RunnerError::Refused(refusals)) }
    }

    async fn result_problem(&self, run: &Run, id: &CallId, outcome: &Outcome) -> Option<ResumeError> {
        let Outcome::Returned(output) = outcome else { return None };
        let tool = run.call(id)?.tool.as_ref().filter(|tool| tool.output_schema.is_some() && !output.is_error)?;
        let value = output.structured.clone().unwrap_or_else(|| output.joined_text().into());
        match self.inner.ports.inputs.check_result(tool, &value).await {
            InputFindings::Valid => None,
            InputFindings::Invalid(problems) => Some(invalid(id, "the result", &problems)),
        }
    }

    async fn edit_problem(&self, run: &Run, id: &CallId, decision: &Decision) -> Option<ResumeError> {
        let edited = decision.edited_arguments.as_ref()?;
        let tool = run.call(id)?.tool.as_ref()?;
        let problems = match edited {
            Arguments::Malformed(_) => vec![Problem::whole("json", "not a JSON object")],
            Arguments::Object(object) => match self.inner.ports.check_arguments(tool, object, run.budget()).await {
                InputFindings::Valid => return None,
                InputFindings::Invalid(problems) => problems,
            },
        };
        Some(invalid(id, "the edited arguments", &problems))
    }

    async fn form_problems(&self, run: &Run, id: &CallId, given: &ElicitationAnswer) -> Vec<ResumeError> {
        let Some(needed) = run.call(id).and_then(Call::elicitation) else { return Vec::new() };
        let mut refusals = Vec::new();
        for (key, question) in &needed.questions {
            let (Question::Form { schema, .. }, Some(reaction)) = (question, given.reactions.get(key)) else {
                continue;
            };
            let Some(form) = question.with_defaults(reaction.clone()).content else { continue };
            let findings = self.inner.ports.inputs.check_form(schema, &form.into()).await;
            if let (InputFindings::Invalid(problems), Action::Accept) = (findings, reaction.action) {
                refusals.push(invalid(id, &format!("the answer to `{key}`"), &problems));
            }
        }
        refusals
    }

    /// The events that an input becomes.
    pub(super) fn input_events(
        &self,
        current: &Run,
        BoundInput(input): &BoundInput,
    ) -> Result<Vec<Event>, RunnerError> {
        let events = current.accept(input).map_err(RunnerError::Refused)?;
        match input {
            Input::Extend { call, until, .. } if !events.is_empty() && *until <= self.inner.ports.clock.now() => {
                Err(RunnerError::Refused(vec![ResumeError::InThePast { call_id: call.clone(), until: *until }]))
            }
            Input::Resume(_) => self.reject_expired(events),
            Input::Extend { .. } | Input::Message(_) | Input::Pause { .. } | Input::Cancel { .. } => Ok(events),
        }
    }

    /// Rejects decisions with a grant that expires before it starts. A repeated decision becomes no event and is
    /// accepted.
    fn reject_expired(&self, events: Vec<Event>) -> Result<Vec<Event>, RunnerError> {
        let now = self.inner.ports.clock.now();
        let expired = |event: &Event| {
            let Event::ApprovalDecided { call, decision } = event else { return None };
            let until = decision.expires_at.filter(|until| *until <= now)?;
            Some(ResumeError::InThePast { call_id: call.clone(), until })
        };
        let refusals: Vec<ResumeError> = events.iter().filter_map(expired).collect();
        if refusals.is_empty() { Ok(events) } else { Err(RunnerError::Refused(refusals)) }
    }

    /// The input with results that are ready to be recorded, and the blobs to store first. Equal inputs give equal
    /// results, so that a repeated input is recognized.
    pub(super) fn trim_results(&self, journal: &Journal, input: &Input) -> (Input, Vec<Blob>) {
        let Input::Resume(resume) = input else { return (input.clone(), Vec::new()) };
        let limit = journal.run().started().spec.limits.result_bytes();
        let (mut resume, mut blobs) = (resume.clone(), Vec::new());
        for (_, answer) in &mut resume.answers {
            match answer {
                Answer::Result(outcome @ Outcome::Returned(_)) => {
                    *outcome =
                        std::mem::replace(outcome, Outcome::Unknown).without_secrets(&self.inner.ports.store.secrets);
                    let Outcome::Returned(output) = outcome else { continue };
                    output.problems.clear();
                    let (trimmed, more) = bounded(std::mem::take(output), limit, self.inner.ports.overflow_storage());
                    *output = trimmed;
                    blobs.extend(more);
                }
                Answer::Result(Outcome::Failed(failure)) => {
                    failure.message = bounded_message(std::mem::take(&mut failure.message), limit);
                }
                Answer::Result(Outcome::Unknown)
                | Answer::Decision { .. }
                | Answer::Question(_)
                | Answer::Elicitation(_) => {}
            }
        }
        (Input::Resume(resume), blobs)
    }

    /// Stores the blobs that the events refer to. Unlike the result of a call, an input can be sent again: if its blobs
    /// cannot be stored, the input is rejected.
    pub(super) async fn store_blobs(&self, run: &RunId, blobs: Vec<Blob>) -> Result<(), RunnerError> {
        let stored = self.inner.ports.keep_all(run, blobs).await;
        stored.map_err(|error| match error {
            BlobError::Store(error) => DriveError::from(error).into(),
            // Larger content is never among these blobs.
            BlobError::TooLarge { .. } => DriveError::from(StoreError::Unavailable(error.to_string())).into(),
        })
    }
}

/// Rejects a permission mode that the agent does not have.
pub(super) fn require_mode(agent: &Agent, mode: &str) -> Result<(), RunnerError> {
    if agent.has_mode(mode) {
        return Ok(());
    }
    let known = agent.policies().map(|policy| policy.name.clone()).collect();
    Err(RunnerError::NoSuchMode { agent: agent.name.clone(), mode: mode.to_owned(), known })
}

/// Rejects a run whose servers are not configured in this process, because it would continue without their tools, or
/// whose permission mode is not.
pub(super) fn require_servers(
    run: &RunId,
    spec: &Spec,
    agent: &Agent,
    brought: &RunServers,
) -> Result<(), RunnerError> {
    if let Some(mode) = spec.mode.as_ref().filter(|mode| !agent.has_mode(mode)) {
        return Err(RunnerError::ModeMissing { run: run.clone(), agent: agent.name.clone(), mode: mode.clone() });
    }
    let is_here = |server: &ServerId| agent.servers.contains(server) || brought.ids().any(|id| id == server);
    match spec.servers.iter().find(|server| !is_here(server)) {
        None => Ok(()),
        Some(server) if spec.injected.contains(server) => {
            Err(RunnerError::InjectionMissing { run: run.clone(), server: server.clone() })
        }
        Some(server) => {
            Err(RunnerError::ServerMissing { run: run.clone(), agent: agent.name.clone(), server: server.clone() })
        }
    }
}

/// Whether the input contains anything to record.
pub(super) fn has_content(input: &Input) -> bool {
    match input {
        Input::Resume(resume) => !resume.is_empty(),
        Input::Message(_) | Input::Extend { .. } | Input::Pause { .. } | Input::Cancel { .. } => true,
    }
}

fn invalid(call: &CallId, what: &str, problems: &[Problem]) -> ResumeError {
    let at = problems.first().map(|problem| problem.path.clone()).unwrap_or_default();
    let problems = Problem::feedback("cannot be used:", problems).replace('\n', " ");
    ResumeError::Invalid { call_id: call.clone(), what: what.into(), at, problems }
}

/// An input with each decision bound to the current call.
pub(super) struct BoundInput(Input);

impl BoundInput {
    /// Rejects a decision whose approver saw another binding. An expected version that matches the journal becomes the
    /// version of the current state.
    pub(super) fn new(journal: &Journal, current: &Run, mut input: Input) -> Result<Self, RunnerError> {
        if let Input::Resume(Resume { expected_version: Some(version), .. })
        | Input::Pause { expected_version: Some(version), .. }
        | Input::Cancel { expected_version: Some(version), .. } = &mut input
            && *version == journal.run().length()
        {
            // A caller that saw everything need not have seen expiry events.
            *version = current.length();
        }
        let Input::Resume(resume) = &mut input else { return Ok(Self(input)) };
        let mut drifted = Vec::new();
        for (call, answer) in &mut resume.answers {
            let Answer::Decision { decision, digest } = answer else { continue };
            let in_force = current.binding(call, None).map(|binding| binding.digest(journal.id(), call));
            if in_force.zip(digest.as_ref()).is_some_and(|(in_force, digest)| in_force != *digest) {
                drifted.push(ResumeError::Drifted { call_id: call.clone() });
            }
            decision.binding = current.binding(call, decision.edited_arguments.as_ref()).map(Box::new);
        }
        if drifted.is_empty() { Ok(Self(input)) } else { Err(RunnerError::Refused(drifted)) }
    }
}
