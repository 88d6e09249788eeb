//! Step: check whether each call of the tier may run. Arguments are checked first, so that no approver is asked about a
//! call that cannot run anyway; then the policy and the grants. An approved call that is answered outside is checked
//! again before it is handed over.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_core::id::{CallId, GrantId};
use toolgate_core::json;
use toolgate_core::policy::{Judgement, Subject, Verdict};
use toolgate_core::redact::SecretNames;
use toolgate_core::run::{Authorization, Call, CallVerdict, Event, Rejection, Run};
use toolgate_core::tool::{Arguments, Builtin, FailureKind, Problem, Tool, secret_names};
use toolgate_ports::InputFindings;

use super::calls::not_sent;
use super::{DriveError, Driver, Journal, Progress};

impl Driver<'_> {
    pub(super) async fn check_calls(&self, journal: &mut Journal, calls: &[CallId]) -> Result<(), DriveError> {
        let mut begun = Vec::new();
        for id in calls {
            let Some(call) = journal.run().call(id) else { continue };
            let Some(tool) = call.tool.clone() else { continue };
            let event = match call.is_approved() {
                true => self.check_approved(journal.run(), id, &tool).await,
                false => self.check_call(journal, id, call, &tool).await,
            };
            if matches!(
                event,
                Event::CallChecked { verdict: CallVerdict::Run { by: Authorization::HumanApproval }, .. }
            ) {
                begun.extend(self.begun(journal, [id]));
            }
            journal.stage(event)?;
        }
        // Store the grant only after the hand-over is committed; until then another writer may win.
        if !begun.is_empty() && journal.commit().await? == Progress::Committed {
            self.remember(&begun).await;
        }
        Ok(())
    }

    async fn check_call(&self, journal: &Journal, id: &CallId, call: &Call, tool: &Tool) -> Event {
        let run = journal.run();
        let (rejected, advisory) = self.check_arguments(run, call, tool).await;
        let verdict = match rejected {
            Some(rejected) => rejected,
            None => self.check_policy(journal, id, call, tool).await,
        };
        match verdict {
            // A call that may have taken effect is not reported as not run.
            CallVerdict::Rejected { message, .. } if call.sent => Event::CallCompleted {
                call: id.clone(),
                outcome: not_sent(FailureKind::Unavailable, &message, true).into(),
                stderr: Vec::new(),
                wire: None,
            },
            verdict @ (CallVerdict::Run { .. } | CallVerdict::Ask { .. } | CallVerdict::Rejected { .. }) => {
                Event::CallChecked { call: id.clone(), verdict, advisory }
            }
        }
    }

    /// Checks an approved call that is answered outside: it is handed over now, if it is unchanged. Its tool belongs to
    /// the run or to this program, so no server has to be asked for the definition.
    async fn check_approved(&self, run: &Run, id: &CallId, tool: &Arc<Tool>) -> Event {
        if let Some(drifted) = self.drifted(run, &[(id, tool.clone())]).await.pop() {
            return drifted;
        }
        let (verdict, advisory) = match run.call(id) {
            Some(call) => self.check_arguments(run, call, tool).await,
            None => (None, Vec::new()),
        };
        let verdict = verdict.or_else(|| self.no_longer_offered(run, tool));
        Event::CallChecked {
            call: id.clone(),
            verdict: verdict.unwrap_or(CallVerdict::Run { by: Authorization::HumanApproval }),
            advisory,
        }
    }

    /// Rejects a tool that the agent's current configuration does not include. Calls to servers are checked when they
    /// are sent.
    fn no_longer_offered(&self, run: &Run, tool: &Tool) -> Option<CallVerdict> {
        let rules = self.agent.toolset_rules(&run.started().spec, run.pins());
        let message = "Not run: the tool is not available: it is no longer offered.".to_owned();
        (!rules.admits(tool)).then_some(CallVerdict::Rejected {
            reason: Rejection::Unknown,
            message,
            problems: Vec::new(),
        })
    }

    /// The rejection of a call with invalid arguments. At a server whose validation is advisory, the problems instead.
    async fn check_arguments(&self, run: &Run, call: &Call, tool: &Tool) -> (Option<CallVerdict>, Vec<Problem>) {
        let problems = match call.arguments() {
            Arguments::Malformed(text) => {
                // The end of a secret in broken JSON is unknown.
                let has_secrets = !secret_names(&tool.input_schema).is_empty();
                let text_without_secrets = SecretNames::usual().redacted(text);
                let quotable = text_without_secrets.as_deref().unwrap_or(text).chars();
                let shown: String = quotable.take(if has_secrets { 0 } else { 200 }).collect();
                let quote = if shown.is_empty() { String::new() } else { format!(": {shown}") };
                vec![Problem::whole("json", format!("{}{quote}", what_is_wrong_with(text)))]
            }
            Arguments::Object(arguments) => match self.ports.check_arguments(tool, arguments, run.budget()).await {
                InputFindings::Valid => {
                    match Builtin::from_origin(&tool.origin).and_then(|builtin| builtin.invalid_reason(arguments)) {
                        None => return (None, Vec::new()),
                        Some(complaint) => vec![Problem::whole("question", complaint)],
                    }
                }
                InputFindings::Invalid(problems) if self.ports.is_advisory(tool, arguments) => return (None, problems),
                InputFindings::Invalid(problems) => problems,
            },
        };
        let headline = format!("Invalid arguments for `{}`. Fix the problems below and call it again:", tool.name);
        let message = Problem::feedback(&headline, &problems);
        (Some(CallVerdict::Rejected { reason: Rejection::InvalidArguments, message, problems }), Vec::new())
    }

    /// The policy's current judgement of a call.
    pub(super) async fn judge(&self, run: &Run, call: &Call, tool: &Tool) -> Judgement {
        let spec = &run.started().spec;
        let (agent, principal) = (Some(&spec.agent), spec.principal.as_ref());
        let subject = Subject { tool, agent, principal, arguments: call.arguments().as_object() };
        let policy = self.agent.policy_of(spec);
        let judgement = policy.judge_with_links(&subject, &self.links(policy, tool, subject.arguments).await);
        let unmatched =
            run.tools().and_then(|tools| tools.unmatched_rules().iter().find(|rule| rule.may_restrict(tool)));
        match (judgement.verdict, unmatched) {
            (Verdict::Allow, Some(rule)) => rule.judgement(judgement),
            (Verdict::Allow | Verdict::Ask | Verdict::Deny, _) => judgement,
        }
    }

    async fn check_policy(&self, journal: &Journal, id: &CallId, call: &Call, tool: &Tool) -> CallVerdict {
        let run = journal.run();
        let judgement = match (self.judge(run, call, tool).await, call.reapproval_reason()) {
            // A person decides about it, whatever is left of a limit.
            (judgement, Some(_)) => judgement,
            (judgement, None) => self.within_limit(journal.id(), run, id, judgement).await,
        };
        let policy = self.agent.policy_of(&run.started().spec);
        let mark = || Some(policy.mark());
        match (judgement.verdict, call.reapproval_reason()) {
            (Verdict::Deny, _) => CallVerdict::Rejected {
                reason: Rejection::Denied,
                message: policy.denial(&judgement.reason),
                problems: Vec::new(),
            },
            // Requires approval, whatever the policy allows and whatever was granted before.
            (Verdict::Allow, Some(reapproval_reason)) => CallVerdict::Ask {
                rule: None,
                reason: reapproval_reason.to_owned(),
                policy: None,
                answer_timeout_s: judgement.answer_timeout_s,
                on_timeout: judgement.on_timeout.without_approval(),
                may_be_denied: judgement.may_be_denied,
            },
            (Verdict::Allow, None) => {
                CallVerdict::Run { by: Authorization::Policy { rule: judgement.rule, policy: mark() } }
            }
            (Verdict::Ask, reapproval_reason) => {
                let judgement = if reapproval_reason.is_some() { judgement.asked_otherwise() } else { judgement };
                let grant = self.covering_grant(run, call, tool, &judgement).await;
                match grant.filter(|_| reapproval_reason.is_none()) {
                    Some(grant) => CallVerdict::Run { by: Authorization::Grant { grant } },
                    None => CallVerdict::Ask {
                        rule: judgement.rule,
                        reason: judgement.reason,
                        policy: mark(),
                        answer_timeout_s: judgement.answer_timeout_s,
                        on_timeout: judgement.on_timeout,
                        may_be_denied: judgement.may_be_denied,
                    },
                }
            }
        }
    }

    /// The grant that covers a call. A call that is handed over is not compared again later, so its grant is confirmed
    /// here.
    async fn covering_grant(&self, run: &Run, call: &Call, tool: &Tool, judged: &Judgement) -> Option<GrantId> {
        let grant = run.granted(tool, call.arguments(), self.ports.clock.now(), judged)?;
        let is_looked_at_again = call.is_sent_by_us();
        let holds = is_looked_at_again || self.ended_grants([grant.clone()].into()).await.is_empty();
        holds.then(|| grant.clone())
    }
}

/// The reason why a text is not valid arguments.
fn what_is_wrong_with(text: &str) -> String {
    match (serde_json::from_str::<Map<String, Value>>(text), json::inexact_integer(text)) {
        (Ok(_), Some(number)) => {
            format!("{number} has too many digits to be passed on exactly; send a shorter number, or a string")
        }
        (Ok(_), None) => format!("the arguments are nested deeper than {} levels", json::MAX_DEPTH),
        (Err(_), _) => "the arguments are not a JSON object".to_owned(),
    }
}
