//! Limit of a rule: how much it allows in a window of time, as a number of calls or as the sum of an argument (decision
//! 0052).
//!
//! A judgement names the use that a call would make of its rule's limit. Nothing here counts: the store does, before the call
//! runs.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// The decimal places that amounts are counted with.
const DECIMALS: usize = 6;

/// The largest amount, in units.
const MOST_UNITS: u64 = 1_000_000_000_000;

/// An amount in millionths, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitAmount(u64);

/// The limit of a rule that allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleLimit {
    pub per: LimitWindow,
    /// The most that the rule allows in a window.
    pub max: LimitAmount,
    /// The argument that is summed, as its members: `["payment", "amount"]`. Empty to count calls.
    pub sum: Vec<String>,
}

/// A window of time, in UTC. Shorter ones sort first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitWindow {
    Hour,
    Day,
    Month,
}

/// The use that a call makes of the limit of a rule that allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUse {
    /// The id of the rule.
    pub rule: String,
    pub limit: RuleLimit,
    pub amount: LimitAmount,
}

impl LimitAmount {
    /// One call.
    pub const ONE: Self = Self(1_000_000);

    /// The amount of a number, rounded up. The error says why it cannot be counted.
    pub fn of(number: &Number) -> Result<Self, String> {
        let text = number.to_string();
        if text.starts_with('-') {
            return Err("is negative".to_owned());
        }
        // A number with an exponent is very large, or a few millionths.
        match text.split_once(['e', 'E']) {
            Some((_, exponent)) if exponent.starts_with('-') => return Self::of_small(number),
            Some(_) => return Err("is too large".to_owned()),
            None => {}
        }
        let (units, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let units: u64 = units.parse().ok().filter(|units| *units <= MOST_UNITS).ok_or("is too large")?;
        let (counted, rest) = decimals.split_at_checked(DECIMALS).unwrap_or((decimals, ""));
        let counted: u64 = format!("{counted:0<DECIMALS$}").parse().map_err(|_| "cannot be read")?;
        let is_more = rest.chars().any(|digit| digit != '0');
        Ok(Self(units * Self::ONE.0 + counted + u64::from(is_more)))
    }

    /// The amount of a number with a negative exponent, at least one millionth.
    fn of_small(number: &Number) -> Result<Self, String> {
        let millionths = number.as_f64().map(|value| (value * 1e6).ceil().max(1.0));
        let millionths = millionths.and_then(|millionths| format!("{millionths:.0}").parse().ok());
        millionths.filter(|millionths| *millionths <= MOST_UNITS).map(Self).ok_or("cannot be read".to_owned())
    }

    /// The sum with another amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Whether it has no decimal places.
    pub fn is_whole(self) -> bool {
        self.0.is_multiple_of(Self::ONE.0)
    }

    /// The amount in millionths, for a store.
    pub fn millionths(self) -> u64 {
        self.0
    }

    /// An amount that a store has kept.
    pub fn from_millionths(millionths: u64) -> Self {
        Self(millionths)
    }
}

impl RuleLimit {
    /// The amount that a call with these arguments uses. The error says why it cannot be counted.
    pub(super) fn amount_of(&self, arguments: &Map<String, Value>) -> Result<LimitAmount, String> {
        let Some((first, rest)) = self.sum.split_first() else { return Ok(LimitAmount::ONE) };
        let name = || self.sum.join(".");
        let value = rest.iter().try_fold(arguments.get(first), |value, member| Some(value?.get(member)));
        let number = match value.flatten() {
            Some(Value::Number(number)) => number,
            Some(_) => return Err(format!("`args.{}`, which its limit sums, is not a number", name())),
            None => return Err(format!("there is no `args.{}`, which its limit sums", name())),
        };
        LimitAmount::of(number).map_err(|why| format!("`args.{}`, which its limit sums, {why}", name()))
    }
}

impl LimitUse {
    /// The reason why the call requires approval, given the amount that was counted in the window.
    pub fn exceeded(&self, counted: LimitAmount) -> String {
        let Self { rule, limit, amount } = self;
        let this = if limit.sum.is_empty() { String::new() } else { format!(", and this call would add {amount}") };
        format!("rule `{rule}` allows {limit}, and has allowed {counted}{this}")
    }

