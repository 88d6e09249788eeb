//! Another writer that writes to a journal just before an append.

use toolgate::core::run::{Event, JournalEntry, Run};
use toolgate::ports::{Append, RunRow, RunStore};

/// Writes `event` at the position of `victim`, like a process that does not execute the run. Does nothing if the event
/// cannot happen there.
pub(super) async fn write(store: &dyn RunStore, victim: &Append, event: Event) {
    let journal = store.load(&victim.run, 0).await.unwrap();
    let Some(mut run) = Run::replay(journal.iter().map(|recorded| &recorded.event)).unwrap() else { return };
    if run.apply(&event).is_err() {
        return;
    }
    let row = RunRow { status: run.status(), version: run.length(), ..victim.row.clone() };
    append(store, victim, row, event).await;
}

/// Writes `event` at the position of `victim`, whether it can happen there or not.
pub(super) async fn write_nonsense(store: &dyn RunStore, victim: &Append, event: Event) {
    let row = RunRow { version: victim.at + 1, ..victim.row.clone() };
    append(store, victim, row, event).await;
}

async fn append(store: &dyn RunStore, victim: &Append, row: RunRow, event: Event) {
    let (seq, at) = (row.version - 1, row.updated_at);
    let events = vec![JournalEntry { seq, at, event }];
    let append = Append {
        run: victim.run.clone(),
        at: seq,
        events,
        row,
        owner: None,
        lease: victim.lease,
        session: None,
        spans_sent: None,
        is_import: false,
    };
    store.append(append).await.unwrap();
}
