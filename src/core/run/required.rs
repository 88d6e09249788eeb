//! Required servers: a run fails if one of them is not available when its tools are first listed.

use super::Run;
use crate::error::{ErrorCode, Failure};
use crate::tool::{LeftOut, Toolset};

impl Run {
    /// Keeps the failure of the first required server that is not available, before the first listing takes effect. A
    /// server that becomes unavailable later does not end the run: the model reads that its calls fail.
    pub(super) fn note_missing_server(&mut self, listed: &Toolset) {
        if self.tools.is_some() {
            return;
        }
        let required = &self.started.spec.required;
        self.missing_server = listed.left_out().iter().find_map(|left| {
            let LeftOut { server: Some(server), tool: None, reason } = left else { return None };
            let has_tools = listed.iter().any(|tool| tool.server() == Some(server));
            let is_missing = required.contains(server) && !has_tools;
            let failure = |reason| format!("server `{server}` is required and not available: {reason}");
            is_missing.then(|| Failure::new(ErrorCode::ToolUnavailable, failure(reason)))
        });
    }
}
