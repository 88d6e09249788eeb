//! Schemas that were compiled before.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jsonschema::Validator;
use serde_json::Value;

use super::schema::{self, SchemaError};

/// Servers come and go, definitions change: beyond this many the cache starts anew. Compiling again costs some
/// 30 microseconds a schema.
const CAPACITY: usize = 2048;

/// Compiled schemas by key. An entry remembers its schema, so a key that is used for another one never lends it a
/// validator that is not its own.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: RwLock<HashMap<String, Entry>>,
}

#[derive(Clone, Debug)]
struct Entry {
    schema: Arc<Value>,
    compiled: Result<Arc<Validator>, SchemaError>,
}

impl Cache {
    /// The compiled form of the schema. What could not be compiled is remembered as well.
    pub(super) fn compiled(&self, key: &str, schema: &Value) -> Result<Arc<Validator>, SchemaError> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(key).filter(|entry| *entry.schema == *schema) {
            return entry.compiled.clone();
        }
        drop(entries);
        let compiled = schema::compile(schema).map(Arc::new);
        if let Err(SchemaError::TooLarge { .. } | SchemaError::TooDeep) = &compiled {
            return compiled;
        }
        let entry = Entry { schema: Arc::new(schema.clone()), compiled: compiled.clone() };
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CAPACITY {
            entries.clear();
        }
        entries.insert(key.to_owned(), entry);
        compiled
    }
}
