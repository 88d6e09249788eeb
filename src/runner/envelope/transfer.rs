//! Export of a run as an envelope, and resume from an envelope.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_core::blob::Blob;
use toolgate_core::id::{CallId, RunId};
use toolgate_core::run::{Answer, Ending, Event, Input, JournalEntry, PendingItem, Resume, ResumeError, Run};
use toolgate_core::trace::Trace;
use toolgate_driver::{DriveError, Journal};
use toolgate_ports::{BlobError, StoreError};

use super::content::{Content, head};
use super::token::{Claims, mint};
use super::{Envelope, EnvelopeError, EnvelopeKeys, MOST_TOKEN_BYTES};
use crate::resume_input::{BoundInput, has_content, require_servers};
use crate::{AgentRunner, Execution, Report, RunnerError};

/// The stored journal compared with the journal in an envelope.
enum ImportState {
    /// It is the same, apart from expiry events; this is its length now.
    Same(u64),
    /// It continued from there with the same answers as the ones given now.
    Answered,
}

impl AgentRunner {
    /// Exports a pending run as an envelope for its caller.
    pub async fn export(&self, run: &RunId) -> Result<Envelope, RunnerError> {
        let keys = self.envelope_keys()?;
        let (journal, history) = self.open_waiting(run).await?;
        let report = Report::new(run.clone(), journal.run());
        let issued_at = self.inner.ports.clock.now();
        let mut envelope = Envelope {
            run_id: run.clone(),
            messages: report.messages,
            pending: report.pending,
            tool_interactions: report.tool_interactions,
            token: String::new(),
            expires_at: issued_at.saturating_add(keys.lifetime()).unwrap_or(issued_at),
        };
        let claims = Claims {
            run: run.clone(),
            length: report.version,
            head: head(&history),
            shown: envelope.content_hash(),
            bindings: bindings(run, journal.run(), &envelope.pending),
            issued_at,
            expires_at: envelope.expires_at,
        };
        let prior = journal.run().started().prior_conversation().map(|prior| prior.as_ref().clone());
        let content = Content::new(history, prior, self.carried(run, journal.run()).await?);
        let token = mint(&keys, &claims, content.to_bytes()?)?;
        envelope.token = token.ok_or_else(|| too_large(run))?;
        Ok(envelope)
    }

    /// Opens a run that is pending now, after the expiry of overdue items was written to its journal.
    async fn open_waiting(&self, run: &RunId) -> Result<(Journal, Vec<JournalEntry>), RunnerError> {
        loop {
            let (journal, history) = self.open_unless_over(run).await?;
            let (current, late) = journal.at_now()?;
            if current.pending().is_empty() {
                let status = if late.is_empty() { current.status().as_str() } else { "overdue" };
                return Err(EnvelopeError::NotPending { run: run.clone(), status }.into());
            }
            if late.is_empty() {
                return Ok((journal, history));
            }
            self.write_beside(journal, late).await?;
        }
    }

    /// Resumes a run from an envelope and waits until it is idle again.
    pub async fn resume_from(&self, envelope: &Envelope, resume: Resume) -> Result<Report, RunnerError> {
        self.resume_run_from(envelope, resume, None).await?.until_idle().await
    }

    /// Resumes a run from an envelope. An envelope is valid for one resume; repeating the same resume changes nothing.
    /// A rejected envelope writes nothing.
    pub async fn resume_run_from(
        &self,
        envelope: &Envelope,
        resume: Resume,
        trace: Option<Trace>,
    ) -> Result<Execution, RunnerError> {
        let (claims, content) = self.opened(envelope)?;
        let claims = &claims;
        check_version(&resume, claims.length)?;
        loop {
            let version = match self.import_state(claims, &content, &resume).await? {
                ImportState::Same(version) => version,
                ImportState::Answered => return self.follow(&claims.run, trace).await,
            };
            let given = Input::Resume(bound(&resume, claims, version));
            match self.resume_run(&claims.run, given, trace.clone()).await {
                // Another writer was faster, or an item expired: compare again with the current journal.
                Err(RunnerError::Refused(_)) if self.length(&claims.run).await? != version => {}
                done => return done,
            }
        }
    }

