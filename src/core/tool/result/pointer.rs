//! JSON pointers (RFC 6901) as models use them. The error for a pointer that leads nowhere states how far it led and
//! which values are there, so that the model can correct it. A value that is too large is answered with an outline.

use serde_json::Value;

use crate::json::pointer_token;

/// The maximum number of members named in an answer.
const NAMED: usize = 40;
/// The maximum length of a name.
const NAME_CHARS: usize = 80;

/// The value a pointer leads to, or how far it led.
pub(in crate::tool) fn find<'a>(root: &'a Value, pointer: &str) -> Result<&'a Value, String> {
    if pointer.is_empty() {
        return Ok(root);
    }
    let Some(path) = pointer.strip_prefix('/') else {
        return Err(format!("`{}` is no JSON pointer: one is empty or begins with `/`", shortened(pointer)));
    };
    let (mut here, mut led) = (root, String::new());
    for token in path.split('/') {
        let name = token.replace("~1", "/").replace("~0", "~");
        let next = match here {
            Value::Object(members) => members.get(&name),
            Value::Array(items) => index(&name).and_then(|index| items.get(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        let Some(next) = next else {
            let place = if led.is_empty() { "the root".to_owned() } else { format!("`{}`", shortened(&led)) };
            return Err(format!("`{}` leads nowhere: {place} is {}", shortened(pointer), described(here)));
        };
        led.push('/');
        led.push_str(token);
        here = next;
    }
    Ok(here)
}

/// The outline of a value: each member with its pointer token and size, in at most `room` bytes.
pub(super) fn outline(value: &Value, room: usize) -> String {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, member)| (pointer_token(name), member)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let (mut text, all) = (String::new(), members.len());
    for (listed, (token, member)) in members.into_iter().enumerate() {
        let line = format!("/{}: {}, {} bytes\n", shortened(&token), kind(member), member.to_string().len());
        let rest = format!("and {} more\n", all - listed);
        if text.len() + line.len() + rest.len() > room {
            return text + &rest;
        }
        text.push_str(&line);
    }
    text
}

/// The kind of a value, with its members.
fn described(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "an object without members".into(),
        Value::Object(members) => {
            let names: Vec<String> = members.keys().take(NAMED).map(|name| format!("`{}`", shortened(name))).collect();
            let more = members.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("an object with the members {}{more}", names.join(", "))
        }
        Value::Array(items) if items.is_empty() => "an array without items".into(),
        Value::Array(items) => format!("an array with the items 0 to {}", items.len() - 1),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            format!("{}, with nothing in it", kind(value))
        }
    }
}

/// The kind of a value, with its size.
pub(super) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Number(_) => "a number".into(),
        Value::String(_) => "a string".into(),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
    }
}

fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()));
    token.parse().ok().filter(|_| is_plain)
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pointer_leads_where_rfc_6901_says() {
        let root = json!({"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, " ": 7});
        for (pointer, value) in [
            ("", root.clone()),
            ("/foo", json!(["bar", "baz"])),
            ("/foo/0", json!("bar")),
            ("/", json!(0)),
            ("/a~1b", json!(1)),
            ("/m~0n", json!(8)),
            ("/ ", json!(7)),
        ] {
            assert_eq!(find(&root, pointer), Ok(&value), "{pointer}");
        }
    }

    #[test]
    fn a_wrong_pointer_is_answered_with_how_far_it_led() {
        let root = json!({"orders": [{"id": 7, "lines": []}], "total": 1});
        for (pointer, complaint) in [
            ("/order", "`/order` leads nowhere: the root is an object with the members `orders`, `total`"),
            ("/orders/1", "`/orders/1` leads nowhere: `/orders` is an array with the items 0 to 0"),
            ("/orders/00", "`/orders/00` leads nowhere: `/orders` is an array with the items 0 to 0"),
            ("/orders/0/lines/0", "`/orders/0/lines/0` leads nowhere: `/orders/0/lines` is an array without items"),
            ("/total/x", "`/total/x` leads nowhere: `/total` is a number, with nothing in it"),
            ("total", "`total` is no JSON pointer: one is empty or begins with `/`"),
        ] {
            assert_eq!(find(&root, pointer), Err(complaint.to_owned()));
        }
    }

    #[test]
    fn an_outline_names_members_and_counts_the_omitted_ones() {
        let value = json!({"a/b": [1, 2], "c": "x", "d": {}});
        assert_eq!(
            outline(&value, 1000),
            "/a~1b: an array of 2, 5 bytes\n/c: a string, 3 bytes\n/d: an object of 0, 2 bytes\n"
        );
        assert_eq!(outline(&value, 60), "/a~1b: an array of 2, 5 bytes\nand 2 more\n");
    }
}
