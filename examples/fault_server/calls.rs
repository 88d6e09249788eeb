//! `tools/call` and its faults. The witness tool has no faults, so that tests can always call it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::{Fault, Moment};
use crate::message::{self, INVALID_PARAMS};
use crate::script::{Action, HttpAnswer, Repeat, Target};
use crate::server::{Request, Server};
use crate::tools;

/// The number of notifications about one change of the tools.
const STORM: usize = 20;
const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];

impl Server {
    /// Handles a call.
    pub(crate) fn call(&mut self, request: &Request<'_>) -> Vec<Action> {
        let (name, arguments) = tools::named(request.params);
        if name == tools::WITNESS {
            let count = tools::structured(json!({"calls": self.executed}));
            return vec![Action::answer(request.result(count))];
        }
        let Some(result) = tools::answer(name, arguments) else {
            let unknown = message::refusal(request.id, INVALID_PARAMS, &format!("there is no tool `{name}`"));
            return vec![Action::answer(unknown)];
        };
        if let Some(lost) = self.lose_session() {
            return lost;
        }
        if let Some(asked) = self.ask(request, &result) {
            return asked;
        }
        self.executed += 1;
        if let Some(message) = self.flooding(request) {
            let answers_after = |fault| if let Fault::FloodAnswers(times) = fault { Some(times) } else { None };
            let answer = self.faults.find(answers_after).map(|times| (times, request.result(result)));
            let to = if self.faults.has(&Fault::FloodUnasked) { Target::Unasked } else { Target::Here };
            return vec![Action::Repeat(Repeat { to, message, answer }), Action::Hold];
        }
        if self.makes_tasks() {
            return vec![Action::answer(self.start_task(request, result))];
        }
        let mut actions: Vec<Action> = self.flood().into_iter().collect();
        let delay = self.faults.delay(Moment::Call).unwrap_or_default() + tools::work(name, arguments);
        actions.extend(self.wait(delay, request));
        actions.extend(self.end(request, self.distorted(name, result)));
        if self.faults.has(&Fault::ToolsChange) && self.executed == 1 {
            actions.extend((0..STORM).flat_map(|_| self.tools_changed()));
        }
        actions
    }

    /// Forgets all sessions once, after the configured number of calls.
    fn lose_session(&mut self) -> Option<Vec<Action>> {
        if let Some(calls) = self.forgets_with_200() {
            if self.has_lost_session || self.executed < calls {
                return None;
            }
            self.has_lost_session = true;
            return Some(vec![Action::ForgetSessions, Action::AnswerHttp(no_such_session_with_200())]);
        }
        let sessions = self.faults.find(|fault| if let Fault::LostSession(calls) = fault { Some(calls) } else { None });
        let streams = self.faults.find(|fault| if let Fault::LostStreams(calls) = fault { Some(calls) } else { None });
        let calls = sessions.or(streams)?;
        if self.has_lost_session || self.executed < calls {
            return None;
        }
        let mut actions = self.forget_session();
        actions.extend(streams.map(|_| Action::BreakEverything));
        Some(actions)
    }

    /// Forgets all sessions and answers with the rejection.
    pub(crate) fn forget_session(&mut self) -> Vec<Action> {
        self.has_lost_session = true;
        let (status, refusal) = self.no_such_session(&Value::Null);
        let not_found = HttpAnswer { status, headers: JSON, body: refusal.to_string() };
        vec![Action::ForgetSessions, Action::AnswerHttp(not_found)]
    }

    /// The number of calls after which the sessions are lost, if that is told with HTTP 200.
    pub(crate) fn forgets_with_200(&self) -> Option<u64> {
        self.faults.find(|fault| if let Fault::LostSessionWith200(calls) = fault { Some(calls) } else { None })
    }

    /// The rejection of an unknown or expired session: as the specification requires, or as the examples of the
    /// TypeScript SDK do.
    pub(crate) fn no_such_session(&self, id: &Value) -> (u16, Value) {
        let (status, code, words) = match self.faults.has(&Fault::SessionsEndWith400) {
            true => (400, -32000, "Bad Request: No valid session ID provided"),
            false => (404, -32001, "Session not found"),
        };
        (status, self.refusal_over_http(id, code, words))
    }

