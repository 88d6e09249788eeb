//! Writing task: the only task that writes. Changes that queue up during one transaction form the next one. A busy
//! store therefore shares each `fsync` among more appends, and a single append never waits for others.

use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use toolgate_ports::StoreError;

use super::fault::{fault, is_of_the_file};
use super::health::WriteHealth;

const QUEUED: usize = 1024;
const TOGETHER: usize = 256;

/// One change to the database.
#[async_trait]
pub(super) trait Write: Send + Sync + 'static {
    /// The result that the caller receives once the change is durable.
    type Answer: Send;

    /// Makes the change within an open transaction. A rejection is an answer, and must not have changed anything. An
    /// error rolls back the whole transaction, after which the change may be retried.
    async fn apply(&self, db: &mut SqliteConnection) -> Result<Self::Answer, sqlx::Error>;
}

/// A handle to the writing task.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// The answer to every change without a queue.
    refusal: StoreError,
}

impl Writer {
    /// Starts the task.
    pub(super) fn start(options: SqliteConnectOptions, connection: SqliteConnection, health: Arc<WriteHealth>) -> Self {
        let (queue, jobs) = mpsc::channel(QUEUED);
        let task = tokio::spawn(write_until_closed(Session { options, connection: Some(connection), health }, jobs));
        let refusal = StoreError::Unavailable("it is closed".to_owned());
        Self { queue: Mutex::new(Some(queue)), task: tokio::sync::Mutex::new(Some(task)), refusal }
    }

    /// A writer that refuses every change.
    pub(super) fn refusing(refusal: StoreError) -> Self {
        Self { queue: Mutex::new(None), task: tokio::sync::Mutex::new(None), refusal }
    }

    /// Makes one change and returns when it is durable. The change happens even if the caller stops waiting.
    pub(super) async fn make<W: Write>(&self, write: W) -> Result<W::Answer, StoreError> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (done, answer) = oneshot::channel();
        let job = Box::new(Queued { write, answer: None, done });
        match queue {
            Some(queue) => queue.send(job).await.map_err(|_| stopped())?,
            None => return Err(self.refusal.clone()),
        }
        answer.await.map_err(|_| stopped())?
    }

    /// Makes the queued changes, then closes the connection.
    pub(super) async fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut task = self.task.lock().await;
        if let Some(task) = task.as_mut()
            && let Err(error) = task.await
        {
            tracing::error!(%error, "store writer failed");
        }
        *task = None;
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("its writing task is gone; the runtime it was opened in has ended".to_owned())
}

/// A queued change with its answer, independent of the type of the change.
#[async_trait]
trait Job: Send {
    async fn apply(&mut self, db: &mut SqliteConnection) -> Result<(), sqlx::Error>;

    /// Sends the answer: that of the change if it is durable, otherwise the error.
    fn settle(self: Box<Self>, result: Result<(), StoreError>);
}

struct Queued<W: Write> {
    write: W,
    answer: Option<W::Answer>,
    done: oneshot::Sender<Result<W::Answer, StoreError>>,
}

#[async_trait]
impl<W: Write> Job for Queued<W> {
    async fn apply(&mut self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.answer = Some(self.write.apply(db).await?);
        Ok(())
    }

    fn settle(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { answer, done, .. } = *self;
        // The caller may have stopped waiting. The change stands.
        drop(done.send(result.and_then(|()| answer.ok_or_else(stopped))));
    }
}

async fn write_until_closed(mut session: Session, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(TOGETHER);
    while jobs.recv_many(&mut batch, TOGETHER).await > 0 {
        session.write(std::mem::take(&mut batch)).await;
    }
    session.close().await;
}

/// The writing connection. It is replaced after an error, because the state of its transaction is unknown.
struct Session {
    options: SqliteConnectOptions,
    connection: Option<SqliteConnection>,
    health: Arc<WriteHealth>,
}

/// The point at which a transaction failed.
enum TransactionError {
    /// It could not begin.
    AtTheDoor(sqlx::Error),
    /// One of its changes, or the commit, failed.
    Inside(sqlx::Error),
}

impl Session {
    async fn write(&mut self, mut batch: Vec<Box<dyn Job>>) {
        match self.commit(&mut batch).await {
            // An append that does not fit must not fail the others.
            Err(TransactionError::Inside(_)) if batch.len() > 1 => self.write_one_by_one(batch).await,
            Ok(()) => settle(batch, Ok(())),
            Err(TransactionError::AtTheDoor(error) | TransactionError::Inside(error)) => {
                settle(batch, Err(self.fault(&error)))
            }
        }
    }

    async fn write_one_by_one(&mut self, batch: Vec<Box<dyn Job>>) {
        let mut batch = batch.into_iter();
        while let Some(mut job) = batch.next() {
            match self.commit(slice::from_mut(&mut job)).await {
                Ok(()) => job.settle(Ok(())),
                Err(TransactionError::Inside(error)) => job.settle(Err(self.fault(&error))),
                Err(TransactionError::AtTheDoor(error)) => {
                    // The remaining jobs would wait as long and fail the same way.
                    let fault = self.fault(&error);
                    job.settle(Err(fault.clone()));
                    return settle(batch, Err(fault));
                }
            }
        }
    }

    async fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await.map_err(|error| self.halted(TransactionError::AtTheDoor(error)))?,
        };
        match transact(&mut connection, batch).await {
            Ok(()) => {
                self.connection = Some(connection);
                self.health.succeeded();
                Ok(())
            }
            Err(halt) => {
                close(connection).await;
                Err(self.halted(halt))
            }
        }
    }

    /// Records a failure of the file: the next write fails as well.
    fn halted(&self, halt: TransactionError) -> TransactionError {
        let (TransactionError::AtTheDoor(error) | TransactionError::Inside(error)) = &halt;
        if is_of_the_file(error) {
            self.health.failed(&self.fault(error));
        }
        halt
    }

    fn fault(&self, error: &sqlx::Error) -> StoreError {
        fault(self.options.get_filename(), error)
    }

    async fn close(self) {
        if let Some(connection) = self.connection {
            close(connection).await;
        }
    }
}

async fn transact(connection: &mut SqliteConnection, batch: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
    // A deferred transaction that reads before it writes fails under contention, whatever the busy timeout.
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(TransactionError::AtTheDoor)?;
    for job in batch {
        job.apply(&mut transaction).await.map_err(TransactionError::Inside)?;
    }
    transaction.commit().await.map_err(TransactionError::Inside)
}

fn settle(batch: impl IntoIterator<Item = Box<dyn Job>>, result: Result<(), StoreError>) {
    for job in batch {
        job.settle(result.clone());
    }
}

async fn close(connection: SqliteConnection) {
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "failed to close store connection");
    }
}
