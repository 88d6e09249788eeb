//! MCP servers as real processes and real HTTP endpoints: good ones, bad ones, and other people's.

mod auth;
mod busy_tasks;
mod calls;
mod context;
mod demo;
mod egress;
mod elicitation;
mod elicitation_routing;
mod faults;
mod http;
mod idle_connections;
mod in_process;
mod lifetime;
mod listing;
mod negotiation;
mod orphans;
mod peers;
mod session_stream;
mod sessions;
mod size_limit;
mod supervision;
mod support;
mod tasks;
mod tool_headers;