    /// The reason why the call requires approval where its limit cannot be counted.
    pub fn uncounted(&self) -> String {
        format!("rule `{}` allows {}, and the store cannot count that now", self.rule, self.limit)
    }
}

impl LimitWindow {
    /// Its names in a policy.
    pub const ALL: [Self; 3] = [Self::Hour, Self::Day, Self::Month];

    /// Its name in a policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The name of the oldest window whose counters are kept at a time: nodes whose clocks differ may count in windows that
    /// are over.
    pub fn oldest_kept(self, at: Timestamp) -> String {
        let days = match self {
            Self::Hour | Self::Day => 2,
            Self::Month => 35,
        };
        let before = at.checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(at);
        self.name_at(before)
    }

    /// The name of the window that contains a time, such as `2026-11-28`. Names of one kind sort by time.
    pub fn name_at(self, at: Timestamp) -> String {
        match self {
            Self::Hour => at.strftime("%Y-%m-%dT%H").to_string(),
            Self::Day => at.strftime("%Y-%m-%d").to_string(),
            Self::Month => at.strftime("%Y-%m").to_string(),
        }
    }
}

/// In units, with the decimal places that it has.
impl fmt::Display for LimitAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, decimals) = (self.0 / Self::ONE.0, self.0 % Self::ONE.0);
        match decimals {
            0 => write!(f, "{units}"),
            _ => write!(f, "{units}.{}", format!("{decimals:0DECIMALS$}").trim_end_matches('0')),
        }
    }
}

