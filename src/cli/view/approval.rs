//! Approval details: the call, the server's hints, the reason for the approval, the deadline and the changes since an
//! earlier approval. Text is never shortened, and hidden or misleading characters are escaped.

use jiff::{SignedDuration, Timestamp};

use crate::cli::text::duration;
use crate::core::policy::{OnTimeout, PolicyMark};
use crate::core::run::{AnswerForm, Channel, PendingItem};
use crate::core::tool::{
    Annotations, Arguments, Difference, Origin, escape_untrusted, is_suspicious, suspicious_names,
};

/// The most characters shown of each name in a list of names.
const NAME_CHARS: usize = 40;
/// How long an approval is pending before the time is shown to the person who decides.
const JUST_NOW: SignedDuration = SignedDuration::from_secs(60);

/// The arguments on one line; characters that hide or reverse text are shown as codes.
pub(in crate::cli) fn whole(arguments: &Arguments) -> String {
    escape_untrusted(&arguments.to_value().to_string())
}

/// What an approver considers besides the call and its arguments. For items without a decision only the deadline.
pub(in crate::cli) fn circumstances(item: &PendingItem, now: Timestamp) -> Vec<String> {
    let AnswerForm::Decision(review) = item.form() else {
        return term(item, now).into_iter().collect();
    };
    let mut lines = vec![brief_because(review.reason, review.rule, review.policy)];
    lines.extend(hints(review.annotations, review.trusted));
    if let Some(call) = item.call() {
        lines.extend(second_look(&call.tool.origin));
        lines.extend(second_look_at_arguments(&call.arguments));
    }
    lines.extend(review.problems.iter().map(|problem| {
        let (path, message) = (escape_untrusted(&problem.path), escape_untrusted(&problem.message));
        format!("! the arguments do not match the tool's schema: {path} {message}")
    }));
    if review.outcome_unknown {
        lines.push("! it was sent before, and it is unknown whether it took effect".to_owned());
    }
    lines.extend(term_after(JUST_NOW, item, now));
    lines.extend(changed(review.differences));
    lines
}

/// The reason why the call requires approval, with the rule and the policy.
pub(in crate::cli) fn because(reason: &str, rule: Option<&str>, policy: Option<&PolicyMark>) -> String {
    let rule = rule.map(|rule| format!("rule {}", escape_untrusted(rule)));
    let source: Vec<String> = rule.into_iter().chain(policy.map(marked)).collect();
    let source = if source.is_empty() { String::new() } else { format!(" ({})", source.join(", ")) };
    format!("because: {}{source}", escape_untrusted(reason))
}

/// The same for the person who decides, without a policy that the reason of a call without a rule names.
pub(in crate::cli) fn brief_because(reason: &str, rule: Option<&str>, policy: Option<&PolicyMark>) -> String {
    let is_named = |policy: &PolicyMark| reason.contains(&format!("policy `{}`", policy.name));
    because(reason, rule, policy.filter(|policy| rule.is_some() || !is_named(policy)))
}

/// The name and short version of a policy.
pub(in crate::cli) fn marked(policy: &PolicyMark) -> String {
    let version: String = policy.version.trim_start_matches("sha256:").chars().take(8).collect();
    format!("policy {}@{version}", escape_untrusted(&policy.name))
}

/// The server's hints about its tool. They are unverified unless the operator trusts the server.
fn hints(annotations: &Annotations, trusted: bool) -> Option<String> {
    let Annotations { title, read_only_hint, destructive_hint, idempotent_hint, open_world_hint } = annotations;
    let described = |hint: &Option<bool>, yes: &str, no: &str| hint.map(|hint| if hint { yes } else { no }.to_owned());
    let described = [
        described(read_only_hint, "read-only", "not read-only"),
        described(destructive_hint, "destructive", "not destructive"),
        described(idempotent_hint, "idempotent", "not idempotent"),
        described(open_world_hint, "reaches beyond its own system", "stays within its own system"),
        title.as_ref().map(|title| format!("called \"{}\"", escape_untrusted(title))),
    ];
    let described: Vec<String> = described.into_iter().flatten().collect();
    let who = if trusted { "hints of the trusted server" } else { "unverified hints of the server" };
    (!described.is_empty()).then(|| format!("{who}: {}", described.join(", ")))
}

