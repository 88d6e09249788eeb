//! The API description of each type of event: what the lifecycle of core writes. A member that a response may leave out is
//! not nullable: content that was not requested, and what core leaves out without a value.

mod approval;
mod model;
mod run;
mod tool;

use utoipa::ToSchema;

/// The members of an event's type.
#[derive(ToSchema)]
#[schema(as = EventKind)]
#[serde(untagged)]
#[allow(dead_code)] // the lifecycle writes it; this describes what it writes
pub(crate) enum KindView {
    Run(run::RunEvents),
    Model(model::ModelEvents),
    Tool(tool::ToolEvents),
    Approval(approval::ApprovalEvents),
}
