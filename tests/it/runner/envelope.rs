//! A pending run in the hands of its caller: it comes back, to any node, as it was handed out, or not at all.

mod forged;
mod laws;
mod nodes;
mod passed;
mod put_aside;
