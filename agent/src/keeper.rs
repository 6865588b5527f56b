//! The outer of two processes: should the agent die by any means, the keeper kills what it started.
//!
//! The agent proper runs in a child. Orphans of an agent that was killed outright (or crashed) are
//! adopted by the keeper, which ends them and repeats the agent's exit code. Should the keeper
//! itself be killed, the agent gets SIGTERM from the kernel and ends as it does by any signal.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Seen};
use crate::tree;

/// Nothing but signals wakes the keeper; an hour is as good as for ever.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Split off the keeper: returns in the agent, which has its own session and no terminal.
///
/// To be called first of all, while the process has one thread.
pub fn stand_under() -> io::Result<()> {
    signal::block();
    process::leave_terminal();
    process::adopt_orphans()?;
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
    Ok(())
}

fn keep(agent: Pid) -> ! {
    let_go_of_the_channel();
    loop {
        match signal::wait(PATIENCE) {
            Seen::End(_) => process::kill(agent, libc::SIGTERM),
            Seen::Child | Seen::Nothing => {
                if let Some(code) = code_of(agent) {
                    tree::kill_all();
                    process::exit_now(code);
                }
            }
        }
    }
}

fn code_of(agent: Pid) -> Option<i32> {
    while let Some(reaped) = process::reap() {
        if reaped.pid == agent {
            return Some(reaped.code.unwrap_or(128 + reaped.signal.unwrap_or(0)));
        }
    }
    None
}

/// Whoever listens must see the end of stdout when the agent ends, not when the keeper does.
fn let_go_of_the_channel() {
    if let Ok(nothing) = OpenOptions::new().read(true).write(true).open("/dev/null") {
        for standard in [0, 1] {
            let _ = process::replace_standard(standard, nothing.as_fd());
        }
    }
}
