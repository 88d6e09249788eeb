//! Import of MCP servers from the files of editors into a configuration.
//!
//! A definition never has a value that may be a secret: a reference to an environment variable stands in its place. What
//! is not clearly harmless counts as a secret.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toolgate_core::redact::is_telling;

use super::error::ConfigError;
use super::mcp_file::WrittenServer;
use super::mcp_inputs::{Inputs, WrittenInput, variable_of};
use super::mcp_values::{has_secret, is_harmless, is_secret_url, literal_parts, references};
use super::spanned::{Located, Text};
use super::yaml;

#[derive(Deserialize)]
struct ImportedFile {
    /// A file of settings may have no servers.
    #[serde(alias = "servers", rename = "mcpServers", default)]
    servers: BTreeMap<String, Located<WrittenServer>>,
    inputs: Option<Vec<WrittenInput>>,
    /// The servers that Claude Code has for one folder (`claude mcp add`, scope `local`), in `~/.claude.json`.
    #[serde(default)]
    projects: BTreeMap<PathBuf, Project>,
}

#[derive(Deserialize)]
struct Project {
    #[serde(rename = "mcpServers", default)]
    servers: BTreeMap<String, Located<WrittenServer>>,
}

/// A server of an editor's file.
#[derive(Clone, Debug)]
pub struct ImportableServer {
    /// Its id, as a configuration may have it.
    pub id: String,
    /// Its definition, or why it cannot be used.
    pub definition: Result<ServerDefinition, String>,
}

/// A server as a configuration defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDefinition {
    /// The lines below `servers:`.
    pub yaml: String,
    /// Its command or its address in one line.
    pub summary: String,
    /// The program that starts it; `None` for an address, and where a variable names the program.
    pub program: Option<String>,
    /// The environment variables that it refers to and that have no default.
    pub variables: Vec<String>,
    /// Those of them that stand for a value of the editor's file.
    pub hidden: Vec<String>,
}

impl ServerDefinition {
    /// Whether it is the demo server of toolgate, as `PATH` finds it.
    pub fn is_demo(&self) -> bool {
        self.summary == "toolgate demo-server"
    }

    /// The lines with the server as a trusted one.
    pub fn trusted_yaml(&self) -> String {
        format!("{}    trusted: true\n", self.yaml)
    }
}

/// Reads the servers of such files, without disabled ones. Of the servers that a file has for one folder, only those for
/// `project` and the folders above it, the nearest first, and before those for every folder. Files can share a variable
/// only for the same value.
pub fn importable_servers(paths: &[PathBuf], project: &Path) -> Vec<Result<Vec<ImportableServer>, ConfigError>> {
    let mut known = BTreeMap::new();
    paths.iter().map(|path| servers_of(path, project, &mut known)).collect()
}

/// The values of variables: that of an editor's file, or `None` for a reference.
type KnownValues = BTreeMap<String, Option<String>>;

fn servers_of(path: &Path, project: &Path, known: &mut KnownValues) -> Result<Vec<ImportableServer>, ConfigError> {
    let source = yaml::read_foreign(path)?;
    let written: ImportedFile = yaml::parse_foreign(&source)?;
    let has_plain_variables = written.servers.values().any(|server| server.value().http_url.is_some());
    let is_set = |_: &str| Some("set".to_owned());
    let inputs = Inputs::new(written.inputs.unwrap_or_default(), has_plain_variables, &is_set);
    let of_folders = project.ancestors().filter_map(|folder| Some((folder, &written.projects.get(folder)?.servers)));
    let of_file = (path.parent().unwrap_or(Path::new("")), &written.servers);
    let mut imported = Vec::<ImportableServer>::new();
    for (folder, servers) in of_folders.chain([of_file]) {
        for (name, server) in servers.iter().filter(|(_, server)| !server.value().disabled) {
            let id = id_of(name);
            if imported.iter().any(|nearer| nearer.id == id) {
                continue;
            }
            let (variables, hidden) = (Vec::new(), Vec::new());
            let mut import = Import { id: &id, folder, inputs: &inputs, known, variables, hidden };
            let definition = import.definition(server.value());
            imported.push(ImportableServer { id, definition });
        }
    }
    Ok(imported)
}

