//! An MCP server that misbehaves on command, for authors of MCP clients.
//!
//! `cargo run --example fault_server -- --fault die-in-call`
//!
//! It hangs, dies, sends invalid messages and floods like real servers, with one fault or several at once, over stdio
//! and streamable HTTP, with the sessions of 2025-11-25 and the stateless revision 2026-07-28. It also has working
//! tools. One of them returns the number of executed calls: it proves that a client repeated no call.
//! docs/fault-server.md describes its use.
//!
//! [`server::Server::receive`] is pure: it takes a message and returns [`script::Script`]s, which list what to send,
//! how long to wait and when to exit. [`player`] executes them; [`stdio`] and [`http`] only transport bytes. This
//! program uses no MCP library, because a server that breaks every rule must write its own messages.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod asking;
mod calls;
mod faults;
mod http;
mod log;
mod message;
mod options;
mod player;
mod process;
mod script;
mod server;
mod stdio;
mod tasks;
mod tools;
mod wire;

use std::process::ExitCode;

use options::{Command, Options, Transport};
use server::Server;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Serve(options)) => options,
        Ok(Command::Help) => {
            print!("{}", options::help());
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("fault_server: {wrong}");
            return ExitCode::from(2);
        }
    };
    match serve(options).await {
        Ok(()) => process::end(0),
        Err(error) => {
            eprintln!("fault_server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> std::io::Result<()> {
    if options.faults.has(&faults::Fault::Forks) && process::fork()? {
        return Ok(());
    }
    let log = log::Log::open(options.log.as_deref())?;
    let ignores_sigterm = options.faults.has(&faults::Fault::IgnoresSigterm);
    if ignores_sigterm {
        process::ignore_sigterm()?;
    }
    let is_stubborn = ignores_sigterm || options.faults.has(&faults::Fault::IgnoresStdin);
    let server = Server::new(options.era, options.faults);
    match options.transport {
        Transport::Stdio => stdio::serve(server, log).await,
        Transport::Http { port } => http::serve(port, server, log).await?,
    }
    if is_stubborn {
        process::linger().await;
    }
    Ok(())
}
