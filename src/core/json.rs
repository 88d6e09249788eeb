//! Canonical JSON (RFC 8785) and its hash: the only definition of equality of two argument objects or two definitions.
//! Also the tokens of JSON pointers.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The maximum nesting of an external value. JSON readers, ours among them, stop at 128 levels, and the event that
/// records a value nests it some levels deeper. An event that can be written but not read would end its run.
pub const MAX_DEPTH: usize = 100;

/// Whether arrays and objects are nested more than that many levels deep.
pub fn is_deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper_than(member, levels - 1)),
    }
}

/// SHA-256 of the canonical form, as `sha256:` and lower-case hex.
pub fn hash(value: &Value) -> String {
    format!("sha256:{}", hex(&Sha256::digest(canonical(value).as_bytes())))
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first integer of a JSON text that is not read exactly: it needs more than 64 bits, and no double has its value.
pub fn inexact_integer(text: &str) -> Option<&str> {
    let is_of_number = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let (mut at, mut is_string) = (0, false);
    while let Some(byte) = text.as_bytes().get(at) {
        let length = match byte {
            b'\\' => 2,
            b'-' | b'0'..=b'9' if !is_string => text.as_bytes().iter().skip(at).take_while(is_of_number).count(),
            _ => 1,
        };
        is_string ^= *byte == b'"';
        if length > 2
            && let Some(number) = text.get(at..at + length).filter(|number| is_inexact(number))
        {
            return Some(number);
        }
        at += length;
    }
    None
}

fn is_inexact(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
        && number.parse::<i64>().is_err()
        && number.parse::<u64>().is_err()
        && number.parse::<f64>().is_ok_and(|double| format!("{double:.0}") != number)
}

/// The name of a member as a token of a JSON pointer (RFC 6901).
pub fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The canonical text of a value: no white space, members sorted by UTF-16 code units, numbers as ECMAScript prints
/// them.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&canonical_number(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write(member, out);
            }
            out.push('}');
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

/// ECMAScript's `Number::toString`. Integers beyond 2^53 keep their digits: without them two different arguments would
/// compare as equal.
fn canonical_number(number: &serde_json::Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    if float == 0.0 {
        return "0".into();
    }
    let magnitude = float.abs();
    if (1e-6..1e21).contains(&magnitude) {
        return format!("{float}");
    }
    let scientific = format!("{float:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
        _ => scientific,
    }
}

/// Deserializes a present member as it is: without this, serde reads an explicit `null` as an absent member.
/// For `#[serde(default, deserialize_with)]`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_sorted_and_numbers_printed_as_in_ecmascript() {
        let value = json!({"b": [1.0, 1e21, 1e-7, -0.0, 4.5], "a": "é\n", "\u{20ac}": null});
        assert_eq!(canonical(&value), "{\"a\":\"é\\n\",\"b\":[1,1e+21,1e-7,0,4.5],\"€\":null}");
    }

    #[test]
    fn the_hash_ignores_member_order_and_sees_every_digit() {
        assert_eq!(hash(&json!({"a": 1, "b": 2})), hash(&json!({"b": 2, "a": 1})));
        assert_ne!(hash(&json!(9007199254740993u64)), hash(&json!(9007199254740992u64)));
    }
}
