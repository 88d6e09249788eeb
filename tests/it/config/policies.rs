//! Policy files and the presets.

use std::sync::Arc;

use serde_json::json;
use toolgate::config;
use toolgate::core::policy::{Policy, Subject, Verdict};
use toolgate::core::tool::{Annotations, Builtin, ExternalTool, McpTool, ServerTools, Tool, Toolset, ToolsetRules};

use super::{example, folder, load, no_env, rendered};

pub(super) fn mcp_tool(server: &str, name: &str, read_only: Option<bool>, trusted: bool) -> Tool {
    let annotations = Annotations { read_only_hint: read_only, ..Annotations::default() };
    let (input_schema, output_schema) = (json!({"type": "object"}), None);
    let tool = McpTool {
        name: name.into(),
        description: String::new(),
        input_schema,
        output_schema,
        annotations,
        pinned: None,
    };
    let tool_access = ServerTools {
        server: server.into(),
        trusted,
        endpoint: None,
        tools: Arc::new(vec![tool]),
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    };
    only(Toolset::assemble(&[], &[tool_access], &ToolsetRules::default()))
}

fn external_tool(name: &str) -> Tool {
    let tool: ExternalTool = serde_json::from_value(json!({"name": name})).expect("a tool");
    only(Toolset::assemble(&[tool], &[], &ToolsetRules::default()))
}

fn builtin(builtin: Builtin) -> Tool {
    only(Toolset::default().with_builtin(builtin, &ToolsetRules::default()))
}

fn only(tools: Toolset) -> Tool {
    tools.iter().next().expect("a tool").as_ref().clone()
}

fn verdict(policy: &Policy, tool: &Tool) -> Verdict {
    let named = serde_json::json!({"path": "notes/today.md"});
    policy.judge(&Subject { tool, agent: None, principal: None, arguments: named.as_object() }).verdict
}

#[test]
fn row_0_54_the_presets_say_what_their_names_say() {
    use Verdict::{Allow, Ask, Deny};
    let settings = load("").expect("good");
    let tools = [
        external_tool("get_order"),
        mcp_tool("git", "git_log", Some(true), true),
        mcp_tool("git", "git_log", Some(true), false),
        mcp_tool("filesystem", "write_file", Some(false), false),
        mcp_tool("filesystem", "write_file", Some(false), true),
        mcp_tool("filesystem", "delete_file", Some(false), true),
        mcp_tool("shell", "run", None, true),
        builtin(Builtin::AskHuman),
    ];
    for (preset, expected) in [
        ("default", [Allow, Ask, Ask, Ask, Ask, Ask, Ask, Allow]),
        ("accept-reads", [Allow, Allow, Ask, Ask, Ask, Ask, Ask, Allow]),
        ("accept-edits", [Allow, Allow, Ask, Ask, Allow, Allow, Ask, Allow]),
        ("dont-ask", [Allow, Deny, Deny, Deny, Deny, Deny, Deny, Allow]),
        ("delegate", [Allow, Deny, Deny, Deny, Deny, Deny, Deny, Allow]),
        ("plan", [Deny; 8]),
        ("bypass", [Allow; 8]),
    ] {
        let policy = &settings.policies[preset];
        let found: Vec<Verdict> = tools.iter().map(|tool| verdict(policy, tool)).collect();
        assert_eq!(found, expected, "{preset}");
    }
}

#[test]
fn an_agent_of_the_library_has_the_preset_default() {
    let (preset, library) = (&load("").expect("good").policies["default"], Policy::default());
    let content = |policy: &Policy| {
        let rule = |rule: &toolgate::core::policy::Rule| {
            let when = rule.when().map(|when| when.text().split_whitespace().collect::<Vec<_>>().join(" "));
            (rule.id.clone(), rule.verdict, rule.reason.clone(), rule.conditions().clone(), when)
        };
        (policy.name.clone(), policy.fallback, policy.rules.iter().map(rule).collect::<Vec<_>>())
    };
    assert_eq!(content(&library), content(preset));
}

#[test]
fn every_judgement_of_a_preset_can_be_read_by_a_person() {
    let settings = load("").expect("good");
    for rule in settings.policies.values().flat_map(|policy| &policy.rules) {
        assert!(rule.reason.ends_with('.') && rule.reason.len() > 20, "{}", rule.id);
    }
}

