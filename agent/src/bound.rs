//! Bounds of a run, of memory or of its I/O: a control group that its first process joins before the
//! program begins, and that is removed when the last process is gone.
//!
//! Page cache of what the processes read and write counts as memory. Which version of a controller
//! this host has, and where a group of it may be made, is looked for each time.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result};
use crate::facts::disks::{nearest_disks, visible_mounts};
use crate::probe::mountinfo::cgroup_mount;
use crate::probe::process::{self, number_of_key};
use crate::roots::{Roots, list_names, read_number, read_text, read_value};
use crate::sign::agent_id_of_mark;
use crate::sys::mount::{enter_or_create_namespace, mount_device};
use crate::sys::process::{Pid, effective_uid, own_pid};
use crate::sys::thread::lock;
use crate::tree::{is_agent_alive, kill_if_same, process_info};

/// A controller, as each version of control groups calls it.
#[derive(Debug, PartialEq, Eq)]
struct Controller {
    v1: &'static str,
    v2: &'static str,
    /// The options of the mount of version 1.
    mount_options: &'static CStr,
}

const MEMORY: Controller = Controller { v1: "memory", v2: "memory", mount_options: c"memory" };
const IO: Controller = Controller { v1: "blkio", v2: "io", mount_options: c"blkio" };
/// No program starts in less.
const MIN_BYTES: u64 = 1 << 20;
/// The limit of a group that is only tried.
const TRIAL_LIMIT_BYTES: u64 = 1 << 30;
/// How long killed processes may take to leave their group.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries to remove a group.
const REMOVAL_PAUSE: Duration = Duration::from_millis(4);
/// Groups looked at for those of a dead agent: a host with thousands of containers has fewer.
const MAX_GROUPS: usize = 50_000;

/// Groups that this agent has made and not removed yet; None once it ends: then none is made.
static CREATED_GROUPS: Mutex<Option<Vec<CreatedGroup>>> = Mutex::new(Some(Vec::new()));

/// A group that was made, and the disks that its I/O is limited on.
#[derive(Debug)]
struct CreatedGroup {
    folder: PathBuf,
    disks: Vec<Disk>,
}

/// A whole disk, by its name as `sda` and its number as `MAJOR:MINOR`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Disk {
    name: String,
    number: String,
}

/// What the processes of a bounded run used together; null what the kernel does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MemoryUse {
    /// The most that they had at a time, page cache too.
    pub memory_peak_bytes: Option<u64>,
    /// How many of them the bound killed.
    pub oom_kills: Option<u64>,
}

/// A control group of a run. Dropped, it is removed with all that is still in it.
struct RunGroup {
    folder: PathBuf,
    version: CgroupVersion,
    join_file: File,
}

/// A group with a limit of memory.
pub struct MemoryLimit(RunGroup);

/// A group whose I/O can be limited while its run goes on.
pub struct IoGroup {
    group: RunGroup,
    disks: Vec<Disk>,
}

/// The devices that a run uses, all layers of them, and what it may do on each disk of the nearest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoLimit {
    /// Their names, as `sda`.
    pub devices: Vec<String>,
    /// How much.
    #[serde(default)]
    pub rates: IoRates,
}

/// What a group may do on a disk; null for as much as it can.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoRates {
    /// Reads a second.
    #[serde(default)]
    pub read_iops: Option<u64>,
    /// Writes a second.
    #[serde(default)]
    pub write_iops: Option<u64>,
    /// Bytes read a second.
    #[serde(default)]
    pub read_bytes_per_s: Option<u64>,
    /// Bytes written a second.
    #[serde(default)]
    pub write_bytes_per_s: Option<u64>,
}

/// A kind of limit: its key in `io.max`, and its file where the controller is version 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitKind {
    key: &'static str,
    v1_file: &'static str,
}

