//! The laws of a run (ARCHITECTURE.md) as property tests, and the scenarios that led to them. Pure: no I/O, no clock,
//! no runtime. All tests use the public types of the core, so this binary also builds with `--no-default-features`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::wildcard_enum_match_arm)]

mod fixtures;
mod hand;
mod provider;
mod tape;
mod world;

mod calls;
mod chain;
mod commands;
mod consent;
mod cuts;
mod facts;
mod forks;
mod journals;
mod naming;
mod policies;
#[cfg(feature = "policy-cel")]
mod policies_with_conditions;
mod results;
mod resumes;
mod scenarios;
