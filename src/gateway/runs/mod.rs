//! `/v1/runs`: one file per endpoint.

mod blob;
mod cancel;
mod create;
mod delete;
mod events;
mod export;
mod field_pointers;
mod fork;
mod form;
mod input;
mod limits;
mod list;
mod media_url;
mod messages;
mod pending;
mod precondition;
mod reactions;
mod read;
mod response_mode;
mod resume;
mod resume_body;
mod tools;
pub(in crate::gateway) mod view;
mod wait;

pub(super) use form::Form;
pub use media_url::MediaHosts;
pub(super) use pending::{AnnotationsView, ApprovalView, OriginView, PendingView};
pub(super) use resume_body::GivenVerdict;
pub(super) use view::StatusView;
pub(super) use wait::WaitPreference;

pub(super) use read::current;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create::create, list::list))
        .routes(routes!(read::read, delete::delete))
        .routes(routes!(resume::resume))
        .routes(routes!(cancel::cancel))
        .routes(routes!(fork::fork))
        .routes(routes!(events::events))
        .routes(routes!(messages::list::list, messages::say::say))
        .routes(routes!(export::export))
        .routes(routes!(blob::blob))
}
