//! Files in foreign formats: `mcpServers` of editors, and lists of external tools.

use std::collections::BTreeMap;

use serde_json::json;
use toolgate::config::{self, ServerSettings, TransportSettings};
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
    let TransportSettings::Stdio { command, args, env, inherit_env, .. } = &claude[&"git".into()].transport else {
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
    for text in [
        "{\"mcpServers\": {\n  \"a\": {\"args\": []},\n  \"b\": {\"type\": \"sse\", \"url\": \"https://x\"},\n  \"c\": {\"command\": \"${input:x}\"},\n  \"d\": {\"command\": \"x\", \"env\": {\"K\": \"${NOPE}\"}}\n}}",
        "{\"other\": 1}",
        "{\"mcpServers\": ",
    ] {
        all += &servers(text).expect_err(text);
    }
    insta::assert_snapshot!(all);
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
