//! The driver and the runner, as an application meets them: a scripted model, fake servers, real stores.

mod approving;
mod attacks;
mod budgets;
mod cancelling;
mod changing;
mod crashing;
mod envelope;
mod failing_model;
mod failing_store;
mod fallback;
mod forking;
mod kill;
mod late;
mod media;
mod mending;
mod pending;
mod plain;
mod put_aside;
mod racing;
mod refusing;
mod results;
mod showing;
mod tasks;
mod tiers;
mod watching;
mod world;
