//! The `mcpServers` JSON files of Claude, Cursor, VS Code, Gemini CLI and other clients.
//!
//! The parser is tolerant where [`super::load`] is strict: it ignores unknown keys, which belong to one editor or
//! another, and an entry that cannot be used is left out alone, with the reason.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toolgate_core::id::ServerId;

use super::error::{ConfigError, Fault, Source};
use super::mcp_inputs::{Inputs, WrittenInput};
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
    /// The values that VS Code asks its user for.
    inputs: Option<Vec<WrittenInput>>,
}

#[derive(Clone, Deserialize)]
pub(super) struct WrittenServer {
    pub(super) r#type: Option<String>,
    pub(super) command: Option<Text>,
    pub(super) args: Option<Vec<Text>>,
    pub(super) env: Option<BTreeMap<String, Text>>,
    pub(super) cwd: Option<Text>,
    #[serde(alias = "serverUrl")]
    pub(super) url: Option<Text>,
    /// The address in the files of Gemini CLI, which also write `$NAME` for a variable.
    #[serde(rename = "httpUrl")]
    pub(super) http_url: Option<Text>,
    pub(super) headers: Option<BTreeMap<String, Text>>,
    #[serde(default)]
    pub(super) disabled: bool,
}

/// Reads such a file: `mcpServers`, or VS Code's `servers`. Expands `${VAR}`, `${VAR:-default}`, `${env:VAR}` and
/// `${input:ID}`, and `$VAR` in files with `httpUrl`. Skips disabled servers. A server that cannot be used has the
/// transport [`TransportSettings::Unavailable`] with the reason. Relative paths are relative to the folder of the file.
pub fn mcp_servers_file(
    path: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<BTreeMap<ServerId, ServerSettings>, ConfigError> {
    let source = yaml::read_foreign(path)?;
    let written: WrittenFile = yaml::parse_foreign(&source)?;
    let has_plain_variables = written.servers.values().any(|server| server.value().http_url.is_some());
    let inputs = Inputs::new(written.inputs.unwrap_or_default(), has_plain_variables, env);
    let folder = path.parent().unwrap_or(Path::new(""));
    let used = written.servers.into_iter().filter(|(_, server)| !server.value().disabled);
    let settings = used.map(|(name, server)| {
        let transport = usable_transport(&server, &source, folder, &inputs, env)
            .unwrap_or_else(|reason| TransportSettings::Unavailable { reason });
        (ServerId::from(name), ServerSettings::new(transport))
    });
    Ok(settings.collect())
}

/// The transport of a server. The error completes the sentence "the MCP server `x` ...".
fn usable_transport(
    placed: &Located<WrittenServer>,
    source: &Source,
    folder: &Path,
    inputs: &Inputs<'_>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<TransportSettings, String> {
    let mut missing = Vec::new();
    let written = with_texts(placed.value(), &mut |text| inputs.rewritten(text, &mut missing));
    if let Some(reason) = missing.into_iter().next() {
        return Err(reason);
    }
    let mut scope = Resolver::new(source.clone(), folder, env);
    let transport = transport(&placed.with(written), &mut scope);
    match (scope.finish(transport), source.name()) {
        (Ok(Some(transport)), _) => Ok(transport),
        (Ok(None), file) => Err(format!("cannot be used: `{file}` does not say how")),
        (Err(error), _) => Err(format!("cannot be used: {}", error.plain())),
    }
}

/// The server with all its texts changed.
fn with_texts(written: &WrittenServer, change: &mut dyn FnMut(&Text) -> Text) -> WrittenServer {
    let mut changed = written.clone();
    let single = [&mut changed.command, &mut changed.cwd, &mut changed.url, &mut changed.http_url];
    let single = single.into_iter().flatten();
    let listed = changed.args.iter_mut().flatten();
    let named = changed.env.iter_mut().chain(changed.headers.iter_mut()).flat_map(|named| named.values_mut());
    for text in single.chain(listed).chain(named) {
        *text = change(text);
    }
    changed
}

fn transport(placed: &Located<WrittenServer>, scope: &mut Resolver<'_>) -> Option<TransportSettings> {
    let written = placed.value();
    if written.r#type.as_deref() == Some("sse") {
        let fault = Fault::new("it uses the old SSE transport, which toolgate does not support");
        scope.fault(
            fault.with_remedy("give the server's streamable HTTP URL, with `\"type\": \"http\"`"),
            placed.place(),
        );
        return None;
    }
    match (&written.command, written.http_url.as_ref().or(written.url.as_ref())) {
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
            let fault = Fault::new("it has neither `command` nor `url`");
            scope.fault(fault.with_remedy("add one of the two"), placed.place());
            None
        }
    }
}
