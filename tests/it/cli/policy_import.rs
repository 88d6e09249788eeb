//! `toolgate policy import`: permissions of Claude Code and rules of codex as a policy that loads.

use super::desk::Desk;

const SETTINGS: &str = r#"{
  // Comments are accepted.
  "permissions": {
    "allow": ["Bash(git diff:*)", "Bash(npm run test)", "Read(./src/**)", "mcp__shop__find_*", "WebSearch"],
    "ask": ["Bash(git push:*)"],
    "deny": ["Bash(rm:*)", "Read(./.env)", "Bash(git push * --force)"],
    "defaultMode": "acceptEdits"
  },
  "hooks": {}
}"#;

const TOOLS: [&str; 4] = ["--tool", "Bash=work/run_command", "--tool", "Read=files/read_file"];

fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("settings.json", SETTINGS);
    desk
}

#[test]
fn an_imported_policy_passes_the_check_and_judges_like_its_source() {
    let desk = desk();
    let words = [&["policy", "import", "settings.json", "-o", "claude.yaml"], &TOOLS[..]].concat();
    let imported = desk.toolgate(&words).expect(0);
    for told in [
        "allow WebSearch: left out: no tool stands for `WebSearch`",
        "deny Bash(git push * --force): asks",
        "defaultMode acceptEdits: left out",
        "a call with one requires approval, unless it is denied",
    ] {
        assert!(imported.err.contains(told), "{told}: {}", imported.err);
    }
    let checked = desk.toolgate(&["policy", "check", "claude.yaml"]).expect(0);
    assert!(!checked.err.contains("duplicates"), "{}", checked.err);
    let text = std::fs::read_to_string(desk.path().join("claude.yaml")).unwrap();
    assert!(text.contains("# Without an exact translation:"), "{text}");
    let verdict = |server: &str, tool: &str, arguments: &str| {
        let words = ["policy", "explain", tool, arguments, "--server", server, "--file", "claude.yaml", "--json"];
        let explained = desk.toolgate(&words).expect(0);
        serde_json::from_str::<serde_json::Value>(&explained.out).unwrap()["verdict"].as_str().unwrap().to_owned()
    };
    let run = |command: &str| verdict("work", "run_command", &serde_json::json!({"command": command}).to_string());
    assert_eq!(
        ["git diff HEAD", "git diff; rm x", "npm run test", "npm run build", "git push", "cat .env"].map(run),
        ["allow", "deny", "allow", "ask", "ask", "ask"]
    );
    assert_eq!(verdict("shop", "find_customer", "{}"), "allow");
}

#[test]
fn a_file_is_replaced_only_with_force() {
    let desk = desk();
    let import = ["policy", "import", "settings.json", "--output", "claude.yaml"];
    desk.toolgate(&import).expect(0);
    let refused = desk.toolgate(&import).expect(2);
    assert!(refused.err.contains("--force overwrites it"), "{}", refused.err);
    desk.toolgate(&[&import[..], &["--force"]].concat()).expect(0);
    let printed = desk.toolgate(&["policy", "import", "settings.json"]).expect(0).out;
    assert_eq!(printed, std::fs::read_to_string(desk.path().join("claude.yaml")).unwrap());
}

#[test]
fn an_import_as_json_has_the_policy_and_what_was_left_out() {
    let desk = desk();
    let imported = desk.toolgate(&["policy", "import", "settings.json", "--json"]).expect(0);
    let imported: serde_json::Value = serde_json::from_str(&imported.out).unwrap();
    assert!(imported["policy"].as_str().unwrap().starts_with("name: \"imported\"\ndefault: ask\n"), "{imported}");
    let effects = imported["untranslated"].as_array().unwrap().iter().map(|rule| rule["effect"].as_str().unwrap());
    assert!(effects.clone().any(|effect| effect == "left_out") && effects.clone().any(|effect| effect == "asks"));
}

#[test]
fn rules_of_codex_are_imported_and_an_unknown_statement_is_shown_at_its_line() {
    let desk = Desk::empty();
    desk.write(
        "default.rules",
        "prefix_rule(pattern=[\"git\", [\"diff\", \"log\"]], match=[[\"git\", \"log\"]], not_match=[\"git push\"])\n\
         prefix_rule(pattern=[\"rm\"], decision=\"forbidden\", justification=\"Use `trash`.\")\n",
    );
    let words = ["policy", "import", "default.rules", "--name", "codex", "-o", "codex.yaml"];
    desk.toolgate(&words).expect(0);
    let checked = desk.toolgate(&["policy", "check", "--strict", "codex.yaml"]).expect(0).out;
    assert!(checked.contains("policy codex") && checked.contains("2 examples passed"), "{checked}");
    desk.write("odd.rules", "prefix_rule(pattern=[\"ls\"])\nPROGRAMS = [\"ls\"]\n");
    let refused = desk.toolgate(&["policy", "import", "odd.rules"]).expect(2);
    assert!(refused.err.contains("odd.rules:2") && refused.err.contains("one of them may deny"), "{}", refused.err);
}

#[test]
fn the_name_that_a_model_sees_is_answered_with_server_and_tool() {
    let refused = desk().toolgate(&["policy", "import", "settings.json", "--tool", "Bash=mcp_work_run"]).expect(2);
    assert!(refused.err.contains("`mcp_work_run` is perhaps `work/run`"), "{}", refused.err);
}
