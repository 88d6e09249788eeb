//! Scope of an approval as text, worded the same in all views.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::approval::clock;
use crate::cli::text::count;
use crate::core::policy::analysis::{command_argument, condition_in_words};
use crate::core::run::{Coverage, Decision, DecisionKind, PendingCall, Scope, ToolGrant};
use crate::core::tool::file_change::{changed_file, moves_file};
use crate::core::tool::{ToolName, escape_untrusted};

/// The text after `approved`; empty for an approval of one call.
pub(super) fn reach(scope: Scope, coverage: &Coverage, until: Option<Timestamp>) -> String {
    let whose = match scope {
        Scope::Once => return String::new(),
        Scope::Session => " for this session",
        // An approval that expires is not permanent.
        Scope::Always if until.is_some() => " for every session",
        Scope::Always => " permanently",
    };
    let which = match coverage {
        Coverage::Tool => "any arguments".to_owned(),
        Coverage::Arguments => "only with these arguments".to_owned(),
        Coverage::When(condition) => format!("only {}", when_met(condition)),
    };
    let until = until.map(|until| format!(", until {}", clock(until))).unwrap_or_default();
    format!("{whose}, {which}{until},")
}

/// A decision as text: `approved for this session, any arguments`, `denied: too early`.
pub(in crate::cli) fn decided(decision: &Decision) -> String {
    let Decision { answer, scope, coverage, expires_at, reason, .. } = decision;
    match answer {
        DecisionKind::Approve => format!("approved{}", reach(*scope, coverage, *expires_at).trim_end_matches(',')),
        DecisionKind::Deny => match reason {
            Some(reason) => format!("denied: {}", escape_untrusted(reason)),
            None => "denied".to_owned(),
        },
    }
}

/// The warning about an approval of all further calls of a tool: always if it holds in every session, or else where an
/// argument says what runs, or which file changes or moves. `None` for one call.
pub(in crate::cli) fn any_arguments_warning(call: &PendingCall<'_>, scope: Scope) -> Option<String> {
    let reach = match scope {
        Scope::Once => return None,
        Scope::Session => "in this session",
        Scope::Always => "by this agent, in any session",
    };
    let arguments = call.arguments.as_object();
    let runs = arguments.and_then(command_argument);
    let runs = runs.map(|argument| format!("whatever the model writes as `{}` runs", escape_untrusted(argument)));
    let changes = || arguments.is_some_and(|arguments| changed_file(arguments).is_some() || moves_file(arguments));
    let changes = || changes().then(|| "the model may change any file that the server reaches".to_owned());
    let effect = runs.or_else(changes);
    if effect.is_none() && scope == Scope::Session {
        return None;
    }
    let effect = effect.map(|effect| format!(": {effect}")).unwrap_or_default();
    let name = &call.name;
    Some(format!(
        "this covers every call of {name} {reach}, with any arguments{effect}, and you are asked only where another rule asks"
    ))
}

/// The tools with grants, each with the calls that the grants cover.
pub(super) fn covered(granted: &[ToolGrant]) -> impl Iterator<Item = String> {
    let mut tools: BTreeMap<&ToolName, Vec<&ToolGrant>> = BTreeMap::new();
    for granted in granted {
        tools.entry(&granted.tool).or_default().push(granted);
    }
    tools.into_iter().map(|(tool, grants)| {
        if grants.iter().any(|granted| granted.arguments.is_none() && granted.when.is_none()) {
            return format!("{tool} (any arguments)");
        }
        let exact = grants.iter().filter(|granted| granted.arguments.is_some()).count();
        let exact = (exact > 0).then(|| format!("with the arguments of {}", count(exact, "earlier call")));
        let conditions = grants.iter().filter_map(|granted| granted.when.as_deref()).map(when_met);
        let covers: Vec<String> = exact.into_iter().chain(conditions).collect();
        format!("{tool} (only {})", covers.join(", or "))
    })
}

/// The calls that a grant with a condition covers, to follow *only*.
pub(super) fn when_met(condition: &str) -> String {
    let words = condition_in_words(condition);
    let words = words.map(|words| escape_untrusted(words.strip_prefix("only ").unwrap_or(&words)));
    words.unwrap_or_else(|| format!("when `{}`", escape_untrusted(condition)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_approval_shows_its_coverage_and_expiry() {
        assert_eq!(reach(Scope::Once, &Coverage::Tool, None), "");
        assert_eq!(reach(Scope::Session, &Coverage::Tool, None), " for this session, any arguments,");
        assert_eq!(reach(Scope::Always, &Coverage::Arguments, None), " permanently, only with these arguments,");
        let until = Some(Timestamp::UNIX_EPOCH);
        let text = reach(Scope::Always, &Coverage::Tool, until);
        assert_eq!(text, " for every session, any arguments, until 1970-01-01 00:00:00 UTC,");
    }

    #[test]
    fn a_grant_with_a_condition_is_not_shown_as_one_for_any_arguments() {
        let granted = |when: Option<&str>, arguments: Option<&str>| ToolGrant {
            tool: ToolName::parse("mcp_work_pay").unwrap(),
            grant: "grant_1".into(),
            arguments: arguments.map(str::to_owned),
            when: when.map(str::to_owned),
            asked_by: None,
            expires_at: None,
        };
        let shown = |grants: &[ToolGrant]| covered(grants).collect::<Vec<_>>().join("; ");
        let (narrow, exact) = (granted(Some("args.amount <= 30"), None), granted(None, Some("sha256:a")));
        assert_eq!(shown(std::slice::from_ref(&narrow)), "mcp_work_pay (only amount at most 30)");
        assert_eq!(
            shown(&[narrow.clone(), exact]),
            "mcp_work_pay (only with the arguments of 1 earlier call, or amount at most 30)"
        );
        assert_eq!(shown(&[narrow, granted(None, None)]), "mcp_work_pay (any arguments)");
    }
}
