//! Table of mistakes: each is made by the flawed server, and named by a rule.

use futures::StreamExt;
use toolgate_settings::mcp::StdioSettings;

use super::harness::How::{Calls, Http, Stdio};
use super::harness::{How, check_command, check_server, has, lines, program};

/// The mistake in words, the flaws of the server, the rule that names it, and how the server is checked.
type Mistake = (&'static str, &'static [&'static str], &'static str, How);

/// The mistakes of the comparison with other tools (issue 38), in its order. Those of HTTP are the ones of its first list.
const COMPARED: [Mistake; 56] = [
    ("inputSchema missing", &["schema-missing"], "input-schema-missing", Stdio),
    ("inputSchema not an object schema", &["schema-text"], "input-schema-not-object", Stdio),
    ("inputSchema invalid", &["schema-invalid"], "input-schema-invalid", Stdio),
    ("duplicate names", &["duplicate-tool"], "tool-duplicate", Stdio),
    ("endless cursor", &["endless-cursor"], "list-endless", Stdio),
    ("name invalid", &["name-invalid"], "tool-name-invalid", Stdio),
    ("name too long", &["name-too-long"], "tool-name-too-long", Stdio),
    ("no description", &["no-description"], "description-missing", Stdio),
    ("stdout noise", &["noise"], "stdout-noise", Stdio),
    ("banner before the first answer", &["banner"], "stdout-banner", Stdio),
    ("annotations of a wrong type", &["annotation-type"], "annotation-type", Stdio),
    ("annotations contradicting", &["annotation-contradiction"], "annotation-contradiction", Stdio),
    ("annotations missing", &["no-annotations"], "annotations-missing", Stdio),
    ("remote $ref", &["remote-ref"], "schema-ref-remote", Stdio),
    ("oneOf at the top", &["root-union"], "schema-root-union", Stdio),
    ("required property that does not exist", &["required-unknown"], "required-unknown", Stdio),
    ("default that does not fit", &["default-mismatch"], "default-mismatch", Stdio),
    ("parameters without description", &["parameter-undescribed"], "parameter-undescribed", Stdio),
    ("result against outputSchema", &["output-mismatch"], "result-schema-mismatch", Calls),
    ("structured content missing", &["structured-missing"], "structured-missing", Calls),
    ("text mirror missing", &["mirror-missing"], "text-mirror-missing", Calls),
    ("outputSchema not an object", &["output-array"], "output-schema-not-object", Stdio),
    ("isError misuse", &["error-as-success"], "error-as-success", Calls),
    ("unknown tool succeeds", &["unknown-tool-succeeds"], "unknown-tool-succeeds", Calls),
    ("arguments not validated", &["bad-input-succeeds"], "arguments-unvalidated", Calls),
    ("crash on bad input", &["bad-input-dies"], "bad-input-crash", Calls),
    ("crash on unknown method", &["unknown-method-dies"], "method-unknown-crash", Stdio),
    ("no answer to an unknown method", &["unknown-method-silent"], "method-unknown-unanswered", Stdio),
    ("version echoed", &["version-echoed"], "version-echoed", Stdio),
    ("unsupported version announced", &["version-unsupported"], "version-unsupported", Stdio),
    ("capability used and not declared", &["tools-undeclared"], "capability-undeclared", Stdio),
    ("capability declared and absent", &["prompts-missing"], "capability-unimplemented", Stdio),
    ("list_changed undeclared", &["list-changed-undeclared"], "list-changed-undeclared", Stdio),
    ("order unstable", &["unstable"], "list-unstable", Stdio),
    ("slow initialize", &["slow-initialize"], "slow-initialize", Stdio),
    ("slow list", &["slow-list"], "slow-list", Stdio),
    ("ping unanswered", &["ping-silent"], "ping-unanswered", Stdio),
    ("ids as text", &["text-id"], "id-type-changed", Stdio),
    ("notification answered", &["notification-answered"], "notification-answered", Stdio),
    ("NaN in a result", &["nan"], "json-nan", Calls),
    ("lone surrogate in a result", &["surrogate"], "json-lone-surrogate", Calls),
    ("broken image", &["broken-image"], "content-broken", Calls),
    ("unknown content type", &["unknown-content"], "content-type-unknown", Calls),
    ("12 MB result", &["huge-result"], "result-too-large", Calls),
    ("secrets in a result", &["secret"], "result-secret", Calls),
    ("instructions hidden in a description", &["hidden-instructions"], "description-instructions", Stdio),
    ("20 kB description", &["long-description"], "description-too-long", Stdio),
    ("Origin", &["any-origin"], "http-origin", Http),
    ("Host", &["any-host"], "http-host", Http),
    ("Accept", &["event-streams"], "http-accept", Http),
    ("header mismatch", &["--modern-only", "any-header"], "http-header-mismatch", Http),
    ("session 404", &["any-session"], "http-session-unknown", Http),
    ("DELETE", &["session-survives"], "http-delete", Http),
    ("unknown method over HTTP", &["--modern-only", "unknown-method-200"], "http-method-unknown", Http),
    ("malformed JSON", &["malformed-succeeds"], "http-malformed-json", Http),
    ("protected-resource metadata", &["auth"], "http-auth-metadata", Http),
];

/// Further mistakes.
const FURTHER: [Mistake; 57] = [
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
    ("an unknown content type of HTTP", &["text-plain"], "http-content-type", Http),
    ("an unsupported version in a header", &["any-version"], "http-version-header", Http),
    ("an unknown session with HTTP 400", &["session-400"], "http-session-unknown", Http),
    ("a PUT that succeeds", &["put-succeeds"], "http-verb", Http),
    ("a notification with HTTP 200", &["notification-200"], "http-notification", Http),
    ("GET as a web page", &["get-html"], "http-get", Http),
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
    let mut missed = missed(&COMPARED).await;
    missed.extend(never_exits().await);
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), COMPARED.len() + 1, missed.join("\n"));
}

#[tokio::test]
async fn every_further_mistake_is_named() {
    let missed = missed(&FURTHER).await;
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), FURTHER.len(), missed.join("\n"));
}

/// A shell that ignores SIGTERM hands that on to the server, which waits for neither.
async fn never_exits() -> Option<String> {
    let line = format!("trap '' TERM; exec '{}' never-exits", program().display());
    let report = check_command(StdioSettings::new("sh", ["-c", &line]), super::super::Calls::Never).await;
    (!has(&report, "ignores-sigterm"))
        .then(|| format!("a server that never exits is not named; found:\n{}", lines(&report)))
}

#[tokio::test]
async fn a_server_that_starts_only_once_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let lock = format!("lock={}", folder.path().join("lock").display());
    let report = check_server(&[&lock], Stdio).await;
    assert!(has(&report, "second-start-fails"), "{}", lines(&report));
}
