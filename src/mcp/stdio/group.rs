//! The process group of a child. Servers are often started through `npx`, `uvx` or a shell: signalling the process
//! alone would leave its children behind, so the whole group is signalled.

/// A process group of our own making. Whatever of it is left is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    leader: u32,
}

impl Group {
    /// The group that the process leads.
    pub(super) fn led_by(leader: u32) -> Self {
        Self { leader }
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        signal::send(self.leader, signal::Kind::Terminate);
    }

    /// Ends all of it.
    pub(super) fn kill(&self) {
        signal::send(self.leader, signal::Kind::Kill);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(unix)]
mod signal {
    use rustix::process::{Pid, Signal, kill_process_group};

    pub(super) enum Kind {
        Terminate,
        Kill,
    }

    /// A group that is gone already is the best of all cases, so no error is of interest.
    pub(super) fn send(leader: u32, kind: Kind) {
        let signal = match kind {
            Kind::Terminate => Signal::TERM,
            Kind::Kill => Signal::KILL,
        };
        if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Where there are no process groups the child alone is killed, by its keeper.
#[cfg(not(unix))]
mod signal {
    pub(super) enum Kind {
        Terminate,
        Kill,
    }

    pub(super) fn send(_leader: u32, _kind: Kind) {}
}
