//! Tools: how they are named, defined, called, ordered, and answered.

mod ask;
mod builtin;
mod call;
mod definition;
mod difference;
mod endpoint;
mod filter;
mod name;
mod outcome;
mod problem;
mod question;
mod reply;
pub mod result;
mod summary;
mod task;
mod tier;
mod toolset;
mod visible;

pub use ask::{Ask, Choice};
pub use builtin::Builtin;
pub use call::{Arguments, ToolCall};
pub use definition::{Annotations, ExternalTool, McpTool, Origin, Tool};
pub use difference::Difference;
pub use endpoint::Endpoint;
pub use filter::ToolFilter;
pub use name::{ToolName, external_name, mcp_name};
pub use outcome::{CallFailure, FailureKind, Outcome, ToolOutput};
pub use problem::Problem;
pub use question::{Action, InputNeeded, Question, Reaction, Reactions};
pub use reply::CallReply;
pub use result::{Kept, KeptForm};
pub use summary::{summary, suspicious_names};
pub use task::TaskHandle;
pub use tier::{Tier, TierMode, top_tier};
pub use toolset::{LeftOut, Pins, ServerTools, Toolset, ToolsetRules};
pub use visible::{is_suspicious, needs_escaping, visible};
