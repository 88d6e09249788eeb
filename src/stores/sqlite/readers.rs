//! Reading threads: each has a connection of its own, and runs one query after the other. A query is one hand-over,
//! whatever the number of its rows.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Error};
use tokio::sync::oneshot;
use toolgate_ports::StoreError;

use super::fault::fault;
use super::open::{Options, SCHEMA, connect, version};
use super::query::{FromRow, Query};

type Job = Box<dyn FnOnce(Result<&Connection, &Error>) + Send>;

/// Threads for queries of one purpose, started when they are needed. Clones share them; they end with the last clone, after
/// their queue.
#[derive(Clone)]
pub(super) struct Readers(Arc<Owner>);

/// Closes the readers when the last clone is dropped: the threads themselves hold only [`Shared`].
struct Owner(Arc<Shared>);

struct Shared {
    options: Options,
    threads: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    started: usize,
    idle: usize,
    is_closed: bool,
}

impl Readers {
    /// At most so many threads.
    pub(super) fn new(options: Options, threads: usize) -> Self {
        Self(Arc::new(Owner(Arc::new(Shared { options, threads, state: Mutex::default(), wake: Condvar::new() }))))
    }

    /// One thread whose connection locks the file for itself. The schema must be of this version.
    pub(super) async fn exclusive(path: &Path) -> Result<Self, StoreError> {
        let readers = Self::new(Options::exclusive(path)?, 1);
        match readers.read(version).await? == SCHEMA {
            true => Ok(readers),
            false => Err(StoreError::Full(format!(
                "`{}` has an earlier schema, which cannot be migrated; free some disk space",
                path.display()
            ))),
        }
    }

    /// The rows of a query.
    pub(super) async fn all<T: FromRow>(&self, query: Query<'_>) -> Result<Vec<T>, StoreError> {
        let query = query.into_owned();
        self.read(move |db| query.all(db)).await
    }

    /// The first row of a query.
    pub(super) async fn optional<T: FromRow>(&self, query: Query<'_>) -> Result<Option<T>, StoreError> {
        let query = query.into_owned();
        self.read(move |db| query.optional(db)).await
    }

    /// Runs something on one of the connections.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, answer) = oneshot::channel();
        let file = self.shared().options.file.clone();
        self.submit(Box::new(move |db| {
            let read = db.map_err(|error| fault(&file, error));
            // The caller may have stopped waiting.
            drop(done.send(read.and_then(|db| work(db).map_err(|error| fault(&file, &error)))));
        }))?;
        answer.await.map_err(|_| StoreError::Unavailable("a reading thread of the store ended".to_owned()))?
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    fn submit(&self, job: Job) -> Result<(), StoreError> {
        let shared = self.shared();
        let mut state = shared.lock();
        if state.is_closed {
            return Err(StoreError::Unavailable("it is closed".to_owned()));
        }
        if state.idle <= state.queue.len() && state.started < shared.threads {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("toolgate-reader".to_owned());
            match thread.spawn(move || shared.run()) {
                Ok(_detached) => state.started += 1,
                Err(_) if state.started > 0 => {}
                Err(error) => {
                    return Err(StoreError::Unavailable(format!("no reading thread can be started: {error}")));
                }
            }
        }
        state.queue.push_back(job);
        drop(state);
        shared.wake.notify_one();
        Ok(())
    }

    /// Answers the queries in the queue, then closes the connections.
    pub(super) async fn close(&self) {
        let shared = self.shared().clone();
        shared.close();
        let closed = tokio::task::spawn_blocking(move || {
            let mut state = shared.lock();
            while state.started > 0 {
                state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        });
        drop(closed.await);
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("threads", &self.shared().threads).finish_non_exhaustive()
    }
}

impl Shared {
    fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let _ended = Ended(self);
        let mut connection = None;
        while let Some(job) = self.next() {
            if connection.is_none() {
                match connect(&self.options) {
                    Ok(opened) => connection = Some(opened),
                    Err(error) => {
                        job(Err(&error));
                        continue;
                    }
                }
            }
            if let Some(connection) = &connection {
                job(Ok(connection));
            }
        }
    }

    /// The next query; `None` once the readers are closed and the queue is empty.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}

/// Counts a thread that ends, also by a panic, and wakes what waits for it.
struct Ended<'s>(&'s Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.lock().started -= 1;
        self.0.wake.notify_all();
    }
}
