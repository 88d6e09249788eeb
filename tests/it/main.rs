//! The one integration binary: scenarios over the whole program, with strict fakes for the world.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::wildcard_enum_match_arm)]

mod cli;
mod collector;
mod config;
mod fakes;
mod gateway;
mod mcp;
mod models;
mod ownership;
mod runner;
mod service;
mod stores;
mod telemetry;
