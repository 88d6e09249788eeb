//! The process group of a child. Servers are often started through `npx`, `uvx` or a shell: signalling the process
//! alone would leave its children behind, so the whole group is signalled.

/// A process group of our own making. Whatever of it is left is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Group {
    /// `None` once it is over: the number may be somebody else's by then.
    leader: Option<u32>,
}

impl Group {
    /// The group that the process leads.
    pub(super) fn led_by(leader: u32) -> Self {
        Self { leader: Some(leader) }
    }

    /// Asks all of it to end.
    pub(super) fn terminate(&self) {
        self.send(signal::Kind::Terminate);
    }

    /// Ends all of it.
    pub(super) fn kill(&self) {
        self.send(signal::Kind::Kill);
    }

    /// Ends what is left of it now that its leader is no more, and never again.
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
