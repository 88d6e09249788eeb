//! `toolgate mcp call`: one trial call of one tool.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Map, Value};

use super::answer_flags::AnswerFlags;
use super::connected_server::{ConnectedServer, new_trace};
use super::exchange::Exchange;
use super::report::{CallOutcome, ResultDestination, Trial};
use super::result_files::save;
use super::target::{Target, TargetFlags, seconds};
use super::wire_proxy;
use crate::app::ToolServers;
use crate::cli::caller::Caller;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup;
use crate::cli::stdin;
use crate::cli::text::{list, one_line};
use crate::cli::waiting::{Wait, WaitOutcome};
use crate::core::run::Budget;
use crate::core::tool::{CallFailure, FailureKind, Problem, Tool};
use crate::core::trace::{SpanContext, Trace};
use crate::ports::InputFindings;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp call shop get_invoice '{\"order_id\": \"A-1077\"}'    a configured server
  toolgate mcp call echo '{\"message\": \"hi\"}' -- node server.js   a command
  toolgate mcp call http://localhost:3000/mcp echo '{\"message\": \"hi\"}'
  toolgate mcp call --json shop list_orders - < arguments.json
  toolgate mcp call book '{}' --answer seats='{\"number\": 2}' -- node server.js

The result goes to standard output: text as it is, structured content as JSON. Progress, timing and
schema violations go to standard error. Arguments are checked against the tool's inputSchema first,
the result against its outputSchema.

When the server asks a question, the command asks you in a terminal; elsewhere it prints the
questions as JSON, with the flags that answer them. It waits for a call that continues as a task.

Exit codes: 0 answered, 2 wrong usage or configuration, 3 the tool answered with an error, 4 the
arguments do not fit (nothing was sent), 5 the server is unavailable, disconnected or refused, 6 no
answer in time, 7 the result violates MCP or does not fit, 10 the server has a question, 130
interrupted.";

/// Call a tool of a server, with progress, timing, and checks of arguments and result
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "toolgate mcp call [OPTIONS] SERVER TOOL [JSON]\n       toolgate mcp call [OPTIONS] URL TOOL \
                            [JSON]\n       toolgate mcp call [OPTIONS] TOOL [JSON] -- COMMAND…"
)]
pub(super) struct Call {
    /// The server (its id or URL, unless a flag selects it), the tool, and its arguments: a JSON object, `-` for
    /// standard input, `@FILE` for a file; the default is `{}`
    #[arg(value_name = "SERVER TOOL JSON", num_args = 0..=3)]
    words: Vec<String>,

    /// Sends the call without checking its arguments, even if the tool is not listed
    #[arg(long)]
    no_validate: bool,

    /// The time limit of the whole call [default: the configured times, or 60 s without progress and 600 s in all]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// An answer to the server's question: the fields of its form, by the key of the question; without `=` an address
    /// was visited, or a form's defaults apply (repeatable)
    #[arg(long, value_name = "[KEY=]JSON")]
    answer: Vec<String>,

    /// A question to decline (repeatable)
    #[arg(long, value_name = "KEY")]
    decline: Vec<String>,

    /// Writes the result to a file: its media, or else its structured content or text
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Prints one JSON object: status, times, result, problems
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    reach: TargetFlags,

    #[command(flatten)]
    caller: Caller,
}

/// The parsed positional arguments.
struct Positionals<'a> {
    server: Option<&'a str>,
    tool: &'a str,
    arguments: Option<&'a str>,
}

/// Longer than any user waits.
const UNBOUNDED: Duration = Duration::from_secs(365 * 24 * 3600);

/// A trial call: the server, the tool and the arguments.
struct TrialCall<'a> {
    servers: &'a ToolServers,
    target: &'a Target,
    tool: &'a str,
    arguments: Map<String, Value>,
    trace: SpanContext,
}

