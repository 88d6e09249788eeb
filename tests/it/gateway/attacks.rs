//! Attacks by callers with a key of their own, and much patience.

mod consents;
mod guesses;
mod leftovers;
mod principals;
mod scopes;
mod weights;
