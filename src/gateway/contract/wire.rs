//! What the types say of a request and HTTP does not: a parameter that is optional is left away and never null, and a body
//! all of whose fields may be left away may be left away itself.

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{Components, OpenApi, RefOr, Required, Schema};

use super::refusals::operations;

/// Describes parameters and bodies as they travel.
pub(super) fn describe(description: &mut OpenApi) {
    let components = description.components.clone().unwrap_or_default();
    for item in description.paths.paths.values_mut() {
        for (_, operation) in operations(item) {
            without_null(operation);
            if takes_nothing_as_well(operation, &components)
                && let Some(RefOr::T(body)) = &mut operation.request_body
            {
                body.required = Some(Required::False);
            }
        }
    }
}

fn without_null(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { continue };
        if let SchemaType::Array(types) = &mut schema.schema_type {
            types.retain(|kind| *kind != Type::Null);
            if let [only] = types.as_slice() {
                schema.schema_type = SchemaType::Type(only.clone());
            }
        }
    }
}

/// Whether an empty object would do.
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
