//! Tests of imports: each rule with its translation, and the law that an import allows no call that its source asks about or
//! denies.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_core::policy::{Example, Links, Policy, Subject, Verdict};

use super::claude_permissions;
use super::exec_rules;
use super::imported_rule::{ImportEffect, PolicyImport};
use crate::error::Source;
use crate::policy::policy_text;

const TOOLS: [&str; 6] = [
    "Bash=work/run_command",
    "Read=files/read_file",
    "Edit=files/edit_file",
    "Write=files/write_file:file_path",
    "Grep=files/search",
    "WebFetch=web/fetch",
];

fn import_with(tools: &[&str], permissions: &Value) -> PolicyImport {
    import_of("/srv/app/.claude/settings.json", tools, permissions)
}

fn import_of(name: &str, tools: &[&str], permissions: &Value) -> PolicyImport {
    let tools: Vec<_> = tools.iter().map(|tool| tool.parse().unwrap()).collect();
    let mut import = PolicyImport::default();
    let file = Source::new(name, json!({"permissions": permissions}).to_string());
    let (root, home) = (Path::new("/srv/app"), Path::new("/home/ada"));
    claude_permissions::import(&file, &tools, root, Some(home), &mut import).unwrap();
    claude_permissions::guard_file_commands(&tools, &mut import);
    import
}

fn import(permissions: &Value) -> PolicyImport {
    import_with(&TOOLS, permissions)
}

fn codex(text: &str) -> PolicyImport {
    let mut import = PolicyImport::default();
    exec_rules::import(&Source::new("default.rules", text), &[], &mut import).unwrap();
    import
}

/// The policy, as a person would load it.
fn policy(import: &PolicyImport) -> Policy {
    let text = import.yaml("imported");
    policy_text("imported", &text).unwrap_or_else(|error| panic!("{}\n{text}", error.plain()))
}

fn judge(policy: &Policy, server: &str, tool: &str, arguments: &Value) -> Verdict {
    let example = Example { server: Some(server.into()), tool: tool.into(), trusted: true, ..Example::default() };
    let (tool, arguments) = (example.tool(), arguments.as_object());
    policy.judge(&Subject { tool: &tool, agent: None, principal: None, arguments }).verdict
}

fn run(policy: &Policy, command: &str) -> Verdict {
    judge(policy, "work", "run_command", &json!({"command": command}))
}

fn effects(import: &PolicyImport) -> Vec<(&str, ImportEffect)> {
    import.untranslated.iter().map(|rule| (rule.rule.as_str(), rule.effect)).collect()
}

#[test]
fn commands_become_rules_about_words() {
    let import = import(&json!({
        "allow": ["Bash(git diff:*)", "Bash(npm run test)", "Bash(ls *)"],
        "ask": ["Bash(git push:*)"],
        "deny": ["Bash(rm:*)"],
    }));
    assert_eq!(effects(&import), []);
    let policy = policy(&import);
    for (command, verdict) in [
        ("git diff --stat", Verdict::Allow),
        ("git diff; ls", Verdict::Allow),
        ("git diff 2>&1 | ls && npm run test", Verdict::Allow),
        ("git diff | head", Verdict::Ask),
        ("git diff && npm run test -- --watch", Verdict::Ask),
        ("git diff; rm -rf /", Verdict::Deny),
        ("git log", Verdict::Ask),
        ("npm run test", Verdict::Allow),
        ("npm run test -- --watch", Verdict::Ask),
        ("ls", Verdict::Allow),
        ("lsof", Verdict::Ask),
        ("git push", Verdict::Ask),
        ("sudo rm x", Verdict::Deny),
    ] {
        assert_eq!(run(&policy, command), verdict, "{command}");
    }
}

#[test]
fn a_denied_command_does_not_deny_what_cannot_be_analysed() {
    let policy = policy(&import(&json!({"allow": ["Bash"], "deny": ["Bash(curl:*)"]})));
    for (command, verdict) in [
        ("sh build.sh", Verdict::Ask),
        ("bash -c \"cargo test\"", Verdict::Ask),
        (". venv/bin/activate && pytest", Verdict::Ask),
        ("git commit -m \"$(cat <<'EOF'\nIt's done\nEOF\n)\"", Verdict::Ask),
        ("bash -c 'curl x'", Verdict::Deny),
        ("cd app && curl x | sh", Verdict::Deny),
        ("ls", Verdict::Allow),
    ] {
        assert_eq!(run(&policy, command), verdict, "{command}");
    }
    let example = Example { server: Some("work".into()), tool: "run_command".into(), ..Example::default() };
    let (tool, arguments) = (example.tool(), json!({"command": "sh build.sh"}));
    let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
    let reason = policy.judge(&subject).reason;
    assert_eq!(
        reason,
        "the command cannot be analysed, so that rule `deny-bash-curl` may apply: Imported from Claude Code: deny Bash(curl:*)"
    );
}

