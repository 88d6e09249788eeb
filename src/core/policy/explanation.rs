//! Findings in words: the criterion of the rule, and the actual value.

use super::command::Comparison;
use super::finding::kind;
use super::{Finding, Rule, Subject, UnclearCriterion, UnmetCriterion};
use crate::tool::escape_untrusted;

impl Finding {
    /// The reason in words: the criterion of the rule, and the actual value.
    pub fn in_words(&self, rule: &Rule, subject: &Subject<'_>) -> String {
        let condition = rule.when().map_or("", |condition| condition.text());
        match self {
            Self::Matches => {
                let and_so = if rule.when().is_some() { format!(", and so does `{condition}`") } else { String::new() };
                let worst = rule.hint_at_worst(subject.tool).map(|(hint, worst)| {
                    let who =
                        if subject.tool.trusted { "its server does not say" } else { "its server is not trusted" };
                    format!("; `{}` counts as {worst}: {who}", hint.as_str())
                });
                let limit = rule.limit().map(|limit| format!("; it allows {limit}")).unwrap_or_default();
                format!("everything it asks for holds{and_so}{}{limit}", worst.unwrap_or_default())
            }
            Self::Unclear(UnclearCriterion::Command(why)) => format!("it may apply: {why}"),
            Self::Unclear(UnclearCriterion::Limit(why)) => format!("its limit cannot be counted: {why}"),
            Self::Unclear(UnclearCriterion::Condition(why)) => format!("`{condition}` cannot be evaluated: {why}"),
            Self::Depends => {
                let command = rule.conditions().command.as_ref().map(|command| format!("`command` {command}"));
                let condition = rule.when().map(|_| format!("`{condition}`"));
                let limit = rule.limit().map(|limit| format!("its limit of {limit}"));
                let all: Vec<String> = [command, condition, limit].into_iter().flatten().collect();
                format!("it depends on the arguments: {}", all.join(" and "))
            }
            Self::Misses(miss) => miss.in_words(rule, subject),
        }
    }
}

impl UnmetCriterion {
    fn in_words(self, rule: &Rule, subject: &Subject<'_>) -> String {
        let (wanted, tool) = (rule.conditions(), subject.tool);
        let differs = |what: &str, wanted: &Option<String>, found: Option<&str>| {
            let wanted = wanted.as_deref().unwrap_or_default();
            match found {
                Some(found) => format!("{what} `{found}` is not `{wanted}`"),
                None => format!("there is no {what}, and `{wanted}` is asked for"),
            }
        };
        match self {
            Self::Tool => differs("the name", &wanted.tool, Some(tool.name.as_str())),
            Self::ToolName => differs("the name at its origin", &wanted.tool_name, Some(tool.origin.tool_name())),
            Self::Server => differs("server", &wanted.server, tool.server().map(|server| server.as_str())),
            Self::Origin => differs("origin", &wanted.origin, Some(kind(&tool.origin))),
            Self::Agent => differs("agent", &wanted.agent, subject.agent.map(|agent| agent.as_str())),
            Self::Principal => differs("principal", &wanted.principal, subject.principal.map(|who| who.as_str())),
            Self::Hint(hint) => format!("the hint `{}` is another one, or there is none", hint.as_str()),
            Self::Untrusted => "its server is not trusted, and a hint of such a server allows nothing".to_owned(),
            Self::Trust if tool.trusted => {
                "its server is trusted, and the rule is about servers that are not".to_owned()
            }
            Self::Trust => "its server is not trusted".to_owned(),
            Self::NameAlone => {
                let server = tool.server().map_or("", |server| server.as_str());
                format!(
                    "its server is not trusted, and the name of a tool alone allows nothing; write `server: {}` into the rule if you mean this server",
                    escape_untrusted(server)
                )
            }
            Self::Command if rule.allows_part_of(subject) => {
                "it allows a part of the command, and not the whole".to_owned()
            }
            Self::Command => match rule.compare_command(subject) {
                Comparison::Differs(why) => why,
                Comparison::Matches | Comparison::MayMatch(_) | Comparison::Unknown => "the command differs".to_owned(),
            },
            Self::Condition => {
                format!("`{}` does not hold", rule.when().map_or("", |condition| condition.text()))
            }
        }
    }
}