    /// An error with an HTTP status, with the id that this server gives such errors.
    fn refusal_over_http(&self, id: &Value, code: i64, words: &str) -> Value {
        let mut refusal = message::refusal(id, code, words);
        if let Some(refusal) = refusal.as_object_mut() {
            if self.faults.has(&Fault::ErrorIdText) {
                refusal.insert("id".into(), "server-error".into());
            } else if self.faults.has(&Fault::ErrorIdMissing) {
                refusal.remove("id");
            } else if self.faults.has(&Fault::ErrorIdNull) {
                refusal.insert("id".into(), Value::Null);
            }
        }
        refusal
    }

    /// The message that is sent without end.
    fn flooding(&self, request: &Request<'_>) -> Option<String> {
        let progress = || {
            let token = request.params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
            let said = json!({"progressToken": token.unwrap_or_default(), "progress": "@"});
            message::notification("notifications/progress", said).to_string().replace("\"@\"", "@")
        };
        let log = || json!({"level": "info", "data": "polling the queue @, nothing there ".repeat(4)});
        let floods = [
            (Fault::PingFlood, message::request("ping-@", "ping", json!({})).to_string()),
            (Fault::RequestFlood, message::request("roots-@", "roots/list", json!({})).to_string()),
            (Fault::UnknownFlood, message::request("unknown-@", "tea/brew", json!({})).to_string()),
            (Fault::LogFlood, message::notification("notifications/message", log()).to_string()),
            (Fault::ProgressFlood, progress()),
            (Fault::ChangeFlood, message::notification("notifications/tools/list_changed", json!({})).to_string()),
        ];
        floods.into_iter().find(|(fault, _)| self.faults.has(fault)).map(|(_, message)| message)
    }

    /// The duration of a call, with progress if both sides want it.
    fn wait(&self, delay: Duration, request: &Request<'_>) -> Vec<Action> {
        if delay.is_zero() {
            return Vec::new();
        }
        let every = self.faults.find(|fault| if let Fault::ProgressEvery(time) = fault { Some(time) } else { None });
        let token = request.params.get("_meta").and_then(|meta| meta.get("progressToken"));
        let text = token.filter(|_| self.faults.has(&Fault::ProgressTokenAsText)).map(|token| json!(token.to_string()));
        let token = text.as_ref().or(token);
        let (Some(every), Some(token)) = (every.filter(|every| !every.is_zero()), token) else {
            return vec![Action::Wait(delay)];
        };
        let steps = delay.div_duration_f64(every).floor();
        let mut actions = Vec::new();
        let mut left = delay;
        while left > every {
            left -= every;
            let step = (delay - left).div_duration_f64(every).round();
            let params = json!({"progressToken": token, "progress": step, "total": steps, "message": "working"});
            actions.push(Action::Wait(every));
            actions.push(Action::answer(message::notification("notifications/progress", params)));
        }
        actions.push(Action::Wait(left));
        actions
    }

