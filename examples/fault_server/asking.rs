//! Elicitation: questions to the user of the client during a call. The legacy protocol sends them as requests of the
//! server. The modern protocol answers the call with the missing input, and the client repeats the call with it.

use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::Fault;
use crate::message::{self, INVALID_PARAMS, text, with};
use crate::script::{Action, Script};
use crate::server::{Dialect, Request, Server};
use crate::tools;

/// The key of the only question.
const KEY: &str = "who";

/// When `elicits-and-withdraws` answers after it withdrew its question.
const ANSWERS_AFTER: Duration = Duration::from_millis(500);

/// An open question: the call it belongs to, and the number of rounds.
pub(crate) struct Question {
    pub(crate) exchange: u64,
    call: Value,
    /// The result of the call once the answer arrives.
    result: Value,
    round: u64,
}

impl Server {
    /// Asks, if this server asks and has no answer yet. Otherwise the call continues.
    pub(crate) fn ask(&mut self, request: &Request<'_>, result: &Value) -> Option<Vec<Action>> {
        if self.faults.has(&Fault::AsksNothing) {
            let round = round_of(text(request.params, "requestState")).unwrap_or(0) + 1;
            return Some(input_required(request, None, round));
        }
        let (method, params) = self.question(request.dialect)?;
        if request.dialect == Dialect::Legacy {
            let (exchange, call, result) = (request.exchange, request.id.clone(), result.clone());
            if let Some(time) = self.faults.withdraws_after() {
                return Some(self.ask_and_withdraw(request, (method, params), result, time));
            }
            self.executed += u64::from(self.faults.has(&Fault::ElicitsLate));
            return Some(self.ask_aside(Question { exchange, call, result, round: 1 }));
        }
        let Some(state) = request.params.get("requestState").and_then(Value::as_str) else {
            return Some(input_required(request, Some((method, params)), 1));
        };
        let Some(round) = round_of(state) else {
            let wrong = "`requestState` is not what it was";
            return Some(vec![Action::answer(message::refusal(request.id, INVALID_PARAMS, wrong))]);
        };
        if self.faults.has(&Fault::ElicitsForever) {
            return Some(input_required(request, Some((method, params)), round + 1));
        }
        let Some(answer) = response_of(request.params).filter(|answer| answer.is_object()) else {
            let wrong = format!("`inputResponses` lacks `{KEY}`");
            return Some(vec![Action::answer(message::refusal(request.id, INVALID_PARAMS, &wrong))]);
        };
        let result = self.answered(answer, result.clone());
        Some(vec![Action::answer(request.result(result))])
    }

    /// Handles the response to a request of the server.
    pub(crate) fn hear_answer(&mut self, id: &str, answer: &Value) -> Vec<Script> {
        let Some(question) = self.questions.remove(id) else {
            return Vec::new();
        };
        let exchange = question.exchange;
        if self.faults.has(&Fault::ElicitsForever) {
            let actions = self.ask_aside(Question { round: question.round + 1, ..question });
            return self.scripts(exchange, actions);
        }
        let result = match answer.get("result") {
            Some(answer) => self.answered(answer, question.result),
            None => tools::failed(&format!("the client cannot be asked: {}", error_of(answer))),
        };
        self.scripts(exchange, vec![Action::answer(message::response(&question.call, result))])
    }

    /// The result of a call with an answer. The call is executed only if the answer has the requested form.
    fn answered(&mut self, answer: &Value, result: Value) -> Value {
        let result = answered(answer, result);
        let is_executed_now = result.get("isError").is_none() && !self.faults.has(&Fault::ElicitsLate);
        self.executed += u64::from(is_executed_now);
        result
    }