/// In words, such as `100 of args.amount a day`.
impl fmt::Display for RuleLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = match self.per {
            LimitWindow::Hour => "an hour",
            LimitWindow::Day => "a day",
            LimitWindow::Month => "a month",
        };
        match self.sum.is_empty() {
            true if self.max == LimitAmount::ONE => write!(f, "1 call {window}"),
            true => write!(f, "{} calls {window}", self.max),
            false => write!(f, "{} of args.{} {window}", self.max, self.sum.join(".")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::{Example, Match, Policy, Rule, Subject, Verdict};
    use crate::tool::{Tool, ToolName};

    fn amount(value: &Value) -> Result<String, String> {
        let Value::Number(number) = value else { panic!("{value} is no number") };
        LimitAmount::of(number).map(|amount| amount.to_string())
    }

    #[test]
    fn amounts_are_exact_and_rounded_up() {
        for (value, expected) in [
            (json!(0), "0"),
            (json!(100), "100"),
            (json!(0.07), "0.07"),
            (json!(99.5), "99.5"),
            (json!(0.000_000_1), "0.000001"),
            (json!(1.234_567_8), "1.234568"),
            (json!(1e-9), "0.000001"),
            (json!(9e-6), "0.000009"),
            (json!(1.5e-6), "0.000002"),
            (json!(1e-5), "0.00001"),
            (json!(1.0), "1"),
        ] {
            assert_eq!(amount(&value), Ok(expected.to_owned()), "{value}");
        }
        let most = format!("{MOST_UNITS}");
        assert_eq!(amount(&json!(1_000_000_000_000_u64)), Ok(most));
        for refused in [json!(-1), json!(-0.5), json!(1_000_000_000_001_u64), json!(1e300), json!(u64::MAX)] {
            assert!(amount(&refused).is_err(), "{refused}");
        }
        let of = |value: f64| LimitAmount::of(&Number::from_f64(value).unwrap()).unwrap();
        let sum = (0..10).fold(LimitAmount::default(), |sum, _| sum.plus(of(0.1)));
        assert_eq!(sum, LimitAmount::ONE);
    }

    #[test]
    fn a_use_is_one_call_or_an_argument() {
        let limit = |sum: &[&str]| RuleLimit {
            per: LimitWindow::Day,
            max: LimitAmount::ONE,
            sum: sum.iter().map(|part| (*part).to_owned()).collect(),
        };
        let arguments = json!({"amount": 2.5, "payment": {"amount": 7}, "text": "9", "less": -1});
        let used = |sum: &[&str]| {
            let used = limit(sum).amount_of(arguments.as_object().unwrap());
            used.map(|amount| amount.to_string())
        };
        assert_eq!(used(&[]), Ok("1".to_owned()));
        assert_eq!(used(&["amount"]), Ok("2.5".to_owned()));
        assert_eq!(used(&["payment", "amount"]), Ok("7".to_owned()));
        for (sum, reason) in [("text", "is not a number"), ("less", "is negative"), ("gone", "there is no")] {
            assert!(used(&[sum]).unwrap_err().contains(reason), "{sum}");
        }
        assert!(used(&["amount", "x"]).is_err());
    }

    #[test]
    fn windows_begin_at_midnight_utc() {
        let at: Timestamp = "2026-11-28T23:59:59.9Z".parse().unwrap();
        let names = LimitWindow::ALL.map(|window| window.name_at(at));
        assert_eq!(names, ["2026-11-28T23", "2026-11-28", "2026-11"]);
        let kept = LimitWindow::ALL.map(|window| window.oldest_kept(at));
        assert_eq!(kept, ["2026-11-26T23", "2026-11-26", "2026-10"]);
    }

    #[test]
    fn a_limit_is_said_in_words() {
        let limit = RuleLimit { per: LimitWindow::Day, max: LimitAmount(100_000_000), sum: vec!["amount".to_owned()] };
        let used = LimitUse { rule: "small".to_owned(), limit, amount: LimitAmount(10_500_000) };
        assert_eq!(
            used.exceeded(LimitAmount(95_000_000)),
            "rule `small` allows 100 of args.amount a day, and has allowed 95, and this call would add 10.5"
        );
        let limit = RuleLimit { per: LimitWindow::Hour, max: LimitAmount(3_000_000), sum: Vec::new() };
        let used = LimitUse { rule: "few".to_owned(), limit, amount: LimitAmount::ONE };
        assert_eq!(used.exceeded(LimitAmount(3_000_000)), "rule `few` allows 3 calls an hour, and has allowed 3");
    }

    /// A policy in which the rule `small` allows refunds up to 100 a day, and the other rules allow or ask.
    fn policy(others: Vec<Rule>) -> Policy {
        let limit = RuleLimit { per: LimitWindow::Day, max: LimitAmount(100_000_000), sum: vec!["amount".to_owned()] };
        let mut rules = others;
        rules.push(rule("small", Verdict::Allow).with_limit(Some(limit)));
        Policy { rules, ..Policy::ask_always() }
    }

    fn rule(id: &str, verdict: Verdict) -> Rule {
        let refunds = Match { server: Some("shop".into()), ..Match::default() };
        Rule::new(id, verdict, "because", refunds, Vec::new(), Vec::new()).unwrap()
    }

    fn judged(policy: &Policy, arguments: Option<Value>) -> (Verdict, Option<String>, Option<String>) {
        let tool = Example { server: Some("shop".into()), tool: "refund".into(), ..Example::default() }.tool();
        let arguments = arguments.as_ref().and_then(Value::as_object);
        let judgement = policy.judge(&Subject { tool: &tool, agent: None, principal: None, arguments });
        let [used] = &judgement.limits[..] else { return (judgement.verdict, judgement.rule, None) };
        (judgement.verdict, judgement.rule, Some(used.amount.to_string()))
    }

    #[test]
    fn a_judgement_names_the_use_of_the_limit() {
        let alone = policy(Vec::new());
        let small = || Some("small".to_owned());
        assert_eq!(judged(&alone, Some(json!({"amount": 7}))), (Verdict::Allow, small(), Some("7".to_owned())));
        // Before a call is known, and where the amount cannot be read, a person decides.
        assert_eq!(judged(&alone, None), (Verdict::Ask, small(), None));
        assert_eq!(judged(&alone, Some(json!({"amount": "7"}))), (Verdict::Ask, small(), None));
        assert_eq!(judged(&alone, Some(json!({}))), (Verdict::Ask, small(), None));
    }

    #[test]
    fn every_limit_of_a_rule_that_allows_the_call_counts() {
        let calls = RuleLimit { per: LimitWindow::Hour, max: LimitAmount::ONE, sum: Vec::new() };
        let few = rule("few", Verdict::Allow).with_limit(Some(calls));
        let tool = Example { server: Some("shop".into()), tool: "refund".into(), ..Example::default() }.tool();
        let arguments = json!({"amount": 7});
        let limits = |policy: &Policy, tool: &Tool| {
            let subject = Subject { tool, agent: None, principal: None, arguments: arguments.as_object() };
            let judgement = policy.judge(&subject);
            let limits = judgement.limits.into_iter().map(|used| format!("{} {}", used.rule, used.amount));
            (judgement.rule, limits.collect::<Vec<_>>().join(", "))
        };
        let both = policy(vec![few.clone()]);
        assert_eq!(limits(&both, &tool), (Some("few".to_owned()), "few 1, small 7".to_owned()));
        let asked = policy(vec![few, rule("ask", Verdict::Ask)]);
        assert_eq!(limits(&asked, &tool), (Some("ask".to_owned()), String::new()));
    }

    #[test]
    fn a_limit_by_one_of_two_names_counts() {
        let (long, own) = ("mcp_shop_refund_2", "mcp_shop_refund");
        let named = |id: &str, name: &str| {
            let matches = Match { server: Some("shop".into()), tool: Some(name.into()), ..Match::default() };
            Rule::new(id, Verdict::Allow, "because", matches, Vec::new(), Vec::new()).unwrap()
        };
        let limit = RuleLimit { per: LimitWindow::Day, max: LimitAmount::ONE, sum: Vec::new() };
        let tool = Example { server: Some("shop".into()), tool: "refund".into(), ..Example::default() }.tool();
        let (name, own_name) = (ToolName::parse(long).unwrap(), ToolName::parse(own));
        let tool = Tool { name, own_name, ..tool };
        let arguments = json!({});
        let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
        for (free, limited) in [(long, own), (own, long)] {
            let rules = vec![named("free", free), named("limited", limited).with_limit(Some(limit.clone()))];
            let judgement = Policy { rules, ..Policy::ask_always() }.judge(&subject);
            assert_eq!((judgement.rule.as_deref(), judgement.limits.len()), (Some("limited"), 1), "{limited}");
        }
    }

    #[test]
    fn a_limit_that_cannot_be_counted_is_not_a_condition() {
        let with_condition =
            |rule: Rule| rule.with_condition(crate::policy::Condition::parse("args.amount != 3").unwrap());
        let policy = Policy {
            rules: policy(Vec::new()).rules.into_iter().map(with_condition).collect(),
            ..Policy::ask_always()
        };
        let tool = Example { server: Some("shop".into()), tool: "refund".into(), ..Example::default() }.tool();
        let told = |arguments: Value| {
            let subject = Subject { tool: &tool, agent: None, principal: None, arguments: arguments.as_object() };
            let [(rule, finding)] = &policy.explain(&subject)[..] else { panic!("one rule") };
            (policy.judge(&subject).reason, finding.in_words(rule, &subject))
        };
        let (reason, explained) = told(json!({"amount": -1}));
        assert!(reason.starts_with("the limit of rule `small` cannot be evaluated"), "{reason}");
        assert!(explained.starts_with("its limit cannot be counted"), "{explained}");
        let (reason, explained) = told(json!({}));
        assert!(reason.starts_with("the condition of rule `small` cannot be evaluated"), "{reason}");
        assert!(explained.starts_with("`args.amount != 3` cannot be evaluated"), "{explained}");
    }

    #[test]
    fn of_two_rules_that_allow_the_one_with_a_limit_decides() {
        let both = policy(vec![rule("all", Verdict::Allow)]);
        let (verdict, rule_id, used) = judged(&both, Some(json!({"amount": 7})));
        assert_eq!((verdict, rule_id.as_deref(), used.as_deref()), (Verdict::Allow, Some("small"), Some("7")));
        let asked = policy(vec![rule("ask", Verdict::Ask)]);
        assert_eq!(judged(&asked, Some(json!({"amount": 7}))), (Verdict::Ask, Some("ask".to_owned()), None));
        let limit = both.rules[1].limit().cloned();
        assert!(
            rule("never", Verdict::Deny).with_limit(limit).limit().is_none(),
            "only a rule that allows has a limit"
        );
    }
}
