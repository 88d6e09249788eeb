//! The `mcpServers` JSON files of Claude, Cursor, VS Code and other clients.
//!
//! The parser is tolerant where [`super::load`] is strict: it ignores unknown keys, which belong to one editor or
//! another.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toolgate_core::id::ServerId;

use super::error::{ConfigError, Fault};
use super::resolve::{http_transport, transport_of_stdio};
use super::resolver::Resolver;
use super::settings::{ServerSettings, TransportSettings};
use super::spanned::{Located, Text};
use super::written::{Http, Stdio};
use super::yaml;

#[derive(Deserialize)]
struct WrittenFile {
    #[serde(alias = "servers")]
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Located<WrittenServer>>,
}

#[derive(Deserialize)]
struct WrittenServer {
    r#type: Option<String>,
    command: Option<Text>,
    args: Option<Vec<Text>>,
    env: Option<BTreeMap<String, Text>>,
    cwd: Option<Text>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<Text>,
    headers: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    disabled: bool,
}

/// Reads such a file: `mcpServers`, or VS Code's `servers`. Expands `${VAR}`, `${VAR:-default}` and `${env:VAR}`, and
/// skips disabled servers. Relative paths are relative to the folder of the file.
pub fn mcp_servers_file(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<ServerId, ServerSettings>, ConfigError> {
    let source = yaml::read(path)?;
    let written: WrittenFile = yaml::parse_foreign(&source)?;
    let mut scope = Resolver::new(source, path.parent().unwrap_or(Path::new("")), env);
    let mut servers = BTreeMap::new();
    for (name, server) in written.servers {
        if server.value().disabled {
            continue;
        }
        let transport = scope.about(format!("server `{name}`"), |scope| transport(&name, &server, scope));
        if let Some(transport) = transport {
            servers.insert(ServerId::from(name), ServerSettings::new(transport));
        }
    }
    scope.finish(servers)
}

fn transport(name: &str, placed: &Located<WrittenServer>, scope: &mut Resolver<'_>) -> Option<TransportSettings> {
    let written = placed.value();
    if written.r#type.as_deref() == Some("sse") {
        let fault = Fault::new(format!("server `{name}` uses the old SSE transport, which toolgate does not support"));
        scope.fault(
            fault.with_remedy("give the server's streamable HTTP URL, with `\"type\": \"http\"`"),
            placed.place(),
        );
        return None;
    }
    match (&written.command, &written.url) {
        (Some(command), _) => {
            let stdio = Stdio {
                command: command.clone(),
                args: written.args.clone(),
                env: written.env.clone(),
                inherit_env: None,
                cwd: written.cwd.clone(),
            };
            Some(transport_of_stdio(&stdio, scope))
        }
        (None, Some(url)) => {
            Some(http_transport(&Http { url: url.clone(), headers: written.headers.clone(), auth: None }, scope))
        }
        (None, None) => {
            let fault = Fault::new(format!("server `{name}` has neither `command` nor `url`"));
            scope.fault(fault.with_remedy("add one of the two"), placed.place());
            None
        }
    }
}
