//! Idempotency records. Each insert deletes a few expired records, so no separate sweep is needed.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, Error};
use toolgate_ports::{
    IdempotencyRecord, IdempotencyStore, IdempotentRequest, RequestState, StoreError, StoredResponse,
};

use super::SqliteStore;
use super::query::query;
use super::writer::Write;

const SWEEP: &str = "DELETE FROM idempotency_record WHERE rowid IN
    (SELECT rowid FROM idempotency_record WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 64)";
/// Overwrites a record that has expired and was not deleted yet.
const BEGIN: &str = "INSERT INTO idempotency_record (tenant, caller, key, fingerprint, run, held_until, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (tenant, caller, key) DO UPDATE SET fingerprint = excluded.fingerprint, run = excluded.run,
        held_until = excluded.held_until, response = NULL, body = NULL, expires_at = excluded.expires_at
    WHERE idempotency_record.expires_at <= ?8";
const KNOWN: &str = "SELECT fingerprint, run, held_until, response, body FROM idempotency_record
    WHERE tenant = ?1 AND caller = ?2 AND key = ?3";
const HOLD: &str = "UPDATE idempotency_record SET held_until = max(held_until, ?4)
    WHERE tenant = ?1 AND caller = ?2 AND key = ?3 AND held_until IS NOT NULL";
const TAKE_OVER: &str = "UPDATE idempotency_record SET held_until = ?4
    WHERE tenant = ?1 AND caller = ?2 AND key = ?3 AND held_until <= ?5";
const SETTLE: &str = "UPDATE idempotency_record SET held_until = ?4, response = ?5, body = ?6
    WHERE tenant = ?1 AND caller = ?2 AND key = ?3";
const FORGET: &str = "DELETE FROM idempotency_record WHERE tenant = ?1 AND caller = ?2 AND key = ?3";

type Row = (String, Option<String>, Option<i64>, Option<String>, Option<Vec<u8>>);

#[async_trait]
impl IdempotencyStore for SqliteStore {
    async fn begin(
        &self,
        request: &IdempotentRequest,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.writer.make(BeginRequest { request: request.clone(), now }).await?.map(read).transpose()
    }

    async fn prolong(&self, request: &IdempotentRequest, until: Timestamp) -> Result<(), StoreError> {
        self.change(request, Change::Hold(until)).await.map(drop)
    }

    async fn take_over(&self, request: &IdempotentRequest, now: Timestamp) -> Result<bool, StoreError> {
        self.change(request, Change::TakeOver { now }).await
    }

    async fn settle(&self, request: &IdempotentRequest, state: &RequestState) -> Result<(), StoreError> {
        self.change(request, Change::Settle(state.clone())).await.map(drop)
    }

    async fn forget(&self, request: &IdempotentRequest) -> Result<(), StoreError> {
        self.change(request, Change::Forget).await.map(drop)
    }
}

impl SqliteStore {
    /// Whether the record existed.
    async fn change(&self, request: &IdempotentRequest, change: Change) -> Result<bool, StoreError> {
        self.writer.make(UpdateRequest { request: request.clone(), change }).await
    }
}

struct BeginRequest {
    request: IdempotentRequest,
    now: Timestamp,
}

impl Write for BeginRequest {
    type Answer = Option<Row>;

    fn apply(&self, db: &Connection) -> Result<Option<Row>, Error> {
        let (request, now) = (&self.request, self.now.as_millisecond());
        query(SWEEP).bind(now).execute(db)?;
        let begin = query(BEGIN).bind(request.tenant.as_str()).bind(&request.caller).bind(&request.key);
        let begin = begin.bind(&request.fingerprint).bind(request.run.as_ref().map(|run| run.as_str()));
        let begin = begin.bind(request.held_until.as_millisecond()).bind(request.expires_at.as_millisecond());
        if begin.bind(now).execute(db)? > 0 {
            return Ok(None);
        }
        let known = query(KNOWN).bind(request.tenant.as_str()).bind(&request.caller).bind(&request.key);
        known.one(db).map(Some)
    }
}

struct UpdateRequest {
    request: IdempotentRequest,
    change: Change,
}

enum Change {
    Hold(Timestamp),
    TakeOver { now: Timestamp },
    Settle(RequestState),
    Forget,
}

impl Write for UpdateRequest {
    type Answer = bool;

    fn apply(&self, db: &Connection) -> Result<bool, Error> {
        let sql = match &self.change {
            Change::Hold(_) => HOLD,
            Change::TakeOver { .. } => TAKE_OVER,
            Change::Settle(_) => SETTLE,
            Change::Forget => FORGET,
        };
        let IdempotentRequest { tenant, caller, key, held_until, .. } = &self.request;
        let query = query(sql).bind(tenant.as_str()).bind(caller).bind(key);
        let query = match &self.change {
            Change::Hold(until) => query.bind(until.as_millisecond()),
            Change::TakeOver { now } => query.bind(held_until.as_millisecond()).bind(now.as_millisecond()),
            Change::Settle(RequestState::UnderWay { held_until }) => {
                query.bind(held_until.as_millisecond()).bind(None::<String>).bind(None::<&[u8]>)
            }
            Change::Settle(RequestState::Answered(reply)) => {
                let response =
                    serde_json::to_string(reply).map_err(|error| Error::ToSqlConversionFailure(error.into()))?;
                query.bind(None::<i64>).bind(response).bind(reply.body.as_slice())
            }
            Change::Settle(RequestState::NotStored) => query.bind(None::<i64>).bind(None::<String>).bind(None::<&[u8]>),
            Change::Forget => query,
        };
        Ok(query.execute(db)? > 0)
    }
}

/// Parses a row.
fn read((fingerprint, run, held_until, response, body): Row) -> Result<IdempotencyRecord, StoreError> {
    let unreadable = |error: String| StoreError::Corrupt(format!("a stored response is unreadable: {error}"));
    let state = match (held_until, response) {
        (Some(at), _) => {
            let held_until = Timestamp::from_millisecond(at).map_err(|error| unreadable(error.to_string()))?;
            RequestState::UnderWay { held_until }
        }
        (None, Some(response)) => {
            let reply: StoredResponse =
                serde_json::from_str(&response).map_err(|error| unreadable(error.to_string()))?;
            RequestState::Answered(StoredResponse { body: body.unwrap_or_default(), ..reply })
        }
        (None, None) => RequestState::NotStored,
    };
    Ok(IdempotencyRecord { fingerprint, run: run.map(Into::into), state })
}
