//! Hostile servers: any answer, in any pieces, is a reply or a failure. A reply can be journaled, read back, and sent
//! on.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::Value;
use toolgate::core::chat::{Message, ProviderState, Reply, Role};
use toolgate::core::run::Event;
use toolgate::models::{
    CallIds, Head, HttpModel, Progress, Settings, anthropic, gemini, openai_chat, openai_responses,
};

use super::asking::{ask, result, user};
use super::fixtures::{Fixture, of};

/// Recorded answers, and the model that reads them.
struct RecordedAnswers {
    wire: &'static str,
    model: HttpModel,
    fixtures: Vec<(Fixture, Vec<u8>)>,
}

static RECORDED: LazyLock<Vec<RecordedAnswers>> = LazyLock::new(|| {
    let settings = Settings::new("http://fixture", "m");
    let recorded = |wire, model: HttpModel, providers: &[&str]| {
        let fixtures = of(providers).into_iter().map(|fixture| {
            let body = fixture.body();
            (fixture, body)
        });
        RecordedAnswers { wire, model, fixtures: fixtures.collect() }
    };
    vec![
        recorded("openai_chat", openai_chat::model(&settings).unwrap(), &["openai_chat", "openai_compat"]),
        recorded("openai_responses", openai_responses::model(&settings).unwrap(), &["openai_responses"]),
        recorded("anthropic", anthropic::model(&settings).unwrap(), &["anthropic"]),
        recorded("gemini", gemini::model(&settings).unwrap(), &["gemini"]),
    ]
});

