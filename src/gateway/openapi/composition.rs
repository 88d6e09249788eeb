//! Composition of schemas in the form that generators of clients understand: one object in place of `allOf`, and branches
//! of `oneOf` that have names and a discriminator. serde's tag stands beside the members of a branch in the generated
//! document; here it becomes a member of the branch, which may refuse unknown members. A union of unions is one union.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::schema::{
    AdditionalProperties, AllOf, ArrayItems, Discriminator, ObjectBuilder, OneOf, SchemaType, Type,
};
use utoipa::openapi::{Components, Object, Ref, RefOr, Schema};

type Schemas = BTreeMap<String, RefOr<Schema>>;

/// A branch of a `oneOf`.
struct Branch {
    name: String,
    object: Object,
    tags: BTreeMap<String, String>,
}

/// Rewrites the schemas.
pub(super) fn describe(components: &mut Components) {
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::OneOf(one_of)) = schema {
            join_texts(one_of);
        }
    }
    let written = components.schemas.clone();
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::AllOf(all_of)) = schema
            && let Some(objects) = combined(all_of, &written)
        {
            *schema = RefOr::T(match <[Object; 1]>::try_from(objects) {
                Ok([object]) => Schema::Object(object),
                Err(objects) => {
                    let items = objects.into_iter().map(|object| RefOr::T(Schema::Object(object))).collect();
                    Schema::OneOf(OneOf { items, description: all_of.description.clone(), ..OneOf::new() })
                }
            });
        }
    }
    let mut named = Vec::new();
    for (name, schema) in &mut components.schemas {
        if let RefOr::T(Schema::OneOf(one_of)) = schema
            && let Some(branches) = branches(name, one_of, &written)
        {
            let places = branches.iter().map(|branch| RefOr::Ref(Ref::from_schema_name(&branch.name)));
            one_of.items = places.collect();
            one_of.discriminator = discriminator(&branches);
            named.extend(branches.into_iter().map(|Branch { name, object, .. }| (name, object)));
        }
    }
    components.schemas.extend(named.into_iter().map(|(name, object)| (name, RefOr::T(Schema::Object(object)))));
    let named = components.schemas.clone();
    for schema in components.schemas.values_mut() {
        if let RefOr::T(Schema::OneOf(one_of)) = schema {
            join(one_of, &named);
        }
    }
    components.schemas.values_mut().for_each(open);
}

/// Says of objects without described members that they have any.
fn open(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            let is_object = match &object.schema_type {
                SchemaType::Type(kind) => *kind == Type::Object,
                SchemaType::Array(kinds) => kinds.contains(&Type::Object),
                SchemaType::AnyValue => false,
            };
            if is_object && object.properties.is_empty() {
                object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(true)));
            }
            object.properties.values_mut().for_each(open);
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(item) = &mut array.items {
                open(item);
            }
        }
        Schema::OneOf(one_of) => one_of.items.iter_mut().for_each(open),
        Schema::AnyOf(any_of) => any_of.items.iter_mut().for_each(open),
        Schema::AllOf(all_of) => all_of.items.iter_mut().for_each(open),
        _ => {}
    }
}

/// Makes one enumeration of the texts of a union, which have no names: a generator would give each the same one.
fn join_texts(one_of: &mut OneOf) {
    let (mut values, mut meanings) = (Vec::new(), Vec::new());
    one_of.items.retain(|item| {
        let RefOr::T(Schema::Object(object)) = item else { return true };
        let Some([Value::String(value)]) = object.enum_values.as_deref() else { return true };
        meanings.push(format!("`{value}`: {}", object.description.as_deref().unwrap_or_default()));
        values.push(value.clone());
        false
    });
    if !values.is_empty() {
        let texts = ObjectBuilder::new().schema_type(Type::String).description(Some(meanings.join("\n")));
        one_of.items.insert(0, texts.enum_values(Some(values)).build().into());
    }
}

/// Replaces unions in a union by their branches, if one member tells all of them apart.
fn join(one_of: &mut OneOf, schemas: &Schemas) {
    let union = |item: &RefOr<Schema>| match item {
        RefOr::Ref(reference) => match schemas.get(schema_name(reference)?)? {
            RefOr::T(Schema::OneOf(inner)) => Some((inner.items.clone(), inner.discriminator.clone()?)),
            RefOr::Ref(_) | RefOr::T(_) => None,
        },
        RefOr::T(_) => None,
    };
    let Some(unions) = one_of.items.iter().map(union).collect::<Option<Vec<_>>>() else { return };
    let [(_, first), ..] = unions.as_slice() else { return };
    let mut whole = Discriminator::new(first.property_name.clone());
    if unions.iter().all(|(_, other)| other.property_name == whole.property_name) {
        one_of.items = unions.iter().flat_map(|(items, _)| items.clone()).collect();
        whole.mapping = unions.into_iter().flat_map(|(_, inner)| inner.mapping).collect();
        one_of.discriminator = Some(whole);
    }
}

