//! A runtime for export alone. The process's own may have a single thread, may be busy with runs, and ends before the
//! last spans have left; a gRPC channel made in it would die with it.

use std::sync::Arc;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

/// One thread on which requests to receivers are made. Clones share it; it ends with the last of them.
#[derive(Clone, Debug)]
pub struct ExportRuntime {
    handle: Handle,
    _owned: Arc<Owned>,
}

impl ExportRuntime {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("toolgate-export").enable_all().build()?;
        Ok(Self { handle: runtime.handle().clone(), _owned: Arc::new(Owned(Some(runtime))) })
    }

    /// Makes it the current one for whoever wants one around: gRPC channels do.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Runs something there.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(task)); // its end is told through the gate
    }

    /// Waits for something that needs it. Not to be called on a thread of any runtime.
    pub(super) fn block_on<T>(&self, task: impl Future<Output = T>) -> T {
        self.handle.block_on(task)
    }
}

#[derive(Debug)]
struct Owned(Option<Runtime>);

impl Drop for Owned {
    /// Never waits: a runtime that is dropped within another one would otherwise panic.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
