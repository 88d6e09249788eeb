//! `toolgate usage`: tokens and cost of runs by day, agent, model and run.

use serde_json::{Value, json};

use super::desk::{Desk, Ended};

/// Two agents with models of their own: the first has a price, the second has none.
fn desk() -> Desk {
    let desk = Desk::empty();
    desk.write("priced.yaml", "turns: [{ say: Done., usage: { input_tokens: 1000, output_tokens: 10 } }]");
    let reply = "{ say: Done., usage: { input_tokens: 5, output_tokens: 1 } }";
    desk.write("unpriced.yaml", &format!("turns: [{reply}, {reply}]"));
    desk.write(
        "toolgate.yaml",
        "
models: { main: { scripted: { file: priced.yaml } }, other: { scripted: { file: unpriced.yaml } } }
prices: { main: { input: 2, output: 8 } }
agents: { desk: { model: main }, night: { model: other } }
",
    );
    for agent in ["desk", "desk", "night"] {
        desk.toolgate(&["run", "--agent", agent, "Hello"]).expect(0);
    }
    desk
}

fn report(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {} {}", ended.out, ended.err))
}

fn by(desk: &Desk, what: &str) -> Value {
    report(&desk.toolgate(&["usage", "--by", what, "--json"]).expect(0))
}

#[test]
fn the_cost_of_runs_is_summed_by_agent_by_model_and_by_day() {
    let desk = desk();
    for (what, names) in [("agent", ["desk", "night"]), ("model", ["main", "other"])] {
        let report = by(&desk, what);
        let groups = report["groups"].as_array().unwrap();
        let facts = |group: &Value| json!([group["name"], group["runs"], group["usage"]["cost_usd"]]);
        assert_eq!(facts(&groups[0]), json!([names[0], 2, "0.00416"]));
        assert_eq!(facts(&groups[1]), json!([names[1], 1, null]), "an unknown cost is not zero");
    }
    let total = &by(&desk, "day")["total"];
    assert_eq!((&total["runs"], &total["usage"]["input_tokens"]), (&json!(3), &json!(2005)));
    assert_eq!((&total["runs_without_cost"], &total["runs_without_tokens"]), (&json!(1), &json!(0)));
    assert_eq!(by(&desk, "run")["groups"].as_array().unwrap().len(), 3);
}

#[test]
fn a_table_marks_a_total_that_lacks_a_cost() {
    let shown = desk().toolgate(&["usage", "--by", "agent"]).expect(0).out;
    let row = |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("desk").contains("$0.0042") && row("night").contains("unknown"), "{shown}");
    assert!(shown.ends_with("3 runs: 2005 → 21 tokens, at least $0.0042; the cost of 1 run not known\n"), "{shown}");
}

#[test]
fn a_session_with_a_run_whose_cost_is_unknown_costs_at_least_that_of_the_others() {
    let desk = desk();
    for model in ["main", "other"] {
        desk.toolgate(&["run", "--session", "s", "--agent", "desk", "--model", model, "Hello"]).expect(0);
    }
    for words in [&["sessions", "list"][..], &["sessions", "show", "s"]] {
        let shown = desk.toolgate(words).expect(0).out;
        assert!(shown.contains("at least $0.0021"), "{shown}");
    }
}

#[test]
fn runs_before_the_time_and_of_other_agents_are_left_out() {
    let desk = desk();
    let none = desk.toolgate(&["usage", "--since", "2999-01-01T00:00:00Z"]).expect(0);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", "no runs in this time\n"));
    assert!(desk.toolgate(&["usage", "--since", "1h"]).expect(0).out.contains("3 runs"));
    assert!(desk.toolgate(&["usage", "--agent", "night"]).expect(0).out.contains("1 run:"));
    assert!(desk.toolgate(&["usage", "--since", "soon"]).expect(2).err.contains("2d"));
}

#[test]
fn a_fork_counts_only_its_own_replies() {
    let desk = Desk::playing("turns: [{ say: A., usage: { input_tokens: 7, output_tokens: 1 } }, { say: B. }]");
    desk.toolgate(&["run", "x"]).expect(0);
    desk.toolgate(&["runs", "fork", "last", "--message", "And more?"]).expect(0);
    let total = &by(&desk, "day")["total"];
    assert_eq!((&total["runs"], &total["usage"]["input_tokens"]), (&json!(2), &json!(7)));
    assert_eq!(total["runs_without_tokens"], 1, "the reply of the fork reports no usage");
}
