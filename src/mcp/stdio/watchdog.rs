//! Ends the servers when toolgate cannot any more: it was killed, it crashed, or somebody left without closing.
//!
//! A shell in a process group of its own reads from a pipe that only this process holds which groups there are. Whatever
//! way this process ends, the pipe ends with it; the shell then asks the groups that are left to end, and a second
//! later ends them. `docs/decisions/0007-orphans.md` says why it is a shell. There is one for all servers, started with
//! the first and dismissed after the last. Where it cannot be had, servers run without it, and the log says so.

#[cfg(unix)]
pub(super) use unix::Watched;
#[cfg(not(unix))]
pub(super) use without::Watched;

#[cfg(unix)]
mod unix {
    use std::collections::BTreeSet;
    use std::io::{self, Write};
    use std::os::unix::process::CommandExt;
    use std::process::{ChildStdin, Command, Stdio};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread;

    /// Signals of the terminal are for toolgate; it says when its servers end.
    const SCRIPT: &str = r#"# Ends the MCP servers that toolgate leaves behind when it is killed.
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
    /// How often a shell that somebody ended is replaced. After that there is one again for the next server.
    const LIVES: u32 = 9;

    static WATCHDOG: Mutex<Watchdog> =
        Mutex::new(Watchdog { places: 0, groups: BTreeSet::new(), shell: None, lives: LIVES });

    /// A place at the watchdog, for a group that is about to be. Dropping it means that the group is over.
    #[derive(Debug)]
    pub(in super::super) struct Watched {
        group: Option<u32>,
    }

    impl Watched {
        /// Sees to it that there is a watchdog before there is anything to watch.
        pub(in super::super) fn reserve() -> Self {
            let mut watchdog = watchdog();
            watchdog.places += 1;
            watchdog.wake();
            Self { group: None }
        }

        /// Puts the group under watch.
        pub(in super::super) fn over(&mut self, group: u32) {
            self.group = Some(group);
            let mut watchdog = watchdog();
            watchdog.groups.insert(group);
            watchdog.tell('+', group);
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            let mut watchdog = watchdog();
            if let Some(group) = self.group {
                watchdog.groups.remove(&group);
                watchdog.tell('-', group);
            }
            watchdog.places -= 1;
            if watchdog.places == 0 {
                // Its pipe ends, and with nothing on its list so does it.
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
        pipe: ChildStdin,
    }

    fn watchdog() -> MutexGuard<'static, Watchdog> {
        WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
    }

    impl Watchdog {
        fn tell(&mut self, change: char, group: u32) {
            let told = self.shell.as_mut().is_some_and(|shell| shell.tell(change, group).is_ok());
            if !told && !self.groups.is_empty() {
                self.shell = None;
                self.wake();
            }
        }

        /// Starts the shell if there is none, and tells it of all groups.
        fn wake(&mut self) {
            if self.shell.is_some() {
                return;
            }
            match Shell::start(&self.groups) {
                Ok(shell) => self.shell = Some(shell),
                Err(error) => tracing::warn!(
                    %error,
                    "no watchdog could be started with /bin/sh: MCP servers may outlive toolgate if it is killed"
                ),
            }
        }

        /// A shell is over. If it was not dismissed, somebody ended it.
        fn ended(&mut self, pid: u32) {
            if self.shell.as_ref().is_none_or(|shell| shell.pid != pid) {
                return;
            }
            self.shell = None;
            tracing::warn!(pid, "the watchdog of the MCP servers was ended by somebody else");
            if self.lives > 0 {
                self.lives -= 1;
                self.wake();
            }
        }
    }

    impl Shell {
        fn start(groups: &BTreeSet<u32>) -> io::Result<Self> {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", SCRIPT, "toolgate-watchdog"]).current_dir("/").process_group(0);
            command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut process = command.spawn()?;
            let (pid, pipe) = (process.id(), process.stdin.take());
            let reaper = move || {
                let _ = process.wait();
                watchdog().ended(pid);
            };
            thread::Builder::new().name("mcp-watchdog".into()).spawn(reaper)?;
            let pipe = pipe.ok_or_else(|| io::Error::other("it has no pipe"))?;
            // A shell that was stopped and does not read must not stop us too.
            rustix::io::ioctl_fionbio(&pipe, true)?;
            let mut shell = Self { pid, pipe };
            groups.iter().try_for_each(|group| shell.tell('+', *group))?;
            Ok(shell)
        }

        fn tell(&mut self, change: char, group: u32) -> io::Result<()> {
            self.pipe.write_all(format!("{change} {group}\n").as_bytes())
        }
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::process::ExitStatusExt;
        use std::process::Child;
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
        fn what_is_on_the_list_at_the_end_of_the_pipe_is_ended_and_nothing_else() {
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

/// Where there are no process groups there is nothing to watch.
#[cfg(not(unix))]
mod without {
    #[derive(Debug)]
    pub(in super::super) struct Watched;

    impl Watched {
        pub(in super::super) fn reserve() -> Self {
            Self
        }

        pub(in super::super) fn over(&mut self, _group: u32) {}
    }
}