    /// Asks, withdraws the question, and answers the call without it.
    fn ask_and_withdraw(
        &mut self,
        request: &Request<'_>,
        (method, params): (&str, Value),
        result: Value,
        withdraws_after: Duration,
    ) -> Vec<Action> {
        self.executed += 1;
        let id = format!("{KEY}-{}", request.exchange);
        let withdrawn = json!({"requestId": id, "reason": "it found the name by itself"});
        vec![
            Action::answer(message::request(&id, method, params)),
            Action::Wait(withdraws_after),
            Action::answer(message::notification("notifications/cancelled", withdrawn)),
            Action::Wait(ANSWERS_AFTER),
            Action::answer(message::response(request.id, result)),
        ]
    }

    fn ask_aside(&mut self, question: Question) -> Vec<Action> {
        let Some((method, params)) = self.question(Dialect::Legacy) else {
            return Vec::new();
        };
        let id = format!("{KEY}-{}-{}", question.exchange, question.round);
        self.questions.insert(id.clone(), question);
        vec![Action::answer(message::request(&id, method, params)), Action::Hold]
    }

    /// The question that a call of that protocol version asks.
    fn question(&self, dialect: Dialect) -> Option<(&'static str, Value)> {
        let has = |fault: Fault| self.faults.has(&fault);
        let withdraws = self.faults.withdraws_after().is_some() && dialect == Dialect::Legacy;
        if withdraws || has(Fault::Elicits) || has(Fault::ElicitsForever) || has(Fault::ElicitsLate) {
            return Some(elicitation());
        }
        if has(Fault::AsksSampling) {
            return Some(sampling());
        }
        (dialect == Dialect::Modern && has(Fault::AsksRoots)).then(|| ("roots/list", json!({})))
    }
}

/// The question for a name.
pub(crate) fn elicitation() -> (&'static str, Value) {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "title": "Name", "minLength": 1}},
        "required": ["name"],
    });
    ("elicitation/create", json!({"mode": "form", "message": "Who is asking?", "requestedSchema": schema}))
}

/// The only question under its key, as a result contains it.
pub(crate) fn input_requests(method: &str, params: Value) -> Value {
    json!({KEY: {"method": method, "params": params}})
}

/// The result of a call with an answer: its own result after a greeting, or an error without an answer.
pub(crate) fn answered(answer: &Value, mut result: Value) -> Value {
    let name = answer.get("content").map_or("", |content| text(content, "name"));
    let greeting = match text(answer, "action") {
        "accept" if name.is_empty() => return tools::failed("the answer has no `name`"),
        "accept" => format!("hello, {name}"),
        action @ ("decline" | "cancel") => return tools::failed(&format!("the answer has no name: {action}")),
        _ => format!("told: {answer}"),
    };
    if let Some(content) = result.get_mut("content").and_then(Value::as_array_mut) {
        content.insert(0, json!({"type": "text", "text": greeting}));
    }
    result
}

/// The answer under the key of the question.
pub(crate) fn response_of(params: &Value) -> Option<&Value> {
    params.get("inputResponses")?.get(KEY)
}

fn sampling() -> (&'static str, Value) {
    let said = json!({"role": "user", "content": {"type": "text", "text": "Say something."}});
    ("sampling/createMessage", json!({"messages": [said], "maxTokens": 16}))
}

fn input_required(request: &Request<'_>, question: Option<(&str, Value)>, round: u64) -> Vec<Action> {
    let result = json!({"resultType": "input_required", "requestState": state(round)});
    let asked = question.map(|(method, params)| json!({"inputRequests": input_requests(method, params)}));
    vec![Action::answer(request.result(with(result, asked.unwrap_or_default())))]
}

/// The state of a round. It is opaque, and must come back byte by byte: quotes, spaces and all.
fn state(round: u64) -> String {
    format!(r#" {{"round": {round}, "é": "\u0000 +/="}} "#)
}

fn round_of(given: &str) -> Option<u64> {
    let digits: String = given.chars().filter(char::is_ascii_digit).collect();
    let round = digits.strip_suffix("0000")?.parse().ok()?;
    (given == state(round)).then_some(round)
}

fn error_of(answer: &Value) -> String {
    answer.get("error").unwrap_or(&Value::Null).to_string()
}