/// The name of an editor with the letters that an id may have.
fn id_of(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let id: String = name.chars().map(safe).take(64).collect();
    if id.is_empty() { "server".into() } else { id }
}

/// The import of one server.
struct Import<'a> {
    id: &'a str,
    /// The folder of the editor's file, or the one that the server is for.
    folder: &'a Path,
    inputs: &'a Inputs<'a>,
    known: &'a mut KnownValues,
    variables: Vec<String>,
    hidden: Vec<String>,
}

impl Import<'_> {
    fn definition(&mut self, written: &WrittenServer) -> Result<ServerDefinition, String> {
        if written.r#type.as_deref() == Some("sse") {
            return Err("it uses the old SSE transport, which toolgate does not support".into());
        }
        let (lines, summary, program) = match (&written.command, written.http_url.as_ref().or(written.url.as_ref())) {
            (Some(command), _) => {
                let program = self.with_references(command)?;
                let program = self.program(program);
                let (lines, summary) = self.stdio(&program, written)?;
                (lines, summary, Some(program).filter(|program| references(program).is_empty()))
            }
            (None, Some(url)) => {
                let (lines, summary) = self.http(url, written)?;
                (lines, summary, None)
            }
            (None, None) => return Err("it has neither `command` nor `url`".into()),
        };
        let yaml = format!("  {}:\n{}", quoted(self.id), lines.concat());
        let (variables, hidden) = (std::mem::take(&mut self.variables), std::mem::take(&mut self.hidden));
        Ok(ServerDefinition { yaml, summary, program, variables, hidden })
    }

    fn stdio(&mut self, command: &str, written: &WrittenServer) -> Result<(Vec<String>, String), String> {
        let args = self.arguments(written.args.as_deref().unwrap_or_default())?;
        let summary = [command].into_iter().chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        let mut lines = vec!["    stdio:\n".to_owned(), format!("      command: {}\n", quoted(command))];
        if !args.is_empty() {
            let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            lines.push(format!("      args: [{}]\n", args.join(", ")));
        }
        lines.extend(self.named("env", written.env.as_ref())?);
        if let Some(cwd) = &written.cwd {
            let cwd = self.with_references(cwd)?;
            lines.push(format!("      cwd: {}\n", quoted(&self.beside_the_file(&cwd))));
        }
        Ok((lines, summary))
    }

    fn http(&mut self, url: &Text, written: &WrittenServer) -> Result<(Vec<String>, String), String> {
        let mut url = self.with_references(url)?;
        if is_secret_url(&url) {
            url = self.hidden_value("url", &url);
        }
        let mut lines = vec!["    http:\n".to_owned(), format!("      url: {}\n", quoted(&url))];
        lines.extend(self.named("headers", written.headers.as_ref())?);
        Ok((lines, url))
    }

    /// The variables or headers of a server.
    fn named(&mut self, key: &str, named: Option<&BTreeMap<String, Text>>) -> Result<Vec<String>, String> {
        let Some(named) = named.filter(|named| !named.is_empty()) else { return Ok(Vec::new()) };
        let mut lines = vec![format!("      {key}:\n")];
        for (name, value) in named {
            let value = self.with_references(value)?;
            let has_reference = !references(&value).is_empty();
            let value = match has_reference && !literal_parts(&value).iter().any(|part| has_secret(part)) {
                true => value,
                false if is_harmless(name, &value) => value,
                false => self.hidden_value(name, &value),
            };
            lines.push(format!("        {}: {}\n", quoted(name), quoted(&value)));
        }
        Ok(lines)
    }

    fn arguments(&mut self, written: &[Text]) -> Result<Vec<String>, String> {
        let mut args: Vec<String> = Vec::new();
        for arg in written {
            let arg = self.with_references(arg)?;
            let flag = args.last().filter(|last| last.starts_with('-') && is_telling(last) && !last.contains('='));
            let flag = flag.map(|flag| flag.trim_start_matches('-').to_owned()).filter(|_| !arg.starts_with('-'));
            let named = arg.split_once(['=', ':']).filter(|(name, _)| is_telling(name) && !name.contains([' ', '/']));
            let is_literal = |text: &str| literal_parts(text).iter().any(|part| !is_scheme(part));
            let arg = match (flag, named) {
                (Some(flag), _) if is_literal(&arg) => self.hidden_value(&flag, &arg),
                (_, Some((name, value))) if is_literal(value) => {
                    let separator = arg.get(name.len()..=name.len()).unwrap_or_default().to_owned();
                    let variable = self.hidden_value(name.trim_start_matches('-'), value);
                    format!("{name}{separator}{variable}")
                }
                _ if literal_parts(&arg).iter().any(|part| has_secret(part)) => self.hidden_value("argument", &arg),
                _ => arg,
            };
            args.push(arg);
        }
        Ok(args)
    }

    /// The text with the variables of toolgate in place of those of editors.
    fn with_references(&mut self, text: &Text) -> Result<String, String> {
        let text = self.inputs.rewritten(text, &mut Vec::new()).value().clone();
        let mut rewritten = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            rewritten.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                return Err("it has a `${` without a `}`".into());
            };
            rest = after;
            let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, value)| (name, Some(value)));
            let name = name.strip_prefix("env:").unwrap_or(name);
            match name {
                "workspaceFolder" => rewritten.push_str(&self.project()),
                "userHome" => rewritten.push_str("${HOME}"),
                name if !is_variable(name) => {
                    return Err(format!("it uses `${{{inside}}}`, which toolgate does not know"));
                }
                name => match default.filter(|default| is_harmless(name, default)) {
                    Some(default) => rewritten.push_str(&format!("${{{name}:-{default}}}")),
                    None => {
                        self.known.entry(name.to_owned()).or_insert(None);
                        self.refer_to(name);
                        rewritten.push_str(&format!("${{{name}}}"));
                    }
                },
            }
        }
        rewritten.push_str(rest);
        Ok(rewritten)
    }

    /// A reference to a variable in place of a value, and not the same variable as for another value.
    fn hidden_value(&mut self, name: &str, value: &str) -> String {
        let own = variable_of(&format!("{}_{name}", self.id));
        let is_plain = is_variable(name) && name.len() > 3 && name.chars().all(|c| !c.is_ascii_lowercase());
        let first = if is_plain { name.to_owned() } else { own.clone() };
        let numbered = (2..).map(|number| format!("{own}_{number}"));
        let is_empty = value.is_empty();
        let value = Some(value.to_owned());
        let is_free = |name: &String| self.known.get(name).is_none_or(|known| *known == value);
        let variable = [first, own.clone()].into_iter().chain(numbered).find(is_free).unwrap_or(own);
        self.known.insert(variable.clone(), value);
        self.refer_to(&variable);
        // An empty value is one that is still to be filled in.
        if !is_empty && !self.hidden.contains(&variable) {
            self.hidden.push(variable.clone());
        }
        format!("${{{variable}}}")
    }

    fn refer_to(&mut self, variable: &str) {
        if !self.variables.iter().any(|known| known == variable) {
            self.variables.push(variable.to_owned());
        }
    }

    /// A program: a name on the PATH, or a path from the folder of the file, as when an editor's file is used directly.
    fn program(&self, command: String) -> String {
        if Path::new(&command).components().count() > 1 { self.beside_the_file(&command) } else { command }
    }

    fn beside_the_file(&self, path: &str) -> String {
        if path.starts_with("${") {
            return path.to_owned();
        }
        absolute(&self.folder.join(path))
    }

    /// The folder of the project: above the folder of the editor.
    fn project(&self) -> String {
        let folder = self.folder;
        let is_of_editor = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        absolute(if is_of_editor { folder.parent().unwrap_or(folder) } else { folder })
    }
}

fn absolute(path: &Path) -> String {
    // The empty path is the current folder.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

/// `Bearer` and the like, before a reference.
fn is_scheme(part: &str) -> bool {
    matches!(part.trim(), "" | "Bearer" | "Basic" | "Token" | "token" | "bearer")
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Text in double quotes, which JSON and YAML write alike; a plain word without.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    };
    match text {
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" => format!("\"{text}\""),
        text if is_plain(text) => text.to_owned(),
        text => serde_json::Value::from(text).to_string(),
    }
}
