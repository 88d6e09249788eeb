//! Laws of tool names: valid, unique, stable. The tool block is byte-identical in whatever order servers answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use toolgate_core::policy::{Policy, Verdict};
use toolgate_core::tool::{
    Builtin, McpTool, Origin, ServerTools, ToolFilter, ToolName, Toolset, ToolsetRules, external_name, mcp_name,
};

use crate::choices::{strictly, tapes};
use crate::fixtures::{external, externals, mcp, rule, rules, servers};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_]{0,6}", "[A-Za-z0-9_.-]{0,90}", ".{0,12}", Just("x".repeat(70))]
}

fn any_servers() -> impl Strategy<Value = Vec<ServerTools>> {
    let tools = proptest::collection::vec(any_text(), 0..6);
    proptest::collection::btree_map(any_text(), tools, 0..4).prop_map(|servers| {
        let tools = |names: Vec<String>| Arc::new(names.iter().map(|name| mcp(name, None, None)).collect());
        let server = |(id, names): (String, Vec<String>)| ServerTools {
            server: id.into(),
            trusted: false,
            endpoint: None,
            tools: tools(names),
            left_out: Vec::new(),
            stale: None,
            authorization: None,
        };
        servers.into_iter().map(server).collect()
    })
}

fn bytes(toolset: &Toolset) -> String {
    serde_json::to_string(toolset).unwrap()
}

fn names(toolset: &Toolset) -> Vec<&str> {
    toolset.iter().map(|tool| tool.name.as_str()).collect()
}

fn only(server: &str, tools: Vec<McpTool>) -> ServerTools {
    ServerTools {
        server: server.into(),
        trusted: false,
        endpoint: None,
        tools: Arc::new(tools),
        left_out: Vec::new(),
        stale: None,
        authorization: None,
    }
}

#[test]
fn no_other_tool_takes_the_name_of_a_builtin_tool() {
    let rules = ToolsetRules { pass_through: true, ..rules() };
    let offers = only("s", vec![mcp("result_read", None, None), mcp("read", None, None)]);
    let toolset = Toolset::assemble(&[external("result_read", 0)], &[offers], &rules);
    let of = |toolset: &Toolset, name: &str| toolset.get(name).map(|tool| tool.origin.clone());
    assert_eq!(of(&toolset, "result_read"), None);
    assert!(names(&toolset).iter().any(|name| name.starts_with("result_read_")), "{:?}", names(&toolset));

    let more = toolset.with_builtin(Builtin::ResultRead, &rules);
    assert_eq!(of(&more, "result_read"), Some(Origin::Builtin { tool: "result_read".into() }));
    assert_eq!(names(&more)[..toolset.len()], names(&toolset), "earlier tools keep their positions");
    assert_eq!(more.with_builtin(Builtin::ResultRead, &rules), more);
}

#[test]
fn a_deny_list_excludes_a_builtin_tool_and_an_allow_list_not() {
    let with = |allow: &[&str], deny: &[&str]| {
        let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).into()).collect();
        let filters = vec![ToolFilter { allow: owned(allow), deny: owned(deny) }];
        let toolset = Toolset::default().with_builtin(Builtin::ResultRead, &ToolsetRules { filters, ..rules() });
        toolset.get("result_read").map(|tool| tool.verdict)
    };
    assert_eq!(with(&["mcp_*"], &[]), Some(Verdict::Allow));
    assert_eq!(with(&[], &["result_*"]), None);
    let asked = ToolsetRules { policy: Arc::new(Policy::ask_always()), ..rules() };
    let toolset = Toolset::default().with_builtin(Builtin::ResultRead, &asked);
    assert_eq!(
        toolset.get("result_read").map(|tool| tool.verdict),
        Some(Verdict::Allow),
        "the default does not apply to it"
    );
    let denied = Policy { rules: vec![rule("none", Verdict::Deny, "*")], ..Policy::ask_always() };
    let toolset = Toolset::default()
        .with_builtin(Builtin::ResultRead, &ToolsetRules { policy: Arc::new(denied), ..ToolsetRules::default() });
    assert_eq!(toolset.get("result_read").map(|tool| tool.verdict), Some(Verdict::Deny), "a rule applies");
}

