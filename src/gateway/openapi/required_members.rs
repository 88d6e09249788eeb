//! Required members of responses: a response has every member of its object, null or an empty list where there is no
//! value, so the document names all of them as required.

use std::collections::BTreeSet;

use serde_json::Value;
use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{OpenApi, RefOr, Schema};

/// Members that are left out of some responses: a secret that is shown once, a text for some callers only, and a line
/// that a frame of a stream may lack.
const CONDITIONAL: [&str; 3] = ["Agent.instructions", "EventFrame.id", "WebhookEndpoint.secret"];

/// Names the members of every schema that only responses use as required.
pub(super) fn describe(description: &mut OpenApi) {
    let document = serde_json::to_value(&*description).unwrap_or_default();
    let [requests, responses] = ["requestBody", "responses"].map(|member| reached(&document, member));
    for (name, schema) in description.components.iter_mut().flat_map(|components| &mut components.schemas) {
        let place = format!("#/components/schemas/{name}");
        if responses.contains(&place) && !requests.contains(&place) {
            require_all(name, schema);
        }
    }
}

fn require_all(name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            let members = object.properties.keys();
            let required = members.filter(|member| !CONDITIONAL.contains(&format!("{name}.{member}").as_str()));
            object.required = required.cloned().collect();
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

/// The places of everything that this member of the operations refers to.
fn reached(document: &Value, member: &str) -> BTreeSet<String> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let operations = paths.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let mut reached = BTreeSet::new();
    for value in operations.filter_map(|(_, operation)| operation.get(member)) {
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
