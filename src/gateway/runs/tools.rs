//! Tools that the calling application runs itself, as a request declares them.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A tool that you run yourself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExternalTool)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct ExternalToolView {
    /// Your name for it; the model sees `ext_<name>`.
    #[schema(example = "lookup_order")]
    name: String,
    /// What it does, for the model.
    #[schema(default = "", required = false)]
    description: String,
    /// JSON Schema of its arguments; default: any object.
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Value>,
    /// JSON Schema of its result; a result that does not fit is refused.
    #[schema(value_type = Option<Object>)]
    result_schema: Option<Value>,
    /// Of the calls in one reply only those of the highest priority run.
    #[schema(default = 0, required = false)]
    priority: i32,
    /// Seconds there are for its result; after that the model reads that there was none in time.
    deadline_s: Option<u64>,
}
