//! Step: settle for each call of the tier whether it may run. Arguments first, so that no person is asked about a call
//! that cannot run anyway; then the policy and what was granted before.

use serde_json::{Map, Value};

use super::{DriveError, Driver, Journal};
use crate::core::id::CallId;
use crate::core::json;
use crate::core::policy::{Judgement, Subject, Verdict};
use crate::core::run::{Call, CallVerdict, Event, Rejection, Right, Run};
use crate::core::tool::{Arguments, Ask, Builtin, Origin, Problem, Tool};
use crate::ports::InputFindings;

impl Driver<'_> {
    pub(super) async fn check_calls(&self, journal: &mut Journal, calls: &[CallId]) -> Result<(), DriveError> {
        for id in calls {
            let Some(call) = journal.run().call(id) else { continue };
            let Some(tool) = call.tool.clone() else { continue };
            let verdict = match self.check_arguments(journal.run(), call, &tool).await {
                Some(rejected) => rejected,
                None => self.check_policy(journal.run(), call, &tool),
            };
            journal.stage(Event::CallChecked { call: id.clone(), verdict })?;
        }
        Ok(())
    }

    async fn check_arguments(&self, run: &Run, call: &Call, tool: &Tool) -> Option<CallVerdict> {
        let problems = match call.arguments() {
            Arguments::Malformed(text) => {
                let shown: String = text.chars().take(200).collect();
                vec![Problem::whole("json", format!("{}: {shown}", what_is_wrong_with(text)))]
            }
            Arguments::Object(arguments) => match self.ports.inputs.check(tool, arguments, run.budget()).await {
                InputFindings::Valid => match asked_badly(&tool.origin, arguments) {
                    None => return None,
                    Some(complaint) => vec![Problem::whole("question", complaint)],
                },
                InputFindings::Invalid(problems) => problems,
            },
        };
        let headline = format!("Invalid arguments for `{}`. Mend what is named here and call it again:", tool.name);
        let message = Problem::feedback(&headline, &problems);
        Some(CallVerdict::Rejected { reason: Rejection::InvalidArguments, message })
    }

    /// What the policy says of a call now.
    pub(super) fn judge(&self, run: &Run, call: &Call, tool: &Tool) -> Judgement {
        let spec = &run.started().spec;
        let (agent, principal) = (Some(&spec.agent), spec.principal.as_ref());
        self.agent.policy.judge(&Subject { tool, agent, principal, arguments: call.arguments().as_object() })
    }

    fn check_policy(&self, run: &Run, call: &Call, tool: &Tool) -> CallVerdict {
        let judgement = self.judge(run, call, tool);
        let grant = run.granted(&tool.name, call.arguments(), self.ports.clock.now());
        // What was approved and is something else by now is looked at by a person, whatever was granted before.
        let grant = grant.filter(|_| call.drift.is_empty());
        match (judgement.verdict, grant) {
            (Verdict::Allow, _) => {
                CallVerdict::Run { by: Right::Policy { rule: judgement.rule, policy: Some(self.agent.policy.mark()) } }
            }
            (Verdict::Ask, Some(grant)) => CallVerdict::Run { by: Right::Grant { grant: grant.clone() } },
            (Verdict::Ask, None) => CallVerdict::Ask {
                rule: judgement.rule,
                why: judgement.why,
                policy: Some(self.agent.policy.mark()),
                within_s: judgement.within_s,
            },
            (Verdict::Deny, _) => CallVerdict::Rejected {
                reason: Rejection::Denied,
                message: format!("Denied by policy `{}`: {}", self.agent.policy.name, judgement.why),
            },
        }
    }
}

/// Why a question to a person cannot be put to anybody.
fn asked_badly(origin: &Origin, arguments: &Map<String, Value>) -> Option<String> {
    match Builtin::of(origin)? {
        Builtin::AskHuman => Ask::parse(arguments).err(),
        Builtin::ResultRead => None,
    }
}

/// Why text that should have been arguments is none.
fn what_is_wrong_with(text: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => format!("the arguments are nested deeper than {} levels", json::MAX_DEPTH),
        Err(_) => "the arguments are not a JSON object".to_owned(),
    }
}
