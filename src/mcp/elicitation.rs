//! Elicitation requests and responses of all protocol revisions, converted to our questions and from our reactions.
//! Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use toolgate_core::tool::{ElicitationResponse, ElicitationResponses, Question};

use super::measure::{depth, excerpt, shortened, size};

/// The method of an elicitation request.
pub(super) const METHOD: &str = "elicitation/create";
/// The upper limit of questions about one call.
pub(super) const MAX_QUESTIONS: usize = 32;

/// The size limits of questions and of `requestState`, which the journal keeps. Forms are flat.
const MAX_KEY: usize = 256;
const MAX_QUESTION: usize = 256 * 1024;
const MAX_DEPTH: usize = 32;
const MAX_STATE: usize = 1024 * 1024;

/// Reads `inputRequests`: questions by the server's own keys. The error states which question is invalid and why.
pub(super) fn questions(requests: &Map<String, Value>) -> Result<BTreeMap<String, Question>, String> {
    if requests.len() > MAX_QUESTIONS {
        return Err(format!(
            "asks {} questions at once; {MAX_QUESTIONS} are the most that a person is asked",
            requests.len()
        ));
    }
    requests.iter().map(|(key, request)| Ok((key_of(key)?, question_of(request)?))).collect()
}

/// Reads `requestState`. The error completes the sentence "the MCP server `x` ...".
pub(super) fn state(result: &Map<String, Value>) -> Result<Option<String>, String> {
    match result.get("requestState").and_then(Value::as_str) {
        Some(state) if state.len() > MAX_STATE => {
            let longest = MAX_STATE / 1024;
            Err(format!("wants a `requestState` kept that is longer than {longest} KiB; let it keep that itself"))
        }
        state => Ok(state.map(str::to_owned)),
    }
}

fn key_of(key: &str) -> Result<String, String> {
    match key.len() > MAX_KEY {
        true => Err(format!("asks a question under a key that is longer than {MAX_KEY} bytes: {}", shortened(key))),
        false => Ok(key.to_owned()),
    }
}

fn question_of(request: &Value) -> Result<Question, String> {
    let empty = Value::Null;
    match request.get("method").and_then(Value::as_str) {
        Some(METHOD) => question(request.get("params").unwrap_or(&empty)),
        Some(method) => Err(format!(
            "asks for `{}`, which toolgate does not offer to servers; it was not among the announced capabilities",
            shortened(method)
        )),
        None => Err(format!("asks for something without a `method`: {}", excerpt(request))),
    }
}

/// Reads the parameters of `elicitation/create`. The error completes the sentence "the MCP server `x` ...".
pub(super) fn question(params: &Value) -> Result<Question, String> {
    if size(params) > MAX_QUESTION {
        return Err(format!("asks a question that is longer than {} KiB", MAX_QUESTION / 1024));
    }
    if depth(params) > MAX_DEPTH {
        return Err(format!("asks a question that is nested more than {MAX_DEPTH} levels deep; forms are flat"));
    }
    let message = text(params, "message").unwrap_or_default();
    match params.get("mode").and_then(Value::as_str) {
        None | Some("form") => match params.get("requestedSchema") {
            Some(schema @ Value::Object(_)) => Ok(Question::Form { message, schema: schema.clone() }),
            _ => Err(format!("asks a question without a `requestedSchema`: {}", excerpt(params))),
        },
        Some("url") => match text(params, "url") {
            Some(url) => Ok(Question::Url { message, url }),
            None => Err(format!("asks to visit an address without a `url`: {}", excerpt(params))),
        },
        Some(mode) => Err(format!("asks in the mode `{}`, which toolgate does not know", shortened(mode))),
    }
}

/// Reads the data of the error -32042: the addresses to visit before the call is repeated, by the server's ids. The
/// error states which address is invalid and why.
pub(super) fn visits(data: &Value) -> Result<BTreeMap<String, Question>, String> {
    let listed = data.get("elicitations").and_then(Value::as_array).into_iter().flatten();
    let with_address = listed.filter(|params| params.get("url").is_some_and(Value::is_string));
    let mut visits = BTreeMap::new();
    for params in with_address {
        let question = visit(params)?;
        let key = text(params, "elicitationId").unwrap_or_else(|| digest(&question));
        visits.insert(key_of(&key)?, question);
    }
    match visits.len() > MAX_QUESTIONS {
        true => Err(format!("wants more than {MAX_QUESTIONS} addresses visited")),
        false => Ok(visits),
    }
}

fn visit(params: &Value) -> Result<Question, String> {
    let mut params = params.clone();
    if let Value::Object(params) = &mut params {
        params.insert("mode".into(), "url".into());
    }
    question(&params)
}

/// The members of `inputResponses`, or of one answer.
pub(super) fn responses(reactions: &ElicitationResponses) -> BTreeMap<String, Value> {
    reactions.iter().map(|(key, reaction)| (key.clone(), response(reaction))).collect()
}

/// An `ElicitResult`.
pub(super) fn response(reaction: &ElicitationResponse) -> Value {
    let mut response = json!({"action": reaction.action});
    if let (Some(content), Value::Object(response)) = (&reaction.content, &mut response) {
        response.insert("content".into(), Value::Object(content.clone()));
    }
    response
}

