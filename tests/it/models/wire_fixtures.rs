//! Recorded answers of every provider, at three depths: as pure bytes, cut at every byte, and over HTTP.

use std::sync::Mutex;

use toolgate::models::{CallIds, Head, HttpModel, Progress, Settings, SettingsError};
use toolgate::ports::Model;

use super::asking::{ask, user};
use super::fixtures::{Fixture, Outcome, assert_all_met, of};
use super::model_server::{Ending, ModelServer, Prepared};

/// A wire format and its recorded answers.
pub(crate) struct RecordedAnswers {
    pub(crate) model: fn(&Settings) -> Result<HttpModel, SettingsError>,
    pub(crate) providers: &'static [&'static str],
    pub(crate) count: usize,
    /// The data that only the end of a stream contains.
    pub(crate) end_mark: &'static str,
}

impl RecordedAnswers {
    fn all(&self) -> Vec<Fixture> {
        let fixtures = of(self.providers);
        assert_eq!(fixtures.len(), self.count);
        fixtures
    }

    fn settings(&self, base_url: &str, fixture: &Fixture) -> Settings {
        Settings { stream: fixture.stream, ..Settings::new(base_url, "m") }
    }

    /// A model for this answer. Creating one takes milliseconds (it reads the system's certificates).
    fn reader(&self, fixture: &Fixture) -> HttpModel {
        (self.model)(&self.settings("http://fixture", fixture)).unwrap()
    }
}

/// Reads the answer without a network, in the given pieces.
fn read<'a>(model: &HttpModel, fixture: &Fixture, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let now = "2026-11-01T00:00:00Z".parse().unwrap();
    let head = Head::new("fixture", fixture.status, |name| fixture.header(name), fixture.stream, now);
    let (mut answer, mut deltas) = (model.answer(head), Vec::new());
    for piece in pieces {
        match answer.push(piece, &mut |delta| deltas.push(delta)) {
            Ok(Progress::More) => {}
            Ok(Progress::Enough) => break,
            Err(failure) => return Outcome { reply: Err(failure), deltas },
        }
    }
    Outcome { reply: answer.end(&CallIds::default()).map_err(|failed| failed.failure), deltas }
}

impl RecordedAnswers {
    pub(crate) fn is_read_as_the_index_demands(&self) {
        assert_all_met(self.all().into_iter().map(|fixture| {
            let outcome = read(&self.reader(&fixture), &fixture, [fixture.body().as_slice()]);
            (fixture, outcome)
        }));
    }

    pub(crate) fn is_read_the_same_byte_by_byte(&self) {
        assert_all_met(self.all().into_iter().map(|fixture| {
            let outcome = read(&self.reader(&fixture), &fixture, fixture.body().chunks(1));
            (fixture, outcome)
        }));
    }

    pub(crate) fn is_read_the_same_wherever_it_is_cut_in_two(&self) {
        for fixture in self.all().into_iter().filter(|fixture| fixture.stream) {
            let body = fixture.body();
            let model = self.reader(&fixture);
            let whole = read(&model, &fixture, [body.as_slice()]);
            // Every cut takes seconds in a debug build; a step of 7 still cuts inside every field.
            for at in (0..body.len()).step_by(7) {
                let (head, tail) = body.split_at(at);
                let cut = read(&model, &fixture, [head, tail]);
                assert_eq!(
                    (cut.reply, cut.deltas),
                    (whole.reply.clone(), whole.deltas.clone()),
                    "{} cut at {at}",
                    fixture.id
                );
            }
        }
    }

    pub(crate) fn is_never_a_reply_when_it_ends_before_its_end_mark(&self) {
        let mut cut_streams = 0;
        for fixture in self.all().into_iter().filter(|fixture| fixture.stream) {
            let body = fixture.body();
            let text = String::from_utf8_lossy(&body).into_owned();
            let Some(finish) = text.find(self.end_mark) else { continue };
            cut_streams += 1;
            let model = self.reader(&fixture);
            for at in 0..finish {
                let cut = read(&model, &fixture, [&body[..at]]);
                assert!(cut.reply.is_err(), "{} cut at {at} of {finish}: {:?}", fixture.id, cut.reply);
            }
        }
        assert!(cut_streams > 0, "no stream has the end mark");
    }

    pub(crate) async fn is_read_as_the_index_demands_over_http(&self) {
        self.over_http(|body| vec![body]).await;
    }

    pub(crate) async fn is_read_the_same_over_http_byte_by_byte(&self) {
        self.over_http(|body| body.chunks(1).map(<[u8]>::to_vec).collect()).await;
    }

    async fn over_http(&self, cut: impl Fn(Vec<u8>) -> Vec<Vec<u8>>) {
        let mut outcomes = Vec::new();
        for fixture in self.all() {
            let prepared = Prepared {
                headers: fixture.headers.clone().into_iter().collect(),
                pieces: cut(fixture.body()),
                ..Prepared::json("").status(fixture.status).ending(Ending::Close)
            };
            let server = ModelServer::answering([prepared]).await;
            let model = (self.model)(&self.settings(&server.base_url, &fixture)).unwrap();
            let deltas = Mutex::new(Vec::new());
            let reply = {
                let ask = ask([user("Weather in Zürich and 東京?")]);
                model.converse().reply(&ask.request(), &|delta| deltas.lock().unwrap().push(delta)).await
            };
            let reply = reply.map_err(|failed| failed.failure);
            outcomes.push((fixture, Outcome { reply, deltas: deltas.into_inner().unwrap() }));
        }
        assert_all_met(outcomes);
    }
}

/// The same six tests for each wire format.
macro_rules! every_recorded_answer {
    ($wire:ident, $recorded:expr) => {
        mod $wire {
            use super::*;

            #[test]
            fn is_read_as_the_index_demands() {
                $recorded.is_read_as_the_index_demands();
            }

            #[test]
            fn is_read_the_same_byte_by_byte() {
                $recorded.is_read_the_same_byte_by_byte();
            }

            #[test]
            fn is_read_the_same_wherever_it_is_cut_in_two() {
                $recorded.is_read_the_same_wherever_it_is_cut_in_two();
            }

            #[test]
            fn is_never_a_reply_when_it_ends_before_its_end_mark() {
                $recorded.is_never_a_reply_when_it_ends_before_its_end_mark();
            }

            #[tokio::test]
            async fn is_read_as_the_index_demands_over_http() {
                $recorded.is_read_as_the_index_demands_over_http().await;
            }

            #[tokio::test]
            async fn is_read_the_same_over_http_byte_by_byte() {
                $recorded.is_read_the_same_over_http_byte_by_byte().await;
            }
        }
    };
}

every_recorded_answer!(
    openai_chat,
    RecordedAnswers {
        model: toolgate::models::openai_chat::model,
        providers: &["openai_chat", "openai_compat"],
        count: 61,
        end_mark: "\"finish_reason\": \"",
    }
);

every_recorded_answer!(
    openai_responses,
    RecordedAnswers {
        model: toolgate::models::openai_responses::model,
        providers: &["openai_responses"],
        count: 22,
        end_mark: "response.completed",
    }
);

every_recorded_answer!(
    anthropic,
    RecordedAnswers {
        model: toolgate::models::anthropic::model,
        providers: &["anthropic"],
        count: 32,
        end_mark: "message_stop",
    }
);

every_recorded_answer!(
    gemini,
    RecordedAnswers {
        model: toolgate::models::gemini::model,
        providers: &["gemini"],
        count: 24,
        end_mark: "\"finishReason\"",
    }
);
