//! The gateway as its clients meet it: over HTTP, on a port of this machine, with a scripted model behind it.

mod apart;
mod contract;
mod deleting;
mod events;
mod exporting;
mod forking;
mod messages;
mod narrowing;
mod runs;
mod served;
mod streamed;
mod streaming;
