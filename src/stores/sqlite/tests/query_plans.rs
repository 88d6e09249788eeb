//! Query plans: every lookup and page reads an index and its own rows.

use toolgate_core::run::TriggerKind;
use toolgate_ports::{EndpointFilter, EndpointRuns, FileFilter, KeyFilter, PendingKind, SessionFilter};

use super::*;

#[test]
fn every_lookup_uses_an_index() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let run = |condition: &str| format!("SELECT title FROM run WHERE {condition}");
    for (sql, plan) in [
        (run("status = ?1 AND id < ?2 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_status (status=? AND id<?)"),
        (run("session = ?1 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_session (session=?)"),
        (run("agent = ?1 ORDER BY id DESC"), "SEARCH run USING INDEX run_by_agent (agent=?)"),
        (run("true AND id < ?1 ORDER BY id DESC"), "SEARCH run USING PRIMARY KEY (id<?)"),
        (run("owner = ?1"), "SEARCH run USING INDEX run_by_owner (owner=?)"),
        (run("status = ?1 AND owner IS NULL ORDER BY id LIMIT 1"), "SEARCH run USING INDEX run_by_status (status=?)"),
        (read::POSITIONS.to_owned(), "SEARCH run USING PRIMARY KEY (id=?)"),
        (read::JOURNAL.to_owned(), "SEARCH journal USING INDEX sqlite_autoindex_journal_1 (run=? AND seq>?)"),
        (blob::GET.to_owned(), "SEARCH blob USING INDEX sqlite_autoindex_blob_1 (sha256=?)"),
        (blob::DESCRIBE.to_owned(), "SEARCH blob USING INDEX sqlite_autoindex_blob_1 (sha256=?)"),
        (
            grant::COVERING.to_owned(),
            "SEARCH given USING INDEX approval_grant_by_call (<expr>=? AND definition=? AND <expr>=?)",
        ),
        (grant::NAMED.to_owned(), "SEARCH given USING PRIMARY KEY (id=?)"),
        (day_usage::USED.to_owned(), "SEARCH day_usage USING PRIMARY KEY (day=? AND tenant=? AND caller=?)"),
        (day_usage::RUN.to_owned(), "SEARCH run USING PRIMARY KEY (id=?)"),
        (day_usage::FORGET.to_owned(), "SEARCH day_usage USING PRIMARY KEY (day<?)"),
        (purge::UNQUOTE.to_owned(), "SEARCH idempotency_record USING INDEX idempotency_record_by_run (<expr>=?)"),
        (purge::BLANK.to_owned(), "SEARCH approval_grant USING INDEX approval_grant_by_run (<expr>=?)"),
        (
            purge::UNQUOTE_SESSION.to_owned(),
            "SEARCH idempotency_record USING INDEX idempotency_record_by_session (tenant=? AND <expr>=?)",
        ),
        (
            grant::BLANK_OF_SESSION.to_owned(),
            "SEARCH approval_grant USING INDEX approval_grant_by_session (<expr>=? AND <expr>=?)",
        ),
        (file::USED.to_owned(), "SEARCH file USING COVERING INDEX file_by_quota (tenant=?)"),
        (
            file::DELETE_EXPIRED_OF.to_owned(),
            "SEARCH file USING COVERING INDEX file_by_quota (tenant=? AND expires_at<?)",
        ),
        (file::DELETE_EXPIRED.to_owned(), "SEARCH file USING COVERING INDEX file_by_expiry (expires_at<?)"),
        (
            file::UNQUOTE.to_owned(),
            "SEARCH idempotency_record USING INDEX idempotency_record_by_file (tenant=? AND <expr>=?)",
        ),
        (feedback::LIST.to_owned(), "SEARCH feedback USING PRIMARY KEY (run=?)"),
        (purge::FORGET_FEEDBACK.to_owned(), "SEARCH feedback USING PRIMARY KEY (run=?)"),
        (feedback::UNQUOTE.to_owned(), "SEARCH idempotency_record USING INDEX idempotency_record_by_run (<expr>=?)"),
        (webhook::outbox::UNANNOUNCED.to_owned(), "SCAN run USING INDEX run_by_unannounced"),
        (span_mark::UNSENT.to_owned(), "SEARCH run USING INDEX run_by_unsent_spans (id>?)"),
        (
            webhook::delivery::TAKE.to_owned(),
            "SEARCH webhook_delivery USING INDEX webhook_delivery_by_due (endpoint=? AND due_at<?)",
        ),
        (purge::FORGET_WEBHOOK.to_owned(), "SEARCH webhook_endpoint USING INDEX webhook_endpoint_by_run (run=?)"),
    ] {
        let steps = steps(&db, &sql);
        // A sort step follows the step that reads the index.
        let last = steps.iter().rfind(|step| !step.starts_with("USE TEMP B-TREE FOR ORDER BY")).unwrap();
        assert_eq!(last, plan, "{sql}");
    }
}

#[test]
fn no_search_for_webhooks_reads_the_endpoints_of_all_runs() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    for (sql, wanted) in [
        (
            webhook::delivery::DUE,
            vec![
                "SCAN endpoint USING INDEX webhook_endpoint_by_tenant",
                "SEARCH webhook_delivery USING COVERING INDEX webhook_delivery_by_due (endpoint=? AND due_at<?)",
                "SEARCH webhook_delivery USING COVERING INDEX webhook_delivery_by_due (endpoint=? AND due_at<?)",
                "SEARCH due USING COVERING INDEX webhook_delivery_of_run_by_due (due_at<?)",
                "SEARCH endpoint USING PRIMARY KEY (id=?)",
            ],
        ),
        (
            webhook::outbox::SKIP,
            vec![
                "SCAN run USING INDEX run_by_unannounced",
                "SCAN webhook_endpoint USING INDEX webhook_endpoint_by_tenant",
                "SEARCH endpoint USING COVERING INDEX webhook_endpoint_by_run (run=?)",
            ],
        ),
        (
            webhook::outbox::FORGET_ENDPOINTS,
            vec![
                "SEARCH webhook_endpoint USING INDEX webhook_endpoint_of_run_by_age (created_at<?)",
                "SEARCH webhook_delivery USING COVERING INDEX webhook_delivery_by_endpoint (endpoint=?)",
                "SEARCH live USING PRIMARY KEY (id=?)",
            ],
        ),
    ] {
        let steps = steps(&db, sql);
        let reads =
            steps.iter().map(String::as_str).filter(|step| step.starts_with("SEARCH") || step.starts_with("SCAN"));
        assert_eq!(reads.collect::<Vec<_>>(), wanted, "{sql}");
    }
}

