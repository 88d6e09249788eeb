//! Required members of responses: a response has every member of its object, null or an empty list where there is no
//! value, so the document names all of them as required. A member that is neither required nor nullable may be left out:
//! content that was not requested, or a secret that is shown once. Schemas that no operation uses are removed.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::schema::{ArrayItems, SchemaType, Type};
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// Members that are left out without content, although they are nullable or of any type: the beginning of the schema's name,
/// and the member.
const CONTENT: [(&str, &str); 6] = [
    ("CallRef", "arguments"),
    ("Event", "arguments"),
    ("EventExecutionIncomplete", "output"),
    ("PendingRef", "arguments"),
    ("UndoRef", "arguments"),
    ("ValidationProblem", "received"),
];

/// Names the members of every schema that only responses use as required, and removes schemas that nothing uses.
pub(super) fn describe(description: &mut OpenApi) {
    let document = serde_json::to_value(&*description).unwrap_or_default();
    let requests = reached(&document, &["requestBody", "parameters"]);
    let mut responses = reached(&document, &["responses"]);
    // A client receives what a webhook sends.
    document.get("webhooks").into_iter().for_each(|webhooks| collect(&document, webhooks, &mut responses));
    let Some(components) = &mut description.components else { return };
    components.schemas.retain(|name, schema| {
        let place = format!("#/components/schemas/{name}");
        if responses.contains(&place) && !requests.contains(&place) {
            require_all(name, schema);
        }
        responses.contains(&place) || requests.contains(&place)
    });
}

fn require_all(name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            let is_there = |(member, schema): &(&String, &RefOr<Schema>)| {
                let is_content = |(start, content): &(&str, &str)| name.starts_with(start) && *member == content;
                (is_nullable(schema) && !CONTENT.iter().any(is_content)) || object.required.contains(member)
            };
            object.required = object.properties.iter().filter(is_there).map(|(member, _)| member.clone()).collect();
            object.properties.values_mut().for_each(|property| require_all(name, property));
        }
        Schema::OneOf(one_of) => one_of.items.iter_mut().for_each(|item| require_all(name, item)),
        Schema::AnyOf(any_of) => any_of.items.iter_mut().for_each(|item| require_all(name, item)),
        Schema::AllOf(all_of) => all_of.items.iter_mut().for_each(|item| require_all(name, item)),
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(item) = &mut array.items {
                require_all(name, item);
            }
        }
        _ => {}
    }
}

/// Whether null is a value of a schema.
fn is_nullable(schema: &RefOr<Schema>) -> bool {
    let has_null = |kind: &SchemaType| match kind {
        SchemaType::Type(kind) => *kind == Type::Null,
        SchemaType::Array(kinds) => kinds.contains(&Type::Null),
        SchemaType::AnyValue => true,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => has_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => has_null(&array.schema_type),
        RefOr::T(Schema::OneOf(one_of)) => one_of.items.iter().any(is_nullable),
        RefOr::T(_) | RefOr::Ref(_) => false,
    }
}

/// The places of everything that these members of the operations refer to.
fn reached(document: &Value, members: &[&str]) -> BTreeSet<String> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let mut reached = BTreeSet::new();
    for value in operations.flat_map(|(_, operation)| members.iter().filter_map(|member| operation.get(*member))) {
        collect(document, value, &mut reached);
    }
    reached
}

fn collect(document: &Value, value: &Value, reached: &mut BTreeSet<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        match member.as_str().filter(|_| name == "$ref") {
            Some(place) => {
                let target = document.pointer(place.trim_start_matches('#'));
                if reached.insert(place.to_owned())
                    && let Some(target) = target
                {
                    collect(document, target, reached);
                }
            }
            None => collect(document, member, reached),
        }
    }
    value.as_array().into_iter().flatten().for_each(|item| collect(document, item, reached));
}
