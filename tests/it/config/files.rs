//! Files in foreign formats: `mcpServers` of editors, and lists of external tools.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate::config::{self, ServerSettings, StdioSettings, TransportSettings};
use toolgate::core::id::ServerId;

use super::{env, folder, rendered};

fn servers(text: &str) -> Result<BTreeMap<ServerId, ServerSettings>, String> {
    let folder = folder(&[("mcp.json", text)]);
    config::mcp_servers_file(&folder.path().join("mcp.json"), &env).map_err(|error| rendered(&error, folder.path()))
}

#[test]
fn the_shapes_of_claude_cursor_and_vs_code_are_read() {
    let claude = servers(
        "{\n\t\"mcpServers\": {\n\t\t\"git\": {\"command\": \"uvx\", \"args\": [\"mcp-server-git\"], \"env\": {\"TOKEN\": \"${GIT_TOKEN}\"}, \"autoApprove\": []},\n\t\t\"off\": {\"command\": \"x\", \"disabled\": true}\n\t}\n}",
    )
    .expect("good");
    assert_eq!(claude.keys().map(ServerId::as_str).collect::<Vec<_>>(), ["git"]);
    let TransportSettings::Stdio(StdioSettings { command, args, env, inherit_env, .. }) =
        &claude[&"git".into()].transport
    else {
        panic!("not stdio")
    };
    assert_eq!((command.as_str(), args.as_slice(), *inherit_env), ("uvx", &["mcp-server-git".to_owned()][..], false));
    assert_eq!(secrecy::ExposeSecret::expose_secret(&env["TOKEN"]), "git-very-secret");

    let code = servers(
        r#"{"inputs": [], "servers": {"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:WEB_TOKEN}"}}}}"#,
    )
    .expect("good");
    let TransportSettings::Http { url, headers, .. } = &code[&"web".into()].transport else { panic!("not http") };
    assert_eq!(url, "https://example.com/mcp");
    assert_eq!(secrecy::ExposeSecret::expose_secret(&headers["Authorization"]), "Bearer web-very-secret");
}

#[test]
fn what_cannot_be_used_of_an_mcp_servers_file_is_told() {
    let mut all = String::new();
    let entries = "{\"mcpServers\": {\n  \"a\": {\"args\": []},\n  \"b\": {\"type\": \"sse\", \"url\": \"https://x\"},\n  \"c\": {\"command\": \"${input:x}\"},\n  \"d\": {\"command\": \"x\", \"env\": {\"K\": \"${NOPE}\"}},\n  \"e\": {\"command\": \"npx -y thing\"},\n  \"good\": {\"command\": \"x\"}\n}}";
    for (id, server) in servers(entries).expect("the file is read") {
        match server.transport {
            TransportSettings::Unavailable { reason } => {
                let (before, file) = (reason.split('/').next().unwrap_or_default(), reason.split("/mcp.json").nth(1));
                let reason = file.map_or(reason.clone(), |rest| format!("{before}mcp.json{rest}"));
                all += &format!("the MCP server `{id}` {reason}\n");
            }
            TransportSettings::Stdio(StdioSettings { command, .. }) => all += &format!("{id}: {command}\n"),
            TransportSettings::Http { url, .. } => all += &format!("{id}: {url}\n"),
        }
    }
    for text in ["{\"other\": 1}", "{\"mcpServers\": "] {
        all += &servers(text).expect_err(text);
    }
    insta::assert_snapshot!(all);
}

fn header(servers: &BTreeMap<ServerId, ServerSettings>, id: &str, name: &str) -> String {
    match &servers[&ServerId::from(id)].transport {
        TransportSettings::Http { headers, .. } => secrecy::ExposeSecret::expose_secret(&headers[name]).to_owned(),
        other => panic!("no headers: {other:?}"),
    }
}

