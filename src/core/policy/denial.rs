//! Denial of a call by a policy, as the model and the journal have it.

use super::Policy;

/// The presets that deny every call of an MCP tool, whatever the call does.
const DENY_EVERY_CALL: [&str; 3] = ["plan", "dont-ask", "delegate"];

impl Policy {
    /// The message of a denial.
    pub fn denial(&self, reason: &str) -> String {
        format!("{}{reason}", begin(&self.name))
    }
}

/// Whether a preset denied that denies every call, so that the denial says nothing about the call. The journal has the
/// policy of a denial in its message alone. No configured policy has the name of a preset.
pub(super) fn is_of_every_call(message: &str) -> bool {
    DENY_EVERY_CALL.iter().any(|preset| message.starts_with(&begin(preset)))
}

fn begin(policy: &str) -> String {
    format!("Denied by policy `{policy}`: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_denial_of_a_preset_says_nothing_about_the_call() {
        let denial = |name: &str| Policy { name: name.into(), ..Policy::ask_always() }.denial("plan first");
        assert_eq!(denial("plan"), "Denied by policy `plan`: plan first");
        assert!(is_of_every_call(&denial("plan")) && is_of_every_call(&denial("dont-ask")));
        assert!(!is_of_every_call(&denial("planned")) && !is_of_every_call(&denial("default")));
    }
}
