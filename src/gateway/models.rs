//! `/v1/models`: the configured models. The format is OpenAI's, with more fields.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use toolgate_core::chat::Usd;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Authorized;
use crate::backends::ModelCard;
use crate::closed_sets::ModelApiView;
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new().routes(routes!(list))
}

/// All models.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Models)]
struct ModelsView {
    /// Always `list`.
    object: &'static str,
    /// The models, by name.
    data: Vec<ModelView>,
}

/// A model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Model)]
struct ModelView {
    /// The name under which the model is configured.
    id: String,
    /// Always `model`.
    object: &'static str,
    /// Always 0: the date is unknown. Clients of OpenAI's API require a number.
    created: i64,
    /// The provider of the model.
    owned_by: String,
    /// The provider's name of the model.
    model: String,
    /// The API that the provider is called with.
    #[schema(value_type = ModelApiView)]
    api: String,
    /// The model's price, if it is known.
    price: Option<PriceView>,
}

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Price)]
struct PriceView {
    /// The price of input tokens.
    #[schema(value_type = String, example = "0.25")]
    input: Usd,
    /// The price of output tokens.
    #[schema(value_type = String, example = "0.25")]
    output: Usd,
}

/// List models
#[utoipa::path(
    get, path = "/v1/models", tag = "tools", operation_id = "listModels",
    responses((status = 200, description = "All models, by name", body = ModelsView)),
)]
async fn list(State(gateway): State<Gateway>, _caller: Authorized) -> Result<Json<ModelsView>, Problem> {
    let data = gateway.backends().models().into_iter().map(ModelView::new).collect();
    Ok(Json(ModelsView { object: "list", data }))
}

impl ModelView {
    fn new(ModelCard { name, identity, price }: ModelCard) -> Self {
        Self {
            id: name.to_string(),
            object: "model",
            created: 0,
            owned_by: identity.provider,
            model: identity.model,
            api: identity.system,
            price: price.map(|(input, output)| PriceView { input, output }),
        }
    }
}
