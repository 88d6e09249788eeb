//! Constants: the `object` of a response, whose text names its only value.

use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::{Components, RefOr, Schema};

/// The beginning of the text of a member that has one value.
const ALWAYS: &str = "Always `";

/// Describes the members that have one value.
pub(super) fn describe(components: &mut Components) {
    for schema in components.schemas.values_mut() {
        let RefOr::T(Schema::Object(object)) = schema else { continue };
        for member in object.properties.values_mut() {
            let RefOr::T(Schema::Object(member)) = member else { continue };
            let text = member.description.as_deref().and_then(|text| text.strip_prefix(ALWAYS));
            if let Some((value, _)) = text.and_then(|text| text.split_once('`')) {
                // utoipa has no `const`.
                member.extensions = Some(Extensions::from_iter([("const", value)]));
            }
        }
    }
}