#[test]
fn a_colon_is_a_command_and_not_every_command() {
    for colon in ["Bash(:)", "Bash(: *)"] {
        assert_eq!(run(&policy(&import(&json!({"allow": [colon]}))), "rm x"), Verdict::Ask, "{colon}");
    }
    for every in ["Bash", "Bash(*)", "Bash(:*)", "Bash(*:*)"] {
        assert_eq!(run(&policy(&import(&json!({"allow": [every]}))), "rm x"), Verdict::Allow, "{every}");
    }
}

#[test]
fn a_denial_that_words_cannot_express_asks_about_more_commands() {
    let wildcard = import(&json!({"allow": ["Bash(git:*)"], "deny": ["Bash(git push * --force)"]}));
    assert_eq!(effects(&wildcard), [("deny Bash(git push * --force)", ImportEffect::Asks)]);
    let policy_of = policy(&wildcard);
    assert_eq!(run(&policy_of, "git push origin --force"), Verdict::Ask);
    assert_eq!(run(&policy_of, "git log"), Verdict::Allow);
    let suffix = import(&json!({"allow": ["Bash(git:*)"], "deny": ["Bash(* --force)"]}));
    assert_eq!(run(&policy(&suffix), "git log"), Verdict::Ask, "every command is asked about");
    let exact = import(&json!({"deny": ["Bash(npm publish)"]}));
    assert_eq!(effects(&exact), [("deny Bash(npm publish)", ImportEffect::MatchesMore)]);
    assert_eq!(run(&policy(&exact), "npm publish"), Verdict::Deny);
}

#[test]
fn an_allowance_without_an_exact_translation_is_left_out() {
    let rules = [
        "Bash(git * main)",
        "Bash(npm run test*)",
        "Bash(find . -name '*.rs')",
        "Bash(curl 'http://example.com/?a')",
        "Bash(NODE_ENV=test npm test)",
        "Bash(curl http://example.com/:*)",
        "Bash()",
        "Read(*.md)",
        "Read(README.md)",
        "Write(./src/**)",
        "Grep(./src/**)",
        "WebFetch(domain:*.example.com)",
        "WebSearch",
        "mcp__*",
        "mcp__a__b__c",
        "mcp__a___b",
        "Bash(: *:*)",
        "Bash(* *)",
        "Task(Explore)",
        "Bash(git diff",
    ];
    let import = import(&json!({"allow": rules}));
    let left_out: Vec<String> = rules.iter().map(|rule| format!("allow {rule}")).collect();
    let expected: Vec<(&str, ImportEffect)> =
        left_out.iter().map(|rule| (rule.as_str(), ImportEffect::LeftOut)).collect();
    assert_eq!(effects(&import), expected);
    policy(&import);
}

#[test]
fn paths_are_compared_by_folder() {
    let import = import(&json!({
        "allow": ["Read(./src/**)", "Read(//etc/hosts)", "Edit(/docs/**)", "Read(~/notes/**)"],
        "deny": ["Read(./src/secret/**)", "Edit(./docs/adr)"],
        "ask": ["Read(./.env.*)"],
    }));
    let policy = policy(&import);
    let read = |path: &str| judge(&policy, "files", "read_file", &json!({"path": path}));
    for (path, verdict) in [
        ("/srv/app/src/main.rs", Verdict::Allow),
        ("/srv/app/src/.env.local", Verdict::Ask),
        ("/etc/hosts", Verdict::Allow),
        ("/etc/passwd", Verdict::Ask),
        ("/srv/app/src/secret/key", Verdict::Deny),
        ("/home/ada/notes/x", Verdict::Allow),
        ("/home/ada/notes/../.ssh/id", Verdict::Ask),
        ("src/main.rs", Verdict::Ask),
    ] {
        assert_eq!(read(path), verdict, "{path}");
    }
    let edit = |tool: &str, argument: &str, path: &str| judge(&policy, "files", tool, &json!({argument: path}));
    assert_eq!(edit("edit_file", "path", "/srv/app/docs/a.md"), Verdict::Allow);
    assert_eq!(edit("write_file", "file_path", "/srv/app/docs/a.md"), Verdict::Allow, "a rule of Edit is about Write");
    assert_eq!(edit("write_file", "file_path", "/srv/app/docs/adr/1.md"), Verdict::Deny);
    assert_eq!(judge(&policy, "files", "search", &json!({"path": "/srv/app/src/secret"})), Verdict::Deny);
    // A search reads the files below its path.
    assert_eq!(judge(&policy, "files", "search", &json!({"path": "/srv/app/src"})), Verdict::Ask);
}

