//! Somebody else who writes into a journal just before an append.

use toolgate::core::run::{Event, Recorded, Run};
use toolgate::ports::{Append, RunRow, RunStore};

/// Writes `event` where `victim` wants to write, as somebody who does not drive the run. Does nothing when the event
/// cannot happen there.
pub(super) async fn write(store: &dyn RunStore, victim: &Append, event: Event) {
    let journal = store.load(&victim.run, 0).await.unwrap();
    let Some(mut run) = Run::replay(journal.iter().map(|recorded| &recorded.event)).unwrap() else { return };
    if run.apply(&event).is_err() {
        return;
    }
    let (seq, at) = (journal.len() as u64, journal.last().unwrap().at);
    let row = RunRow { status: run.status(), version: run.length(), ..victim.row.clone() };
    let events = vec![Recorded { seq, at, event }];
    let append = Append { run: victim.run.clone(), at: seq, events, row, owner: None, lease: victim.lease };
    store.append(append).await.unwrap();
}
