//! Protocol logic: takes a message and returns scripts. It does no I/O, has no clock and never waits.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use toolgate::lab::message_flaws::Flaw;

use crate::asking::Question;
use crate::faults::{Fault, Faults, Moment};
use crate::message::{self, INVALID_PARAMS, Message, UNKNOWN_METHOD, UNSUPPORTED_VERSION, text, with};
use crate::options::Era;
use crate::script::{Action, HttpAnswer, Origin, Script, Target};
use crate::tasks::Task;
use crate::{tools, wire};

const LEGACY: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
/// The length of the stack trace of `node-stack`.
const NODE_FRAMES: usize = 100;
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The state of the server, for all sessions together.
pub(crate) struct Server {
    era: Era,
    pub(crate) faults: Faults,
    heard: u64,
    /// Executed calls, without those of the witness.
    pub(crate) executed: u64,
    /// The number of failed requests for its tools.
    listings: u64,
    pub(crate) has_lost_session: bool,
    /// The server's own requests that wait for a response.
    pub(crate) questions: BTreeMap<String, Question>,
    pub(crate) tasks: BTreeMap<String, Task>,
    /// The open exchanges, by session and request id.
    exchanges: HashMap<(String, String), u64>,
    /// Answers that are held back until the client has cancelled the call.
    pub(crate) held_back: HashMap<u64, Value>,
    /// Subscribers to changes: exchange and subscription id.
    subscribers: Vec<(u64, Value)>,
}

/// A request and its context.
pub(crate) struct Request<'a> {
    pub(crate) exchange: u64,
    pub(crate) id: &'a Value,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) dialect: Dialect,
}

/// The protocol version of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Legacy,
    Modern,
}

impl Server {
    /// A server without any message yet.
    pub(crate) fn new(era: Era, faults: Faults) -> Self {
        Self {
            era,
            faults,
            heard: 0,
            executed: 0,
            listings: 0,
            has_lost_session: false,
            questions: BTreeMap::new(),
            tasks: BTreeMap::new(),
            exchanges: HashMap::new(),
            held_back: HashMap::new(),
            subscribers: Vec::new(),
        }
    }

    /// The actions before the first message.
    pub(crate) fn opening(&self) -> Script {
        let mut actions = Vec::new();
        if self.faults.has(&Fault::SpawnsGrandchild) {
            actions.push(Action::SpawnGrandchild);
        }
        if self.faults.has(&Fault::SecretsOnStderr) {
            actions.push(Action::Betray);
        }
        actions.extend(self.flood());
        if self.faults.has(&Fault::NodeStack) {
            let frames =
                (1..=NODE_FRAMES).map(|line| format!("    at step{line} (file:///srv/shop/index.js:{line}:9)"));
            let reason = ["file:///srv/shop/index.js:7", "Error: SHOP_TOKEN is not set"].map(str::to_owned);
            let end = ["", "Node.js v22.11.0"].map(str::to_owned);
            actions.extend(reason.into_iter().chain(frames).chain(end).map(Action::Complain));
            actions.push(Action::Exit(1));
        }
        if self.faults.has(&Fault::DieAtStart) {
            actions.push(Action::Complain("fatal: FAULT_TOKEN is not set".into()));
            actions.push(Action::Exit(3));
        }
        actions.extend(self.faults.delay(Moment::Start).map(Action::Wait));
        actions.extend(wire::banner(&self.faults));
        actions.extend(wire::noise(&self.faults));
        Script { exchange: 0, actions }
    }

    /// Handles a message.
    pub(crate) fn receive(&mut self, origin: &Origin, message: &Value) -> Vec<Script> {
        let mut actions = wire::noise(&self.faults);
        actions.push(Action::Hold);
        let mut scripts = vec![Script { exchange: origin.exchange, actions }];
        scripts.extend(self.react(origin, message));
        scripts
    }

