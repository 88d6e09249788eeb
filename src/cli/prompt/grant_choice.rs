//! Choice of a grant: a condition between "these arguments" and "any arguments", proposed from the call and shown with
//! the past calls that it would also have allowed, and the scope.

use std::io;

use super::console::Console;
use super::{Prompt, position};
use crate::cli::text::count;
use crate::core::policy::analysis::{GrantProposal, PastCall, grant_proposals};
use crate::core::run::Scope;
use crate::core::tool::{Arguments, escape_untrusted};

/// The past calls that a grant for the pending call would have concerned.
pub(in crate::cli) struct PastCalls {
    /// The number of runs that they come from, the newest of the agent.
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) calls: Vec<PastCall>,
}

/// Reads the past calls of the tool that waits; `None` if the store cannot be read. It may take seconds, so it is called
/// when the proposals are opened.
pub(in crate::cli) type ReadPastCalls<'a> = &'a dyn Fn() -> Option<PastCalls>;

impl<C: Console> Prompt<C> {
    /// Asks for a condition that covers the call and calls like it, and for the scope of the approval.
    pub(super) fn condition(
        &mut self,
        arguments: &Arguments,
        past: ReadPastCalls<'_>,
    ) -> io::Result<Option<(String, Scope)>> {
        let proposals = match arguments {
            Arguments::Object(object) => grant_proposals(object),
            Arguments::Malformed(_) => Vec::new(),
        };
        if proposals.is_empty() {
            self.say(
                "  no condition can be made from these arguments; `toolgate approvals approve --when` takes yours",
            )?;
            return Ok(None);
        }
        self.show(&proposals, past().as_ref())?;
        loop {
            let Some(line) = self.text("  calls with (its number; empty: none): ")? else { return Ok(None) };
            if line.trim().is_empty() {
                return Ok(None);
            }
            let chosen = position(&line, proposals.len()).and_then(|position| proposals.get(position));
            let Some(chosen) = chosen else {
                self.say(&format!("  type a number from 1 to {}", proposals.len()))?;
                continue;
            };
            let scope = self.reach(&format!("calls of this tool with {}", escape_untrusted(&chosen.words)))?;
            return Ok(scope.map(|scope| (chosen.condition.clone(), scope)));
        }
    }

    fn show(&mut self, proposals: &[GrantProposal], past: Option<&PastCalls>) -> io::Result<()> {
        let paint = self.console.paint();
        for (index, proposal) in proposals.iter().enumerate() {
            let condition = paint.dim(escape_untrusted(&proposal.condition));
            self.say(&format!("  {}. {}   {condition}", index + 1, escape_untrusted(&proposal.words)))?;
            let Some(coverage) = past.map(|past| proposal.coverage(&past.calls)).filter(|past| past.calls > 0) else {
                continue;
            };
            let calls = format!("would also have allowed {}", count(coverage.calls, "past call"));
            self.say(&match coverage.refused {
                0 => format!("     {calls}"),
                refused => format!("     {calls}, {}", paint.yellow(format!("{refused} of them refused"))),
            })?;
        }
        let Some(PastCalls { runs, calls }) = past else { return Ok(()) };
        let (calls, runs) = (count(calls.len(), "other call"), count(*runs, "run"));
        let counted = format!("  counted: {calls} of this tool in the newest {runs} of this agent");
        self.say(&paint.dim(counted).to_string())
    }

    /// Asks for the scope of an approval of these calls.
    pub(super) fn reach(&mut self, calls: &str) -> io::Result<Option<Scope>> {
        let answer = self.key(&format!("  {calls} from now on: in this [s]ession, or al[w]ays (empty: neither): "))?;
        Ok(match answer.as_deref().map(str::trim) {
            Some("s" | "session") => Some(Scope::Session),
            Some("w" | "always") => Some(Scope::Always),
            Some(_) | None => None,
        })
    }
}