impl Call {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        let words = self.words()?;
        let arguments = arguments(words.arguments)?;
        // The caller's span is the direct parent of the server's span. Toolgate adds no span between them.
        let trace = self.caller.trace(out)?;
        let begun = |trace: Trace| trace.remote_context().unwrap_or_else(|| trace.context("mcp"));
        let trace = trace.map_or_else(new_trace, begun);
        let mut target = wire_proxy::target(&self.reach, words.server)?;
        if self.timeout.is_some() {
            // Only the flag bounds the call, so that no error message names a setting.
            (target.settings.call_timeout, target.settings.total_timeout) = (UNBOUNDED, UNBOUNDED);
        }
        let servers = target.open()?;
        let mut wait = Wait::new();
        let attempt = TrialCall { servers: &servers, target: &target, tool: words.tool, arguments, trace };
        let tried = self.tried(&attempt, &mut wait, out).await;
        wait.until("stopping", servers.close(), out).await;
        let trial = tried?;
        if self.json {
            trial.print_json(out);
        } else {
            trial
                .print(if self.output.is_some() { ResultDestination::Elsewhere } else { ResultDestination::Here }, out);
        }
        if let (Some(path), CallOutcome::Answered(output, _)) = (&self.output, &trial.ending) {
            for path in save(output, path)? {
                out.note(format!("written to {}", path.display()));
            }
        }
        Ok(trial.ending.exit())
    }

    fn words(&self) -> Result<Positionals<'_>, CliError> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (server, tool, arguments) = match (self.reach.is_given(), words.as_slice()) {
            (true, [tool]) => (None, *tool, None),
            (true, [tool, arguments]) => (None, *tool, Some(*arguments)),
            (true, []) => {
                return Err(CliError::usage("no tool is named").with_remedy(
                    "the tool and its arguments stand before `--`: toolgate mcp call TOOL '{…}' -- COMMAND",
                ));
            }
            (false, [server, tool]) => (Some(*server), *tool, None),
            (false, [server, tool, arguments]) => (Some(*server), *tool, Some(*arguments)),
            (false, [] | [_]) => {
                return Err(CliError::usage("a server and a tool are needed")
                    .with_remedy("toolgate mcp call SERVER TOOL '{…}', or toolgate mcp call TOOL '{…}' -- COMMAND"));
            }
            (_, [first, ..]) => {
                return Err(CliError::usage(format!("the server is given twice: as `{first}` and in another way"))
                    .with_remedy("leave one of the two out"));
            }
        };
        Ok(Positionals { server, tool, arguments })
    }

    async fn tried(&self, attempt: &TrialCall<'_>, wait: &mut Wait, out: &mut Output) -> Result<Trial, CliError> {
        let TrialCall { servers, target, tool: named, arguments, trace } = attempt;
        let mut trial = Trial {
            server: target.id.clone(),
            tool: (*named).to_owned(),
            ready: Duration::ZERO,
            took: Duration::ZERO,
            ending: CallOutcome::Interrupted,
            stderr: Vec::new(),
            starts_late: false,
        };
        let visit = match wait.until("starting", ConnectedServer::new(servers, &target.id, trace), out).await {
            WaitOutcome::Done(Some(visit)) => visit,
            WaitOutcome::Done(None) | WaitOutcome::Interrupted(_) => return Ok(trial),
        };
        trial.ready = visit.took;
        if let (Some(reason), false) = (visit.missing(), self.no_validate) {
            let message = reason.to_owned();
            trial.starts_late = visit.took >= target.settings.start_timeout;
            trial.ending = CallOutcome::Failed(CallFailure { kind: FailureKind::Unavailable, message });
            return Ok(trial);
        }
        let tool = visit.tool(named);
        if tool.is_none() && !self.no_validate {
            return Err(no_such_tool(named, &visit));
        }
        trial.tool = tool.map_or(*named, |tool| tool.origin.tool_name()).to_owned();
        let mut problems = tool.map(|tool| tool.pinned_problems(arguments)).unwrap_or_default();
        if let Some(tool) = tool.filter(|_| !self.no_validate && problems.is_empty())
            && let InputFindings::Invalid(found) = servers.inputs().check(tool, arguments, &Budget::default()).await
        {
            problems = found;
        }
        if !problems.is_empty() {
            trial.ending = CallOutcome::Unfit(problems);
            return Ok(trial);
        }
        let mut exchange = Exchange {
            servers,
            server: &target.id,
            tool: &trial.tool,
            arguments,
            trace,
            total: self.timeout.unwrap_or(target.settings.total_timeout),
            prepared: AnswerFlags::new(&self.answer, &self.decline),
            asks: !self.json && out.notes_are_seen(),
            stderr: Vec::new(),
        };
        let began = Instant::now();
        let ending = exchange.ending(wait, out).await?;
        trial.stderr = std::mem::take(&mut exchange.stderr);
        trial.took = began.elapsed();
        trial.ending = checked(servers, tool, ending).await;
        Ok(trial)
    }
}

/// The outcome, with violations of the tool's `outputSchema`.
async fn checked(servers: &ToolServers, tool: Option<&Tool>, ending: CallOutcome) -> CallOutcome {
    let CallOutcome::Answered(output, mut problems) = ending else { return ending };
    let Some(tool) = tool.filter(|tool| tool.output_schema.is_some() && !output.is_error) else {
        return CallOutcome::Answered(output, problems);
    };
    match &output.structured {
        None => {
            let missing = "the tool declares an outputSchema, and its result has no structuredContent";
            problems.push(Problem::whole("structuredContent", missing));
        }
        Some(structured) => match servers.inputs().check_result(tool, structured).await {
            InputFindings::Valid => {}
            InputFindings::Invalid(violations) => problems.extend(violations),
        },
    }
    CallOutcome::Answered(output, problems)
}

