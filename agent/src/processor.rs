//! What a load got of the processors: how long its threads ran, how long they waited to run, which
//! cores they may use, and how often a quota of a control group held them up.
//!
//! Threads are looked at while they live, since the kernel forgets their times when they end. What
//! cannot be read is left out, never an error.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::facts::disks::mounts;
use crate::probe::counters::parse_pressure;
use crate::probe::machine::{list_members, setting_of_status};
use crate::probe::mountinfo::tree_of;
use crate::probe::process::{
    Quota, Throttling, group_of, parse_cfs, parse_cpu_max, parse_cpu_stat, parse_schedule,
};
use crate::roots::{Roots, names, text};
use crate::sys::process::{Pid, shown_pid};
use crate::sys::time::{mono_ns, real_ns};
use crate::tree;

/// Between two looks: what a thread did since the last one is lost when it ends.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// A look that takes long is followed by a pause so many times as long: it must not be a load.
const PAUSE_FACTOR: u32 = 100;
/// Threads that are looked at; the kernel's limit for a process is mostly below.
const MAX_THREADS: usize = 20_000;
/// Processes of a load; each job of fio is one.
const MAX_PROCESSES: usize = 10_000;
/// A process with more threads is asked for the children of its first one alone.
const FORKING_THREADS: usize = 64;
/// Groups above one another; nobody nests them deeper.
const MAX_LEVELS: usize = 32;
/// A thread that ran and waited for less than this part of the busiest one is none of those that
/// make the load: one that tells, or waits for the others.
const WORKER_PART: u64 = 4;
/// Which cores a thread may use is read again after it has set itself up.
const MASK_LOOKS: u32 = 2;

/// What the load got between the first and the last look, as the final message tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Got {
    /// Between the first and the last look.
    pub watched_ns: u64,
    /// Threads that make the load.
    pub threads: usize,
    /// How long they were seen to live, all together.
    pub wall_ns: u64,
    /// How long they ran.
    pub run_ns: u64,
    /// How long they were ready to run and waited for a processor.
    pub wait_ns: u64,
    /// Cores that any of them may use.
    pub cores: Vec<u32>,
    /// Its control group, and each above it that can be seen.
    pub groups: Vec<GroupGot>,
}

/// What a control group had meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupGot {
    /// Its path, as processes here see it.
    pub path: String,
    /// Processors that its quota allows; null without a limit.
    pub quota_cores: Option<f64>,
    /// How long a period of the quota is.
    pub period_ns: u64,
    /// Periods in which it wanted to run.
    pub periods: u64,
    /// Those in which it used its quota up.
    pub throttled: u64,
    /// How long its processors then stood still, each counted for itself.
    pub throttled_ns: u64,
    /// How long any of its threads waited for a processor; null where the kernel does not count.
    pub pressure_ns: Option<u64>,
}

/// Looks at a load from its start until its end.
pub struct Watcher {
    roots: Roots,
    leader: Pid,
    begins_real_ns: u64,
    begun_ns: Option<u64>,
    last_ns: u64,
    next: Instant,
    threads: HashMap<Pid, Seen>,
    groups: Vec<(Group, Counted)>,
}

/// A thread from the first look at it to the last.
struct Seen {
    since_ns: u64,
    last_ns: u64,
    first: (u64, u64),
    last: (u64, u64),
    looks: u32,
    cores: Vec<u32>,
}

impl Seen {
    fn run_ns(&self) -> u64 {
        self.last.0.saturating_sub(self.first.0)
    }

    fn wait_ns(&self) -> u64 {
        self.last.1.saturating_sub(self.first.1)
    }

    fn demand_ns(&self) -> u64 {
        self.run_ns() + self.wait_ns()
    }
}

