//! `toolgate init`: a configuration from flags, or from the answers of a person.

use super::desk::{Desk, Ended};

/// A file of an editor with a token, and a server that needs nothing.
const MCP: &str = r#"{"mcpServers": {
    "shop": {"command": "toolgate", "args": ["demo-server"]},
    "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"GIT_TOKEN": "hunter2", "LOG_LEVEL": "info"}}
}}"#;

fn written(desk: &Desk) -> String {
    std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap()
}

#[test]
fn without_choices_a_script_stands_in_and_init_says_so() {
    let desk = Desk::empty();
    let wrote = desk.toolgate(&["init"]).expect(0);
    assert!(wrote.out.contains("no model: the environment names no model"), "{}", wrote.out);
    assert_eq!(written(&desk), include_str!("../../../examples/config/starter/toolgate.yaml"));
}

#[test]
fn git_ignores_the_store_and_the_entry_is_written_once() {
    let desk = Desk::empty();
    desk.write(".gitignore", "target");
    desk.toolgate(&["init"]).expect(0);
    desk.toolgate(&["init", "--force"]).expect(0);
    assert_eq!(std::fs::read_to_string(desk.path().join(".gitignore")).unwrap(), "target\n.toolgate/\n");
}

#[test]
fn flags_choose_model_and_policy_and_the_key_stays_in_the_environment() {
    let desk = Desk::empty();
    let mut command = desk.command(&["init", "--model", "anthropic", "--policy", "plan"]);
    command.env("ANTHROPIC_API_KEY", "sk-very-secret");
    let wrote = Ended::from(command.output().unwrap()).expect(0);
    let file = written(&desk);
    assert!(file.contains(r#"anthropic: { model: "claude-haiku-4-5", api_key: "${ANTHROPIC_API_KEY}" }"#), "{file}");
    assert!(file.contains("    policy: plan\n") && !file.contains("sk-very-secret"), "{file}");
    assert!(!wrote.out.contains("no model") && !desk.path().join("conversation.yaml").exists(), "{}", wrote.out);
}

#[test]
fn a_model_on_a_server_needs_its_address_and_no_key() {
    let desk = Desk::empty();
    desk.toolgate(&["init", "--model", "qwen3", "--model-url", "http://localhost:9/v1"]).expect(0);
    let file = written(&desk);
    assert!(file.contains(r#"openai_chat: { base_url: "http://localhost:9/v1", model: "qwen3" }"#), "{file}");
    assert!(desk.toolgate(&["config", "check"]).expect(0).out.contains("qwen3 at http://localhost:9/v1"));
    let without_key = Desk::empty().toolgate(&["init", "--model", "gemini"]).expect(0);
    assert!(without_key.out.contains("export GEMINI_API_KEY=…"), "{}", without_key.out);
    let refused = Desk::empty().toolgate(&["init", "--model", "qwen3"]).expect(2);
    assert!(refused.err.contains("openai, anthropic, gemini or auto") && refused.err.contains("--model-url"));
}

#[test]
fn the_file_of_claude_code_offers_the_servers_of_this_folder_before_those_of_every_folder() {
    let desk = Desk::empty();
    let folder = desk.path().canonicalize().unwrap();
    let local = serde_json::json!({
        "mcpServers": {"shop": {"command": "of-every-folder"}, "git": {"command": "uvx", "args": ["mcp-server-git"]}},
        "projects": {
            folder.to_str().unwrap(): {"mcpServers": {"shop": {"command": "toolgate", "args": ["demo-server"]}}},
            "/elsewhere": {"mcpServers": {"other": {"command": "of-another-folder"}}}
        }
    });
    desk.write(".claude.json", &local.to_string());
    desk.toolgate(&["init", "--mcp-config", ".claude.json"]).expect(0);
    let file = written(&desk);
    assert!(file.contains("  shop:\n") && file.contains("  git:\n"), "{file}");
    assert!(file.contains("args: [demo-server]") && !file.contains("of-"), "{file}");
}

#[test]
fn servers_of_an_editor_are_written_without_their_values() {
    let desk = Desk::empty();
    desk.write("mcp.json", MCP);
    let wrote = desk.toolgate(&["init", "--mcp-config", "mcp.json"]).expect(0);
    let file = written(&desk);
    assert!(!file.contains("hunter2") && !wrote.out.contains("hunter2"), "{file}");
    assert!(file.contains("GIT_TOKEN: \"${GIT_TOKEN}\"") && file.contains("servers: [demo, git, shop]"), "{file}");
    assert!(wrote.out.contains("git: GIT_TOKEN in place of"), "{}", wrote.out);
    assert!(wrote.out.contains("export GIT_TOKEN="), "the next command works only with it: {}", wrote.out);

    let chosen = ["init", "--force", "--mcp-config", "mcp.json", "--server", "shop", "--policy", "accept-edits"];
    let told = desk.toolgate(&chosen).expect(0).out;
    assert!(told.contains("add `trusted: true` to those of shop that you trust"), "{told}");
    assert!(written(&desk).contains("servers: [demo, shop]"));
    let told = desk.toolgate(&[&chosen[..], &["--trust", "shop"]].concat()).expect(0).out;
    assert!(!told.contains("trusted: true"), "{told}");
    assert!(written(&desk).contains("args: [demo-server]\n    trusted: true\n"), "{}", written(&desk));
    let unknown = desk.toolgate(&[&chosen[..], &["--trust", "git"]].concat()).expect(2);
    assert!(unknown.err.contains("--trust does not know the server `git`; the configuration has: demo, shop"));
    let with_model = desk.command(&chosen).env("TOOLGATE_MODEL_URL", "http://127.0.0.1:9/v1").output().unwrap();
    assert!(with_model.status.success());
    assert!(written(&desk).contains("servers: [shop]"));
    let unknown = desk.toolgate(&["init", "--force", "--mcp-config", "mcp.json", "--server", "x"]).expect(2);
    assert!(unknown.err.contains("no usable server `x`; the files have: git, shop"), "{}", unknown.err);
}

#[test]
fn the_command_that_init_ends_with_works() {
    let desk = Desk::empty();
    desk.write(".mcp.json", MCP);
    let wrote = desk.toolgate(&["init", "--model", "auto", "--server", "shop", "--policy", "bypass"]).expect(0);
    let next = wrote.out.lines().skip_while(|line| *line != "Next:").nth(1).unwrap().trim().to_owned();
    let ran = desk.paste(&next).expect(0);
    assert!(ran.out.contains("C-1001"), "{}", ran.out);
}

#[test]
fn init_names_the_import_of_permissions_that_are_there() {
    let desk = Desk::empty();
    std::fs::create_dir(desk.path().join(".claude")).unwrap();
    desk.write(".claude/settings.json", r#"{"permissions": {"allow": ["Read(./src/**)"]}}"#);
    let wrote = desk.toolgate(&["init", "--model", "auto"]).expect(0);
    let command = "toolgate policy import .claude/settings.json -o imported.yaml";
    assert!(wrote.out.contains(command), "{}", wrote.out);
    desk.paste(command).expect(0);
    assert!(desk.path().join("imported.yaml").is_file());
    assert!(!Desk::empty().toolgate(&["init"]).expect(0).out.contains("policy import"));
}

#[cfg(target_os = "linux")]
mod asking {
    use super::super::at_a_terminal::at_a_terminal;
    use super::*;

    const NUMBER: &str = "a number [1]: ";

    #[test]
    fn in_a_terminal_init_asks_and_enter_takes_what_works() {
        let desk = Desk::empty();
        desk.write(".mcp.json", MCP);
        let typed = [("or none [2]: ", "\n"), (NUMBER, "6\n")];
        let screen = at_a_terminal(&desk, &["init"], &typed).expect(0);
        for told in ["Model: ", "git: uvx mcp-server-git  (.mcp.json; has a value for GIT_TOKEN, not copied", "Next:"] {
            assert!(screen.text.contains(told), "{told}: {}", screen.text);
        }
        // Where uvx is not installed, the reason follows.
        assert!([")", ";"].iter().any(|end| screen.text.contains(&format!("not copied{end}"))), "{}", screen.text);
        let file = written(&desk);
        assert!(file.contains("policy: plan\n") && file.contains("shop]\n") && !file.contains("GIT_TOKEN"), "{file}");
    }

    #[test]
    fn a_policy_that_believes_hints_asks_which_servers_are_trusted() {
        for (number, effect) in
            [("2\n", "accept-reads believes what a trusted"), ("3\n", "accept-edits believes what a trusted")]
        {
            let desk = Desk::empty();
            desk.write(".mcp.json", MCP);
            let typed = [("or none [2]: ", "1,2\n"), (NUMBER, number), ("or none [2]: ", "1\n")];
            let screen = at_a_terminal(&desk, &["init"], &typed).expect(0);
            for told in [effect, "git: uvx mcp-server-git\r\n"] {
                assert!(screen.text.contains(told), "{told}: {}", screen.text);
            }
            let file = written(&desk);
            let (git, shop) = file.split_once("  shop:\n").unwrap();
            let (_, git) = git.split_once("  git:\n").unwrap();
            assert!(git.contains("    trusted: true\n"), "{file}");
            assert!(
                !shop.contains("demo-server]\n    trusted: true\n"),
                "the demo server was only the default: {file}"
            );
        }
    }

    #[test]
    fn only_a_variable_without_a_value_in_the_editors_file_is_not_set() {
        let desk = Desk::empty();
        let env = r#"{"CRM_TOKEN": "${CRM_TOKEN}", "CRM_SECRET": "", "CRM_KEY": "hunter2"}"#;
        desk.write(".mcp.json", &format!(r#"{{"mcpServers": {{"crm": {{"command": "crm", "env": {env}}}}}}}"#));
        let screen = at_a_terminal(&desk, &["init"], &[("or none [none]: ", "1\n"), (NUMBER, "6\n")]).expect(0);
        let text = screen.text.split_whitespace().collect::<Vec<_>>().join(" ");
        for told in [
            "needs CRM_SECRET, CRM_TOKEN, not set; has a value for CRM_KEY, not copied",
            "crm: CRM_KEY in place of values of the editor's file",
            "export CRM_KEY=… the value is in the file of the editor",
            "export CRM_SECRET=… the server needs it",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
    }

    #[test]
    fn an_existing_file_is_kept_unless_the_person_replaces_it() {
        let desk = Desk::empty();
        desk.write("toolgate.yaml", "log: info\n");
        let kept = at_a_terminal(&desk, &["init"], &[(NUMBER, "\n")]).expect(130);
        assert!(kept.text.contains("nothing was written"), "{}", kept.text);
        assert_eq!(written(&desk), "log: info\n");
    }

    #[test]
    fn a_flag_answers_every_question() {
        let desk = Desk::empty();
        let screen = at_a_terminal(&desk, &["init", "--policy", "plan"], &[]).expect(0);
        assert!(!screen.text.contains("Which model?"), "{}", screen.text);
    }
}
