//! Watchdog: ends the servers when toolgate cannot any more, because it was killed, crashed, or exited without closing
//! them.
//!
//! A shell in its own process group reads the process groups of the servers from a pipe that only this process holds.
//! However this process ends, the pipe ends with it; the shell then sends SIGTERM to the remaining groups, and a
//! second later kills them. `docs/decisions/0007-orphans.md` explains the choice of a shell. One watchdog serves all
//! servers; it starts with the first and is dismissed after the last. Where it cannot be started, servers run without
//! it, and a log line reports that.

#[cfg(unix)]
pub(super) use unix::Registration;
#[cfg(not(unix))]
pub(super) use without::Registration;

#[cfg(unix)]
mod unix {
    use std::collections::BTreeSet;
    use std::io::{self, PipeWriter, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread;

    /// Terminal signals are for toolgate, which decides when its servers end.
    const SCRIPT: &str = r#"# Ends the MCP servers of a toolgate that was killed.
trap '' HUP INT TERM
groups=' '
while read -r change group; do
  case $change in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
[ -z "${groups# }" ] && exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep 1
for group in $groups; do kill -s KILL -- "-$group"; done
"#;
    /// How often a shell that another process ended is replaced. After that the next server starts one.
    const LIVES: u32 = 9;

    static WATCHDOG: Mutex<Watchdog> =
        Mutex::new(Watchdog { places: 0, groups: BTreeSet::new(), shell: None, lives: LIVES });

    /// A registration at the watchdog, for a group about to be started. Dropping it means that the group has ended.
    #[derive(Debug)]
    pub(in super::super) struct Registration {
        group: Option<u32>,
    }

    impl Registration {
        /// Starts the watchdog, before there is anything to watch.
        pub(in super::super) fn reserve() -> Self {
            let mut watchdog = watchdog();
            watchdog.places += 1;
            watchdog.wake();
            Self { group: None }
        }

        /// Registers the group.
        pub(in super::super) fn over(&mut self, group: u32) {
            self.group = Some(group);
            let mut watchdog = watchdog();
            watchdog.groups.insert(group);
            watchdog.notify('+', group);
        }
    }

    impl Drop for Registration {
        fn drop(&mut self) {
            let mut watchdog = watchdog();
            if let Some(group) = self.group {
                watchdog.groups.remove(&group);
                watchdog.notify('-', group);
            }
            watchdog.places -= 1;
            if watchdog.places == 0 {
                // Its pipe ends, and with an empty list the shell exits.
                watchdog.shell = None;
            }
        }
    }

    struct Watchdog {
        places: usize,
        groups: BTreeSet<u32>,
        shell: Option<Shell>,
        lives: u32,
    }

    struct Shell {
        pid: u32,
        pipe: PipeWriter,
    }

    fn watchdog() -> MutexGuard<'static, Watchdog> {
        WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Watchdog {
        fn notify(&mut self, change: char, group: u32) {
            let was_notified = self.shell.as_mut().is_some_and(|shell| shell.notify(change, group).is_ok());
            if !was_notified && !self.groups.is_empty() {
                self.shell = None;
                self.wake();
            }
        }

        /// Starts the shell if there is none, and sends it all groups.
        fn wake(&mut self) {
            if self.shell.is_some() {
                return;
            }
            match Shell::start(&self.groups) {
                Ok(shell) => self.shell = Some(shell),
                Err(error) => tracing::warn!(
                    %error,
                    "failed to start watchdog with /bin/sh: MCP servers may outlive toolgate if it is killed"
                ),
            }
        }

        /// Handles the exit of a shell. If it was not dismissed, another process ended it.
        fn ended(&mut self, pid: u32) {
            if self.shell.as_ref().is_none_or(|shell| shell.pid != pid) {
                return;
            }
            self.shell = None;
            tracing::warn!(pid, "watchdog of the MCP servers ended by another process");
            if self.lives > 0 {
                self.lives -= 1;
                self.wake();
            }
        }
    }

    impl Shell {
        fn start(groups: &BTreeSet<u32>) -> io::Result<Self> {
            // `PR_SET_PDEATHSIG` would need `unsafe`, follow a thread, and miss grandchildren (decision 0007).
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT, "toolgate-watchdog"]).current_dir("/").process_group(0);
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
            // The list is written before the shell starts: this process may be killed at any moment afterwards.
            let (list, mut pipe) = io::pipe()?;
            // A stopped shell that does not read must not block this process.
            rustix::io::ioctl_fionbio(&pipe, true)?;
            groups.iter().try_for_each(|group| write_change(&mut pipe, '+', *group))?;
            command.stdin(list).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn()?;
            let pid = process.id();
            let reaper = move || {
                let _ = process.wait();
                watchdog().ended(pid);
            };
            thread::Builder::new().name("mcp-watchdog".into()).spawn(reaper)?;
            Ok(Self { pid, pipe })
        }

