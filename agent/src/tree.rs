//! The processes under this one: found in /proc, killed until none is left.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::probe::process::{Place, has_setting, has_setting_like, parse_place};
use crate::sys::process::{Pid, kill, own_pid, reap};

/// How long killed processes may take to go: only one stuck in the kernel takes longer, and
/// waiting for it helps nobody.
pub const KILL_PATIENCE: Duration = Duration::from_secs(2);
/// Between two looks at /proc; a killed process is gone in less.
const PAUSE: Duration = Duration::from_millis(4);

/// A run's processes: the session of its leader, those with its mark in their environment (so that
/// a daemon of its own session is found), and all their descendants.
#[derive(Debug, Clone)]
pub struct Family {
    /// The process that was started; its session has the same number.
    pub leader: Pid,
    /// The `NAME=value` that its environment was given.
    pub mark: String,
}

/// Send SIGKILL to everything of a run that lives; tells how many that were.
#[must_use]
pub fn strike(family: &Family) -> usize {
    let members = members(family);
    for place in &members {
        kill(place.pid, libc::SIGKILL);
    }
    members.len()
}

/// Kill a run's processes until none lives or patience ends.
pub fn kill_family(family: &Family) {
    let deadline = Instant::now() + KILL_PATIENCE;
    while strike(family) > 0 && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
}

/// Kill every process under this one, and reap, until none is left or patience ends.
pub fn kill_all() {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        while reap().is_some() {}
        let under = descendants(&places(), own_pid());
        if under.is_empty() || Instant::now() >= deadline {
            return;
        }
        for place in under {
            kill(place.pid, libc::SIGKILL);
        }
        thread::sleep(PAUSE);
    }
}

/// Kill every process on this machine that one agent has marked, which died without doing it, until
/// none is left or patience ends. `marks` is how each of its marks begins.
pub fn kill_marked(marks: &str) {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        let left: Vec<Place> = places()
            .into_iter()
            .filter(|place| !place.is_zombie && place.pid != own_pid())
            .filter(|place| environ_of(place.pid).is_some_and(|all| has_setting_like(&all, marks)))
            .collect();
        for place in &left {
            kill(place.pid, libc::SIGKILL);
        }
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Only descendants of this process are ever members: a number that the kernel gave to somebody
/// else's process since is left alone.
fn members(family: &Family) -> Vec<Place> {
    let under = descendants(&places(), own_pid());
    let mut chosen: HashSet<Pid> = HashSet::new();
    // Parents stand before their children, so one pass is enough.
    for place in &under {
        let adopted = place.parent == own_pid();
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
    let mut found: Vec<Place> = Vec::new();
    let mut generation = vec![root];
    while !generation.is_empty() {
        let children: Vec<Place> =
            places.iter().filter(|place| generation.contains(&place.parent)).copied().collect();
        generation = children.iter().map(|place| place.pid).collect();
        found.extend(children);
        if found.len() > places.len() {
            return found; // Processes that moved while /proc was read cannot make a circle here.
        }
    }
    found
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
