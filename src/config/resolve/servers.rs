//! Resolves MCP servers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use toolgate_core::id::ServerId;
use toolgate_core::tool::result::ResultCheck;
use toolgate_core::tool::{Undo, Validation};

use super::auth;
use toolgate_settings::mcp::{PinnedValue, ProtocolVersionChoice, Recheck, Start, StdioSettings};

use crate::error::Fault;
use crate::mask::masked;
use crate::resolver::{Kind, Resolver};
use crate::settings::{ServerSettings, TraceContext, TransportSettings};
use crate::spanned::{Located, Text};
use crate::written::{Http, Server, ServerTool, Stdio, ToolUndo};

const START_SECONDS: u64 = 60;
const CALL_SECONDS: u64 = 60;
const TOTAL_SECONDS: u64 = 600;
const CONCURRENCY: usize = 16;
const TOOLS: usize = 10_000;

/// Every server.
pub(super) fn resolve(
    written: Option<&BTreeMap<String, Located<Server>>>,
    scope: &mut Resolver<'_>,
) -> BTreeMap<ServerId, ServerSettings> {
    let mut servers = BTreeMap::new();
    for (id, server) in written.into_iter().flatten() {
        scope.name("a server", id, server.place());
        let settings = scope.about(Kind::Server, id, |scope| settings(server, scope));
        servers.insert(ServerId::from(id.as_str()), settings);
    }
    servers
}

fn settings(placed: &Located<Server>, scope: &mut Resolver<'_>) -> ServerSettings {
    let written = placed.value();
    let transport = match (&written.stdio, &written.http) {
        (Some(stdio), None) => transport_of_stdio(stdio, scope),
        (None, Some(http)) => http_transport(http, scope),
        (None, None) => {
            let fault = Fault::new(format!("{} has neither `stdio` nor `http`", scope.subject()));
            scope.fault(fault.with_remedy("write `stdio: { command: … }` or `http: { url: … }`"), placed.place());
            unusable()
        }
        (Some(_), Some(_)) => {
            let fault = Fault::new(format!("{} has both `stdio` and `http`", scope.subject()));
            scope.fault(fault.with_remedy("make two servers of it, or remove one of the two"), placed.place());
            unusable()
        }
    };
    ServerSettings {
        trusted: written.trusted.unwrap_or(false),
        required: written.required.unwrap_or(false),
        start: written.start.unwrap_or(Start::Lazy),
        start_timeout: scope.seconds(written.start_timeout_s.as_ref(), START_SECONDS),
        call_timeout: scope.seconds(written.call_timeout_s.as_ref(), CALL_SECONDS),
        total_timeout: scope.seconds(written.total_timeout_s.as_ref(), TOTAL_SECONDS),
        max_concurrency: scope.at_least_one(written.max_concurrency.as_ref(), CONCURRENCY),
        max_tools: scope.at_least_one(written.max_tools.as_ref(), TOOLS),
        protocol_version: written.protocol_version.unwrap_or_default(),
        elicitation: written.elicitation.unwrap_or(true),
        recheck: written.recheck_tools.unwrap_or_default(),
        elicitation_hold: written.elicitation_hold_s.map(Duration::from_secs),
        max_result_bytes: written.max_result_bytes.as_ref().map(|bytes| scope.result_bytes(bytes)),
        check_results: written.check_results.unwrap_or_default(),
        validation: validation(written, scope),
        trace_context: written.trace_context.unwrap_or(TraceContext::All),
        pinned: written.tools.iter().flatten().map(|(tool, written)| (tool.clone(), pinned(written, scope))).collect(),
        undos: undos(written, scope),
        ..ServerSettings::new(transport)
    }
}

/// In place of a transport with an error: agents may refer to the server.
fn unusable() -> TransportSettings {
    TransportSettings::Unavailable { reason: String::new() }
}

fn validation(written: &Server, scope: &mut Resolver<'_>) -> Validation {
    let Some(validation) = &written.validation else { return Validation::default() };
    if *validation.value() == Validation::Advisory && written.check_results == Some(ResultCheck::Fail) {
        let fault = Fault::new("`validation: advisory` contradicts `check_results: fail`");
        scope.fault(
            fault.with_remedy("remove one of the two; `check_results: warn` reports a result"),
            validation.place(),
        );
    }
    *validation.value()
}

/// The arguments that the operator sets for a tool.
fn pinned(written: &ServerTool, scope: &mut Resolver<'_>) -> BTreeMap<String, PinnedValue> {
    let arguments = written.arguments.iter().flatten();
    arguments.filter_map(|(name, value)| Some((name.clone(), pinned_value(value, scope)?))).collect()
}

