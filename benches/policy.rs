//! Verdicts per second for 300 tools and 50 rules, with and without conditions on the arguments. The floor is measured
//! in the same run: the bare pattern matches of the same verdicts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use toolgate::core::pattern::Pattern;
use toolgate::core::policy::{Condition, Example, Match, Policy, Rule, Subject, Verdict};
use toolgate::core::tool::Tool;

const TOOLS: usize = 300;
const RULES: usize = 50;
const AT_LEAST: Duration = Duration::from_millis(600);

fn main() {
    // Under `cargo test --benches` one iteration is enough.
    let once = std::env::args().any(|argument| argument == "--test");
    let tools = tools();
    let arguments = arguments();
    let floor = floor(&tools, once);
    report("floor: bare pattern matches", floor, floor);
    for (name, policy, arguments) in [
        ("50 rules, no condition", policy(None), None),
        ("50 rules, no condition, a call", policy(None), Some(&arguments)),
        ("50 rules, 5 conditions, a tool", policy(Some(10)), None),
        ("50 rules, 5 conditions, a call", policy(Some(10)), Some(&arguments)),
        ("50 rules, 50 conditions, a call", policy(Some(1)), Some(&arguments)),
    ] {
        report(name, verdicts(&policy, &tools, arguments, once), floor);
    }
}

/// Rules of which five match each tool, by the number in its name. Every n-th rule has a condition.
fn policy(conditional_every: Option<usize>) -> Policy {
    let rules = (0..RULES).map(|n| {
        let matches = Match { tool: Some(pattern(n)), ..Match::default() };
        let rule = Rule::new(&format!("rule-{n}"), Verdict::Ask, "Because.", matches, vec![], vec![]).unwrap();
        match conditional_every.is_some_and(|every| n % every == 0) {
            true => rule.with_condition(Condition::parse("args.amount > 1000 && args.to.endsWith('.org')").unwrap()),
            false => rule,
        }
    });
    Policy { rules: rules.collect(), ..Policy::allow_always() }
}

fn pattern(n: usize) -> String {
    format!("mcp_*_{}*_file", n % 10)
}

fn tools() -> Vec<Tool> {
    let example = |n: usize| Example {
        server: Some(format!("server{}", n % 7)),
        tool: format!("{}_write_file", n % 100),
        ..Example::default()
    };
    (0..TOOLS).map(|n| example(n).tool()).collect()
}

fn arguments() -> Map<String, Value> {
    let lines: Vec<String> = (0..40).map(|n| format!("line {n} of what is to be written")).collect();
    json!({"amount": 250.5, "to": "someone@example.com", "lines": lines, "options": {"force": false, "mode": 7}})
        .as_object()
        .unwrap()
        .clone()
}

/// The time of one verdict.
fn verdicts(policy: &Policy, tools: &[Tool], arguments: Option<&Map<String, Value>>, once: bool) -> Duration {
    let agent = "assistant".into();
    each(tools, once, |tool| {
        let subject = Subject { tool, agent: Some(&agent), principal: None, arguments };
        black_box(policy.judge(&subject));
    })
}

fn floor(tools: &[Tool], once: bool) -> Duration {
    let patterns: Vec<_> = (0..RULES).map(|n| Pattern::parse(&pattern(n)).unwrap()).collect();
    let patterns = Arc::new(patterns);
    each(tools, once, |tool| {
        let matches = patterns.iter().filter(|pattern| pattern.fits(tool.name.as_str())).count();
        black_box(matches);
    })
}

fn each(tools: &[Tool], once: bool, mut judge: impl FnMut(&Tool)) -> Duration {
    tools.iter().for_each(&mut judge);
    let (begin, mut rounds) = (Instant::now(), 0);
    while rounds == 0 || (!once && begin.elapsed() < AT_LEAST) {
        tools.iter().for_each(&mut judge);
        rounds += 1;
    }
    begin.elapsed() / (rounds * TOOLS as u32)
}

fn report(name: &str, one: Duration, floor: Duration) {
    let (seconds, ratio) = (one.as_secs_f64(), one.as_secs_f64() / floor.as_secs_f64());
    let turn = one * TOOLS as u32;
    println!(
        "{name:<34} {:>12.0} /s   {one:>10.2?} each   {turn:>9.2?} for {TOOLS} tools   {ratio:>6.1} x floor",
        1.0 / seconds
    );
}
