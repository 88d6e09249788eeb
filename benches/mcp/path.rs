//! Transports and protocol versions to a server.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Stdio,
    Http,
}

#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub name: &'static str,
    pub wire: Wire,
    pub era: Era,
}

pub const PATHS: [Path; 4] = [
    Path { name: "stdio, 2025-11-25", wire: Wire::Stdio, era: Era::Legacy },
    Path { name: "stdio, 2026-07-28", wire: Wire::Stdio, era: Era::Modern },
    Path { name: "http, 2025-11-25", wire: Wire::Http, era: Era::Legacy },
    Path { name: "http, 2026-07-28", wire: Wire::Http, era: Era::Modern },
];