impl IoRates {
    /// Every kind with its rate.
    #[must_use]
    pub const fn by_kind(&self) -> [(LimitKind, Option<u64>); 4] {
        const fn kind(key: &'static str, v1_file: &'static str) -> LimitKind {
            LimitKind { key, v1_file }
        }
        [
            (kind("riops", "blkio.throttle.read_iops_device"), self.read_iops),
            (kind("wiops", "blkio.throttle.write_iops_device"), self.write_iops),
            (kind("rbps", "blkio.throttle.read_bps_device"), self.read_bytes_per_s),
            (kind("wbps", "blkio.throttle.write_bps_device"), self.write_bytes_per_s),
        ]
    }
}

/// Which text goes into which file of a control group to limit it so on the disk of that number:
/// one for all in `io.max`, one for each kind where the controller is version 1.
#[must_use]
pub fn limit_writes(
    group: &Path,
    number: &str,
    rates: &[(LimitKind, Option<u64>)],
) -> Vec<(PathBuf, String)> {
    let file = group.join("io.max");
    if file.exists() {
        let rate_text =
            |rate: Option<u64>| rate.map_or_else(|| "max".into(), |rate| rate.to_string());
        let words = rates.iter().map(|(kind, rate)| format!(" {}={}", kind.key, rate_text(*rate)));
        return vec![(file, format!("{number}{}", words.collect::<String>()))];
    }
    // Zero is no limit.
    let text = |rate: Option<u64>| format!("{number} {}", rate.unwrap_or_default());
    rates.iter().map(|(kind, rate)| (group.join(kind.v1_file), text(*rate))).collect()
}

/// The two interfaces of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CgroupVersion {
    V1,
    V2,
}

impl RunGroup {
    /// Make the group `name` with a controller; an error where this host or user cannot.
    fn make(
        roots: &Roots,
        controller: &Controller,
        name: &str,
        doing: &str,
        disks: &[Disk],
        furnish: impl Fn(&Path, CgroupVersion) -> io::Result<()>,
    ) -> Result<Self> {
        mount_hidden_hierarchy(roots, controller);
        let (version, parent) = parent_for_groups(roots, controller).ok_or_else(|| {
            let message = format!(
                "cannot {doing}: no control group above the agent hands the {} controller on",
                controller.v2
            );
            Error::errno(libc::ENOTSUP, message)
        })?;
        let folder = parent.join(name);
        let doing = format!("{doing} by the control group {}", folder.display());
        {
            let mut held = created_groups();
            let Some(made) = held.as_mut() else {
                return Err(Error::errno(libc::ECANCELED, "the agent is ending"));
            };
            fs::create_dir(&folder).context(&doing)?;
            made.push(CreatedGroup { folder: folder.clone(), disks: disks.to_vec() });
        }
        let furnished = furnish(&folder, version)
            .and_then(|()| OpenOptions::new().write(true).open(folder.join("cgroup.procs")));
        if furnished.is_err() {
            forget_group(&folder);
        }
        Ok(Self { join_file: furnished.context(&doing)?, folder, version })
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        forget_group(&self.folder);
    }
}

impl MemoryLimit {
    /// Make the group `name` for at most `bytes`; an error where this host or user cannot.
    pub fn make(roots: &Roots, name: &str, bytes: u64) -> Result<Self> {
        if bytes < MIN_BYTES {
            let message = format!("memory_limit_bytes {bytes} is less than {MIN_BYTES}");
            return Err(Error::bad_request(message));
        }
        let furnish = |folder: &Path, version| set_limits(folder, version, bytes);
        RunGroup::make(roots, &MEMORY, name, "bound memory", &[], furnish).map(Self)
    }

    /// A process that writes `0` here joins the group.
    #[must_use]
    pub fn door(&self) -> BorrowedFd<'_> {
        self.0.join_file.as_fd()
    }

    /// What its processes used so far.
    #[must_use]
    pub fn read_memory_use(&self) -> MemoryUse {
        used(&self.0.folder, self.0.version)
    }
}

impl IoGroup {
    /// Make the group `name` with a limit; an error where this host or user cannot.
    pub fn make(roots: &Roots, name: &str, limit: &IoLimit) -> Result<Self> {
        let disks = limited_disks(roots, &limit.devices)?;
        let group = RunGroup::make(roots, &IO, name, "limit I/O", &disks, |_, _| Ok(()))?;
        limit_group(&group.folder, &disks, &limit.rates)?;
        Ok(Self { group, disks })
    }