/// The objects that have the members of all parts: one for each branch of a part that is a union. `None` if a part is not made
/// of objects.
fn combined(all_of: &AllOf, schemas: &Schemas) -> Option<Vec<Object>> {
    let mut wholes = vec![Object::default()];
    for item in &all_of.items {
        let parts = objects(item, schemas)?;
        wholes = wholes.iter().flat_map(|whole| parts.iter().map(|part| merged(whole, part))).collect();
    }
    for whole in &mut wholes {
        whole.schema_type = SchemaType::Type(Type::Object);
    }
    if let [whole] = wholes.as_mut_slice() {
        whole.description = all_of.description.clone().or_else(|| whole.description.take());
    }
    Some(wholes)
}

fn merged(whole: &Object, part: &Object) -> Object {
    let (mut whole, part) = (whole.clone(), part.clone());
    whole.properties.extend(part.properties);
    whole.required.extend(part.required);
    whole.additional_properties = whole.additional_properties.or(part.additional_properties);
    whole.description = part.description.or(whole.description);
    whole
}

/// The objects of a schema: itself, or its branches.
fn objects(schema: &RefOr<Schema>, schemas: &Schemas) -> Option<Vec<Object>> {
    match schema {
        RefOr::Ref(reference) => objects(schemas.get(schema_name(reference)?)?, schemas),
        RefOr::T(Schema::Object(object)) => Some(vec![object.clone()]),
        RefOr::T(Schema::AllOf(all_of)) => combined(all_of, schemas),
        RefOr::T(Schema::OneOf(one_of)) => {
            let branches = one_of.items.iter().map(|item| objects(item, schemas));
            branches.collect::<Option<Vec<_>>>().map(|branches| branches.concat())
        }
        RefOr::T(_) => None,
    }
}

/// The object that a schema is.
fn object(schema: &RefOr<Schema>, schemas: &Schemas) -> Option<Object> {
    <[Object; 1]>::try_from(objects(schema, schemas)?).ok().map(|[object]| object)
}

fn schema_name(reference: &Ref) -> Option<&str> {
    reference.ref_location.rsplit('/').next()
}

/// The branches with their names. `None` if a branch is no object with a tag.
fn branches(parent: &str, one_of: &OneOf, schemas: &Schemas) -> Option<Vec<Branch>> {
    let own_names: Vec<Option<&str>> = one_of.items.iter().map(own_name).collect();
    let branches = one_of.items.iter().zip(&own_names).map(|(item, own)| {
        let object = object(item, schemas)?;
        let tags = tags(&object);
        // Branches with the same members are told apart by their tag alone, so each has a schema of its own.
        let own = own.filter(|name| own_names.iter().flatten().filter(|other| *other == name).count() == 1);
        let name = match own {
            Some(own) => (*own).to_owned(),
            None => format!("{parent}{}", camel_case(tags.values().next()?)),
        };
        Some(Branch { name, object, tags })
    });
    branches.collect::<Option<Vec<Branch>>>().filter(|branches| discriminator(branches).is_some())
}

/// The name of the schema that a branch refers to.
fn own_name(item: &RefOr<Schema>) -> Option<&str> {
    match item {
        RefOr::Ref(reference) => schema_name(reference),
        RefOr::T(Schema::AllOf(all_of)) => match all_of.items.as_slice() {
            [RefOr::Ref(reference), RefOr::T(Schema::Object(_))] => schema_name(reference),
            _ => None,
        },
        RefOr::T(_) => None,
    }
}

/// The members of an object that have one value, with it.
fn tags(object: &Object) -> BTreeMap<String, String> {
    let tag = |(name, schema): (&String, &RefOr<Schema>)| {
        let RefOr::T(Schema::Object(member)) = schema else { return None };
        match member.enum_values.as_deref() {
            Some([Value::String(value)]) => Some((name.clone(), value.clone())),
            Some(_) | None => None,
        }
    };
    object.properties.iter().filter_map(tag).collect()
}

/// The member that tells the branches apart.
fn discriminator(branches: &[Branch]) -> Option<Discriminator> {
    let mut members = branches.first()?.tags.keys();
    members.find_map(|member| {
        let value = |branch: &Branch| Some((branch.tags.get(member)?.clone(), place(&branch.name)));
        let mapping: BTreeMap<String, String> = branches.iter().map(value).collect::<Option<_>>()?;
        (mapping.len() == branches.len()).then(|| Discriminator { mapping, ..Discriminator::new(member) })
    })
}

fn place(name: &str) -> String {
    Ref::from_schema_name(name).ref_location
}

fn camel_case(words: &str) -> String {
    let capitalized = |word: &str| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    words.split(['_', '.']).map(capitalized).collect()
}
