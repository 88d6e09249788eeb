//! Tests of the fault proxy: a scripted client, the proxy, and a small server.

mod client;
mod delays;
mod failures;
mod flaws;
mod interception;
mod judgements;
mod page;
mod plans;
mod rows;
