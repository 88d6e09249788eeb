//! Scenarios.

/// The shape of the runs that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// Turns with tools; one more turn with the answer ends the run.
    pub turns: usize,
    /// Concurrent tool calls in each turn.
    pub calls: usize,
    /// Available tools.
    pub tools: usize,
    /// Concurrent runs.
    pub at_once: usize,
    /// Whether the policy asks about every tool and a grant covers every tool.
    pub guarded: bool,
}

pub const PLAIN: Scenario =
    Scenario { name: "10 turns x 1 call", turns: 10, calls: 1, tools: 8, at_once: 1, guarded: false };

pub const MANY_TOOLS: &str = "300 tools";

pub const SCENARIOS: [Scenario; 7] = [
    PLAIN,
    Scenario { name: "10 turns x 8 calls", calls: 8, ..PLAIN },
    Scenario { name: "100 turns x 1 call", turns: 100, ..PLAIN },
    Scenario { name: "400 turns x 1 call", turns: 400, ..PLAIN },
    Scenario { name: MANY_TOOLS, tools: 300, ..PLAIN },
    Scenario { name: "300 tools, each granted", tools: 300, guarded: true, ..PLAIN },
    Scenario { name: "64 runs at once", at_once: 64, ..PLAIN },
];
