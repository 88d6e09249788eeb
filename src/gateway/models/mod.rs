//! `/v1/models`: the models that agents may be given. The form is OpenAI's, with more in it.

mod list;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list::list))
}
