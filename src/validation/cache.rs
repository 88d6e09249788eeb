//! Schemas that were compiled before.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jsonschema::Validator;
use serde_json::Value;

use super::schema::{self, SchemaError};

/// Servers come and go, definitions change: beyond this many the cache starts anew. Compiling again costs some
/// 30 microseconds a schema.
const CAPACITY: usize = 2048;
/// Neither are more kept than those whose patterns may take so much memory: schemas come from whoever may start a run.
const MEMORY: usize = 512 << 20;

/// Compiled schemas by key. An entry remembers its schema, so a key that is used for another one never lends it a
/// validator that is not its own.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<String, Entry>,
    memory: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    schema: Arc<Value>,
    compiled: Result<Arc<Validator>, SchemaError>,
}

impl Cache {
    /// The compiled form of the schema. What could not be compiled is remembered as well.
    pub(super) fn compiled(&self, key: &str, schema: &Value) -> Result<Arc<Validator>, SchemaError> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = kept.entries.get(key).filter(|entry| *entry.schema == *schema) {
            return entry.compiled.clone();
        }
        drop(kept);
        let compiled = schema::compile(schema).map(Arc::new);
        if let Err(SchemaError::TooLarge { .. } | SchemaError::TooDeep) = &compiled {
            return compiled;
        }
        let entry = Entry { schema: Arc::new(schema.clone()), compiled: compiled.clone() };
        let memory = schema::allowance(schema);
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.entries.len() >= CAPACITY || kept.memory + memory > MEMORY {
            *kept = Kept::default();
        }
        kept.memory += memory;
        kept.entries.insert(key.to_owned(), entry);
        compiled
    }
}
