//! External tools, which the client application runs itself, as a request declares them.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A tool that you run yourself.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ExternalTool)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub(super) struct ExternalToolView {
    /// The tool's name; the model sees it as `ext_<name>`.
    #[schema(example = "lookup_order")]
    name: String,
    /// A description for the model.
    #[schema(default = "", required = false)]
    description: String,
    /// JSON Schema of the arguments. Default: any object.
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Value>,
    /// JSON Schema of the result; a result that does not match is refused.
    #[schema(value_type = Option<Object>)]
    result_schema: Option<Value>,
    /// The tool's priority. Only the calls of the highest priority in a reply run.
    #[schema(default = 0, required = false)]
    priority: i32,
    /// How many seconds you have to return the result. After that the call expires, and the model is informed.
    deadline_s: Option<u64>,
}
