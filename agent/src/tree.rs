//! The processes under this one: found in /proc, killed until none is left.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde::Serialize;

use crate::guard;
use crate::probe::process::{Place, has_setting, parse_place};
use crate::sign::{own_sign, sign_in};
use crate::sys::process::{Pid, kill, own_pid, parent_pid, reap};

/// How long killed processes may take to go: only one stuck in the kernel takes longer, and
/// waiting for it helps nobody.
const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at /proc; a killed process is gone in less.
const PAUSE: Duration = Duration::from_millis(4);

/// A command that is shown needs no more to be known by.
const MAX_COMMAND_CHARS: usize = 200;

/// A run's processes: the session of its leader, those with its mark in their environment (so that
/// a daemon of its own session is found), and all their descendants.
#[derive(Debug, Clone)]
pub struct Family {
    /// The process that was started; its session has the same number.
    pub leader: Pid,
    /// The `NAME=value` that its environment was given.
    pub mark: String,
}

/// Send SIGKILL to everything of a run that lives.
pub fn strike(family: &Family) {
    for pid in members(family) {
        kill(pid, libc::SIGKILL);
    }
}

/// Kill a run's processes until none lives or patience ends.
pub fn kill_family(family: &Family) {
    let _ = kill_until_gone(|| members(family));
}

/// Kill every process under this one, and reap, until none is left or patience ends.
pub fn kill_all() {
    let _ = kill_until_gone(|| {
        while reap().is_some() {}
        descendants(&places(), own_pid()).iter().map(|place| place.pid).collect()
    });
}

/// A process of a run whose agent is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// Its id.
    pub pid: Pid,
    /// Its program and arguments, cut.
    pub command: String,
}

/// Processes on this host that an agent has started and that it, being dead, will never end.
#[must_use]
pub fn orphans() -> Vec<Orphan> {
    orphans_of("").into_iter().map(|pid| Orphan { pid, command: command_of(pid) }).collect()
}

/// Kill those of them until none is left or patience ends; the ids of those that are left.
#[must_use]
pub fn kill_these_orphans(pids: &BTreeSet<Pid>) -> Vec<Pid> {
    kill_until_gone(|| orphans_of("").into_iter().filter(|pid| pids.contains(pid)).collect())
}

/// Kill all of them, and those of the agent with the sign `dead`, which is known to be so.
pub fn kill_orphans_of(dead: &str) {
    let _ = kill_until_gone(|| orphans_of(dead));
}

fn kill_until_gone(look: impl Fn() -> Vec<Pid>) -> Vec<Pid> {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let left = look();
        if left.is_empty() || Instant::now() >= deadline {
            return left;
        }
        for &pid in &left {
            kill(pid, libc::SIGKILL);
        }
        thread::sleep(PAUSE);
    }
}

/// Whether a process lives that has or had the number which a sign begins with, in this PID
/// namespace or in one below: an agent in a container has signed by its number there.
#[must_use]
pub fn may_live(sign: &str) -> bool {
    let Some(number) = number_of(sign) else { return true };
    places().iter().any(|place| numbers_of(place.pid).contains(&number))
}

/// The files that other processes than this agent's execute, by device and inode.
#[must_use]
pub fn programs_of_others() -> HashSet<(u64, u64)> {
    let all = places();
    let mut own: HashSet<Pid> = descendants(&all, own_pid()).iter().map(|p| p.pid).collect();
    own.extend([own_pid(), parent_pid()]);
    all.iter()
        .filter(|place| !own.contains(&place.pid))
        .filter_map(|place| fs::metadata(format!("/proc/{}/exe", place.pid)).ok())
        .map(|file| (file.dev(), file.ino()))
        .collect()
}

/// Looked for twice: /proc is read while processes move.
fn orphans_of(dead: &str) -> Vec<Pid> {
    let first = look_for_orphans(dead);
    if first.is_empty() {
        return first;
    }
    thread::sleep(PAUSE);
    let second = look_for_orphans(dead);
    first.into_iter().filter(|pid| second.contains(pid)).collect()
}

fn look_for_orphans(dead: &str) -> Vec<Pid> {
    let all: HashMap<Pid, Place> = places().into_iter().map(|p| (p.pid, p)).collect();
    let is_orphan = |place: &&Place| {
        let Some(environ) = environ_of(place.pid) else { return false };
        let Some(sign) = sign_in(&environ) else { return false };
        sign != own_sign() && (sign == dead || is_out_of_hand(&all, **place, &sign))
    };
    all.values().filter(|place| !place.is_zombie).filter(is_orphan).map(|p| p.pid).collect()
}

/// Whether nobody above a process has the number that its sign begins with. One whose parents
/// cannot all be seen has just lost one.
fn is_out_of_hand(all: &HashMap<Pid, Place>, place: Place, sign: &str) -> bool {
    let Some(number) = number_of(sign) else { return false };
    let mut above = place.parent;
    for _ in 0..all.len() {
        if above == 0 {
            return true;
        }
        let Some(parent) = all.get(&above) else { return false };
        if numbers_of(above).contains(&number) {
            return false;
        }
        above = parent.parent;
    }
    false
}

fn number_of(sign: &str) -> Option<Pid> {
    sign.split_once('-')?.0.parse().ok()
}

/// What a process is numbered here and in the PID namespaces below, in which it is as well.
fn numbers_of(pid: Pid) -> Vec<Pid> {
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
    let below = descendants(&places(), pid);
    [pid].into_iter().chain(below.into_iter().map(|place| place.pid)).collect()
}

/// Only descendants of this process are ever members: a number that the kernel gave to somebody
/// else's process since is left alone.
fn members(family: &Family) -> Vec<Pid> {
    let under = descendants(&places(), own_pid());
    let mut chosen: HashSet<Pid> = HashSet::new();
    // Parents stand before their children, so one pass is enough.
    for place in &under {
        let adopted = place.parent == own_pid() || Some(place.parent) == guard::pid();
        if place.pid == family.leader
            || place.session == family.leader
            || chosen.contains(&place.parent)
            || (adopted && is_marked(place.pid, &family.mark))
        {
            chosen.insert(place.pid);
        }
    }
    under.iter().filter(|p| chosen.contains(&p.pid) && !p.is_zombie).map(|p| p.pid).collect()
}

fn is_marked(pid: Pid, mark: &str) -> bool {
    environ_of(pid).is_some_and(|environ| has_setting(&environ, mark))
}

fn environ_of(pid: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

fn places() -> Vec<Place> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| place_of(&entry.path())).collect()
}

fn place_of(folder: &Path) -> Option<Place> {
    let is_process = folder.file_name()?.as_encoded_bytes().first()?.is_ascii_digit();
    if !is_process {
        return None;
    }
    parse_place(&String::from_utf8_lossy(&fs::read(folder.join("stat")).ok()?))
}

/// All processes below `root`, parents before their children.
fn descendants(places: &[Place], root: Pid) -> Vec<Place> {
    let mut all: Vec<Place> = Vec::new();
    let mut generation = vec![root];
    while !generation.is_empty() {
        let children: Vec<Place> =
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

    fn place(pid: Pid, parent: Pid) -> Place {
        Place { pid, is_zombie: false, parent, session: pid }
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
