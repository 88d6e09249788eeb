//! Corrections to the generated OpenAPI document, which no type expresses: an optional parameter is left out and never
//! null, a body whose fields are all optional is itself optional, and every POST accepts an idempotency key.

use utoipa::openapi::path::{HttpMethod, Operation, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{Components, OpenApi, RefOr, Required, Schema};

use super::operations::operations;
use crate::idempotency::key;

/// Input types with several variants, of which each refuses unknown fields.
const CLOSED: [&str; 1] = ["Coverage"];

/// Descriptions of the parameters in paths.
const PATH_PARAMETERS: [(&str, &str); 13] = [
    ("agent", "The name of the agent"),
    ("approval", "The approval's id"),
    ("delivery", "The delivery's id"),
    ("endpoint", "The endpoint's id"),
    ("feedback", "The feedback's id"),
    ("file", "The file's id"),
    ("grant", "The grant's id"),
    ("key", "The key's id"),
    ("run", "The run's id"),
    ("server", "The configured id of the server"),
    ("session", "The session's id"),
    ("tool", "The tool, by the name that the model sees"),
    ("sha256", "The SHA-256 of the bytes: 64 hex digits"),
];

/// Corrects parameters and bodies.
pub(super) fn describe(description: &mut OpenApi) {
    for name in CLOSED {
        let schema = description.components.as_mut().and_then(|components| components.schemas.get_mut(name));
        let Some(RefOr::T(Schema::OneOf(one_of))) = schema else { continue };
        for item in &mut one_of.items {
            if let RefOr::T(Schema::Object(object)) = item
                && !object.properties.is_empty()
            {
                object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
            }
        }
    }
    let components = description.components.clone().unwrap_or_default();
    for item in description.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            describe_parameters(operation);
            if method == HttpMethod::Post {
                operation.parameters.get_or_insert_default().push(RefOr::T(key::described()));
            }
            if takes_nothing_as_well(operation, &components)
                && let Some(RefOr::T(body)) = &mut operation.request_body
            {
                body.required = Some(Required::False);
            }
        }
    }
}

fn describe_parameters(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if let Some((_, meaning)) = PATH_PARAMETERS.iter().find(|(name, _)| *name == parameter.name)
            && parameter.parameter_in == ParameterIn::Path
        {
            parameter.description = Some((*meaning).to_owned());
        }
        let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { continue };
        if let SchemaType::Array(types) = &mut schema.schema_type {
            types.retain(|kind| *kind != Type::Null);
            if let [only] = types.as_slice() {
                schema.schema_type = SchemaType::Type(only.clone());
            }
        }
    }
}

/// Whether an empty object is a valid body.
fn takes_nothing_as_well(operation: &Operation, components: &Components) -> bool {
    let Some(RefOr::T(body)) = &operation.request_body else { return false };
    let named = body.content.values().filter_map(|content| {
        let RefOr::T(content) = content else { return None };
        let Some(RefOr::Ref(schema)) = &content.schema else { return None };
        schema.ref_location.rsplit('/').next()
    });
    let mut schemas = named.filter_map(|name| components.schemas.get(name));
    schemas.any(|schema| matches!(schema, RefOr::T(Schema::Object(object)) if object.required.is_empty()))
}
