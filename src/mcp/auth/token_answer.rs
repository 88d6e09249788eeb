//! Answers of token endpoints, in the form of RFC 6749.
//!
//! The OAuth code of the SDK reads that form and nothing else. Authorization servers deviate: Microsoft Entra ID,
//! NetSuite and SAP send `expires_in` as text, others leave `token_type` out, GitHub answers with a form. An answer that
//! cannot be read becomes an error that names the member, never its value, which may be a token.

use http::StatusCode;
use reqwest::Url;
use serde_json::{Map, Value, json};

/// The error code of an answer that cannot be read.
pub(super) const UNREADABLE: &str = "unreadable_answer";

/// The members that are read. Others do no harm.
const MEMBERS: [&str; 5] = ["access_token", "token_type", "expires_in", "refresh_token", "scope"];

/// The grant type of a token request, if the body is one.
pub(super) fn grant_type(form: &[u8]) -> Option<String> {
    members(form).into_iter().find_map(|(name, value)| (name == "grant_type").then_some(value))
}

/// The token request without its resource (RFC 8707), if it names one. Authorization servers that do not know that
/// member refuse a request with it.
pub(super) fn without_resource(form: &[u8]) -> Option<Vec<u8>> {
    let members = members(form);
    let rest = members.iter().filter(|(name, _)| name != "resource");
    let is_shorter = rest.clone().count() < members.len();
    let mut url = Url::parse("http://form.invalid/").ok()?;
    url.query_pairs_mut().extend_pairs(rest);
    url.query().filter(|_| is_shorter).map(|query| query.as_bytes().to_vec())
}

/// Whether an authorization server may have refused a request because of its resource. Every other error is about the
/// grant or the client.
pub(super) fn refuses_resource(status: StatusCode, body: &[u8]) -> bool {
    let error = serde_json::from_slice::<Value>(body).ok();
    let code = error.as_ref().and_then(|error| error.get("error")?.as_str());
    match code {
        Some(code) => matches!(code, "invalid_request" | "invalid_target"),
        None => status == StatusCode::BAD_REQUEST,
    }
}

/// The answer in the form that the SDK reads, with its status.
pub(super) fn conforming(status: StatusCode, body: &[u8]) -> (StatusCode, Value) {
    let object = serde_json::from_slice::<Map<String, Value>>(body).ok();
    if !status.is_success() {
        let is_oauth = object.as_ref().is_some_and(|object| object.get("error").is_some_and(Value::is_string));
        return match object.filter(|_| is_oauth) {
            Some(error) => (status, Value::Object(error_of(error))),
            None => unreadable(&format!("it has the status {status} and is no OAuth error")),
        };
    }
    match object.or_else(|| form_answer(body)).ok_or_else(|| "it is no JSON object".to_owned()).and_then(token) {
        Ok(token) => (StatusCode::OK, Value::Object(token)),
        Err(why) => unreadable(&why),
    }
}

fn unreadable(why: &str) -> (StatusCode, Value) {
    (StatusCode::BAD_REQUEST, json!({"error": UNREADABLE, "error_description": why}))
}

/// An error, without members that are not text.
fn error_of(mut error: Map<String, Value>) -> Map<String, Value> {
    error.retain(|name, value| matches!(name.as_str(), "error" | "error_description") && value.is_string());
    error
}

fn token(mut answer: Map<String, Value>) -> Result<Map<String, Value>, String> {
    answer.retain(|name, value| MEMBERS.contains(&name.as_str()) && !value.is_null());
    for name in ["access_token", "refresh_token", "token_type"] {
        if answer.get(name).is_some_and(|value| !value.is_string()) {
            return Err(format!("`{name}` is not a string"));
        }
    }
    if answer.get("access_token").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err("it has no `access_token`".into());
    }
    answer.entry("token_type").or_insert_with(|| "Bearer".into());
    if let Some(expires_in) = answer.get("expires_in") {
        let seconds = seconds(expires_in).ok_or("`expires_in` is not a number of seconds")?;
        answer.insert("expires_in".into(), seconds.into());
    }
    if let Some(Value::Array(scopes)) = answer.get("scope") {
        let scopes: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
        let scope = scopes.join(" ");
        answer.insert("scope".into(), scope.into());
    }
    if answer.get("scope").is_some_and(|scope| !scope.is_string()) {
        return Err("`scope` is not a string".into());
    }
    Ok(answer)
}

