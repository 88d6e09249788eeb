//! MCP servers with configured tools and replies. They report a violation when a call is sent twice or a tool does not
//! exist.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use toolgate::core::id::{CallId, RunId, ServerId};
use toolgate::core::run::AnsweredElicitation;
use toolgate::core::tool::{
    Annotations, AuthorizationStatus, CallReply, DeliveredReply, Endpoint, FailureKind, LeftOut, McpTool, Outcome,
    Progress, ServerAuthorization, ServerTools, ToolOutput,
};
use toolgate::core::trace::SpanContext;
use toolgate::ports::{McpCall, McpServers, McpTask, TaskAction};

/// Shared by all runners of a test: the runners are different processes with the same servers.
#[derive(Default)]
pub(crate) struct FakeServers {
    world: Mutex<World>,
}

#[derive(Default)]
struct World {
    servers: BTreeMap<ServerId, ServerTools>,
    behaviours: BTreeMap<String, Behaviour>,
    made: Vec<(RunId, CallId)>,
    arguments: BTreeMap<CallId, Map<String, Value>>,
    given_up: Vec<CallId>,
    in_flight: usize,
    most_in_flight: usize,
    released: Vec<(RunId, SpanContext)>,
    listings: usize,
    /// How long the next listing of each server takes.
    list_latency: BTreeMap<ServerId, Duration>,
    confirm_latency: Duration,
    repeatable: BTreeSet<String>,
    violations: Vec<String>,
    tasks: BTreeMap<String, VecDeque<Result<CallReply, String>>>,
    told: Vec<AnsweredElicitation>,
    stopped_tasks: Vec<String>,
    /// Tasks without any answer, and the number of polls.
    mute_tasks: BTreeMap<String, usize>,
    /// Suspended calls, which may be sent again with the answers.
    suspended: BTreeSet<(RunId, CallId)>,
    generation: u64,
    /// The changes that follow, one for each check of the generation.
    changes: VecDeque<Change>,
    looks: usize,
    /// The available tools when each call arrived.
    offered: Vec<Vec<ServerTools>>,
}

/// A change of the servers.
pub(crate) type Change = fn(&mut BTreeMap<ServerId, ServerTools>);

/// A driver that checks for changes more often than this never becomes idle.
const MOST_LOOKS: usize = 2000;

#[derive(Clone, Default)]
struct Behaviour {
    latency: Duration,
    progress: Vec<f64>,
    ends: Ends,
}

#[derive(Clone, Default)]
enum Ends {
    /// With the words "`<tool>` done".
    #[default]
    Well,
    With(Outcome),
    /// With the next of these replies, one per call.
    InTurn(Vec<CallReply>),
    InPanic,
    Never,
}

/// A tool without hints that accepts any object.
pub(crate) fn tool(name: &str) -> McpTool {
    McpTool {
        name: name.into(),
        description: format!("does {name}"),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: Annotations::default(),
        pinned: None,
    }
}

/// The tools of a server, to change them.
pub(crate) fn tools<'a>(servers: &'a mut BTreeMap<ServerId, ServerTools>, server: &str) -> &'a mut Vec<McpTool> {
    Arc::make_mut(&mut servers.get_mut(&server.into()).unwrap().tools)
}

impl FakeServers {
    /// Adds a tool, or changes its definition.
    pub(crate) fn tool_access(&self, server: &str, tool: McpTool) {
        let mut world = self.world();
        let empty = ServerTools {
            server: server.into(),
            trusted: false,
            endpoint: None,
            tools: Arc::default(),
            left_out: Vec::new(),
            stale: None,
            authorization: None,
        };
        let served = world.servers.entry(server.into()).or_insert(empty);
        let tools = Arc::make_mut(&mut served.tools);
        tools.retain(|known| known.name != tool.name);
        tools.push(tool);
        world.generation += 1;
    }

