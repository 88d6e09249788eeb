//! Answer fold: folds the events of a stream, or a complete response, into a reply. Items count when they are done, and
//! the response when it reached its own end: completed, incomplete or failed.

use serde_json::Value;
use toolgate_core::chat::{Part, Reply, Stop, Usage};
use toolgate_core::lifecycle::Delta;

use super::api_types::{Event, Response};
use super::output::{self, Output, ResponseEnd};
use crate::http::{CallIds, ErrorBody, Fault, Fold, read, read_event};
use crate::openai_usage;

/// The end mark of some servers' streams.
const DONE: &str = "[DONE]";
/// The most items of a response; a response with more is treated as broken.
const MAX_ITEMS: usize = 1024;

/// The part of a response received so far.
#[derive(Debug, Default)]
pub(super) struct ResponseFold {
    requested_model: String,
    done: Vec<(u64, Value)>,
    response: Option<Response>,
    said: String,
    has_call: bool,
    has_begun: bool,
    is_over: bool,
    usage: Usage,
}

impl Fold for ResponseFold {
    fn event(&mut self, data: &str, deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        if data.trim() == DONE {
            self.is_over = true;
            return Ok(());
        }
        let event: Event = read_event(data.as_bytes())?;
        match event.r#type.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.said.push_str(event.delta.as_ref().and_then(Value::as_str).unwrap_or_default());
                self.emit(event.delta, deltas, |text| Delta::Text { text });
            }
            // The last is its name in the Open Responses specification.
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" | "response.reasoning.delta" => {
                self.emit(event.delta, deltas, |text| Delta::Reasoning { text });
            }
            "response.reasoning_summary_part.added" if event.is_further_summary() => {
                deltas(Delta::Reasoning { text: "\n\n".into() });
            }
            "response.output_item.added" => {
                let has_call = event.item.is_some_and(|item| output::kind(&item) == "function_call");
                self.has_begun |= has_call;
                self.has_call |= has_call;
            }
            "response.output_item.done" => self.item(event),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.conclude(event.into_response()?)?;
            }
            "error" => return Err(provider(&event.into_error())),
            // An error event without a type comes from a proxy.
            "" if event.error.as_ref().is_some_and(|error| !error.is_null()) => {
                return Err(provider(&event.into_error()));
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        let response: Response = read(body)?;
        if response.output.is_none() && response.status.is_none() {
            return Err(Fault::NoMessage("`output` is missing"));
        }
        self.conclude(response)
    }

    fn is_done(&self) -> bool {
        self.is_over || self.response.is_some()
    }

    fn is_finished(&self) -> bool {
        self.response.is_some()
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn into_reply(self: Box<Self>, known: &CallIds) -> Result<Reply, Fault> {
        let Self { requested_model, mut done, response, said: spoken, has_call, usage, .. } = *self;
        let Response { id, model, status, incomplete_details, output, .. } = response.ok_or(Fault::Truncated)?;
        done.sort_by_key(|(index, _)| *index);
        let done: Vec<Value> = done.into_iter().map(|(_, item)| item).collect();
        // Both lists are the same, but some servers omit one and some the other.
        let items = output.filter(|output| output.len() > done.len()).unwrap_or(done);
        if items.len() > MAX_ITEMS {
            return Err(Fault::Unreadable(format!("it has more than {MAX_ITEMS} items")));
        }
        let is_complete = status.as_deref() != Some("incomplete");
        let mut said = Output::new(&items, if is_complete { ResponseEnd::Own } else { ResponseEnd::Early });
        if has_call && !said.has_calls() && (is_complete || items.is_empty()) {
            return Err(Fault::MissingCall("response.output_item.added".into()));
        }
        // Some servers send the text only in fragments.
        if items.is_empty() && !spoken.is_empty() {
            said.content.push(Part::Text { text: spoken });
        }
        let stop = match incomplete_details.and_then(|details| details.reason).as_deref() {
            _ if said.is_refusal => Stop::Refusal,
            Some("content_filter") => Stop::ContentFilter,
            // The other reasons do not occur unless requested; in any case the answer is incomplete.
            _ if !is_complete => Stop::MaxTokens,
            _ if said.has_calls() => Stop::ToolCalls,
            Some(_) | None if status.is_none() => Stop::Unknown,
            Some(_) | None => Stop::End,
        };
        known.assign(&mut said.content);
        Ok(Reply {
            content: said.content,
            stop,
            usage,
            model,
            response_id: id,
            provider_state: output::state(&requested_model, items).filter(|_| is_complete),
            first_token_ms: None,
        })
    }
}

impl ResponseFold {
    /// The empty response of this model.
    pub(super) fn new(requested_model: String) -> Self {
        Self { requested_model, ..Self::default() }
    }

    fn emit(&mut self, delta: Option<Value>, deltas: &mut dyn FnMut(Delta), of: fn(String) -> Delta) {
        if let Some(Value::String(text)) = delta
            && !text.is_empty()
        {
            self.has_begun = true;
            deltas(of(text));
        }
    }

    fn item(&mut self, event: Event) {
        // Without an index, the order of arrival counts.
        let index = event.output_index.and_then(|index| index.as_u64()).unwrap_or(self.done.len() as u64);
        self.done.extend(event.item.map(|item| (index, item)));
    }

    fn conclude(&mut self, response: Response) -> Result<(), Fault> {
        self.usage = response.usage.as_ref().map(openai_usage::read).unwrap_or_default();
        let error = response.error.as_ref().filter(|error| !error.is_null());
        match (response.status.as_deref(), error) {
            (Some("failed" | "cancelled"), error) => Err(provider(error.unwrap_or(&Value::Null))),
            (None, Some(error)) => Err(provider(error)),
            (Some("queued" | "in_progress"), _) => Err(Fault::NoMessage("the response is still in progress")),
            (Some(_) | None, _) => {
                self.response = Some(response);
                Ok(())
            }
        }
    }
}

fn provider(error: &Value) -> Fault {
    Fault::Provider(Box::new(ErrorBody::of_error(error)))
}
