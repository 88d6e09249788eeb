//! Run limits, and how much of them is used.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use crate::chat::{Usage, Usd};
use crate::tool::result::MIN_RESULT_BYTES;

/// The default size of a tool result in the conversation: 64 KiB, some 16,000 tokens.
const DEFAULT_RESULT_BYTES: u64 = 64 * 1024;

/// The longest delay before another attempt that a run accepts from a provider, in milliseconds. After a longer one the
/// provider is not called again in that run: the failure ends it.
pub const LONGEST_RETRY_AFTER_MS: u64 = 120_000;

/// Limits of one run. At a soft limit the model answers with what it has; a hard limit ends the run, after one last
/// answer without tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Soft. Each turn with tools and each rejected answer uses one.
    pub max_tool_interactions: u32,
    /// Hard. Model turns; one more, without tools, is granted for a last answer.
    pub max_iterations: u32,
    /// Soft. MCP calls that are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mcp_calls: Option<u32>,
    /// Hard. Input and output tokens, as far as the provider reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Hard. US dollars, as far as the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<Usd>,
    /// Hard. Seconds from the start, waiting included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
    /// Consecutive turns that yield nothing but unusable calls or rejected answers.
    pub max_corrections: u32,
    /// Attempts at one model call, the first included.
    pub max_attempts: u32,
    /// Bytes of text that one tool result adds to the journal and the conversation. The rest is stored elsewhere and
    /// read in pieces. Less than [`MIN_RESULT_BYTES`] counts as that.
    pub max_result_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tool_interactions: 30,
            max_iterations: 50,
            max_mcp_calls: None,
            max_tokens: None,
            max_cost_usd: None,
            deadline_s: None,
            max_corrections: 3,
            max_attempts: 5,
            max_result_bytes: DEFAULT_RESULT_BYTES,
        }
    }
}

impl Limits {
    /// The limit of one tool result, as a size in memory.
    pub fn result_bytes(&self) -> usize {
        usize::try_from(self.max_result_bytes).unwrap_or(usize::MAX).max(MIN_RESULT_BYTES)
    }
}

/// A partial set of limits for one run, tighter than its agent's. A limit that is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TighterLimits {
    pub max_tool_interactions: Option<u32>,
    pub max_iterations: Option<u32>,
    pub max_mcp_calls: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_cost_usd: Option<Usd>,
    pub deadline_s: Option<u64>,
    pub max_corrections: Option<u32>,
    pub max_attempts: Option<u32>,
    pub max_result_bytes: Option<u64>,
}

/// A limit that is not tighter than the one it should replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiderLimit {
    pub name: &'static str,
    /// The requested value.
    pub wanted: String,
    pub most: String,
}

impl Limits {
    /// These limits with some of them tightened, or the first one that would be wider.
    pub fn tightened(&self, by: &TighterLimits) -> Result<Self, WiderLimit> {
        Ok(Self {
            max_tool_interactions: tighter(
                "max_tool_interactions",
                self.max_tool_interactions,
                by.max_tool_interactions,
            )?,
            max_iterations: tighter("max_iterations", self.max_iterations, by.max_iterations)?,
            max_mcp_calls: tighter_if_any("max_mcp_calls", self.max_mcp_calls, by.max_mcp_calls)?,
            max_tokens: tighter_if_any("max_tokens", self.max_tokens, by.max_tokens)?,
            max_cost_usd: tighter_if_any("max_cost_usd", self.max_cost_usd, by.max_cost_usd)?,
            deadline_s: tighter_if_any("deadline_s", self.deadline_s, by.deadline_s)?,
            max_corrections: tighter("max_corrections", self.max_corrections, by.max_corrections)?,
            max_attempts: tighter("max_attempts", self.max_attempts, by.max_attempts)?,
            max_result_bytes: tighter("max_result_bytes", self.max_result_bytes, by.max_result_bytes)?,
        })
    }
}

impl Limits {
    /// The tighter one of each of these limits and the agent's.
    #[must_use]
    pub fn within(&self, agent: &Self) -> Self {
        Self {
            max_tool_interactions: self.max_tool_interactions.min(agent.max_tool_interactions),
            max_iterations: self.max_iterations.min(agent.max_iterations),
            max_mcp_calls: least(self.max_mcp_calls, agent.max_mcp_calls),
            max_tokens: least(self.max_tokens, agent.max_tokens),
            max_cost_usd: least(self.max_cost_usd, agent.max_cost_usd),
            deadline_s: least(self.deadline_s, agent.deadline_s),
            max_corrections: self.max_corrections.min(agent.max_corrections),
            max_attempts: self.max_attempts.min(agent.max_attempts),
            max_result_bytes: self.max_result_bytes.min(agent.max_result_bytes),
        }
    }

    /// The limits of a fork of a run with these limits: the named ones, within its agent's, and otherwise the run's
    /// own.
    pub fn forked(&self, agent: &Self, named: &TighterLimits) -> Result<Self, WiderLimit> {
        agent.tightened(named)?;
        Ok(self.within(agent).with(named))
    }

