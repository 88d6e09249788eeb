//! Table of mistakes: each is made by the flawed server, and named by a rule.

use futures::StreamExt;

use super::harness::How::{self, Calls, Http, HttpCalls, Stdio};
use super::harness::{check_server, has, lines};

/// The mistake in words, the flaws of the server, the rule that names it, and how the server is checked.
type Mistake = (&'static str, Vec<&'static str>, &'static str, How);

/// The mistakes of the comparison with other tools (issue 38), in its order. Those of HTTP are the ones of its first list.
/// `scripts/compare-check` reads the same file; the faults of the fault server in it are for that script.
fn compared() -> Vec<Mistake> {
    let rows = include_str!("comparison.tsv").lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter_map(|row| match row.as_slice() {
        [_, _, _, "fault"] => None,
        [what, flaws, rule, how] => Some((*what, flaws.split(' ').collect(), *rule, How::parse(how))),
        other => panic!("a row of four columns, not {other:?}"),
    })
    .collect()
}

/// Further mistakes.
const FURTHER: [(&str, &[&str], &str, How); 79] = [
    ("a bare true as inputSchema", &["schema-true"], "input-schema-not-object", Stdio),
    ("a reference without a target", &["dangling-ref"], "schema-ref-unresolved", Stdio),
    ("an unknown dialect", &["dialect-unknown"], "schema-dialect-unknown", Stdio),
    ("an invalid outputSchema", &["output-invalid"], "output-schema-invalid", Stdio),
    ("a dot in a name", &["name-dot"], "tool-name-not-portable", Stdio),
    ("a number as name", &["name-number"], "message-invalid", Stdio),
    ("a name that contradicts its annotations", &["annotation-name"], "annotation-name-mismatch", Stdio),
    ("the same description twice", &["same-description"], "description-duplicate", Stdio),
    ("invisible characters", &["invisible-characters"], "description-instructions", Stdio),
    ("many tokens", &["many-tokens"], "tokens-high", Stdio),
    ("an invalid x-mcp-header", &["--modern-only", "header-invalid"], "x-mcp-header-invalid", Stdio),
    ("a schema that providers refuse", &["provider-refuses"], "provider-refuses", Stdio),
    ("a keyword that a provider loses", &["provider-loses"], "provider-loses", Stdio),
    ("a schema that cannot be strict", &["not-strict"], "provider-not-strict", Stdio),
    ("a start that fails", &["dies-at-start"], "server-not-started", Stdio),
    ("an indented message", &["indented"], "json-multiline", Stdio),
    ("a truncated message", &["malformed"], "json-malformed", Stdio),
    ("a byte order mark", &["byte-order-mark"], "byte-order-mark", Stdio),
    ("a member that occurs twice", &["duplicate-key"], "json-duplicate-key", Stdio),
    ("another encoding", &["latin-1"], "invalid-utf8", Stdio),
    ("much memory", &["memory"], "memory-high", Stdio),
    ("an exit during a session", &["list-dies"], "server-crashed", Stdio),
    ("an end of input that is ignored", &["never-exits"], "ignores-end-of-input", Stdio),
    ("an error in place of a version", &["version-refused"], "version-refused", Stdio),
    ("a greeting without serverInfo", &["no-server-info"], "message-invalid", Stdio),
    ("messages without jsonrpc", &["no-jsonrpc"], "message-invalid", Stdio),
    ("an answer under another id", &["wrong-id"], "id-unknown", Stdio),
    ("a request answered twice", &["duplicate-reply"], "response-duplicate", Stdio),
    ("a result and an error", &["result-and-error"], "result-and-error", Stdio),
    ("an unknown method that succeeds", &["unknown-method-succeeds"], "method-unknown-succeeds", Stdio),
    ("an unknown method with another code", &["unknown-method-code"], "method-unknown-code", Stdio),
    ("an exit because of server/discover", &["discover-dies"], "discover-crash", Stdio),
    ("silence to server/discover", &["discover-silent"], "discover-unanswered", Stdio),
    ("another code for an unsupported version", &["--modern", "version-code"], "version-error-code", Stdio),
    ("the same code over HTTP", &["--modern", "version-code"], "version-error-code", Http),
    ("prompts that are not declared", &["prompts-undeclared"], "capability-undeclared", Stdio),
    ("a log message that is not declared", &["log-undeclared"], "log-undeclared", Stdio),
    ("an unknown notification", &["notification-unknown"], "notification-unknown", Stdio),
    ("a request that was not announced", &["asks-roots"], "request-uninvited", Stdio),
    ("a list that fails", &["list-fails"], "list-failed", Stdio),
    ("a cursor that nothing gave", &["cursor-unchecked"], "cursor-unchecked", Stdio),
    ("an exit because of a call", &["call-dies"], "call-crash", Calls),
    ("a call without an answer", &["call-silent"], "call-unanswered", Calls),
    ("a valid call that fails", &["call-fails"], "success-as-error", Calls),
    ("an image of another type", &["wrong-image"], "content-broken", Calls),
    ("a text block without text", &["content-without-text"], "message-invalid", Calls),
    ("a call that cannot be cancelled", &[], "cancel-ignored", Calls),
    ("progress that does not increase", &["progress-stands"], "progress-not-increasing", Calls),
    ("progress under a stray token", &["progress-stray"], "progress-token-unknown", Calls),
    ("calls that fail at the same time", &["not-concurrent"], "concurrency-errors", Calls),
    ("tasks that are not declared", &["task-undeclared"], "task-support-undeclared", Stdio),
    ("a call without the required task", &["--tasks", "task-required-ignored"], "task-required-ignored", Calls),
    ("a call as a task with a result", &["--tasks", "task-refused"], "task-refused", Calls),
    ("a task for a client without tasks", &["--modern-only", "--tasks", "task-uninvited"], "task-uninvited", Calls),
    ("a task that begins as pending", &["--tasks", "task-begins-pending"], "task-status-invalid", Calls),
    ("a task that ends and works again", &["--tasks", "task-reopened"], "task-status-invalid", Calls),
    ("a task without its ttl", &["--tasks", "task-incomplete"], "task-incomplete", Calls),
    ("a task that is unknown at once", &["--tasks", "task-forgotten"], "task-forgotten", Calls),
    ("a result of a task that is gone", &["--tasks", "task-result-missing"], "task-result-missing", Calls),
    ("the same without sessions", &["--modern-only", "--tasks", "task-result-missing"], "task-result-missing", Calls),
    ("a result that does not name its task", &["--tasks", "task-unrelated"], "task-unrelated", Calls),
    ("a task that is not listed", &["--tasks", "task-unlisted"], "task-unlisted", Calls),
    ("an unknown task that succeeds", &["--tasks", "task-unknown-succeeds"], "task-unknown-succeeds", Calls),
    ("a task that cannot be cancelled", &["--tasks", "task-cancel-ignored"], "task-cancel-failed", Calls),
    ("a task that is cancelled after its end", &["--tasks", "task-cancelled-late"], "task-cancelled-late", Calls),
    (
        "an approval that is told once",
        &["--modern-only", "--tasks", "--approval", "approval-envelope-dropped"],
        "approval-envelope-dropped",
        Calls,
    ),
    (
        "an approval without a disposition",
        &["--modern-only", "--tasks", "--approval", "approval-disposition-missing"],
        "approval-disposition",
        Calls,
    ),
    ("a denial without a reason", &["denied", "denial-without-reason"], "denial-invalid", Calls),
    ("an unknown content type of HTTP", &["text-plain"], "http-content-type", Http),
    ("an unsupported version in a header", &["any-version"], "http-version-header", Http),
    ("an unknown session with HTTP 400", &["session-400"], "http-session-unknown", Http),
    ("a PUT that succeeds", &["put-succeeds"], "http-verb", Http),
    ("a notification with HTTP 200", &["notification-200"], "http-notification", Http),
    ("GET as a web page", &["get-html"], "http-get", Http),
    ("a stream of GET for every session", &["get-any-stream"], "http-session-unknown", Http),
    ("a stream of GET for clients of JSON", &["get-any-stream"], "http-accept", Http),
    ("a page of GET without sessions", &["--modern-only", "get-html"], "http-get", Http),
    (
        "a header that contradicts a parameter",
        &["--modern-only", "--mirrored", "any-param-header"],
        "http-header-mismatch",
        HttpCalls,
    ),
    ("HTTP 500", &["http-500"], "http-server-error", Http),
];

/// Checks at the same time; each starts several processes.
const AT_ONCE: usize = 4;

async fn missed(mistakes: &[Mistake]) -> Vec<String> {
    let checks = mistakes.iter().map(|(what, flaws, rule, how)| async move {
        let report = check_server(flaws, *how).await;
        (!has(&report, rule)).then(|| format!("{what} ({flaws:?}) is not named by {rule}; found:\n{}", lines(&report)))
    });
    futures::stream::iter(checks).buffer_unordered(AT_ONCE).filter_map(|missed| async { missed }).collect().await
}

#[tokio::test]
async fn every_mistake_of_the_comparison_is_named() {
    let compared = compared();
    let missed = missed(&compared).await;
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), compared.len(), missed.join("\n"));
    assert_eq!(compared.len(), 57);
}

#[tokio::test]
async fn every_further_mistake_is_named() {
    let further = FURTHER.map(|(what, flaws, rule, how)| (what, flaws.to_vec(), rule, how));
    let missed = missed(&further).await;
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), further.len(), missed.join("\n"));
}

#[tokio::test]
async fn a_server_that_starts_only_once_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lock = format!("lock={}", folder.path().join("lock").display());
    let report = check_server(&[&lock], Stdio).await;
    assert!(has(&report, "second-start-fails"), "{}", lines(&report));
}
