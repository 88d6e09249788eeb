//! What somebody tries who means no good: with a key of their own, and with more patience than is decent.

mod consents;
mod guesses;
mod leftovers;
mod principals;
mod scopes;
mod weights;
