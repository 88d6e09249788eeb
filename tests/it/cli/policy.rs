//! `toolgate policy`: check, explain, backtest.

use serde_json::{Value, json};

use super::desk::Desk;

const PAYING: &str = "
name: paying
default: ask
rules:
  - id: small
    match: { tool_name: \"*note\", server: shop }
    when: size(args.text) < 40
    verdict: allow
    reason: A short note is no matter.
    examples:
      match: [{ server: shop, tool: add_note, arguments: { text: hello } }]
      no_match: [{ server: shop, tool: find_customer }]
  - id: nothing-for-guests
    match: { principal: \"guest-*\" }
    verdict: deny
    reason: Guests only look.
";

const TURNS: &str = "
turns:
  - { calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }
  - { calls: [{ name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: Done. }
";

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn policy_check_says_of_each_file_what_was_checked_or_what_is_wrong() {
    let desk = Desk::empty();
    desk.write("good.yaml", PAYING);
    desk.write("bad.yaml", &PAYING.replace("size(args.text)", "size(arg.text)"));
    let good = desk.toolgate(&["policy", "check", "good.yaml"]).expect(0);
    assert!(
        good.out.contains("good.yaml: policy paying") && good.out.contains("2 rules; 1 condition; 2 examples"),
        "{}",
        good.out
    );
    assert!(good.out.contains("without an example: nothing-for-guests"), "{}", good.out);
    let both = desk.toolgate(&["policy", "check", "good.yaml", "bad.yaml"]).expect(2);
    assert!(both.out.contains("✗ bad.yaml: 1 error"), "{}", both.out);
    assert!(both.out.contains("✓ good.yaml") && both.err.contains("there is no `arg`"), "{}", both.err);
    assert!(both.err.contains("bad.yaml:7:"), "the place is told: {}", both.err);

    let all = json_of(&desk.toolgate(&["policy", "check", "good.yaml", "bad.yaml", "--json"]).expect(2).out);
    assert_eq!((&all["policies"][0]["ok"], &all["policies"][0]["examples"]), (&json!(true), &json!(2)));
    assert_eq!((&all["policies"][1]["ok"], &all["policies"][1]["errors"][0]["line"]), (&json!(false), &json!(7)));
}

#[test]
fn policy_check_without_files_checks_those_of_the_configuration() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    desk.write("toolgate.yaml", "policies: { paying: paying.yaml }\nagents: { a: { policy: { default: deny } } }\n");
    let told = desk.toolgate(&["policy", "check"]).expect(0).out;
    for place in [
        "✓ accept-edits:",
        "✓ accept-reads:",
        "✓ bypass:",
        "✓ default:",
        "✓ delegate:",
        "✓ dont-ask:",
        "✓ plan:",
        "✓ paying:",
        "✓ agent a:",
    ] {
        assert!(told.contains(place), "{place} in {told}");
    }
}

#[test]
fn policy_explain_says_which_rule_decides_and_why_the_others_do_not() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    let explain = |arguments: &[&str]| {
        let mut all = vec!["policy", "explain"];
        all.extend(arguments);
        desk.toolgate(&all).expect(0).out
    };
    let made_up = |arguments: &str| explain(&["add_note", arguments, "--server", "shop", "--file", "paying.yaml"]);
    let allowed = made_up(r#"{"text": "hello"}"#);
    assert!(allowed.contains("mcp_shop_add_note  allow, by rule small of policy paying"), "{allowed}");
    assert!(allowed.contains("· deny  nothing-for-guests: there is no principal"), "{allowed}");
    let unclear = made_up("{}");
    assert!(unclear.contains("ask, by rule small") && unclear.contains("! allow small: "), "{unclear}");
    assert!(unclear.contains("there is no `text`"), "{unclear}");
    assert!(unclear.contains("· ask   default: does not decide, rule small does"), "{unclear}");
    let silent = explain(&["fly", "{}", "--server", "shop", "--file", "paying.yaml"]);
    assert!(silent.contains("by no rule") && silent.contains("· ask   default: applies, no rule decides"), "{silent}");

    let denied =
        explain(&["get_order", "{}", "--external", "--principal", "guest-1", "--file", "paying.yaml", "--json"]);
    let denied = json_of(&denied);
    assert_eq!((&denied["verdict"], &denied["rule"]), (&json!("deny"), &json!("nothing-for-guests")));
    assert_eq!(denied["rules"][0]["finding"], "misses");
    assert_eq!(denied["rules"][1]["finding"], "matches");
    let unknown = desk.toolgate(&["policy", "explain", "x", "--external", "--policy", "none"]).expect(2);
    assert!(unknown.err.contains("there is no policy `none`"), "{}", unknown.err);
}

#[test]
fn a_rule_that_cannot_be_evaluated_leaves_no_word_of_a_default_that_holds() {
    let desk = Desk::empty();
    desk.write("open.yaml", &PAYING.replace("default: ask", "default: allow"));
    let told = desk.toolgate(&["policy", "explain", "add_note", "{}", "--server", "shop", "--file", "open.yaml"]);
    let told = told.expect(0).out;
    assert!(told.contains("mcp_shop_add_note  ask, by rule small"), "{told}");
    assert!(told.contains("· allow default: does not decide, rule small does"), "{told}");
    let own = desk.toolgate(&["policy", "explain", "ask_human", "{}", "--file", "open.yaml"]).expect(0).out;
    assert!(own.contains("default: does not decide, toolgate runs the tool itself"), "{own}");
}

#[test]
fn a_failed_condition_is_not_reported_as_a_missing_rule() {
    let desk = Desk::empty();
    desk.write("paying.yaml", PAYING);
    let long = format!(r#"{{"text": "{}"}}"#, "x".repeat(50));
    let explain = ["policy", "explain", "add_note", &long, "--server", "shop", "--file", "paying.yaml"];
    let told = desk.toolgate(&explain).expect(0).out;
    assert!(told.contains("no rule of policy `paying` matches this call"), "{told}");
    assert!(told.contains("· allow small: `size(args.text) < 40` does not hold"), "{told}");
}

#[test]
fn policy_explain_warns_of_a_server_that_is_not_configured() {
    let desk = Desk::playing("turns: []");
    let explain = |server: &str| desk.toolgate(&["policy", "explain", "add_note", "{}", "--server", server]).expect(0);
    let slip = explain("shp");
    assert!(slip.err.contains("no server `shp` is configured; there are: shop"), "{}", slip.err);
    assert!(slip.out.contains("mcp_shp_add_note"), "{}", slip.out);
    assert!(!explain("shop").err.contains("is configured"));
}

#[test]
fn a_builtin_tool_is_not_explained_by_a_default_that_asks() {
    let desk = Desk::empty();
    let told = desk.toolgate(&["policy", "explain", "ask_human", "{}"]).expect(0).out;
    assert!(told.contains("ask_human  allow, by no rule"), "{told}");
    assert!(told.contains("default: does not decide, toolgate runs the tool itself"), "{told}");
}

#[test]
fn a_suffix_that_a_server_chooses_does_not_make_its_tool_one_that_edits_files() {
    let desk = Desk::empty();
    for tool in ["wipe_disk_write_file", "delete_then_move_file", "purge_then_read_file", "x_list_directory"] {
        let explain =
            ["policy", "explain", tool, "{}", "--server", "shell", "--server-trusted", "--policy", "accept-edits"];
        let told = desk.toolgate(&explain).expect(0).out;
        assert!(told.contains("ask, by no rule of policy accept-edits"), "{told}");
    }
}

#[test]
fn accept_edits_allows_file_tools_of_trusted_servers_only() {
    let desk = Desk::empty();
    for tool in ["write_file", "edit_file", "move_file", "read_file", "list_directory", "delete_file", "remove_file"] {
        let explain = ["policy", "explain", tool, "{}", "--server", "disk", "--policy", "accept-edits"];
        let told = desk.toolgate(&explain).expect(0).out;
        assert!(told.contains("ask, by no rule of policy accept-edits"), "{told}");
        assert!(told.contains("its server is not trusted"), "{told}");
        let remedy = "-files` would allow it if server `disk` were trusted (`trusted: true`)";
        assert!(told.contains(remedy), "{told}");
        let trusted = desk.toolgate(&[&explain[..], &["--server-trusted"]].concat()).expect(0).out;
        assert!(trusted.contains("-files of policy accept-edits"), "{trusted}");
    }
}

#[test]
fn a_name_without_a_server_allows_no_untrusted_tool() {
    let desk = Desk::empty();
    let policy = |matches: &str| {
        let rule = format!("{{ id: r, match: {{ {matches} }}, verdict: allow, reason: Because. }}");
        desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules: [{rule}]\n"));
    };
    let explain = |more: &[&str]| {
        let explain = ["policy", "explain", "write_file", "{}", "--server", "disk", "--file", "p.yaml"];
        desk.toolgate(&[&explain[..], more].concat()).expect(0).out
    };
    for by_name in [
        "tool_name: write_file",
        "tool: \"mcp_*_write_file\"",
        "tool: \"mcp_disk_*\"",
        "tool_name: \"*_file\", origin: mcp",
        "tool_name: write_file, agent: assistant",
    ] {
        policy(by_name);
        let told = explain(&[]);
        assert!(told.contains("ask, by no rule") && told.contains("the name of a tool alone allows nothing"), "{told}");
        assert!(told.contains("write `server: disk` into the rule"), "{told}");
        assert!(explain(&["--server-trusted"]).contains("allow, by rule r"), "{by_name}");
    }
    for chosen in ["server: disk, tool_name: write_file", "tool: mcp_disk_write_file", "tool: \"*\"", "origin: mcp"] {
        policy(chosen);
        assert!(explain(&[]).contains("allow, by rule r"), "{chosen}");
    }
    policy("tool_name: write_file, trusted: true");
    assert!(explain(&[]).contains("its server is not trusted"));
    policy("server: disk, trusted: false");
    assert!(
        explain(&["--server-trusted"]).contains("its server is trusted, and the rule is about servers that are not")
    );
}

const GIT: &str = "
name: git
default: ask
rules:
  - id: read-git
    match: { server: shell, tool_name: run, command: [git, [diff, status, log]] }
    verdict: allow
    reason: Looking at the repository changes nothing.
    examples:
      match:
        - { server: shell, tool: run, arguments: { command: git diff HEAD } }
        - { server: shell, tool: run, arguments: { command: [git, log, --oneline] } }
      no_match:
        - { server: shell, tool: run, arguments: { command: git diff HEAD; rm -rf / } }
        - { server: shell, tool: run, arguments: { command: git push } }
  - id: never-remove
    match: { command: [rm] }
    verdict: deny
    reason: Files are removed by people.
    examples:
      match: [{ server: shell, tool: run, arguments: { command: ls; rm x } }]
      no_match: [{ server: shell, tool: run, arguments: { command: ls rm } }]
";

#[test]
fn a_command_is_matched_by_its_words_and_never_when_it_chains() {
    let desk = Desk::empty();
    desk.write("git.yaml", GIT);
    let checked = desk.toolgate(&["policy", "check", "--strict", "git.yaml"]).expect(0);
    assert!(checked.out.contains("✓ git.yaml") && !checked.err.contains("warning"), "{}", checked.err);
    let explain = |arguments: &str| {
        let explain = ["policy", "explain", "run", arguments, "--server", "shell", "--file", "git.yaml"];
        desk.toolgate(&explain).expect(0).out
    };
    assert!(explain(r#"{"command": "git diff HEAD"}"#).contains("allow, by rule read-git"));
    for (chained, part) in [
        ("git diff HEAD; rm -rf /", "it allows a part of the command, and not the whole"),
        ("git log && /bin/rm x", "it allows a part of the command, and not the whole"),
        ("git diff $(rm x)", "the command is not plain"),
    ] {
        let told = explain(&format!(r#"{{"command": "{chained}"}}"#));
        assert!(told.contains("deny, by rule never-remove"), "{told}");
        assert!(told.contains(&format!("· allow read-git: {part}")), "{told}");
    }
    let redirected = explain(r#"{"command": "git diff > /etc/passwd"}"#);
    assert!(redirected.contains("ask, by no rule") && redirected.contains("`>` redirects"), "{redirected}");
    let written = explain(r#"{"command": "git diff --output=/etc/passwd"}"#);
    assert!(written.contains("ask, by no rule") && written.contains("may write files or run programs"), "{written}");
    let before = desk.toolgate(&["policy", "explain", "run", "--server", "shell", "--file", "git.yaml"]).expect(0).out;
    assert!(before.contains("it depends on the arguments: `command` `[git, [diff, status, log]]`"), "{before}");
}

#[test]
fn policy_check_refuses_a_command_that_cannot_be_meant_at_its_line() {
    let desk = Desk::empty();
    for (command, verdict, expected) in [
        ("[]", "allow", "`command` names no program"),
        ("[git diff]", "allow", "write one item for each word: `[git, diff]`"),
        ("['git diff *']", "allow", "write one item for each word: `[git, diff]`"),
        ("git diff", "allow", "a list of words such as `[git, [diff, log]]`"),
        ("{ words: [ls], exact: true }", "deny", "only narrow what a rule allows"),
        ("{ words: [ls], options: [l] }", "allow", "is no option"),
        ("{ word: [ls] }", "allow", "word"),
    ] {
        let rule =
            format!("  - id: r\n    match:\n      command: {command}\n    verdict: {verdict}\n    reason: Because.\n");
        desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules:\n{rule}"));
        let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(2).err;
        assert!(told.contains(expected) && told.contains("p.yaml:6:"), "{command}: {told}");
    }
}

/// The warnings of `policy check --json` for a policy with these rules.
fn warnings(rules: &str) -> Vec<Value> {
    let desk = Desk::empty();
    desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules:\n{rules}"));
    let json = json_of(&desk.toolgate(&["policy", "check", "p.yaml", "--json"]).expect(0).out);
    json["policies"][0]["warnings"].as_array().expect("warnings").clone()
}

fn rule(id: &str, body: &str, verdict: &str) -> String {
    format!("  - {{ id: {id}, match: {body}, verdict: {verdict}, reason: Because. }}\n")
}

#[test]
fn policy_check_warns_of_tests_that_a_call_gets_around() {
    let shell = |id: &str, when: &str, verdict: &str| {
        rule(id, &format!("{{ server: shell, tool_name: run }}, when: \"{when}\""), verdict)
    };
    let evaded = [
        (
            "begin",
            "args.command.startsWith('git diff')",
            "allow",
            "`git diff; rm -rf /` passes it",
            "write `command: [git, diff]` in `match`",
        ),
        (
            "inner",
            "args.shell_cmd.contains('git')",
            "allow",
            "tests a part of a command",
            "command: { argument: shell_cmd, words: [git] }",
        ),
        ("end", "args.command.endsWith('--dry-run')", "allow", "tests a part of a command", "write `command:"),
        ("regex", "args.command.matches('^git (diff|log)')", "allow", "tests a part of a command", "write `command:"),
        ("open", "args.command.matches('^git diff .*$')", "allow", "tests a part of a command", "write `command:"),
        ("denied", "args.command.contains('rm')", "deny", "written in another way", "write `command: [rm]` in `match`"),
        (
            "items",
            "['rm', 'dd'].exists(word, args.command.contains(word))",
            "deny",
            "tests a part of a command",
            "write `command:",
        ),
        (
            "path",
            "args.path.startsWith('/srv/')",
            "allow",
            "`/srv/../etc/passwd` passes it",
            "write `args.path.within('/srv')`",
        ),
        (
            "each",
            "args.filePaths.all(path, path.startsWith('/srv/'))",
            "allow",
            "tests a part of a path",
            "within('/srv')",
        ),
        ("dots", "has(args.file) && !args.file.contains('..')", "allow", "tests a part of a path", "args.file.within("),
        ("by-text", "args.target.startsWith('/srv/')", "allow", "tests a part of a path", "args.target.within('/srv')"),
        (
            "etc",
            "args.path.startsWith('/etc')",
            "deny",
            "`/tmp/../etc` leads to the same place",
            "args.path.within('/etc')",
        ),
        (
            "url",
            "args.url.startsWith('https://example.com')",
            "allow",
            "another host passes it",
            "compare the whole value",
        ),
        ("host", "args.host.endsWith('example.com')", "allow", "another host passes it", "compare the whole value"),
    ];
    let sound = [
        ("whole", "args.command == 'git diff'", "allow"),
        ("one-of", "args.command in ['git diff', 'git log']", "allow"),
        ("anchored", "args.command.matches('^git (diff|log)( [a-zA-Z0-9]+)*$')", "allow"),
        ("text", "args.text.startsWith('Dear')", "allow"),
        ("address", "args.url.startsWith('https://example.com/')", "allow"),
        ("subdomain", "args.host.endsWith('.example.com')", "allow"),
        ("mail", "args.to.endsWith('@example.com')", "allow"),
        ("kind", "args.file.endsWith('.md')", "ask"),
        ("branch", "args.branch.matches('^release/[0-9]+$')", "allow"),
    ];
    let rules = evaded.iter().map(|(id, when, verdict, ..)| shell(id, when, verdict));
    let rules: String = rules.chain(sound.iter().map(|(id, when, verdict)| shell(id, when, verdict))).collect();
    let warnings = warnings(&rules);
    let warned: Vec<&str> = warnings.iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert_eq!(warned, evaded.map(|(id, ..)| id), "{warnings:#?}");
    for (n, ((_, _, _, message, remedy), warning)) in evaded.iter().zip(&warnings).enumerate() {
        assert!(warning["message"].as_str().unwrap().contains(message), "{warning}");
        assert!(warning["remedy"].as_str().unwrap().contains(remedy), "{warning}");
        assert_eq!(warning["line"], n + 4, "{warning}");
        assert!(warning["column"].as_u64().unwrap() > 40, "the condition is pointed at: {warning}");
    }
}

#[test]
fn an_example_does_not_prove_a_prefix_test_and_strict_counts_the_warning() {
    let desk = Desk::empty();
    let policy = "name: weak\ndefault: ask\nrules:\n  - id: git-diff\n    match: { server: shell, tool_name: run }\n    when: args.command.startsWith('git diff')\n    verdict: allow\n    reason: Looking.\n    examples: { match: [{ server: shell, tool: run, arguments: { command: git diff HEAD } }] }\n";
    desk.write("weak.yaml", policy);
    let told = desk.toolgate(&["policy", "check", "weak.yaml"]).expect(0).err;
    assert!(told.contains("`git diff; rm -rf /` passes it") && told.contains("[line 6, column 11]"), "{told}");
    desk.toolgate(&["policy", "check", "--strict", "weak.yaml"]).expect(2);
    desk.write(
        "safe.yaml",
        &policy
            .replace("    when: args.command.startsWith('git diff')\n", "")
            .replace("tool_name: run }", "command: [git, diff] }"),
    );
    let safe = desk.toolgate(&["policy", "check", "--strict", "safe.yaml"]).expect(0);
    assert!(!safe.err.contains("warning"), "{}", safe.err);
}

#[test]
fn policy_check_warns_of_allowances_by_names_alone() {
    let warned = [
        ("tool", "{ tool_name: write_file }", "matches only tools of trusted servers"),
        ("part", "{ tool: \"mcp_*_read\" }", "matches only tools of trusted servers"),
        ("server", "{ server: git, tool_name: git_status }", "a server chooses what its tools do"),
        ("all-of-it", "{ server: hub }", "a server chooses what its tools do"),
        ("full", "{ tool: mcp_git_git_log }", "a server chooses what its tools do"),
        ("any-server", "{ command: [ls] }", "any server that has a tool with these arguments"),
        ("any-shell", "{ server: shell, command: [[bash, ls]] }", "`bash` executes its arguments"),
        ("any-git", "{ server: shell, command: [git] }", "every subcommand"),
    ];
    let meant = [
        ("trusted", "{ tool_name: write_file, trusted: true }"),
        ("hint", "{ server: git, read_only: true }"),
        ("external", "{ origin: external, tool_name: pay }"),
        ("words", "{ server: shell, command: [git, [diff, log]] }"),
        ("when", "{ server: shop, tool_name: pay }, when: args.amount < 10"),
        ("own", "{ tool: ask_human }"),
    ];
    let rules = warned.iter().map(|(id, body, _)| rule(id, body, "allow"));
    let rules: String = rules.chain(meant.iter().map(|(id, body)| rule(id, body, "allow"))).collect();
    let warnings = warnings(&rules);
    let found: Vec<&str> = warnings.iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert_eq!(found, warned.map(|(id, ..)| id), "{warnings:#?}");
    for ((_, _, message), warning) in warned.iter().zip(&warnings) {
        assert!(warning["message"].as_str().unwrap().contains(message), "{warning}");
    }
    assert_eq!(self::warnings(&rule("all", "{ tool: \"*\" }", "allow")), [] as [Value; 0]);
}

#[test]
fn policy_check_warns_of_rules_that_never_decide() {
    let dead = [
        ("origin", "{ origin: external, server: shop }", "allow", "never hold together"),
        ("trust", "{ origin: builtin, trusted: true }", "ask", "never hold together"),
        ("hints", "{ origin: external, read_only: true }", "allow", "a hint allows only tools of trusted servers"),
        ("untrusted", "{ trusted: false, read_only: true }", "allow", "a hint allows only tools of trusted servers"),
        ("prefix", "{ origin: mcp, tool: \"ext_*\" }", "deny", "never hold together"),
        ("other-server", "{ server: shop, tool: mcp_git_log }", "deny", "is no tool of the server `shop`"),
        ("no-builtin", "{ origin: builtin, tool_name: pay }", "deny", "no builtin tool fits"),
        ("false", "{ server: shop }, when: \"1 > 2\"", "allow", "it is false for every call"),
        ("both", "{ server: shop }, when: \"args.a == 'x' && args.a == 'y'\"", "allow", "two different values"),
        ("same", "{ server: a, tool_name: pay }", "deny", "it duplicates rule `first`"),
        ("milder", "{ server: a, tool_name: pay }, when: args.amount < 5", "allow", "rule `first`, which is stricter"),
        ("later", "{ server: a, tool_name: pay, agent: desk }", "deny", "rule `first`, which comes before it"),
    ];
    let alive = [
        ("wide", "{ server: a }", "ask"),
        ("guest", "{ principal: \"guest-*\" }", "deny"),
        ("other", "{ server: b, tool_name: pay }", "deny"),
        ("either", "{ server: c }, when: \"args.a == 'x' || args.a == 'y'\"", "deny"),
    ];
    let first = rule("first", "{ server: a, tool_name: pay }", "deny");
    let dead_rules = dead.iter().map(|(id, body, verdict, _)| rule(id, body, verdict));
    let alive = alive.iter().map(|(id, body, verdict)| rule(id, body, verdict));
    let warnings = warnings(&[first].into_iter().chain(dead_rules).chain(alive).collect::<String>());
    let found: Vec<&str> = warnings.iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert_eq!(found, dead.map(|(id, ..)| id), "{warnings:#?}");
    for ((_, _, _, message), warning) in dead.iter().zip(&warnings) {
        assert!(warning["message"].as_str().unwrap().contains(message), "{warning}");
    }
}

#[test]
fn policy_check_names_rules_that_allow_across_servers() {
    let desk = Desk::empty();
    let rule = |id: &str, matches: &str, verdict: &str| {
        format!("  - {{ id: {id}, match: {{ {matches} }}, verdict: {verdict}, reason: Because. }}\n")
    };
    let rules = [
        rule("shop", "tool: \"mcp_shop_*\"", "allow"),
        rule("denied", "tool: \"mcp_shop_*\"", "deny"),
        rule("bound", "tool: \"mcp_shop_*\", server: shop", "allow"),
        rule("ours", "tool: \"ext_*\"", "allow"),
        rule("all", "tool: \"*\"", "allow"),
    ];
    desk.write("p.yaml", &format!("name: p\ndefault: ask\nrules:\n{}", rules.concat()));
    let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(0).out;
    assert!(told.contains("also matches server names: shop (write `server` and `tool_name`)"), "{told}");
    let json = json_of(&desk.toolgate(&["policy", "check", "p.yaml", "--json"]).expect(0).out);
    assert_eq!(json["policies"][0]["across_servers"], json!(["shop"]));
}

#[test]
fn policy_check_warns_of_rules_that_can_hardly_be_meant() {
    let desk = Desk::empty();
    let rule = |id: &str, body: &str| format!("  - {{ id: {id}, match: {body}, verdict: deny, reason: Because. }}\n");
    let doubtful = [
        ("regex", r#"{ tool_name: "^read_.*$" }"#, "patterns are globs and compare the whole name: write `read_*`"),
        ("classes", r#"{ server: "(a|b)\\d" }"#, "`*` is any text"),
        ("half", "{ tool: read_file }", "write `tool_name: read_file`, or `tool: mcp_SERVER_read_file`"),
        ("half-pattern", r#"{ tool: "read_*" }"#, "`tool: read_*` is not a full name"),
        (
            "permission",
            r#"{ tool: "Bash(git diff:*)" }"#,
            "`toolgate policy import` translates permissions of Claude Code",
        ),
        ("never", "{ origin: external, server: shop }", "remove one of the two"),
        ("any", "{ tool_name: a }, when: args.path", "compare it (`args.path == …`)"),
        ("same", "{ tool_name: a }, when: \"true\"", "is the same for every call"),
    ];
    let meant = [
        ("prefix", r#"{ tool: "mcp_shop_*" }"#),
        ("part", r#"{ tool: "*_delete" }"#),
        ("own", "{ tool: ask_human }"),
        ("own-pattern", r#"{ tool: "ask_*" }"#),
        ("either", r#"{ tool: "{mcp,ext}_x" }"#),
        ("dots", "{ tool_name: a.b }"),
        ("flag", "{ tool_name: a }, when: has(args.force) && args.force"),
        ("proven", r#"{ tool_name: "admin.*" }, examples: { match: [{ tool: admin.x }] }"#),
        (
            "proven-flag",
            "{ tool_name: a }, when: args.force, examples: { match: [{ tool: a, arguments: { force: true } }] }",
        ),
    ];
    let rules =
        doubtful.iter().map(|(id, body, _)| rule(id, body)).chain(meant.iter().map(|(id, body)| rule(id, body)));
    desk.write("p.yaml", &format!("name: p\ndefault: allow\nrules:\n{}", rules.collect::<String>()));
    let json = json_of(&desk.toolgate(&["policy", "check", "p.yaml", "--json"]).expect(0).out);
    let warnings = json["policies"][0]["warnings"].as_array().expect("warnings").clone();
    let warned: Vec<&str> = warnings.iter().map(|warning| warning["rule"].as_str().unwrap()).collect();
    assert_eq!(warned, doubtful.map(|(id, ..)| id), "{warnings:?}");
    let told = desk.toolgate(&["policy", "check", "p.yaml"]).expect(0).err;
    for (id, _, remedy) in doubtful {
        let line = told.lines().find(|line| line.contains(&format!("p.yaml: rule `{id}`: "))).expect(id);
        assert!(line.starts_with("warning:") && line.contains(remedy), "{line}");
    }
}

#[test]
fn no_preset_is_warned_of() {
    let told = Desk::empty().toolgate(&["policy", "check"]).expect(0);
    assert!(!told.err.contains("warning"), "{}", told.err);
}

#[tokio::test]
async fn a_run_that_a_newer_version_wrote_is_named_and_the_others_are_read() {
    let desk = Desk::playing(TURNS);
    desk.write("paying.yaml", PAYING);
    for _ in 0..2 {
        desk.toolgate(&["run", "note it", "--json"]).expect(10);
        desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    }
    let db = rusqlite::Connection::open(desk.path().join(".toolgate/toolgate.db")).unwrap();
    let newer = r#"UPDATE journal SET event = '{"type":"tool.invented"}' WHERE seq = 2 AND run = (SELECT max(run) FROM journal)"#;
    db.execute(newer, []).unwrap();
    drop(db);

    let backtest = desk.toolgate(&["policy", "backtest", "paying.yaml"]).expect(0);
    assert!(backtest.err.contains("not read") && backtest.err.contains("tool.invented"), "{}", backtest.err);
    assert!(backtest.out.contains("2 calls of 2 runs"), "{}", backtest.out);
    let suggest = desk.toolgate(&["approvals", "suggest", "--at-least", "1"]).expect(0);
    assert!(suggest.err.contains("not read") && suggest.err.contains("tool.invented"), "{}", suggest.err);
    assert!(suggest.out.contains("approved-mcp-shop-add-note"), "{}", suggest.out);
}

#[test]
fn what_one_agent_was_refused_is_suggested_for_no_other() {
    let desk = Desk::playing(TURNS);
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{config}  other: {{ servers: [shop], policy: accept-edits }}\n"));
    desk.toolgate(&["run", "note it", "--agent", "desk"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    let suggest = ["approvals", "suggest", "--at-least", "1", "--agent", "desk", "--json"];
    assert_eq!(desk.toolgate(&suggest).expect(0).json_lines().len(), 1);
    desk.toolgate(&["run", "note it", "--agent", "other"]).expect(10);
    desk.toolgate(&["approvals", "deny", "last", "--all"]).expect(0);
    assert!(desk.toolgate(&suggest).expect(0).json_lines().is_empty());
}

#[test]
fn an_empty_suggestion_explains_what_was_left_out_and_why() {
    let desk = Desk::playing(TURNS);
    let nothing = desk.toolgate(&["approvals", "suggest"]).expect(0);
    assert!(nothing.err.contains("nothing to suggest from 0 approvals"), "{}", nothing.err);
    desk.toolgate(&["run", "note it"]).expect(10);
    desk.toolgate(&["approvals", "approve", "last", "--all"]).expect(0);
    let seldom = desk.toolgate(&["approvals", "suggest"]).expect(0);
    let why = "agent desk, approved 1 time: no call with the same arguments 2 times (`--at-least`)";
    assert!(seldom.err.contains(why), "{}", seldom.err);
    desk.toolgate(&["run", "note it"]).expect(10);
    desk.toolgate(&["approvals", "deny", "last", "--all", "--by", "ann"]).expect(0);
    let refused = desk.toolgate(&["approvals", "suggest", "--at-least", "1"]).expect(0);
    assert!(refused.err.contains("approved 1 time: the same call was denied by ann in run run_"), "{}", refused.err);
    assert_eq!(refused.out, "# nothing to suggest from 1 approval: no policy\n");
    desk.write("s.yaml", &refused.out);
    let check = desk.toolgate(&["policy", "check", "s.yaml"]).expect(2);
    assert!(check.out.contains("✗ s.yaml: 1 error"), "{}", check.out);
    assert!(check.err.contains("s.yaml: the file is empty"), "{}", check.err);
    assert!(check.err.contains("a policy has `name`, `default` and `rules`"), "{}", check.err);
}

#[test]
fn policy_explain_looks_at_what_the_servers_offer_now() {
    let desk = Desk::playing("turns: []");
    let told = desk.toolgate(&["policy", "explain", "mcp_shop_find_customer"]).expect(0).out;
    assert!(told.contains("allow, by rule read-only of policy accept-edits"), "{told}");
    assert!(told.contains("`find_customer` of the trusted server shop; agent desk; no arguments"), "{told}");
    let missing = desk.toolgate(&["policy", "explain", "mcp_shop_fly"]);
    assert!(missing.code != 0 && missing.err.contains("has no tool `mcp_shop_fly`"), "{}", missing.err);
    assert!(missing.err.contains("available are: "), "{}", missing.err);
    let misspelt = desk.toolgate(&["policy", "explain", "mcp_shop_find_costumer"]).expect(2).err;
    assert!(misspelt.contains("did you mean `mcp_shop_find_customer`?"), "{misspelt}");
    assert!(!misspelt.contains("available are"), "{misspelt}");
}

#[test]
fn policy_backtest_says_which_past_calls_would_get_another_verdict() {
    let desk = Desk::playing(TURNS);
    desk.toolgate(&["run", "note it", "--json"]).expect(10);
    desk.write("paying.yaml", PAYING);
    desk.write("open.yaml", "name: open\ndefault: allow\nrules: []\n");
    let told = json_of(&desk.toolgate(&["policy", "backtest", "paying.yaml", "--json"]).expect(0).out);
    assert_eq!((&told["runs"], &told["judged"], &told["changed"]), (&json!(1), &json!(2), &json!(2)), "{told}");
    let calls: Vec<Value> = told["calls"].as_array().unwrap().clone();
    let row = |tool: &str| calls.iter().find(|call| call["tool_name"] == tool).unwrap();
    assert_eq!(row("mcp_shop_find_customer")["then"], json!({"verdict": "allow", "became": "allowed"}));
    assert_eq!(row("mcp_shop_find_customer")["now"]["verdict"], "ask");
    assert_eq!(row("mcp_shop_add_note")["then"], json!({"verdict": "ask", "became": "unanswered"}));
    assert_eq!(row("mcp_shop_add_note")["now"]["rule"], "small");

    let open = desk.toolgate(&["policy", "backtest", "open.yaml"]).expect(0);
    assert!(open.out.contains("≠  1      mcp_shop_add_note") && open.err.is_empty(), "{}", open.out);
    desk.toolgate(&["approvals", "deny", "last", "--all"]).expect(0);
    let open = desk.toolgate(&["policy", "backtest", "open.yaml"]).expect(0);
    assert!(open.out.contains("!  1      mcp_shop_add_note"), "{}", open.out);
    assert!(open.err.contains("1 call that an approver refused would now run without approval"), "{}", open.err);

    let table = desk.toolgate(&["policy", "backtest", "paying.yaml", "--since", "1h"]).expect(0).out;
    assert!(table.contains("policy paying: 2 calls of 1 run, 2 would change"), "{table}");
    let none = desk.toolgate(&["policy", "backtest", "paying.yaml", "--agent", "unknown"]).expect(0);
    assert!(none.out.contains("0 calls of 0 runs"), "{}", none.out);
    assert!(
        none.err.contains("unknown agent `unknown`: it is not configured and has no runs; configured are: desk"),
        "{}",
        none.err
    );
    let known = desk.toolgate(&["policy", "backtest", "paying.yaml", "--agent", "desk"]).expect(0);
    assert!(!known.err.contains("unknown agent"), "{}", known.err);
    desk.toolgate(&["policy", "backtest", "paying.yaml", "--since", "yesterday"]).expect(2);
}