    /// Adds an idempotent tool of a trusted server.
    pub(crate) fn offer_harmless(&self, server: &str, name: &str) {
        let annotations = Annotations { idempotent_hint: Some(true), ..Annotations::default() };
        self.tool_access(server, McpTool { annotations, ..tool(name) });
        let mut world = self.world();
        world.servers.get_mut(&ServerId::from(server)).unwrap().trusted = true;
        world.repeatable.insert(name.into());
    }

    /// Replaces the program or the address of a server, with the same name and the same tools.
    pub(crate) fn replace(&self, server: &str, endpoint: &str) {
        let mut world = self.world();
        world.servers.get_mut(&ServerId::from(server)).unwrap().endpoint = Some(endpoint_of(endpoint));
        world.generation += 1;
    }

    /// Changes whether the configuration trusts a server.
    pub(crate) fn trust(&self, server: &str, trusted: bool) {
        let mut world = self.world();
        world.servers.get_mut(&ServerId::from(server)).unwrap().trusted = trusted;
        world.generation += 1;
    }

    /// The changes that follow, one for each check of the generation.
    pub(crate) fn change_when_looked_at(&self, changes: impl IntoIterator<Item = Change>) {
        self.world().changes = changes.into_iter().collect();
    }

    /// The available tools when each call arrived, in order of arrival.
    pub(crate) fn offered(&self) -> Vec<Vec<ServerTools>> {
        self.world().offered.clone()
    }

    /// Changes the authorization status of a server.
    pub(crate) fn authorize(&self, server: &str, status: AuthorizationStatus, reason: Option<&str>) {
        let mut world = self.world();
        let id = ServerId::from(server);
        let authorization = ServerAuthorization { server: id.clone(), status, reason: reason.map(str::to_owned) };
        world.servers.get_mut(&id).unwrap().authorization = Some(authorization);
        world.generation += 1;
    }

    /// Makes a server unavailable, for this reason.
    pub(crate) fn take_down(&self, server: &str, reason: &str) {
        let mut world = self.world();
        let id = ServerId::from(server);
        let down = world.servers.get_mut(&id).unwrap();
        down.tools = Arc::default();
        down.left_out = vec![LeftOut { server: Some(id), tool: None, reason: reason.into() }];
        world.generation += 1;
    }

    /// Removes a tool.
    pub(crate) fn withdraw(&self, server: &str, name: &str) {
        let mut world = self.world();
        let served = world.servers.get_mut(&ServerId::from(server)).unwrap();
        Arc::make_mut(&mut served.tools).retain(|tool| tool.name != name);
        world.generation += 1;
    }

    pub(crate) fn take_ms(&self, tool: &str, milliseconds: u64) {
        self.behave(tool, |behaviour| behaviour.latency = Duration::from_millis(milliseconds));
    }

    /// How long the next listing of a server takes.
    pub(crate) fn list_in_ms(&self, server: &str, milliseconds: u64) {
        self.world().list_latency.insert(server.into(), Duration::from_millis(milliseconds));
    }

    /// How long each confirmation of a tool list before a call takes.
    pub(crate) fn confirm_in_ms(&self, milliseconds: u64) {
        self.world().confirm_latency = Duration::from_millis(milliseconds);
    }

    pub(crate) fn report_progress(&self, tool: &str, steps: &[f64]) {
        self.behave(tool, |behaviour| behaviour.progress = steps.to_vec());
    }

    pub(crate) fn answer(&self, tool: &str, outcome: Outcome) {
        self.behave(tool, |behaviour| behaviour.ends = Ends::With(outcome));
    }

    /// The replies to the calls of a tool, in order. A reply may suspend a call.
    pub(crate) fn reply(&self, tool: &str, replies: impl IntoIterator<Item = CallReply>) {
        let replies = replies.into_iter().collect();
        self.behave(tool, |behaviour| behaviour.ends = Ends::InTurn(replies));
    }

    /// The answers about a task, one per poll.
    pub(crate) fn say_of_task(&self, task: &str, news: impl IntoIterator<Item = Result<CallReply, String>>) {
        self.world().tasks.insert(task.into(), news.into_iter().collect());
    }

