//! Arguments as values of the expression language. Numbers are converted here: whole numbers to `int` and all others to
//! `double`, so that `args.amount > 100` never meets the `uint` that the library would make of `150`.

use std::sync::Arc;

use cel::Value as Cel;
use cel::objects::{Key, Map as CelMap};
use serde_json::{Map, Number, Value};

use super::error::ConditionError;

/// The most that a condition examines, in bytes of text and names; a number counts as eight.
pub(super) const MAX_ARGUMENT_BYTES: usize = 1024 * 1024;

const SCALAR_BYTES: usize = 8;

/// Converted arguments and their size.
pub(super) struct CelArguments {
    pub(super) value: Cel,
    /// Bytes of text, names and scalars.
    pub(super) bytes: usize,
    /// Items of the longest list, or members of the largest object.
    pub(super) longest: usize,
}

#[derive(Default)]
struct Size {
    bytes: usize,
    longest: usize,
}

/// Converts the arguments of a call, unless they are too large.
pub(super) fn convert(arguments: &Map<String, Value>) -> Result<CelArguments, ConditionError> {
    let mut size = Size::default();
    let value = size.object(arguments)?;
    Ok(CelArguments { value, bytes: size.bytes, longest: size.longest })
}

impl Size {
    fn value(&mut self, value: &Value) -> Result<Cel, ConditionError> {
        Ok(match value {
            Value::Null => self.counted(SCALAR_BYTES, Cel::Null)?,
            Value::Bool(bool) => self.counted(SCALAR_BYTES, Cel::Bool(*bool))?,
            Value::Number(number) => self.counted(SCALAR_BYTES, converted(number))?,
            Value::String(text) => {
                self.count(text.len() + SCALAR_BYTES)?;
                Cel::String(Arc::new(text.clone()))
            }
            Value::Array(items) => {
                self.longest = self.longest.max(items.len());
                self.count(SCALAR_BYTES)?;
                Cel::List(Arc::new(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?))
            }
            Value::Object(members) => self.object(members)?,
        })
    }

    fn object(&mut self, members: &Map<String, Value>) -> Result<Cel, ConditionError> {
        self.longest = self.longest.max(members.len());
        self.count(SCALAR_BYTES)?;
        let member = |(name, value): (&String, &Value)| {
            self.count(name.len())?;
            Ok((Key::String(Arc::new(name.clone())), self.value(value)?))
        };
        Ok(Cel::Map(CelMap { map: Arc::new(members.iter().map(member).collect::<Result<_, ConditionError>>()?) }))
    }

    fn counted(&mut self, bytes: usize, value: Cel) -> Result<Cel, ConditionError> {
        self.count(bytes).map(|()| value)
    }

    fn count(&mut self, bytes: usize) -> Result<(), ConditionError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= MAX_ARGUMENT_BYTES {
            return Ok(());
        }
        Err(ConditionError(format!("the values are larger than {} KiB", MAX_ARGUMENT_BYTES / 1024)))
    }
}

/// A whole number that fits is an `int`, `1.0` stays a `double`; the two compare by value.
fn converted(number: &Number) -> Cel {
    match number.as_i64() {
        Some(whole) => Cel::Int(whole),
        None => number.as_f64().map_or(Cel::Null, Cel::Float),
    }
}
