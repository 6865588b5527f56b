//! The processes under this one: found in /proc, killed until none is left.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde::Serialize;

use crate::guard;
use crate::probe::process::{ProcessInfo, environ_has, parse_process_stat};
use crate::sign::{agent_id_in_environ, own_agent_id, process_of_agent_id};
use crate::sys::process::{self, Pid, effective_uid, kill, own_pid, parent_pid};
use crate::token;

/// How long killed processes may take to go: only one stuck in the kernel takes longer, and
/// waiting for it helps nobody.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at /proc; a killed process is gone in less.
const KILL_PAUSE: Duration = Duration::from_millis(4);

/// A command that is shown needs no more to be known by.
const MAX_COMMAND_CHARS: usize = 200;

/// A run's processes: the session of its leader, those with its mark in their environment (so that
/// a daemon of its own session is found), and all their descendants.
#[derive(Debug, Clone)]
pub struct RunProcesses {
    /// The process that was started; its session has the same number.
    pub leader: Pid,
    /// The `NAME=value` that its environment was given.
    pub mark: String,
}

/// Send SIGKILL to everything of a run that lives.
pub fn kill_run_once(family: &RunProcesses) {
    for place in run_members(family) {
        kill_if_same(&place);
    }
}

/// Kill a run's processes until none lives or patience ends.
pub fn kill_run(family: &RunProcesses) {
    let _ = kill_until_gone(|| run_members(family));
}

/// Kill every process under this one, and have `reap_ended` reap, until none is left or patience
/// ends; those that are.
#[must_use]
pub fn kill_descendants(reap_ended: impl Fn()) -> Vec<Orphan> {
    let left = kill_until_gone(|| {
        reap_ended();
        descendants(&all_processes(), own_pid())
    });
    left.into_iter().map(|pid| Orphan { pid, command: command_of(pid) }).collect()
}

/// A process of a run whose agent is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// Its id.
    pub pid: Pid,
    /// Its program and arguments, cut.
    pub command: String,
}

/// Processes on this host that an agent of this user has started and that it, being dead, will never
/// end.
#[must_use]
pub fn find_orphans() -> Vec<Orphan> {
    let found = processes_of_dead_agents().into_iter();
    found.map(|place| Orphan { pid: place.pid, command: command_of(place.pid) }).collect()
}

/// Kill those of them until none is left or patience ends; the ids of those that are left.
#[must_use]
pub fn kill_these_orphans(pids: &BTreeSet<Pid>) -> Vec<Pid> {
    let look = || processes_of_dead_agents().into_iter().filter(|place| pids.contains(&place.pid));
    kill_until_gone(|| look().collect())
}

/// Kill all of them.
pub fn kill_orphans() {
    let _ = kill_until_gone(processes_of_dead_agents);
}

fn kill_until_gone(look: impl Fn() -> Vec<ProcessInfo>) -> Vec<Pid> {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let left = look();
        if left.is_empty() || Instant::now() >= deadline {
            return left.iter().map(|place| place.pid).collect();
        }
        for place in &left {
            kill_if_same(place);
        }
        thread::sleep(KILL_PAUSE);
    }
}

/// Kill the very process that was seen, not one that got its id since.
pub fn kill_if_same(seen: &ProcessInfo) {
    let handle = process::open_pidfd(seen.pid);
    let is_same = process_info(seen.pid).is_some_and(|now| now.start_ticks == seen.start_ticks);
    match handle {
        Ok(handle) if is_same => _ = process::signal_pidfd(&handle, libc::SIGKILL),
        Err(error) if is_same && error.raw_os_error() == Some(libc::ENOSYS) => {
            kill(seen.pid, libc::SIGKILL);
        }
        _ => {}
    }
}

/// Whether the process that a sign is of lives: one that has its number, in this PID namespace or in
/// one below (an agent in a container has signed by its number there), and started when it did.
#[must_use]
pub fn is_agent_alive(sign: &str) -> bool {
    let Some((number, start_ticks)) = process_of_agent_id(sign) else { return true };
    let is_it = |place: &ProcessInfo| {
        !place.is_zombie
            && place.start_ticks == start_ticks
            && pids_in_namespaces(place.pid).contains(&number)
    };
    all_processes().iter().any(is_it)
}

/// The files that other processes than this agent's execute, by device and inode.
#[must_use]
pub fn running_programs() -> HashSet<(u64, u64)> {
    let all = all_processes();
    let mut own: HashSet<Pid> = descendants(&all, own_pid()).iter().map(|p| p.pid).collect();
    own.extend([own_pid(), parent_pid()]);
    all.iter()
        .filter(|place| !own.contains(&place.pid))
        .filter_map(|place| fs::metadata(format!("/proc/{}/exe", place.pid)).ok())
        .map(|file| (file.dev(), file.ino()))
        .collect()
}

