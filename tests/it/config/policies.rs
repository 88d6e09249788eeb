//! Policy files and the presets.

use serde_json::json;
use toolgate::config;
use toolgate::core::policy::{Policy, Subject, Verdict};
use toolgate::core::tool::{Annotations, ExternalTool, McpTool, ServerTools, Tool, Toolset, ToolsetRules};

use super::{example, folder, load, no_env, rendered};

fn mcp_tool(server: &str, name: &str, read_only: Option<bool>, trusted: bool) -> Tool {
    let annotations = Annotations { read_only_hint: read_only, ..Annotations::default() };
    let (input_schema, output_schema) = (json!({"type": "object"}), None);
    let tool = McpTool { name: name.into(), description: String::new(), input_schema, output_schema, annotations };
    let offer = ServerTools {
        server: server.into(),
        trusted,
        endpoint: None,
        tools: vec![tool],
        left_out: Vec::new(),
        stale: None,
    };
    only(Toolset::assemble(&[], &[offer], &ToolsetRules::default()))
}

fn external_tool(name: &str) -> Tool {
    let tool: ExternalTool = serde_json::from_value(json!({"name": name})).expect("a tool");
    only(Toolset::assemble(&[tool], &[], &ToolsetRules::default()))
}

fn only(tools: Toolset) -> Tool {
    tools.iter().next().expect("a tool").as_ref().clone()
}

fn verdict(policy: &Policy, tool: &Tool) -> Verdict {
    policy.judge(&Subject { tool, agent: None, principal: None, arguments: None }).verdict
}

#[test]
fn the_presets_say_what_their_names_say() {
    use Verdict::{Allow, Ask, Deny};
    let settings = load("").expect("good");
    let tools = [
        external_tool("get_order"),
        mcp_tool("git", "git_log", Some(true), true),
        mcp_tool("git", "git_log", Some(true), false),
        mcp_tool("filesystem", "write_file", Some(false), false),
        mcp_tool("shell", "run", None, true),
    ];
    for (preset, expected) in [
        ("default", [Allow, Ask, Ask, Ask, Ask]),
        ("accept-edits", [Allow, Allow, Ask, Allow, Ask]),
        ("plan", [Deny; 5]),
        ("bypass", [Allow; 5]),
    ] {
        let policy = &settings.policies[preset];
        let found: Vec<Verdict> = tools.iter().map(|tool| verdict(policy, tool)).collect();
        assert_eq!(found, expected, "{preset}");
    }
}

#[test]
fn every_judgement_of_a_preset_can_be_read_by_a_person() {
    let settings = load("").expect("good");
    for rule in settings.policies.values().flat_map(|policy| &policy.rules) {
        assert!(rule.justification.ends_with('.') && rule.justification.len() > 20, "{}", rule.id);
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
    let rule = |rest: &str| format!("{head}  - id: r\n    verdict: allow\n    justification: Because.\n{rest}");
    let cases = [
        rule(
            "    match: { tool: \"mcp_git_*\" }\n    examples:\n      match:\n        - { server: git, tool: log }\n        - { server: svn, tool: log }\n      no_match:\n        - { server: git, tool: push }\n",
        ),
        rule(
            "    match: { read_only: true }\n    examples:\n      match:\n        - { server: git, tool: log, read_only: true }\n",
        ),
        rule("    match: { tool: \"[\" }\n"),
        rule("    match: { origin: remote }\n"),
        rule("    match: {}\n"),
        rule("    match: { tols: x }\n"),
        format!("{head}  - {{ id: r, match: {{ tool: a }}, verdict: alow, justification: x }}\n"),
        format!(
            "{head}  - {{ id: r, match: {{ tool: a }}, verdict: deny, justification: \" \" }}\n  - {{ id: r, match: {{ tool: b }}, verdict: deny, justification: x }}\n"
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
fn a_policy_goes_by_one_name() {
    let folder =
        folder(&[("toolgate.yaml", "policies: { mine: p.yaml }\n"), ("p.yaml", "name: yours\ndefault: deny\n")]);
    let error = config::load(Some(&folder.path().join("toolgate.yaml")), &no_env).expect_err("two names");
    assert!(error.plain().contains("the file calls this policy `yours`, not `mine`"), "{}", error.plain());
}