        fn notify(&mut self, change: char, group: u32) -> io::Result<()> {
            write_change(&mut self.pipe, change, group)
        }
    }

    fn write_change(pipe: &mut PipeWriter, change: char, group: u32) -> io::Result<()> {
        pipe.write_all(format!("{change} {group}\n").as_bytes())
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::process::ExitStatusExt;
        use std::process::{Child, ChildStdin};
        use std::time::{Duration, Instant};

        use rustix::process::Signal;

        use super::*;

        fn shell() -> (Child, ChildStdin) {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT]).process_group(0).stdin(Stdio::piped()).stderr(Stdio::null());
            let mut process = command.spawn().expect("a shell");
            let pipe = process.stdin.take().expect("a pipe");
            (process, pipe)
        }

        fn sleeper(script: &str) -> Child {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).process_group(0).stdout(Stdio::piped()).spawn().expect("a process")
        }

        fn wait_for_line(process: &mut Child) {
            let mut byte = [0];
            io::Read::read_exact(process.stdout.as_mut().expect("stdout"), &mut byte)
                .expect("it says that it is ready");
        }

        #[test]
        fn only_the_groups_on_the_list_are_ended() {
            let (mut kept, mut listed) = (sleeper("echo; exec sleep 100"), sleeper("echo; exec sleep 100"));
            let mut stubborn = sleeper("trap '' TERM; echo; while :; do sleep 0.1; done");
            [&mut kept, &mut listed, &mut stubborn].into_iter().for_each(wait_for_line);
            let (mut shell, mut pipe) = shell();
            for group in [&listed, &kept, &stubborn].map(Child::id) {
                writeln!(pipe, "+ {group}").expect("it reads");
            }
            writeln!(pipe, "- {}", kept.id()).expect("it reads");
            let started = Instant::now();
            drop(pipe);
            assert_eq!(listed.wait().expect("ended").signal(), Some(Signal::TERM.as_raw()));
            assert_eq!(stubborn.wait().expect("ended").signal(), Some(Signal::KILL.as_raw()));
            assert!(shell.wait().expect("ended").code().is_some(), "it is not among those it ends");
            assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
            assert!(kept.try_wait().expect("a child").is_none(), "it was taken off the list");
            kept.kill().expect("killed");
            kept.wait().expect("reaped");
        }

        #[test]
        fn with_nothing_on_its_list_it_is_gone_at_once() {
            let (mut shell, mut pipe) = shell();
            pipe.write_all(b"+ 7000001\n+ 7000002\n- 7000001\n- 7000002\n").expect("it reads");
            let started = Instant::now();
            drop(pipe);
            shell.wait().expect("ended");
            assert!(started.elapsed() < Duration::from_millis(900), "{:?}", started.elapsed());
        }
    }
}

/// Without process groups there is nothing to watch.
#[cfg(not(unix))]
mod without {
    #[derive(Debug)]
    pub(in super::super) struct Registration;

    impl Registration {
        pub(in super::super) fn reserve() -> Self {
            Self
        }

        pub(in super::super) fn over(&mut self, _group: u32) {}
    }
}
