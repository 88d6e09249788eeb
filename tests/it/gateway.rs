//! The gateway as its clients meet it: over HTTP, on a port of this machine, with a scripted model behind it.

mod agents;
mod apart;
mod approvals;
mod contract;
mod deleting;
mod draining;
mod events;
mod exporting;
mod forking;
mod grants;
mod messages;
mod narrowing;
mod people;
mod queueing;
mod reloading;
mod resting;
mod runs;
mod served;
mod servers;
mod serving;
mod site;
mod streamed;
mod streaming;
mod tools;