#[test]
fn the_event_log_is_read_by_position() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    assert_eq!(steps(&db, event_log::LAST), ["SEARCH journal"]);
    let range = "SEARCH log USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)";
    assert!(steps(&db, event_log::EVENTS).iter().any(|step| step == range));
    let after = "SEARCH log USING INTEGER PRIMARY KEY (rowid>?)";
    assert!(steps(&db, event_log::TENANTS).iter().any(|step| step == after));
}

#[test]
fn pages_of_grants_keys_and_endpoints_read_an_index_and_their_own_rows() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let now = Timestamp::UNIX_EPOCH;
    for is_later_page in [false, true] {
        let (range, newer) = if is_later_page { (" AND created_at<?)", " AND created_at>?)") } else { (")", ")") };
        let tenant = || Some("acme".into());
        let limit = Some(20);
        let keys = KeyFilter { tenant: tenant(), after: is_later_page.then(|| "key_b".into()), limit, id: None };
        let key = format!("SEARCH access_key USING INDEX access_key_by_tenant (tenant=?{range}");
        let endpoints = EndpointFilter {
            tenant: tenant(),
            runs: EndpointRuns::OfTenant,
            after: is_later_page.then(|| "we_b".into()),
            limit,
            id: None,
        };
        let endpoint = format!("SEARCH webhook_endpoint USING INDEX webhook_endpoint_by_tenant (tenant=?{newer}");
        let after = is_later_page.then(|| "file_b".into());
        let files = FileFilter { tenant: "acme".into(), id: None, now, after, limit };
        let file = format!("SEARCH file USING INDEX file_by_tenant (tenant=?{range}");
        let all = GrantFilter {
            tenant: tenant(),
            after: is_later_page.then(|| "grant_b".into()),
            limit,
            ..GrantFilter::default()
        };
        let (agent, session, tool) = (Some("clerk".into()), Some("session".into()), Some("tool".to_owned()));
        let some = GrantFilter { agent, session, tool, ended: true, ..all.clone() };
        let ended = GrantFilter { ended: true, ..all.clone() };
        let grant = format!("SEARCH approval_grant USING COVERING INDEX approval_grant_by_tenant (<expr>=?{range}");
        for (select, wanted) in [
            (access_key::select(&keys), &key),
            (webhook::endpoint::select(&endpoints), &endpoint),
            (file::select(&files), &file),
            (grant::select(&all, now), &grant),
            (grant::select(&some, now), &grant),
            (grant::select(&ended, now), &grant),
        ] {
            let sql = select.sql();
            let steps = steps(&db, sql);
            let reads = |step: &&String| step.starts_with("SEARCH") || step.starts_with("SCAN");
            let reads: Vec<&String> = steps.iter().filter(reads).collect();
            assert!(reads.contains(&wanted), "{sql}: {steps:?}");
            let others = reads.iter().filter(|step| **step != wanted && **step != "SCAN page");
            assert!(others.clone().all(|step| step.ends_with("USING PRIMARY KEY (id=?)")), "{sql}: {steps:?}");
        }
    }
}

