//! Check of an MCP server: starts it or connects to it, speaks every revision to it, and names each mistake by rule.
//!
//! The check reads the wire itself, because SDKs tolerate what it has to name. Without [`Calls`] it calls no tool. Each
//! rule of the table in [`rules`] has a page in `docs/rules`. A finding is a fact; what is only likely is a note or says
//! that it is a heuristic.

mod calls;
mod changes;
mod context;
mod finding;
mod judge;
mod official;
mod options;
pub mod output;
mod probes;
mod report;
mod revision;
pub mod rules;
mod schema_changes;
#[cfg(test)]
mod tests;
mod tools;
pub(crate) mod wire;

use std::time::{Duration, Instant};

use serde_json::Value;
use toolgate_settings::mcp::ProtocolVersionChoice;

pub use calls::{CallFacts, LoadRow};
pub use changes::compare;
pub use finding::Finding;
pub use options::{Calls, CheckOptions, CheckTarget, Limits};
pub use probes::shutdown::Shutdown;
pub use probes::versions::Negotiation;
pub use report::{Counts, Report, Timings};
pub use revision::Revision;
pub use rules::Severity;
pub use tools::{Fit, ProviderFit, ToolRow};

use context::{Context, Session};
use finding::Findings;
use probes::lists::{self, ToolList};
use probes::start::Eras;
use probes::{http, requests, shutdown, start, versions};
use rules::protocol;
use wire::log::WireLog;

/// Checks a server. `progress` receives a few words about what the check does now.
pub async fn check(options: CheckOptions, progress: &(dyn Fn(&str) + Sync)) -> Report {
    let began = Instant::now();
    let CheckOptions { target, name, versions, calls, limits, wire } = options;
    let secrets = target.secrets();
    let context = Context {
        findings: Findings::without(secrets.clone()),
        log: WireLog::new(wire, secrets.clone()),
        limits,
        target,
    };
    let address = context.target.in_words();
    let described = name.map_or_else(|| address.clone(), |name| format!("{name}: {address}"));
    let mut report = empty(secrets.redacted(&described).into_owned());
    progress("starting the server");
    let eras = start::open(&context, versions).await;
    if let Some(failure) = eras.failure {
        if eras.unauthorized {
            http::authorization(&context).await;
        }
        report.failure = Some(secrets.redacted(&failure).into_owned());
    } else {
        examine(&context, &eras, versions, &calls, &mut report, progress).await;
    }
    context.log.flush();
    report.findings = context.findings.sorted();
    report.recount(0);
    report.timings.check_ms = millis(began.elapsed());
    report
}

fn empty(target: String) -> Report {
    Report {
        target,
        server: None,
        revisions: Vec::new(),
        negotiations: Vec::new(),
        timings: Timings::default(),
        tools: Vec::new(),
        tokens: 0,
        calls: None,
        findings: Vec::new(),
        counts: Counts::default(),
        failure: None,
        definitions: Vec::new(),
    }
}

async fn examine(
    context: &Context,
    eras: &Eras,
    versions: ProtocolVersionChoice,
    calls: &Calls,
    report: &mut Report,
    progress: &(dyn Fn(&str) + Sync),
) {
    let Some(main) = eras.legacy.as_ref().or(eras.modern.as_ref()) else { return };
    describe(main, report);
    // The times of this session count, so no other process starts beside it.
    progress("listing tools");
    let list = session(context, main).await;
    progress("negotiating versions");
    // A start takes far longer than what follows it, so these processes start at the same time.
    let (negotiations, second) =
        tokio::join!(negotiations(context, eras), second_era(context, eras.legacy.as_ref(), versions, &list));
    report.negotiations = negotiations;
    report.revisions = revisions(eras.modern.as_ref().or(second.as_ref()), &report.negotiations);
    report.timings.list_ms = list.is_listed.then(|| millis(list.took));
    report.tools = tools::judge(main, &context.findings, &list.tools);
    report.tokens = report.tools.iter().map(|tool| tool.tokens).sum();
    if *calls != Calls::Never {
        progress("calling tools");
        report.calls = Some(calls::examine(context, main, calls, &list.tools, progress).await);
    }
    progress("stopping the server");
    report.timings.memory_bytes = shutdown::memory(context, main);
    requests::unknown_method(context, main).await;
    if main.connection.endpoint().is_some() {
        http::all(context, main).await;
    }
    report.timings.shutdown = shutdown::end(context, main).await;
    report.definitions = list.tools;
}