#[test]
fn files_are_denied_by_the_patterns_of_their_names() {
    let import = import(&json!({
        "allow": ["Read", "Grep"],
        "deny": ["Read(./.env)", "Read(./.env.*)", "Read(*.pem)", "Read(./secrets/**)", "Read(**/*.key)", "Read(//opt/*/conf)"],
        "ask": ["Read(./a[bc])"],
    }));
    let found = effects(&import);
    assert!(found.iter().all(|(_, effect)| *effect == ImportEffect::Asks), "{found:?}");
    let policy = policy(&import);
    let read = |path: &str| judge(&policy, "files", "read_file", &json!({"path": path}));
    for path in [
        "/srv/app/.env",
        "/srv/app/.env.local",
        "/srv/app/web/.env.production",
        "/srv/app/certs/a.pem",
        "/srv/app/x/../secrets/a",
        "/srv/app/a/b.key",
        "/opt/x/conf/y",
    ] {
        assert_eq!(read(path), Verdict::Deny, "{path}");
    }
    for path in ["/srv/app/README.md", "/srv/app/a/environment", "/srv/app/secret", "/tmp/a.pem", "/opt/x/y/conf"] {
        let expected = if path.starts_with("/srv/app") { Verdict::Ask } else { Verdict::Allow };
        assert_eq!(read(path), expected, "{path}: `a[bc]` is asked about in the whole project");
    }
    assert_eq!(judge(&policy, "files", "search", &json!({"path": "/srv"})), Verdict::Ask);
}

#[test]
fn a_denied_file_is_denied_by_its_name_and_by_its_links() {
    let policy = policy(&import(&json!({"allow": ["Read"], "deny": ["Read(./.env.*)"]})));
    let example =
        Example { server: Some("files".into()), tool: "read_file".into(), trusted: true, ..Example::default() };
    let tool = example.tool();
    let judged = |path: &str, target: Result<&str, &str>| {
        let arguments = json!({"path": path});
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
        let own = |text: &str| text.to_owned();
        let links = [(own("/srv/app"), Ok(own("/srv/app"))), (own(path), target.map(own).map_err(own))];
        policy.judge_with_links(&subject, &Links::Resolved(links.into_iter().collect())).verdict
    };
    assert_eq!(judged("/srv/app/README.md", Ok("/srv/app/README.md")), Verdict::Allow);
    assert_eq!(judged("/srv/app/notes", Ok("/srv/app/.env.local")), Verdict::Deny);
    assert_eq!(judged("/srv/app/.env.local", Ok("/vault/app")), Verdict::Deny);
    assert_eq!(judged("/srv/app/.env.local", Err("it loops")), Verdict::Deny);
    assert_eq!(judged("/srv/app/notes", Err("it loops")), Verdict::Ask);
    assert_eq!(judged(".env.local", Err("it is relative")), Verdict::Deny);
    assert_eq!(judged("web/../.env.local", Err("it is relative")), Verdict::Deny);
    assert_eq!(judged("src/a.py", Err("it is relative")), Verdict::Ask);
    assert_eq!(judged("../.env.local", Err("it is relative")), Verdict::Ask);
}

#[test]
fn two_stars_are_everything_below_the_project() {
    let policy = policy(&import(&json!({"allow": ["Read(**)", "Edit(**)"]})));
    for tool in ["read_file", "edit_file"] {
        let at = |path: &str| judge(&policy, "files", tool, &json!({"path": path}));
        assert_eq!([at("/srv/app/src/main.rs"), at("/etc/passwd")], [Verdict::Allow, Verdict::Ask], "{tool}");
    }
}

#[test]
fn one_file_that_is_allowed_is_no_link_to_another() {
    let policy = policy(&import(&json!({"allow": ["Read(./docs/a.md)"]})));
    let example = Example { server: Some("files".into()), tool: "read_file".into(), ..Example::default() };
    let (tool, arguments) = (example.tool(), json!({"path": "/srv/app/docs/a.md"}));
    let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
    let judged = |links: &Links| policy.judge_with_links(&subject, links).verdict;
    assert_eq!(
        [judged(&Links::Ignored), judged(&Links::Unresolvable("a link".into()))],
        [Verdict::Allow, Verdict::Ask]
    );
}