#[test]
fn filters_and_policies_interpret_patterns_alike() {
    let offered = |allow: &[&str], deny: &[&str]| {
        let patterns = |texts: &[&str]| texts.iter().map(|text| (*text).into()).collect();
        let filters = vec![ToolFilter { allow: patterns(allow), deny: patterns(deny) }];
        let offers = only("s", ["delete", "delete_all", "read"].map(|name| mcp(name, None, None)).into());
        let toolset = Toolset::assemble(&[], &[offers], &ToolsetRules { filters, ..rules() });
        names(&toolset).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(offered(&[], &["mcp_s_delete{,_all}"]), ["mcp_s_read"]);
    assert_eq!(offered(&["mcp_s_delete{,_all}"], &[]), ["mcp_s_delete", "mcp_s_delete_all"]);
    assert_eq!(offered(&["mcp_s_rea?"], &[]), ["mcp_s_read"]);
    assert!(offered(&["mcp_{s"], &[]).is_empty(), "an invalid pattern allows nothing");
    assert!(offered(&[], &["mcp_{s"]).is_empty(), "and denies everything");
}

proptest! {
    #![proptest_config(strictly())]

    #[test]
    fn every_name_is_valid_for_providers(server in any_text(), tool in any_text()) {
        for name in [mcp_name(&server.as_str().into(), &tool), external_name(&tool)] {
            prop_assert_eq!(ToolName::parse(name.as_str()), Some(name.clone()));
        }
        prop_assert_eq!(mcp_name(&server.as_str().into(), &tool), mcp_name(&server.as_str().into(), &tool));
    }

    #[test]
    fn the_tool_block_does_not_depend_on_the_order_of_answers(
        servers in any_servers(),
        externals in proptest::collection::vec(any_text(), 0..5),
        pass_through in any::<bool>(),
        mut order in tapes(),
    ) {
        let rules = ToolsetRules { pass_through, ..rules() };
        let externals: Vec<_> = (0..).zip(&externals).map(|(priority, name)| external(name, priority)).collect();
        let one = Toolset::assemble(&externals, &servers, &rules);
        let mut shuffled = order.shuffled(servers);
        for server in &mut shuffled {
            server.tools = Arc::new(order.shuffled(server.tools.to_vec()));
        }
        let other = Toolset::assemble(&order.shuffled(externals), &shuffled, &rules);
        prop_assert_eq!(bytes(&one), bytes(&other));
    }

    #[test]
    fn every_name_is_unique_and_leads_back_to_its_origin(servers in any_servers(), pass_through in any::<bool>()) {
        let rules = ToolsetRules { pass_through, ..rules() };
        let toolset = Toolset::assemble(&externals(), &servers, &rules);
        let unique: BTreeSet<&str> = names(&toolset).into_iter().collect();
        prop_assert_eq!(unique.len(), toolset.len());
        let origins: BTreeSet<String> = toolset.iter().map(|tool| format!("{:?}", tool.origin)).collect();
        prop_assert_eq!(origins.len(), toolset.len());
        for tool in toolset.iter() {
            prop_assert_eq!(toolset.get(tool.name.as_str()), Some(tool));
        }
        let offered: usize = servers.iter().map(|server| server.tools.len()).sum::<usize>() + externals().len();
        prop_assert_eq!(offered, toolset.len() + toolset.left_out().len(), "a tool is missing without a reason");
    }
}

#[test]
fn two_origins_of_one_plain_name_both_get_a_hash() {
    let clashing = [only("a", vec![mcp("b_c", None, None)]), only("a_b", vec![mcp("c", None, None)])];
    let toolset = Toolset::assemble(&[], &clashing, &rules());
    let names = names(&toolset);
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.starts_with("mcp_a_b_c_")), "{names:?}");
}

#[test]
fn a_tool_with_the_hashed_name_of_another_gets_no_calls_of_it() {
    let clashing = || vec![only("a", vec![mcp("b_c", None, None)]), only("a_b", vec![mcp("c", None, None)])];
    let honest = Toolset::assemble(&[], &clashing(), &rules());
    let mut hostile = clashing();
    for name in names(&honest) {
        Arc::make_mut(&mut hostile[0].tools).push(mcp(name.strip_prefix("mcp_a_").unwrap(), None, None));
    }
    let toolset = Toolset::assemble(&[], &hostile, &rules());
    let unique: BTreeSet<&str> = names(&toolset).into_iter().collect();
    assert_eq!((toolset.len(), unique.len()), (4, 4), "{:?}", names(&toolset));
}

#[test]
fn a_tool_listed_twice_keeps_its_plain_name() {
    let twice = [only("git", vec![mcp("log", None, None), mcp("log", Some(true), None)])];
    let toolset = Toolset::assemble(&[], &twice, &rules());
    assert_eq!(names(&toolset), ["mcp_git_log"]);
    assert_eq!(toolset.left_out().len(), 1);
}

#[test]
fn external_tools_come_first_and_each_kind_is_sorted_by_name() {
    let toolset = Toolset::assemble(&externals(), &servers(), &rules());
    let split = toolset.iter().position(|tool| matches!(tool.origin, Origin::Mcp { .. })).unwrap();
    let names = names(&toolset);
    assert_eq!(split, externals().len());
    assert!(names[..split].is_sorted() && names[split..].is_sorted(), "{names:?}");
}

#[test]
fn a_run_can_narrow_its_agents_tools_and_not_widen_them() {
    let filter = |allow: &[&str], deny: &[&str]| ToolFilter {
        allow: allow.iter().map(|pattern| (*pattern).into()).collect(),
        deny: deny.iter().map(|pattern| (*pattern).into()).collect(),
    };
    let agent = filter(&["mcp_files_*"], &["*_wipe"]);
    let run = filter(&["mcp_files_deny_wipe", "mcp_files_read", "mcp_web_fetch"], &[]);
    let rules = ToolsetRules { filters: vec![agent, run], ..rules() };
    assert_eq!(names(&Toolset::assemble(&externals(), &servers(), &rules)), ["mcp_files_read"]);
}