    /// A process that writes `0` here joins the group.
    #[must_use]
    pub fn door(&self) -> BorrowedFd<'_> {
        self.group.join_file.as_fd()
    }

    /// The names of the disks that its limits are of.
    #[must_use]
    pub fn disk_names(&self) -> Vec<String> {
        self.disks.iter().map(|disk| disk.name.clone()).collect()
    }
}

/// Set another limit for the run of this agent that is in the group `name`.
pub fn limit_io(name: &str, rates: &IoRates) -> Result<()> {
    let held = created_groups();
    let is_named =
        |group: &&CreatedGroup| group.folder.file_name().is_some_and(|file| file == name);
    let Some(group) = held.as_ref().and_then(|made| made.iter().find(is_named)) else {
        return Err(Error::errno(libc::ESRCH, "the run has no control group for its I/O"));
    };
    limit_group(&group.folder, &group.disks, rates)
}

fn limit_group(folder: &Path, disks: &[Disk], rates: &IoRates) -> Result<()> {
    for Disk { name, number } in disks {
        let doing = || format!("limit I/O to {name} in the control group {}", folder.display());
        for (file, text) in limit_writes(folder, number, &rates.by_kind()) {
            write_setting(&file, &text).context(doing())?;
        }
    }
    Ok(())
}

/// Write to a file of a control group, which the kernel made.
fn write_setting(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    io::Write::write_all(&mut file, text.as_bytes())
}

/// The disks on which I/O to a stack of devices is limited: only whole ones can be, and what is
/// asked of one layer is asked of those below it as well.
fn limited_disks(roots: &Roots, devices: &[String]) -> Result<Vec<Disk>> {
    let unknown =
        |name: &str| Error::errno(libc::ENODEV, format!("there is no block device {name}"));
    for name in devices {
        let is_name = !(name.is_empty() || name.contains('/') || name.starts_with('.'));
        if !is_name || !roots.block_folder(name).exists() {
            return Err(unknown(name));
        }
    }
    let disk_of_name = |name: String| {
        let number = read_value(&roots.block_folder(&name).join("dev"));
        number.map(|number| Disk { name: name.clone(), number }).ok_or_else(|| unknown(&name))
    };
    nearest_disks(roots, &visible_mounts(roots), devices).into_iter().map(disk_of_name).collect()
}

/// Why memory cannot be bounded here, None when it can: tried with an empty group of that name.
#[must_use]
pub fn unsupported_reason(roots: &Roots, name: &str) -> Option<String> {
    MemoryLimit::make(roots, name, TRIAL_LIMIT_BYTES).err().map(|error| error.message)
}

/// How the group of a run of an agent is named.
#[must_use]
pub fn group_name(sign: &str, id: u64) -> String {
    format!("{}{id}", group_prefix(sign))
}

/// Remove all groups of this agent, which ends: no further one is made. Those that are left.
#[must_use]
pub fn remove_own_groups() -> Vec<PathBuf> {
    let made = created_groups().take().unwrap_or_default();
    let mut all: Vec<PathBuf> = made.into_iter().map(|group| group.folder).collect();
    for folder in &all {
        remove_group(folder);
    }
    all.retain(|folder| folder.exists());
    all
}

/// Remove the groups of agents that are surely dead.
pub fn remove_groups_of_dead_agents(roots: &Roots) {
    for folder in groups_of_dead_agents(roots) {
        remove_group(&folder);
    }
}

/// Remove the groups of an agent that died without doing it, wherever it had made them.
pub fn remove_groups_of_agent(roots: &Roots, sign: &str) {
    for folder in groups_where(roots, |other| other == sign) {
        remove_group(&folder);
    }
}

/// The groups of agents that are surely dead.
#[must_use]
pub fn groups_of_dead_agents(roots: &Roots) -> Vec<PathBuf> {
    groups_where(roots, |sign| !is_agent_alive(sign))
}

