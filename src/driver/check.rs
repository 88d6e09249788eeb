//! Step: settle for each call of the tier whether it may run. Arguments first, so that no person is asked about a call
//! that cannot run anyway; then the policy and what was granted before.

use serde_json::{Map, Value};

use super::{DriveError, Driver, Journal};
use crate::core::id::CallId;
use crate::core::json;
use crate::core::policy::{Subject, Verdict};
use crate::core::run::{Call, CallVerdict, Event, Rejection, Right, Run};
use crate::core::tool::{Arguments, Problem, Tool};
use crate::ports::InputFindings;

impl Driver<'_> {
    pub(super) async fn check_calls(&self, journal: &mut Journal, calls: &[CallId]) -> Result<(), DriveError> {
        for id in calls {
            let Some(call) = journal.run().call(id) else { continue };
            let Some(tool) = call.tool.clone() else { continue };
            let verdict = match self.check_arguments(journal.run(), call, &tool).await {
                Some(rejected) => rejected,
                None => self.check_policy(journal.run(), &tool),
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
                InputFindings::Valid => return None,
                InputFindings::Invalid(problems) => problems,
            },
        };
        let headline = format!("Invalid arguments for `{}`. Mend what is named here and call it again:", tool.name);
        let message = Problem::feedback(&headline, &problems);
        Some(CallVerdict::Rejected { reason: Rejection::InvalidArguments, message })
    }

    fn check_policy(&self, run: &Run, tool: &Tool) -> CallVerdict {
        let agent = &run.started().spec.agent;
        let judgement = self.agent.policy.judge(&Subject { tool, agent: Some(agent) });
        // A tool that was renamed, because another server took its name, keeps the verdict on its own name.
        match judgement.verdict.max(tool.verdict) {
            Verdict::Allow => CallVerdict::Run { by: Right::Policy { rule: judgement.rule } },
            Verdict::Ask if run.is_granted(&tool.name) => CallVerdict::Run { by: Right::Grant },
            Verdict::Ask => CallVerdict::Ask { rule: judgement.rule, why: judgement.why },
            Verdict::Deny => CallVerdict::Rejected {
                reason: Rejection::Denied,
                message: format!("Denied by policy `{}`: {}", self.agent.policy.name, judgement.why),
            },
        }
    }
}

/// Why text that should have been arguments is none.
fn what_is_wrong_with(text: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => format!("the arguments are nested deeper than {} levels", json::MAX_DEPTH),
        Err(_) => "the arguments are not a JSON object".to_owned(),
    }
}
