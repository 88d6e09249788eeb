//! Command-line options.

use std::path::PathBuf;

use crate::faults::{Faults, TABLE};

/// The command.
pub(crate) enum Command {
    /// Print the help.
    Help,
    /// Run the server.
    Serve(Options),
}

/// The options of the server.
pub(crate) struct Options {
    pub(crate) transport: Transport,
    pub(crate) era: Era,
    pub(crate) faults: Faults,
    pub(crate) log: Option<PathBuf>,
}

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Http { port: u16 },
}

/// The supported protocol versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25, with a handshake.
    Legacy,
    /// 2026-07-28, without one.
    Modern,
    /// Both.
    Dual,
}

/// Parses the arguments. Without arguments it prints the help.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut arguments = arguments.peekable();
    if arguments.peek().is_none() {
        return Ok(Command::Help);
    }
    let mut options = Options { transport: Transport::Stdio, era: Era::Legacy, faults: Faults::default(), log: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value; see --help"));
        match argument.as_str() {
            "-h" | "--help" => return Ok(Command::Help),
            "--stdio" => options.transport = Transport::Stdio,
            "--http" => {
                let port = value()?;
                let port = port.parse().map_err(|_| format!("`{port}` is no port; 0 is any that is free"))?;
                options.transport = Transport::Http { port };
            }
            "--protocol-version" => options.era = era(&value()?)?,
            "--fault" => options.faults.add(&value()?)?,
            "--log" => options.log = Some(value()?.into()),
            other => return Err(format!("unknown option `{other}`; see --help")),
        }
    }
    match Faults::misplaced(&options) {
        Some(wrong) => Err(wrong),
        None => Ok(Command::Serve(options)),
    }
}

fn era(protocol_version: &str) -> Result<Era, String> {
    match protocol_version {
        "2025-11-25" => Ok(Era::Legacy),
        "2026-07-28" => Ok(Era::Modern),
        "both" => Ok(Era::Dual),
        other => Err(format!("unknown protocol version `{other}`; expected 2025-11-25, 2026-07-28 or both")),
    }
}

/// The text of `--help`.
pub(crate) fn help() -> String {
    let mut help = String::from(HELP);
    let usages: Vec<String> = TABLE.iter().map(|kind| kind.usage()).collect();
    let widest = usages.iter().map(String::len).max().unwrap_or(0);
    for (usage, kind) in usages.iter().zip(TABLE) {
        help += &format!("  {usage:widest$}  {}\n", kind.help);
    }
    help
}

const HELP: &str = "\
An MCP server that misbehaves on command, for those who write MCP clients.

Usage: fault_server --stdio | --http PORT [--protocol-version VERSION] [--fault NAME[=VALUE]]... [--log FILE]

  --stdio                     speak on stdin and stdout; the default
  --http PORT                 speak streamable HTTP on 127.0.0.1; port 0 is any. The first line on stdout is {\"url\": ...}
  --protocol-version VERSION  2025-11-25 (with sessions, the default), 2026-07-28 (without) or both
  --fault NAME                misbehave like this; may be given several times
  --log FILE                  append every message received and sent to the file, as JSON lines

Tools: echo {text}, add {a, b}, slow {ms}, fail {}, mutant {number}, and count {}, which reports how many calls of the
others were executed. Faults of calls do not affect count.

Faults:
";
