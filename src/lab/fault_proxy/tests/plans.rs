//! Plans: the grammar of a fault, and schedules that a seed repeats.

use crate::fault_proxy::{FaultPlan, FaultTransport, kinds};

fn chosen(plan: &mut FaultPlan, methods: &[&str]) -> Vec<String> {
    let faults = methods.iter().map(|method| plan.choose(method));
    faults.map(|chosen| chosen.map_or("-".into(), |chosen| chosen.written)).collect()
}

fn refused(written: &str, transport: FaultTransport) -> String {
    FaultPlan::default().add(written, transport).unwrap_err()
}

#[test]
fn a_fault_names_its_method_and_its_occurrence() {
    let mut plan = FaultPlan::default();
    for fault in ["hang#2", "slow=0.5@tools/list#all", "result-null"] {
        plan.add(fault, FaultTransport::Both).unwrap_or_else(|_| plan.add(fault, FaultTransport::Stdio).unwrap());
    }
    let methods = ["tools/list", "tools/call", "tools/call", "tools/call", "ping", "tools/list"];
    let list = "slow=0.5@tools/list#all";
    assert_eq!(chosen(&mut plan, &methods), [list, "result-null", "hang#2", "-", "-", list]);
    assert!(plan.not_injected().is_empty());
}

#[test]
fn a_wrong_fault_is_refused_with_the_expected_form() {
    let stdio = FaultTransport::Stdio;
    assert!(refused("hangs", stdio).starts_with("`hangs`: there is no fault `hangs`; there are: slow, hang, "));
    assert!(refused("hang#0", stdio).contains("a number from 1"));
    assert!(refused("hang=3", stdio).contains("it takes no value"));
    assert!(refused("slow=soon", stdio).contains("expected seconds"));
    assert!(refused("huge-result=9999", stdio).contains("expected MiB"));
    assert!(refused("http-401", stdio).contains("is a fault of HTTP"));
    assert!(refused("die", FaultTransport::Http).contains("is a fault of stdio"));
}

#[test]
fn a_seed_repeats_its_schedule_and_leaves_handshakes_alone() {
    let schedule = |seed, names: &[&str]| {
        let mut plan = FaultPlan::default();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        plan.schedule(seed, 0.25, &names, FaultTransport::Stdio).unwrap();
        assert_eq!(chosen(&mut plan, &["initialize", "ping"]), ["-", "-"]);
        chosen(&mut plan, &["tools/call"; 400])
    };
    let first = schedule(7, &[]);
    assert_eq!(first, schedule(7, &[]));
    assert_ne!(first, schedule(8, &[]));
    let injected = first.iter().filter(|fault| *fault != "-").count();
    assert!((60..140).contains(&injected), "{injected}");
    assert!(!first.iter().any(|fault| fault == "die" || fault == "http-401"), "{first:?}");
    assert!(schedule(7, &["die", "slow"]).iter().all(|fault| ["-", "die", "slow"].contains(&fault.as_str())));
}

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = kinds().map(|kind| kind.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
