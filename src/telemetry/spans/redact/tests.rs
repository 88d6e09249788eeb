use super::*;
use serde_json::json;
use toolgate_core::redact::{REDACTED, USUAL_NAMES};

fn usual() -> Redaction {
    Redaction::new(USUAL_NAMES, SecretsBuilder::default()).expect("patterns").with_recognizable(true)
}

fn cleaned(redaction: &Redaction, text: &str) -> String {
    redaction.cleaned(text).unwrap_or_else(|| text.to_owned())
}

#[test]
fn values_of_secret_names_are_hidden_at_any_depth() {
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
fn each_usual_name_hides_its_value() {
    for name in [
        "token",
        "authToken",
        "bot_token",
        "jwt",
        "Bearer",
        "pwd",
        "otp",
        "pin",
        "credentials",
        "cvv",
        "ssn",
        "cardNumber",
        "db-connection-string",
        "client_secret",
        "id_token",
    ] {
        assert_eq!(cleaned(&usual(), &json!({ name: "s-1" }).to_string()), json!({ name: REDACTED }).to_string());
        assert_eq!(cleaned(&usual(), &format!("{name}=s-1 n=1")), format!("{name}={REDACTED} n=1"));
        let quoted = json!({ "text": format!("a\n{name}: s-1") }).to_string();
        assert!(!cleaned(&usual(), &quoted).contains("s-1"), "{quoted}");
    }
    for said in ["{\"max_tokens\":5,\"mapping\":1}", "{\"pinned\":1,\"tokens\":2}", "spin=1 shopping: 2"] {
        assert_eq!(cleaned(&usual(), said), said);
    }
}

#[test]
fn secrets_of_a_recognizable_form_are_hidden_in_text_and_json() {
    let said = json!({"card": 4_111_111_111_111_111_u64, "url": "postgres://app:s-1@db/x", "n": 1_764_357_600_000_u64});
    let left = json!({"card": REDACTED, "url": "postgres://app:__REDACTED__@db/x", "n": 1_764_357_600_000_u64});
    assert_eq!(cleaned(&usual(), &said.to_string()), left.to_string());
    assert_eq!(cleaned(&usual(), "password: s-1\ncard 4111111111111111"), "password: __REDACTED__\ncard __REDACTED__");
    let without = usual().with_recognizable(false);
    assert_eq!(cleaned(&without, &said.to_string()), said.to_string());
}

#[test]
fn plain_text_loses_the_value_after_a_secret_name() {
    for (said, left) in [
        ("Authorization: Bearer abc.def\nHost: x", "Authorization: __REDACTED__\nHost: x"),
        ("curl -H 'x-api-key: k1' x", "curl -H 'x-api-key: __REDACTED__' x"),
        ("AWS_SECRET_KEY=abc DEBUG=1", "AWS_SECRET_KEY=__REDACTED__ DEBUG=1"),
        ("cut {\"password\": \"a\\\"b\", \"n\": 1", "cut {\"password\": __REDACTED__, \"n\": 1"),
        (r#"{"arguments":"{\"password\":\"a\\\"b\",\"n\":1"#, r#"{"arguments":"{\"password\":__REDACTED__,\"n\":1"#),
        ("cut {\"password\": [\"a\", \"b\"", "cut {\"password\": __REDACTED__"),
        ("Cookie: theme=dark; sid=s1\r\nHost: x", "Cookie: __REDACTED__\r\nHost: x"),
        ("Authorization: Digest username=\"a\", response=\"s1\"", "Authorization: __REDACTED__"),
        (
            "Authorization: AWS4-HMAC-SHA256 Credential=s1, Signature=s2\nHost: x",
            "Authorization: __REDACTED__\nHost: x",
        ),
        ("curl -H \"Authorization: Negotiate s1 s2\" x", "curl -H \"Authorization: __REDACTED__\" x"),
        (r#"{"log":"authorization: Key s1\nHost: x"#, r#"{"log":"authorization: __REDACTED__\nHost: x"#),
        (
            r#"{"log":"to log in, password: s1 s2","user":"ada"#,
            r#"{"log":"to log in, password: __REDACTED__","user":"ada"#,
        ),
        ("password: correct horse\nuser: ada", "password: __REDACTED__\nuser: ada"),
        ("password: |\n  s1\n  s2\nuser: ada", "password: __REDACTED__user: ada"),
        ("{'password': b's1', 'n': 1}", "{'password': __REDACTED__, 'n': 1}"),
        ("\"password\" => \"s1\", \"n\" => 1", "\"password\" => __REDACTED__, \"n\" => 1"),
        ("POST user[password]=s1&n=1", "POST user[password]=__REDACTED__&n=1"),
        (
            "DB_PASSWORD=s1,s2;s3 AWS_SECRET_ACCESS_KEY=s4",
            "DB_PASSWORD=__REDACTED__ AWS_SECRET_ACCESS_KEY=__REDACTED__",
        ),
        (
            "PRIVATE_KEY=-----BEGIN PRIVATE KEY-----\ns1\n-----END PRIVATE KEY-----\nN=1",
            "PRIVATE_KEY=__REDACTED__\nN=1",
        ),
        ("PRIVATE_KEY=-----BEGIN PRIVATE KEY-----\ns1 s2", "PRIVATE_KEY=__REDACTED__"),
        ("the password is not said here", "the password is not said here"),
        ("password:", "password:"),
    ] {
        assert_eq!(cleaned(&usual(), said), left);
    }
}

#[test]
fn a_schema_that_names_a_secret_is_not_redacted() {
    let schema = json!({"type": "object", "properties": {"password": {"type": "string", "default": "x"}}}).to_string();
    assert_eq!(cleaned(&usual(), &schema), schema);
    let said = json!({"properties": {"password": "hunter2"}}).to_string();
    assert!(!cleaned(&usual(), &said).contains("hunter2"), "this is not a schema");
    let said = json!({"type": "object", "properties": {"password": "hunter2"}}).to_string();
    assert!(!cleaned(&usual(), &said).contains("hunter2"), "it only looks like one");
}

#[test]
fn an_escaped_json_name_is_the_same_name() {
    let redaction = Redaction::new(["contraseña"], SecretsBuilder::default()).expect("patterns");
    let said = r#"{"contrase\u00f1a":"hunter2","said":"{\"contrase\\u00f1a\":\"hunter2\"}"}"#;
    assert!(!cleaned(&redaction, said).contains("hunter2"), "{}", cleaned(&redaction, said));
}

#[test]
fn each_alternative_and_class_member_of_a_pattern_is_found() {
    let redaction = Redaction::new(["{secret,pin}", "ssn[0-9]", "card[-_]code", "[abc]x"], SecretsBuilder::default())
        .expect("patterns");
    for name in ["pin", "secret", "SSN5", "card_code", "Card-Code", "s__ecret", "bx"] {
        assert_eq!(cleaned(&redaction, &format!("{name}=hunter2")), format!("{name}={REDACTED}"));
    }
    assert_eq!(cleaned(&redaction, "ssnx=1"), "ssnx=1");
}

#[test]
fn redaction_takes_linear_time() {
    let redaction =
        Redaction::new(USUAL_NAMES, SecretsBuilder::of_values(["sk-12345678", &"a".repeat(1000)])).expect("patterns");
    let long = 64 * 1024;
    let begun = std::time::Instant::now();
    for piece in [
        "a",
        "aaaa… [",
        "password",
        "пароль",
        "password:",
        "=",
        ": ",
        "\\",
        "a\\\"=",
        "密",
        "{\"password\":[",
        "\\u0070",
        "password=\n",
    ] {
        let text = format!("[password {}", piece.repeat(long / piece.len()));
        let _ = redaction.cleaned(&text);
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_known_secret_is_hidden_anywhere_and_in_every_form() {
    let values = ["Bearer tok-12345678", "line one of a key\nline two \"of\" it", "short"];
    let redaction = Redaction::new([""; 0], SecretsBuilder::of_values(values)).expect("no patterns");
    for said in ["x tok-12345678 y", "line two \"of\" it", &json!({"a": "line two \"of\" it"}).to_string()] {
        let left = cleaned(&redaction, said);
        assert!(left.contains(REDACTED) && !left.contains("12345678") && !left.contains("line two"), "{left}");
    }
    assert_eq!(cleaned(&redaction, "short"), "short", "too short to be a secret");
    assert!(!format!("{redaction:?}").contains("12345678"), "{redaction:?}");
}

#[test]
fn a_secret_that_was_cut_in_two_is_hidden_too() {
    let redaction = Redaction::new([""; 0], SecretsBuilder::of_values(["tok-12345678"])).expect("no patterns");
    assert_eq!(
        cleaned(&redaction, "and tok-123… [9 bytes cut by toolgate]"),
        "and __REDACTED__… [9 bytes cut by toolgate]"
    );
}

#[test]
fn an_invalid_pattern_is_rejected_by_name() {
    let refused = Redaction::new(["pin[", "ssn"], SecretsBuilder::default()).expect_err("refused");
    assert!(refused.contains("`pin[`"), "{refused}");
}

#[test]
fn the_operators_patterns_count_like_the_default_ones() {
    let redaction = Redaction::new(["*_pin", "?", "ssn{1,2}"], SecretsBuilder::default()).expect("patterns");
    let said = json!({"card-pin": 1, "x": 2, "SSN1": 3, "ssn": 4, "xy": 5}).to_string();
    let left = json!({"card-pin": REDACTED, "x": REDACTED, "SSN1": REDACTED, "ssn": 4, "xy": 5}).to_string();
    assert_eq!(cleaned(&redaction, &said), left);
}

#[test]
fn runs_with_the_same_tools_share_their_rendered_form() {
    use toolgate_core::tool::{ExternalTool, ToolsetRules};

    let listed =
        |name: &str| Arc::new(Toolset::assemble(&[ExternalTool::new(name, "")], &[], &ToolsetRules::default()));
    let of_one_run = usual();
    let of_another = of_one_run.clone();
    let rendered = of_one_run.rendered(&listed("pay"), 1024);
    assert!(Arc::ptr_eq(&rendered, &of_another.rendered(&listed("pay"), 1024)));
    assert!(
        rendered.schemas.contains("ext_pay") && !of_another.rendered(&listed("read"), 1024).schemas.contains("ext_pay")
    );
}
