//! `toolgate mcp check`: exit codes, files, and the selection of findings.

use serde_json::{Value, json};

use super::desk::Desk;

const DEMO: [&str; 3] = ["--", "toolgate", "demo-server"];

/// A command that prints a banner and answers nothing else than the demo server does.
const NOISY: [&str; 4] = ["--", "sh", "-c", "echo Welcome; exec toolgate demo-server"];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path().join(name)).unwrap()
}

fn rules(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["rule"].as_str().unwrap()).collect()
}

#[test]
fn the_demo_server_is_green_and_its_report_has_the_facts() {
    let ended = Desk::empty().toolgate(&["mcp", "check", "--fixture"]).expect(0);
    for part in
        ["toolgate-demo-shop 0.1.0", "2024-11-05", "2026-07-28", "5 tools", "Providers", "✓ 0 errors, 0 warnings"]
    {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    let called = Desk::empty().toolgate(&["mcp", "check", "--fixture", "--call", "--json"]).expect(0);
    let report = parsed(&called.out);
    assert_eq!(report["counts"]["errors"], 0, "{report:#}");
    assert_eq!(report["calls"]["load"].as_array().unwrap().len(), 3);
}

#[test]
fn a_mistake_fails_the_check_unless_it_is_accepted_skipped_or_less_severe() {
    let desk = Desk::empty();
    let check = |flags: &[&str]| {
        let words = [&["mcp", "check", "--json", "--inherit-env"], flags, &NOISY[..]].concat();
        let ended = desk.toolgate(&words);
        (ended.code, ended.out, ended.err)
    };
    let (code, out, err) = check(&["--save-baseline", "known.json"]);
    assert!(rules(&parsed(&out)).contains(&"stdout-banner"), "{out}{err}");
    assert_eq!(code, 9);
    let (code, out, _) = check(&["--baseline", "known.json"]);
    assert_eq!((code, parsed(&out)["findings"].as_array().map(Vec::len)), (0, Some(0)));
    assert!(parsed(&out)["counts"]["baseline"].as_u64().unwrap() > 1);
    // A baseline that is written again accepts the same findings, whatever this report leaves out.
    check(&["--baseline", "known.json", "--save-baseline", "known.json", "--skip", "stdout-banner"]);
    assert!(std::fs::read_to_string(desk.path().join("known.json")).unwrap().contains("stdout-banner"));
    let later = read(&desk, "known.json").replace("\"version\": 1", "\"version\": 2");
    desk.write("later.json", &later);
    let (code, _, err) = check(&["--baseline", "later.json"]);
    assert!(code == 2 && err.contains("baselines of version 1, not 2"), "{err}");
    assert_eq!(check(&["--skip", "stdout-banner"]).0, 0);
    assert_eq!(check(&["--only-rule", "json-nan"]).0, 0);
    assert_eq!(check(&["--skip", "stdout-banner", "--severity", "note"]).0, 9);
}

#[test]
fn reports_are_written_in_every_format() {
    let desk = Desk::empty();
    let flags = ["--junit", "junit.xml", "--sarif", "check.sarif", "--markdown", "check.md", "--wire", "wire.jsonl"];
    desk.toolgate(&[&["mcp", "check", "--inherit-env"], &flags[..], &NOISY[..]].concat()).expect(9);
    let junit = read(&desk, "junit.xml");
    assert!(junit.contains("name=\"stdout-banner\">\n    <failure"), "{junit}");
    let sarif = parsed(&read(&desk, "check.sarif"));
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("stdout-banner"), &json!("error")));
    assert!(read(&desk, "check.md").contains("| error | [stdout-banner]"));
    let wire = read(&desk, "wire.jsonl");
    let lines: Vec<Value> = wire.lines().map(parsed).collect();
    assert!(lines.iter().any(|line| line["line"] == "Welcome" && line["dropped"] == "not a message"), "{wire}");
    assert!(lines.iter().any(|line| line["direction"] == "sent" && line["time"].is_string()), "{wire}");
}

#[test]
fn flags_limit_the_protocol_versions_and_name_the_server() {
    let desk = Desk::empty();
    for (version, revisions) in [
        ("2026-07-28", json!(["2026-07-28"])),
        ("2025-11-25", json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])),
    ] {
        let flags = ["mcp", "check", "--json", "--protocol-version", version, "--name", "shop", "--junit", "junit.xml"];
        let ended = desk.toolgate(&[&flags[..], &DEMO[..]].concat()).expect(0);
        assert_eq!(parsed(&ended.out)["revisions"], revisions, "{}", ended.out);
        assert!(read(&desk, "junit.xml").contains("<testsuite name=\"toolgate mcp check shop: "));
    }
}

#[test]
fn tools_are_compared_with_a_saved_list() {
    let desk = Desk::empty();
    desk.toolgate(&[&["mcp", "check", "--save-tools", "tools.json"], &DEMO[..]].concat()).expect(0);
    desk.toolgate(&[&["mcp", "check", "--against", "tools.json"], &DEMO[..]].concat()).expect(0);
    let mut saved = parsed(&read(&desk, "tools.json"));
    let tools = saved["tools"].as_array_mut().unwrap();
    tools.push(json!({"name": "refund", "inputSchema": {"type": "object"}}));
    desk.write("tools.json", &saved.to_string());
    let ended = desk.toolgate(&[&["mcp", "check", "--json", "--against", "tools.json"], &DEMO[..]].concat()).expect(9);
    assert!(rules(&parsed(&ended.out)).contains(&"tool-removed"), "{}", ended.out);
}

#[test]
fn secrets_of_the_environment_are_neither_reported_nor_logged() {
    let desk = Desk::empty();
    let line = "echo \"key $API_KEY\"; exec toolgate demo-server";
    let words = [
        "mcp",
        "check",
        "--json",
        "--wire",
        "wire.jsonl",
        "--inherit-env",
        "--env",
        "API_KEY=sk-a1b2c3d4e5f6g7",
        "--",
        "sh",
        "-c",
        line,
    ];
    let ended = desk.toolgate(&words).expect(9);
    assert!(ended.out.contains("key [redacted]"), "{}", ended.out);
    assert!(![ended.out, ended.err, read(&desk, "wire.jsonl")].concat().contains("a1b2c3d4"));
}

#[test]
fn a_server_that_does_not_start_is_told_from_one_with_mistakes() {
    let ended = Desk::empty().toolgate(&["mcp", "check", "--", "sh", "-c", "echo no database >&2; exit 3"]).expect(5);
    assert!(ended.out.contains("no database"), "{}", ended.out);
    let ended = Desk::empty().toolgate(&["mcp", "check", "--only-rule", "stdout-nois", "--fixture"]).expect(2);
    assert!(ended.err.contains("stdout-noise"), "{}", ended.err);
}
