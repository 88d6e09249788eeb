//! The JSON Schema of `toolgate.yaml`, for editors.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::written::ConfigFile;

/// The JSON Schema (draft-07, which editors know best) of the configuration file.
pub fn json_schema() -> Value {
    let mut schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<ConfigFile>().to_value();
    refuse_null(&mut schema);
    schema
}

/// Optional keys are omitted or have a value. The generator would allow `null` for them.
fn refuse_null(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Array(kinds)) = members.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [only] = &kinds[..] {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                choices.retain(|choice| *choice != json!({"type": "null"}));
                if let [only] = &mut choices[..] {
                    let only = json!([only.take()]);
                    members.shift_remove("anyOf");
                    members.insert("allOf".to_owned(), only);
                }
            }
            members.values_mut().for_each(refuse_null);
        }
        Value::Array(items) => items.iter_mut().for_each(refuse_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
