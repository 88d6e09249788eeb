//! `/v1/models`: the configured models. The format is OpenAI's, with more fields.

mod list;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list::list))
}