#[test]
fn the_version_of_a_policy_is_the_hash_of_its_text() {
    let first = config::policy_file(&example("full/policies/strict.yaml")).expect("good");
    let text = std::fs::read_to_string(example("full/policies/strict.yaml")).expect("text");
    let folder = folder(&[("same.yaml", &text), ("other.yaml", &format!("{text}\n# changed\n"))]);
    let version = |name: &str| config::policy_file(&folder.path().join(name)).expect("good").version;
    assert_eq!((first.version.len(), &version("same.yaml")), (16, &first.version));
    assert_ne!(version("other.yaml"), first.version);
}

#[test]
fn a_policy_that_does_not_do_what_its_author_wrote_is_refused_at_the_line() {
    let head = "name: p\ndefault: ask\nrules:\n";
    let rule = |rest: &str| format!("{head}  - id: r\n    verdict: allow\n    reason: Because.\n{rest}");
    let cases = [
        rule(
            "    match: { tool: \"mcp_git_*\" }\n    examples:\n      match:\n        - { server: git, tool: log, trusted: true }\n        - { server: svn, tool: log, trusted: true }\n      no_match:\n        - { server: git, tool: push, trusted: true }\n",
        ),
        rule(
            "    match: { read_only: true }\n    examples:\n      match:\n        - { server: git, tool: log, read_only: true }\n",
        ),
        rule("    match: { tool: \"[\" }\n"),
        rule("    match: { tool_name: \"\" }\n"),
        rule("    match: { tool_name: \"{a,b\" }\n"),
        rule("    match: { origin: remote }\n"),
        rule("    match: { command: [git, push, \"*\"] }\n"),
        rule("    match: {}\n"),
        rule("    match: { tool_name: pay }\n    when: arg.amount > 100\n"),
        rule("    match: { tool_name: pay }\n    when: args.amount = 100\n"),
        rule("    match: { tool_name: pay }\n    when: \"\"\n"),
        rule("    match: { tool_name: pay }\n    when:\n"),
        rule("    match: { tool_name: pay }\n    when: args.items.all(i, i.tags.all(t, t != 'x'))\n"),
        rule(
            "    match: { tool_name: pay }\n    when: args.amount < 100\n    examples:\n      match:\n        - { server: shop, tool: pay }\n        - { server: shop, tool: pay, arguments: { amount: 100 } }\n        - { server: shop, tool: pay, arguments: {} }\n      no_match:\n        - { server: shop, tool: refund }\n",
        ),
        rule("    match: { principal: \"guest-*\" }\n    examples:\n      match: [{ tool: a, principal: kim }]\n"),
        rule("    match: { tool: a }\n    answer_timeout_s: 0\n"),
        rule("    match: { tool: a }\n    on_timeout: approve\n"),
        rule("    match: { tool: a }\n    answer_timeout_s: 5\n    on_timeout: run\n"),
        "name: p\ndefault: ask\non_timeout: approve\nrules: []\n".to_owned(),
        rule("    match: { tols: x }\n"),
        format!("{head}  - {{ id: r, match: {{ tool: a }}, verdict: alow, reason: x }}\n"),
        format!(
            "{head}  - {{ id: r, match: {{ tool: a }}, verdict: deny, reason: \" \" }}\n  - {{ id: r, match: {{ tool: b }}, verdict: deny, reason: x }}\n"
        ),
    ];
    let mut all = String::new();
    for text in cases {
        let folder = folder(&[("p.yaml", &text)]);
        let error = config::policy_file(&folder.path().join("p.yaml")).expect_err(&text);
        all += &rendered(&error, folder.path());
        all += "\n";
    }
    insta::assert_snapshot!(all);
}