/// Seconds as a number or as text. A fraction is cut.
fn seconds(value: &Value) -> Option<u64> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    text.split('.').next()?.parse().ok()
}

fn form_answer(body: &[u8]) -> Option<Map<String, Value>> {
    let members = members(body);
    let is_token = members.iter().any(|(name, _)| name == "access_token");
    is_token.then(|| members.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
}

fn members(form: &[u8]) -> Vec<(String, String)> {
    let mut url = match (Url::parse("http://form.invalid/"), std::str::from_utf8(form)) {
        (Ok(url), Ok(_)) => url,
        _ => return Vec::new(),
    };
    url.set_query(Some(&String::from_utf8_lossy(form)));
    url.query_pairs().into_owned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &Value) -> Value {
        conforming(StatusCode::OK, answer.to_string().as_bytes()).1
    }

    #[test]
    fn answers_of_real_authorization_servers_are_read() {
        let entra = json!({
            "token_type": "Bearer", "scope": "mcp.read", "expires_in": "5287", "ext_expires_in": "5287",
            "expires_on": "1762781958", "resource": "api://example", "access_token": "at-1", "refresh_token": "rt-1",
        });
        let expected = json!({
            "token_type": "Bearer", "scope": "mcp.read", "expires_in": 5287, "access_token": "at-1", "refresh_token": "rt-1",
        });
        assert_eq!(read(&entra), expected);
        for (answer, expires_in) in [
            (json!({"access_token": "at-2"}), Value::Null),
            (json!({"access_token": "at-2", "expires_in": 3600.0, "refresh_token": null}), 3600.into()),
            (json!({"access_token": "at-2", "expires_in": " 60 "}), 60.into()),
        ] {
            let read = read(&answer);
            assert_eq!((&read["token_type"], &read["expires_in"]), (&json!("Bearer"), &expires_in), "{answer}");
        }
        let (_, form) = conforming(StatusCode::OK, b"access_token=at%2B3&scope=repo&token_type=bearer");
        assert_eq!(form, json!({"access_token": "at+3", "scope": "repo", "token_type": "bearer"}));
    }

    #[test]
    fn an_answer_that_cannot_be_read_names_the_member_and_not_its_value() {
        for (answer, named) in [
            (json!({"access_token": "s3cret", "expires_in": "soon"}), "`expires_in` is not a number of seconds"),
            (json!({"access_token": ["s3cret"]}), "`access_token` is not a string"),
            (json!({"token": "s3cret"}), "it has no `access_token`"),
            (json!(["s3cret"]), "it is no JSON object"),
        ] {
            assert_eq!(read(&answer), json!({"error": UNREADABLE, "error_description": named}), "{answer}");
        }
        let (status, page) = conforming(StatusCode::BAD_GATEWAY, b"<html>s3cret</html>");
        assert_eq!((status, &page["error"]), (StatusCode::BAD_REQUEST, &json!(UNREADABLE)));
        assert!(!page.to_string().contains("s3cret"), "{page}");
    }

    #[test]
    fn a_request_is_repeated_without_its_resource_only_when_that_may_be_the_reason() {
        let refused =
            |code: &str| refuses_resource(StatusCode::BAD_REQUEST, json!({"error": code}).to_string().as_bytes());
        assert!(refused("invalid_request") && refused("invalid_target"));
        assert!(!refused("invalid_grant") && !refused("invalid_client"));
        assert!(refuses_resource(StatusCode::BAD_REQUEST, b"Bad Request"));
        assert!(!refuses_resource(StatusCode::BAD_GATEWAY, b"Bad Gateway"));
        let form = b"grant_type=refresh_token&refresh_token=a%2Bb&resource=https%3A%2F%2Fx.test%2Fmcp&scope=a+b";
        let rest = without_resource(form).expect("it has one");
        assert_eq!(String::from_utf8_lossy(&rest), "grant_type=refresh_token&refresh_token=a%2Bb&scope=a+b");
        assert_eq!(without_resource(&rest), None);
        assert_eq!(grant_type(&rest).as_deref(), Some("refresh_token"));
    }
}
