//! Every recorded answer of OpenAI Chat Completions and its imitators, at three depths: as pure bytes, cut at every
//! byte, and over HTTP.

use std::sync::Mutex;

use toolgate::models::openai_chat::{Answer, CallIds, Head, OpenAiChat, Progress, Settings};
use toolgate::ports::Model;

use super::asking::{ask, user};
use super::fixtures::{Fixture, Outcome, assert_all_met, of};
use super::model_server::{Ending, ModelServer, Prepared};

fn all() -> Vec<Fixture> {
    of(&["openai_chat", "openai_compat"])
}

/// Reads the answer without a network, in the given pieces.
fn read<'a>(fixture: &Fixture, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let now = "2026-11-01T00:00:00Z".parse().unwrap();
    let head = Head::new("fixture", fixture.status, |name| fixture.header(name), fixture.stream, now);
    let (mut answer, mut deltas) = (Answer::new(head), Vec::new());
    for piece in pieces {
        match answer.push(piece, &mut |delta| deltas.push(delta)) {
            Ok(Progress::More) => {}
            Ok(Progress::Enough) => break,
            Err(failure) => return Outcome { reply: Err(failure), deltas },
        }
    }
    Outcome { reply: answer.end(&CallIds::default()), deltas }
}

#[test]
fn every_answer_is_read_as_the_index_demands() {
    let fixtures = all();
    assert_eq!(fixtures.len(), 54);
    assert_all_met(fixtures.into_iter().map(|fixture| {
        let outcome = read(&fixture, [fixture.body().as_slice()]);
        (fixture, outcome)
    }));
}

#[test]
fn every_answer_is_read_the_same_byte_by_byte() {
    assert_all_met(all().into_iter().map(|fixture| {
        let outcome = read(&fixture, fixture.body().chunks(1));
        (fixture, outcome)
    }));
}

#[test]
fn every_stream_is_read_the_same_wherever_it_is_cut_in_two() {
    for fixture in all().into_iter().filter(|fixture| fixture.stream) {
        let body = fixture.body();
        let whole = read(&fixture, [body.as_slice()]);
        // Every cut takes seconds in a debug build; a step that shares no factor with anything still meets every field.
        for at in (0..body.len()).step_by(7) {
            let (head, tail) = body.split_at(at);
            let cut = read(&fixture, [head, tail]);
            assert_eq!(
                (cut.reply, cut.deltas),
                (whole.reply.clone(), whole.deltas.clone()),
                "{} cut at {at}",
                fixture.id
            );
        }
    }
}

#[test]
fn a_stream_that_ends_anywhere_before_its_finish_is_never_a_reply() {
    for fixture in all().into_iter().filter(|fixture| fixture.stream) {
        let body = fixture.body();
        let text = String::from_utf8_lossy(&body).into_owned();
        let Some(finish) = text.find("\"finish_reason\": \"") else { continue };
        for at in 0..finish {
            let cut = read(&fixture, [&body[..at]]);
            assert!(cut.reply.is_err(), "{} cut at {at} of {finish}: {:?}", fixture.id, cut.reply);
        }
    }
}

#[tokio::test]
async fn every_answer_is_read_as_the_index_demands_over_http() {
    over_http(|body| vec![body]).await;
}

#[tokio::test]
async fn every_answer_is_read_the_same_over_http_byte_by_byte() {
    over_http(|body| body.chunks(1).map(<[u8]>::to_vec).collect()).await;
}

async fn over_http(cut: impl Fn(Vec<u8>) -> Vec<Vec<u8>>) {
    let mut outcomes = Vec::new();
    for fixture in all() {
        let prepared = Prepared {
            headers: fixture.headers.clone().into_iter().collect(),
            pieces: cut(fixture.body()),
            ..Prepared::json("").status(fixture.status).ending(Ending::Close)
        };
        let server = ModelServer::answering([prepared]).await;
        let settings = Settings { stream: fixture.stream, ..Settings::new(&server.base_url, "m") };
        let model = OpenAiChat::new(settings).unwrap();
        let deltas = Mutex::new(Vec::new());
        let reply = {
            let ask = ask([user("Weather in Zürich and 東京?")]);
            model.converse().reply(&ask.request(), &|delta| deltas.lock().unwrap().push(delta)).await
        };
        outcomes.push((
            fixture,
            Outcome { reply: reply.map_err(|failed| failed.failure), deltas: deltas.into_inner().unwrap() },
        ));
    }
    assert_all_met(outcomes);
}
