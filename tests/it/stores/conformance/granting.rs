//! Grants.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::core::id::RunId;
use toolgate::core::run::{Channel, Status, ToolGrant};
use toolgate::core::tool::{Origin, ToolName};
use toolgate::ports::{ApprovedCall, Grant, GrantContext, GrantFilter, GuardedTool, Revoked, SessionRow};

use super::Store;
use crate::stores::journals::{Appending, append, claiming, run};

pub(crate) fn grant(id: &str, definition: &str) -> Grant {
    Grant {
        id: id.into(),
        session: None,
        tenant: toolgate::core::id::Tenant::default(),
        agent: "desk".into(),
        principal: None,
        tool: name("mcp_disk_delete"),
        origin: Origin::Mcp { server: "disk".into(), tool: "delete".into() },
        definition: definition.to_owned(),
        arguments: None,
        when: None,
        asked_by: None,
        summary: "disk: delete(path: \"a\")".to_owned(),
        by: "ada".to_owned(),
        via: Channel::Library,
        reason: None,
        given_with: Some(ApprovedCall { run: "run_a".into(), call: "call_1".into() }),
        created_at: at(100),
        expires_at: None,
        revoked: None,
    }
}

fn name(tool: &str) -> ToolName {
    ToolName::parse(tool).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn context(session: &str) -> GrantContext {
    GrantContext {
        tenant: toolgate::core::id::Tenant::default(),
        session: session.into(),
        agent: "desk".into(),
        principal: None,
    }
}

pub(crate) fn guarded(definition: &str) -> GuardedTool {
    GuardedTool { tool: name("mcp_disk_delete"), definition: definition.to_owned() }
}

fn ids(mut granted: Vec<ToolGrant>) -> Vec<String> {
    granted.sort_by_key(|granted| granted.grant.clone());
    granted.into_iter().map(|granted| granted.grant.to_string()).collect()
}

pub(crate) async fn a_grant_covers_the_calls_it_was_given_for<S: Store>(store: Arc<S>) {
    let of_the_session = Grant { session: Some("s".into()), ..grant("in_session", "h") };
    let of_ann = Grant { principal: Some("ann".into()), ..grant("of_ann", "h") };
    for given in [of_the_session, of_ann, grant("always", "h")] {
        store.grant(&given).await.unwrap();
    }
    let found = |context: GrantContext, definition: &'static str| {
        let store = store.clone();
        async move { ids(store.granted(&context, &[guarded(definition)], at(200)).await.unwrap()) }
    };
    assert_eq!(found(context("s"), "h").await, ["always", "in_session"]);
    assert_eq!(found(context("another"), "h").await, ["always"]);
    assert_eq!(found(context("s"), "changed").await, [""; 0]);
    assert_eq!(found(GrantContext { agent: "another".into(), ..context("s") }, "h").await, [""; 0]);
    assert_eq!(found(GrantContext { tenant: "another".into(), ..context("s") }, "h").await, [""; 0]);
    assert_eq!(found(GrantContext { principal: Some("ann".into()), ..context("s") }, "h").await, ["of_ann"]);
    assert_eq!(found(GrantContext { principal: Some("bob".into()), ..context("s") }, "h").await, [""; 0]);
}

pub(crate) async fn granting_twice_is_granting_once<S: Store>(store: Arc<S>) {
    let given = grant("g", "h");
    store.grant(&given).await.unwrap();
    store.grant(&given).await.unwrap();
    store.grant(&Grant { by: "bob".to_owned(), ..given.clone() }).await.unwrap();
    assert_eq!(store.grants(&GrantFilter::default(), at(200)).await.unwrap(), [given]);
}

