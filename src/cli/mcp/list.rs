//! `toolgate mcp list`: the tools of a server.

use std::time::Duration;

use clap::Args;

use super::connected_server::{ConnectedServer, milliseconds, new_trace};
use super::target::{LONGER_START, TargetFlags};
use super::tool_display::{self, Schemas};
use super::wire_proxy;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup;
use crate::cli::text::{block, count, duration};
use crate::cli::view::{DisplaySettings, left_out_lines};
use crate::cli::waiting::{Wait, WaitOutcome};

const EXAMPLES: &str = "\
Examples:
  toolgate mcp list shop                                   a configured server
  toolgate mcp list -- uvx mcp-server-git --repository .   a command
  toolgate mcp list http://localhost:3000/mcp --header 'Authorization: Bearer ${TOKEN}'
  toolgate mcp list --json -- node server.js | jq -r '.tools[].name'
  toolgate mcp list --schemas shop

Each tool is shown by its own name, and by the name a model would see. Omitted tools
and warnings go to standard error.

Exit codes: 0 listed, 2 wrong usage or configuration, 5 the server is unavailable, 130 interrupted.";

/// Connect to a server and list its tools, what was left out and why
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "toolgate mcp list [OPTIONS] SERVER\n       toolgate mcp list [OPTIONS] URL\n       \
                            toolgate mcp list [OPTIONS] -- COMMAND…")]
pub(super) struct List {
    /// A configured server, by its id, or a URL
    #[arg(value_name = "SERVER")]
    word: Option<String>,

    /// Shows the JSON Schemas of arguments and results, and whole descriptions
    #[arg(long, alias = "schema")]
    schemas: bool,

    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    reach: TargetFlags,
}

impl List {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        let target = wire_proxy::target(&self.reach, self.word.as_deref())?;
        let servers = target.open()?;
        let mut wait = Wait::new();
        let trace = new_trace();
        let visited = wait.until("starting", ConnectedServer::new(&servers, &target.id, &trace), out).await;
        let exit = match &visited {
            WaitOutcome::Done(Some(visit)) => self.print(visit, target.settings.start_timeout, out),
            WaitOutcome::Done(None) => Exit::ServerFailed,
            WaitOutcome::Interrupted(_) => Exit::Cancelled,
        };
        wait.until("stopping", servers.close(), out).await;
        Ok(exit)
    }

    fn print(&self, visit: &ConnectedServer, start_timeout: Duration, out: &mut Output) -> Exit {
        let missing = visit.missing();
        if self.json {
            out.pretty(&visit.to_json());
        }
        if let Some(reason) = missing {
            let paint = out.note_paint();
            out.note(format!("{} {}", paint.red("error:"), block(reason)));
            if visit.took >= start_timeout {
                out.note(format!("{} {LONGER_START}", paint.cyan(" help:")));
            }
            return Exit::ServerFailed;
        }
        if !self.json {
            self.show(visit, out);
        }
        let paint = out.note_paint();
        for line in left_out_lines(visit.tools.left_out()) {
            out.note(paint.yellow(line));
        }
        for warning in visit.warnings() {
            out.warning(warning);
        }
        Exit::Done
    }

    fn show(&self, visit: &ConnectedServer, out: &mut Output) {
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let version = visit.status.protocol_version.as_ref();
        let version = version.map(|version| format!("MCP {version}, ")).unwrap_or_default();
        let ready = duration(milliseconds(visit.took));
        let about = look.paint.dim(format!("{version}ready after {ready}"));
        out.line(format!("{}  {about}", look.paint.bold(visit.about())));
        let schemas = if self.schemas { Schemas::Shown } else { Schemas::Hidden };
        for tool in visit.tools.iter() {
            out.line("");
            tool_display::tool(tool, schemas, look).iter().for_each(|line| out.line(line));
        }
        out.line(format!("\n{}", count(visit.tools.len(), "tool")));
    }
}
