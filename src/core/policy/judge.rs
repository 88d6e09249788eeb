//! Policy evaluation: from rules to one verdict.

use super::condition::Facts;
use super::{Finding, Judgement, LimitUse, Links, OnTimeout, Policy, Rule, Subject, UnclearCriterion, Verdict};
use crate::tool::{Origin, Tool, ToolName};

/// The results of all rules of a policy for a call, by one name of its tool.
#[derive(Default)]
struct RuleResults<'a> {
    /// The strictest rule that matches; the first of equally strict ones.
    strictest: Option<&'a Rule>,
    /// The strictest rule that matches because of a claim of an untrusted server.
    claimed: Option<&'a Rule>,
    /// The first rule with a criterion that cannot be evaluated, and why; one that denies before the others.
    unclear: Option<(&'a Rule, UnclearCriterion)>,
    /// The uses of the limits of all rules that match.
    limits: Vec<LimitUse>,
    /// The strictest rule whose condition waits for arguments.
    depends: Option<&'a Rule>,
    /// Whether a rule that is not a denial, and depends on no claim of a server, needs arguments.
    may_allow: bool,
}

impl Policy {
    /// Judges a call or tool: the strictest verdict of all matching rules. Of equally strict rules the first one is
    /// named.
    ///
    /// A rule whose condition cannot be evaluated neither allows nor denies, and the call requires approval at least. So does
    /// a call with a command that cannot be analysed and that a rule may deny.
    ///
    /// A rule that matches because of a claim of an untrusted server counts where it makes the verdict stricter. It
    /// does not replace a stricter default.
    ///
    /// A tool whose definition changed during a run is not the tool the rules were written for: unless its server is
    /// trusted, a call that they allow requires approval.
    ///
    /// A tool that has a longer name, because another tool has the same, is judged by both names.
    ///
    /// A chained command about which no rule says anything is allowed if a rule allows each of its parts.
    ///
    /// Paths are compared by their texts alone; [`Policy::judge_with_links`] is for calls that are about to run.
    pub fn judge(&self, subject: &Subject<'_>) -> Judgement {
        self.judge_with_links(subject, &Links::Ignored)
    }

    /// The same for a call that is about to run, with the links of its paths resolved.
    pub fn judge_with_links(&self, subject: &Subject<'_>, links: &Links) -> Judgement {
        let mut judgement = self.judge_by(subject, &subject.tool.name, links);
        if let Some(own) = &subject.tool.own_name {
            judgement = judgement.stricter(self.judge_by(subject, own, links));
        }
        match judgement.verdict == Verdict::Allow && subject.tool.changed && !subject.tool.trusted {
            true => Judgement {
                verdict: Verdict::Ask,
                reason: "its server changed the tool's definition during this run; look at it before you allow it"
                    .into(),
                limits: Vec::new(),
                ..judgement.asked_otherwise()
            },
            false => judgement,
        }
    }

    /// Whether some call of a tool may be allowed, by the arguments that it has.
    pub(crate) fn may_allow(&self, subject: &Subject<'_>) -> bool {
        let may_allow_by = |name: &ToolName| {
            let facts = Facts::new(subject, name);
            let (settled, speaks) = self.settle(&facts, &self.evaluate(&facts));
            let depends = |rule: &Rule| matches!(rule.find(&facts), Finding::Depends);
            let allows_some = || self.rules.iter().any(|rule| rule.verdict == Verdict::Allow && depends(rule));
            settled.verdict == Verdict::Allow || (!speaks && allows_some())
        };
        let is_new = subject.tool.changed && !subject.tool.trusted;
        let names = [Some(&subject.tool.name), subject.tool.own_name.as_ref()];
        !is_new && names.into_iter().flatten().all(may_allow_by)
    }

