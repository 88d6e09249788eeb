//! The time for an answer to an approval, and the effect of no answer.

use serde_json::json;
use toolgate::config;
use toolgate::core::policy::{OnTimeout, Subject};

use super::policies::mcp_tool;

#[test]
fn row_3_43_the_effect_of_no_answer_is_of_the_rule_or_the_policy() {
    let text = "
name: desk
default: ask
answer_timeout_s: 3600
on_timeout: deny
rules:
  - { id: soon, match: { tool: mcp_shop_refund }, verdict: ask, reason: x, answer_timeout_s: 60, on_timeout: approve }
  - { id: hint, match: { tool: mcp_shop_hint, read_only: true }, verdict: ask, reason: x, on_timeout: approve }
  - { id: unclear, match: { tool: mcp_shop_pay }, when: args.amount > 100, verdict: ask, reason: x, on_timeout: approve }
  - { id: both, match: { tool: mcp_shop_both }, verdict: ask, reason: x, on_timeout: approve }
  - { id: both-again, match: { tool: mcp_shop_both }, verdict: ask, reason: x, on_timeout: expire }
";
    let policy = config::policy_text("desk.yaml", text).unwrap_or_else(|error| panic!("{}", error.plain()));
    let after = |name: &str, arguments: serde_json::Value| {
        let tool = mcp_tool("shop", name, Some(true), false);
        let arguments = arguments.as_object().cloned();
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_ref() };
        let judgement = policy.judge(&subject);
        (judgement.rule.unwrap_or_default(), judgement.on_timeout)
    };

    assert_eq!(after("refund", json!({})), ("soon".into(), OnTimeout::Approve));
    assert_eq!(after("other", json!({})), (String::new(), OnTimeout::Deny));
    assert_eq!(after("hint", json!({})), ("hint".into(), OnTimeout::Expire), "a claim approves nothing");
    assert_eq!(after("pay", json!({"amount": 200})), ("unclear".into(), OnTimeout::Approve));
    assert_eq!(after("pay", json!({})), ("unclear".into(), OnTimeout::Expire), "it cannot be evaluated");
    assert_eq!(after("both", json!({})), ("both-again".into(), OnTimeout::Expire), "one rule wants a person");
}