#[test]
fn an_unreadable_policy_is_reported_with_a_remedy() {
    let rule = |rest: &str| {
        format!("name: p\ndefault: ask\nrules:\n  - {{ id: r, verdict: ask, reason: Because., {rest} }}\n")
    };
    for (text, told) in [
        (String::new(), "p.yaml: the file is empty (a policy has `name`, `default` and `rules`)"),
        ("# soon\n---\n".to_owned(), "p.yaml: the file is empty (a policy has `name`, `default` and `rules`)"),
        (
            rule("match: { tool_name: a }, answer_timeout_s: \"1 day\""),
            "expected a whole number, 0 or more (write digits alone, for example `60`, without a unit and without quotes)",
        ),
        (rule("match: { read_only: \"yes\" }"), "expected `true` or `false` (write `true` or `false`, without quotes)"),
        (
            "name: p\nrules:\n  - { id: r, match: { tool: a }, verdict: ask, reason: x }\n".to_owned(),
            "p.yaml:1:1: the key `default` is missing (add `default: ask`; it applies if no rule matches)",
        ),
    ] {
        let folder = folder(&[("p.yaml", &text)]);
        let error = config::policy_file(&folder.path().join("p.yaml")).expect_err(&text).plain();
        assert!(super::without(folder.path(), &error).contains(told), "{text}{error}");
    }
    let folder = folder(&[("policies/p.yaml", "")]);
    let error = config::policy_file(&folder.path().join("policies")).expect_err("a folder").plain();
    assert!(error.ends_with("cannot be read: it is a folder (name a file in it)"), "{error}");
    let error = config::policy_file(&folder.path().join("none.yaml")).expect_err("nothing").plain();
    let error = super::without(folder.path(), &error);
    assert_eq!(error, "there is no file `none.yaml` (check the path)");
}

#[test]
fn a_policy_with_several_errors_is_named() {
    let folder = folder(&[("p.yaml", "rules:\n  - { id: r, match: {}, verdict: ask, reason: x }\n")]);
    let error = config::policy_file(&folder.path().join("p.yaml")).expect_err("three faults").to_string();
    let error = super::without(folder.path(), &error);
    assert_eq!(error, "p.yaml has 3 errors; the first: the key `name` is missing");
}

#[test]
fn a_rule_with_a_key_without_a_value_is_rejected() {
    let policy = |within: &str, matches: &str, rest: &str| {
        format!(
            "name: p\ndefault: ask\n{within}rules:\n  - id: r\n    match: {{ tool_name: pay, {matches} }}\n    verdict: allow\n    reason: Because.\n{rest}"
        )
    };
    let example = |more: &str| format!("    examples: {{ match: [{{ tool: pay, {more} }}] }}\n");
    let mut cases: Vec<(String, &str)> = vec![
        (policy("answer_timeout_s:\n", "", ""), "answer_timeout_s"),
        (policy("", "", "    when:\n"), "when"),
        (policy("", "", "    when: # args.amount < 10\n"), "when"),
        (policy("", "", "    when: ~\n"), "when"),
        (policy("", "", "    answer_timeout_s: null\n"), "answer_timeout_s"),
    ];
    for key in
        ["tool", "server", "origin", "agent", "principal", "read_only", "destructive", "idempotent", "open_world"]
    {
        cases.push((policy("", &format!("{key}: "), ""), key));
    }
    for key in ["server", "agent", "principal", "arguments", "read_only", "destructive", "idempotent", "open_world"] {
        cases.push((policy("", "", &example(&format!("{key}: "))), key));
    }
    for (text, key) in cases {
        let folder = folder(&[("p.yaml", &text)]);
        let error = config::policy_file(&folder.path().join("p.yaml")).expect_err(&text).plain();
        assert!(error.contains(&format!("`{key}` is empty (write a value, or remove the key)")), "{text}{error}");
        let line = text.lines().position(|line| line.contains(&format!("{key}:"))).expect("a line") + 1;
        assert!(error.contains(&format!("p.yaml:{line}:")), "the place is told: {text}{error}");
    }
    for rest in ["    examples:\n", "    examples: { match: }\n", "    examples: { no_match: }\n"] {
        let text = policy("", "", rest);
        let folder = folder(&[("p.yaml", &text)]);
        config::policy_file(&folder.path().join("p.yaml")).expect_err(&text);
    }
    let folder = folder(&[("p.yaml", "name: p\ndefault: allow\nrules:\n")]);
    config::policy_file(&folder.path().join("p.yaml")).expect_err("no rules, where rules were meant");
}

