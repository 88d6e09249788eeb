//! Cache of compiled schemas.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::schema::{self, CompiledSchema, SchemaError};

/// The most entries; the cache is cleared when it is full, because servers and definitions change. To compile a schema
/// again takes about 30 microseconds.
const CAPACITY: usize = 2048;
/// The most memory that the patterns of cached schemas may use: any caller that may start a run supplies schemas.
const MEMORY: usize = 512 << 20;

/// Compiled schemas by key. An entry keeps its schema, so a key that is reused for another schema never returns the
/// wrong validator.
#[derive(Debug, Default)]
pub(super) struct Cache {
    cached: RwLock<CachedSchemas>,
}

#[derive(Debug, Default)]
struct CachedSchemas {
    entries: HashMap<String, Entry>,
    memory: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    schema: Arc<Value>,
    compiled: Result<Arc<CompiledSchema>, SchemaError>,
}

impl Cache {
    /// The compiled form of the schema. Most failures are cached as well.
    pub(super) fn compiled(&self, key: &str, schema: &Value) -> Result<Arc<CompiledSchema>, SchemaError> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = cached.entries.get(key).filter(|entry| *entry.schema == *schema) {
            return entry.compiled.clone();
        }
        drop(cached);
        let compiled = schema::compile(schema).map(Arc::new);
        if let Err(SchemaError::TooLarge { .. } | SchemaError::TooDeep) = &compiled {
            return compiled;
        }
        let entry = Entry { schema: Arc::new(schema.clone()), compiled: compiled.clone() };
        let memory = schema::allowance(schema);
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        if cached.entries.len() >= CAPACITY || cached.memory + memory > MEMORY {
            *cached = CachedSchemas::default();
        }
        cached.memory += memory;
        cached.entries.insert(key.to_owned(), entry);
        compiled
    }
}