#[test]
fn a_slash_is_the_project_of_the_settings_file() {
    let rules = json!({"allow": ["Edit(/docs/**)"], "deny": ["Read(/secrets/**)"]});
    let of_user = import_of("/home/ada/.claude/settings.json", &TOOLS, &rules);
    let expected = [("deny Read(/secrets/**)", ImportEffect::Asks), ("allow Edit(/docs/**)", ImportEffect::LeftOut)];
    let mut found = effects(&of_user);
    found.dedup();
    assert_eq!(found[..1], expected[..1]);
    assert!(found.contains(&expected[1]), "{found:?}");
    assert_eq!(judge(&policy(&of_user), "files", "read_file", &json!({"path": "/srv/app/x"})), Verdict::Ask);
}

#[test]
fn a_denial_of_the_beginning_of_a_word_asks() {
    let import = import(&json!({"allow": ["Bash(curl:*)"], "deny": ["Bash(curl http://evil.example/:*)"]}));
    assert_eq!(run(&policy(&import), "curl http://evil.example/x"), Verdict::Ask);
}

#[test]
fn a_rule_about_paths_also_holds_for_commands_that_read_files() {
    let rules = json!({"allow": ["Bash(cat:*)", "Bash(git log:*)"], "deny": ["Read(./.env)"]});
    for tools in [&TOOLS[..], &[]] {
        let policy = policy(&import_with(tools, &rules));
        assert_eq!([run(&policy, "cat .env"), run(&policy, "git log")], [Verdict::Ask, Verdict::Allow]);
    }
    for every in ["Bash", "Bash(*)", "Bash(:*)"] {
        let policy = policy(&import(&json!({"allow": [every], "deny": ["Read(./.env)"]})));
        for command in ["cat .env", "ls .", "uniq .env", "dd if=.env", "sha256sum .env", "cd /srv"] {
            assert_eq!(run(&policy, command), Verdict::Ask, "{every}: {command}");
        }
        assert_eq!(run(&policy, "git log"), Verdict::Allow, "{every}");
    }
    let only_allowed = policy(&import(&json!({"allow": ["Bash(cat:*)", "Read(./src/**)"]})));
    assert_eq!(run(&only_allowed, "cat x"), Verdict::Allow);
}

#[test]
fn mcp_tools_and_addresses_are_matched_by_name() {
    let import = import(&json!({
        "allow": ["mcp__github", "mcp__shop__find_*", "WebFetch(domain:docs.rs)"],
        "deny": ["mcp__github__delete_repo", "WebFetch(domain:evil.example)", "mcp__puppeteer__*"],
    }));
    let policy = policy(&import);
    let call = |server, tool| judge(&policy, server, tool, &json!({}));
    assert_eq!(
        [call("github", "list"), call("github", "delete_repo"), call("shop", "find_x"), call("shop", "refund")],
        [Verdict::Allow, Verdict::Deny, Verdict::Allow, Verdict::Ask]
    );
    assert_eq!(call("puppeteer", "click"), Verdict::Deny);
    let overlapping = self::policy(&self::import(&json!({"deny": ["mcp__a___b"]})));
    for (server, tool) in [("a", "_b"), ("a_", "b")] {
        assert_eq!(judge(&overlapping, server, tool, &json!({})), Verdict::Deny, "{server}");
    }
    // A denial of an address can be evaded by another spelling, so that every address is asked about.
    assert_eq!(judge(&policy, "web", "fetch", &json!({"url": "https://docs.rs/x"})), Verdict::Ask);
}

#[test]
fn an_address_is_allowed_by_its_host() {
    let policy = policy(&import(&json!({"allow": ["WebFetch(domain:docs.rs)"]})));
    let fetch = |url: &str| judge(&policy, "web", "fetch", &json!({"url": url}));
    assert_eq!(fetch("https://docs.rs/x"), Verdict::Allow);
    for other in ["https://docs.rs.evil.org/", "https://docs.rs@evil.org/", "http://docs.rs/", "https://docs-rs/"] {
        assert_eq!(fetch(other), Verdict::Ask, "{other}");
    }
}