    /// The elicitation responses that calls carried, in order of arrival.
    pub(crate) fn told(&self) -> Vec<AnsweredElicitation> {
        self.world().told.clone()
    }

    /// Leaves every poll of this task unanswered.
    pub(crate) fn hang_in_task(&self, task: &str) {
        self.world().mute_tasks.insert(task.into(), 0);
    }

    /// The number of polls of a task without answers.
    pub(crate) fn asked_in_vain(&self, task: &str) -> usize {
        self.world().mute_tasks.get(task).copied().unwrap_or_default()
    }

    /// The tasks that the program asked to stop.
    pub(crate) fn stopped_tasks(&self) -> Vec<String> {
        self.world().stopped_tasks.clone()
    }

    pub(crate) fn panic_in(&self, tool: &str) {
        self.behave(tool, |behaviour| behaviour.ends = Ends::InPanic);
    }

    pub(crate) fn hang_in(&self, tool: &str) {
        self.behave(tool, |behaviour| behaviour.ends = Ends::Never);
    }

    /// Allows the tool to be called again, because the user agreed to it.
    pub(crate) fn forgive_repeats_of(&self, tool: &str) {
        self.world().repeatable.insert(tool.into());
    }

    pub(crate) fn recover(&self, tool: &str) {
        self.behave(tool, |behaviour| behaviour.ends = Ends::Well);
    }

    /// The ids of the calls that arrived, in order of arrival.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.world().made.iter().map(|(_, call)| call.to_string()).collect()
    }

    /// The arguments of a call when it arrived.
    pub(crate) fn arguments_of(&self, call: &str) -> Value {
        Value::Object(self.world().arguments[&CallId::from(call)].clone())
    }

    /// The calls whose caller gave up before the answer.
    pub(crate) fn given_up(&self) -> Vec<String> {
        self.world().given_up.iter().map(CallId::to_string).collect()
    }

    pub(crate) fn most_in_flight(&self) -> usize {
        self.world().most_in_flight
    }

    pub(crate) fn released(&self) -> Vec<String> {
        self.world().released.iter().map(|(run, _)| run.to_string()).collect()
    }

    /// The trace context with which each run was released.
    pub(crate) fn release_contexts(&self) -> Vec<SpanContext> {
        self.world().released.iter().map(|(_, context)| context.clone()).collect()
    }

    /// The number of list requests.
    pub(crate) fn listings(&self) -> usize {
        self.world().listings
    }

    /// The forbidden uses of the servers.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.world().violations.clone()
    }

    fn behave(&self, tool: &str, change: impl FnOnce(&mut Behaviour)) {
        change(self.world().behaviours.entry(tool.into()).or_default());
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn next_reply(&self, call: &McpCall<'_>) -> CallReply {
        let mut world = self.world();
        match world.behaviours.get_mut(call.tool).map(|behaviour| &mut behaviour.ends) {
            Some(Ends::InTurn(replies)) if !replies.is_empty() => replies.remove(0),
            _ => panic!("the fake server has no reply to another call of {}", call.tool),
        }
    }

    fn arrived(&self, call: &McpCall<'_>) -> Behaviour {
        let mut world = self.world();
        let key = (call.run.clone(), call.call.clone());
        let goes_on = world.suspended.remove(&key) && call.answered.is_some();
        world.told.extend(call.answered.cloned());
        if world.made.contains(&key) && !goes_on && !world.repeatable.contains(call.tool) {
            world.violations.push(format!("call {}/{} was made twice", call.run, call.call));
        }
        let offers = |served: &ServerTools| served.tools.iter().any(|tool| tool.name == call.tool);
        if !world.servers.get(call.server).is_some_and(offers) {
            world.violations.push(format!("{}/{} was called and is not on offer", call.server, call.tool));
        }
        world.made.push(key);
        let offered = world.servers.values().cloned().collect();
        world.offered.push(offered);
        world.arguments.insert(call.call.clone(), call.arguments.clone());
        world.in_flight += 1;
        world.most_in_flight = world.most_in_flight.max(world.in_flight);
        world.behaviours.get(call.tool).cloned().unwrap_or_default()
    }
}

