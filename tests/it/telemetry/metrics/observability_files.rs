//! `deploy/observability`: its dashboard and alerts name metrics and labels that exist, and docs/alerts.md has each alert.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use regex::Regex;
use serde_json::Value;
use toolgate::ports::{AnsweredRequest, RequestMeter as _};
use toolgate::telemetry::metrics::{Metric, Shape};

use super::read::{readable, tell_all};

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect(file)
}

/// The names of all series, and the labels that are shown.
fn known() -> BTreeSet<String> {
    let mut known: BTreeSet<String> = Metric::ALL.iter().flat_map(|metric| series(*metric)).collect();
    let metrics = readable();
    tell_all(&metrics);
    for metric in Metric::ALL {
        metrics.observe(*metric, || Some(1));
    }
    metrics.observe_servers(Metric::McpServerUp, || vec![("crm".to_owned(), 0)]);
    metrics.answered(&AnsweredRequest { method: "GET", route: "/v1/runs", status: 200, duration: Duration::ZERO });
    let text = metrics.prometheus();
    assert!(text.contains(r#"toolgate_mcp_server_up{toolgate_tool_server="crm"} 0"#), "{text}");
    for shown in Regex::new(r"(?m)^(?:toolgate|gen_ai|mcp|http)_[a-z_]+").unwrap().find_iter(&text) {
        assert!(known.contains(shown.as_str()), "{}", shown.as_str());
    }
    let labels = Regex::new(r#"([a-z_]+)=""#).unwrap();
    known.extend(labels.captures_iter(&text).map(|label| label[1].to_owned()));
    known
}

/// The names by which Prometheus shows a metric.
fn series(metric: Metric) -> Vec<String> {
    let definition = metric.definition();
    let unit = match definition.unit {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let name = definition.name.replace('.', "_") + unit;
    let suffixes: &[&str] = match definition.shape {
        Shape::Count | Shape::Amount | Shape::ObservedCount => &["_total"],
        Shape::Level => &[""],
        Shape::Distribution | Shape::Sizes => &["_bucket", "_count", "_sum"],
    };
    suffixes.iter().map(|suffix| format!("{name}{suffix}")).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_and_labels_that_exist() {
    let known = known();
    let dashboard: Value = serde_json::from_str(&read("deploy/observability/dashboard.json")).expect("JSON");
    let alerts: Value = serde_saphyr::from_str(&read("deploy/observability/alerts.yaml")).expect("YAML");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let rules = alerts["groups"][0]["rules"].as_array().expect("rules");
    let expressions: Vec<&str> = targets.chain(rules).map(|from| from["expr"].as_str().expect("expr")).collect();
    assert!(expressions.len() > 30, "{}", expressions.len());
    let names = Regex::new(r"\b(?:toolgate|gen_ai|mcp|http)_[a-z_]+").unwrap();
    for expression in expressions {
        for name in names.find_iter(expression) {
            assert!(known.contains(name.as_str()), "{} in {expression}", name.as_str());
        }
    }
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "the ids of panels are unique");
}

#[test]
fn each_alert_has_a_section_that_says_what_to_do() {
    let alerts: Value = serde_saphyr::from_str(&read("deploy/observability/alerts.yaml")).expect("YAML");
    let page = read("docs/alerts.md");
    for rule in alerts["groups"][0]["rules"].as_array().expect("rules") {
        let alert = rule["alert"].as_str().expect("a name");
        assert!(page.contains(&format!("\n### {alert}\n")), "{alert}");
        let runbook = rule["annotations"]["runbook_url"].as_str().expect("a page");
        assert!(runbook.ends_with(&format!("docs/alerts.md#{}", alert.to_lowercase())), "{runbook}");
    }
}
