//! The model and the policy that a run was started with decide in later commands on it as well (FEATURES 1.29, 3.26).

use super::desk::Desk;

const CONFIG: &str = "
models:
  played: { scripted: { file: conversation.yaml } }
  other: { scripted: { file: other.yaml } }
servers: { shop: { stdio: { command: toolgate, args: [demo-server] } } }
agents:
  desk:
    model: played
    servers: [shop]
    external_tools: [{ name: order, description: Orders it. }]
    variants:
      strict: { policy: { default: allow, rules: [{ id: none, match: { tool: 'mcp_shop_*' }, verdict: deny, reason: None runs. }] } }
";

/// An external call, and then one that the policy of the agent asks about.
const ORDER_THEN_NOTE: &str = "
turns:
  - calls: [{ id: order, name: ext_order, arguments: {} }]
  - calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: x } }]
  - { say: '{{last_result}}' }
";

fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", CONFIG);
    desk.write("conversation.yaml", ORDER_THEN_NOTE);
    desk.write("other.yaml", &ORDER_THEN_NOTE.replace("{{last_result}}", "The other model."));
    desk
}

#[test]
fn a_run_keeps_the_policy_of_its_flag() {
    let desk = desk();
    let started = desk.toolgate(&["run", "--policy", "bypass", "Order it"]).expect(10);
    let command = started.offered_command();
    assert!(!command.contains("--policy"), "the run knows its policy: {command}");
    desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(0);

    desk.toolgate(&["run", "--policy", "dont-ask", "Order it"]).expect(10);
    let resumed = desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(0);
    assert!(resumed.out.contains("Denied by policy"), "{}", resumed.out);

    desk.toolgate(&["run", "Order it"]).expect(10);
    desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(10);
}

#[test]
fn a_run_keeps_the_model_of_its_flag() {
    let desk = desk();
    desk.toolgate(&["run", "--model", "other", "Order it"]).expect(10);
    desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(10);
    let approved = desk.toolgate(&["approvals", "approve", "last", "note"]).expect(0);
    assert_eq!(approved.out, "The other model.\n");
}

#[test]
fn a_fork_may_have_another_policy() {
    let desk = desk();
    desk.toolgate(&["run", "Order it"]).expect(10);
    desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(10);
    let forked = desk.toolgate(&["runs", "fork", "last", "--at", "1", "--policy", "bypass"]).expect(10);
    assert!(forked.err.contains("forks"), "{}", forked.err);
    desk.toolgate(&["resume", "last", "--result", "order=1"]).expect(0);

    let unknown = desk.toolgate(&["runs", "retry", "last", "--policy", "lax"]).expect(2);
    assert!(unknown.err.contains("lax") && unknown.err.contains("bypass"), "{}", unknown.err);
}

#[test]
fn the_policy_of_a_fork_judges_a_call_whose_approval_is_pending() {
    let desk = desk();
    desk.toolgate(&["run", "Order it"]).expect(10);
    let pending = desk.toolgate(&["resume", "last", "--result", "order=1", "--json"]).expect(10);
    let result = pending.result();
    let run = result["run_id"].as_str().unwrap();

    let denied = desk.toolgate(&["runs", "fork", run, "--policy", "dont-ask"]).expect(0);
    assert!(denied.out.contains("Denied by policy"), "{}", denied.out);
    desk.toolgate(&["runs", "fork", run, "--policy", "bypass"]).expect(0);
    desk.toolgate(&["runs", "fork", run]).expect(10);
}

#[test]
fn a_run_of_a_variant_with_a_policy_of_its_own_needs_the_variant() {
    let desk = desk();
    desk.toolgate(&["run", "--variant", "strict", "Order it"]).expect(10);
    let refused = desk.toolgate(&["resume", "last", "--result", "order=1"]);
    assert!(refused.code != 0 && refused.err.contains("--variant"), "{}", refused.err);
    let resumed = desk.toolgate(&["resume", "last", "--variant", "strict", "--result", "order=1"]).expect(0);
    assert!(resumed.out.contains("Denied by policy"), "{}", resumed.out);
}
