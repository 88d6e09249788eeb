//! What the live view keeps of events for later lines.

use std::collections::BTreeSet;

use super::LiveView;
use crate::cli::text::one_line;
use crate::core::lifecycle::{LifecycleEvent, LifecycleKind};
use crate::core::run;

impl LiveView {
    /// Records an event without output, because it was shown before.
    pub(in crate::cli) fn note(&mut self, event: &LifecycleEvent) {
        if let LifecycleKind::ModelReplied { usage, tool_calls, .. } = &event.fact {
            self.gaps.replied(usage);
            let mut names = BTreeSet::new();
            let again = tool_calls.iter().filter(|call| !names.insert(call.tool_name.as_str()));
            self.repeated = again.map(|call| call.tool_name.clone()).collect();
            tool_calls.iter().for_each(|call| self.shared.add_call(&event.run_id, &call.call_id));
        }
        if let LifecycleKind::MessageAdded { text } = &event.fact {
            self.prompted.extend(text.clone());
            self.sent_here.pop_front();
        }
        if let LifecycleKind::ModelCalled { attempt: 1, .. } = &event.fact {
            self.prompted.clear();
        }
        if let LifecycleKind::CompensationStarted { undo, .. } = &event.fact {
            undo.iter().for_each(|undo| self.shared.add_call(&event.run_id, &undo.call.call_id));
        }
        if let LifecycleKind::ModelFailed { usage, .. } = &event.fact {
            self.gaps.failed(usage);
        }
        if let LifecycleKind::ApprovalRequested { call, .. } = &event.fact {
            self.asked.insert(call.call_id.clone(), call.clone());
        }
        if let LifecycleKind::ApprovalDecided { call, .. } | LifecycleKind::ApprovalExpired { call } = &event.fact {
            self.asked.remove(&call.call_id);
        }
        if let LifecycleKind::ApprovalDecided { call, decision: run::DecisionKind::Deny, .. } = &event.fact {
            self.denied.insert(call.call_id.clone());
        }
        if let LifecycleKind::ApprovalDecided { call, decision: run::DecisionKind::Approve, scope, .. } = &event.fact {
            self.approved.insert(call.call_id.clone(), (call.clone(), *scope));
        }
        if let LifecycleKind::McpExecuting { call, .. }
        | LifecycleKind::BuiltinExecuting { call }
        | LifecycleKind::QuestionAsked { call }
        | LifecycleKind::ExternalRequested { call }
        | LifecycleKind::Rejected { call, .. }
        | LifecycleKind::Drifted { call, .. } = &event.fact
        {
            self.approved.remove(&call.call_id);
        }
        if let LifecycleKind::McpExecuting { call, grant_id } = &event.fact {
            match grant_id {
                Some(_) => drop(self.granted.insert(call.call_id.clone())),
                None => drop(self.granted.remove(&call.call_id)),
            }
            self.executing.insert(call.call_id.clone(), call.clone());
        }
        if let LifecycleKind::McpCompleted { call, .. }
        | LifecycleKind::TaskStarted { call, .. }
        | LifecycleKind::InputRequired { call, .. } = &event.fact
        {
            self.executing.remove(&call.call_id);
        }
    }

    /// Keeps a message that was sent to the run from this terminal.
    pub(in crate::cli) fn sent_here(&mut self, message: String) {
        self.sent_here.push_back(message);
    }

    /// A line for each message that the model has not read yet.
    pub(in crate::cli) fn unread(&self) -> Vec<String> {
        const WHEN: &str = "  (the model reads it next)";
        let line = |text| format!("  > {}{WHEN}", one_line(text, self.look.room(4 + WHEN.len())));
        self.unread.iter().chain(&self.sent_here).map(|text| self.look.paint.dim(line(text))).collect()
    }

    /// Quotes the messages that are recorded and were not quoted yet.
    pub(in crate::cli) fn read_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unread).iter().map(|text| self.quote(text)).collect()
    }

    /// Quotes the messages that no model has read when the run ends, or becomes pending.
    pub(in crate::cli) fn messages_left_unread(&mut self) -> Vec<String> {
        let mut lines = self.read_messages();
        let not_read = match lines.len() {
            0 => return lines,
            1 => "  the model has not read this message; it stays in the conversation",
            _ => "  the model has not read these messages; they stay in the conversation",
        };
        lines.push(self.look.paint.dim(not_read));
        lines
    }

    /// Keeps the beginning of a call for the line before its end. Returns whether the event is one.
    pub(in crate::cli) fn defer(&mut self, event: &LifecycleEvent) -> bool {
        let (LifecycleKind::McpExecuting { call, .. } | LifecycleKind::BuiltinExecuting { call }) = &event.fact else {
            return false;
        };
        self.deferred.insert(call.call_id.clone(), call.clone());
        self.note(event);
        true
    }
}