pub(crate) async fn a_batch_finds_every_covered_tool_under_its_own_name<S: Store>(store: Arc<S>) {
    assert!(store.granted(&context("s"), &[], at(200)).await.unwrap().is_empty());
    let tool =
        |number: usize| GuardedTool { tool: name(&format!("t{number}")), definition: format!("[\"h '{number}🦀") };
    for number in (0..300).step_by(3) {
        store.grant(&grant(&format!("g{number}"), &tool(number).definition)).await.unwrap();
    }
    let asked: Vec<_> = (0..300).map(tool).collect();
    let mut found: Vec<String> =
        store.granted(&context("s"), &asked, at(200)).await.unwrap().iter().map(|one| one.tool.to_string()).collect();
    let mut expected: Vec<String> = (0..300).step_by(3).map(|number| format!("t{number}")).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

pub(crate) async fn a_grant_ends_with_its_time_or_when_it_is_revoked<S: Store>(store: Arc<S>) {
    let brief = Grant { expires_at: Some(at(150)), arguments: Some("sha256:a".into()), ..grant("brief", "h") };
    store.grant(&brief).await.unwrap();
    store.grant(&grant("revoked", "h")).await.unwrap();
    let hold = ["brief".into(), "revoked".into(), "unknown".into()];
    assert_eq!(store.hold(&hold, at(149)).await.unwrap(), [true, true, false]);
    let [found, _] = &store.granted(&context("s"), &[guarded("h")], at(149)).await.unwrap()[..] else {
        panic!("two hold")
    };
    assert_eq!((found.arguments.as_deref(), found.expires_at), (Some("sha256:a"), Some(at(150))));

    let first = Revoked { at: at(160), by: "bob".to_owned() };
    let revoked = store.revoke(&"revoked".into(), &first).await.unwrap().unwrap();
    let again = store.revoke(&"revoked".into(), &Revoked { at: at(170), by: "eve".to_owned() }).await.unwrap().unwrap();
    assert_eq!((revoked.revoked.as_ref(), &again), (Some(&first), &revoked));
    assert_eq!(store.revoke(&"unknown".into(), &first).await.unwrap(), None);
    // A revoked grant stays revoked when the same decision is written again.
    store.grant(&grant("revoked", "h")).await.unwrap();

    assert_eq!(store.hold(&hold, at(165)).await.unwrap(), [false, false, false]);
    assert!(store.granted(&context("s"), &[guarded("h")], at(165)).await.unwrap().is_empty());
    assert!(store.grants(&GrantFilter::default(), at(165)).await.unwrap().is_empty());
    let all = GrantFilter { ended: true, ..GrantFilter::default() };
    assert_eq!(store.grants(&all, at(165)).await.unwrap().len(), 2);
}

pub(crate) async fn grants_are_listed_newest_first_and_filtered<S: Store>(store: Arc<S>) {
    let given = [
        Grant { created_at: at(1), ..grant("old", "h") },
        Grant { created_at: at(3), session: Some("s".into()), ..grant("in_session", "h") },
        Grant { created_at: at(2), agent: "another".into(), ..grant("of_another", "h") },
    ];
    for grant in &given {
        store.grant(grant).await.unwrap();
    }
    let listed = |filter: GrantFilter| {
        let store = store.clone();
        async move {
            let found = store.grants(&filter, at(200)).await.unwrap();
            found.into_iter().map(|grant| grant.id.to_string()).collect::<Vec<_>>()
        }
    };
    assert_eq!(listed(GrantFilter::default()).await, ["in_session", "of_another", "old"]);
    assert_eq!(
        listed(GrantFilter { agent: Some("desk".into()), ..GrantFilter::default() }).await,
        ["in_session", "old"]
    );
    let elsewhere = GrantFilter { session: Some("elsewhere".into()), ..GrantFilter::default() };
    assert_eq!(listed(elsewhere).await, ["of_another", "old"]);
}

pub(crate) async fn grants_are_found_by_id_and_tenant<S: Store>(store: Arc<S>) {
    let given = [
        Grant { created_at: at(1), tenant: "acme".into(), ..grant("of_acme", "h") },
        Grant { created_at: at(3), tenant: "acme".into(), ..grant("also_of_acme", "h") },
        Grant { created_at: at(4), ..grant("of_unknown", "h") },
    ];
    for grant in &given {
        store.grant(grant).await.unwrap();
    }
    for (filter, found) in [
        (GrantFilter { tenant: Some("acme".into()), ..GrantFilter::default() }, vec!["also_of_acme", "of_acme"]),
        (GrantFilter { tenant: Some("default".into()), ..GrantFilter::default() }, vec!["of_unknown"]),
        (GrantFilter { id: Some("of_acme".into()), ..GrantFilter::default() }, vec!["of_acme"]),
        (
            GrantFilter { id: Some("of_acme".into()), tenant: Some("default".into()), ..GrantFilter::default() },
            Vec::new(),
        ),
    ] {
        let listed = store.grants(&filter, at(200)).await.unwrap();
        let ids: Vec<&str> = listed.iter().map(|grant| grant.id.as_str()).collect();
        assert_eq!(ids, found, "{filter:?}");
    }
}

pub(crate) async fn pages_of_grants_contain_each_match_once<S: Store>(store: Arc<S>) {
    let now = Timestamp::from_millisecond(100_500).unwrap();
    for number in 0..40 {
        let given = Grant {
            created_at: at(number % 7),
            tenant: if number % 5 == 0 { "acme".into() } else { toolgate::core::id::Tenant::default() },
            agent: if number % 3 == 0 { "another".into() } else { "desk".into() },
            session: (number % 4 == 0).then(|| "s".into()),
            tool: name(if number % 2 == 0 { "mcp_disk_delete" } else { "mcp_disk_read" }),
            // Before, at, and after the time of the list, some with fewer digits.
            expires_at: [None, Some(100_000), Some(100_500), Some(100_501), Some(101_000)][number as usize % 5]
                .map(|ms| Timestamp::from_millisecond(ms).unwrap()),
            ..grant(&format!("grant_{number:02}"), "h")
        };
        store.grant(&given).await.unwrap();
        if number % 11 == 0 {
            store.revoke(&given.id, &Revoked { at: at(99), by: "ann".to_owned() }).await.unwrap();
        }
    }
    let all = GrantFilter { ended: true, ..GrantFilter::default() };
    let every = store.grants(&all, now).await.unwrap();
    assert_eq!(every.len(), 40);
    let mut filters = vec![all];
    for tenant in [None, Some("default")] {
        for (agent, session, tool) in
            [(None, None, None), (Some("desk"), Some("s"), None), (None, Some("x"), Some("mcp_disk_read"))]
        {
            filters.push(GrantFilter {
                tenant: tenant.map(Into::into),
                agent: agent.map(Into::into),
                session: session.map(Into::into),
                tool: tool.map(Into::into),
                ..GrantFilter::default()
            });
        }
    }
    for filter in filters {
        let meant: Vec<Grant> = every.iter().filter(|grant| filter.admits(grant, now)).cloned().collect();
        assert!(!meant.is_empty(), "{filter:?}");
        for limit in [1, 3, 100] {
            let mut paged: Vec<Grant> = Vec::new();
            loop {
                let after = paged.last().map(|grant| grant.id.clone());
                let page = GrantFilter { after, limit: Some(limit), ..filter.clone() };
                let page = store.grants(&page, now).await.unwrap();
                assert!(page.len() <= limit);
                if page.is_empty() {
                    break;
                }
                paged.extend(page);
            }
            assert_eq!(paged, meant, "{filter:?} in pages of {limit}");
        }
    }
}

pub(crate) async fn a_grant_quotes_no_deleted_run_or_session<S: Store>(store: Arc<S>) {
    let quoting = |id: &str, session: Option<&str>, run: Option<RunId>| Grant {
        session: session.map(Into::into),
        reason: Some("a reason".to_owned()),
        given_with: run.map(|run| ApprovedCall { run, call: "call_1".into() }),
        ..grant(id, "d")
    };
    let grants =
        [quoting("a", Some("chat"), None), quoting("b", None, Some(run(1))), quoting("c", Some("other"), Some(run(2)))];
    for grant in &grants {
        store.grant(grant).await.unwrap();
    }
    store.append(append(run(1), 0, 2).leaving(Status::Completed)).await.unwrap();
    let row = SessionRow { head: None, ..claiming(run(3), "chat", 0).session.unwrap().row };
    store.save_session(0, &row).await.unwrap();

    store.purge(&run(1), 2, at(101)).await.unwrap();
    store.save_session(1, &SessionRow { deleted_at: Some(at(102)), ..row }).await.unwrap();

    for grant in grants {
        let filter = GrantFilter { id: Some(grant.id.clone()), ..GrantFilter::default() };
        let mut wanted = grant.clone();
        if grant.id.as_str() != "c" {
            wanted.blank();
            assert_eq!((wanted.summary.as_str(), &wanted.reason), ("mcp_disk_delete", &None));
        }
        assert_eq!(store.grants(&filter, at(103)).await.unwrap(), [wanted]);
    }
}
