//! The JSON Schema of `toolgate.yaml`, for editors.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::written::Written;

/// The JSON Schema (draft-07, which editors know best) of the configuration file.
pub fn json_schema() -> Value {
    SchemaSettings::draft07().into_generator().into_root_schema_for::<Written>().to_value()
}
