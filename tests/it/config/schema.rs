//! The JSON Schema of the configuration file.

use std::path::Path;

use toolgate::config;

use super::example;

const FILE: &str = "docs/toolgate.schema.json";

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&config::json_schema()).expect("a schema")
}

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let fresh = format!("{}\n", serde_json::to_string_pretty(&config::json_schema()).expect("JSON"));
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("written");
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == fresh,
        "{FILE} is stale: run `TOOLGATE_BLESS=1 cargo test --test it config::schema` and commit it"
    );
}

#[test]
fn the_examples_fit_the_schema() {
    for name in ["full/toolgate.yaml", "starter/toolgate.yaml"] {
        let written: serde_json::Value = config::read_file(&example(name)).expect(name);
        let problems: Vec<String> = validator().iter_errors(&written).map(|error| error.to_string()).collect();
        assert_eq!(problems, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_schema_rejects_what_the_loader_rejects() {
    for written in [
        serde_json::json!({"agnets": {}}),
        serde_json::json!({"models": {"a": {"openai": {}}}}),
        serde_json::json!({"agents": {"a": {"tiers": "later"}}}),
        serde_json::json!({"agents": {"a": {"fallback": [{"attempts": 1}]}}}),
        serde_json::json!({"agents": {"a": {"fallback": [{"model": "b", "attempts": 0}]}}}),
        serde_json::json!({"servers": {"a": {"max_concurrency": 0}}}),
        serde_json::json!({"agents": {"a": {"tools": null}}}),
        serde_json::json!({"agents": {"a": {"policy": {"default": "ask", "answer_timeout_s": null}}}}),
    ] {
        assert!(!validator().is_valid(&written), "{written}");
    }
}
