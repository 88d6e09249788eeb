//! The gateway as its clients meet it: over HTTP, on a port of this machine, with a scripted model behind it.

mod contract;
mod idempotency;
mod keys;
mod limits;
mod oidc;
mod origins;
mod runs;
mod served;
