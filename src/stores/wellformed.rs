//! Well-formedness of an append: consecutive, complete, and consistent with its index row. Every store checks it first.
//!
//! A violation is a bug in the caller. Every store rejects it, so that no journal can be written that `load` would
//! refuse to read.

use toolgate_ports::{Append, SessionClaim, StoreError};

/// Rejects an append that would leave a gap in the journal, or an index row that contradicts the journal.
pub(super) fn check(append: &Append) -> Result<(), StoreError> {
    let Append { run, at, events, row, owner: _, lease: _, session, spans_sent: _, is_import: _ } = append;
    for (offset, event) in events.iter().enumerate() {
        let wanted = at.saturating_add(offset as u64);
        if event.seq != wanted {
            return refused(append, format!("the event at position {wanted} has position {}", event.seq));
        }
    }
    if events.is_empty() && *at == 0 {
        return refused(append, "a new run needs at least one event".to_owned());
    }
    if row.id != *run {
        return refused(append, format!("its index row belongs to run {}", row.id));
    }
    let length = at.saturating_add(events.len() as u64);
    if row.version != length {
        return refused(append, format!("its index row counts {} events, the journal will have {length}", row.version));
    }
    match session {
        Some(claim) => check_claim(append, claim),
        None => Ok(()),
    }
}

/// Rejects a claim that contradicts the new run.
fn check_claim(append: &Append, claim: &SessionClaim) -> Result<(), StoreError> {
    let Append { run, at, row, .. } = append;
    let SessionClaim { expected, row: session, segment } = claim;
    if *at != 0 {
        return refused(append, "only a new run claims its session".to_owned());
    }
    if (&session.tenant, &session.id) != (&row.tenant, &row.session) {
        return refused(append, format!("it claims session {}, and its run is in {}", session.id, row.session));
    }
    if session.head.as_ref().map(|head| &head.run) != Some(run) {
        return refused(append, format!("session {} gets another head", session.id));
    }
    if expected.checked_add(1) != Some(session.version) {
        let version = session.version;
        return refused(append, format!("session {} goes from version {expected} to {version}", session.id));
    }
    if segment.is_some() && row.predecessor.is_none() {
        return refused(append, "it has a segment, and its run has no predecessor".to_owned());
    }
    Ok(())
}

fn refused(append: &Append, why: String) -> Result<(), StoreError> {
    Err(StoreError::Corrupt(format!("the append to run {} at {} was rejected: {why}", append.run, append.at)))
}
