//! Scope of an approval as text, worded the same in all views.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::approval::clock;
use crate::cli::text::count;
use crate::core::run::{Coverage, Scope, ToolGrant};
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
        Coverage::When(when) => format!("only when `{}`", escape_untrusted(when)),
    };
    let until = until.map(|until| format!(", until {}", clock(until))).unwrap_or_default();
    format!("{whose}, {which}{until},")
}

/// The tools with grants, each with the calls that the grants cover.
pub(super) fn covered(granted: &[ToolGrant]) -> impl Iterator<Item = String> {
    let mut tools: BTreeMap<&ToolName, (bool, usize)> = BTreeMap::new();
    for granted in granted {
        let (any, some) = tools.entry(&granted.tool).or_default();
        match granted.arguments {
            None => *any = true,
            Some(_) => *some += 1,
        }
    }
    tools.into_iter().map(|(tool, (any, some))| match any {
        true => format!("{tool} (any arguments)"),
        false => format!("{tool} (only with the arguments of {})", count(some, "earlier call")),
    })
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
}
