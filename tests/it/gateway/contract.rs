//! OpenAPI description: the committed file is the one that is served, and its links work.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use toolgate::core::error::ErrorCode;
use toolgate::service::ErrorReason;

use super::described;
use super::served::Served;
use crate::runner::world::{Kept, given_an_agent};

fn described() -> Value {
    serde_json::to_value(toolgate::gateway::description()).unwrap()
}

/// Every operation with its method and path.
fn operations(description: &Value) -> Vec<(String, &Value)> {
    let paths = description["paths"].as_object().unwrap();
    let each = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap();
        methods.iter().map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    each.collect()
}

#[test]
fn the_committed_description_is_the_one_that_is_served() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let text = format!("{:#}\n", described());
    if std::env::var_os("TOOLGATE_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    let help = "the API has changed: check that the change is compatible, then run this test with TOOLGATE_BLESS=1";
    assert!(committed == text, "{help}\n{}", first_difference(&committed, &text));
}

#[test]
fn links_name_operations_and_their_parameters() {
    let description = described();
    let operations = operations(&description);
    let path_of = |id: &str| {
        let (name, _) = operations.iter().find(|(_, operation)| operation["operationId"] == id).unwrap();
        name.split_once(' ').unwrap().1
    };
    let links = description["components"]["links"].as_object().unwrap();
    for (name, link) in links {
        let path = path_of(name);
        let taken: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let given: BTreeSet<&str> = link["parameters"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!((&link["operationId"], given), (&json!(name), taken), "{path}");
    }
    assert!(links.contains_key("readRun") && links.contains_key("deleteFeedback") && !links.contains_key("readBlob"));
    let linked =
        &operations.iter().find(|(_, operation)| operation["operationId"] == "createRun").unwrap().1["responses"];
    for status in ["201", "202"] {
        assert_eq!(linked[status]["links"]["resumeRun"]["$ref"], "#/components/links/resumeRun");
    }
}

fn first_difference(committed: &str, now: &str) -> String {
    let differs = committed.lines().zip(now.lines()).enumerate().find(|(_, (a, b))| a != b);
    differs.map_or_else(String::new, |(line, (a, b))| format!("line {}:\n- {a}\n+ {b}", line + 1))
}

#[test]
fn every_operation_and_parameter_is_described_with_error_responses() {
    let description = described();
    for (name, operation) in operations(&description) {
        assert!(operation["operationId"].is_string() && operation["summary"].is_string(), "{name}");
        for status in ["400", "401", "403", "429", "503"] {
            let shared = operation["responses"][status]["$ref"].as_str().unwrap_or_default();
            let response = description.pointer(shared.trim_start_matches('#')).unwrap();
            let refused = &response["content"]["application/problem+json"];
            assert!(refused.is_object(), "{name} does not describe its {status} response");
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{name} does not describe `{}`", parameter["name"]);
        }
        assert!(operation["responses"]["default"].is_null(), "{name} still has a default response");
        let tag = operation["tags"][0].as_str().unwrap_or_else(|| panic!("{name} has no tag"));
        let tags = description["tags"].as_array().unwrap();
        assert!(tags.iter().any(|known| known["name"] == tag), "{name}: the tag `{tag}` has no description");
    }
}

#[test]
fn every_request_field_is_described_and_no_other_is_accepted() {
    let description = described();
    for (name, operation) in operations(&description) {
        let Some(body) = operation.pointer("/requestBody/content/application~1json/schema/$ref") else { continue };
        let schema = description.pointer(body.as_str().unwrap().trim_start_matches('#')).unwrap();
        assert_eq!(schema["additionalProperties"], false, "{name} accepts unknown fields");
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let either = property["oneOf"].as_array().into_iter().flatten();
            let mut told = std::iter::once(property).chain(either);
            let explained = told.any(|it| it["description"].is_string() || it.get("$ref").is_some());
            assert!(explained, "{name}: `{field}` has no description");
        }
    }
}

