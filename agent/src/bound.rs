//! A bound of memory for a run: a control group that its first process joins before the program
//! begins, and that is removed when the last process is gone.
//!
//! Page cache of what the processes read and write counts. Which version of the memory controller
//! this host has, and where a group of it may be made, is looked for each time.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::facts::disks::mounts;
use crate::probe::mountinfo::Mount;
use crate::roots::{Roots, names, text};
use crate::sign::sign_of;
use crate::sys::mount::{mount_device, seclude};
use crate::sys::process::{Pid, kill, own_pid};
use crate::sys::thread::lock;
use crate::tree::may_live;

/// No program starts in less.
const LEAST_BYTES: u64 = 1 << 20;
/// The limit of a group that is only tried.
const TRIED_BYTES: u64 = 1 << 30;
/// How long killed processes may take to leave their group.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(2);
/// Between two tries to remove a group.
const PAUSE: Duration = Duration::from_millis(4);
/// Groups looked at for those of a dead agent: a host with thousands of containers has fewer.
const MAX_GROUPS: usize = 50_000;

/// Groups that this agent has made and not removed yet; None once it ends: then none is made.
static HELD: Mutex<Option<Vec<PathBuf>>> = Mutex::new(Some(Vec::new()));

/// What the processes of a bounded run used together; null what the kernel does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// The most that they had at a time, page cache too.
    pub memory_peak_bytes: Option<u64>,
    /// How many of them the bound killed.
    pub oom_kills: Option<u64>,
}

/// A group with a limit. Dropped, it is removed with all that is still in it.
pub struct Bound {
    folder: PathBuf,
    version: Version,
    door: File,
}

/// The two interfaces of the memory controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Bound {
    /// Make the group `name` for at most `bytes`; an error where this host or user cannot.
    pub fn make(roots: &Roots, name: &str, bytes: u64) -> Result<Self> {
        if bytes < LEAST_BYTES {
            let says = format!("memory_limit_bytes {bytes} is less than {LEAST_BYTES}");
            return Err(Error::bad_request(says));
        }
        show_groups(roots);
        let (version, parent) = parent_of_groups(roots).ok_or_else(|| {
            let says = "cannot bound memory: no control group above the agent hands the memory \
                        controller on";
            Error::errno(libc::ENOTSUP, says)
        })?;
        let folder = parent.join(name);
        let failed = |error: &io::Error| {
            let doing = format_args!("bound memory by the control group {}", folder.display());
            Error::io(doing, error)
        };
        {
            let mut held = held();
            let Some(made) = held.as_mut() else {
                return Err(Error::errno(libc::ECANCELED, "the agent is ending"));
            };
            fs::create_dir(&folder).map_err(|error| failed(&error))?;
            made.push(folder.clone());
        }
        match furnish(&folder, version, bytes) {
            Ok(door) => Ok(Self { folder, version, door }),
            Err(error) => {
                forget(&folder);
                Err(failed(&error))
            }
        }
    }

    /// A process that writes `0` here joins the group.
    #[must_use]
    pub fn door(&self) -> BorrowedFd<'_> {
        self.door.as_fd()
    }

    /// What its processes used so far.
    #[must_use]
    pub fn used(&self) -> MemoryUse {
        used(&self.folder, self.version)
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        forget(&self.folder);
    }
}

/// Why memory cannot be bounded here, None when it can: tried with an empty group of that name.
#[must_use]
pub fn objection(roots: &Roots, name: &str) -> Option<String> {
    Bound::make(roots, name, TRIED_BYTES).err().map(|error| error.says)
}

/// How the group of a run of an agent is named.
#[must_use]
pub fn group_of(sign: &str, id: u64) -> String {
    format!("{}{id}", groups_of(sign))
}

/// Remove all groups of this agent, which ends: no further one is made.
pub fn remove_own() {
    for folder in held().take().unwrap_or_default() {
        remove(&folder);
    }
}

/// Remove the groups of an agent that died without doing it, wherever it had made them.
pub fn remove_of(roots: &Roots, sign: &str) {
    for folder in groups_whose(roots, |other| other == sign) {
        remove(&folder);
    }
}

