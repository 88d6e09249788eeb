//! Authorization: what an authenticated caller may do in its tenant.

mod caller;
mod four_eyes;
mod principal;
mod scopes;

pub use caller::Caller;
pub use scopes::{Scope, Scopes};
