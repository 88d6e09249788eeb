//! The gateway as its clients meet it: over HTTP, on a port of this machine, with a scripted model behind it.

mod agents;
mod approvals;
mod grants;
mod people;
mod contract;
mod runs;
mod served;
mod servers;
mod tools;
