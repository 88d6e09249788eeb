//! Command-line interface. Each command has one file with its names, its help, its flags and its behaviour.
//!
//! Results go to standard output, and messages about them go to standard error. No command panics, and commands print
//! only through `output::Output`.

mod answers;
mod approvals;
mod argument_lines;
mod attach;
mod binding_digest;
mod blobs;
mod caller;
mod chat;
mod completions;
mod config;
mod demo;
mod demo_server;
mod doctor;
mod drive_to_idle;
mod elicitation_form;
mod envelope;
mod error;
mod exit;
mod file_texts;
mod folded_change;
mod follow;
mod follow_options;
mod init;
mod interrupt;
mod keys;
mod mcp;
mod mention;
mod models;
mod new_file;
mod output;
mod paint;
mod past_calls;
mod policy;
mod preset_policies;
mod prompt;
mod prompt_line;
mod refusal;
mod report;
mod resume;
mod run;
mod run_arg;
mod runs;
mod serve;
mod session_arg;
mod sessions;
mod setup;
mod stdin;
mod surroundings;
mod table;
mod terminal_escape;
mod terminal_user;
mod text;
mod time_arg;
mod tools;
mod usage;
mod view;
mod waiting;
mod wrap;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::telemetry::logging;
use drive_to_idle::ResultLine;
use error::CliError;
use exit::Exit;
use output::Output;
use paint::Paint;

const EXAMPLES: &str = "\
Begin with:
  toolgate demo                     see a whole run, without a key and without a network
  toolgate init                     write a configuration that works at once
  toolgate doctor                   check what is configured, reachable and missing
  toolgate chat                     converse with the agent it describes
  toolgate run \"What is in stock?\"  run that agent once
  toolgate approvals list           list pending approvals
  toolgate sessions list            list conversations of successive runs
  toolgate usage                    show what runs cost
  toolgate tools                    list the agent's tools, and which require approval
  toolgate models check NAME        check what works with a configured model
  toolgate mcp list -- COMMAND      list the tools of an MCP server

`toolgate help COMMAND` has examples for each command.";

/// Runs agent tool loops: MCP tools run inside, your own tools come back to you, people approve what matters, and every
/// step is journaled.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, max_term_width = 100, after_help = EXAMPLES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Demo),
    Init(init::Init),
    Doctor(doctor::Doctor),
    Chat(Box<chat::Chat>),
    Run(Box<run::Run>),
    Resume(Box<resume::ResumeRun>),
    Serve(serve::Serve),
    Keys(keys::Keys),
    Runs(runs::Runs),
    Sessions(sessions::Sessions),
    Usage(usage::UsageReport),
    Approvals(approvals::Approvals),
    Blobs(blobs::Blobs),
    Tools(tools::Tools),
    Mcp(mcp::Mcp),
    Policy(policy::PolicyCommand),
    Models(models::Models),
    Config(config::Config),
    Completions(completions::Completions),
    #[command(hide = true)]
    DemoServer(demo_server::DemoServer),
}

/// Runs the command from the arguments of this process.
pub fn main() -> ExitCode {
    // This also restores the terminal after a panic.
    let _terminal = prompt::TerminalGuard;
    let words = words();
    if is_alone(&words) {
        Output::of_process().note(FIRST_STEPS);
        return Exit::Usage.into();
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            Output::of_process().note(format!("error: no threads can be started: {error}"));
            return Exit::Failed.into();
        }
    };
    let mut out = Output::of_process();
    let exit = runtime.block_on(cli.command.execute(&mut out));
    // The thread of a withdrawn prompt may still block on the terminal; no other task remains.
    runtime.shutdown_background();
    logging::flush();
    exit.into()
}

/// What `toolgate` alone says at a terminal in a folder without a configuration.
const FIRST_STEPS: &str = "there is no toolgate.yaml in this folder

  toolgate demo    shows a whole run, without a key
  toolgate init    writes a configuration
  toolgate --help  lists the commands";

/// The words of the command line. At a terminal, in a folder with a configuration, the program alone means `chat`.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_configured =
        || std::env::var_os("TOOLGATE_CONFIG").is_some() || std::path::Path::new(crate::config::FILE_NAME).is_file();
    if is_alone(&words) && is_configured() {
        words.push("chat".into());
    }
    words
}

