//! Laws of policies: the strictest rule wins, and an untrusted server cannot bypass one.

use std::sync::Arc;

use proptest::prelude::*;
use toolgate_core::id::CallId;
use toolgate_core::policy::{Match, Policy, Rule, Subject, Verdict};
use toolgate_core::tool::{Annotations, Tool, top_tier};

use crate::choices::strictly;
use crate::fixtures::{rule, toolset};

fn tool(name: &str) -> Arc<Tool> {
    toolset().get(name).unwrap().clone()
}

fn judge(policy: &Policy, tool: &Tool) -> Verdict {
    policy.judge(&Subject { tool, agent: None, principal: None, arguments: None }).verdict
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Allow), Just(Verdict::Ask), Just(Verdict::Deny)]
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn the_strictest_matching_rule_wins_in_any_order(
        verdicts in proptest::collection::vec(any_verdict(), 1..6),
        fallback in any_verdict(),
    ) {
        let rules = verdicts.iter().enumerate().map(|(n, verdict)| rule(&n.to_string(), *verdict, "mcp_*")).collect();
        let policy = Policy { rules, fallback, ..Policy::ask_always() };
        prop_assert_eq!(judge(&policy, &tool("mcp_files_read")), verdicts.iter().copied().max().unwrap());
        prop_assert_eq!(judge(&policy, &tool("ext_order")), fallback);
    }

    #[test]
    fn a_changed_tool_of_an_untrusted_server_requires_approval(
        verdict in any_verdict(),
        fallback in any_verdict(),
        trusted in any::<bool>(),
    ) {
        let policy = Policy { rules: vec![rule("r", verdict, "mcp_web_*")], fallback, ..Policy::ask_always() };
        for name in ["mcp_web_fetch", "mcp_files_read"] {
            let before = Tool { trusted, ..Tool::clone(&tool(name)) };
            let changed = Tool { changed: true, ..before.clone() };
            let floor = if trusted { Verdict::Allow } else { Verdict::Ask };
            prop_assert_eq!(judge(&policy, &changed), judge(&policy, &before).max(floor));
        }
    }

    #[test]
    fn hints_of_a_trusted_server_are_believed(
        verdict in any_verdict(),
        read_only in any::<Option<bool>>(),
        wanted in any::<bool>(),
    ) {
        let matches = Match { read_only: Some(wanted), ..Match::default() };
        let hint = Rule::new("hint", verdict, "", matches, vec![], vec![]).unwrap();
        let policy = Policy { rules: vec![hint], ..Policy::ask_always() };
        let mut tool = Tool { trusted: true, ..Tool::clone(&tool("mcp_web_fetch")) };
        tool.annotations = Annotations { read_only_hint: read_only, ..Annotations::default() };
        // Without a hint from the server no rule allows for it, and rules that ask or deny assume the worst.
        let matches = match read_only {
            Some(said) => said == wanted,
            None => verdict != Verdict::Allow && !wanted,
        };
        prop_assert_eq!(judge(&policy, &tool), if matches { verdict } else { Verdict::Ask });
    }

    #[test]
    fn a_tier_has_the_highest_priority_and_no_call_is_lost(
        priorities in proptest::collection::vec(-3i32..3, 0..8),
    ) {
        let calls: Vec<(CallId, i32)> =
            priorities.iter().enumerate().map(|(n, priority)| (format!("c{n}").into(), *priority)).collect();
        let Some(tier) = top_tier(&calls) else {
            prop_assert!(calls.is_empty());
            return Ok(());
        };
        let of = |id: &CallId| calls.iter().find(|(other, _)| other == id).unwrap().1;
        prop_assert_eq!(tier.priority, priorities.iter().copied().max().unwrap());
        prop_assert!(tier.run.iter().all(|id| of(id) == tier.priority));
        prop_assert!(tier.deferred.iter().all(|id| of(id) < tier.priority));
        prop_assert!(tier.run.is_sorted() && tier.deferred.is_sorted(), "the model's order is kept");
        prop_assert_eq!(tier.run.len() + tier.deferred.len(), calls.len());
    }
}

#[test]
fn only_a_trusted_server_makes_a_tool_repeatable() {
    assert!(tool("mcp_files_read").is_repeatable());
    assert!(tool("mcp_files_low_sync").is_repeatable());
    assert!(!tool("mcp_files_write").is_repeatable());
    assert!(!tool("mcp_web_fetch").is_repeatable(), "its server declares it read-only, and is not trusted");
}