/// One change to a body.
#[derive(Clone, Debug)]
enum Damage {
    Set(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Cut(prop::sample::Index),
}

impl Damage {
    fn do_to(self, body: &mut Vec<u8>) {
        let place = |index: prop::sample::Index, body: &[u8]| index.index(body.len().max(1)).min(body.len());
        match self {
            Self::Set(at, byte) => {
                let at = place(at, body);
                if let Some(old) = body.get_mut(at) {
                    *old = byte;
                }
            }
            Self::Insert(at, bytes) => {
                let at = place(at, body);
                body.splice(at..at, bytes);
            }
            Self::Remove(at, length) => {
                let at = place(at, body);
                body.drain(at..(at + length).min(body.len()));
            }
            Self::Repeat(at, length) => {
                let at = place(at, body);
                let piece = body[at..(at + length).min(body.len())].to_vec();
                body.splice(at..at, piece);
            }
            Self::Cut(at) => body.truncate(place(at, body)),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let words = ["null", "{}", "[]", "-1", "1e999", "\"\"", "\\ud800", "\n\n", "data: ", "[DONE]", "\u{0}"];
    let word = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (at(), word).prop_map(|(at, word)| Damage::Insert(at, word)),
        (at(), 1..40usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at(), 1..400usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
        at().prop_map(Damage::Cut),
    ]
}

fn read(model: &HttpModel, fixture: &Fixture, body: &[u8], piece: usize) -> Result<Reply, String> {
    let now = "2026-11-01T00:00:00Z".parse().unwrap();
    let head = Head::new("fixture", fixture.status, |name| fixture.header(name), fixture.stream, now);
    let mut answer = model.answer(head);
    for piece in body.chunks(piece.max(1)) {
        match answer.push(piece, &mut |_| {}) {
            Ok(Progress::More) => {}
            Ok(Progress::Enough) => break,
            Err(failure) => return Err(failure.message),
        }
    }
    answer.end(&CallIds::default()).map_err(|failed| failed.failure.message)
}

/// The conversation after this reply, with a result for every call.
fn after(reply: &Reply) -> Vec<Message> {
    let provider_state =
        reply.provider_state.clone().map(|state| ProviderState { origin: Some("fixture".into()), ..state });
    let assistant = Message { role: Role::Assistant, content: reply.content.clone(), provider_state };
    let results = reply.calls().map(|call| result(call.id.as_str(), "done", false)).collect();
    vec![user("go"), assistant, Message { role: Role::User, content: results, provider_state: None }, user("on")]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn any_answer_is_a_failure_or_a_reply_that_can_be_replayed(
        which in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 0..4),
        piece in 1..200usize,
    ) {
        let count = RECORDED.iter().map(|recorded| recorded.fixtures.len()).sum::<usize>();
        let mut number = which.index(count);
        let recorded = RECORDED.iter().find(|recorded| {
            let here = number < recorded.fixtures.len();
            if !here {
                number -= recorded.fixtures.len();
            }
            here
        });
        let recorded = recorded.unwrap();
        let (fixture, body) = &recorded.fixtures[number];
        let mut body = body.clone();
        damages.into_iter().for_each(|damage| damage.do_to(&mut body));

        let Ok(reply) = read(&recorded.model, fixture, &body, piece) else { return Ok(()) };
        let event = Event::ModelReplied { reply: Arc::new(reply.clone()) };
        let written = serde_json::to_string(&event).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Event>(&written).unwrap(), &event);
        for other in RECORDED.iter() {
            let sent = other.model.body(&ask(after(&reply)).request()).unwrap();
            let sent: Result<Value, _> = serde_json::from_slice(&sent);
            prop_assert!(sent.is_ok(), "{} sends invalid JSON after {:?}", other.wire, reply);
        }
    }
}

/// Events that no provider defines, as data of an event.
const UNKNOWN: [&str; 9] =
    ["null", "7", "true", "\"text\"", "[]", "[null, 1]", "{}", r#"{"unknown": 1}"#, r#"{"type": "future.event"}"#];

/// The body with this event after each of its events.
fn with_event_everywhere(body: &[u8], data: &str) -> Vec<u8> {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let end = if body.contains("\r\n\r\n") { "\r\n\r\n" } else { "\n\n" };
    body.replace(end, &format!("{end}data: {data}{end}")).into_bytes()
}

#[test]
fn row_0_41_unknown_events_in_a_stream_are_ignored() {
    for recorded in RECORDED.iter() {
        let mut replies = 0;
        for (fixture, body) in recorded.fixtures.iter().filter(|(fixture, _)| fixture.stream) {
            let expected = read(&recorded.model, fixture, body, 64);
            replies += usize::from(expected.is_ok());
            for data in UNKNOWN {
                let found = read(&recorded.model, fixture, &with_event_everywhere(body, data), 64);
                assert_eq!(found, expected, "{} reads {data} in {}", recorded.wire, fixture.id);
            }
        }
        assert!(replies > 0, "{} has no streamed reply", recorded.wire);
    }
}

#[test]
fn row_0_41_an_event_that_is_not_json_ends_the_attempt() {
    for recorded in RECORDED.iter() {
        let is_reply =
            |(fixture, body): &&(Fixture, Vec<u8>)| fixture.stream && read(&recorded.model, fixture, body, 64).is_ok();
        let (fixture, body) = recorded.fixtures.iter().find(is_reply).unwrap();
        for data in ["{", "nul", "[1"] {
            let problem = read(&recorded.model, fixture, &with_event_everywhere(body, data), 64).unwrap_err();
            assert!(problem.contains("it is not JSON"), "{} reads {data}: {problem}", recorded.wire);
        }
    }
}

#[test]
fn row_0_41_an_error_without_a_type_is_the_providers_error() {
    for recorded in RECORDED.iter() {
        let fixture = recorded.fixtures.iter().map(|(fixture, _)| fixture).find(|fixture| fixture.stream).unwrap();
        let body = b"data: {\"error\": {\"message\": \"the proxy is overloaded\"}}\n\n";
        let problem = read(&recorded.model, fixture, body, 64).unwrap_err();
        assert!(problem.contains("the proxy is overloaded"), "{}: {problem}", recorded.wire);
    }
}