/// The groups of agents that are surely dead.
#[must_use]
pub fn groups_of_dead(roots: &Roots) -> Vec<PathBuf> {
    groups_whose(roots, |sign| !may_live(sign))
}

fn groups_whose(roots: &Roots, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    show_groups(roots);
    let tops = hierarchies(roots).into_iter().map(|hierarchy| hierarchy.top);
    let all = tops.flat_map(|top| folders_below(&top, MAX_GROUPS));
    all.filter(|folder| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let sign = name.as_deref().and_then(|name| sign_of(name.strip_prefix("iolab-")?));
        sign.is_some_and(&is_wanted)
    })
    .collect()
}

fn groups_of(sign: &str) -> String {
    format!("iolab-{sign}.")
}

fn held() -> MutexGuard<'static, Option<Vec<PathBuf>>> {
    lock(&HELD)
}

fn forget(folder: &Path) {
    remove(folder);
    if let Some(made) = held().as_mut() {
        made.retain(|other| other != folder);
    }
}

/// One tree of control groups that has the memory controller, or may have it.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    version: Version,
    /// Its highest group that can be seen here.
    top: PathBuf,
    /// The group that this process is in.
    own: PathBuf,
}

/// Mount a tree of groups for this agent alone where none with the memory controller is to be seen,
/// though the kernel has one: `ip netns exec` hides all of them, as do some containers.
fn show_groups(roots: &Roots) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = lock(&ONE_AT_A_TIME);
    let Some((kind, options)) = hidden_groups(roots) else { return };
    // Another request may have mounted it in the meantime, where this one did not look yet.
    if seclude().is_ok() && hidden_groups(roots).is_some() {
        let at = roots.sys.join("fs/cgroup");
        let _ = mount_device(Path::new("cgroup"), &at, kind, options);
    }
}

/// The kind and options of the mount that would show the memory controller; None where it is shown,
/// or where the kernel has none.
fn hidden_groups(roots: &Roots) -> Option<(&'static CStr, &'static CStr)> {
    let groups = text(&roots.proc.join("self/cgroup")).unwrap_or_default();
    let is_of_one = groups
        .lines()
        .filter_map(|line| line.split(':').nth(1))
        .any(|controllers| controllers.split(',').any(|word| word == "memory"));
    let is_there = !groups.is_empty();
    let shown = hierarchies(roots);
    let is_shown = |version| shown.iter().any(|hierarchy| hierarchy.version == version);
    if is_of_one {
        return (!is_shown(Version::One)).then_some((c"cgroup", c"memory"));
    }
    (is_there && !is_shown(Version::Two)).then_some((c"cgroup2", c""))
}

/// Where a group with a limit of memory may be made.
fn parent_of_groups(roots: &Roots) -> Option<(Version, PathBuf)> {
    hierarchies(roots).into_iter().find_map(|hierarchy| match hierarchy.version {
        Version::One => Some((Version::One, hierarchy.own)),
        // A group with processes hands no controller on, but for the root; so groups are made
        // beside the agent's own, or higher up.
        Version::Two => hierarchy
            .own
            .ancestors()
            .take_while(|group| group.starts_with(&hierarchy.top))
            .find(|group| has_word(&group.join("cgroup.subtree_control"), "memory"))
            .map(|group| (Version::Two, group.to_owned())),
    })
}

/// The tree of version 1 first: where there is one with memory, version 2 does not have it.
fn hierarchies(roots: &Roots) -> Vec<Hierarchy> {
    let mounts = mounts(roots);
    let groups = text(&roots.proc.join("self/cgroup")).unwrap_or_default();
    let one = mounts.iter().find(|mount| {
        mount.fs_type == "cgroup" && mount.super_options.split(',').any(|word| word == "memory")
    });
    let two = mounts.iter().find(|mount| mount.fs_type == "cgroup2");
    let found = |mount: Option<&Mount>, version| {
        mount.map(|mount| Hierarchy {
            version,
            top: mount.mount_point.clone(),
            own: own_group(mount, &groups, version),
        })
    };
    [found(one, Version::One), found(two, Version::Two)].into_iter().flatten().collect()
}