#[test]
fn a_denial_by_a_pattern_hits_what_its_author_plainly_means() {
    for (pattern, name) in [("delete{,_all}", "delete"), ("caf?", "café"), ("[à-ü]pay", "épay"), ("a*c", "a\nc")] {
        let text = format!(
            "name: p\ndefault: allow\nrules:\n  - {{ id: r, match: {{ tool_name: {pattern:?} }}, verdict: deny, reason: No. }}\n"
        );
        let folder = folder(&[("p.yaml", &text)]);
        let policy = config::policy_file(&folder.path().join("p.yaml")).expect("good");
        assert_eq!(verdict(&policy, &mcp_tool("shop", name, None, false)), Verdict::Deny, "{pattern} and {name:?}");
    }
}

#[test]
fn guests_only_look_where_a_trusted_server_says_that_they_do() {
    let text = "name: p\ndefault: allow\nrules:\n  - { id: r, match: { read_only: false }, verdict: deny, reason: Guests only look. }\n";
    let folder = folder(&[("p.yaml", text)]);
    let policy = config::policy_file(&folder.path().join("p.yaml")).expect("good");
    for (read_only, trusted, expected) in [
        (None, false, Verdict::Deny),
        (Some(true), false, Verdict::Deny),
        (Some(false), false, Verdict::Deny),
        (None, true, Verdict::Deny),
        (Some(false), true, Verdict::Deny),
        (Some(true), true, Verdict::Allow),
    ] {
        assert_eq!(
            verdict(&policy, &mcp_tool("shop", "find", read_only, trusted)),
            expected,
            "{read_only:?} {trusted}"
        );
    }
}

#[test]
fn the_policy_of_the_documentation_does_what_it_says() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/policy.md")).expect("the page");
    let text = docs.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a policy");
    let folder = folder(&[("desk.yaml", text)]);
    let policy =
        config::policy_file(&folder.path().join("desk.yaml")).unwrap_or_else(|error| panic!("{}", error.plain()));
    assert_eq!(policy.rules.len(), 2);
}

#[test]
fn arguments_of_an_example_may_be_null() {
    let text = "name: p\ndefault: ask\nrules:\n  - id: r\n    match: { tool_name: pay }\n    when: args.to == null\n    verdict: deny\n    reason: Because.\n    examples: { match: [{ tool: pay, arguments: { to: } }] }\n";
    let folder = folder(&[("p.yaml", text)]);
    config::policy_file(&folder.path().join("p.yaml")).expect("good");
}

#[test]
fn a_policy_goes_by_one_name() {
    let folder =
        folder(&[("toolgate.yaml", "policies: { mine: p.yaml }\n"), ("p.yaml", "name: yours\ndefault: deny\n")]);
    let error = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect_err("two names");
    assert!(error.plain().contains("the file calls this policy `yours`, not `mine`"), "{}", error.plain());
}

/// The verdict of a policy about a call, as `rule: verdict`.
fn said(policy: &Policy, tool: &Tool, principal: Option<&str>, arguments: Option<serde_json::Value>) -> String {
    let (agent, principal) = ("desk".into(), principal.map(Into::into));
    let arguments = arguments.map(|arguments| arguments.as_object().expect("an object").clone());
    let subject = Subject { tool, agent: Some(&agent), principal: principal.as_ref(), arguments: arguments.as_ref() };
    let judgement = policy.judge(&subject);
    let within = judgement.answer_timeout_s.map(|seconds| format!(" within {seconds} s")).unwrap_or_default();
    format!("{}: {}{within}", judgement.rule.as_deref().unwrap_or("default"), judgement.verdict.as_str())
}

