//! Servers of editors' files as definitions of a configuration: they work, and have no secret.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use toolgate::config::{self, ImportableServer, ServerDefinition, TransportSettings};

use super::folder;

fn imported(folder: &TempDir, files: &[&str]) -> Vec<ImportableServer> {
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.path().join(file)).collect();
    config::importable_servers(&paths, Path::new(""))
        .into_iter()
        .flat_map(|servers| servers.expect("readable"))
        .collect()
}

fn definition(servers: &[ImportableServer], id: &str) -> ServerDefinition {
    let server = servers.iter().find(|server| server.id == id).expect("a server of that id");
    server.definition.clone().expect("a definition")
}

const MCP: &str = r#"{"mcpServers": {
    "github": {"command": "docker", "args": ["run", "-e", "GITHUB_TOKEN", "-e", "TEAM_KEY=hunter2", "ghcr.io/github/server"],
               "env": {"GITHUB_TOKEN": "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "LOG_LEVEL": "debug", "TEAM": "blue"}},
    "db": {"command": "uvx", "args": ["mcp-server-postgres", "postgresql://ann:hunter2@localhost/shop", "--api-key", "abc123"]},
    "remote": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer hunter2", "X-Other": "Bearer ${OTHER}"}},
    "proxied": {"command": "npx", "args": ["mcp-remote@0.1.29", "https://x.example/mcp", "--header", "Authorization: hunter2"]},
    "signed": {"url": "https://mcp.example.com/mcp?key=hunter2"},
    "my files": {"command": "./serve", "args": ["${workspaceFolder}", "${env:DATA}", "${MODE:-fast}", "${input:db-pin}"], "cwd": "sub"},
    "old": {"type": "sse", "url": "https://x.example/sse"},
    "odd": {"command": "x", "args": ["${command:pick}"]},
    "off": {"command": "x", "disabled": true}
}}"#;

#[test]
fn no_secret_of_an_editors_file_is_in_a_definition() {
    let folder = folder(&[("mcp.json", MCP)]);
    let servers = imported(&folder, &["mcp.json"]);
    for server in &servers {
        let shown = format!("{server:?}");
        for secret in ["hunter2", "ghp_", "abc123"] {
            assert!(!shown.contains(secret), "{}: {shown}", server.id);
        }
    }
    let github = definition(&servers, "github");
    // `TEAM` is no name of a secret, but its value is not clearly harmless.
    assert_eq!(github.hidden, ["TEAM_KEY", "GITHUB_TOKEN", "TEAM"]);
    assert!(
        github.yaml.contains("LOG_LEVEL: debug") && github.yaml.contains("\"TEAM_KEY=${TEAM_KEY}\""),
        "{}",
        github.yaml
    );
    assert_eq!(definition(&servers, "db").summary, "uvx mcp-server-postgres ${DB_ARGUMENT} --api-key ${DB_API_KEY}");
    let remote = definition(&servers, "remote");
    assert_eq!(
        (remote.variables, remote.hidden),
        (vec!["REMOTE_AUTHORIZATION".to_owned(), "OTHER".to_owned()], vec!["REMOTE_AUTHORIZATION".to_owned()],)
    );
    assert!(definition(&servers, "proxied").yaml.contains("\"Authorization:${PROXIED_AUTHORIZATION}\""));
    assert_eq!(definition(&servers, "signed").summary, "${SIGNED_URL}");
}

#[test]
fn servers_that_cannot_be_used_have_the_reason_and_disabled_ones_are_left_out() {
    let folder = folder(&[("mcp.json", MCP)]);
    let servers = imported(&folder, &["mcp.json"]);
    let reason = |id: &str| {
        let server = servers.iter().find(|server| server.id == id);
        server.map(|server| server.definition.clone().expect_err("a reason"))
    };
    assert!(reason("old").is_some_and(|why| why.contains("SSE")));
    assert!(reason("odd").is_some_and(|why| why.contains("`${command:pick}`")));
    assert_eq!(reason("off"), None);
}

#[test]
fn a_configuration_with_the_definitions_loads() {
    let folder = folder(&[(".cursor/mcp.json", MCP)]);
    let servers = imported(&folder, &[".cursor/mcp.json"]);
    let usable: String =
        servers.iter().filter_map(|server| Some(server.definition.as_ref().ok()?.yaml.as_str())).collect();
    let path = folder.path().join("toolgate.yaml");
    std::fs::write(&path, format!("servers:\n{usable}")).expect("a file");
    let set = |name: &str| {
        Some(if name.ends_with("_URL") { "https://set.example".into() } else { format!("value of {name}") })
    };
    let settings = config::load(Some(&path), &set).unwrap_or_else(|error| panic!("{}", error.plain()));
    let TransportSettings::Stdio(files) = &settings.servers[&"my-files".into()].transport else { panic!("a program") };
    let root = folder.path().to_string_lossy().into_owned();
    assert_eq!(files.args, [root.as_str(), "value of DATA", "value of MODE", "value of DB_PIN"]);
    assert!(
        files.command.ends_with(".cursor/./serve") || files.command.ends_with(".cursor/serve"),
        "{}",
        files.command
    );
}

#[test]
fn two_values_never_share_a_variable() {
    let server = |key: &str| format!(r#"{{"command": "x", "env": {{"API_KEY": "{key}"}}}}"#);
    let file = |id: &str, key: &str| format!(r#"{{"mcpServers": {{"{id}": {}}}}}"#, server(key));
    let folder = folder(&[("a.json", &file("a", "one")), ("b.json", &file("b", "two")), ("c.json", &file("c", "one"))]);
    let servers = imported(&folder, &["a.json", "b.json", "c.json"]);
    let hidden = |id: &str| definition(&servers, id).hidden;
    assert_eq!([hidden("a"), hidden("b"), hidden("c")], [["API_KEY"], ["B_API_KEY"], ["API_KEY"]]);
}

#[test]
fn a_file_of_settings_without_servers_has_none() {
    let folder = folder(&[("settings.json", r#"{"theme": "dark"}"#)]);
    assert!(imported(&folder, &["settings.json"]).is_empty());
}

#[test]
fn comments_of_an_editor_hide_no_server() {
    let file = "{ // mine\n  /* all */ \"servers\": { \"git\": { \"command\": \"uvx\" }, /* , */ }\n}";
    let folder = folder(&[("mcp.json", file)]);
    assert_eq!(definition(&imported(&folder, &["mcp.json"]), "git").summary, "uvx");
    let servers = config::mcp_servers_file(&folder.path().join("mcp.json"), &|_| None).expect("readable");
    assert_eq!(servers.len(), 1);
}