/// The folder of the group of this process; the highest one that can be seen, if that is elsewhere.
fn own_group(mount: &Mount, groups: &str, version: Version) -> PathBuf {
    let of_version = |controllers: &str| match version {
        Version::One => controllers.split(',').any(|word| word == "memory"),
        Version::Two => controllers.is_empty(),
    };
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        parts.next().filter(|_| of_version(controllers))
    });
    let below = path.and_then(|path| Path::new(path).strip_prefix(&mount.root).ok());
    below.map_or_else(|| mount.mount_point.clone(), |below| mount.mount_point.join(below))
}

fn has_word(file: &Path, word: &str) -> bool {
    text(file).is_some_and(|text| text.split_whitespace().any(|one| one == word))
}

/// Set the limits of a new group, and open the file by which it is joined.
fn furnish(folder: &Path, version: Version, bytes: u64) -> io::Result<File> {
    let set = |name: &str, value: &str| {
        OpenOptions::new()
            .write(true)
            .open(folder.join(name))
            .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
    };
    // A kernel without swap lacks the files about it; then there is nothing to forbid.
    let set_if_there = |name: &str, value: &str| {
        if folder.join(name).exists() { set(name, value) } else { Ok(()) }
    };
    let limit = bytes.to_string();
    match version {
        Version::One => {
            set("memory.limit_in_bytes", &limit)?;
            set_if_there("memory.memsw.limit_in_bytes", &limit)?;
            set_if_there("memory.swappiness", "0")?;
        }
        Version::Two => {
            set("memory.max", &limit)?;
            set_if_there("memory.swap.max", "0")?;
        }
    }
    OpenOptions::new().write(true).open(folder.join("cgroup.procs"))
}

fn used(folder: &Path, version: Version) -> MemoryUse {
    let number = |file: &str| text(&folder.join(file))?.trim().parse().ok();
    match version {
        // Of version 1 each group counts its own kills alone; the use is that of all below it.
        Version::One => MemoryUse {
            memory_peak_bytes: number("memory.max_usage_in_bytes"),
            oom_kills: folders_below(folder, MAX_GROUPS)
                .iter()
                .map(|group| value_of(&group.join("memory.oom_control"), "oom_kill"))
                .sum(),
        },
        Version::Two => MemoryUse {
            memory_peak_bytes: number("memory.peak"),
            oom_kills: value_of(&folder.join("memory.events"), "oom_kill"),
        },
    }
}

/// The number after a key in a file of `key value` lines.
fn value_of(file: &Path, key: &str) -> Option<u64> {
    text(file)?.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// Kill what is left in a group and in those below it, and remove them, until patience ends.
pub fn remove(folder: &Path) {
    let deadline = Instant::now() + REMOVAL_PATIENCE;
    loop {
        let mut groups = folders_below(folder, MAX_GROUPS);
        groups.reverse(); // A group is removed after those below it.
        for group in &groups {
            if fs::remove_dir(group).is_err() {
                kill_all_in(group);
            }
        }
        if !folder.exists() || Instant::now() >= deadline {
            return;
        }
        thread::sleep(PAUSE);
    }
}

fn kill_all_in(group: &Path) {
    let pids = text(&group.join("cgroup.procs")).unwrap_or_default();
    for pid in pids.lines().filter_map(|line| line.parse::<Pid>().ok()) {
        if pid != own_pid() {
            kill(pid, libc::SIGKILL);
        }
    }
}

/// A folder and all below it, parents first, at most so many.
fn folders_below(top: &Path, most: usize) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut next = 0;
    while next < found.len() && found.len() < most {
        let folder = found[next].clone();
        let inner = names(&folder).into_iter().map(|name| folder.join(name));
        found.extend(inner.filter(|path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())));
        next += 1;
    }
    found
}

#[cfg(test)]
#[path = "bound_tests.rs"]
mod tests;