fn no_such_tool(named: &str, visit: &ConnectedServer) -> CliError {
    let named = one_line(named, 80);
    let left_out = visit.tools.left_out().iter().find(|left| left.tool.as_deref() == Some(named.as_str()));
    if let Some(left) = left_out {
        return CliError::not_found(format!("the tool `{named}` cannot be used: {}", left.reason))
            .with_remedy("--no-validate calls it anyway");
    }
    let known = list(visit.tools.iter().map(|tool| tool.origin.tool_name()));
    CliError::not_found(format!("there is no tool `{named}`; the server has: {}", one_line(&known, 400)))
        .with_remedy("--no-validate calls it anyway")
}

/// The arguments: literal JSON, standard input, or a file.
fn arguments(word: Option<&str>) -> Result<Map<String, Value>, CliError> {
    let (text, place) = match word {
        None => return Ok(Map::new()),
        Some("-") => {
            let text = stdin::read().map_err(|error| {
                CliError::usage(format!("the arguments cannot be read from standard input: {error}"))
            })?;
            (text, "the arguments".to_owned())
        }
        Some(word) => match word.strip_prefix('@') {
            Some(path) => {
                let path = PathBuf::from(path);
                let text = std::fs::read_to_string(&path);
                let text = text.map_err(|error| CliError::file("the arguments", &path, &error))?;
                (text, format!("the arguments in `{}`", path.display()))
            }
            None => (word.to_owned(), "the arguments".to_owned()),
        },
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(CliError::usage(format!("{place} are no JSON object")).with_remedy("write '{\"NAME\": VALUE}'")),
        Err(error) => {
            Err(CliError::usage(format!("{place} are not JSON: {error}"))
                .with_remedy("quote them: '{\"NAME\": VALUE}'"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        call: Call,
    }

    fn words(line: &[&str]) -> Result<(Option<String>, String, Option<String>), String> {
        let line = Line::try_parse_from(["call"].iter().chain(line)).map_err(|error| error.to_string())?;
        let words = line.call.words().map_err(|error| error.to_string())?;
        Ok((words.server.map(Into::into), words.tool.into(), words.arguments.map(Into::into)))
    }

    fn expected(server: Option<&str>, tool: &str, arguments: Option<&str>) -> (Option<String>, String, Option<String>) {
        (server.map(Into::into), tool.into(), arguments.map(Into::into))
    }

    #[test]
    fn the_server_is_the_first_argument_unless_a_flag_selects_it() {
        for (line, meant) in [
            (&["shop", "echo", "{}"][..], expected(Some("shop"), "echo", Some("{}"))),
            (&["shop", "echo"], expected(Some("shop"), "echo", None)),
            (&["http://h/mcp", "echo", "{}"], expected(Some("http://h/mcp"), "echo", Some("{}"))),
            (&["echo", "{}", "--", "node", "s.js"], expected(None, "echo", Some("{}"))),
            (&["echo", "--", "node", "s.js", "{}"], expected(None, "echo", None)),
            (&["--command", "node s.js", "echo", "{}"], expected(None, "echo", Some("{}"))),
            (&["--server", "shop", "echo", "-"], expected(None, "echo", Some("-"))),
            (&["--url", "http://h/mcp", "echo"], expected(None, "echo", None)),
        ] {
            assert_eq!(words(line), Ok(meant), "{line:?}");
        }
    }

    #[test]
    fn too_few_or_too_many_arguments_are_rejected() {
        assert_eq!(words(&["echo"]), Err("a server and a tool are needed".into()));
        assert_eq!(words(&["--", "node", "s.js", "echo"]), Err("no tool is named".into()));
        let twice = words(&["shop", "echo", "{}", "--", "node"]).unwrap_err();
        assert_eq!(twice, "the server is given twice: as `shop` and in another way");
    }

    #[test]
    fn arguments_are_a_json_object() {
        assert_eq!(arguments(None).unwrap(), Map::new());
        assert_eq!(arguments(Some("{\"a\": 1}")).unwrap()["a"], 1);
        assert!(arguments(Some("[1]")).unwrap_err().to_string().contains("no JSON object"));
        assert!(arguments(Some("{a: 1}")).unwrap_err().to_string().contains("not JSON"));
        assert!(arguments(Some("@no/such/file")).unwrap_err().to_string().contains("no/such/file"));
    }
}
