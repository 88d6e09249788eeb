//! What an append must be before a store looks at it: consecutive, complete, and in agreement with its index row.
//!
//! A violation is a bug of the caller. It is refused by every store alike, so that no journal can be written that
//! `load` would refuse to read.

use crate::ports::{Append, StoreError};

/// Refuses an append that would leave a journal with a gap, or an index row that contradicts its journal.
pub(super) fn check(append: &Append) -> Result<(), StoreError> {
    let Append { run, at, events, row, owner: _, lease: _ } = append;
    for (offset, event) in events.iter().enumerate() {
        let wanted = at.saturating_add(offset as u64);
        if event.seq != wanted {
            return refused(append, format!("position {wanted} is filled with an event that says {}", event.seq));
        }
    }
    if events.is_empty() && *at == 0 {
        return refused(append, "a run begins with at least one event".to_owned());
    }
    if row.id != *run {
        return refused(append, format!("its index row is of run {}", row.id));
    }
    let length = at.saturating_add(events.len() as u64);
    if row.version != length {
        return refused(
            append,
            format!("its index row says {} events where the journal will have {length}", row.version),
        );
    }
    Ok(())
}

fn refused(append: &Append, why: String) -> Result<(), StoreError> {
    Err(StoreError::Corrupt(format!("the append to run {} at {} was refused: {why}", append.run, append.at)))
}
