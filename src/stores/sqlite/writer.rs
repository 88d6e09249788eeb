//! Writing thread: the only thread that writes. Changes that queue up during one transaction form the next one. A busy
//! store therefore shares each `fsync` among more appends, and a single append never waits for others. A change is one
//! hand-over to the thread, whatever the number of its statements.

use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Error, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};
use toolgate_ports::StoreError;

use super::fault::{fault, is_of_the_file};
use super::health::WriteHealth;
use super::open::{self, Options};

const QUEUED: usize = 1024;
const TOGETHER: usize = 256;

/// One change to the database.
pub(super) trait Write: Send + Sync + 'static {
    /// The result that the caller receives once the change is durable.
    type Answer: Send;

    /// Makes the change within an open transaction. A rejection is an answer, and must not have changed anything. An
    /// error rolls back the whole transaction, after which the change may be retried.
    fn apply(&self, db: &Connection) -> Result<Self::Answer, Error>;
}

/// A handle to the writing thread.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    /// Ends with the thread.
    thread: tokio::sync::Mutex<Option<oneshot::Receiver<()>>>,
    /// The answer to every change without a queue.
    refusal: StoreError,
}

impl Writer {
    /// Starts the thread, which opens the file and migrates its schema first.
    pub(super) async fn start(options: Options, health: Arc<WriteHealth>) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUED);
        let (ready, opened) = oneshot::channel();
        let (ended, thread) = oneshot::channel();
        let run = move || {
            let _ended: oneshot::Sender<()> = ended;
            match open::connect_and_migrate(&options) {
                Ok(connection) => {
                    drop(ready.send(Ok(())));
                    write_until_closed(Session { options, connection: Some(connection), health }, jobs);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        };
        let spawned = std::thread::Builder::new().name("toolgate-writer".to_owned()).spawn(run);
        spawned.map_err(|error| StoreError::Unavailable(format!("no writing thread can be started: {error}")))?;
        opened.await.map_err(|_| stopped())??;
        let refusal = StoreError::Unavailable("it is closed".to_owned());
        Ok(Self { queue: Mutex::new(Some(queue)), thread: tokio::sync::Mutex::new(Some(thread)), refusal })
    }

    /// A writer that refuses every change.
    pub(super) fn refusing(refusal: StoreError) -> Self {
        Self { queue: Mutex::new(None), thread: tokio::sync::Mutex::new(None), refusal }
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
        let mut thread = self.thread.lock().await;
        if let Some(thread) = thread.as_mut() {
            // The sender is dropped with the thread, also after a panic.
            let _ = thread.await;
        }
        *thread = None;
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable("its writing thread has ended".to_owned())
}

/// A queued change with its answer, independent of the type of the change.
trait Job: Send {
    fn apply(&mut self, db: &Connection) -> Result<(), Error>;

    /// Sends the answer: that of the change if it is durable, otherwise the error.
    fn settle(self: Box<Self>, result: Result<(), StoreError>);
}

struct Queued<W: Write> {
    write: W,
    answer: Option<W::Answer>,
    done: oneshot::Sender<Result<W::Answer, StoreError>>,
}

impl<W: Write> Job for Queued<W> {
    fn apply(&mut self, db: &Connection) -> Result<(), Error> {
        self.answer = Some(self.write.apply(db)?);
        Ok(())
    }

    fn settle(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { answer, done, .. } = *self;
        // The caller may have stopped waiting. The change stands.
        drop(done.send(result.and_then(|()| answer.ok_or_else(stopped))));
    }
}

fn write_until_closed(mut session: Session, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(TOGETHER);
    while jobs.blocking_recv_many(&mut batch, TOGETHER) > 0 {
        session.write(std::mem::take(&mut batch));
    }
    if let Some(connection) = session.connection {
        close(connection);
    }
}

/// The writing connection. It is replaced after an error, because the state of its transaction is unknown.
struct Session {
    options: Options,
    connection: Option<Connection>,
    health: Arc<WriteHealth>,
}

/// The point at which a transaction failed.
enum TransactionError {
    /// It could not begin.
    AtTheDoor(Error),
    /// One of its changes, or the commit, failed.
    Inside(Error),
}

impl Session {
    fn write(&mut self, mut batch: Vec<Box<dyn Job>>) {
        // Everything that waits is one transaction, so that many runs share one fsync (decision 0047).
        match self.commit(&mut batch) {
            // An append that does not fit must not fail the others.
            Err(TransactionError::Inside(_)) if batch.len() > 1 => self.write_one_by_one(batch),
            Ok(()) => settle(batch, Ok(())),
            Err(TransactionError::AtTheDoor(error) | TransactionError::Inside(error)) => {
                settle(batch, Err(self.fault(&error)));
            }
        }
    }

    fn write_one_by_one(&mut self, batch: Vec<Box<dyn Job>>) {
        let mut batch = batch.into_iter();
        while let Some(mut job) = batch.next() {
            match self.commit(slice::from_mut(&mut job)) {
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

    fn commit(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => open::connect(&self.options).map_err(|error| self.halted(TransactionError::AtTheDoor(error)))?,
        };
        match transact(&mut connection, batch) {
            Ok(()) => {
                self.connection = Some(connection);
                self.health.succeeded();
                Ok(())
            }
            Err(halt) => {
                close(connection);
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

    fn fault(&self, error: &Error) -> StoreError {
        fault(&self.options.file, error)
    }
}

fn transact(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
    // A deferred transaction that reads before it writes fails under contention, whatever the busy timeout.
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(TransactionError::AtTheDoor)?;
    for job in batch {
        job.apply(&transaction).map_err(TransactionError::Inside)?;
    }
    transaction.commit().map_err(TransactionError::Inside)
}

fn settle(batch: impl IntoIterator<Item = Box<dyn Job>>, result: Result<(), StoreError>) {
    for job in batch {
        job.settle(result.clone());
    }
}

fn close(connection: Connection) {
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "failed to close store connection");
    }
}
