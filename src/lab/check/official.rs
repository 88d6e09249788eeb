//! Official JSON Schemas of MCP: validation of each message against the schema of its revision.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};

use super::revision::Revision;

/// The most violations that one message reports.
const MAX_VIOLATIONS: usize = 5;
/// Messages above this size are not validated: the library collects every violation first.
const MAX_BYTES: usize = 4 << 20;

/// The results of requests, by method.
const RESULTS: [(&str, &str); 12] = [
    ("initialize", "InitializeResult"),
    ("server/discover", "DiscoverResult"),
    ("tools/list", "ListToolsResult"),
    ("tools/call", "CallToolResult"),
    ("prompts/list", "ListPromptsResult"),
    ("prompts/get", "GetPromptResult"),
    ("resources/list", "ListResourcesResult"),
    ("resources/templates/list", "ListResourceTemplatesResult"),
    ("resources/read", "ReadResourceResult"),
    ("completion/complete", "CompleteResult"),
    ("ping", "EmptyResult"),
    ("logging/setLevel", "EmptyResult"),
];

/// A place of a message that its schema forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// JSON pointer into the value.
    pub(super) pointer: String,
    /// The reason, in words.
    pub(super) message: String,
}

/// The schema of a revision.
pub(super) struct Official {
    schema: Value,
    /// `$defs`, or `definitions` in earlier dialects.
    definitions: &'static str,
    compiled: Mutex<HashMap<String, Option<Arc<Validator>>>>,
}

impl Official {
    /// The schema of this revision.
    pub(super) fn of(revision: Revision) -> &'static Self {
        static ALL: LazyLock<Vec<Official>> = LazyLock::new(|| Revision::ALL.into_iter().map(Official::read).collect());
        static NONE: LazyLock<Official> = LazyLock::new(|| Official::new(Value::Null));
        ALL.get(revision as usize).unwrap_or(&NONE)
    }

    fn read(revision: Revision) -> Self {
        let text = match revision {
            Revision::V2024November => include_str!("schemas/2024-11-05.json"),
            Revision::V2025March => include_str!("schemas/2025-03-26.json"),
            Revision::V2025June => include_str!("schemas/2025-06-18.json"),
            Revision::V2025November => include_str!("schemas/2025-11-25.json"),
            Revision::V2026July => include_str!("schemas/2026-07-28.json"),
        };
        Self::new(serde_json::from_str(text).unwrap_or_default())
    }

    fn new(schema: Value) -> Self {
        let definitions = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        Self { schema, definitions, compiled: Mutex::default() }
    }

    /// Whether the revision has this type.
    pub(super) fn has(&self, definition: &str) -> bool {
        self.definition(definition).is_some()
    }

    fn definition(&self, name: &str) -> Option<&Value> {
        self.schema.get(self.definitions)?.get(name)
    }

    /// The type of the notifications or requests of this method.
    pub(super) fn type_of_method(&self, method: &str) -> Option<&str> {
        let named =
            |definition: &&Value| definition.pointer("/properties/method/const").is_some_and(|name| name == method);
        let all = self.schema.get(self.definitions)?.as_object()?;
        all.iter().find(|(_, definition)| named(definition)).map(|(name, _)| name.as_str())
    }

    /// The type of the result of this method.
    pub(super) fn type_of_result(method: &str) -> &'static str {
        RESULTS.iter().find(|(known, _)| *known == method).map_or("Result", |(_, definition)| definition)
    }

    /// The violations of a value as this type; none for a type that the revision does not have.
    pub(super) fn violations(&self, definition: &str, value: &Value) -> Vec<Violation> {
        if value.to_string().len() > MAX_BYTES {
            return Vec::new();
        }
        let Some(validator) = self.validator(definition) else { return Vec::new() };
        let mut found: Vec<Violation> =
            validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| violation(&error)).collect();
        found.dedup();
        found
    }

    fn validator(&self, definition: &str) -> Option<Arc<Validator>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.entry(definition.to_owned()).or_insert_with(|| self.compile(definition).map(Arc::new)).clone()
    }

    fn compile(&self, definition: &str) -> Option<Validator> {
        self.definition(definition)?;
        let mut root = Map::new();
        root.insert("$schema".into(), self.schema.get("$schema")?.clone());
        root.insert("$ref".into(), json!(format!("#/{}/{definition}", self.definitions)));
        root.insert(self.definitions.into(), self.schema.get(self.definitions)?.clone());
        jsonschema::options().offline().should_validate_formats(false).build(&Value::Object(root)).ok()
    }
}

fn violation(error: &ValidationError<'_>) -> Violation {
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind()
        && let Some(inner) = closest(context)
    {
        return violation(inner);
    }
    Violation {
        pointer: error.instance_path().as_str().to_owned(),
        message: error.masked_with("the value").to_string(),
    }
}

/// The error of the alternative that fits best: the one without an error at a member that tells alternatives apart.
fn closest<'a, 'e>(branches: &'a [Vec<ValidationError<'e>>]) -> Option<&'a ValidationError<'e>> {
    let is_other = |errors: &&Vec<ValidationError<'_>>| {
        let mut places = errors.iter().map(|error| error.instance_path().as_str());
        places.any(|place| ["/type", "/method", "/resultType"].iter().any(|end| place.ends_with(end)))
    };
    branches.iter().filter(|errors| !is_other(errors)).min_by_key(|errors| errors.len())?.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_has_the_types_that_the_check_uses() {
        for revision in Revision::ALL {
            let official = Official::of(revision);
            for name in ["ListToolsResult", "CallToolResult", "Tool", "TextContent", "EmbeddedResource"] {
                assert!(official.validator(name).is_some(), "{revision} {name}");
            }
            assert_eq!(official.type_of_method("notifications/progress"), Some("ProgressNotification"), "{revision}");
            assert_eq!(official.has("DiscoverResult"), revision.is_modern());
        }
    }

    #[test]
    fn a_violation_names_its_place() {
        let official = Official::of(Revision::V2025November);
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": "yes"}},
            "serverInfo": {"name": "x", "version": "1"}});
        let found = official.violations("InitializeResult", &result);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pointer, "/capabilities/tools/listChanged");
        assert!(official.violations("TextContent", &json!({"type": "text", "text": "x"})).is_empty());
    }
}