    fn react(&mut self, origin: &Origin, message: &Value) -> Vec<Script> {
        self.heard += 1;
        let is_first = self.heard == 1;
        if is_first && self.faults.has(&Fault::DieAtDiscover) && text(message, "method") != "initialize" {
            let why = format!("fatal: expected initialize, got {}", text(message, "method"));
            return self.scripts(origin.exchange, vec![Action::Complain(why), Action::Exit(1)]);
        }
        let broken =
            self.faults.find(|fault| if let Fault::DiscoverBreaks(count) = fault { Some(count) } else { None });
        if broken.is_some_and(|count| self.heard <= count) {
            return self.scripts(origin.exchange, vec![Action::BreakConnection]);
        }
        if self.faults.has(&Fault::Hang(Moment::Start)) {
            return self.scripts(origin.exchange, vec![Action::Hold]);
        }
        match message::read(message) {
            Message::Request { id, method, params } => {
                self.exchanges.insert((origin.session.clone(), id.to_string()), origin.exchange);
                let dialect = self.dialect(params);
                let request = Request { exchange: origin.exchange, id, method, params, dialect };
                let actions = self.answer(&request);
                self.scripts(origin.exchange, actions)
            }
            Message::Notification { method, params } => self.hear(origin, method, params),
            Message::Response { id } => self.hear_answer(id.as_str().unwrap_or_default(), message),
            Message::Nonsense => {
                let refusal = message::refusal(&Value::Null, -32600, "that is no JSON-RPC message");
                self.scripts(origin.exchange, vec![Action::answer(refusal)])
            }
        }
    }

    /// The script of an exchange, as the transport faults leave it.
    pub(crate) fn scripts(&self, exchange: u64, actions: Vec<Action>) -> Vec<Script> {
        vec![Script { exchange, actions: wire::distort(&self.faults, actions) }]
    }

    /// The protocol version of a request. A dual server decides by the content of the request.
    pub(crate) fn dialect(&self, params: &Value) -> Dialect {
        let carries_version = params.get("_meta").is_some_and(|meta| meta.get(VERSION_KEY).is_some());
        match self.era {
            Era::Legacy => Dialect::Legacy,
            Era::Dual if !carries_version => Dialect::Legacy,
            Era::Modern | Era::Dual => Dialect::Modern,
        }
    }

    fn answer(&mut self, request: &Request<'_>) -> Vec<Action> {
        if let Some(refusal) = refused_version(request) {
            return vec![Action::answer(refusal)];
        }
        if let Some(refusal) = self.before_initialization(request) {
            return vec![Action::answer(refusal)];
        }
        match (request.method, request.dialect) {
            ("initialize", Dialect::Legacy) if self.faults.has(&Fault::HangAtInitialize) => vec![Action::Hold],
            ("initialize", Dialect::Legacy) => self.at(Moment::Start, request, self.initialized(request.params)),
            ("server/discover", Dialect::Modern) => match self.faults.has(&Fault::HangAtDiscover) {
                true => vec![Action::Hold],
                false => self.at(Moment::Start, request, self.discovered()),
            },
            ("server/discover", _) if self.faults.has(&Fault::HangAtDiscover) => vec![Action::Hold],
            ("ping", Dialect::Legacy) => vec![Action::answer(message::response(request.id, json!({})))],
            ("tools/list", _) if self.faults.has(&Fault::LostSessionAtList) && !self.has_lost_session => {
                self.forget_session()
            }
            ("tools/list", _) if self.faults.has(&Fault::NoToolsCapability) => {
                vec![Action::answer(message::refusal(request.id, UNKNOWN_METHOD, "Method not found"))]
            }
            ("tools/list", _) => {
                if self.faults.has(&Fault::ListFailsOtherwise) {
                    self.listings += 1;
                    let words = format!("the list is being made, attempt {}", self.listings);
                    return vec![Action::answer(message::refusal(request.id, -32000, &words))];
                }
                let changes = self.faults.has(&Fault::ToolsChange) || self.faults.has(&Fault::ToolsChangeSilently);
                let changed = changes && self.executed > 0;
                let cursor = request.params.get("cursor").and_then(Value::as_str);
                let page = tools::page(&self.faults, changed, cursor);
                self.at(Moment::List, request, with(page, cache_hint(request.dialect)))
            }
            ("tools/call", _) => self.call(request),
            ("subscriptions/listen", Dialect::Modern) => self.subscribe(request),
            ("tasks/get" | "tasks/update" | "tasks/cancel", Dialect::Modern) => self.about_task(request),
            _ => vec![Action::answer(message::refusal(request.id, UNKNOWN_METHOD, "Method not found"))],
        }
    }

    /// An answer with the faults of its moment. The process itself has the delay at start, see [`Self::opening`].
    fn at(&self, moment: Moment, request: &Request<'_>, result: Value) -> Vec<Action> {
        if self.faults.has(&Fault::Hang(moment)) {
            return vec![Action::Hold];
        }
        let delay = self.faults.delay(moment).filter(|_| moment != Moment::Start);
        let mut actions: Vec<Action> = delay.map(Action::Wait).into_iter().collect();
        let answer = request.result(result);
        actions.push(match self.http_fault(moment, &answer) {
            Some(broken) => Action::AnswerHttp(broken),
            None => self.spoilt(moment, answer),
        });
        actions
    }

