use super::*;
use serde_json::json;

fn usual() -> Redaction {
    Redaction::new(USUAL_KEYS, []).expect("patterns")
}

fn cleaned(redaction: &Redaction, text: &str) -> String {
    redaction.clean(text).unwrap_or_else(|| text.to_owned())
}

#[test]
fn what_stands_under_the_name_of_a_secret_is_hidden_at_any_depth() {
    let said = json!({
        "user": "ada", "Password": "hunter2", "headers": {"X-Api-Key": ["k1", "k2"]}, "apiKey": 7, "secret": null,
        "arguments": "{\"client-secret\":\"a\\\"b\",\"n\":1}", "passwords": "how to choose them",
    });
    let expected = json!({
        "user": "ada", "Password": REDACTED, "headers": {"X-Api-Key": REDACTED}, "apiKey": REDACTED, "secret": null,
        "arguments": "{\"client-secret\":\"__REDACTED__\",\"n\":1}", "passwords": "how to choose them",
    });
    assert_eq!(cleaned(&usual(), &said.to_string()), expected.to_string());
}

#[test]
fn text_that_is_no_json_loses_what_follows_the_name() {
    for (said, left) in [
        ("Authorization: Bearer abc.def\nHost: x", "Authorization: __REDACTED__\nHost: x"),
        ("curl -H 'x-api-key: k1' x", "curl -H 'x-api-key: __REDACTED__' x"),
        ("AWS_SECRET_KEY=abc DEBUG=1", "AWS_SECRET_KEY=__REDACTED__ DEBUG=1"),
        ("cut {\"password\": \"a\\\"b\", \"n\": 1", "cut {\"password\": __REDACTED__, \"n\": 1"),
        (r#"{"arguments":"{\"password\":\"a\\\"b\",\"n\":1"#, r#"{"arguments":"{\"password\":__REDACTED__,\"n\":1"#),
        ("cut {\"password\": [\"a\", \"b\"", "cut {\"password\": __REDACTED__"),
        ("the password is not said here", "the password is not said here"),
        ("password:", "password:"),
    ] {
        assert_eq!(cleaned(&usual(), said), left);
    }
}

#[test]
fn a_schema_tells_that_there_is_a_secret_and_stays() {
    let schema = json!({"type": "object", "properties": {"password": {"type": "string", "default": "x"}}}).to_string();
    assert_eq!(cleaned(&usual(), &schema), schema);
    let said = json!({"properties": {"password": "hunter2"}}).to_string();
    assert!(!cleaned(&usual(), &said).contains("hunter2"), "it is no schema");
}

#[test]
fn a_known_secret_is_hidden_wherever_it_stands_and_in_every_form() {
    let values = ["Bearer tok-12345678", "line one of a key\nline two \"of\" it", "short"];
    let redaction = Redaction::new([""; 0], values.map(SecretString::from)).expect("no patterns");
    for said in ["x tok-12345678 y", "line two \"of\" it", &json!({"a": "line two \"of\" it"}).to_string()] {
        let left = cleaned(&redaction, said);
        assert!(left.contains(REDACTED) && !left.contains("12345678") && !left.contains("line two"), "{left}");
    }
    assert_eq!(cleaned(&redaction, "short"), "short", "a word like any other");
}

#[test]
fn a_secret_that_was_cut_in_two_is_hidden_too() {
    let redaction = Redaction::new([""; 0], [SecretString::from("tok-12345678")]).expect("no patterns");
    assert_eq!(
        cleaned(&redaction, "and tok-123… [9 bytes cut by toolgate]"),
        "and __REDACTED__… [9 bytes cut by toolgate]"
    );
}

#[test]
fn a_pattern_that_cannot_be_read_is_refused_by_name() {
    let refused = Redaction::new(["pin[", "ssn"], []).expect_err("refused");
    assert!(refused.contains("`pin[`"), "{refused}");
}

#[test]
fn a_pattern_of_the_operator_counts_like_the_usual_ones() {
    let redaction = Redaction::new(["*_pin", "?", "ssn{1,2}"], []).expect("patterns");
    let said = json!({"card-pin": 1, "x": 2, "SSN1": 3, "ssn": 4, "xy": 5}).to_string();
    let left = json!({"card-pin": REDACTED, "x": REDACTED, "SSN1": REDACTED, "ssn": 4, "xy": 5}).to_string();
    assert_eq!(cleaned(&redaction, &said), left);
}
