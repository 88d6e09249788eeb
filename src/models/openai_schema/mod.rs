//! JSON Schemas for OpenAI's APIs and compatible ones. One rejected schema fails the whole request, so an unsupported
//! schema is rewritten to the nearest supported one, and the loss is reported. Arguments are always validated with the
//! original.

mod nested;
mod root;
mod strict;

use serde_json::{Map, Value, json};

use root::Root;

pub(crate) use strict::why_not_strict;

/// A schema in the form in which it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProjectedSchema {
    /// The schema; its root is an object.
    pub(crate) schema: Value,
    /// The dropped rules, each a sentence.
    pub(crate) lost: Vec<String>,
}

/// The supported form of an object's schema, or why there is none.
pub(crate) fn project(schema: &Value) -> Result<ProjectedSchema, String> {
    let object = match schema {
        Value::Object(object) => object.clone(),
        Value::Bool(true) => Map::new(),
        Value::Bool(false) => return Err("its schema allows nothing at all".into()),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("its schema is not a JSON Schema".into());
        }
    };
    let (mut object, mut lost) = Root::new(schema).flatten(object);
    match object.get("type") {
        None => {}
        Some(types) if root::allows_object(types) => {}
        Some(types) => return Err(format!("its schema is not that of an object: its type is {types}")),
    }
    object.insert("type".into(), json!("object"));
    // "object schema missing properties" is an error.
    object.entry("properties").or_insert_with(|| json!({}));
    let mut schema = Value::Object(object);
    nested::normalize(&mut schema);
    nested::drop_dangling(&mut schema, &mut lost);
    Ok(ProjectedSchema { schema, lost })
}

/// Whether the schema is sent as strict, which binds the model. If strict is wanted but impossible, `lost` gets the
/// reason.
pub(crate) fn is_strict(projected: &mut ProjectedSchema, wanted: bool) -> bool {
    match why_not_strict(&projected.schema) {
        _ if !wanted => false,
        None => true,
        Some(why) => {
            projected.lost.push(format!("It is not declared strict: {why}."));
            false
        }
    }
}

#[cfg(test)]
mod tests;
