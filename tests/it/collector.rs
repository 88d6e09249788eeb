//! `otel-collector.yaml`: no collector can be had where these tests run, so its form is checked by a schema written after
//! the collector's own, its references by looking them up, and its patterns by trying them.

use std::path::Path;

use regex::Regex;
use serde_json::{Value, json};

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

fn collector() -> Value {
    serde_saphyr::from_str(&read("otel-collector.yaml")).expect("YAML")
}

/// The same with everything that is commented out taken in.
fn with_other_readers() -> Value {
    let text = read("otel-collector.yaml");
    let (before, rest) = text.split_once("  # Other readers.").expect("other readers");
    let (others, after) = rest.split_once("\nservice:").expect("the service");
    let is_setting = |line: &&str| line.contains(':') && (line.starts_with("  #   ") || line.ends_with(':'));
    let others = others.lines().filter(is_setting).map(|line| line.replacen("  # ", "  ", 1));
    let others = others.filter(|line| line.trim_start().starts_with(|first: char| first.is_ascii_lowercase()));
    let text = format!("{before}\n{}\nservice:{after}", others.collect::<Vec<_>>().join("\n"));
    serde_saphyr::from_str(&text).expect(&text)
}

#[test]
fn the_collector_has_no_key_that_no_collector_knows() {
    let schema: Value = serde_json::from_str(&read("tests/fixtures/collector.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let faults = |config: &Value| schema.iter_errors(config).map(|error| error.to_string()).collect::<Vec<_>>();
    assert_eq!(faults(&collector()), [""; 0]);
    let others = with_other_readers();
    assert_eq!(faults(&others), [""; 0]);
    for reader in ["otlp_http/langfuse", "otlp_http/tempo", "otlp_http/jaeger", "datadog"] {
        assert!(others["exporters"].get(reader).is_some(), "{reader} is among the other readers");
    }
    let mut slip = collector();
    slip["processors"]["batch"]["time_out"] = json!("2s");
    assert_eq!(faults(&slip).len(), 1);
}

#[test]
fn every_component_of_a_pipeline_is_defined_and_every_one_that_is_defined_is_used() {
    let collector = collector();
    for kind in ["receivers", "processors", "exporters"] {
        let defined: Vec<&str> = collector[kind].as_object().expect(kind).keys().map(String::as_str).collect();
        let pipelines = collector["service"]["pipelines"].as_object().expect("pipelines").values();
        let used: Vec<&str> =
            pipelines.flat_map(|pipeline| pipeline[kind].as_array().expect(kind)).filter_map(Value::as_str).collect();
        for name in &used {
            assert!(defined.contains(name), "the {kind} have no {name}");
        }
        for name in &defined {
            assert!(used.contains(name), "no pipeline uses {name} of the {kind}");
        }
    }
}

#[test]
fn the_collector_listens_to_this_machine_alone_and_limits_memory_before_anything_else() {
    let collector = collector();
    let protocols = &collector["receivers"]["otlp"]["protocols"];
    for endpoint in [&protocols["http"], &protocols["grpc"], &collector["exporters"]["prometheus"]] {
        assert!(endpoint["endpoint"].as_str().expect("an endpoint").starts_with("127.0.0.1:"), "{endpoint}");
    }
    for (name, pipeline) in collector["service"]["pipelines"].as_object().expect("pipelines") {
        let processors = pipeline["processors"].as_array().expect("processors");
        assert_eq!(
            (processors.first(), processors.last()),
            (Some(&json!("memory_limiter")), Some(&json!("batch"))),
            "{name}"
        );
    }
}

/// The patterns of this list; Go's and Rust's regular expressions have the same grammar as far as it is used here.
fn patterns(name: &str) -> Vec<Regex> {
    let collector = collector();
    let patterns = collector["processors"]["redaction"][name].as_array().expect(name);
    patterns.iter().map(|pattern| Regex::new(pattern.as_str().expect("text")).expect("a pattern")).collect()
}

#[test]
fn secrets_are_masked_and_what_spans_are_read_for_is_not() {
    let (keys, values) = (patterns("blocked_key_patterns"), patterns("blocked_values"));
    for secret in ["http.request.header.authorization", "api_key", "x-api-key", "db.password", "client_secret"] {
        assert!(keys.iter().any(|key| key.is_match(secret)), "{secret}");
    }
    for wanted in [
        "llm.token_count.prompt",
        "llm.token_count.prompt_details.cache_read",
        "gen_ai.usage.input_tokens",
        "toolgate.usage.cost_usd",
        "tool.parameters",
        "session.id",
        "input.value",
    ] {
        assert!(!keys.iter().any(|key| key.is_match(wanted)), "{wanted}");
    }
    for secret in [
        "Authorization: Bearer abcdefghijklmnop.qrst",
        "sk-proj-0123456789abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "card 4111 1111 1111 1111, thanks",
        "5500-0000-0000-0004",
        "378282246310005",
    ] {
        assert!(values.iter().any(|value| value.is_match(secret)), "{secret}");
    }
    for harmless in
        ["order A-1077 is late", "call_4_1", "a basic question of trust", "00-4bf92f3577b34da6a3ce929d0e0e4736-01"]
    {
        assert!(!values.iter().any(|value| value.is_match(harmless)), "{harmless}");
    }
}