/// A call in progress. If it is dropped early, its caller gave up.
struct InFlight<'a> {
    servers: &'a FakeServers,
    call: CallId,
    answered: bool,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut world = self.servers.world();
        world.in_flight -= 1;
        if !self.answered {
            world.given_up.push(self.call.clone());
        }
    }
}

#[async_trait]
impl McpServers for FakeServers {
    async fn list(&self, servers: &[ServerId], _trace: &SpanContext) -> Vec<ServerTools> {
        let latency = servers.iter().filter_map(|server| self.world().list_latency.remove(server)).max();
        if let Some(latency) = latency {
            tokio::time::sleep(latency).await;
        }
        let mut world = self.world();
        world.listings += 1;
        servers.iter().map(|server| world.servers[server].clone()).collect()
    }

    async fn confirm(&self, _servers: &[(ServerId, Option<Duration>)], _trace: &SpanContext) {
        let latency = self.world().confirm_latency;
        tokio::time::sleep(latency).await;
    }

    async fn call(&self, call: McpCall<'_>, progress: &(dyn Fn(Progress) + Send + Sync)) -> DeliveredReply {
        let behaviour = self.arrived(&call);
        let mut in_flight = InFlight { servers: self, call: call.call.clone(), answered: false };
        for step in behaviour.progress {
            progress(Progress { progress: step, total: None, message: None });
        }
        if !behaviour.latency.is_zero() {
            tokio::time::sleep(behaviour.latency).await;
        }
        let reply: CallReply = match behaviour.ends {
            Ends::Well => Outcome::Returned(ToolOutput::text(format!("{} done", call.tool))).into(),
            Ends::With(outcome) => outcome.into(),
            Ends::InTurn(_) => self.next_reply(&call),
            Ends::InPanic => panic!("the fake server panics on demand"),
            Ends::Never => std::future::pending().await,
        };
        in_flight.answered = true;
        if matches!(reply, CallReply::NeedsInput(_)) {
            self.world().suspended.insert((call.run.clone(), call.call.clone()));
        }
        reply.into()
    }

    fn generation(&self, _servers: &[ServerId]) -> u64 {
        let mut world = self.world();
        world.looks += 1;
        assert!(world.looks < MOST_LOOKS, "a driver never stops checking for changes");
        if let Some(change) = world.changes.pop_front() {
            change(&mut world.servers);
            world.generation += 1;
        }
        world.generation
    }

    async fn task(&self, task: McpTask<'_>) -> Result<DeliveredReply, String> {
        let is_mute = task.action == TaskAction::Poll
            && self.world().mute_tasks.get_mut(&task.task.id).map(|asked| *asked += 1).is_some();
        if is_mute {
            std::future::pending::<()>().await;
        }
        let mut world = self.world();
        match task.action {
            TaskAction::Poll => {
                let news = world.tasks.get_mut(&task.task.id).and_then(VecDeque::pop_front);
                let news = news.unwrap_or_else(|| panic!("the fake server has no answer about {}", task.task.id));
                if matches!(news, Ok(CallReply::NeedsInput(_))) {
                    world.suspended.insert((task.run.clone(), task.call.clone()));
                }
                news.map(DeliveredReply::from)
            }
            TaskAction::Stop => {
                world.stopped_tasks.push(task.task.id.clone());
                Ok(Outcome::failed(FailureKind::Cancelled, "stopped").into())
            }
        }
    }

    async fn release(&self, run: &RunId, trace: &SpanContext) {
        self.world().released.push((run.clone(), trace.clone()));
    }
}

/// An endpoint with this hash.
pub(crate) fn endpoint_of(fingerprint: &str) -> Endpoint {
    Endpoint { fingerprint: fingerprint.to_owned(), description: "another program".to_owned() }
}
