//! Export runtime: a Tokio runtime only for exports. The process's own runtime may have a single thread, may be busy
//! with runs, and ends before the last spans are sent. A gRPC channel created in it would end with it.

use std::sync::Arc;
use std::sync::mpsc::channel;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

/// One thread that sends requests to receivers. Clones share it; it ends with the last clone.
#[derive(Clone, Debug)]
pub struct ExportRuntime {
    handle: Handle,
    _owned: Arc<OwnedRuntime>,
}

impl ExportRuntime {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("toolgate-export").enable_all().build()?;
        Ok(Self { handle: runtime.handle().clone(), _owned: Arc::new(OwnedRuntime(Some(runtime))) })
    }

    /// Makes it the current runtime of this thread, which gRPC channels need.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Runs a task on it.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task)); // the queue reports its end
    }

    /// Runs a task on it and waits, on any thread but its own; `None` if the task panics.
    pub(super) fn wait_for<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (send, receive) = channel();
        self.spawn(async move { drop(send.send(task.await)) });
        receive.recv().ok()
    }

    /// Waits for a task that needs the runtime. Do not call it on a thread of any runtime.
    pub(super) fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        self.handle.block_on(task)
    }
}

#[derive(Debug)]
struct OwnedRuntime(Option<Runtime>);

impl Drop for OwnedRuntime {
    /// Never waits: a runtime that is dropped within another one would panic otherwise.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