    /// Sends an answer, with the flaw of that moment if there is one.
    pub(crate) fn spoilt(&self, moment: Moment, answer: Value) -> Action {
        let flaw = |fault| if let Fault::Flawed(flaw, when) = fault { (when == moment).then_some(flaw) } else { None };
        match self.faults.find(flaw) {
            Some(Flaw::NoLineFeed) => Action::Print(answer.to_string()),
            Some(flaw) => Action::SendBytes(flaw.spoil(&answer)),
            None => Action::answer(answer),
        }
    }

    /// The HTTP response of a server that is broken at this moment.
    pub(crate) fn http_fault(&self, moment: Moment, answer: &Value) -> Option<HttpAnswer> {
        const PAGE: &str = "<!DOCTYPE html><title>Sign in</title><h1>Please sign in</h1>";
        let http = |status, headers, body: &str| HttpAnswer { status, headers, body: body.into() };
        if self.faults.has(&Fault::Http500(moment)) {
            return Some(http(500, &[("content-type", "text/plain")], "Internal Server Error"));
        }
        if self.faults.has(&Fault::Http503RetryAfter(moment)) {
            return Some(http(503, &[("content-type", "text/plain"), ("retry-after", "7")], "Service Unavailable"));
        }
        if self.faults.has(&Fault::HttpHtml(moment)) {
            return Some(http(200, &[("content-type", "text/html; charset=utf-8")], PAGE));
        }
        if self.faults.has(&Fault::Http202(moment)) {
            return Some(http(202, &[], ""));
        }
        if self.faults.has(&Fault::Http204(moment)) {
            return Some(http(204, &[], ""));
        }
        let mislabelled = self.faults.has(&Fault::NotJsonContentType(moment));
        mislabelled.then(|| http(200, &[("content-type", "text/plain")], &answer.to_string()))
    }

    fn initialized(&self, params: &Value) -> Value {
        let wanted = text(params, "protocolVersion");
        let agreed = LEGACY.iter().find(|known| **known == wanted).or(LEGACY.last()).copied();
        let agreed = if self.faults.has(&Fault::UnknownVersion) { Some("2099-01-01") } else { agreed };
        json!({"protocolVersion": agreed, "capabilities": self.capabilities(), "serverInfo": identity()})
    }

    fn discovered(&self) -> Value {
        let versions: Vec<&str> = match self.era {
            Era::Dual => LEGACY.iter().copied().chain([MODERN]).collect(),
            Era::Legacy | Era::Modern => vec![MODERN],
        };
        let result = json!({"supportedVersions": versions, "capabilities": self.capabilities()});
        with(result, cache_hint(Dialect::Modern))
    }

    /// The refusal of a request by a server that was restarted behind its command.
    fn before_initialization(&mut self, request: &Request<'_>) -> Option<Value> {
        let calls =
            self.faults.find(|fault| if let Fault::RestartsInside(calls) = fault { Some(calls) } else { None })?;
        if self.executed < calls || self.has_lost_session {
            return None;
        }
        self.has_lost_session = request.method == "initialize";
        let words = "Received request before initialization was complete";
        (!self.has_lost_session).then(|| message::refusal(request.id, INVALID_PARAMS, words))
    }

    fn capabilities(&self) -> Value {
        if self.faults.has(&Fault::NoToolsCapability) {
            return json!({"prompts": {}});
        }
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if let Some(extensions) = self.task_extensions() {
            capabilities.as_object_mut().map(|all| all.insert("extensions".into(), extensions));
        }
        capabilities
    }