    /// The journal in an envelope, after full verification.
    pub fn journal_in(&self, envelope: &Envelope) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.opened(envelope)?.1.journal)
    }

    fn opened(&self, envelope: &Envelope) -> Result<(Claims, Content), EnvelopeError> {
        let keys = self.envelope_keys()?;
        let verified = keys.verified(envelope, self.inner.ports.clock.now())?;
        let content = Content::read(&verified.open()?, &verified.claims)?;
        Ok((verified.claims, content))
    }

    /// Continues a run that already has its answers. Adds no input.
    async fn follow(&self, run: &RunId, trace: Option<Trace>) -> Result<Execution, RunnerError> {
        match self.resume_run(run, Input::Resume(Resume::default()), trace).await {
            Err(RunnerError::DrivenElsewhere { run, .. }) => Ok(self.follow_other_process(&run)),
            done => done,
        }
    }

    fn envelope_keys(&self) -> Result<Arc<EnvelopeKeys>, EnvelopeError> {
        self.inner.envelopes.clone().ok_or(EnvelopeError::NotConfigured)
    }

    /// Compares the stored journal with the envelope. The store has the run when this returns.
    async fn import_state(
        &self,
        claims: &Claims,
        content: &Content,
        resume: &Resume,
    ) -> Result<ImportState, RunnerError> {
        let run = &claims.run;
        loop {
            let stored = self.stored(run).await?;
            let common = stored.len().min(content.journal.len());
            if head(stored.iter().take(common)) != head(content.journal.iter().take(common)) {
                return Err(EnvelopeError::Diverged { run: run.clone() }.into());
            }
            if common < content.journal.len() {
                self.import(claims, content, common, resume).await?;
                continue;
            }
            let since = stored.iter().skip(common);
            if since.clone().all(is_of_time) {
                return Ok(ImportState::Same(stored.len() as u64));
            }
            return match self.repeats(run, resume).await? {
                true => Ok(ImportState::Answered),
                false => Err(EnvelopeError::Spent { run: run.clone() }.into()),
            };
        }
    }

    /// Whether a run that continued already received the same input.
    async fn repeats(&self, run: &RunId, resume: &Resume) -> Result<bool, RunnerError> {
        let mut bare = Resume { expected_version: None, ..resume.clone() };
        for (_, answer) in &mut bare.answers {
            if let Answer::Decision { digest, .. } = answer {
                *digest = None;
            }
        }
        let journal = self.open_unless_over(run).await?.0;
        let (input, _) = self.trim_results(&journal, &Input::Resume(bare));
        let (has_content, (current, _)) = (has_content(&input), journal.at_now()?);
        let events = BoundInput::new(&journal, &current, input).and_then(|bound| self.input_events(&current, &bound));
        Ok(has_content && events.is_ok_and(|events| events.is_empty()))
    }

    /// Writes the events that the store lacks, in one append, if the input would be accepted. The caller handles a
    /// faster writer.
    async fn import(
        &self,
        claims: &Claims,
        content: &Content,
        stored: usize,
        resume: &Resume,
    ) -> Result<(), RunnerError> {
        let (run, ports) = (&claims.run, &self.inner.ports);
        let history = content.journal.clone();
        let claim = match history.first() {
            Some(JournalEntry { event: Event::Started(started), .. }) if stored == 0 => {
                self.claim_of_import(run, started).await?
            }
            Some(_) | None => None,
        };
        let (store, clock) = (ports.store.clone(), ports.clock.clone());
        let mut journal = Journal::handed_over(run, history, stored, claim, store, clock)?;
        let agent = self.agent_of(&journal.run().started().spec)?;
        require_servers(run, &journal.run().started().spec, &agent, &self.inner.injections.servers_of(run))?;
        // Expiry events since the export are not in the envelope. The resume writes them.
        let (current, _) = journal.at_now()?;
        let given = bound(resume, claims, current.length());
        self.validate_input(&journal, &current, &Input::Resume(given)).await?;
        if let Some(blobs) = &ports.blobs {
            for blob in content.blobs()? {
                blobs.put(run, blob).await.map_err(|error| DriveError::from(unavailable(error)))?;
            }
        }
        journal.commit_unowned().await?;
        Ok(())
    }

    /// The blobs that the run's own events refer to, as far as they still exist.
    async fn carried(&self, run: &RunId, state: &Run) -> Result<Vec<Blob>, RunnerError> {
        let Some(blobs) = &self.inner.ports.blobs else { return Ok(Vec::new()) };
        let (mut carried, mut room) = (Vec::new(), MOST_TOKEN_BYTES);
        for handle in state.blobs() {
            let Some(info) = blobs.describe(handle).await.map_err(DriveError::from)? else { continue };
            let size = usize::try_from(info.size).unwrap_or(usize::MAX);
            room = room.checked_sub(size).ok_or_else(|| too_large(run))?;
            carried.extend(blobs.get(handle).await.map_err(DriveError::from)?);
        }
        Ok(carried)
    }

    async fn stored(&self, run: &RunId) -> Result<Vec<JournalEntry>, RunnerError> {
        Ok(self.inner.ports.store.runs.load(run, 0).await.map_err(DriveError::from)?)
    }

    async fn length(&self, run: &RunId) -> Result<u64, RunnerError> {
        Ok(self.stored(run).await?.len() as u64)
    }
}

/// A version in the request refers to the envelope.
fn check_version(resume: &Resume, length: u64) -> Result<(), RunnerError> {
    match resume.expected_version {
        Some(expected) if expected != length => {
            let status = "in an envelope".to_owned();
            Err(RunnerError::Refused(vec![ResumeError::VersionConflict { expected, actual: length, status }]))
        }
        Some(_) | None => Ok(()),
    }
}

/// The input, bound to this length of the journal, with decisions bound to what the envelope showed.
fn bound(resume: &Resume, claims: &Claims, version: u64) -> Resume {
    let mut resume = Resume { expected_version: Some(version), ..resume.clone() };
    for (call, answer) in &mut resume.answers {
        if let Answer::Decision { digest, .. } = answer {
            // A digest in the request binds more closely than the envelope.
            *digest = digest.take().or_else(|| claims.bindings.get(call).cloned());
        }
    }
    resume
}

fn bindings(run: &RunId, state: &Run, pending: &[PendingItem]) -> BTreeMap<CallId, String> {
    let binding = |item: &PendingItem| {
        let call = item.call_id()?;
        state.binding(call, None).map(|binding| (call.clone(), binding.digest(run, call)))
    };
    pending.iter().filter_map(binding).collect()
}

/// Whether an event only concerns a deadline: it passed, with or without a decision by the policy, or it was extended.
fn is_of_time(recorded: &JournalEntry) -> bool {
    let event = &recorded.event;
    event.is_expiry() || matches!(event, Event::Extended { .. } | Event::Ended { ending: Ending::Expired })
}

fn too_large(run: &RunId) -> RunnerError {
    EnvelopeError::TooLarge { run: run.clone(), most: MOST_TOKEN_BYTES }.into()
}

fn unavailable(error: BlobError) -> StoreError {
    match error {
        BlobError::Store(error) => error,
        // The blob came out of a store, so it is not too large for one.
        BlobError::TooLarge { .. } => StoreError::Unavailable(error.to_string()),
    }
}