/// Those that this user made: another may name a group as he likes, and have his own processes in it.
fn groups_where(roots: &Roots, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut tops = BTreeSet::new();
    for controller in [&MEMORY, &IO] {
        mount_hidden_hierarchy(roots, controller);
        tops.extend(
            hierarchies_with_controller(roots, controller)
                .into_iter()
                .map(|hierarchy| hierarchy.root),
        );
    }
    let all = tops.into_iter().flat_map(|top| folders_below(&top, MAX_GROUPS));
    all.filter(|folder| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let sign = name.as_deref().and_then(|name| agent_id_of_mark(name.strip_prefix("iolab-")?));
        sign.is_some_and(&is_wanted)
            && fs::symlink_metadata(folder).is_ok_and(|meta| meta.uid() == effective_uid())
    })
    .collect()
}

fn group_prefix(sign: &str) -> String {
    format!("iolab-{sign}.")
}

fn created_groups() -> MutexGuard<'static, Option<Vec<CreatedGroup>>> {
    lock(&CREATED_GROUPS)
}

fn forget_group(folder: &Path) {
    remove_group(folder);
    if let Some(made) = created_groups().as_mut() {
        made.retain(|other| other.folder != folder);
    }
}

/// One tree of control groups that has a controller, or may have it.
#[derive(Debug, PartialEq, Eq)]
struct Hierarchy {
    version: CgroupVersion,
    /// Its highest group that can be seen here.
    root: PathBuf,
    /// The group that this process is in.
    own_group: PathBuf,
}

/// Mount a tree of groups for this agent alone where none with the controller is to be seen, though
/// the kernel has one: `ip netns exec` hides all of them, as do some containers.
fn mount_hidden_hierarchy(roots: &Roots, controller: &Controller) {
    static MOUNT_LOCK: Mutex<()> = Mutex::new(());
    let _turn = lock(&MOUNT_LOCK);
    let Some((kind, options)) = missing_hierarchy(roots, controller) else { return };
    // Another request may have mounted it in the meantime, where this one did not look yet.
    if enter_or_create_namespace().is_ok() && missing_hierarchy(roots, controller).is_some() {
        let at = place_of_hierarchy(&roots.sys.join("fs/cgroup"), controller);
        let _ = mount_device(Path::new("cgroup"), &at, kind, options);
    }
}

/// Where a hierarchy is mounted: a folder of its own, since one mounted over another would hide it.
fn place_of_hierarchy(parent: &Path, controller: &Controller) -> PathBuf {
    let is_empty = fs::read_dir(parent).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        let _ = mount_device(Path::new("cgroup"), parent, c"tmpfs", c"");
    }
    // In a hierarchy itself a new folder would be a group.
    let is_hierarchy = parent.join("cgroup.procs").exists();
    let own = parent.join(controller.v1);
    let is_ours = !is_hierarchy && (own.is_dir() || fs::create_dir(&own).is_ok());
    if is_ours { own } else { parent.to_owned() }
}

/// The kind and options of the mount that would show the controller; None where it is shown, or
/// where the kernel has none.
fn missing_hierarchy(
    roots: &Roots,
    controller: &Controller,
) -> Option<(&'static CStr, &'static CStr)> {
    let groups = read_text(&roots.proc.join("self/cgroup")).unwrap_or_default();
    let is_of_one = process::cgroup_path(&groups, controller.v1).is_some();
    let is_there = !groups.is_empty();
    let shown = hierarchies_with_controller(roots, controller);
    let is_shown = |version| shown.iter().any(|hierarchy| hierarchy.version == version);
    if is_of_one {
        return (!is_shown(CgroupVersion::V1)).then_some((c"cgroup", controller.mount_options));
    }
    (is_there && !is_shown(CgroupVersion::V2)).then_some((c"cgroup2", c""))
}