/// Name, version and start of the server.
fn describe(main: &Session, report: &mut Report) {
    let named = ["/serverInfo", "/_meta/io.modelcontextprotocol~1serverInfo"];
    report.server = named.iter().find_map(|place| main.greeting.pointer(place)).cloned();
    report.timings.first_answer_ms = Some(millis(main.took));
    report.timings.first_byte_ms = main.connection.process().and_then(|process| process.first_byte()).map(millis);
}

async fn negotiations(context: &Context, eras: &Eras) -> Vec<Negotiation> {
    let Some(legacy) = &eras.legacy else { return Vec::new() };
    let selected = legacy.greeting.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    if Revision::parse(selected).is_none() {
        versions::unsupported(context, Revision::LAST_LEGACY.as_str(), &finding::one_line(selected, 40));
    }
    let selected = Some(finding::one_line(selected, 40));
    let main = Negotiation { requested: Revision::LAST_LEGACY.to_string(), selected, failure: None };
    let mut all = versions::negotiate(context, legacy).await;
    all.push(main);
    all.sort_by(|a, b| a.requested.cmp(&b.requested));
    all
}

/// The revisions that the server selected when they were requested.
fn revisions(modern: Option<&Session>, negotiations: &[Negotiation]) -> Vec<Revision> {
    let agreed = negotiations.iter().filter(|one| one.selected.as_ref() == Some(&one.requested));
    let mut all: Vec<Revision> = agreed.filter_map(|one| Revision::parse(&one.requested)).collect();
    all.extend(modern.map(|session| session.revision));
    all
}

/// The requests of one session, in an order in which a crash costs least.
async fn session(context: &Context, main: &Session) -> ToolList {
    let is_modern = main.revision.is_modern();
    if !is_modern {
        requests::notifications(context, main).await;
    }
    let list = lists::tools(context, main).await;
    if is_modern && !main.has_ended() {
        // No client of the stateless revision cancels anything before its first request, and rmcp exits because of it.
        requests::notifications(context, main).await;
    }
    requests::ping(context, main).await;
    lists::others(context, main).await;
    if list.is_listed {
        lists::unknown_cursor(context, main).await;
    }
    requests::unsupported_version(context, main).await;
    list
}

/// The same server in the stateless revision, if it has one beside earlier versions.
async fn second_era(
    context: &Context,
    legacy: Option<&Session>,
    versions: ProtocolVersionChoice,
    before: &ToolList,
) -> Option<Session> {
    let first = legacy.filter(|_| versions == ProtocolVersionChoice::Auto)?;
    let modern = start::second_era(context, first.took).await?;
    let list = lists::tools(context, &modern).await;
    requests::unsupported_version(context, &modern).await;
    if list.is_listed {
        compare_eras(context, &modern, before, &list);
    }
    Some(modern)
}

fn compare_eras(context: &Context, modern: &Session, legacy: &ToolList, list: &ToolList) {
    let sorted = |list: &ToolList| {
        let mut names: Vec<String> = list.names().into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    let (before, now) = (sorted(legacy), sorted(list));
    if before != now {
        let text = format!(
            "{} tools with {}, and {} with {}",
            before.len(),
            Revision::LAST_LEGACY,
            now.len(),
            modern.revision
        );
        context.findings.add(modern.finding(&protocol::ERAS_DIFFER, text));
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
