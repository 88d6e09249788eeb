//! "Did you mean …?" suggestions.

use toolgate_core::similar::distance;

/// The kind of words that are keys.
const KEYS: &str = "keys";

/// Keys of other programs: their names, a key of ours that is known where they are written, and what to write there. The
/// nearest of our keys is often another setting: `max_turns` is three letters from `max_tokens`.
const FOREIGN_KEYS: &[(&[&str], &str, &str)] = &[
    // Limits, and limits one level too high.
    (&["max_turns", "max_steps", "max_loops", "recursion_limit"], "max_iterations", "max_iterations"),
    (&["max_turns", "max_steps", "max_iterations", "recursion_limit"], "limits", "limits: { max_iterations: … }"),
    (&["max_tool_calls", "max_calls"], "max_mcp_calls", "max_mcp_calls"),
    (&["max_tool_calls", "max_mcp_calls"], "limits", "limits: { max_mcp_calls: … }"),
    (&["max_retries", "retries"], "max_attempts", "max_attempts"),
    (&["max_retries", "retries", "max_attempts"], "limits", "limits: { max_attempts: … }"),
    (&["timeout", "timeout_s", "max_time", "max_duration"], "deadline_s", "deadline_s"),
    (&["timeout", "timeout_s", "deadline_s"], "limits", "limits: { deadline_s: … }"),
    (&["max_cost", "max_budget_usd", "budget"], "max_cost_usd", "max_cost_usd"),
    (&["max_cost", "max_cost_usd", "max_budget_usd", "budget"], "limits", "limits: { max_cost_usd: … }"),
    // Rules of policies.
    (&["tool", "tool_name", "server", "command"], "allow_unmatched", "match: { … }"),
    (&["action", "effect", "decision"], "verdict", "verdict"),
    // Agents.
    (&["system", "system_prompt", "system_message", "prompt"], "instructions", "instructions"),
    (&["fallbacks", "fallback_models"], "fallback", "fallback"),
    (&["allowed_tools", "enabled_tools"], "priorities", "tools: { allow: [...] }"),
    (&["disallowed_tools", "disabled_tools"], "priorities", "tools: { deny: [...] }"),
    (&["permission_mode", "permissions", "approval_policy"], "policy", "policy"),
    (&["response_format", "output_type", "response_schema"], "output_schema", "output_schema"),
    // Models.
    (&["max_output_tokens", "max_completion_tokens"], "api_key", "max_tokens"),
    (&["model_name", "model_id"], "api_key", "model"),
    (&["url", "endpoint", "api_base"], "base_url", "base_url"),
    (&["key", "token", "api_token"], "api_key", "api_key"),
    (&["reasoning_effort", "effort"], "reasoning", "reasoning: { effort: … }"),
    (&["thinking", "thinking_budget", "budget_tokens"], "reasoning", "reasoning: { budget_tokens: … }"),
    (&["timeout", "timeout_s", "request_timeout"], "timeouts", "timeouts: { total_s: … }"),
    (&["extra_headers", "default_headers"], "base_url", "headers"),
    (&["extra_body", "model_kwargs"], "extra", "extra"),
    (&["response_format", "json_mode"], "structured_output", "structured_output"),
    // Servers.
    (&["command", "args"], "stdio", "stdio: { command: …, args: [...] }"),
    (&["env", "cwd"], "stdio", "stdio: { command: …, env: { … } }"),
    (&["url", "server_url", "endpoint", "headers"], "http", "http: { url: … }"),
    (&["timeout", "timeout_s", "tool_timeout"], "call_timeout_s", "call_timeout_s"),
    (&["startup_timeout", "init_timeout"], "start_timeout_s", "start_timeout_s"),
    (&["cmd", "program", "executable"], "inherit_env", "command"),
    (&["environment", "env_vars"], "inherit_env", "env"),
    (&["working_directory", "workdir"], "inherit_env", "cwd"),
];

/// A remedy for an unknown word: what a key of another program is here, the nearest known word, or else all of them.
pub(super) fn remedy<'a>(word: &str, known: impl IntoIterator<Item = &'a str>, kind: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let letters = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let is_meant = |(foreign, beside, _): &&(&[&str], &str, &str)| {
        known.contains(beside) && foreign.iter().any(|foreign| letters(word) == letters(foreign))
    };
    if kind == KEYS
        && let Some((_, _, ours)) = FOREIGN_KEYS.iter().find(is_meant)
    {
        return format!("did you mean `{ours}`?");
    }
    let begins_so = |candidate: &&&str| word.len() > 3 && candidate.starts_with(&format!("{word}_"));
    if let Some(candidate) = known.iter().find(begins_so) {
        return format!("did you mean `{candidate}`?");
    }
    let nearest = known.iter().map(|candidate| (distance(word, candidate), *candidate)).min();
    match nearest {
        Some((edits, candidate)) if edits <= word.chars().count().max(3) / 3 => format!("did you mean `{candidate}`?"),
        Some(_) => format!("expected one of: {}", quoted(&known)),
        None => format!("there are no {kind} yet"),
    }
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_program_leads_to_the_one_that_is_meant() {
        let limits = ["max_tool_interactions", "max_iterations", "max_tokens", "max_attempts"];
        assert_eq!(remedy("max_turns", limits, "keys"), "did you mean `max_iterations`?");
        assert_eq!(remedy("maxTurns", limits, "keys"), "did you mean `max_iterations`?");
        assert_eq!(remedy("max_token", limits, "keys"), "did you mean `max_tokens`?");
        let agent = ["model", "instructions", "limits", "tools", "priorities"];
        assert_eq!(remedy("max_turns", agent, "keys"), "did you mean `limits: { max_iterations: … }`?");
        assert_eq!(remedy("system_prompt", agent, "keys"), "did you mean `instructions`?");
        assert_eq!(remedy("allowedTools", agent, "keys"), "did you mean `tools: { allow: [...] }`?");
        let model = ["model", "base_url", "api_key", "reasoning", "max_tokens", "timeouts"];
        assert_eq!(remedy("max_completion_tokens", model, "keys"), "did you mean `max_tokens`?");
        assert_eq!(remedy("timeout", model, "keys"), "did you mean `timeouts: { total_s: … }`?");
        let server = ["stdio", "http", "trusted", "call_timeout_s"];
        assert_eq!(remedy("command", server, "keys"), "did you mean `stdio: { command: …, args: [...] }`?");
        assert_eq!(remedy("timeout", server, "keys"), "did you mean `call_timeout_s`?");
        assert_eq!(remedy("timeout", ["deadline_s"], "agents"), "expected one of: `deadline_s`", "a name, no key");
    }

    #[test]
    fn a_near_word_is_proposed_and_far_ones_are_listed() {
        assert_eq!(remedy("serves", ["servers", "store"], "keys"), "did you mean `servers`?");
        assert_eq!(
            remedy("openai", ["gemini", "openai_chat", "openai_images"], "words"),
            "did you mean `openai_chat`?"
        );
        assert_eq!(remedy("xyz", ["servers", "store"], "keys"), "expected one of: `servers`, `store`");
        assert_eq!(remedy("xyz", [], "agents"), "there are no agents yet");
    }
}