/// Where a group with a controller may be made.
fn parent_for_groups(roots: &Roots, controller: &Controller) -> Option<(CgroupVersion, PathBuf)> {
    hierarchies_with_controller(roots, controller).into_iter().find_map(|hierarchy| match hierarchy
        .version
    {
        CgroupVersion::V1 => Some((CgroupVersion::V1, hierarchy.own_group)),
        // A group with processes hands no controller on, but for the root; so groups are made
        // beside the agent's own, or higher up.
        CgroupVersion::V2 => hierarchy
            .own_group
            .ancestors()
            .take_while(|group| group.starts_with(&hierarchy.root))
            .find(|group| has_word(&group.join("cgroup.subtree_control"), controller.v2))
            .map(|group| (CgroupVersion::V2, group.to_owned())),
    })
}

/// The tree of version 1 first: where there is one with it, version 2 does not have it.
fn hierarchies_with_controller(roots: &Roots, controller: &Controller) -> Vec<Hierarchy> {
    let mounts = visible_mounts(roots);
    let groups = read_text(&roots.proc.join("self/cgroup")).unwrap_or_default();
    let hierarchy = |(version, controller)| {
        let mount = cgroup_mount(&mounts, controller)?;
        let (top, path) = (mount.mount_point.clone(), process::cgroup_path(&groups, controller));
        // The highest group that can be seen, if that of this process is elsewhere.
        let below = path.and_then(|path| Path::new(path).strip_prefix(&mount.root).ok());
        let own = below.map_or_else(|| top.clone(), |below| top.join(below));
        Some(Hierarchy { version, root: top, own_group: own })
    };
    [(CgroupVersion::V1, controller.v1), (CgroupVersion::V2, "")]
        .into_iter()
        .filter_map(hierarchy)
        .collect()
}

fn has_word(file: &Path, word: &str) -> bool {
    read_text(file).is_some_and(|text| text.split_whitespace().any(|one| one == word))
}

/// Set the limits of memory of a new group.
fn set_limits(folder: &Path, version: CgroupVersion, bytes: u64) -> io::Result<()> {
    let set = |name: &str, value: &str| write_setting(&folder.join(name), value);
    // A kernel without swap lacks the files about it; then there is nothing to forbid.
    let set_if_there = |name: &str, value: &str| {
        if folder.join(name).exists() { set(name, value) } else { Ok(()) }
    };
    let limit = bytes.to_string();
    match version {
        CgroupVersion::V1 => {
            set("memory.limit_in_bytes", &limit)?;
            set_if_there("memory.memsw.limit_in_bytes", &limit)?;
            set_if_there("memory.swappiness", "0")?;
        }
        CgroupVersion::V2 => {
            set("memory.max", &limit)?;
            set_if_there("memory.swap.max", "0")?;
        }
    }
    Ok(())
}

fn used(folder: &Path, version: CgroupVersion) -> MemoryUse {
    let events =
        |folder: &Path, file: &str| number_of_key(&read_text(&folder.join(file))?, "oom_kill");
    match version {
        // Of version 1 each group counts its own kills alone; the use is that of all below it.
        CgroupVersion::V1 => MemoryUse {
            memory_peak_bytes: read_number(&folder.join("memory.max_usage_in_bytes")),
            oom_kills: folders_below(folder, MAX_GROUPS)
                .iter()
                .map(|group| events(group, "memory.oom_control"))
                .sum(),
        },
        CgroupVersion::V2 => MemoryUse {
            memory_peak_bytes: read_number(&folder.join("memory.peak")),
            oom_kills: events(folder, "memory.events"),
        },
    }
}

/// Kill what is left in a group and in those below it, and remove them, until patience ends.
pub fn remove_group(folder: &Path) {
    let deadline = Instant::now() + REMOVAL_PATIENCE;
    loop {
        let mut groups = folders_below(folder, MAX_GROUPS);
        groups.reverse(); // A group is removed after those below it.
        for group in &groups {
            if fs::remove_dir(group).is_err() {
                kill_group(group);
            }
        }
        if !folder.exists() || Instant::now() >= deadline {
            return;
        }
        thread::sleep(REMOVAL_PAUSE);
    }
}

fn kill_group(group: &Path) {
    for place in processes_in(group).into_iter().filter_map(process_info) {
        let is_in = processes_in(group).contains(&place.pid); // And not only was when it was read.
        if is_in && place.pid != own_pid() {
            kill_if_same(&place);
        }
    }
}

