//! Branches of request bodies with a `type`: serde's tag stands beside the members of a branch, whose own schema refuses
//! unknown members, and with them the tag. The tag becomes a member of the branch.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AdditionalProperties, OneOf};
use utoipa::openapi::{Components, Object, Ref, RefOr, Schema};

/// Moves each tag into its branch.
pub(super) fn describe(components: &mut Components) {
    let closed: BTreeMap<String, Object> = components.schemas.iter().filter_map(closed).collect();
    let mut tagged = Vec::new();
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::OneOf(one_of)) = schema {
            describe_branches(one_of, &closed, &mut tagged);
        }
    }
    components.schemas.extend(tagged);
}

fn describe_branches(one_of: &mut OneOf, closed: &BTreeMap<String, Object>, tagged: &mut Vec<(String, RefOr<Schema>)>) {
    let names: Vec<Option<String>> = one_of.items.iter().map(|item| Some(name_and_tag(item)?.0)).collect();
    for item in &mut one_of.items {
        let Some((name, tag)) = name_and_tag(item) else { continue };
        let Some(branch) = closed.get(&name) else { continue };
        let mut branch = branch.clone();
        branch.properties.extend(tag.properties);
        branch.required.extend(tag.required);
        // Branches with the same members are told apart by their tag alone, so each has a schema of its own.
        if names.iter().flatten().filter(|other| **other == name).count() > 1 {
            *item = RefOr::T(Schema::Object(branch));
        } else {
            *item = RefOr::Ref(Ref::from_schema_name(&name));
            tagged.push((name, RefOr::T(Schema::Object(branch))));
        }
    }
}

/// An object that refuses unknown members.
fn closed((name, schema): (&String, &RefOr<Schema>)) -> Option<(String, Object)> {
    let RefOr::T(Schema::Object(object)) = schema else { return None };
    let is_closed = matches!(object.additional_properties.as_deref(), Some(AdditionalProperties::FreeForm(false)));
    is_closed.then(|| (name.clone(), object.clone()))
}

/// The schema that a branch refers to, and the tag beside it.
fn name_and_tag(item: &RefOr<Schema>) -> Option<(String, Object)> {
    let RefOr::T(Schema::AllOf(all_of)) = item else { return None };
    let [RefOr::Ref(branch), RefOr::T(Schema::Object(tag))] = all_of.items.as_slice() else { return None };
    Some((branch.ref_location.rsplit('/').next()?.to_owned(), tag.clone()))
}
