//! `toolgate config check` and `toolgate run`: settings that have no effect.

use super::desk::Desk;

const CONVERSATION: &str = "turns: [{ say: Hello. }]";

const CONFIGURATION: &str = "
store: { memory: {} }
models: { main: { scripted: { file: conversation.yaml } } }
servers:
  git: { stdio: { command: no-such-program } }
agents:
  clerk:
    model: main
    servers: [git]
    policy: careful
    tools: { deny: [git_push, mcp_git_push, \"mcp_*_delete\"] }
policies:
  careful: careful.yaml
";

const CAREFUL: &str = "
name: careful
default: allow
rules:
  - id: reading
    match: { read_only: true }
    verdict: allow
    reason: Reading changes nothing.
  - id: no-push
    match: { tool: git_push }
    verdict: deny
    reason: People push.
  - id: production
    match: { server: prod }
    verdict: ask
    reason: It is the production.
  - id: staging
    match: { server: stagign }
    verdict: allow
    reason: Staging is for trials.
";

fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", CONFIGURATION);
    desk.write("careful.yaml", CAREFUL);
    desk.write("conversation.yaml", CONVERSATION);
    desk
}

#[test]
fn config_check_names_what_has_no_effect_and_fails_if_it_is_strict() {
    let checked = desk().toolgate(&["config", "check"]).expect(0);
    for expected in [
        "server `git`: the program `no-such-program` cannot be started: it is not on PATH",
        "agent `clerk`: `tools.deny: git_push` matches no tool",
        "agent `clerk`: rule `reading` of policy `careful` allows nothing, because hints count only from a server with",
        "rule `no-push` of policy `careful` matches no tool (`tool: git_push`)",
        "rule `production` of policy `careful` matches no tool (`server: prod`)",
        "rule `staging` of policy `careful` allows nothing: no tool has the name (`server: stagign`): correct the name, or",
    ] {
        assert!(checked.err.contains(expected), "{expected}\n{}", checked.err);
    }
    assert_eq!(checked.err.matches("warning:").count(), 6, "{}", checked.err);
    desk().toolgate(&["config", "check", "--strict"]).expect(1);
}

#[test]
fn config_check_names_what_policy_check_warns_of() {
    let desk = desk();
    let rule = "{ id: git, match: { tool: 'mcp_git_*' }, when: \"args.command.startsWith('git diff')\", verdict: allow, reason: Reads. }";
    desk.write("careful.yaml", &format!("name: careful\ndefault: ask\nrules: [{rule}]\n"));
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    let warned = desk.toolgate(&["policy", "check", "careful.yaml"]).expect(0).err;
    let expected = warned.split_once("rule `git`: ").unwrap().1.lines().next().unwrap();
    assert!(checked.err.contains(&format!("policy `careful`: rule `git`: {expected}")), "{}", checked.err);
}

#[test]
fn config_check_names_an_external_tool_that_runs_leave_out() {
    let desk = desk();
    let tools =
        "external_tools: [{ name: refund, input_schema: { type: object, properties: { cents: { type: numbr } } } }]";
    desk.write(
        "toolgate.yaml",
        &CONFIGURATION.replace("policy: careful\n", &format!("policy: careful\n    {tools}\n")),
    );
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    let expected = "agent `clerk`: runs leave out its external tool `refund`: its input schema is broken at `/properties/cents/type`";
    assert!(checked.err.contains(expected), "{}", checked.err);
}

#[test]
fn config_check_names_a_model_without_the_key_that_its_provider_requires() {
    let desk = desk();
    for (settings, is_named) in [
        ("model: m", true),
        ("model: m, api_key: k", false),
        ("model: m, headers: { x-api-key: k }", false),
        ("model: m, base_url: 'http://127.0.0.1:1'", false),
    ] {
        let main = format!("main: {{ anthropic: {{ {settings} }} }}");
        desk.write("toolgate.yaml", &CONFIGURATION.replace("main: { scripted: { file: conversation.yaml } }", &main));
        let checked = desk.toolgate(&["config", "check"]).expect(0);
        let expected =
            "model `main`: api.anthropic.com refuses requests without a key; set `api_key: \"${ANTHROPIC_API_KEY}\"`";
        assert_eq!(checked.err.contains(expected), is_named, "{settings}\n{}", checked.err);
    }
}

#[test]
fn config_check_names_a_script_that_does_not_exist() {
    let desk = desk();
    desk.write("tools.py", "");
    for (args, missing) in
        [("[gone.py, --port, '1']", Some("gone.py")), ("[run, gone.js]", Some("gone.js")), ("[tools.py]", None)]
    {
        let named = format!("command: sh, args: {args}");
        desk.write("toolgate.yaml", &CONFIGURATION.replace("command: no-such-program", &named));
        let checked = desk.toolgate(&["config", "check"]).expect(0);
        let expected =
            missing.map(|file| format!("server `git`: the program `{file}` cannot be started: there is no such file"));
        assert_eq!(checked.err.contains("cannot be started"), expected.is_some(), "{args}\n{}", checked.err);
        assert!(checked.err.contains(&expected.unwrap_or_default()), "{args}\n{}", checked.err);
    }
}

#[test]
fn config_check_names_a_server_that_no_agent_uses() {
    let desk = desk();
    desk.write("toolgate.yaml", &CONFIGURATION.replace("    servers: [git]\n", ""));
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    assert!(
        checked.err.contains("server `git`: no agent uses it; name it in the `servers:` of an agent"),
        "{}",
        checked.err
    );
}

#[test]
fn a_run_without_a_terminal_names_the_servers_that_it_waits_for() {
    let desk = desk();
    let silent = "start_timeout_s: 7, stdio: { command: sleep, args: ['60'] }";
    desk.write("toolgate.yaml", &CONFIGURATION.replace("stdio: { command: no-such-program }", silent));
    let ran = desk.toolgate(&["run", "Hello"]).expect(0);
    assert!(ran.err.contains("waiting for servers that are not ready: git"), "{}", ran.err);
}

#[test]
fn config_check_names_what_has_no_effect_in_a_permission_mode() {
    let desk = desk();
    desk.write("toolgate.yaml", &CONFIGURATION.replace("policy: careful", "modes: [careful]"));
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    assert!(checked.err.contains("rule `reading` of policy `careful` allows nothing"), "{}", checked.err);
}

#[test]
fn config_check_shows_where_a_missing_script_is_named() {
    let desk = desk();
    desk.write("toolgate.yaml", &CONFIGURATION.replace("conversation.yaml", "none.yaml"));
    let checked = desk.toolgate(&["config", "check"]).expect(2).err;
    assert!(checked.contains("there is no file `none.yaml`") && checked.contains("[toolgate.yaml:"), "{checked}");
}

#[test]
fn config_check_is_not_ok_without_a_model() {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", "models: { auto: { environment: {} } }\nagents: { clerk: { model: auto } }\n");
    let checked = desk.toolgate(&["config", "check"]).expect(2);
    assert!(checked.out.starts_with("not ok") && checked.err.contains("no model is configured"), "{}", checked.err);
}

#[test]
fn a_run_names_rules_that_allow_nothing() {
    let desk = desk();
    let ended = desk.toolgate(&["run", "Hello?"]).expect(0);
    assert_eq!(ended.err.matches("rule `reading` of policy `careful` allows nothing").count(), 1, "{}", ended.err);
}

#[test]
fn a_variable_without_braces_is_named_with_its_place() {
    let desk = desk();
    let servers = "servers:
  git: { stdio: { command: sh, args: [-c, \"exec git $MODE\", --token=$GIT_TOKEN], env: { KEY: $API_KEY } } }
policies: { own: { default: ask, rules: [{ id: shop, match: { server: git, tool_name: \"$SHOP\" }, verdict: ask, reason: Costs $MONEY. }] } }
";
    let rest = "models: { main: { scripted: { file: conversation.yaml } } }\nagents: { clerk: { servers: [git], policy: own } }\n";
    desk.write("toolgate.yaml", &format!("{servers}{rest}"));
    let checked = desk.toolgate(&["config", "check"]).expect(0);
    for expected in [
        "toolgate.yaml:2:61: `$GIT_TOKEN` is text, because variables have braces (write `${GIT_TOKEN}`)",
        "`$API_KEY` is text, because variables have braces (write `${API_KEY}`)",
    ] {
        assert!(checked.err.contains(expected), "{}", checked.err);
    }
    assert_eq!(checked.err.matches("variables have braces").count(), 2, "{}", checked.err);
}
