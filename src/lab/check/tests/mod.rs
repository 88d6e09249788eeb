//! Tests of the check against a server that makes one mistake at a time, and against one that makes no mistake.

mod clean;
mod harness;
mod mistakes;
mod pages;
mod whole_reports;
