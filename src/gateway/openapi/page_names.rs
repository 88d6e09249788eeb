//! Names of the schemas of list pages: `RunPage` in place of the generated `Page_RunSummary`. A page refers to the schema of its
//! items, which the generated document repeats in each page.

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::ArrayItems;
use utoipa::openapi::{OpenApi, Ref, RefOr, Schema};

use super::operations::operations;

/// The prefix of the generated names.
const GENERATED: &str = "Page_";
/// The suffix of items that are shorter than the resource itself.
const SUMMARY: &str = "Summary";

/// Renames the pages, and the references of responses to them.
pub(super) fn describe(description: &mut OpenApi) {
    for item in description.paths.paths.values_mut() {
        operations(item).for_each(|(_, operation)| rename_references(operation));
    }
    let Some(components) = &mut description.components else { return };
    for (generated, mut schema) in std::mem::take(&mut components.schemas) {
        let Some(name) = generated.strip_prefix(GENERATED) else {
            components.schemas.insert(generated, schema);
            continue;
        };
        if let RefOr::T(Schema::Object(object)) = &mut schema
            && let Some(RefOr::T(Schema::Array(data))) = object.properties.get_mut("data")
            && let ArrayItems::RefOrSchema(item) = &mut data.items
        {
            let item = std::mem::replace(&mut **item, RefOr::Ref(Ref::from_schema_name(name)));
            components.schemas.entry(name.to_owned()).or_insert(item);
        }
        components.schemas.insert(page_name(name), schema);
    }
}

fn rename_references(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        for content in response.content.values_mut() {
            if let RefOr::T(content) = content
                && let Some(RefOr::Ref(page)) = &mut content.schema
                && let Some((_, item)) = page.ref_location.split_once(GENERATED)
            {
                *page = Ref::from_schema_name(page_name(item));
            }
        }
    }
}

fn page_name(item: &str) -> String {
    format!("{}Page", item.strip_suffix(SUMMARY).unwrap_or(item))
}
