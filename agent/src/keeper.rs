//! The outer of two processes: should the agent die by any means, the keeper kills what it started.
//!
//! The agent proper runs in a child. Orphans of an agent that was killed outright (or crashed) are
//! adopted by the keeper, which ends them and repeats the agent's exit code. Should the keeper
//! itself be killed, the agent gets SIGTERM from the kernel and ends as it does by any signal.

use std::io;
use std::time::Duration;

use crate::guard::{close_inherited_channel, start_guard};
use crate::roots::Roots;
use crate::sign::{own_agent_id, process_of_agent_id};
use crate::sys::process::{self, Pid, ReapedChild};
use crate::sys::signal::{self, SignalEvent};
use crate::{bound, tree, undo};

/// Nothing but signals wakes the keeper; an hour is as good as for ever.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Split off the keeper: returns in the agent, which has its own session and no terminal.
///
/// To be called first of all, while the process has one thread.
pub fn fork_keeper() -> io::Result<()> {
    signal::block_handled();
    process::start_session();
    process::become_subreaper()?;
    let _ = own_agent_id(); // Made now, it is the keeper's as well.
    let keeper = process::own_pid();
    if let Some(agent) = process::fork()? {
        run_keeper(agent);
    }
    process::start_session();
    process::become_subreaper()?;
    process::die_with_parent(libc::SIGTERM)?;
    if process::parent_pid() != keeper {
        process::exit_now(128 + libc::SIGTERM);
    }
    start_guard()
}

fn run_keeper(agent: Pid) -> ! {
    close_inherited_channel();
    loop {
        match signal::wait_for_signal(PATIENCE) {
            SignalEvent::End(_) => process::kill(agent, libc::SIGTERM),
            SignalEvent::Undo => undo_left(),
            SignalEvent::Child | SignalEvent::Nothing => {
                if let Some(ended) = reap_agent(agent) {
                    let _ = tree::kill_descendants(|| while process::reap().is_some() {}); // Nobody hears of it any more.
                    if ended.signal.is_some() {
                        // It could not remove them itself. They bear the sign that both have.
                        bound::remove_groups_of_agent(&Roots::default(), own_agent_id());
                    }
                    undo_left();
                    process::exit_now(ended.code.unwrap_or(128 + ended.signal.unwrap_or(0)));
                }
            }
        }
    }
}

/// Have the events of this agent, which ends, undone: by the keeper, or here where that is gone.
pub fn undo_events() {
    match process_of_agent_id(own_agent_id()) {
        Some((keeper, _)) if keeper == process::parent_pid() => {
            process::kill(keeper, signal::UNDO_SIGNAL);
        }
        _ => undo_left(),
    }
}

fn undo_left() {
    for fault in undo::perform_left(own_agent_id()) {
        eprintln!("iolab-agent: {fault}");
    }
}

fn reap_agent(agent: Pid) -> Option<ReapedChild> {
    std::iter::from_fn(process::reap).find(|reaped| reaped.pid == agent)
}
