//! The guard: the first process of the PID namespace that runs are started in, where the kernel and the
//! user's rights allow one. It ends with the agent, however that ends, and all of the namespace with it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use crate::sys::process::{self, Pid, PidNamespace};
use crate::sys::signal;

static GUARD: OnceLock<Guard> = OnceLock::new();

struct Guard {
    pid: Pid,
    namespace: PidNamespace,
    /// Its other end is the guard's: at the end of the agent, that reads the end.
    _lifeline: File,
}

/// Start the guard, where the kernel and the user's rights allow one.
///
/// To be called in the agent, while the process has one thread. An error is one after which no
/// thread could be started.
pub fn start_guard() -> io::Result<()> {
    let Ok((tie, agents_end)) = process::pipe() else { return Ok(()) };
    let Ok(outside) = File::open("/proc/self/ns/pid") else { return Ok(()) };
    // In a user namespace there may be a way into a new one, but none back.
    if process::set_child_pid_namespace(&outside).is_err()
        || process::unshare_pid_namespace().is_err()
    {
        return Ok(());
    }
    let agent = process::own_pid();
    let forked = match process::fork() {
        Ok(None) => {
            drop(agents_end);
            run_guard(agent, tie)
        }
        Ok(Some(pid)) => File::open(format!("/proc/{pid}/ns/pid")).map(|inside| (pid, inside)),
        Err(error) => Err(error),
    };
    process::set_child_pid_namespace(&outside)?;
    if let Ok((pid, inside)) = forked {
        let namespace = PidNamespace { inside, outside };
        let _ = GUARD.set(Guard { pid, namespace, _lifeline: agents_end });
    }
    Ok(())
}

/// The guard's process id; None where there is none.
#[must_use]
pub fn guard_pid() -> Option<Pid> {
    GUARD.get().map(|guard| guard.pid)
}

/// Where runs are started; None where the agent has no other place than its own.
#[must_use]
pub fn run_namespace() -> Option<&'static PidNamespace> {
    GUARD.get().map(|guard| &guard.namespace)
}

fn run_guard(agent: Pid, mut tie: File) -> ! {
    close_inherited_channel();
    signal::ignore_children();
    // Numbers in here go on from the agent's own: programs name files in /tmp after theirs.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", agent.to_string());
    // Stopped, it would read nothing any more; the signal kills it all the same.
    let _ = process::die_with_parent(libc::SIGKILL);
    while tie.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
    process::exit_now(0)
}

/// Whoever listens must see the end of stdout when the agent ends, not when the keeper does.
pub fn close_inherited_channel() {
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        for standard in [0, 1] {
            let _ = process::replace_standard(standard, nothing.as_fd());
        }
    }
}