/// A warning about a tool name that may imitate another name.
fn second_look(origin: &Origin) -> Option<String> {
    let tool = origin.tool_name();
    let letters: String = tool.chars().filter(|c| !c.is_ascii()).map(|c| format!(" {:x}", u32::from(c))).collect();
    is_suspicious(tool).then(|| format!("! look twice: the tool's name has letters that are not plain ASCII:{letters}"))
}

/// A warning about argument names that may imitate other names.
pub(in crate::cli) fn second_look_at_arguments(arguments: &Arguments) -> Option<String> {
    let names: Vec<String> = suspicious_names(arguments).map(|name| format!("`{}`", brief(name))).collect();
    let warning = "! look twice: these names of arguments have letters that are not plain ASCII:";
    (!names.is_empty()).then(|| format!("{warning} {}", names.join(", ")))
}

/// A name of any length, shortened.
fn brief(name: &str) -> String {
    escape_untrusted(&name.chars().take(NAME_CHARS).collect::<String>())
}

/// The time since when the item is pending, and its deadline.
pub(in crate::cli) fn term(item: &PendingItem, now: Timestamp) -> Option<String> {
    term_after(SignedDuration::ZERO, item, now)
}

/// The same, without the time of an item that is pending for less than this.
fn term_after(shown_after: SignedDuration, item: &PendingItem, now: Timestamp) -> Option<String> {
    let since = item.requested_at().filter(|since| now.duration_since(*since) >= shown_after);
    let since = since.map(|since| format!("since {} ({} ago)", clock(since), apart(since, now)));
    let until = item.expires_at().map(|until| match until > now {
        true => format!("until {} (in {}){}", clock(until), apart(now, until), afterwards(item)),
        false => format!("until {}, which has passed: {}", clock(until), overdue(item)),
    });
    let times: Vec<String> = since.into_iter().chain(until).collect();
    (!times.is_empty()).then(|| times.join(", "))
}

/// What the policy decides after the deadline.
fn afterwards(item: &PendingItem) -> &'static str {
    match on_timeout(item) {
        OnTimeout::Approve => ", then approved",
        OnTimeout::Deny => ", then denied",
        OnTimeout::Expire => "",
    }
}

fn overdue(item: &PendingItem) -> &'static str {
    match on_timeout(item) {
        OnTimeout::Approve => "the call is approved when the run resumes",
        OnTimeout::Deny => "the call is denied when the run resumes",
        OnTimeout::Expire => "the model will read that no answer came in time",
    }
}

fn on_timeout(item: &PendingItem) -> OnTimeout {
    if let AnswerForm::Decision(review) = item.form() { review.on_timeout } else { OnTimeout::Expire }
}

/// The changes since the call was approved, with the old and the new value.
pub(in crate::cli) fn changed(differences: &[Difference]) -> Vec<String> {
    let lines = differences.iter().flat_map(|difference| {
        let lines = [
            format!("! changed since it was cleared: {}", escape_untrusted(&difference.field)),
            format!("    was: {}", escape_untrusted(&difference.before)),
            format!("    is:  {}", escape_untrusted(&difference.after)),
        ];
        lines.into_iter().chain(difference.warning().map(|more| format!("    ! {more}")))
    });
    lines.collect()
}

/// Describes the origin of a tool.
pub(in crate::cli) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::Mcp { server, tool } => {
            format!("tool {} of MCP server {}", escape_untrusted(tool), escape_untrusted(server.as_str()))
        }
        Origin::External { tool } => format!("tool {} of your application", escape_untrusted(tool)),
        Origin::Builtin { tool } => format!("tool {} of toolgate", escape_untrusted(tool)),
    }
}

