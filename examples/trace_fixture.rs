//! Exports the spans of hand-written journals, for the external span checker: see `tests/it/telemetry/journals.rs`.
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 cargo run --example trace_fixture [run]`
#![allow(clippy::print_stdout)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::wildcard_enum_match_arm)]

#[path = "../tests/it/telemetry/journals.rs"]
#[allow(dead_code, unreachable_pub)]
mod journals;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use toolgate::core::run::Event;
use toolgate::ports::{EventSink, Update};
use toolgate::telemetry::{ExportSettings, SpanContent, SpanSink};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let content = SpanContent { gen_ai_content: true, ..SpanContent::default() };
    let settings = ExportSettings { content, ..ExportSettings::default() };
    let Some(export) = settings.resolve(|name| std::env::var(name).ok())? else {
        println!("set OTEL_EXPORTER_OTLP_ENDPOINT to the address of a receiver; nothing was sent");
        return Ok(());
    };
    let sink = SpanSink::start(&export, Arc::new(journals::identity), None)?;

    let wanted = std::env::args().nth(1);
    for mut journal in journals::all(Timestamp::now()) {
        if wanted.as_ref().is_some_and(|wanted| journal.run.as_str() != wanted) {
            continue;
        }
        let traces = u8::try_from(journal.events.len())?;
        for (index, recorded) in journal.events.iter_mut().enumerate() {
            fresh_trace(&mut recorded.event, traces, index);
        }
        for (index, recorded) in journal.events.iter().enumerate() {
            if matches!(recorded.event, Event::Resumed { .. }) {
                let before = &journal.events[..index];
                sink.released(&journal.run, recorded.at - SignedDuration::from_millis(500));
                sink.claimed(&journal.run, before);
            }
            sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
        }
    }
    Ok(sink.shutdown()?)
}

/// Unique trace ids, so that the fixture can be sent to one receiver twice.
fn fresh_trace(event: &mut Event, salt: u8, index: usize) {
    let trace = match event {
        Event::Started(started) => &mut Arc::make_mut(started).trace,
        Event::Resumed { trace, .. } => trace,
        _ => return,
    };
    let now = Timestamp::now().as_nanosecond().to_be_bytes();
    trace.id.0[..8].copy_from_slice(&now[8..]);
    trace.id.0[8] = salt;
    trace.id.0[9] = index as u8;
}