/// The setting in the environment only says whom to look at: anybody can make one.
fn processes_of_dead_agents() -> Vec<ProcessInfo> {
    let is_orphan = |place: &ProcessInfo| {
        let Some(environ) = environ_of(place.pid) else { return false };
        let Some(sign) = agent_id_in_environ(&environ) else { return false };
        sign != own_agent_id()
            && is_of_own_user(place.pid)
            && token::belongs_to_dead_agent(place.pid, &sign)
    };
    all_processes().into_iter().filter(|place| !place.is_zombie && is_orphan(place)).collect()
}

/// Whether all user ids of a process are this one's: a program with the rights of its file's owner,
/// which anybody may start, has other ones too.
fn is_of_own_user(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let Some(ids) = status.lines().find_map(|line| line.strip_prefix("Uid:")) else { return false };
    let own = effective_uid().to_string();
    ids.split_ascii_whitespace().count() == 4 && ids.split_ascii_whitespace().all(|id| id == own)
}

/// What a process is numbered here and in the PID namespaces below, in which it is as well.
fn pids_in_namespaces(pid: Pid) -> Vec<Pid> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let below = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    let numbers = below.split_ascii_whitespace().filter_map(|number| number.parse().ok());
    numbers.chain([pid]).collect()
}

fn command_of(pid: Pid) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&words).replace('\0', " ");
    text.trim().chars().take(MAX_COMMAND_CHARS).collect()
}

/// A process and all below it, by a look at every process of this machine.
#[must_use]
pub fn with_descendants(pid: Pid) -> Vec<Pid> {
    let below = descendants(&all_processes(), pid);
    [pid].into_iter().chain(below.into_iter().map(|place| place.pid)).collect()
}

/// Only descendants of this process are ever members: a number that the kernel gave to somebody
/// else's process since is left alone.
fn run_members(family: &RunProcesses) -> Vec<ProcessInfo> {
    let under = descendants(&all_processes(), own_pid());
    let mut chosen: HashSet<Pid> = HashSet::new();
    // Parents stand before their children, so one pass is enough.
    for place in &under {
        let adopted = place.parent == own_pid() || Some(place.parent) == guard::guard_pid();
        if place.pid == family.leader
            || place.session == family.leader
            || chosen.contains(&place.parent)
            || (adopted && is_marked(place.pid, &family.mark))
        {
            chosen.insert(place.pid);
        }
    }
    under.into_iter().filter(|p| chosen.contains(&p.pid) && !p.is_zombie).collect()
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    environ_of(pid).is_some_and(|environ| environ_has(&environ, mark))
}

fn environ_of(pid: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

fn all_processes() -> Vec<ProcessInfo> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| process_info_in(&entry.path())).collect()
}

/// What a process is; None when there is none with that id.
#[must_use]
pub fn process_info(pid: Pid) -> Option<ProcessInfo> {
    process_info_in(&Path::new("/proc").join(pid.to_string()))
}

fn process_info_in(folder: &Path) -> Option<ProcessInfo> {
    let is_process = folder.file_name()?.as_encoded_bytes().first()?.is_ascii_digit();
    if !is_process {
        return None;
    }
    parse_process_stat(&String::from_utf8_lossy(&fs::read(folder.join("stat")).ok()?))
}

/// All processes below `root`, parents before their children.
fn descendants(places: &[ProcessInfo], root: Pid) -> Vec<ProcessInfo> {
    let mut all: Vec<ProcessInfo> = Vec::new();
    let mut generation = vec![root];
    while !generation.is_empty() {
        let children: Vec<ProcessInfo> =
            places.iter().filter(|place| generation.contains(&place.parent)).copied().collect();
        generation = children.iter().map(|place| place.pid).collect();
        all.extend(children);
        if all.len() > places.len() {
            return all; // Processes that moved while /proc was read cannot make a circle here.
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pid: Pid, parent: Pid) -> ProcessInfo {
        ProcessInfo { pid, is_zombie: false, parent, session: pid, start_ticks: 1 }
    }

    #[test]
    fn descendants_come_parents_first_and_leave_others_out() {
        let places = [place(30, 20), place(20, 10), place(21, 10), place(5, 1), place(10, 1)];
        let pids: Vec<Pid> = descendants(&places, 10).iter().map(|p| p.pid).collect();
        assert_eq!(pids, [20, 21, 30]);
    }

    #[test]
    fn a_circle_ends() {
        let places = [place(2, 3), place(3, 2)];
        assert!(descendants(&places, 2).len() <= 4);
    }
}
