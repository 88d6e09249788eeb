//! Envelopes of pending runs: any node accepts one as it was exported, and rejects every other one.

mod accepted;
mod forged;
mod laws;
mod nodes;
mod suspended_calls;
