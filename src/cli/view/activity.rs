//! Activities in progress, for the lines that a terminal updates in place below the live view: the start of servers, the
//! model, and each call, with its seconds and its progress.

use std::time::Instant;

use super::DisplaySettings;
use super::words::in_words;
use crate::app::{ServerState, ServerStatus};
use crate::cli::text::{COMPACT, arguments_line, duration, list, one_line};
use crate::core::id::{CallId, ServerId};
use crate::core::lifecycle::{CallRef, Delta, LifecycleEvent, LifecycleKind};
use crate::core::tool::{Origin, ToolRef};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long one frame is shown, in milliseconds.
const FRAME: u128 = 100;
/// How long an activity lasts before it is shown. Shorter ones would only flicker.
const SHOWN_AFTER: u128 = 200;
/// The same for servers that are ready, which usually list their tools at once.
const READY_SHOWN_AFTER: u128 = 1_000;

/// The activities of one run.
#[derive(Debug, Default)]
pub(in crate::cli) struct Activities(Vec<Activity>);

#[derive(Debug)]
struct Activity {
    of: Actor,
    name: String,
    /// The arguments of a call.
    remark: String,
    /// Its latest progress.
    progress: Option<String>,
    since: Instant,
}

impl Activity {
    /// The latest progress of a call, and its arguments.
    fn about(&self) -> String {
        let progress = self.progress.as_ref().map(|progress| format!("{progress} · ")).unwrap_or_default();
        format!("{progress}{}", self.remark)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Actor {
    Servers,
    Model,
    Call(CallId),
}

/// The servers that are not ready yet, and those that could not start, with the reason.
#[derive(Debug, Default)]
pub(in crate::cli) struct StartingServers {
    pub(in crate::cli) starting: Vec<ServerId>,
    failed: Vec<(ServerId, String)>,
}

impl StartingServers {
    pub(in crate::cli) fn new(servers: Vec<ServerStatus>) -> Self {
        let mut progress = Self::default();
        for ServerStatus { id, state, last_error, .. } in servers {
            match state {
                ServerState::Starting | ServerState::Listing => progress.starting.push(id),
                ServerState::BackingOff { .. } | ServerState::Failed { .. } => {
                    progress.failed.push((id, last_error.map(|error| error.message).unwrap_or_default()));
                }
                ServerState::Idle | ServerState::Ready | ServerState::Closed => {}
            }
        }
        progress
    }

    /// Whether one is not ready yet.
    pub(in crate::cli) fn has_starting(&self) -> bool {
        !self.starting.is_empty()
    }
}

impl Activities {
    /// Applies an event.
    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events that begin or end an activity")]
    pub(in crate::cli) fn apply(&mut self, event: &LifecycleEvent, now: Instant) {
        let text = |text: &str| text.to_owned();
        match &event.fact {
            LifecycleKind::Started { .. } | LifecycleKind::Resumed { .. } => {
                self.0.clear();
                self.begin(Actor::Servers, text("connecting to servers"), String::new(), now);
            }
            LifecycleKind::ToolsListed { .. } => self.end(&Actor::Servers),
            LifecycleKind::ModelCalled { model, attempt, .. } => {
                self.end(&Actor::Servers);
                let attempt = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                self.begin(Actor::Model, format!("model {model}{attempt}"), text("Esc interrupts"), now);
            }
            LifecycleKind::ModelFailed { error, .. } => {
                self.end(&Actor::Model);
                let wait = error.retry_after_ms.map(|wait| format!("{}, as the provider asks", duration(wait)));
                self.begin(Actor::Model, text("waiting to retry"), wait.unwrap_or_default(), now);
            }
            LifecycleKind::ModelReplied { .. } | LifecycleKind::ModelCallRefused { .. } => self.end(&Actor::Model),
            LifecycleKind::CompactionStarted { model, .. } => {
                self.begin(Actor::Model, format!("model {model} summarizes the conversation"), String::new(), now);
            }
            LifecycleKind::CompactionCompleted { .. } | LifecycleKind::CompactionFailed { .. } => {
                self.end(&Actor::Model);
            }
            LifecycleKind::McpExecuting { call, .. } | LifecycleKind::BuiltinExecuting { call } => {
                self.end(&Actor::Servers);
                let arguments =
                    call.arguments.as_ref().map(|value| arguments_line(value, usize::MAX)).unwrap_or_default();
                self.begin(Actor::Call(call.call_id.clone()), server_and_tool(call), arguments, now);
            }
            LifecycleKind::McpCompleted { call, .. }
            | LifecycleKind::BuiltinCompleted { call, .. }
            | LifecycleKind::InputRequested { call, .. }
            | LifecycleKind::InputRequired { call, .. }
            | LifecycleKind::TaskStarted { call, .. } => self.end(&Actor::Call(call.call_id.clone())),
            LifecycleKind::Fragment { delta: Delta::Progress { call, progress }, .. } => {
                let reporting = Actor::Call(call.clone());
                if let Some(activity) = self.0.iter_mut().find(|activity| activity.of == reporting) {
                    activity.progress = Some(in_words(progress));
                }
            }
            LifecycleKind::Pending { .. }
            | LifecycleKind::Paused { .. }
            | LifecycleKind::Completed { .. }
            | LifecycleKind::Failed { .. }
            | LifecycleKind::Incomplete { .. }
            | LifecycleKind::Expired { .. }
            | LifecycleKind::Cancelled { .. } => self.0.clear(),
            _ => {}
        }
    }

    /// Whether the run waits for its servers, ready or not.
    pub(in crate::cli) fn waits_for_servers(&self) -> bool {
        self.0.iter().any(|activity| activity.of == Actor::Servers)
    }

    /// The calls in progress: each with its name, and its arguments or its progress.
    pub(in crate::cli) fn calls(&self) -> impl Iterator<Item = String> {
        let calls = self.0.iter().filter(|activity| matches!(activity.of, Actor::Call(_)));
        calls.map(|call| format!("{} ({})", call.name, one_line(&call.about(), COMPACT / 2)))
    }

    /// One line for each activity, none wider than the terminal. While a server is not ready, one for each that failed.
    pub(in crate::cli) fn lines(&self, now: Instant, servers: &StartingServers, look: DisplaySettings) -> Vec<String> {
        let mut lines = Vec::new();
        for activity in &self.0 {
            let Activity { of, name, since, .. } = activity;
            let lasts = now.saturating_duration_since(*since);
            let lists = *of == Actor::Servers && !servers.has_starting();
            if lasts.as_millis() < if lists { READY_SHOWN_AFTER } else { SHOWN_AFTER } {
                continue;
            }
            let name = if lists { "waiting for tool lists" } else { name };
            let position = usize::try_from(lasts.as_millis() / FRAME).unwrap_or(0) % FRAMES.len();
            let frame = FRAMES.get(position).copied().unwrap_or_default();
            let head = one_line(&format!("{name} · {} s", lasts.as_secs()), look.width.saturating_sub(6));
            let room = look.width.saturating_sub(head.chars().count() + 8);
            let remark = match of {
                Actor::Servers if lists => "Esc interrupts".to_owned(),
                Actor::Servers => format!("Esc skips {}", list(&servers.starting)),
                Actor::Model | Actor::Call(_) => activity.about(),
            };
            let remark = if room < 8 { String::new() } else { one_line(&remark, room) };
            lines.push(format!("  {} {head}  {}", look.paint.cyan(frame), look.paint.dim(remark)));
            let failed = servers.failed.iter().filter(|_| *of == Actor::Servers);
            lines.extend(failed.map(|(server, reason)| {
                let failed = one_line(&format!("{server}: {reason}"), look.width.saturating_sub(6));
                format!("  {} {failed}", look.paint.red("✗"))
            }));
        }
        lines
    }

    fn begin(&mut self, of: Actor, name: String, remark: String, since: Instant) {
        self.end(&of);
        self.0.push(Activity { of, name, remark, progress: None, since });
    }

    fn end(&mut self, of: &Actor) {
        self.0.retain(|activity| activity.of != *of);
    }
}

/// The server and the tool, as the server names it.
pub(super) fn server_and_tool(call: &CallRef) -> String {
    match &call.tool {
        Some(ToolRef { origin: Origin::Mcp { server, tool }, .. }) => one_line(&format!("{server} · {tool}"), 60),
        Some(ToolRef { origin: Origin::External { tool } | Origin::Builtin { tool }, .. }) => one_line(tool, 60),
        None => one_line(&call.tool_name, 60),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::cli::paint::Paint;
    use crate::core::chat::Usage;
    use crate::core::error::{ErrorCode, Failure};
    use crate::core::run::ToolAccess;
    use crate::core::tool::Progress;
    use crate::core::trace::TraceId;

    fn event(fact: LifecycleKind) -> LifecycleEvent {
        LifecycleEvent { seq: None, run_id: "run_1".into(), at: None, iteration: 1, fact }
    }

    fn executing(id: &str) -> LifecycleEvent {
        let tool = Some(Origin::Mcp { server: "work".into(), tool: "slow".into() }.into());
        let arguments = Some(json!({"text": "x".repeat(200)}));
        let call = CallRef { call_id: id.into(), tool_name: "mcp_work_slow".into(), tool, priority: None, arguments };
        event(LifecycleKind::McpExecuting { call, grant_id: None })
    }

    #[test]
    fn each_call_has_a_line_with_its_seconds_and_its_own_progress() {
        let (mut activities, began) = (Activities::default(), Instant::now());
        activities.apply(&executing("1"), began);
        activities.apply(&executing("2"), began);
        let progress = Progress { progress: 2.0, total: Some(4.0), message: Some("halfway".into()) };
        let delta = Delta::Progress { call: "2".into(), progress };
        activities.apply(&event(LifecycleKind::Fragment { delta, from: None }), began);
        let (look, ready) = (DisplaySettings { paint: Paint::Plain, width: 60 }, StartingServers::default());
        assert!(activities.lines(began, &ready, look).is_empty(), "a short call does not flicker");
        let lines = activities.lines(began + Duration::from_millis(3_050), &ready, look);
        assert!(lines[0].starts_with("  ⠋ work · slow · 3 s  text: \"xxx"), "{lines:?}");
        assert!(lines[1].contains("halfway") && lines[1].contains("text: \"xx"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:?}");
    }

    #[test]
    fn servers_are_shown_while_one_is_not_ready_or_their_tools_take_long() {
        let (mut activities, began) = (Activities::default(), Instant::now());
        activities.apply(&event(LifecycleKind::Resumed { trace_id: TraceId([1; 16]) }), began);
        let (look, ready) = (DisplaySettings { paint: Paint::Plain, width: 60 }, StartingServers::default());
        let later = began + Duration::from_secs(1);
        let reason = "`no-such-server` was not found; install it, or correct `command`".to_owned();
        let failed = vec![("notes".into(), reason)];
        let servers = StartingServers { starting: vec!["shop".into(), "web".into()], failed };
        let lines = activities.lines(later, &servers, look);
        assert_eq!(lines[0], "  ⠋ connecting to servers · 1 s  Esc skips shop, web");
        assert!(lines[1].starts_with("  ✗ notes: `no-such-server` was not found; install"), "{lines:?}");
        assert!(lines.len() == 2 && lines[1].chars().count() <= 60, "{lines:?}");
        let soon = began + Duration::from_millis(900);
        assert!(activities.lines(soon, &ready, look).is_empty());
        let lines = activities.lines(later, &ready, look);
        assert_eq!(lines, ["  ⠋ waiting for tool lists · 1 s  Esc interrupts"]);
        activities.apply(&executing("1"), later);
        assert!(activities.lines(later, &ready, look).is_empty());
    }

    #[test]
    fn the_model_is_shown_also_while_its_text_arrives() {
        let (mut activities, began) = (Activities::default(), Instant::now());
        let called = |attempt| LifecycleKind::ModelCalled {
            model: "main".into(),
            fallback: false,
            attempt,
            tool_access: ToolAccess::Enabled,
        };
        activities.apply(&event(called(1)), began);
        let (look, ready) = (DisplaySettings { paint: Paint::Plain, width: 60 }, StartingServers::default());
        let later = began + Duration::from_secs(1);
        assert_eq!(activities.lines(later, &ready, look), ["  ⠋ model main · 1 s  Esc interrupts"]);
        let error = Failure::new(ErrorCode::ProviderUnavailable, "overloaded").after_ms(Some(30_000));
        let failed = LifecycleKind::ModelFailed {
            model: "main".into(),
            attempt: 1,
            error,
            usage: Usage::default(),
            cumulative: Usage::default(),
            duration_ms: 9,
        };
        activities.apply(&event(failed), began);
        assert_eq!(activities.lines(later, &ready, look), ["  ⠋ waiting to retry · 1 s  30.0 s, as the provider asks"]);
        activities.apply(&event(called(2)), began);
        assert_eq!(activities.lines(later, &ready, look), ["  ⠋ model main, attempt 2 · 1 s  Esc interrupts"]);
        let delta = Delta::Text { text: "It".into() };
        activities.apply(&event(LifecycleKind::Fragment { delta, from: None }), later);
        assert_eq!(activities.lines(later, &ready, look), ["  ⠋ model main, attempt 2 · 1 s  Esc interrupts"]);
    }
}