/// The digest of a question, the same whenever and in whatever order it is asked.
pub(super) fn digest(question: &Question) -> String {
    let canonical = match question {
        Question::Form { message, schema } => json!(["form", message, sorted(schema)]),
        Question::Url { message, url } => json!(["url", message, url]),
    };
    let hash = Sha256::digest(canonical.to_string());
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let ordered: BTreeMap<&String, Value> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
            ordered.into_iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn text(object: &Value, name: &str) -> Option<String> {
    object.get(name)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(message: &str, schema: Value) -> Question {
        Question::Form { message: message.into(), schema }
    }

    fn requests(requests: Value) -> Result<BTreeMap<String, Question>, String> {
        questions(requests.as_object().expect("an object"))
    }

    #[test]
    fn questions_of_both_modes_arrive_by_their_keys_with_the_schema_as_it_is() {
        let schema = json!({"type": "object", "z": 1, "properties": {"a": {"type": "string", "x-own": true}}});
        let asked = requests(json!({
            "who": {"method": METHOD, "params": {"message": "who?", "requestedSchema": schema}},
            "pay": {"method": METHOD, "params": {"mode": "url", "message": "pay", "url": "https://pay.example/1"}},
        }));
        let expected = BTreeMap::from([
            ("who".to_owned(), form("who?", schema)),
            ("pay".to_owned(), Question::Url { message: "pay".into(), url: "https://pay.example/1".into() }),
        ]);
        assert_eq!(asked, Ok(expected));
    }

    #[test]
    fn an_unoffered_capability_is_refused_by_name() {
        for (request, complaint) in [
            (json!({"method": "sampling/createMessage", "params": {}}), "asks for `sampling/createMessage`, which"),
            (json!({"method": "roots/list"}), "asks for `roots/list`, which"),
            (json!({"params": {}}), "without a `method`"),
            (json!({"method": METHOD, "params": {"message": "m"}}), "without a `requestedSchema`"),
            (json!({"method": METHOD, "params": {"mode": "voice"}}), "the mode `voice`"),
            (json!({"method": METHOD, "params": {"mode": "url"}}), "without a `url`"),
        ] {
            let error = requests(json!({"k": request})).expect_err("refused");
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn a_question_has_one_digest_however_its_schema_is_ordered_and_another_for_other_words() {
        let one = form("m", json!({"type": "object", "properties": {"a": {"x": 1, "y": [2, 3]}, "b": {}}}));
        let same = form("m", json!({"properties": {"b": {}, "a": {"y": [2, 3], "x": 1}}, "type": "object"}));
        assert_eq!((digest(&one), digest(&one).len()), (digest(&same), 16));
        for other in [
            form("n", json!({"type": "object", "properties": {"a": {"x": 1, "y": [2, 3]}, "b": {}}})),
            form("m", json!({"type": "object", "properties": {"a": {"x": 1, "y": [3, 2]}, "b": {}}})),
            Question::Url { message: "m".into(), url: "https://x.example".into() },
        ] {
            assert_ne!(digest(&one), digest(&other));
        }
    }

    #[test]
    fn a_reaction_is_written_as_the_protocol_has_it() {
        let content = Map::from_iter([("name".to_owned(), json!("Ada"))]);
        assert_eq!(
            response(&ElicitationResponse::accept(content)),
            json!({"action": "accept", "content": {"name": "Ada"}})
        );
        assert_eq!(response(&ElicitationResponse::done()), json!({"action": "accept"}));
        assert_eq!(response(&ElicitationResponse::decline()), json!({"action": "decline"}));
    }

    #[test]
    fn addresses_in_an_error_are_questions() {
        let data = json!({"elicitations": [
            {"mode": "url", "elicitationId": "e1", "url": "https://a.example", "message": "sign in"}, {"mode": "url"},
        ]});
        let expected = Question::Url { message: "sign in".into(), url: "https://a.example".into() };
        assert_eq!(visits(&data), Ok(BTreeMap::from([("e1".to_owned(), expected)])));
        assert_eq!(visits(&json!({})), Ok(BTreeMap::new()));
        let endless: Vec<_> = (0..=MAX_QUESTIONS).map(|n| json!({"url": format!("https://a.example/{n}")})).collect();
        for elicitations in [json!(endless), json!([{"url": "https://a.example", "elicitationId": "k".repeat(257)}])] {
            visits(&json!({"elicitations": elicitations})).expect_err("beyond measure");
        }
    }

    #[test]
    fn oversized_questions_are_refused() {
        let ask = |schema: Value| json!({"method": METHOD, "params": {"message": "m", "requestedSchema": schema}});
        let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"not": inner}));
        let many: Map<String, Value> = (0..=MAX_QUESTIONS).map(|n| (format!("k{n}"), ask(json!({})))).collect();
        for (asked, complaint) in [
            (json!({"k": ask(json!({"title": "x".repeat(MAX_QUESTION)}))}), "longer than 256 KiB"),
            (json!({"k": ask(nested(MAX_DEPTH))}), "more than 32 levels deep"),
            (json!({"k".repeat(MAX_KEY + 1): ask(json!({}))}), "a key that is longer than 256 bytes"),
            (Value::Object(many), "33 questions at once"),
        ] {
            let error = requests(asked).expect_err("beyond measure");
            assert!(error.contains(complaint) && error.len() < 1000, "{error}");
        }
        assert!(requests(json!({"k": ask(nested(MAX_DEPTH - 2))})).is_ok());
    }

    #[test]
    fn an_oversized_request_state_is_refused() {
        let result = |state: String| json!({"requestState": state}).as_object().expect("an object").clone();
        assert_eq!(state(&result("s".into())), Ok(Some("s".into())));
        assert_eq!(state(&Map::new()), Ok(None));
        assert!(
            state(&result("s".repeat(MAX_STATE + 1))).expect_err("beyond measure").contains("longer than 1024 KiB")
        );
    }
}