#[test]
fn an_input_without_a_value_leaves_out_its_server_alone() {
    let text = r#"{
        "inputs": [
            {"id": "docs_key", "type": "promptString", "description": "API key of the documentation server", "password": true},
            {"id": "web-token", "type": "promptString"},
            {"id": "stage", "type": "pickString", "options": ["a", "b"], "default": "b"}
        ],
        "servers": {
            "docs": {"type": "http", "url": "http://127.0.0.1:8002/mcp", "headers": {"X-API-KEY": "${input:docs_key}"}},
            "web": {"type": "http", "url": "http://127.0.0.1:8004/${input:stage}", "headers": {"X-T": "t=${input:web-token}"}},
            "plain": {"type": "http", "url": "http://127.0.0.1:8003/mcp"}
        }
    }"#;
    let read = servers(text).expect("the file is read");
    let TransportSettings::Unavailable { reason } = &read[&"docs".into()].transport else { panic!("left out") };
    assert_eq!(
        reason,
        "needs a value for the input `docs_key` (API key of the documentation server); set the environment variable \
         `DOCS_KEY` (`export DOCS_KEY=…`)"
    );
    assert_eq!(header(&read, "web", "X-T"), "t=web-very-secret");
    let TransportSettings::Http { url, .. } = &read[&"web".into()].transport else { panic!("not http") };
    assert_eq!(url, "http://127.0.0.1:8004/b");
    assert!(matches!(read[&"plain".into()].transport, TransportSettings::Http { .. }));
}

#[test]
fn plain_variables_of_gemini_are_replaced_and_never_sent_as_they_are() {
    let text = |name: &str| {
        format!(
            r#"{{"mcpServers": {{"api": {{"httpUrl": "http://127.0.0.1:8002/mcp", "timeout": 5000, "trust": false,
                "headers": {{"Authorization": "Bearer ${name}", "X-Price": "5$"}}}}}}}}"#
        )
    };
    let read = servers(&text("WEB_TOKEN")).expect("the file is read");
    assert_eq!(header(&read, "api", "Authorization"), "Bearer web-very-secret");
    assert_eq!(header(&read, "api", "X-Price"), "5$");
    let read = servers(&text("NOPE")).expect("the file is read");
    let TransportSettings::Unavailable { reason } = &read[&"api".into()].transport else { panic!("left out") };
    assert!(reason.contains("the environment variable `NOPE` is not set"), "{reason}");
}

#[test]
fn external_tools_are_read_from_lists_and_from_openais_functions() {
    let ours =
        r#"[{"name": "a", "description": "A.", "input_schema": {"type": "object", "required": ["x"]}, "priority": 3}]"#;
    let yaml = "tools:\n  - name: b\n    resultSchema: {}\n";
    let openai = r#"{"tools": [
        {"type": "function", "function": {"name": "c", "description": null, "parameters": {"type": "object"}, "strict": true}},
        {"type": "function", "name": "d", "parameters": {"type": "object"}, "strict": false}]}"#;
    let folder = folder(&[
        ("ours.json", ours),
        ("ours.yaml", yaml.replace("resultSchema", "outputSchema").as_str()),
        ("openai.json", openai),
    ]);
    let read = |name: &str| {
        let tools = config::external_tools_file(&folder.path().join(name)).expect(name);
        serde_json::to_value(tools).expect("JSON")
    };
    assert_eq!(
        read("ours.json"),
        json!([{"name": "a", "description": "A.", "input_schema": {"type": "object", "required": ["x"]}, "priority": 3}])
    );
    let any = json!({"type": "object"});
    assert_eq!(
        read("ours.yaml"),
        json!([{"name": "b", "description": "", "input_schema": any, "result_schema": {}, "priority": 0}])
    );
    assert_eq!(
        read("openai.json"),
        json!([{"name": "c", "description": "", "input_schema": any, "priority": 0},
               {"name": "d", "description": "", "input_schema": any, "priority": 0}])
    );
}

#[test]
fn external_tools_that_cannot_be_read_are_told_with_their_line() {
    let folder = folder(&[(
        "tools.json",
        "[\n  {\"name\": \"a\"},\n  {\"name\": \"a\"},\n  {\"name\": \"b\", \"input_schema\": true},\n  {\"title\": \"c\"}\n]",
    )]);
    let error = config::external_tools_file(&folder.path().join("tools.json")).expect_err("faulty");
    insta::assert_snapshot!(rendered(&error, folder.path()));
}
