use super::*;

type Set<'a> = &'a [(&'a str, &'a str)];

fn resolve_as(signal: Signal, destination: &Destination, set: Set<'_>) -> Result<Transport, SettingsError> {
    let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    destination.resolve(signal, &env)
}

fn resolve(set: Set<'_>) -> Result<Transport, SettingsError> {
    resolve_as(Signal::Traces, &Destination::default(), set)
}

fn to(endpoint: &str) -> Destination {
    Destination { endpoint: Some(endpoint.to_owned()), ..Destination::default() }
}

fn url(signal: Signal, destination: &Destination, set: Set<'_>) -> String {
    resolve_as(signal, destination, set).expect("sound").url.to_string()
}

fn refused(set: Set<'_>) -> String {
    resolve(set).expect_err("refused").to_string()
}

const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const EXACT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

#[test]
fn a_base_address_gets_the_path_of_the_signal_once() {
    let nothing = Destination::default();
    for (base, traces, metrics) in [
        ("http://x:4318", "http://x:4318/v1/traces", "http://x:4318/v1/metrics"),
        ("https://x/otlp/", "https://x/otlp/v1/traces", "https://x/otlp/v1/metrics"),
        ("https://x/otlp/v1/traces", "https://x/otlp/v1/traces", "https://x/otlp/v1/metrics"),
    ] {
        assert_eq!(url(Signal::Traces, &to(base), &[]), traces);
        assert_eq!(url(Signal::Traces, &nothing, &[(BASE, base)]), traces);
        assert_eq!(url(Signal::Metrics, &to(base), &[]), metrics);
    }
    assert_eq!(url(Signal::Traces, &nothing, &[(EXACT, "https://x/otlp")]), "https://x/otlp");
}

#[test]
fn the_configuration_wins_then_the_variable_of_the_signal() {
    let both = [(BASE, "http://general"), (EXACT, "http://exact/")];
    assert_eq!(url(Signal::Traces, &to("http://mine"), &both), "http://mine/v1/traces");
    assert_eq!(url(Signal::Traces, &Destination::default(), &both), "http://exact/");
    assert_eq!(url(Signal::Metrics, &Destination::default(), &both), "http://general/v1/metrics");

    let mine = Destination { protocol: Some(Protocol::HttpJson), ..Destination::default() };
    let transport = resolve_as(Signal::Traces, &mine, &[(PROTOCOL, "grpc")]).expect("sound");
    assert_eq!(transport.protocol, Protocol::HttpJson);
    let timeouts = [("OTEL_EXPORTER_OTLP_TIMEOUT", "7"), ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "8")];
    assert_eq!(resolve(&timeouts).expect("sound").timeout, Duration::from_millis(8));
}

#[test]
fn a_grpc_address_has_no_path_and_defaults_to_https() {
    let grpc = |address, set: Set<'_>| url(Signal::Traces, &to(address), &[&[(PROTOCOL, "grpc")], set].concat());
    assert_eq!(grpc("http://x:4317/v1/traces", &[]), "http://x:4317/");
    assert_eq!(grpc("x:4317", &[]), "https://x:4317/");
    assert_eq!(grpc("x:4317", &[("OTEL_EXPORTER_OTLP_INSECURE", "true")]), "http://x:4317/");
    assert_eq!(grpc("https://x:4317", &[("OTEL_EXPORTER_OTLP_INSECURE", "true")]), "https://x:4317/");
}

#[test]
fn the_default_address_is_a_local_collector() {
    for (protocol, expected) in [
        ("http/protobuf", "http://localhost:4318/v1/traces"),
        ("http/json", "http://localhost:4318/v1/traces"),
        ("grpc", "http://localhost:4317/"),
    ] {
        assert_eq!(url(Signal::Traces, &Destination::default(), &[(PROTOCOL, protocol)]), expected);
    }
}

#[test]
fn invalid_settings_are_rejected_by_name() {
    for (name, value) in [
        (PROTOCOL, "http/xml"),
        (BASE, "localhost:4318"),
        (EXACT, "ftp://x"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
        ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,c"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "key.pem"),
    ] {
        let refused = refused(&[(name, value)]);
        assert!(refused.contains(name), "{refused}");
    }
    let insecure = ("OTEL_EXPORTER_OTLP_INSECURE", "yes");
    let refused = refused(&[(PROTOCOL, "grpc"), (BASE, "x:4317"), insecure]);
    assert!(refused.contains(insecure.0), "{refused}");
}

#[test]
fn no_error_or_shown_address_contains_secrets() {
    let canary = "c4n4ry";
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization c4n4ry"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,authorization=c4n\n4ry-c4n4ry"),
        (BASE, "http://c4n4ry@x:4318"),
        (BASE, "http://c4n4ry:c4n4ry@x:4318"),
        (BASE, "//c4n4ry"),
    ] {
        let refused = refused(&[(name, value)]);
        assert!(refused.contains(name) && !refused.contains(canary), "{refused}");
    }
    let shown = resolve(&[(EXACT, "https://x/otlp?key=c4n4ry")]).expect("sound");
    assert_eq!(shown.address(), "https://x/otlp");
    assert!(!format!("{shown:?}").contains(canary));

    let header = |value: &str| [("x-key".to_owned(), value.to_owned().into())].into();
    let destination = Destination { headers: header("c4n4ry\n"), ..Destination::default() };
    let refused = resolve_as(Signal::Traces, &destination, &[]).expect_err("refused").to_string();
    assert!(refused.contains("telemetry.headers: `x-key`") && !refused.contains(canary), "{refused}");
}
