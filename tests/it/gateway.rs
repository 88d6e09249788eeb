//! The gateway as its clients meet it: over HTTP, on a port of this machine, with a scripted model behind it.

mod contract;
mod draining;
mod queueing;
mod reloading;
mod resting;
mod runs;
mod served;
mod serving;
mod site;
