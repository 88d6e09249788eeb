//! Check of a rule against the examples of its author.

use super::{Example, Finding, Rule, RuleError, Subject};
use crate::id::{AgentName, Principal};

impl Rule {
    /// The examples whose result differs from the author's expectation.
    pub fn check_examples(&self) -> Vec<RuleError> {
        let (good, bad) = self.examples();
        let expectations = good.iter().map(|e| (e, true)).chain(bad.iter().map(|e| (e, false)));
        expectations.filter_map(|(example, should_match)| example.fault(self, should_match)).collect()
    }
}

impl Example {
    /// The error that the example reveals in a rule.
    fn fault(&self, rule: &Rule, should_match: bool) -> Option<RuleError> {
        let tool = self.tool();
        let (agent, principal) = (self.agent.clone().map(AgentName::from), self.principal.clone().map(Principal::from));
        let subject = Subject {
            tool: &tool,
            agent: agent.as_ref(),
            principal: principal.as_ref(),
            arguments: self.arguments.as_ref(),
        };
        let finding = rule.examine(&subject);
        let why = || finding.in_words(rule, &subject);
        let is_as_said = match &finding {
            Finding::Matches => should_match,
            Finding::Misses(_) => !should_match,
            // Neither: an example has to show the effect of the condition.
            Finding::Depends | Finding::Unclear(_) => false,
        };
        if is_as_said {
            return None;
        }
        let (rule, example) = (rule.id.clone(), tool.name.to_string());
        Some(match &finding {
            Finding::Depends => RuleError::NoArguments { rule, example },
            Finding::Unclear(_) => RuleError::Unclear { rule, example, why: why() },
            Finding::Matches | Finding::Misses(_) => RuleError::Example { rule, example, should_match, why: why() },
        })
    }
}
