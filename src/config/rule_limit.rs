//! Limits of rules: `limit: { per: day, sum: args.amount, max: 100 }`.

use serde_json::Number;
use toolgate_core::policy::{LimitAmount, RuleLimit, Verdict};

use super::error::Fault;
use super::resolver::Resolver;
use super::spanned::Located;
use super::written::WrittenLimit;

/// The limit as a policy uses it; faults go to the scope.
pub(super) fn resolve(
    written: &Located<WrittenLimit>,
    verdict: Verdict,
    scope: &mut Resolver<'_>,
) -> Option<RuleLimit> {
    let WrittenLimit { per, max, sum } = written.value();
    if verdict != Verdict::Allow {
        let fault = Fault::new(format!("a rule that says `{}` has no `limit`", verdict.as_str()));
        let remedy = "a limit is how much a rule allows; remove it, or write `verdict: allow`";
        scope.fault(fault.with_remedy(remedy), written.place());
        return None;
    }
    let most = Number::from_f64(*max.value()).ok_or("is not a number".to_owned());
    let most = match most.and_then(|number| LimitAmount::of(&number)) {
        Ok(most) if sum.is_none() && !most.is_whole() => {
            scope.fault(
                Fault::new("a number of calls is a whole number").with_remedy("add `sum`, or round `max`"),
                max.place(),
            );
            return None;
        }
        Ok(most) => most,
        Err(why) => {
            scope.fault(Fault::new(format!("`max` {why}")).with_remedy("write a number from 0 to 10^12"), max.place());
            return None;
        }
    };
    let members = match sum {
        None => Some(Vec::new()),
        Some(text) => members(text.value()),
    };
    let Some(members) = members else {
        let fault = Fault::new("`sum` does not name an argument");
        scope.fault(fault.with_remedy("write `sum: args.amount`"), sum.as_ref().and_then(Located::place));
        return None;
    };
    Some(RuleLimit { per: *per, max: most, sum: members })
}

/// The members of `args.payment.amount`.
fn members(text: &str) -> Option<Vec<String>> {
    let path = text.trim().strip_prefix("args.")?;
    let members: Vec<String> = path.split('.').map(str::to_owned).collect();
    let is_name = |member: &String| {
        member.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && member.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    members.iter().all(is_name).then_some(members)
}