    fn subscribe(&mut self, request: &Request<'_>) -> Vec<Action> {
        if self.faults.has(&Fault::HangAtListen) {
            return vec![Action::Hold];
        }
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {SUBSCRIPTION_KEY: request.id}});
        let acknowledged = message::notification("notifications/subscriptions/acknowledged", params);
        let mut actions = vec![Action::answer(acknowledged)];
        if self.faults.has(&Fault::ListenEnds) {
            actions.push(Action::answer(request.result(json!({"_meta": {SUBSCRIPTION_KEY: request.id}}))));
            return actions;
        }
        if self.faults.has(&Fault::ListenBreaks) {
            // The client must read the sent data before the break.
            actions.extend([Action::Wait(Duration::from_millis(100)), Action::BreakConnection]);
            return actions;
        }
        self.subscribers.push((request.exchange, request.id.clone()));
        actions.push(Action::Hold);
        actions
    }

    /// Notifies all clients about changed tools: subscribers under their ids, all others unsolicited.
    pub(crate) fn tools_changed(&self) -> Vec<Action> {
        const METHOD: &str = "notifications/tools/list_changed";
        let told = self.subscribers.iter().map(|(exchange, id)| {
            let params = json!({"_meta": {SUBSCRIPTION_KEY: id}});
            Action::Send { to: Target::Exchange(*exchange), message: message::notification(METHOD, params) }
        });
        let unasked = || Action::Send { to: Target::Unasked, message: message::notification(METHOD, json!({})) };
        told.chain((self.era != Era::Modern).then(unasked)).collect()
    }

    fn hear(&mut self, origin: &Origin, method: &str, params: &Value) -> Vec<Script> {
        match method {
            "notifications/initialized" => {
                let roots = self.faults.has(&Fault::AsksRoots).then(|| ("roots-1", "roots/list", json!({})));
                let listed = self.faults.has(&Fault::AsksInAList).then(|| ("list-1", "shop/audit", json!([1, 2])));
                let asked = roots.into_iter().chain(listed).map(|(id, method, params)| Action::Send {
                    to: Target::Unasked,
                    message: message::request(id, method, params),
                });
                self.scripts(origin.exchange, asked.collect())
            }
            "notifications/cancelled" => {
                let id = params.get("requestId").unwrap_or(&Value::Null).to_string();
                match self.exchanges.remove(&(origin.session.clone(), id)) {
                    Some(exchange) => self.cancel(exchange),
                    None => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Stops the work for an exchange, or sends the late answer if that fault is set.
    pub(crate) fn cancel(&mut self, exchange: u64) -> Vec<Script> {
        self.subscribers.retain(|(subscribed, _)| *subscribed != exchange);
        self.questions.retain(|_, question| question.exchange != exchange);
        match self.held_back.remove(&exchange) {
            Some(answer) => self.scripts(exchange, vec![Action::answer(answer)]),
            None => self.scripts(exchange, vec![Action::Cancel { exchange }]),
        }
    }

    /// The flood on stderr.
    pub(crate) fn flood(&self) -> Option<Action> {
        let mebibytes =
            self.faults.find(|fault| if let Fault::StderrFlood(size) = fault { Some(size) } else { None })?;
        Some(Action::Flood { mebibytes: usize::try_from(mebibytes).unwrap_or(usize::MAX) })
    }
}

impl Request<'_> {
    /// The result in the form of the request's protocol version.
    pub(crate) fn result(&self, result: Value) -> Value {
        message::response(self.id, self.dialect.result(result))
    }
}

impl Dialect {
    /// The result in the form of this protocol version.
    pub(crate) fn result(self, result: Value) -> Value {
        let modern = json!({"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": identity()}});
        match self {
            Self::Legacy => result,
            Self::Modern => with(result, modern),
        }
    }
}

fn identity() -> Value {
    json!({"name": "fault-server", "version": env!("CARGO_PKG_VERSION")})
}

/// Caching hints in lists of the modern protocol: not at all, and private.
fn cache_hint(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Legacy => json!({}),
        Dialect::Modern => json!({"ttlMs": 0, "cacheScope": "private"}),
    }
}

/// The rejection of a request with a missing or unsupported protocol version.
fn refused_version(request: &Request<'_>) -> Option<Value> {
    if request.dialect == Dialect::Legacy {
        return None;
    }
    let meta = request.params.get("_meta").unwrap_or(&Value::Null);
    let version = text(meta, VERSION_KEY);
    if version == MODERN {
        return None;
    }
    if version.is_empty() && request.method != "initialize" {
        return Some(message::refusal(request.id, INVALID_PARAMS, &format!("`_meta` lacks {VERSION_KEY}")));
    }
    let mut refusal = message::refusal(request.id, UNSUPPORTED_VERSION, "Unsupported protocol version");
    if let Some(error) = refusal.get_mut("error").and_then(Value::as_object_mut) {
        let requested = if version.is_empty() { text(request.params, "protocolVersion") } else { version };
        error.insert("data".into(), json!({"supported": [MODERN], "requested": requested}));
    }
    Some(refusal)
}
