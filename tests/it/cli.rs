//! The program as people and scripts use it: the real binary, a real MCP server over stdio, a played model.

mod approvals;
mod approvals_told;
mod at_a_terminal;
mod canaries;
mod costs;
mod desk;
mod envelope;
mod fallback;
mod hostile;
mod images;
mod keys;
mod look;
mod mcp;
mod meanwhile;
mod media;
mod models;
mod policy;
mod put_aside;
mod resume;
mod run;
mod serve;
mod settings;
mod telemetry;
mod trace;
mod unreadable;