/// Whether a person typed the name of the program alone.
fn is_alone(words: &[OsString]) -> bool {
    words.len() == 1 && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Help and version are successful output; every other clap error is a usage error.
fn refused(error: &clap::Error) -> ExitCode {
    let mut out = Output::of_process();
    let rendered = |paint| match paint {
        Paint::Colour => error.render().ansi().to_string(),
        Paint::Plain => error.render().to_string(),
    };
    if error.use_stderr() {
        out.note(rendered(out.note_paint()).trim_end());
        let words: Vec<String> = std::env::args().skip(1).collect();
        let hint = if error.kind() == ErrorKind::UnknownArgument { unknown_words(&words) } else { None };
        if let Some(hint) = hint {
            out.note(format!("\n{hint}"));
        }
        return Exit::Usage.into();
    }
    out.line(rendered(out.paint()).trim_end());
    Exit::Done.into()
}

/// What the person most likely forgot: the quotation marks of a message, or the `--` before the command of a server.
fn unknown_words(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let are_plain = |words: &[&str]| words.iter().all(|word| !word.starts_with('-'));
    match &words[..] {
        ["run", message @ ..] if are_plain(message) => {
            Some(format!("quote a message of several words: toolgate run \"{}\"", message.join(" ")))
        }
        ["mcp", "add", name, command, arguments @ ..] if are_plain(&[*name, *command]) => {
            let command = [&[*command], arguments].concat().join(" ");
            Some(match command.contains("://") {
                true => {
                    format!("the address of a server stands after `--url`: toolgate mcp add {name} --url {command}")
                }
                false => format!("the command of a server stands after `--`: toolgate mcp add {name} -- {command}"),
            })
        }
        _ => None,
    }
}

impl Command {
    async fn execute(self, out: &mut Output) -> Exit {
        let json = self.is_json();
        let done = match self {
            Self::Demo(command) => command.execute(out).await,
            Self::Init(command) => command.execute(out).await,
            Self::Doctor(command) => command.execute(out).await,
            Self::Chat(command) => command.execute(out).await,
            Self::Run(command) => command.execute(out).await,
            Self::Resume(command) => command.execute(out).await,
            Self::Serve(command) => command.execute(out).await,
            Self::Keys(command) => command.execute(out).await,
            Self::Runs(command) => command.execute(out).await,
            Self::Sessions(command) => command.execute(out).await,
            Self::Usage(command) => command.execute(out).await,
            Self::Approvals(command) => command.execute(out).await,
            Self::Blobs(command) => command.execute(out).await,
            Self::Tools(command) => command.execute(out).await,
            Self::Mcp(command) => command.execute(out).await,
            Self::Policy(command) => command.execute(out).await,
            Self::Models(command) => command.execute(out).await,
            Self::Config(command) => command.execute(out),
            Self::Completions(completions) => completions.execute(command(), out),
            Self::DemoServer(command) => command.execute().await,
        };
        done.unwrap_or_else(|error| failed(&error, json, out))
    }

    /// Whether the command always prints a JSON result as its last line.
    fn is_json(&self) -> bool {
        match self {
            Self::Run(command) => command.json,
            Self::Resume(command) => command.json,
            Self::Runs(command) => command.ends_with_result(),
            Self::Approvals(command) => command.ends_with_result(),
            Self::Mcp(command) => command.ends_with_result(),
            Self::Demo(_)
            | Self::Init(_)
            | Self::Doctor(_)
            | Self::Chat(_)
            | Self::Serve(_)
            | Self::Keys(_)
            | Self::Sessions(_)
            | Self::Usage(_)
            | Self::Blobs(_)
            | Self::Tools(_)
            | Self::Policy(_)
            | Self::Models(_)
            | Self::Config(_)
            | Self::Completions(_)
            | Self::DemoServer(_) => false,
        }
    }
}

fn failed(error: &CliError, json: bool, out: &mut Output) -> Exit {
    report::error(error, out);
    if json {
        out.json(&ResultLine::failed(error));
    }
    match error {
        CliError::Terminated(_) => Exit::Terminated,
        CliError::Coded { .. } | CliError::Config(_) | CliError::Interrupted => Exit::Code(error.code().exit_code()),
    }
}

/// The clap command.
fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        command().debug_assert();
    }
}
