//! Process group of a child. Servers are often started through `npx`, `uvx` or a shell: a signal to the process alone
//! would orphan its children, so the whole group gets the signal.

/// A process group of our own. Dropping it kills its remaining processes.
#[derive(Debug)]
pub(super) struct Group {
    /// `None` once the group has ended: the operating system may reuse the number.
    leader: Option<u32>,
}

impl Group {
    /// The group that this process leads.
    pub(super) fn led_by(leader: u32) -> Self {
        Self { leader: Some(leader) }
    }

    /// Sends SIGTERM to the group.
    pub(super) fn terminate(&self) {
        self.send(signal::Kind::Terminate);
    }

    /// Sends SIGKILL to the group.
    pub(super) fn kill(&self) {
        self.send(signal::Kind::Kill);
    }

    /// Kills the rest of the group after the exit of its leader, and sends no further signal.
    pub(super) fn finish(&mut self) {
        self.kill();
        self.leader = None;
    }

    fn send(&self, kind: signal::Kind) {
        if let Some(leader) = self.leader {
            signal::send(leader, kind);
        }
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

    /// A group that has already ended is the best case, so errors are ignored.
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

/// Without process groups the keeper kills the child alone.
#[cfg(not(unix))]
mod signal {
    pub(super) enum Kind {
        Terminate,
        Kill,
    }

    pub(super) fn send(_leader: u32, _kind: Kind) {}
}