const DESK: &str = "
name: desk
default: ask
answer_timeout_s: 3600
rules:
  - id: small-refunds
    match: { tool_name: refund, server: shop }
    when: args.amount <= 100
    verdict: allow
    reason: Small refunds are no matter.
    examples:
      match: [{ server: shop, tool: refund, arguments: { amount: 99.5 } }]
      no_match: [{ server: shop, tool: refund, arguments: { amount: 101 } }]
  - id: large-refunds
    match: { tool_name: refund }
    when: args.amount > 1000
    verdict: ask
    answer_timeout_s: 60
    reason: Large refunds are reviewed at once.
  - id: never-abroad
    match: { tool_name: refund }
    when: has(args.iban) && !args.iban.startsWith('DE')
    verdict: deny
    reason: Money leaves the country by another way.
  - id: guests
    match: { principal: \"guest-*\" }
    verdict: deny
    reason: Guests only look.
  - id: applications
    match: { origin: external }
    verdict: allow
    reason: The application runs it itself.
  - id: questions
    match: { origin: builtin, tool_name: ask_human }
    verdict: deny
    reason: No approver is available.
    examples:
      match: [{ tool: ask_human, builtin: true }]
      no_match: [{ tool: ask_human }]
";

#[test]
fn each_call_gets_the_verdict_that_the_policy_was_written_for() {
    let folder = folder(&[("desk.yaml", DESK)]);
    let policy = config::policy_file(&folder.path().join("desk.yaml")).expect("good");
    let refund = mcp_tool("shop", "refund", None, false);
    let elsewhere = mcp_tool("other", "refund", None, false);
    let external = external_tool("refund");
    for (tool, principal, arguments, expected) in [
        (&refund, None, Some(json!({"amount": 100})), "small-refunds: allow within 3600 s"),
        (&refund, None, Some(json!({"amount": 100.01})), "default: ask within 3600 s"),
        (&refund, None, Some(json!({"amount": 5000})), "large-refunds: ask within 60 s"),
        (&refund, None, Some(json!({"amount": 10, "iban": "DE1"})), "small-refunds: allow within 3600 s"),
        (&refund, None, Some(json!({"amount": 10, "iban": "FR1"})), "never-abroad: deny within 3600 s"),
        (&refund, Some("guest-7"), Some(json!({"amount": 10})), "guests: deny within 3600 s"),
        (&refund, Some("kim"), Some(json!({"amount": 10})), "small-refunds: allow within 3600 s"),
        // The rule cannot be evaluated: the call requires approval, and the approver sees which rule.
        (&refund, None, Some(json!({"amount": "10"})), "small-refunds: ask within 3600 s"),
        (&refund, None, Some(json!({})), "small-refunds: ask within 3600 s"),
        // An error neither allows a call nor lifts a denial.
        (&refund, None, Some(json!({"iban": "FR1"})), "never-abroad: deny within 3600 s"),
        (&refund, Some("guest-7"), Some(json!({})), "guests: deny within 3600 s"),
        (&elsewhere, None, Some(json!({"amount": 10})), "default: ask within 3600 s"),
        // Before the arguments are known, a verdict that depends on them is *ask*: neither hidden nor allowed.
        (&refund, None, None, "never-abroad: ask within 3600 s"),
        (&external, None, None, "never-abroad: ask within 3600 s"),
        (&external, None, Some(json!({"amount": 10})), "applications: allow within 3600 s"),
        (&refund, Some("guest-7"), None, "guests: deny within 3600 s"),
    ] {
        let found = said(&policy, tool, principal, arguments.clone());
        assert_eq!(found, expected, "{} {principal:?} {arguments:?}", tool.name);
    }
}

#[test]
fn a_tool_denied_except_under_a_condition_is_available() {
    let text = "name: p\ndefault: deny\nrules:\n  - { id: r, match: { tool_name: read }, when: \"args.path == '/a'\", verdict: allow, reason: Only this. }\n";
    let folder = folder(&[("p.yaml", text)]);
    let policy = config::policy_file(&folder.path().join("p.yaml")).expect("good");
    let tool = mcp_tool("files", "read", None, false);
    assert_eq!(said(&policy, &tool, None, None), "r: ask");
    assert_eq!(said(&policy, &tool, None, Some(json!({"path": "/a"}))), "r: allow");
    assert_eq!(said(&policy, &tool, None, Some(json!({"path": "/b"}))), "default: deny");
    assert_eq!(said(&policy, &tool, None, Some(json!({}))), "default: deny");
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_shown_to_the_approver() {
    let folder = folder(&[("desk.yaml", DESK)]);
    let policy = config::policy_file(&folder.path().join("desk.yaml")).expect("good");
    let tool = mcp_tool("shop", "refund", None, false);
    let arguments = json!({"amount": "ten"}).as_object().expect("an object").clone();
    let subject = Subject { tool: &tool, agent: None, principal: None, arguments: Some(&arguments) };
    let reason = policy.judge(&subject).reason;
    assert!(reason.contains("rule `small-refunds`") && reason.contains("(string, int)"), "{reason}");
    assert!(!reason.contains("ten"), "{reason}");
}

#[test]
fn policies_are_written_in_the_configuration_or_in_files() {
    let here = "default: deny\n    rules: [{ id: r, match: { tool: x }, verdict: ask, reason: Because. }]";
    let text = format!(
        "models: {{ main: {{ scripted: {{ file: c.yaml }} }} }}
policies:
  strict:
    {here}
  filed: p.yaml
agents:
  by-name: {{ policy: strict }}
  by-file: {{ policy: policies/q.yaml }}
  in-place:
    policy:
      default: allow
      answer_timeout_s: 5
  by-default: {{}}
"
    );
    let files = [
        ("toolgate.yaml", text.as_str()),
        ("p.yaml", "name: filed\ndefault: deny\n"),
        ("policies/q.yaml", "name: q\ndefault: allow\n"),
    ];
    let folder = folder(&files);
    let settings = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect("good");
    let of = |agent: &str| {
        let policy = &settings.agents[&agent.into()].policy;
        (policy.name.clone(), policy.fallback, policy.rules.len(), policy.answer_timeout_s)
    };
    assert_eq!(of("by-name"), ("strict".into(), Verdict::Deny, 1, None));
    assert_eq!(of("by-file"), ("q".into(), Verdict::Allow, 0, None));
    assert_eq!(of("in-place"), ("in-place".into(), Verdict::Allow, 0, Some(5)));
    assert_eq!(of("by-default").0, "default");
    assert_eq!(settings.policies["filed"].fallback, Verdict::Deny);
}

#[test]
fn an_inline_policys_version_depends_on_its_content_alone() {
    let version = |around: &str, reason: &str| {
        let rule = format!("{{ id: r, match: {{ tool: x }}, verdict: ask, reason: {reason} }}");
        let settings = load(&format!("{around}policies: {{ p: {{ default: deny, rules: [{rule}] }} }}\n"));
        settings.expect("good").policies["p"].version.clone()
    };
    assert_eq!(version("", "Because."), version("log: info\n\n", "Because."));
    assert_ne!(version("", "Because."), version("", "Otherwise."));
}

#[test]
fn an_error_in_an_inline_policy_is_reported_at_its_line() {
    let error = load("agents:\n  a:\n    policy:\n      default: ask\n      rules:\n        - { id: r, match: { tool: x }, when: foo, verdict: ask, reason: Because. }\n")
        .expect_err("an unknown name");
    assert!(error.plain().contains("toolgate.yaml:6:"), "{}", error.plain());
    assert!(error.plain().contains("there is no `foo`"), "{}", error.plain());
    let error = load("agents: { a: { policy: defualt } }\n").expect_err("no such policy");
    assert!(error.plain().contains("did you mean `default`"), "{}", error.plain());
    let error = load("agents: { a: { policy: nowhere.yaml } }\n").expect_err("no such file");
    assert!(error.plain().contains("nowhere.yaml"), "{}", error.plain());
}

#[test]
fn an_agent_may_ask_the_user_with_a_time_limit() {
    let asks = |written: &str| {
        let settings =
            load(&format!("models: {{ m: {{ scripted: {{ file: c }} }} }}\nagents: {{ a: {{ {written} }} }}\n"));
        settings.map(|settings| settings.agents[&"a".into()].rules.ask_human.map(|ask| ask.deadline_s))
    };
    assert_eq!(asks("").expect("good"), None);
    assert_eq!(asks("ask_human: false").expect("good"), None);
    assert_eq!(asks("ask_human: true").expect("good"), Some(None));
    assert_eq!(asks("ask_human: { deadline_s: 90 }").expect("good"), Some(Some(90)));
    assert!(asks("ask_human: { deadline_s: 0 }").expect_err("no time").plain().contains("at least 1"));
    assert!(asks("ask_human: sometimes").expect_err("no such word").plain().contains("`true`, `false`"));
}

#[test]
fn an_external_tool_has_a_deadline_for_its_result() {
    let tool = |deadline: &str| {
        let text = format!("agents: {{ a: {{ external_tools: [{{ name: pay, deadline_s: {deadline} }}] }} }}\n");
        load(&text).map(|settings| settings.agents[&"a".into()].external_tools[0].deadline_s)
    };
    assert_eq!(tool("90").expect("good"), Some(90));
    assert!(tool("0").expect_err("no time").plain().contains("has a deadline of 0 seconds"));
}
