//! Stream tickets. Each insert deletes a few expired tickets, so no separate sweep is needed.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_ports::{KeyHash, StoreError, StreamTicket, StreamTickets};

use super::SqliteStore;
use super::query::query;
use super::writer::Write;

const SWEEP: &str = "DELETE FROM stream_ticket WHERE hash IN
    (SELECT hash FROM stream_ticket WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 64)";
const PUT: &str = "INSERT INTO stream_ticket (hash, stream, sealed, expires_at) VALUES (?1, ?2, ?3, ?4)";
const BY_HASH: &str = "SELECT stream, sealed, expires_at FROM stream_ticket WHERE hash = ?1";

#[async_trait]
impl StreamTickets for SqliteStore {
    async fn put_ticket(&self, hash: &KeyHash, ticket: &StreamTicket, now: Timestamp) -> Result<(), StoreError> {
        self.writer.make(PutTicket { hash: *hash, ticket: ticket.clone(), now }).await
    }

    async fn ticket(&self, hash: &KeyHash) -> Result<Option<StreamTicket>, StoreError> {
        let row = self.reserved.optional(query(BY_HASH).bind(hash.as_bytes())).await?;
        row.map(read).transpose()
    }
}

/// Parses a row.
fn read((stream, sealed_credentials, expires_at): (String, Vec<u8>, i64)) -> Result<StreamTicket, StoreError> {
    let unreadable = |error: String| StoreError::Corrupt(format!("a stream ticket is unreadable: {error}"));
    let stream = serde_json::from_str(&stream).map_err(|error| unreadable(error.to_string()))?;
    let expires_at = Timestamp::from_millisecond(expires_at).map_err(|error| unreadable(error.to_string()))?;
    Ok(StreamTicket { stream, sealed_credentials, expires_at })
}

struct PutTicket {
    hash: KeyHash,
    ticket: StreamTicket,
    now: Timestamp,
}

impl Write for PutTicket {
    type Answer = ();

    fn apply(&self, db: &Connection) -> Result<(), Error> {
        query(SWEEP).bind(self.now.as_millisecond()).execute(db)?;
        let StreamTicket { stream, sealed_credentials, expires_at } = &self.ticket;
        let stream = serde_json::to_string(stream).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
        let put = query(PUT).bind(self.hash.as_bytes()).bind(stream).bind(sealed_credentials.as_slice());
        put.bind(expires_at.as_millisecond()).execute(db).map(drop)
    }
}