#[test]
fn without_a_mapping_the_shell_is_any_trusted_tool_with_a_command() {
    let rules = json!({"allow": ["Bash(git diff:*)", "Bash", "Read"], "deny": ["Bash(rm:*)", "Read(./.env)"]});
    let import = import_with(&[], &rules);
    let left_out = ["deny Read(./.env)", "allow Bash", "allow Read"];
    assert_eq!(effects(&import)[..3], left_out.map(|rule| (rule, ImportEffect::LeftOut)));
    let policy = policy(&import);
    assert_eq!(judge(&policy, "any", "sh", &json!({"command": "git diff"})), Verdict::Allow);
    assert_eq!(judge(&policy, "any", "sh", &json!({"cmd": "rm x"})), Verdict::Deny);
    let denied = import_with(&[], &json!({"allow": ["Bash(ls:*)"], "deny": ["Bash"]}));
    assert_eq!(judge(&self::policy(&denied), "any", "sh", &json!({"command": "ls"})), Verdict::Deny);
}

#[test]
fn no_mode_makes_the_default_allow() {
    for (mode, default) in [
        ("default", Verdict::Ask),
        ("acceptEdits", Verdict::Ask),
        ("plan", Verdict::Ask),
        ("bypassPermissions", Verdict::Ask),
        ("dontAsk", Verdict::Deny),
        ("unheard-of", Verdict::Ask),
    ] {
        assert_eq!(policy(&import(&json!({"defaultMode": mode}))).fallback, default, "{mode}");
    }
    let odd = import(&json!({"allow": [42, ""], "additionalDirectories": ["../docs"]}));
    assert_eq!(odd.untranslated.len(), 3);
}

#[test]
fn rules_of_codex_keep_their_examples() {
    let import = codex(
        r#"
# What may run.
prefix_rule(
    pattern = ["git", ["diff", "log"]],
    match = [["git", "diff", "--stat"], "git log -1", "git diff --output=x"],
    not_match = ["git push"],
)
prefix_rule(pattern=["rm"], decision="forbidden", justification="Use `trash`.", match=["rm -rf /"], not_match=["ls; rm x"])
prefix_rule(pattern=["npm", "publish"], decision='prompt')
host_executable(name = "git", paths = ["/usr/bin/git"])
"#,
    );
    let policy = policy(&import);
    let judged = |command: &str| judge(&policy, "any", "sh", &json!({"command": command}));
    assert_eq!(
        ["git diff", "git push", "rm x", "npm publish"].map(judged),
        [Verdict::Allow, Verdict::Ask, Verdict::Deny, Verdict::Ask]
    );
    let [allowed, denied, _] = &policy.rules[..] else { panic!("three rules") };
    assert_eq!((allowed.examples().0.len(), allowed.examples().1.len()), (2, 1));
    assert_eq!(denied.reason, "Use `trash`.");
    assert_eq!(
        effects(&import),
        [
            ("prefix_rule git diff|log", ImportEffect::MatchesLess),
            ("prefix_rule rm", ImportEffect::MatchesMore),
            ("host_executable", ImportEffect::LeftOut),
        ]
    );
}

#[test]
fn a_file_of_codex_with_another_statement_is_refused() {
    for (text, line, reason) in [
        ("prefix_rule(pattern=[\"ls\"])\nfor x in []:\n    pass\n", 2, "expected `(`"),
        ("\nrules = []\n", 2, "expected `(`"),
        ("prefix_rule(pattern=PROGRAMS)", 1, "`PROGRAMS` is neither a text"),
        ("prefix_rule([\"ls\"])", 1, "expected a name"),
        ("prefix_rule(pattern=[\"ls\"], decision=\"maybe\")", 1, "`maybe` is none of"),
        ("prefix_rule(pattern=[])", 1, "names no program"),
        ("prefix_rule(pattern=[\"git status\"])", 1, "is no word"),
        ("unheard_of(x=\"y\")", 1, "not a rule that is known"),
        ("prefix_rule(pattern=[\"a\" \"b\"])", 1, "expected `,`"),
        ("prefix_rule(pattern=[\"a\\x41\"])", 1, "an escape"),
        ("prefix_rule(pattern=[\"a\"", 1, "expected `,`"),
        (&format!("prefix_rule(pattern={}", "[".repeat(100_000)), 1, "nested deeper than 8"),
    ] {
        let mut import = PolicyImport::default();
        let error = exec_rules::import(&Source::new("x.rules", text), &[], &mut import).unwrap_err();
        let found = error.faults().next().unwrap();
        assert!(found.message().contains(reason), "{text}: {}", found.message());
        assert_eq!(found.line_and_column().unwrap().0, line, "{text}");
    }
}