fn undos(written: &Server, scope: &mut Resolver<'_>) -> BTreeMap<String, Undo> {
    let written = written.tools.iter().flatten().filter_map(|(name, tool)| Some((name.clone(), tool.undo.as_ref()?)));
    written.map(|(name, written)| (name, undo(written, scope))).collect()
}

fn undo(written: &ToolUndo, scope: &mut Resolver<'_>) -> Undo {
    let arguments = written.arguments.iter().flatten().map(|(name, pointer)| {
        let place = pointer.place();
        let pointer = scope.text(pointer);
        let root = pointer.split('/').nth(1).filter(|_| pointer.starts_with('/'));
        if !matches!(root, Some("arguments" | "result")) {
            let fault = Fault::new(format!("`{pointer}` points to no part of the call that is undone"));
            let remedy = "write a JSON pointer that begins with `/arguments` or `/result`, such as `/result/id`";
            scope.fault(fault.with_remedy(remedy), place);
        }
        (name.clone(), pointer)
    });
    let arguments = arguments.collect();
    Undo { tool: scope.text(&written.tool), arguments }
}

fn pinned_value(written: &Located<Value>, scope: &mut Resolver<'_>) -> Option<PinnedValue> {
    let Value::Object(members) = written.value() else {
        return Some(PinnedValue::Plain(scope.json(written.value(), written.place())));
    };
    let mut members = members.iter();
    match (members.next().map(|(name, value)| (name.as_str(), value)), members.next()) {
        (Some(("secret", Value::String(secret))), None) => {
            Some(PinnedValue::Secret(scope.secret(&written.with(secret.clone()))))
        }
        (Some(("value", value)), None) => Some(PinnedValue::Plain(scope.json(value, written.place()))),
        _ => {
            let fault = Fault::new("an object here is neither `{ secret: … }` nor `{ value: … }`");
            scope
                .fault(fault.with_remedy("write an argument that is an object as `{ value: { … } }`"), written.place());
            None
        }
    }
}

/// A stdio server. A relative command is relative to the configuration's folder.
pub(crate) fn transport_of_stdio(written: &Stdio, scope: &mut Resolver<'_>) -> TransportSettings {
    TransportSettings::Stdio(StdioSettings {
        command: command(&written.command, scope),
        args: written.args.iter().flatten().map(|arg| scope.word(arg)).collect(),
        env: scope.secrets(written.env.as_ref()),
        inherit_env: written.inherit_env.unwrap_or(false),
        cwd: written.cwd.as_ref().map(|cwd| scope.path(cwd)),
    })
}

fn command(written: &Text, scope: &mut Resolver<'_>) -> String {
    let command = scope.text(written);
    if command.is_empty() {
        scope.fault(Fault::new("the command is empty").with_remedy("name a program"), written.place());
    }
    let program = scope.program(command);
    if let Some(remedy) = remedy_for_command_line(written.value(), &program) {
        let fault = Fault::new(format!("`{}` is a command line, not a program", masked(written.value())));
        scope.fault(fault.with_remedy(remedy), written.place());
    }
    program
}

/// What to write in place of a whole command line. A path may have spaces, too.
fn remedy_for_command_line(written: &str, program: &str) -> Option<String> {
    let (name, arguments) = written.trim().split_once(char::is_whitespace)?;
    if Path::new(program).exists() || name.contains(['/', '\\']) {
        return None;
    }
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    Some(format!("write `command: {name}`, and its arguments first in `args: [{}]`", masked(&arguments.join(", "))))
}

/// An HTTP server.
pub(crate) fn http_transport(written: &Http, scope: &mut Resolver<'_>) -> TransportSettings {
    let url = scope.url(&written.url);
    let mut headers = scope.secrets(written.headers.as_ref());
    let auth = auth::resolve(written.auth.as_ref(), &mut headers, scope);
    TransportSettings::Http { url, headers, auth }
}

impl ServerSettings {
    /// A server with every default.
    pub fn new(transport: TransportSettings) -> Self {
        let seconds = std::time::Duration::from_secs;
        Self {
            transport,
            trusted: false,
            required: false,
            start: Start::Lazy,
            start_timeout: seconds(START_SECONDS),
            call_timeout: seconds(CALL_SECONDS),
            total_timeout: seconds(TOTAL_SECONDS),
            max_concurrency: CONCURRENCY,
            max_tools: TOOLS,
            protocol_version: ProtocolVersionChoice::Auto,
            elicitation: true,
            recheck: Recheck::default(),
            elicitation_hold: None,
            max_result_bytes: None,
            check_results: ResultCheck::default(),
            validation: Validation::default(),
            trace_context: TraceContext::All,
            egress: None,
            pinned: BTreeMap::new(),
            undos: BTreeMap::new(),
        }
    }
}
