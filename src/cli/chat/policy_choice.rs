//! Choice of the policy for the next messages: `/policy`, and Shift-Tab, which applies the next one.

use super::conversation::{Conversation, choice};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::preset_policies::meaning;
use crate::cli::wrap::hanging;
use crate::core::policy::Verdict;
use crate::core::tool::escape_untrusted;

/// The order of the presets that Shift-Tab applies, after the policies of the configuration.
const ORDER: [&str; 4] = ["default", "accept-reads", "accept-edits", "plan"];
/// The presets that Shift-Tab leaves out: they ask no person, and a conversation has one.
const WITHOUT_PERSON: [&str; 2] = ["delegate", "dont-ask"];

impl Conversation<'_> {
    /// The command that applies the policy after the present one. A policy whose default is `allow` is left out: its name has
    /// to be typed.
    pub(super) fn next_policy(&self) -> String {
        let careful = self.agent.policies().filter(|policy| policy.fallback != Verdict::Allow);
        let mut known: Vec<&str> = careful.map(|policy| policy.name.as_str()).collect();
        known.retain(|name| !WITHOUT_PERSON.contains(name));
        known.sort_by_key(|name| ORDER.iter().position(|preset| preset == name).map_or(0, |place| place + 1));
        let present = known.iter().position(|name| *name == self.policy());
        let next = present.and_then(|at| known.get(at + 1)).or(known.first());
        next.map_or_else(|| "/policy".to_owned(), |name| format!("/policy {name}"))
    }

    /// Chooses a policy, which the next prompt names. Without a name, lists the policies.
    pub(super) fn choose_policy(&mut self, name: Option<String>, out: &mut Output) -> Result<(), CliError> {
        let Some(name) = name else {
            for policy in self.agent.policies() {
                let mark = if policy.name == self.policy() { "●" } else { " " };
                let meaning = meaning(&policy.name).unwrap_or("of this configuration");
                let head = format!("  {mark} {:<13} ", escape_untrusted(&policy.name));
                hanging(&head, meaning, out.width()).iter().for_each(|line| out.line(line));
            }
            return Ok(());
        };
        let known = self.agent.policies().map(|policy| policy.name.as_str());
        let Some(name) = choice("policy", Some(name), known, self.policy(), out)? else { return Ok(()) };
        if self.allows_all(&name) {
            out.warning(format!("policy {} allows calls by default, without approval", escape_untrusted(&name)));
        }
        (self.mode, self.has_unsent_choice) = (Some(name), true);
        Ok(())
    }
}
