//! Lists of the server: all pages, twice, with an unknown cursor, and against the declared capabilities.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::check::context::{Context, Session};
use crate::check::finding::one_line;
use crate::check::rules::{protocol, wire};
use crate::check::wire::answer::{NoAnswer, seconds};

/// The most pages; a list with more has no end.
const MAX_PAGES: usize = 200;
const METHOD_NOT_FOUND: i64 = -32601;

/// The lists besides tools: method, member of the result, and capability.
const OTHERS: [(&str, &str, &str); 3] = [
    ("prompts/list", "prompts", "prompts"),
    ("resources/list", "resources", "resources"),
    ("resources/templates/list", "resourceTemplates", "resources"),
];

/// The tools of the server, as it lists them.
#[derive(Clone, Debug, Default)]
pub(in crate::check) struct ToolList {
    pub(in crate::check) tools: Vec<Value>,
    /// The time of the slowest page.
    pub(in crate::check) took: Duration,
    /// Whether a request was answered.
    pub(in crate::check) is_listed: bool,
}

impl ToolList {
    /// The names, in the order of the list.
    pub(in crate::check) fn names(&self) -> Vec<&str> {
        self.tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect()
    }
}

/// Lists the tools twice.
pub(in crate::check) async fn tools(context: &Context, session: &Session) -> ToolList {
    let declares = session.capabilities().get("tools").is_some();
    let first = list_tools(context, session, declares).await;
    if !first.is_listed {
        return first;
    }
    if !declares && !first.tools.is_empty() {
        let text = format!("tools/list has {} tools, and the capabilities lack `tools`", first.tools.len());
        context.findings.add(session.finding(&protocol::CAPABILITY_UNDECLARED, text).at("/capabilities/tools"));
    }
    if first.took > context.limits.slow_list {
        context.findings.add(session.finding(&protocol::SLOW_LIST, format!("tools/list took {}", seconds(first.took))));
    }
    if context.findings.has(&protocol::LIST_ENDLESS) {
        return first;
    }
    let second = list_tools(context, session, declares).await;
    compare(context, session, &first, &second);
    first
}

fn compare(context: &Context, session: &Session, first: &ToolList, second: &ToolList) {
    if !second.is_listed || first.names() == second.names() {
        return;
    }
    let (mut one, mut other) = (first.names(), second.names());
    let at = one.iter().zip(&other).position(|(one, other)| one != other).unwrap_or(one.len().min(other.len()));
    let place = |names: &[&str]| names.get(at).map_or("no tool".to_owned(), |name| format!("`{}`", one_line(name, 60)));
    let (here, there) = (place(&one), place(&other));
    one.sort_unstable();
    other.sort_unstable();
    let what = if one == other { "the order differs" } else { "the tools differ" };
    let text =
        format!("two lists in a row are not the same: {what}; at position {} first {here}, then {there}", at + 1);
    context.findings.add(session.finding(&protocol::LIST_UNSTABLE, text));
}

async fn list_tools(context: &Context, session: &Session, declares: bool) -> ToolList {
    let mut list = ToolList::default();
    let (mut cursor, mut seen) = (Value::Null, HashSet::new());
    for page in 0..MAX_PAGES {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        // A slow list is reported as slow and not as missing.
        let limit = context.limits.request.max(context.limits.slow_list * 4);
        let answered = session.connection.request_within("tools/list", params, limit).await;
        let Some(result) = page_of(context, session, answered, declares, page, &mut list) else { return list };
        list.is_listed = true;
        match result.get("tools") {
            Some(Value::Array(tools)) => list.tools.extend(tools.iter().cloned()),
            Some(_) | None => {
                let text = "the result of tools/list has no array `tools`";
                context.findings.add(session.finding(&protocol::LIST_FAILED, text).at("/tools"));
                return list;
            }
        }
        match result.get("nextCursor") {
            None | Some(Value::Null) => return list,
            Some(Value::String(next)) if next.is_empty() && !session.revision.is_modern() => return list,
            Some(next) => {
                if !seen.insert(next.to_string()) {
                    let text = format!("page {} has the cursor {} again", page + 1, one_line(&next.to_string(), 80));
                    context.findings.add(session.finding(&protocol::LIST_ENDLESS, text).at("/nextCursor"));
                    return list;
                }
                cursor = next.clone();
            }
        }
    }
    let text = format!("tools/list has more than {MAX_PAGES} pages");
    context.findings.add(session.finding(&protocol::LIST_ENDLESS, text).at("/nextCursor"));
    list
}

