//! The outer of two processes: should the agent die by any means, the keeper kills what it started.
//!
//! The agent proper runs in a child. Orphans of an agent that was killed outright (or crashed) are
//! adopted by the keeper, which ends them and repeats the agent's exit code. Should the keeper
//! itself be killed, the agent gets SIGTERM from the kernel and ends as it does by any signal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use crate::job::own_sign;
use crate::roots::Roots;
use crate::sys::process::{self, Pid, PidNamespace, Reaped};
use crate::sys::signal::{self, Seen};
use crate::{bound, tree};

/// Nothing but signals wakes the keeper; an hour is as good as for ever.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Split off the keeper: returns in the agent, which has its own session and no terminal.
///
/// To be called first of all, while the process has one thread.
pub fn stand_under() -> io::Result<()> {
    signal::block();
    process::leave_terminal();
    process::adopt_orphans()?;
    let _ = own_sign(); // Made now, it is the keeper's as well.
    let keeper = process::own_pid();
    if let Some(agent) = process::fork()? {
        keep(agent);
    }
    process::leave_terminal();
    process::adopt_orphans()?;
    process::die_with_parent(libc::SIGTERM)?;
    if process::parent_pid() != keeper {
        process::exit_now(128 + libc::SIGTERM);
    }
    stand_by()
}

fn keep(agent: Pid) -> ! {
    let_go_of_the_channel();
    loop {
        match signal::wait(PATIENCE) {
            Seen::End(_) => process::kill(agent, libc::SIGTERM),
            Seen::Child | Seen::Nothing => {
                if let Some(ended) = end_of(agent) {
                    tree::kill_all();
                    if ended.signal.is_some() {
                        // It could not remove them itself. They bear the sign that both have.
                        bound::remove_of(&Roots::default(), own_sign());
                    }
                    process::exit_now(ended.code.unwrap_or(128 + ended.signal.unwrap_or(0)));
                }
            }
        }
    }
}

fn end_of(agent: Pid) -> Option<Reaped> {
    std::iter::from_fn(process::reap).find(|reaped| reaped.pid == agent)
}

/// Whoever listens must see the end of stdout when the agent ends, not when the keeper does.
fn let_go_of_the_channel() {
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        for standard in [0, 1] {
            let _ = process::replace_standard(standard, nothing.as_fd());
        }
    }
}

static GUARD: OnceLock<Guard> = OnceLock::new();

struct Guard {
    pid: Pid,
    namespace: PidNamespace,
    /// Its other end is the guard's: at the end of the agent, that reads the end.
    _tie: File,
}

/// Start the guard, where the kernel and the user's rights allow one.
///
/// To be called in the agent, while the process has one thread. An error is one after which no
/// thread could be started.
fn stand_by() -> io::Result<()> {
    let Ok((tie, agents_end)) = process::pipe() else { return Ok(()) };
    let Ok(outside) = File::open("/proc/self/ns/pid") else { return Ok(()) };
    // In a user namespace there may be a way into a new one, but none back.
    if process::fork_into(&outside).is_err() || process::fork_into_new_pids().is_err() {
        return Ok(());
    }
    let agent = process::own_pid();
    let forked = match process::fork() {
        Ok(None) => {
            drop(agents_end);
            guard(agent, tie)
        }
        Ok(Some(pid)) => File::open(format!("/proc/{pid}/ns/pid")).map(|inside| (pid, inside)),
        Err(error) => Err(error),
    };
    process::fork_into(&outside)?;
    if let Ok((pid, inside)) = forked {
        let namespace = PidNamespace { inside, outside };
        let _ = GUARD.set(Guard { pid, namespace, _tie: agents_end });
    }
    Ok(())
}

/// The guard's process id; None where there is none.
#[must_use]
pub fn pid() -> Option<Pid> {
    GUARD.get().map(|guard| guard.pid)
}

/// Where runs are started; None where the agent has no other place than its own.
#[must_use]
pub fn namespace() -> Option<&'static PidNamespace> {
    GUARD.get().map(|guard| &guard.namespace)
}

fn guard(agent: Pid, mut tie: File) -> ! {
    let_go_of_the_channel();
    signal::never_mind_children();
    // Numbers in here go on from the agent's own: programs name files in /tmp after theirs.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", agent.to_string());
    // Stopped, it would read nothing any more; the signal kills it all the same.
    let _ = process::die_with_parent(libc::SIGKILL);
    while tie.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    process::exit_now(0)
}
