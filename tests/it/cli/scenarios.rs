//! `toolgate mcp test`: scenarios with the bundled shop and scripted models.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::desk::{Desk, Ended};

const HEAD: &str = "server: { name: shop, stdio: { command: toolgate, args: [demo-server] } }\n";

const FIND: &str = "
scenarios:
  - name: finds
    task: Find {{name}}
    answers: { approvals: approve }
    cases:
      - { name: Ada, with: { name: Ada Lindqvist, id: C-1001 } }
      - { name: nemo, with: { name: Nemo, id: C-9 } }
    model:
      scripted:
        - { usage: { input_tokens: 50, output_tokens: 5 }, calls: [{ name: mcp_shop_find_customer, arguments: { name: \"{{name}}\" } }] }
        - { usage: { input_tokens: 50, output_tokens: 5 }, say: \"{{last_result}}\" }
    expect:
      calls: [{ tool: find_customer, arguments: { name: \"{{name}}\" }, result: { structured: { customers: [{ id: \"{{id}}\" }] } } }]
      turns: 2
      tokens: { max: 110 }
      answer: { contains: \"{{id}}\" }
";

/// A desk with a scenario file.
fn desk(scenarios: &str) -> Desk {
    let desk = Desk::playing("turns: [{ say: hello }]");
    desk.write("s.yaml", &format!("{HEAD}{scenarios}"));
    desk
}

fn test(desk: &Desk, more: &[&str]) -> Ended {
    desk.toolgate(&[&["mcp", "test", "s.yaml"], more].concat())
}

fn report(desk: &Desk, more: &[&str]) -> Value {
    let ended = test(desk, &[&["--json"], more].concat());
    serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{} {}", ended.out, ended.err))
}

/// Adds models to the configuration. The agent keeps its own.
fn with_models(desk: &Desk, models: &str) {
    let config = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    let config =
        config.replace("models: { ", models).replace("    servers: [shop]", "    model: played\n    servers: [shop]");
    desk.write("toolgate.yaml", &config);
}

/// A scenario with one call that requires approval.
fn note(more: &str) -> String {
    format!(
        "
scenarios:
  - name: notes
    task: note it
    model: {{ scripted: [{{ calls: [{{ name: mcp_shop_add_note, arguments: {{ customer_id: C-1001, text: x }} }}] }}, {{ say: ok }}] }}
{more}"
    )
}

#[test]
fn the_wire_of_each_case_is_written() {
    let desk = desk(FIND);
    let ended = test(&desk, &["--wire", "wire.jsonl", "--only", "Ada"]).expect(0);
    let wire = std::fs::read_to_string(desk.path().join("wire.jsonl")).unwrap();
    assert!(wire.contains("\"connection\":\"server\"") && wire.contains("find_customer"), "{wire} {}", ended.err);
    test(&desk, &["--wire", "wire.jsonl", "--jobs", "2"]).expect(2);
}

#[test]
fn cases_pass_and_fail_with_expected_and_actual_values() {
    let desk = desk(FIND);
    let ended = test(&desk, &["--jobs", "2"]).expect(1);
    assert!(ended.out.starts_with("passed  finds [Ada], 2 turns, 1 call, "), "{}", ended.out);
    let nemo = "        expect.calls[0].result at call 1 (mcp_shop_find_customer), $.structured.customers[0]: the result differs\n          \
                expected: {\"id\":\"C-9\"}\n          actual:   nothing\n";
    assert!(ended.out.contains("FAILED  finds [nemo]") && ended.out.contains(nemo), "{}", ended.out);
    assert!(ended.out.ends_with("\n1 passed, 1 failed, 0 skipped, 0 errors\n"), "{}", ended.out);
    test(&desk, &["--only", "Ada"]).expect(0);
}

#[test]
fn reports_have_each_case_with_a_waterfall() {
    let desk = desk(FIND);
    test(&desk, &["--junit", "j.xml", "--markdown", "m.md"]).expect(1);
    let read = |name: &str| std::fs::read_to_string(desk.path().join(name)).unwrap();
    let (xml, markdown) = (read("j.xml"), read("m.md"));
    assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{xml}");
    assert!(xml.contains("<failure message=\"expect.calls[0].result at call 1"), "{xml}");
    assert!(markdown.contains("❌ failed | finds [nemo] | 2 | 1 | 110 |"), "{markdown}");
    let lines: Vec<&str> = markdown.lines().filter(|line| line.starts_with("mcp_shop_find_customer ")).collect();
    assert_eq!(lines.len(), 2, "{markdown}");
    let json = report(&desk, &[]);
    assert_eq!(json["counts"], json!({"passed": 1, "failed": 1, "skipped": 0, "errors": 0}));
    let attempt = &json["cases"][0]["attempts"][0];
    assert_eq!((&attempt["tokens"], &attempt["steps"][1]["name"]), (&json!(110), &json!("mcp_shop_find_customer")));
    assert!(attempt["trace_id"].as_str().is_some_and(|id| id.len() == 32), "{attempt}");
}

#[test]
fn an_approval_is_answered_by_the_file_or_is_a_finding() {
    let findings = |more: &str| {
        let json = report(&desk(&note(more)), &[]);
        let findings = json["cases"][0]["attempts"][0]["findings"].as_array().cloned().unwrap();
        findings.iter().map(|finding| finding["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        findings(
            "    answers: { approvals: approve }\n    expect: { calls: [{ tool: add_note, result: { text: { $pattern: ^noted } } }] }"
        ),
        [""; 0]
    );
    assert_eq!(
        findings(
            "    answers: { approvals: [{ tool: add_*, decision: deny, reason: no }] }\n    expect: { errors: 1 }"
        ),
        [""; 0]
    );
    assert_eq!(findings("    policy: bypass"), [""; 0]);
    assert_eq!(findings("    expect: { status: pending }"), [""; 0]);
    let without = findings("    expect: { turns: 1 }");
    assert!(without[0].contains("requires approval; add `answers: { approvals: approve }`"), "{without:?}");
    assert!(without[1].contains("the run ended as `pending`"), "{without:?}");
}

#[test]
fn external_tools_and_questions_of_servers_are_answered_by_the_file() {
    let desk = Desk::playing("turns: []");
    let asker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp/asker.py");
    desk.write(
        "s.yaml",
        &format!(
            "
scenarios:
  - name: deletes
    task: delete it
    policy: bypass
    server: {{ stdio: {{ command: python3, args: [-B, {}, notes] }} }}
    external_tools: [{{ name: lookup, description: Looks up. }}]
    model:
      scripted:
        - calls: [{{ name: mcp_server_delete, arguments: {{ what: all }} }}, {{ name: ext_lookup }}]
        - {{ say: \"{{{{last_result}}}}\" }}
    answers:
      elicitations: {{ \"*\": {{ action: accept, content: {{}} }} }}
      external: {{ lookup: {{ result: {{ found: 7 }} }} }}
    expect:
      calls: [{{ tool: delete, result: {{ text: deleted all }} }}, {{ tool: ext_lookup, result: {{ structured: {{ found: 7 }} }} }}]
",
            asker.display()
        ),
    );
    let ended = test(&desk, &[]).expect(0);
    assert!(ended.out.contains("1 passed"), "{}", ended.out);
    let notes = std::fs::read_to_string(desk.path().join("notes")).unwrap();
    assert_eq!(notes, "deleted all\n", "the call was held for its answer");
}

#[test]
fn a_real_model_is_skipped_without_live_and_is_never_green() {
    let desk = desk(
        "
scenarios:
  - { name: real, task: hi, model: { configured: gpt } }
  - { name: played, task: hi, model: { configured: played }, expect: { answer: { equals: hello } } }
",
    );
    let models = "models: { gpt: { openai_chat: { model: m, base_url: \"http://localhost:9/v1\", api_key: k } }, ";
    with_models(&desk, models);
    let ended = test(&desk, &[]).expect(0);
    assert!(
        ended.out.contains("skipped real\n        the model `gpt` is a real one; --live runs it\n"),
        "{}",
        ended.out
    );
    assert!(ended.out.ends_with("1 passed, 0 failed, 1 skipped, 0 errors\n"), "{}", ended.out);
    let only = test(&desk, &["--only", "real"]).expect(1);
    assert!(only.err.contains("no case ran"), "{}", only.err);
    assert_eq!(report(&desk, &["--only", "real"])["passed"], false);
    // The provider cannot be reached, so its run fails.
    let live = report(&desk, &["--only", "real", "--live", "--runs", "2"]);
    assert_eq!(live["cases"][0]["attempts"].as_array().map(Vec::len), Some(2), "{live}");
    assert_eq!(live["cases"][0]["outcome"], "failed");
}

#[test]
fn a_judge_decides_about_the_answer() {
    let scenarios = |criteria: &str| {
        format!(
            "
scenarios:
  - name: judged
    task: hi
    model: {{ scripted: [{{ say: Hello Ada }}] }}
    expect: {{ answer: {{ judge: {{ model: {criteria}, criteria: It greets Ada. }} }} }}
"
        )
    };
    for (judge, code, told) in [
        ("yes", 0, "1 passed"),
        ("no", 1, "the judge `no` decided FAIL: It is rude."),
        ("none", 1, "there is no model `none`"),
    ] {
        let desk = desk(&scenarios(judge));
        let models = "models: { \"yes\": { scripted: { file: yes.yaml } }, \"no\": { scripted: { file: no.yaml } }, ";
        with_models(&desk, models);
        desk.write("yes.yaml", "turns: [{ expect: { contains: It greets Ada. }, say: PASS }]");
        desk.write("no.yaml", "turns: [{ say: \"FAIL\\nIt is rude.\" }]");
        let ended = test(&desk, &[]).expect(code);
        assert!(ended.out.contains(told), "{}", ended.out);
    }
}

#[test]
fn a_recording_plays_the_model_or_the_server() {
    let desk = desk("
scenarios:
  - { name: model, task: Find Ada, model: { recorded: ada.yaml }, expect: { call_count: 1, answer: { contains: found } } }
  - { name: both, task: Find Ada, model: { recorded: ada.yaml }, server: { recorded: ada.yaml }, expect: { errors: 0 } }
");
    desk.write(
        "conversation.yaml",
        "turns: [{ calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }, { say: found }]",
    );
    desk.toolgate(&["mcp", "record", "-o", "ada.yaml", "Find Ada"]).expect(0);
    test(&desk, &[]).expect(0);
}

#[test]
fn a_matrix_runs_each_case_with_each_model() {
    let desk = desk(
        "
models:
  short: { scripted: [{ say: \"1\" }] }
  long: { scripted: [{ say: one hundred }] }
scenarios: [{ name: counts, task: count, expect: { answer: { pattern: \"^.$\" } } }]
",
    );
    let json = report(&desk, &[]);
    let outcomes: Vec<[&Value; 2]> =
        json["cases"].as_array().unwrap().iter().map(|case| [&case["title"], &case["outcome"]]).collect();
    assert_eq!(outcomes, [[&json!("counts (long)"), &json!("failed")], [&json!("counts (short)"), &json!("passed")]]);
    let replaced = report(&desk, &["--model", "played"]);
    assert_eq!(replaced["cases"][0]["title"], "counts (played)");
}

#[test]
fn a_case_that_cannot_run_is_an_error_and_a_hanging_one_ends() {
    let desk = desk(
        "
scenarios:
  - { name: unknown, task: hi, server: { configured: warehouse }, model: { scripted: [{ say: x }] } }
  - { name: hangs, task: hi, timeout_s: 1, model: { scripted: [{ hang: true }] } }
",
    );
    let ended = test(&desk, &[]).expect(1);
    assert!(
        ended.out.contains("ERROR   unknown\n        there is no MCP server `warehouse`; configured are `shop`"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("timeout_s: the run did not end in time, and was cancelled"), "{}", ended.out);
}

#[test]
fn a_bad_file_is_refused_with_its_line_and_a_remedy() {
    for (scenarios, told) in [
        ("scenarios: []", "there are no scenarios"),
        ("scenarios: [{ name: a, task: b }]", "it has no model; add `model:"),
        ("scenarios:\n  - name: a\n    task: b\n    model: { scriptd: [] }", "s.yaml:5:14"),
        ("scenarios:\n  - name: a\n    task: b\n    expect: { trns: 1 }", "did you mean `turns`?"),
        (
            "scenarios:\n  - name: a\n    task: b\n    expect: { calls: [{ tool: a, arguments: { $any: 1, $type: text } }] }",
            "a matcher has one condition",
        ),
        (
            "scenarios:\n  - name: a\n    task: \"{{x}}\"\n    model: { scripted: [] }\n    cases: [{ name: c }]",
            "it has no variable `x`",
        ),
        ("server: { stdio: { command: a }, http: { url: b } }\nscenarios: []", "a server has one of `stdio:"),
        ("live: { runs: 0 }\nscenarios: []", "such as `{ runs: 5, pass_rate: 0.8 }`"),
    ] {
        let desk = Desk::empty();
        desk.write("s.yaml", scenarios);
        let ended = test(&desk, &[]).expect(2);
        let flat = ended.err.replace("\n  │ ", " ");
        assert!(
            flat.contains(told) || flat.contains(&told.replace("s.yaml:5:14", "s.yaml:4:14")),
            "{told}: {}",
            ended.err
        );
    }
    let missing = Desk::empty().toolgate(&["mcp", "test", "none.yaml"]).expect(2);
    assert!(missing.err.contains("there is no file `none.yaml`"), "{}", missing.err);
}

#[test]
fn a_watch_calls_no_real_model() {
    let refused = test(&desk(FIND), &["--live", "--watch", "s.yaml"]).expect(2);
    assert!(refused.err.contains("leave --watch or --live out"), "{}", refused.err);
}

#[test]
fn a_watch_runs_again_after_a_change() {
    let desk = desk(
        "scenarios: [{ name: greets, task: hi, model: { scripted: [{ say: hello }] }, expect: { answer: { equals: hi } } }]",
    );
    let mut child =
        desk.command(&["mcp", "test", "s.yaml", "--watch", "s.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut summary = || lines.by_ref().map(Result::unwrap).find(|line| line.contains(" skipped, ")).unwrap();
    assert_eq!(summary(), "0 passed, 1 failed, 0 skipped, 0 errors");
    let text = std::fs::read_to_string(desk.path().join("s.yaml")).unwrap();
    desk.write("s.yaml", &text.replace("equals: hi", "equals: hello"));
    assert_eq!(summary(), "1 passed, 0 failed, 0 skipped, 0 errors");
    child.kill().unwrap();
    child.wait().unwrap();
}
