//! The program as people and scripts use it: the real binary, a real MCP server over stdio, a played model.

mod desk;
mod fallback;

mod look;
mod resume;
mod run;
mod settings;