/// Describes the channel of a decision.
pub(in crate::cli) fn by_way_of(channel: Channel) -> &'static str {
    match channel {
        Channel::Terminal => "at the terminal",
        Channel::CommandLine => "on the command line",
        Channel::Api => "over HTTP",
        Channel::Limit => "at a limit of the run",
        Channel::Library => "in the program",
        Channel::Timeout => "because no answer came in time",
    }
}

/// A time in UTC to the second.
pub(in crate::cli) fn clock(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn apart(from: Timestamp, to: Timestamp) -> String {
    let seconds = u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..172_800 => duration(seconds * 1_000),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::core::run::PendingApproval;
    use crate::core::tool::ToolName;

    fn item(trusted: bool, tool: &str) -> PendingItem {
        PendingItem::Approval(PendingApproval {
            call_id: "c1".into(),
            summary: String::new(),
            tool: Origin::Mcp { server: "shop".into(), tool: tool.into() }.into(),
            tool_name: ToolName::parse("mcp_shop_pay").unwrap(),
            arguments: Arguments::from_value(json!({"to": "a\u{202e}b"})),
            problems: Vec::new(),
            annotations: Annotations { read_only_hint: Some(true), ..Annotations::default() },
            trusted,
            definition_hash: "sha256:d".into(),
            rule: Some("money".into()),
            reason: "it pays".into(),
            policy: Some(PolicyMark { name: "desk".into(), version: "1a2b3c4d5e6f".into() }),
            may_be_denied: false,
            differences: vec![Difference::new("description", "Pays.", "Pays twice.")],
            outcome_unknown: true,
            event: 7,
            requested_at: Some(Timestamp::UNIX_EPOCH),
            expires_at: Some(Timestamp::UNIX_EPOCH + Duration::from_secs(3_600)),
            on_timeout: OnTimeout::Deny,
        })
    }

    fn rendered(item: &PendingItem, seconds: u64) -> String {
        circumstances(item, Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)).join("\n")
    }

    #[test]
    fn all_details_of_the_decision_are_shown() {
        let rendered = rendered(&item(false, "pay"), 120);
        let expected = "because: it pays (rule money, policy desk@1a2b3c4d)\n\
            unverified hints of the server: read-only\n\
            ! it was sent before, and it is unknown whether it took effect\n\
            since 1970-01-01 00:00:00 UTC (2 min 0 s ago), until 1970-01-01 01:00:00 UTC (in 58 min 0 s), then denied\n\
            ! changed since it was cleared: description\n    was: Pays.\n    is:  Pays twice.";
        assert_eq!(rendered, expected);
    }

    #[test]
    fn only_hints_of_a_trusted_server_are_shown_as_verified() {
        assert!(rendered(&item(true, "pay"), 0).contains("hints of the trusted server: read-only"));
        assert!(rendered(&item(false, "pay"), 0).contains("unverified hints of the server"));
    }

    #[test]
    fn passed_deadlines_and_misleading_names_are_marked() {
        assert!(rendered(&item(true, "pay"), 4_000).contains("which has passed"));
        let rendered = rendered(&item(true, "p\u{430}y"), 0);
        assert!(rendered.contains("look twice") && rendered.contains(" 430"), "{rendered}");
    }

    #[test]
    fn misleading_argument_names_are_listed() {
        let warning = |arguments| second_look_at_arguments(&Arguments::from_value(arguments));
        assert_eq!(warning(json!({"path": "\u{440}ath"})), None);
        let found = warning(json!({"path": 1, "p\u{430}th": 2})).expect("one of them is Cyrillic");
        assert!(found.ends_with("ASCII: `p\u{430}th`"), "{found}");
    }

    #[test]
    fn a_shortened_difference_is_marked() {
        let lines = changed(&[Difference::new("description", "Pays.", &"x".repeat(10_000))]);
        assert!(lines.last().is_some_and(|line| line.contains("more characters in which it differs")), "{lines:?}");
    }

    #[test]
    fn arguments_hide_nothing() {
        let PendingItem::Approval(PendingApproval { arguments, .. }) = item(true, "pay") else { panic!("an approval") };
        assert_eq!(whole(&arguments), r#"{"to":"a\u{202e}b"}"#);
    }
}