    /// The end of a call: an answer, or a fault in its place.
    fn end(&mut self, request: &Request<'_>, result: Value) -> Vec<Action> {
        let has = |fault: Fault| self.faults.has(&fault);
        let answer = request.result(result);
        if has(Fault::Hang(Moment::Call)) {
            return vec![Action::Hold];
        }
        if has(Fault::DieInCall) {
            return vec![Action::Complain("fatal: the roof is on fire".into()), Action::Exit(4)];
        }
        if has(Fault::DieInAnswer) {
            let text = answer.to_string();
            let half = text.get(..text.len() / 2).unwrap_or_default();
            return vec![Action::Print(half.into()), Action::Exit(3)];
        }
        if has(Fault::ConnectionReset) {
            return vec![Action::BreakConnection];
        }
        if let Some(broken) = self.http_fault(Moment::Call, &answer) {
            return vec![Action::AnswerHttp(broken)];
        }
        if self.ends_streams() {
            return vec![Action::AnswerHttp(ended_stream())];
        }
        if has(Fault::LateReply) {
            self.held_back.insert(request.exchange, answer);
            return vec![Action::Hold];
        }
        if has(Fault::WrongIds) {
            let stranger = |id: Value| {
                let mut wrong = answer.clone();
                wrong.as_object_mut().map(|wrong| wrong.insert("id".into(), id));
                Action::answer(wrong)
            };
            return vec![stranger(json!(987_654_321)), stranger(json!("unknown")), stranger(Value::Null), Action::Hold];
        }
        if has(Fault::ErrorWithoutMessage) {
            return vec![Action::answer(json!({"jsonrpc": "2.0", "id": request.id, "error": {"code": -32000}}))];
        }
        if has(Fault::ResultNull) {
            return vec![Action::answer(message::response(request.id, Value::Null))];
        }
        if has(Fault::HttpError) {
            let refusal = self.refusal_over_http(request.id, INVALID_PARAMS, "`text` must not be a palindrome");
            let broken = HttpAnswer { status: 400, headers: JSON, body: refusal.to_string() };
            return vec![Action::AnswerHttp(broken)];
        }
        let mut actions = Vec::new();
        if has(Fault::StrayAnswers) {
            let unknown = json!(987_654_321);
            let words = json!("server-error");
            actions.push(Action::answer(message::response(&unknown, json!({}))));
            let refused = |id: &Value| Action::answer(message::refusal(id, -32600, "that is for no request"));
            actions.extend([&unknown, &words, &Value::Null].map(refused));
            actions.push(Action::SendBytes(r#"{"jsonrpc":"2.0","result":{"#.into()));
        }
        actions.push(self.spoilt(Moment::Call, answer));
        actions
    }

    /// Whether the stream of a call ends without an answer.
    fn ends_streams(&self) -> bool {
        self.faults
            .find(|fault| {
                matches!(fault, Fault::StreamEnds | Fault::ResumeRefused(_) | Fault::ResumedAsJson).then_some(())
            })
            .is_some()
    }

    /// The response to a client that resumes the stream of a call.
    pub(crate) fn resumed(&self) -> Option<HttpAnswer> {
        self.faults.find(|fault| {
            if let Fault::ResumeRefused(status) = fault {
                let (status, headers) = (u16::try_from(status).unwrap_or(401), &[("content-type", "text/plain")]);
                return Some(HttpAnswer { status, headers, body: "the badge has expired".into() });
            }
            if fault == Fault::ResumedAsJson {
                let body = r#"{"detail":"streams are over"}"#.into();
                return Some(HttpAnswer { status: 200, headers: JSON, body });
            }
            (fault == Fault::StreamEnds).then(ended_stream)
        })
    }

    /// The result, distorted by the faults.
    fn distorted(&self, name: &str, result: Value) -> Value {
        if self.faults.has(&Fault::IsError) {
            return tools::failed("the tool says that it failed");
        }
        if name == "add" && self.faults.has(&Fault::BadOutput) {
            return tools::structured(json!({"sum": "three"}));
        }
        if self.faults.has(&Fault::BrokenContent) {
            let soft = json!({"type": "image", "mimeType": "image/png", "data": "!!!not base64!!!"});
            let blocks = json!([{"type": "text"}, {"type": "image", "data": "aW1n"}, 7, soft]);
            let usable = result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
            let content: Vec<Value> =
                usable.into_iter().chain(blocks.as_array().cloned().unwrap_or_default()).collect();
            return json!({"content": content});
        }
        let text = |mebibytes: u64| "x".repeat(usize::try_from(mebibytes << 20).unwrap_or(0));
        if let Some(size) =
            self.faults.find(|fault| if let Fault::HugeResult(size) = fault { Some(size) } else { None })
        {
            return tools::said(&text(size));
        }
        let twice = |fault| if let Fault::HugeLineStructured(size) = fault { Some(size) } else { None };
        match self.faults.find(twice) {
            Some(size) => tools::structured(json!({"text": text(size)})),
            None => result,
        }
    }
}

/// A stream that can be resumed, and ends without an answer.
fn ended_stream() -> HttpAnswer {
    HttpAnswer { status: 200, headers: EVENTS, body: "id: 1\nretry: 0\ndata:\n\n".into() }
}

/// The rejection of an unknown session that looks like a success.
pub(crate) fn no_such_session_with_200() -> HttpAnswer {
    HttpAnswer {
        status: 200,
        headers: EVENTS,
        body: "event: message\ndata: {\"error\":\"Session not found\"}\n\n".into(),
    }
}