impl Watcher {
    /// For the threads of a process and of all that it starts, from `begins_real_ns` on.
    #[must_use]
    pub fn of(roots: Roots, leader: Pid, begins_real_ns: u64) -> Self {
        Self {
            roots,
            leader,
            begins_real_ns,
            begun_ns: None,
            last_ns: 0,
            next: Instant::now(),
            threads: HashMap::new(),
            groups: Vec::new(),
        }
    }

    /// The same for those of this process.
    #[must_use]
    pub fn of_own(begins_real_ns: u64) -> Self {
        Self::of(Roots::default(), shown_pid(), begins_real_ns)
    }

    /// How long until the next look.
    #[must_use]
    pub fn patience(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Look, if it is time to.
    pub fn look_if_due(&mut self) {
        if Instant::now() < self.next {
            return;
        }
        let begun = Instant::now();
        if real_ns() >= self.begins_real_ns {
            self.look();
        }
        self.next = Instant::now() + BETWEEN_LOOKS.max(begun.elapsed() * PAUSE_FACTOR);
    }

    fn look(&mut self) {
        let now_ns = mono_ns();
        if self.begun_ns.is_none() {
            self.begun_ns = Some(now_ns);
            let groups = groups_of(&self.roots, self.leader);
            self.groups =
                groups.into_iter().filter_map(|g| Some((g.clone(), g.count()?))).collect();
        }
        self.last_ns = now_ns;
        for pid in self.processes() {
            let tasks = self.roots.proc.join(pid.to_string()).join("task");
            for name in names(&tasks) {
                if self.threads.len() < MAX_THREADS {
                    self.look_at(&tasks.join(&name), &name, now_ns);
                }
            }
        }
    }

    fn look_at(&mut self, folder: &Path, name: &str, now_ns: u64) {
        let times = text(&folder.join("schedstat")).and_then(|text| parse_schedule(&text));
        let (Some(times), Ok(thread)) = (times, name.parse::<Pid>()) else { return };
        let seen = self.threads.entry(thread).or_insert(Seen {
            since_ns: now_ns,
            last_ns: now_ns,
            first: times,
            last: times,
            looks: 0,
            cores: Vec::new(),
        });
        (seen.last_ns, seen.last) = (now_ns, times);
        if seen.looks < MASK_LOOKS {
            seen.looks += 1;
            let status = text(&folder.join("status")).unwrap_or_default();
            let allowed = setting_of_status(&status, "Cpus_allowed_list");
            seen.cores = allowed.map(list_members).unwrap_or_default();
        }
    }

    /// The load's processes, by the kernel's own lists of children where it keeps them.
    fn processes(&self) -> Vec<Pid> {
        if self.leader == shown_pid() {
            return vec![self.leader];
        }
        let proc = &self.roots.proc;
        let children = |pid: Pid| {
            let tasks = proc.join(pid.to_string()).join("task");
            let all = names(&tasks);
            let asked = if all.len() > FORKING_THREADS { vec![pid.to_string()] } else { all };
            asked
                .iter()
                .filter_map(|task| text(&tasks.join(task).join("children")))
                .flat_map(|text| pids(&text))
                .collect::<Vec<Pid>>()
        };
        let has_lists = proc.join(format!("{0}/task/{0}/children", self.leader)).exists();
        if !has_lists {
            return tree::with_descendants(self.leader);
        }
        let mut found = vec![self.leader];
        let mut next = 0;
        while next < found.len() && found.len() < MAX_PROCESSES {
            let below = children(found[next]);
            found.extend(below);
            next += 1;
        }
        found
    }

    /// What the load got; None where nothing of it could be read, or it never began.
    #[must_use]
    pub fn got(&self) -> Option<Got> {
        let watched_ns = mono_ns() - self.begun_ns?;
        let most_ns = self.threads.values().map(Seen::demand_ns).max().unwrap_or(0);
        let lived = self.threads.values().filter(|seen| seen.last_ns > seen.since_ns);
        let workers: Vec<&Seen> =
            lived.filter(|seen| seen.demand_ns() >= most_ns / WORKER_PART).collect();
        let sum = |of: fn(&Seen) -> u64| workers.iter().map(|&seen| of(seen)).sum();
        let cores: BTreeSet<u32> = workers.iter().flat_map(|seen| seen.cores.clone()).collect();
        let groups: Vec<GroupGot> =
            self.groups.iter().filter_map(|(group, before)| group.got_since(before)).collect();
        if workers.is_empty() && groups.is_empty() {
            return None;
        }
        Some(Got {
            watched_ns,
            threads: workers.len(),
            wall_ns: sum(|seen| seen.last_ns - seen.since_ns),
            run_ns: sum(Seen::run_ns),
            wait_ns: sum(Seen::wait_ns),
            cores: cores.into_iter().collect(),
            groups,
        })
    }
}

fn pids(text: &str) -> Vec<Pid> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Processors that the quotas of this process allow, the least of all groups above it; None
/// without a limit.
#[must_use]
pub fn own_quota_cores(roots: &Roots) -> Option<f64> {
    let groups = groups_of(roots, shown_pid());
    let limits = groups.iter().filter_map(|group| quota_cores(group.quota()?));
    limits.min_by(f64::total_cmp)
}

fn quota_cores(quota: Quota) -> Option<f64> {
    quota.quota_ns.map(|quota_ns| quota_ns as f64 / quota.period_ns as f64)
}

/// A control group that may limit processor time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    path: String,
    is_two: bool,
}

