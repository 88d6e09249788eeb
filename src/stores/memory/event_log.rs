//! Event log in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use toolgate_core::id::Tenant;
use toolgate_ports::{EventLog, LogPage, LoggedEvent, RunRow, StoreError};

use super::MemoryStore;
use super::contents::{Contents, LogRecord};

impl Contents {
    /// Adds the events of an append from the journal position `first` on.
    pub(super) fn log(&mut self, row: &RunRow, first: u64) {
        let record = |seq| LogRecord { run: row.id.clone(), seq, ends_append: seq + 1 == row.version };
        self.log.extend((first..row.version).map(record));
    }

    /// The events after a position whose content is not deleted, each with its position and its run.
    fn logged_after(&self, position: u64) -> impl Iterator<Item = (u64, &LogRecord, &RunRow)> {
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        self.log.iter().zip(1..).skip(start).filter_map(|(record, position)| {
            let row = &self.runs.get(&record.run)?.row;
            row.purged_at.is_none().then_some((position, record, row))
        })
    }
}

#[async_trait]
impl EventLog for MemoryStore {
    async fn logged(&self, tenant: &Tenant, after: u64, limit: usize) -> Result<LogPage, StoreError> {
        let contents = self.contents();
        let own = contents.logged_after(after).filter(|(_, _, row)| row.tenant == *tenant).take(limit);
        let events = own.map(|(position, LogRecord { run, seq, ends_append }, row)| LoggedEvent {
            position,
            run: run.clone(),
            agent: row.agent.clone(),
            session: row.session.clone(),
            seq: *seq,
            ends_append: *ends_append,
        });
        let events: Vec<LoggedEvent> = events.collect();
        let cut = events.last().filter(|_| events.len() >= limit).map(|event| event.position);
        Ok(LogPage { read_to: cut.unwrap_or(contents.log.len() as u64).max(after), events })
    }

    async fn last_position(&self) -> Result<u64, StoreError> {
        Ok(self.contents().log.len() as u64)
    }

    async fn tenants_after(&self, position: u64) -> Result<Vec<(Tenant, u64)>, StoreError> {
        let contents = self.contents();
        let tenants = contents.logged_after(position).map(|(position, _, row)| (row.tenant.clone(), position));
        Ok(tenants.collect::<BTreeMap<_, _>>().into_iter().collect())
    }
}