    /// The named limits, and these for the others.
    #[must_use]
    pub fn with(&self, named: &TighterLimits) -> Self {
        Self {
            max_tool_interactions: named.max_tool_interactions.unwrap_or(self.max_tool_interactions),
            max_iterations: named.max_iterations.unwrap_or(self.max_iterations),
            max_mcp_calls: named.max_mcp_calls.or(self.max_mcp_calls),
            max_tokens: named.max_tokens.or(self.max_tokens),
            max_cost_usd: named.max_cost_usd.or(self.max_cost_usd),
            deadline_s: named.deadline_s.or(self.deadline_s),
            max_corrections: named.max_corrections.unwrap_or(self.max_corrections),
            max_attempts: named.max_attempts.unwrap_or(self.max_attempts),
            max_result_bytes: named.max_result_bytes.unwrap_or(self.max_result_bytes),
        }
    }
}

/// The smaller of two optional limits.
fn least<T: PartialOrd + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

fn tighter<T: PartialOrd + Copy + Display>(name: &'static str, most: T, wanted: Option<T>) -> Result<T, WiderLimit> {
    match wanted {
        Some(wanted) if wanted <= most => Ok(wanted),
        Some(wanted) => Err(WiderLimit { name, wanted: wanted.to_string(), most: most.to_string() }),
        None => Ok(most),
    }
}

fn tighter_if_any<T: PartialOrd + Copy + Display>(
    name: &'static str,
    most: Option<T>,
    wanted: Option<T>,
) -> Result<Option<T>, WiderLimit> {
    match most {
        Some(most) => tighter(name, most, wanted).map(Some),
        None => Ok(wanted),
    }
}

/// The hard limit that ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    #[serde(rename = "max_iterations", alias = "iterations")]
    Iterations,
    #[serde(rename = "max_tokens", alias = "tokens")]
    Tokens,
    #[serde(rename = "max_cost_usd", alias = "cost")]
    Cost,
    /// The governor refused a model call.
    #[serde(rename = "governor")]
    Governor,
}

impl Limit {
    /// The key of the limit in the configuration; `governor` for a refusal of the governor.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iterations => "max_iterations",
            Self::Tokens => "max_tokens",
            Self::Cost => "max_cost_usd",
            Self::Governor => "governor",
        }
    }
}

/// The usage of a run so far. Passed to context builders and validators.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub limits: Limits,
    /// Turns with tools, and rejected answers.
    pub tool_interactions: u32,
    /// Model turns that were answered.
    pub iterations: u32,
    /// MCP calls that were sent.
    pub mcp_calls: u32,
    /// Consecutive turns without a usable result.
    pub corrections: u32,
    /// Tokens and cost of all attempts.
    pub usage: Usage,
}

impl Budget {
    /// Whether the tool budget is used up: the model reads that, and no more tools run.
    pub fn is_exhausted(&self) -> bool {
        self.tool_interactions >= self.limits.max_tool_interactions
    }

    /// The hard limit that is reached, if one is.
    pub fn limit_reached(&self) -> Option<Limit> {
        let tokens = self.usage.total_tokens().zip(self.limits.max_tokens);
        let cost = self.usage.cost_usd.zip(self.limits.max_cost_usd);
        if self.iterations >= self.limits.max_iterations {
            Some(Limit::Iterations)
        } else if tokens.is_some_and(|(used, max)| used >= max) {
            Some(Limit::Tokens)
        } else if cost.is_some_and(|(used, max)| used >= max) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// MCP calls that may still be sent; `None` without a limit.
    pub fn mcp_calls_left(&self) -> Option<u32> {
        self.limits.max_mcp_calls.map(|max| max.saturating_sub(self.mcp_calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_tighter_and_never_wider() {
        let agents = Limits { max_iterations: 10, max_mcp_calls: Some(5), ..Limits::default() };
        let few = TighterLimits { max_iterations: Some(10), max_mcp_calls: Some(0), deadline_s: Some(60), ..none() };
        let tight = agents.tightened(&few).unwrap();
        assert_eq!(tight, Limits { max_mcp_calls: Some(0), deadline_s: Some(60), ..agents.clone() });
        assert_eq!(agents.tightened(&none()), Ok(agents.clone()));
        let wider = |by: TighterLimits| agents.tightened(&by).unwrap_err();
        let refused = wider(TighterLimits { max_mcp_calls: Some(6), ..none() });
        assert_eq!(refused, WiderLimit { name: "max_mcp_calls", wanted: "6".into(), most: "5".into() });
        assert_eq!(wider(TighterLimits { max_iterations: Some(11), ..none() }).name, "max_iterations");
        let dollars = |amount| Usd::try_from(amount).ok();
        let costly = Limits { max_cost_usd: dollars(0.5), ..agents.clone() };
        let refused = costly.tightened(&TighterLimits { max_cost_usd: dollars(1.0), ..none() }).unwrap_err();
        assert_eq!(refused, WiderLimit { name: "max_cost_usd", wanted: "1".into(), most: "0.5".into() });
    }

    fn none() -> TighterLimits {
        TighterLimits::default()
    }
}
