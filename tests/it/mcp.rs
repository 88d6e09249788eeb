//! MCP servers as real processes and real HTTP endpoints: good ones, bad ones, and other people's.

mod auth;
mod busy_tasks;
mod calls;
mod context;
mod demo;
mod desk;
mod egress;
mod elicitation;
mod eras;
mod faults;
mod http;
mod idle_connections;
mod in_process;
mod lifetime;
mod listing;
mod orphans;
mod peers;
mod sessions;
mod supervision;
mod support;
mod tasks;
mod too_long;
mod tool_headers;