#[test]
fn every_reference_leads_to_something_and_every_schema_is_used() {
    let description = described();
    let text = description.to_string();
    let references: BTreeSet<&str> =
        text.split(r#""$ref":"#).skip(1).filter_map(|rest| rest.split('"').nth(1)).map(|place| &place[1..]).collect();
    for place in &references {
        assert!(description.pointer(place).is_some(), "{place} is not described");
    }
    for (kind, named) in description["components"].as_object().unwrap() {
        let places = named.as_object().unwrap().keys().map(|name| format!("/components/{kind}/{name}"));
        let unused: Vec<String> = places.filter(|place| !references.contains(place.as_str())).collect();
        assert!(unused.is_empty() || kind == "securitySchemes", "{unused:?}");
    }
}

#[test]
fn every_object_member_of_a_response_is_a_constant() {
    let description = described();
    for (name, schema) in description["components"]["schemas"].as_object().unwrap() {
        let object = &schema["properties"]["object"];
        let has_one_value =
            object["const"].is_string() || object["enum"].as_array().is_some_and(|values| values.len() == 1);
        assert!(object.is_null() || has_one_value, "{name}: {object}");
    }
}

#[test]
fn answers_and_parts_of_messages_match_their_description() {
    let answers = json!({"answers": [
        {"type": "result", "call_id": "a", "output": 1},
        {"type": "decision", "call_id": "b", "decision": "approve"},
    ]});
    let image = json!({"type": "image", "media_type": "image/png", "url": "https://example.com/a.png"});
    let run = json!({"input": [{"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}]});
    for (schema, body) in [("Resume", answers), ("NewRun", run)] {
        let mut wrong = body.clone();
        let place = if schema == "Resume" { "/answers/0" } else { "/input/0/content/1" };
        wrong.pointer_mut(place).unwrap()["colour"] = json!("red");
        let errors = [&body, &wrong].map(|body| described::errors(schema, body));
        assert!(errors[0].is_empty() && !errors[1].is_empty(), "{schema}: {errors:#?}");
    }
}

/// The members of the views in a folder that are left out without a value.
fn members_left_out(folder: &Path) -> Vec<String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: std::path::PathBuf| match path.is_dir() {
        true => members_left_out(&path),
        false => {
            let text = std::fs::read_to_string(&path).unwrap();
            let after =
                text.split("skip_serializing_if").skip(1).filter_map(|after| after.split_once('\n')?.1.split_once(':'));
            after.map(|(member, _)| member.trim().to_owned()).collect()
        }
    };
    paths.flat_map(of).collect()
}

#[test]
fn a_response_leaves_out_only_what_the_caller_may_not_read() {
    let mut members = members_left_out(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/gateway"));
    members.sort();
    assert_eq!(members, ["instructions", "secret"], "a member without a value is null (docs/gateway.md)");
}

#[tokio::test]
async fn a_problem_links_to_its_page() {
    let served = Served::to_all(given_an_agent().kept(Kept::InMemory).await).await;
    let refused = served.get("/v1/runs/run_unknown").await;
    assert!(refused.text("type").ends_with("/docs/errors/not_found.md"), "{refused:?}");
    let page = served.get("/errors/not_found").await;
    let text = page.body.as_str().unwrap();
    assert!(text.contains("Unknown run, call, agent or server."), "{text}");
    let reasons = ErrorReason::ALL.iter().map(|reason| reason.as_str());
    for name in ErrorCode::ALL.iter().map(|code| code.as_str()).chain(reasons) {
        assert_eq!(served.get(&format!("/errors/{name}")).await.status, 200, "{name}");
    }
    let index = served.get("/errors").await;
    assert!(index.body.as_str().unwrap().contains("href=\"errors/not_found\""));
    assert_eq!(served.get("/errors/no_such_code").await.problem(), "not_found");
}

#[tokio::test]
async fn the_api_reference_page_loads_nothing_from_elsewhere() {
    let served = Served::to_all(given_an_agent().kept(Kept::InMemory).await).await;
    let page = served.get("/docs").await;
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    let text = page.body.as_str().unwrap();
    assert!(!text.contains("http://") && !text.contains("https://"), "{text}");
    let script = served.get("/docs/reader.js").await;
    assert!(script.body.as_str().unwrap().contains("customElements"), "the script is served");
    assert_eq!(served.get("/openapi.json").await.body, described());
}