    /// The finding of each rule for a call, in file order.
    pub fn explain<'a>(&'a self, subject: &Subject<'_>) -> Vec<(&'a Rule, Finding)> {
        self.rules.iter().map(|rule| (rule, rule.examine(subject))).collect()
    }

    fn judge_by(&self, subject: &Subject<'_>, name: &ToolName, links: &Links) -> Judgement {
        let facts = Facts::with_links(subject, name, links);
        let results = self.evaluate(&facts);
        let (settled, speaks) = self.settle(&facts, &results);
        if let Some((rule, criterion)) = results.unclear {
            return self.unless_clear(settled, rule, &criterion, speaks);
        }
        let Some(rule) = results.depends else {
            let allowed = if speaks || settled.verdict == Verdict::Allow { None } else { self.allow_parts(&facts) };
            return allowed.unwrap_or(settled);
        };
        // Denied whatever the arguments are, or requires approval by a rule that gives its reason.
        let is_denied = settled.verdict == Verdict::Deny && (speaks || !results.may_allow);
        let is_asked = settled.verdict == Verdict::Ask && speaks;
        if is_denied || is_asked {
            return settled;
        }
        self.judgement(rule, Verdict::Ask, format!("it depends on the arguments: {}", rule.reason)).asked_otherwise()
    }

    /// The verdict of the rules whose result is certain, and whether it comes from a rule.
    fn settle(&self, facts: &Facts<'_>, results: &RuleResults<'_>) -> (Judgement, bool) {
        let claimed = results.claimed.filter(|claimed| match results.strictest {
            Some(rule) => claimed.verdict > rule.verdict,
            None => claimed.verdict >= self.fallback_for(facts.subject),
        });
        let judged = |rule: &Rule| Judgement {
            limits: if rule.verdict == Verdict::Allow { results.limits.clone() } else { Vec::new() },
            ..self.judgement(rule, rule.verdict, rule.reason.clone())
        };
        match (claimed, results.strictest) {
            (Some(rule), _) => (judged(rule).asked_otherwise(), true),
            (None, Some(rule)) => (judged(rule), true),
            (None, None) => (self.otherwise(facts), false),
        }
    }

    fn evaluate<'a>(&'a self, facts: &Facts<'_>) -> RuleResults<'a> {
        let mut results = RuleResults::default();
        let stricter =
            |rule: &Rule, than: Option<&Rule>| than.is_none_or(|found| self.strictness(rule) > self.strictness(found));
        for rule in &self.rules {
            let finding = match rule.match_call(facts) {
                Ok(used) => {
                    results.limits.extend(used);
                    Finding::Matches
                }
                Err(finding) => finding,
            };
            match finding {
                Finding::Misses(_) => {}
                Finding::Matches => {
                    let is_claimed = rule.rests_on_claim(facts.subject.tool);
                    let among = if is_claimed { &mut results.claimed } else { &mut results.strictest };
                    if stricter(rule, *among) {
                        *among = Some(rule);
                    }
                }
                Finding::Unclear(criterion) => {
                    let is_stricter =
                        |(found, _): &(&Rule, _)| rule.verdict == Verdict::Deny && found.verdict != Verdict::Deny;
                    if results.unclear.as_ref().is_none_or(is_stricter) {
                        results.unclear = Some((rule, criterion));
                    }
                }
                Finding::Depends => {
                    results.may_allow |= rule.verdict != Verdict::Deny && !rule.rests_on_claim(facts.subject.tool);
                    if stricter(rule, results.depends) {
                        results.depends = Some(rule);
                    }
                }
            }
        }
        results
    }

    /// At least *ask*, with the criterion and its error in the reason.
    fn unless_clear(&self, settled: Judgement, rule: &Rule, criterion: &UnclearCriterion, speaks: bool) -> Judgement {
        let note = criterion.note(&rule.id, &rule.reason);
        let asked = match settled.verdict {
            Verdict::Deny => return settled,
            Verdict::Ask if speaks => Judgement { reason: format!("{} ({note})", settled.reason), ..settled },
            Verdict::Ask | Verdict::Allow => self.judgement(rule, Verdict::Ask, note),
        };
        Judgement { may_be_denied: rule.verdict == Verdict::Deny, ..asked.asked_otherwise() }
    }

    pub(super) fn judgement(&self, rule: &Rule, verdict: Verdict, reason: String) -> Judgement {
        Judgement {
            verdict,
            rule: Some(rule.id.clone()),
            reason,
            answer_timeout_s: rule.answer_timeout_s.or(self.answer_timeout_s),
            on_timeout: self.on_timeout_of(rule),
            may_be_denied: false,
            limits: Vec::new(),
        }
    }

    fn on_timeout_of(&self, rule: &Rule) -> OnTimeout {
        rule.on_timeout.unwrap_or(self.on_timeout)
    }

    /// Of two rules that allow, the one with a limit is stricter. Of two rules that ask, the one that needs a person is
    /// stricter than the one that approves after its time.
    pub(super) fn strictness(&self, rule: &Rule) -> (Verdict, bool) {
        let is_stricter = match rule.verdict {
            Verdict::Allow => rule.limit().is_some(),
            Verdict::Ask => self.on_timeout_of(rule) != OnTimeout::Approve,
            Verdict::Deny => true,
        };
        (rule.verdict, is_stricter)
    }

    /// The judgement if no rule matches.
    fn otherwise(&self, facts: &Facts<'_>) -> Judgement {
        let reason = match facts.subject.tool.origin {
            Origin::Builtin { .. } => "toolgate runs it itself, and it changes nothing".to_owned(),
            Origin::Mcp { .. } | Origin::External { .. } => {
                let untrusted = self.trust_missing(facts).unwrap_or_default();
                format!("no rule of policy `{}` matches this call{untrusted}", self.name)
            }
        };
        Judgement {
            verdict: self.fallback_for(facts.subject),
            rule: None,
            reason,
            answer_timeout_s: self.answer_timeout_s,
            on_timeout: self.on_timeout,
            may_be_denied: false,
            limits: Vec::new(),
        }
    }

    /// The rule that would allow a call if its server were trusted, in words.
    fn trust_missing(&self, facts: &Facts<'_>) -> Option<String> {
        let Subject { tool, arguments, .. } = *facts.subject;
        let server = tool.server().filter(|_| !tool.trusted && self.fallback != Verdict::Allow)?;
        arguments?;
        let trusted = Tool { trusted: true, ..tool.clone() };
        let judged = self.judge_by(&Subject { tool: &trusted, ..*facts.subject }, facts.name, facts.links);
        let rule = judged.rule.filter(|_| judged.verdict == Verdict::Allow)?;
        Some(format!(": rule `{rule}` would allow it if server `{server}` were trusted (`trusted: true`)"))
    }

    /// The verdict if no rule matches.
    fn fallback_for(&self, subject: &Subject<'_>) -> Verdict {
        match subject.tool.origin {
            // Builtin tools only show a run its own data, or ask the user.
            Origin::Builtin { .. } => Verdict::Allow,
            Origin::Mcp { .. } | Origin::External { .. } => self.fallback,
        }
    }
}

impl Judgement {
    /// The same judgement of a call beyond the limit of a rule that allows it: it requires approval.
    #[must_use]
    pub fn beyond_limit(self, reason: String) -> Self {
        Self { verdict: Verdict::Ask, reason, limits: Vec::new(), ..self }.asked_otherwise()
    }

    /// The stricter of the judgements of a call by the two names of its tool, with the limits of both.
    fn stricter(self, other: Self) -> Self {
        let strictness = |judgement: &Self| (judgement.verdict, !judgement.limits.is_empty());
        let (mut strictest, less) = if strictness(&other) > strictness(&self) { (other, self) } else { (self, other) };
        if strictest.verdict == Verdict::Allow {
            let is_new = |used: &LimitUse| strictest.limits.iter().all(|known| known.rule != used.rule);
            let further: Vec<LimitUse> = less.limits.into_iter().filter(is_new).collect();
            strictest.limits.extend(further);
        }
        strictest.may_be_denied |= less.may_be_denied;
        strictest
    }

    /// The same judgement where the question is about more than the criteria of a rule: time alone does not approve it.
    #[must_use]
    pub fn asked_otherwise(self) -> Self {
        Self { on_timeout: self.on_timeout.without_approval(), ..self }
    }
}