/// The result of a page, or a finding.
fn page_of(
    context: &Context,
    session: &Session,
    answered: Result<crate::check::wire::answer::Answer, NoAnswer>,
    declares: bool,
    page: usize,
    list: &mut ToolList,
) -> Option<Value> {
    let found = match answered {
        Ok(answer) => {
            list.took = list.took.max(answer.took);
            match answer.outcome {
                Ok(result) => return Some(result),
                Err(_) if !declares && page == 0 => return None,
                Err(error) if error.code == METHOD_NOT_FOUND => session.finding(
                    &protocol::CAPABILITY_UNIMPLEMENTED,
                    "the capability `tools` is declared, and tools/list is an unknown method",
                ),
                Err(error) => session.finding(
                    &protocol::LIST_FAILED,
                    format!("tools/list was answered with the error {}: {}", error.code, one_line(&error.message, 160)),
                ),
            }
        }
        Err(why) if why.is_closed() => session.finding(&wire::SERVER_CRASHED, format!("tools/list {}", why.in_words())),
        Err(_) if !declares => return None,
        Err(why) => session.finding(&protocol::LIST_FAILED, format!("tools/list {}", why.in_words())),
    };
    context.findings.add(found);
    None
}

/// Lists prompts and resources, and compares them with the capabilities.
pub(in crate::check) async fn others(context: &Context, session: &Session) {
    for (method, member, capability) in OTHERS {
        if session.has_ended() {
            return;
        }
        let declares = session.capabilities().get(capability).is_some();
        let answer = match session.connection.request(method, json!({})).await {
            Ok(answer) => answer,
            Err(why) => {
                if why.is_closed() {
                    let text = format!("{method} {}", why.in_words());
                    context.findings.add(session.finding(&wire::SERVER_CRASHED, text));
                } else if declares {
                    let text = format!("`{capability}` is declared, and {method} has no answer");
                    context.findings.add(session.finding(&protocol::CAPABILITY_UNIMPLEMENTED, text).at(method));
                }
                continue;
            }
        };
        let found = match &answer.outcome {
            Err(error) if declares && error.code == METHOD_NOT_FOUND && member != "resourceTemplates" => {
                let text = format!("the capability `{capability}` is declared, and {method} is an unknown method");
                session.finding(&protocol::CAPABILITY_UNIMPLEMENTED, text).at(method)
            }
            Ok(result)
                if !declares && result.get(member).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) =>
            {
                let text = format!("{method} has entries, and the capabilities lack `{capability}`");
                session.finding(&protocol::CAPABILITY_UNDECLARED, text).at(method)
            }
            Ok(_) | Err(_) => continue,
        };
        context.findings.add(found);
    }
}

/// Requests a page with a cursor that the server never gave.
pub(in crate::check) async fn unknown_cursor(context: &Context, session: &Session) {
    if session.has_ended() {
        return;
    }
    let params = json!({"cursor": "toolgate-no-such-cursor"});
    match session.connection.request("tools/list", params).await {
        Ok(answer) if answer.result().is_some() => {
            let text = "tools/list with a cursor that the server never gave succeeded";
            context.findings.add(session.finding(&protocol::CURSOR_UNCHECKED, text));
        }
        Err(why) if why.is_closed() => {
            let text = format!("tools/list with an unknown cursor {}", why.in_words());
            context.findings.add(session.finding(&wire::SERVER_CRASHED, text));
        }
        Ok(_) | Err(_) => {}
    }
}
