//! Envelopes of pending runs: any node accepts one as it was exported, and rejects every other one.

mod forged;
mod laws;
mod nodes;
mod passed;
mod put_aside;
