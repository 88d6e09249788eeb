//! Policies that every configuration has, each with what it means.

/// The presets, with one that requires approval of every call first.
pub(super) const PRESETS: [(&str, &str); 7] = [
    ("default", "every call of an MCP tool requires your approval"),
    ("accept-reads", "servers that you mark `trusted` read without approval; other calls ask"),
    (
        "accept-edits",
        "servers that you mark `trusted` read, edit and delete files without approval, in every folder that they can \
      change, except hooks and settings of programs; other calls ask",
    ),
    ("dont-ask", "each call that would require approval is denied, so a run never waits"),
    ("delegate", "only tools of your application run; calls of MCP tools are denied"),
    ("plan", "no call runs; the model describes what it would do"),
    ("bypass", "every call runs without approval"),
];

/// What the policy of this name means, if it is a preset.
pub(super) fn meaning(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|(preset, _)| *preset == name).map(|(_, meaning)| *meaning)
}

/// What a preset allows trusted servers, if it believes their hints.
pub(super) fn trusted_effect(policy: &str) -> Option<&'static str> {
    match policy {
        "accept-reads" => Some("read"),
        "accept-edits" => Some("read, edit and delete files"),
        _ => None,
    }
}
