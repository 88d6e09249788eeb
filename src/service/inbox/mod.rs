//! Inbox: what waits for people. Approvals of one tenant for callers, and the pending items of all runs for an operator.

mod approvals;
mod context;
mod pending;

pub use approvals::{Approval, ApprovalState};
pub use context::CallContext;
pub use pending::{Inbox, InboxFilter, InboxItem, UnreadableRun};