/// What a group had up to a moment.
#[derive(Debug, Clone, Copy)]
struct Counted {
    throttling: Throttling,
    pressure_ns: Option<u64>,
}

impl Group {
    fn quota(&self) -> Option<Quota> {
        let read = |name: &str| text(&self.folder.join(name));
        if self.is_two {
            return parse_cpu_max(&read("cpu.max")?);
        }
        parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
    }

    /// None for one without a controller of processors, as is the root of version 2.
    fn count(&self) -> Option<Counted> {
        let throttling = parse_cpu_stat(&text(&self.folder.join("cpu.stat"))?)?;
        let pressure = text(&self.folder.join("cpu.pressure"));
        let pressure_ns = pressure.and_then(|text| parse_pressure(&text).some_ns);
        Some(Counted { throttling, pressure_ns })
    }

    fn got_since(&self, before: &Counted) -> Option<GroupGot> {
        let (now, quota) = (self.count()?, self.quota());
        let (then, throttling) = (before.throttling, now.throttling);
        let pressure = now.pressure_ns.zip(before.pressure_ns);
        Some(GroupGot {
            path: self.path.clone(),
            quota_cores: quota.and_then(quota_cores),
            period_ns: quota.map_or(0, |quota| quota.period_ns),
            periods: throttling.periods.saturating_sub(then.periods),
            throttled: throttling.throttled.saturating_sub(then.throttled),
            throttled_ns: throttling.throttled_ns.saturating_sub(then.throttled_ns),
            pressure_ns: pressure.map(|(now, then)| now.saturating_sub(then)),
        })
    }
}

/// The group of a process and all above it up to the highest that can be seen, its own first.
///
/// Of the tree of version 1 where that has the controller, else of version 2.
fn groups_of(roots: &Roots, pid: Pid) -> Vec<Group> {
    let own = text(&roots.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
    let mounts = mounts(roots);
    let found = ["cpu", ""].iter().find_map(|name| Some((*name, group_of(&own, name)?)));
    let Some((controller, path)) = found else { return Vec::new() };
    let Some(mount) = tree_of(&mounts, controller) else { return Vec::new() };
    // A path outside of what is mounted is that of another name space: only the top is known then.
    let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let group = |below: &Path| Group {
        folder: mount.mount_point.join(below),
        path: format!("/{}", below.display()),
        is_two: controller.is_empty(),
    };
    below.ancestors().take(MAX_LEVELS).map(group).collect()
}

#[cfg(test)]
#[path = "processor_tests.rs"]
mod tests;