/// The steps of SQLite's query plan for a filter.
fn plan(db: &Connection, filter: &RunFilter) -> Vec<String> {
    steps(db, read::select(filter).sql())
}

/// The steps of SQLite's query plan for a query.
fn steps(db: &Connection, select: &str) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {select}")).unwrap();
    // Without the values of its parameters.
    statement.raw_query().mapped(|row| row.get("detail")).collect::<Result<_, _>>().unwrap()
}

#[test]
fn sessions_and_conversations_are_looked_up_by_primary_key() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let segment = "SEARCH segment USING INDEX sqlite_autoindex_segment_1 (tenant=? AND run=?)";
    let session = "SEARCH session USING PRIMARY KEY (tenant=? AND id=?)";
    let (head, run) = ("SEARCH run USING PRIMARY KEY (id=?) LEFT-JOIN", "SEARCH run USING PRIMARY KEY (id=?)");
    let segment_of_a_link = format!("{segment} LEFT-JOIN");
    for (sql, wanted) in [
        (session::FIND, vec![session, head]),
        (session::REPLACE, vec![session, run]),
        (session::LENGTHS, vec![run, head, &segment_of_a_link]),
        (session::SEGMENTS, vec![segment]),
        (purge::FORGET, vec![segment, run]),
    ] {
        let steps = steps(&db, sql);
        let searches: Vec<&str> = steps.iter().map(String::as_str).filter(|step| step.starts_with("SEARCH")).collect();
        assert_eq!(searches, wanted, "{steps:?}");
        let scanned: Vec<&String> = steps.iter().filter(|step| step.starts_with("SCAN")).collect();
        let is_own = |step: &&String| {
            ["SCAN chain", "SCAN CONSTANT ROW", "SCAN asked VIRTUAL TABLE INDEX 1:"].contains(&step.as_str())
        };
        assert!(scanned.iter().all(is_own), "{steps:?}");
    }
}

#[test]
fn a_page_of_sessions_reads_its_index_and_its_own_rows() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let every = [false, true].into_iter().flat_map(|a| [false, true].map(|b| (a, b)));
    for (is_filtered, is_later_page) in every {
        let filter = SessionFilter {
            agent: is_filtered.then(|| "clerk".into()),
            principal: is_filtered.then(|| "ann".into()),
            before: is_later_page.then(|| (Timestamp::UNIX_EPOCH, "s".into())),
            ..SessionFilter::default()
        };
        let range = if is_later_page { " AND (created_at,id)<(?,?))" } else { ")" };
        let page = format!("SEARCH session USING COVERING INDEX session_by_tenant (tenant=?{range}");
        let rows =
            ["SEARCH session USING PRIMARY KEY (tenant=? AND id=?)", "SEARCH run USING PRIMARY KEY (id=?) LEFT-JOIN"];
        let steps = steps(&db, session::select(&filter).sql());
        let searches: Vec<&str> = steps.iter().map(String::as_str).filter(|step| step.starts_with("SEARCH")).collect();
        assert_eq!(searches, [page.as_str(), rows[0], rows[1]], "{filter:?}: {steps:?}");
    }
}