fn processes_in(group: &Path) -> Vec<Pid> {
    let pids = read_text(&group.join("cgroup.procs")).unwrap_or_default();
    pids.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A folder and all below it, parents first, at most so many.
fn folders_below(top: &Path, most: usize) -> Vec<PathBuf> {
    let mut folders = vec![top.to_owned()];
    let mut next = 0;
    while next < folders.len() && folders.len() < most {
        let folder = folders[next].clone();
        let inner = list_names(&folder).into_iter().map(|name| folder.join(name));
        folders.extend(inner.filter(|path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())));
        next += 1;
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    /// A machine whose mounts are folders of a trial; `{}` stands for its path.
    fn machine(mounts: &str, groups: &str) -> (TestFolder, Roots) {
        let tree = TestFolder::new();
        let at = tree.path().display().to_string();
        tree.put("proc/thread-self/mountinfo", &mounts.replace("{}", &at));
        tree.put("proc/self/cgroup", groups);
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
        (tree, roots)
    }

    const ONE: &str = "31 23 0:28 / {}/cg rw - tmpfs tmpfs rw\n\
                   32 31 0:29 / {}/cg/cpu rw - cgroup cgroup rw,cpu\n\
                   35 31 0:32 / {}/cg/memory rw - cgroup cgroup rw,memory\n\
                   41 31 0:38 / {}/cg/unified rw - cgroup2 cgroup2 rw\n";
    const TWO: &str = "31 23 0:28 / {}/cg rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn of_version_one_a_group_is_made_in_the_own() {
        let (tree, roots) = machine(ONE, "4:memory:/app/7\n1:cpu:/\n0::/\n");
        let own = tree.path().join("cg/memory/app/7");
        assert_eq!(parent_for_groups(&roots, &MEMORY), Some((CgroupVersion::V1, own)));
    }

    #[test]
    fn what_a_container_sees_of_its_group_is_the_top() {
        let mounts = "35 31 0:32 /docker/7 {}/cg/memory rw - cgroup cgroup rw,memory\n";
        let (tree, roots) = machine(mounts, "4:memory:/docker/7\n");
        assert_eq!(
            parent_for_groups(&roots, &MEMORY),
            Some((CgroupVersion::V1, tree.path().join("cg/memory/")))
        );
        let (tree, roots) = machine(mounts, "4:memory:/elsewhere\n");
        assert_eq!(
            parent_for_groups(&roots, &MEMORY),
            Some((CgroupVersion::V1, tree.path().join("cg/memory")))
        );
    }

    #[test]
    fn of_version_two_the_nearest_group_that_hands_memory_on() {
        let (tree, roots) = machine(TWO, "0::/user.slice/user-0.slice/session-5.scope\n");
        tree.put("cg/cgroup.subtree_control", "cpu memory pids\n");
        tree.put("cg/user.slice/cgroup.subtree_control", "memory pids\n");
        tree.put("cg/user.slice/user-0.slice/cgroup.subtree_control", "pids\n");
        tree.put("cg/user.slice/user-0.slice/session-5.scope/cgroup.subtree_control", "\n");
        let slice = tree.path().join("cg/user.slice");
        assert_eq!(parent_for_groups(&roots, &MEMORY), Some((CgroupVersion::V2, slice)));
    }

    #[test]
    fn a_host_without_the_controller_says_so() {
        let (tree, roots) = machine(TWO, "0::/\n");
        tree.put("cg/cgroup.subtree_control", "cpu hugetlb\n");
        let error = MemoryLimit::make(&roots, "iolab-x.1", 1 << 30).map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOTSUP");
        assert!(error.message.starts_with("cannot bound memory"), "{}", error.message);
        let (_tree, roots) = machine("", "");
        assert_eq!(
            MemoryLimit::make(&roots, "x", 1 << 30).map(|_| ()).unwrap_err().code,
            "ENOTSUP"
        );
    }

    #[test]
    fn a_bound_that_nothing_fits_in_is_a_bad_request() {
        let (_tree, roots) = machine(ONE, "4:memory:/\n");
        assert_eq!(
            MemoryLimit::make(&roots, "x", 4096).map(|_| ()).unwrap_err().code,
            "bad-request"
        );
    }

    #[test]
    fn a_group_that_cannot_be_made_names_itself() {
        let (_tree, roots) = machine(ONE, "4:memory:/nowhere\n");
        let error = MemoryLimit::make(&roots, "iolab-x.1", 1 << 30).map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOENT");
        assert!(error.message.contains("/nowhere/iolab-x.1"), "{}", error.message);
    }

    #[test]
    fn the_limits_of_each_version_are_set_and_what_is_not_there_is_not() {
        let tree = TestFolder::new();
        let files = ["memory.limit_in_bytes", "memory.swappiness", "memory.max", "memory.swap.max"];
        for file in files {
            tree.put(file, "");
        }
        set_limits(tree.path(), CgroupVersion::V1, 1 << 26).unwrap();
        set_limits(tree.path(), CgroupVersion::V2, 1 << 27).unwrap();
        let told: Vec<String> =
            files.iter().map(|file| read_text(&tree.path().join(file)).unwrap()).collect();
        assert_eq!(told, ["67108864", "0", "134217728", "0"]);
        assert!(!tree.path().join("memory.memsw.limit_in_bytes").exists());
        fs::remove_file(tree.path().join("memory.max")).unwrap();
        assert!(set_limits(tree.path(), CgroupVersion::V2, 1 << 27).is_err());
    }

    #[test]
    fn what_was_used_is_read_and_summed_as_each_version_counts() {
        let tree = TestFolder::new();
        tree.put("memory.max_usage_in_bytes", "1000\n");
        tree.put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        tree.put("inner/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        tree.put("memory.peak", "2000\n");
        tree.put("memory.events", "low 0\noom 7\noom_kill 5\noom_group_kill 0\n");
        let told = |peak, kills| MemoryUse { memory_peak_bytes: peak, oom_kills: kills };
        assert_eq!(used(tree.path(), CgroupVersion::V1), told(Some(1000), Some(3)));
        assert_eq!(used(tree.path(), CgroupVersion::V2), told(Some(2000), Some(5)));
        assert_eq!(used(Path::new("/nowhere"), CgroupVersion::V2), told(None, None));
        assert_eq!(used(Path::new("/nowhere"), CgroupVersion::V1), told(None, None));
    }

    #[test]
    fn the_groups_of_a_dead_agent_go_and_those_of_others_stay() {
        let (tree, roots) = machine(ONE, "4:memory:/\n");
        for group in [
            "memory/a/iolab-1-00000000deadbeef.7/inner",
            "memory/iolab-1-00000000deadbee0.1",
            "unified/iolab-1-00000000deadbeef.9",
        ] {
            fs::create_dir_all(tree.path().join("cg").join(group)).unwrap();
        }
        remove_groups_of_agent(&roots, "1-00000000deadbeef");
        assert_eq!(list_names(&tree.path().join("cg/memory")), ["a", "iolab-1-00000000deadbee0.1"]);
        assert!(list_names(&tree.path().join("cg/memory/a")).is_empty());
        assert!(list_names(&tree.path().join("cg/unified")).is_empty());
    }

    #[test]
    fn a_controller_that_is_hidden_is_known_by_the_own_group() {
        let of_one = "4:memory:/app\n0::/\n";
        let (_tree, roots) = machine("", of_one);
        assert_eq!(missing_hierarchy(&roots, &MEMORY), Some((c"cgroup", c"memory")));
        let (_tree, roots) = machine(ONE, of_one);
        assert_eq!(missing_hierarchy(&roots, &MEMORY), None);
        let (_tree, roots) = machine("", "0::/app\n");
        assert_eq!(missing_hierarchy(&roots, &MEMORY), Some((c"cgroup2", c"")));
        let (_tree, roots) = machine(TWO, "0::/app\n");
        assert_eq!(missing_hierarchy(&roots, &MEMORY), None);
        let (_tree, roots) = machine("", "");
        assert_eq!(missing_hierarchy(&roots, &MEMORY), None);
    }

    #[test]
    fn groups_for_io_have_their_own_tree_in_version_one() {
        let blkio = "36 31 0:33 / {}/cg/blkio rw - cgroup cgroup rw,blkio\n";
        let mounts = format!("{ONE}{blkio}");
        let (tree, roots) = machine(&mounts, "7:blkio:/app\n4:memory:/\n0::/\n");
        let own = tree.path().join("cg/blkio/app");
        assert_eq!(parent_for_groups(&roots, &IO), Some((CgroupVersion::V1, own)));
        fs::create_dir_all(tree.path().join("cg/blkio/app/iolab-1-00000000deadbeef.3")).unwrap();
        remove_groups_of_agent(&roots, "1-00000000deadbeef");
        assert!(list_names(&tree.path().join("cg/blkio/app")).is_empty());
    }

    #[test]
    fn of_version_two_the_group_must_hand_the_io_controller_on() {
        let (tree, roots) = machine(TWO, "0::/a/b\n");
        tree.put("cg/cgroup.subtree_control", "io memory\n");
        tree.put("cg/a/cgroup.subtree_control", "memory\n");
        let top = tree.path().join("cg/");
        assert_eq!(parent_for_groups(&roots, &IO), Some((CgroupVersion::V2, top)));
        let (tree, roots) = machine(TWO, "0::/\n");
        tree.put("cg/cgroup.subtree_control", "memory\n");
        let error =
            IoGroup::make(&roots, "iolab-x.1", &IoLimit::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOTSUP");
        assert!(error.message.starts_with("cannot limit I/O"), "{}", error.message);
    }

    #[test]
    fn a_limit_of_io_is_told_as_each_version_takes_it() {
        let tree = TestFolder::new();
        let rates =
            IoRates { read_iops: Some(200), write_bytes_per_s: Some(7), ..IoRates::default() };
        let disks = [Disk { name: "loop3".into(), number: "7:3".into() }];
        let files = ["read_iops", "write_iops", "read_bps", "write_bps"];
        for file in files {
            tree.put(&format!("blkio.throttle.{file}_device"), "");
        }
        limit_group(tree.path(), &disks, &rates).unwrap();
        let told = files.map(|file| {
            read_text(&tree.path().join(format!("blkio.throttle.{file}_device"))).unwrap()
        });
        assert_eq!(told, ["7:3 200", "7:3 0", "7:3 0", "7:3 7"]);
        tree.put("io.max", "");
        limit_group(tree.path(), &disks, &rates).unwrap();
        let told = read_text(&tree.path().join("io.max")).unwrap();
        assert_eq!(told, "7:3 riops=200 wiops=max rbps=max wbps=7");
    }

    #[test]
    fn a_partition_is_limited_on_its_disk_and_no_path_is_a_device() {
        let tree = TestFolder::new();
        tree.put("sys/devices/sda/dev", "8:0\n");
        tree.put("sys/devices/sda/sda1/dev", "8:1\n");
        tree.put("sys/devices/sda/sda1/partition", "1\n");
        let class = tree.path().join("sys/class/block");
        fs::create_dir_all(&class).unwrap();
        for (name, place) in [("sda", "sda"), ("sda1", "sda/sda1")] {
            std::os::unix::fs::symlink(format!("../../devices/{place}"), class.join(name)).unwrap();
        }
        let roots = Roots { proc: "/nowhere".into(), sys: tree.path().join("sys") };
        let disks = |names: &[&str]| {
            limited_disks(&roots, &names.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let sda = Disk { name: "sda".into(), number: "8:0".into() };
        for names in [&["sda"][..], &["sda1"], &["sda1", "sda"]] {
            assert_eq!(disks(names).unwrap(), std::slice::from_ref(&sda), "{names:?}");
        }
        for wrong in ["sdb", "", "..", "../block/sda"] {
            assert_eq!(disks(&["sda", wrong]).unwrap_err().code, "ENODEV", "{wrong}");
        }
    }

    #[test]
    fn a_run_without_a_group_is_not_limited() {
        let error = limit_io("iolab-x.9", &IoRates::default()).unwrap_err();
        assert_eq!(error.code, "ESRCH");
    }
}