#[test]
fn sweeps_and_the_command_line_read_an_index() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let none = RunFilter::default;
    let pending = RunFilter { statuses: vec![Status::Pending], ..none() };
    let due_by = Some(Timestamp::UNIX_EPOCH);
    let (approvals, tasks) = (Some(PendingKind::Approval), Some(PendingKind::Task));
    let before = Some(RunId::from("run_b"));
    let run = Some(RunId::from("run_a"));
    let (session, agent, tenant) = (Some("s".into()), Some("a".into()), Some(toolgate_core::id::Tenant::default()));
    for (filter, step) in [
        (RunFilter { due_by, ..pending.clone() }, "SEARCH run USING INDEX run_by_due (due_at<?)"),
        (
            RunFilter { due_by, pending_kind: approvals, before: before.clone(), ..pending.clone() },
            "SEARCH run USING INDEX run_by_due (due_at<?)",
        ),
        (RunFilter { pending_kind: tasks, ..pending.clone() }, "SCAN run USING INDEX run_by_tasks"),
        (RunFilter { pending_kind: tasks, before, ..pending.clone() }, "SEARCH run USING INDEX run_by_tasks (id<?)"),
        (RunFilter { pending_kind: approvals, ..pending.clone() }, "SCAN run USING INDEX run_by_approvals"),
        (pending.clone(), "SEARCH run USING INDEX run_by_status (status=?)"),
        (RunFilter { agent: agent.clone(), ..pending.clone() }, "SEARCH run USING INDEX run_by_status (status=?)"),
        (RunFilter { session, ..pending.clone() }, "SEARCH run USING INDEX run_by_session (session=?)"),
        (RunFilter { agent, ..none() }, "SEARCH run USING INDEX run_by_agent (agent=?)"),
        (none(), "SCAN run"),
        (RunFilter { run: run.clone(), due_by, ..pending }, "SEARCH run USING PRIMARY KEY (id=?)"),
        (RunFilter { run, tenant, purged: true, ..none() }, "SEARCH run USING PRIMARY KEY (id=?)"),
    ] {
        assert_eq!(plan(&db, &filter).first().unwrap(), step, "{filter:?}");
    }
}

#[test]
fn a_page_of_several_statuses_reads_a_page_of_each() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let (tenant, statuses) = (Some("acme".into()), vec![Status::Failed, Status::Expired]);
    let filter = RunFilter { tenant: tenant.clone(), statuses: statuses.clone(), ..RunFilter::default() };
    let page = "SEARCH run USING COVERING INDEX run_by_tenant_status (tenant=? AND status=?)";
    let steps = plan(&db, &filter);
    assert_eq!(steps.iter().filter(|step| *step == page).count(), 2, "{steps:?}");
    let filter = RunFilter { tenant, principal: Some("ann".into()), ..RunFilter::default() };
    let page = "SEARCH run USING COVERING INDEX run_by_tenant_principal (tenant=? AND principal=?)";
    let steps = plan(&db, &filter);
    assert!(steps.iter().any(|step| step == page), "{steps:?}");
}

#[test]
fn a_page_of_a_tenant_reads_its_index_and_its_own_rows() {
    let directory = TempDir::new().unwrap();
    let db = open::connect_and_migrate(&impatient(&directory)).unwrap();
    let either = [false, true];
    let every = either.iter().flat_map(|a| either.iter().flat_map(move |b| either.map(|c| (*a, *b, c))));
    for (by_status, by_agent, by_session) in every {
        for (pending_kind, before) in
            [(None, None), (None, Some("run_b")), (Some(PendingKind::Approval), Some("run_b"))]
        {
            let filter = RunFilter {
                tenant: Some("acme".into()),
                statuses: by_status.then_some(Status::Completed).into_iter().collect(),
                agent: by_agent.then(|| "clerk".into()),
                session: by_session.then(|| "session".into()),
                pending_kind,
                before: before.map(Into::into),
                ..RunFilter::default()
            };
            let index = match (pending_kind, by_session, by_agent, by_status) {
                (Some(_), ..) => "run_by_tenant_approvals (tenant=?",
                (None, true, ..) => "run_by_tenant_session (tenant=? AND session=?",
                (None, false, true, true) => "run_by_tenant_agent_status (tenant=? AND agent=? AND status=?",
                (None, false, true, false) => "run_by_tenant_agent (tenant=? AND agent=?",
                (None, false, false, true) => "run_by_tenant_status (tenant=? AND status=?",
                (None, false, false, false) => "run_by_tenant (tenant=?",
            };
            let range = if before.is_some() { " AND id<?)" } else { ")" };
            let expected = format!("SEARCH run USING COVERING INDEX {index}{range}");
            let steps = plan(&db, &filter);
            let searched: Vec<&String> = steps.iter().filter(|step| step.contains("run ")).collect();
            assert_eq!(searched, [&expected, "SEARCH run USING PRIMARY KEY (id=?)"], "{filter:?}: {steps:?}");
            for (schedule, index) in [
                (None, "run_by_tenant_trigger (tenant=? AND trigger_type=?"),
                (Some("nightly"), "run_by_tenant_schedule (tenant=? AND schedule=?"),
            ] {
                let filter = RunFilter {
                    trigger: Some(TriggerKind::Schedule),
                    schedule: schedule.map(str::to_owned),
                    ..filter.clone()
                };
                let expected = format!("SEARCH run USING COVERING INDEX {index}{range}");
                let steps = plan(&db, &filter);
                let is_by_trigger = pending_kind.is_none() && !by_session;
                assert!(!is_by_trigger || steps.contains(&expected), "{filter:?}: {steps:?}");
            }
        }
    }
}
