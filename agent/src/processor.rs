//! What a load got of the processors: how long its threads ran, how long they waited to run, which
//! cores they may use, how often a quota of a control group held them up, and when they stood still.
//!
//! Threads are looked at while they live, since the kernel forgets their times when they end. What
//! cannot be read is left out, never an error.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::facts::disks::visible_mounts;
use crate::libraries::{LibraryUse, LibraryWatcher};
use crate::load_halt::{
    AgentGap, Cause, FreezerGroups, LoadHalt, Pulse, Span, ThreadHalts, WatchedInterval,
    merge_spans,
};
use crate::probe::counters::parse_pressure;
use crate::probe::machine::{parse_cpu_list, status_value};
use crate::probe::mountinfo::cgroup_mount;
use crate::probe::process::{
    CpuQuota, Throttling, cgroup_path, parse_cfs, parse_cpu_max, parse_cpu_stat, parse_schedstat,
    parse_state,
};
use crate::roots::{Roots, list_names, read_text};
use crate::sys::process::{Pid, pid_in_proc};
use crate::sys::time::{boot_ns, mono_ns, real_ns, thread_cpu_ns};
use crate::tree;

/// Between two looks: what a thread did since the last one is lost when it ends, and a halt
/// between them is not seen.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// A look is followed by a pause so many times as long as the processor time it took: it must not
/// be a load. Time without a processor is not counted: a busy host needs looks most of all.
const PAUSE_FACTOR: u32 = 100;
/// Threads that are looked at; the kernel's limit for a process is mostly below.
const MAX_THREADS: usize = 20_000;
/// Processes of a load; each job of fio is one.
const MAX_PROCESSES: usize = 10_000;
/// A process with more threads is asked for the children of its first one alone.
const FORKING_THREADS: usize = 64;
/// Groups above one another; nobody nests them deeper.
const MAX_GROUP_LEVELS: usize = 32;
/// A thread that ran and waited for less than this part of the busiest one is none of those that
/// make the load: one that tells, or waits for the others.
const WORKER_DIVISOR: u64 = 4;
/// A host that slept for less than this between two looks had its clocks read at two moments.
const MIN_SUSPEND_NS: u64 = 10_000_000;
/// Which cores a thread may use is read again after it has set itself up.
const MASK_LOOKS: u32 = 2;

/// What the load got between the first and the last look, as the final message tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessorUse {
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
    pub groups: Vec<GroupUse>,
    /// When any of these threads stood still, in the order of time.
    pub load_halts: Vec<LoadHalt>,
}

/// What a control group had meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupUse {
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
pub struct ProcessorWatcher {
    roots: Roots,
    leader: Pid,
    begins_real_ns: u64,
    first_look_ns: Option<u64>,
    last_look_ns: u64,
    next_look: Instant,
    threads: HashMap<Pid, ThreadHistory>,
    groups: Vec<(ControlGroup, GroupCounters)>,
    freezers: FreezerGroups,
    pulse: Option<Pulse>,
    agent_gaps: Vec<AgentGap>,
    unmatched_gaps: Vec<Span>,
    last_interval: Option<WatchedInterval>,
    slept_ns: u64,
    sleeps: Vec<Span>,
    libraries: LibraryWatcher,
}

/// A thread from the first look at it to the last.
struct ThreadHistory {
    first_seen_ns: u64,
    last_seen_ns: u64,
    first_times: (u64, u64),
    last_times: (u64, u64),
    looks: u32,
    cores: Vec<u32>,
    halts: ThreadHalts,
}

impl ThreadHistory {
    fn run_ns(&self) -> u64 {
        self.last_times.0.saturating_sub(self.first_times.0)
    }

    fn wait_ns(&self) -> u64 {
        self.last_times.1.saturating_sub(self.first_times.1)
    }

    fn lived_ns(&self) -> u64 {
        self.last_seen_ns - self.first_seen_ns
    }

    fn demand_ns(&self) -> u64 {
        self.run_ns() + self.wait_ns()
    }

    /// What it would have used, had it never been stopped.
    fn usual_demand_ns(&self) -> u64 {
        let lived_ns = self.lived_ns();
        let free_ns = lived_ns.saturating_sub(self.halts.length_ns()).max(1);
        (self.demand_ns() as f64 * (lived_ns as f64 / free_ns as f64).max(1.0)) as u64
    }
}

impl ProcessorWatcher {
    /// For the threads of a process and of all that it starts, from `begins_real_ns` on.
    #[must_use]
    pub fn for_process(roots: Roots, leader: Pid, begins_real_ns: u64) -> Self {
        Self {
            roots,
            leader,
            begins_real_ns,
            first_look_ns: None,
            last_look_ns: 0,
            next_look: Instant::now(),
            threads: HashMap::new(),
            groups: Vec::new(),
            freezers: FreezerGroups::default(),
            pulse: None,
            agent_gaps: Vec::new(),
            unmatched_gaps: Vec::new(),
            last_interval: None,
            slept_ns: 0,
            sleeps: Vec::new(),
            libraries: LibraryWatcher::default(),
        }
    }

    /// The same for those of this process.
    #[must_use]
    pub fn for_own_process(begins_real_ns: u64) -> Self {
        Self::for_process(Roots::default(), pid_in_proc(), begins_real_ns)
    }

    /// How long until the next look.
    #[must_use]
    pub fn time_until_look(&self) -> Duration {
        self.next_look.saturating_duration_since(Instant::now())
    }

    /// Look, if it is time to.
    pub fn look_if_due(&mut self) {
        if Instant::now() < self.next_look {
            return;
        }
        let begun_ns = thread_cpu_ns();
        let processes =
            if real_ns() >= self.begins_real_ns { self.look_at_processes() } else { Vec::new() };
        let spent = Duration::from_nanos(thread_cpu_ns().saturating_sub(begun_ns));
        self.next_look = Instant::now() + LOOK_INTERVAL.max(spent * PAUSE_FACTOR);
        if !processes.is_empty() {
            // Three times a run, and long: after it the threads must be looked at as before.
            self.libraries.look_if_due(&self.roots, &processes);
        }
    }

    /// Returns the load's processes.
    fn look_at_processes(&mut self) -> Vec<Pid> {
        let now_ns = mono_ns();
        let slept_ns = boot_ns().saturating_sub(now_ns);
        if self.first_look_ns.is_none() {
            self.first_look_ns = Some(now_ns);
            (self.last_look_ns, self.slept_ns) = (now_ns, slept_ns);
            self.pulse = Pulse::start();
            self.freezers = FreezerGroups::of(&self.roots);
            let groups = groups_of(&self.roots, self.leader, "cpu");
            self.groups =
                groups.into_iter().filter_map(|g| Some((g.clone(), g.read_counters()?))).collect();
        }
        let before_ns = std::mem::replace(&mut self.last_look_ns, now_ns);
        let frozen = self.freezers.have_frozen(&self.roots, self.leader);
        let frozen = frozen.then_some(Cause::Frozen);
        let mut demand_ns = 0;
        let processes = self.processes();
        for &pid in &processes {
            let tasks = self.roots.proc.join(pid.to_string()).join("task");
            for name in list_names(&tasks) {
                if self.threads.len() < MAX_THREADS {
                    let looks = [before_ns, now_ns];
                    demand_ns += self.look_at_thread(&tasks.join(&name), &name, looks, frozen);
                }
            }
        }
        self.note_agent_gaps(before_ns, now_ns, demand_ns);
        let since_ns = slept_ns.saturating_sub(std::mem::replace(&mut self.slept_ns, slept_ns));
        if since_ns >= MIN_SUSPEND_NS {
            // The clock stood meanwhile: the sleep is told as that which led up to this look.
            let from_ns = now_ns.saturating_sub(since_ns);
            self.sleeps.push(Span { cause: Cause::Suspended, from_ns, to_ns: now_ns });
        }
        processes
    }

    /// When the agent stood, each gap with what the load used between the looks around it.
    ///
    /// A gap may be told one look late: after it, the pulse and the looks wake up in any order.
    fn note_agent_gaps(&mut self, from_ns: u64, to_ns: u64, demand_ns: u64) {
        self.unmatched_gaps.extend(self.pulse.as_ref().map(Pulse::take).unwrap_or_default());
        let interval = WatchedInterval { from_ns, to_ns, demand_ns };
        let intervals = [self.last_interval.replace(interval), Some(interval)];
        let around =
            |span: &Span| intervals.iter().flatten().copied().find(|one| one.covers_most_of(span));
        let gap = |&span: &Span| Some(AgentGap { span, interval: around(&span)? });
        self.agent_gaps.extend(self.unmatched_gaps.iter().filter_map(gap));
        self.unmatched_gaps.retain(|span| around(span).is_none() && span.to_ns >= from_ns);
    }

    /// Returns how long the thread ran and waited to run since the last look.
    fn look_at_thread(
        &mut self,
        folder: &Path,
        name: &str,
        [before_ns, now_ns]: [u64; 2],
        frozen: Option<Cause>,
    ) -> u64 {
        let times = read_text(&folder.join("schedstat")).and_then(|text| parse_schedstat(&text));
        let (Some(times), Ok(thread)) = (times, name.parse::<Pid>()) else { return 0 };
        let seen = self.threads.entry(thread).or_insert(ThreadHistory {
            first_seen_ns: now_ns,
            last_seen_ns: now_ns,
            first_times: times,
            last_times: times,
            looks: 0,
            cores: Vec::new(),
            halts: ThreadHalts::default(),
        });
        let earlier_ns = seen.demand_ns();
        (seen.last_seen_ns, seen.last_times) = (now_ns, times);
        if seen.looks < MASK_LOOKS {
            seen.looks += 1;
            let status = read_text(&folder.join("status")).unwrap_or_default();
            let allowed = status_value(&status, "Cpus_allowed_list");
            seen.cores = allowed.map(parse_cpu_list).unwrap_or_default();
        }
        let state = || read_text(&folder.join("stat")).and_then(|text| parse_state(&text));
        let cause = frozen.or_else(|| Cause::of_state(state()?));
        seen.halts.record_look(cause, before_ns.max(seen.first_seen_ns), now_ns);
        seen.demand_ns() - earlier_ns
    }

    /// The load's processes, by the kernel's own lists of children where it keeps them.
    fn processes(&self) -> Vec<Pid> {
        if self.leader == pid_in_proc() {
            return vec![self.leader];
        }
        let proc = &self.roots.proc;
        let children = |pid: Pid| {
            let tasks = proc.join(pid.to_string()).join("task");
            let all = list_names(&tasks);
            let asked = if all.len() > FORKING_THREADS { vec![pid.to_string()] } else { all };
            asked
                .iter()
                .filter_map(|task| read_text(&tasks.join(task).join("children")))
                .flat_map(|text| parse_pids(&text))
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

    /// Which libraries the load's processes have; None where none of them could be read.
    #[must_use]
    pub fn libraries(&self) -> Option<LibraryUse> {
        self.libraries.result()
    }

    /// What the load got; None where nothing of it could be read, or it never began.
    #[must_use]
    pub fn result(&self) -> Option<ProcessorUse> {
        let watched_ns = mono_ns() - self.first_look_ns?;
        let most_ns = self.threads.values().map(ThreadHistory::usual_demand_ns).max().unwrap_or(0);
        let lived = self.threads.values().filter(|seen| seen.lived_ns() > 0);
        let workers: Vec<&ThreadHistory> =
            lived.filter(|seen| seen.usual_demand_ns() >= most_ns / WORKER_DIVISOR).collect();
        let sum = |of: fn(&ThreadHistory) -> u64| workers.iter().map(|&seen| of(seen)).sum();
        let cores: BTreeSet<u32> = workers.iter().flat_map(|seen| seen.cores.clone()).collect();
        let groups: Vec<GroupUse> =
            self.groups.iter().filter_map(|(group, before)| group.use_since(before)).collect();
        if workers.is_empty() && groups.is_empty() {
            return None;
        }
        Some(ProcessorUse {
            watched_ns,
            threads: workers.len(),
            wall_ns: sum(ThreadHistory::lived_ns),
            run_ns: sum(ThreadHistory::run_ns),
            wait_ns: sum(ThreadHistory::wait_ns),
            cores: cores.into_iter().collect(),
            groups,
            load_halts: self.load_halts(&workers),
        })
    }

    fn load_halts(&self, workers: &[&ThreadHistory]) -> Vec<LoadHalt> {
        let of_threads = workers.iter().flat_map(|seen| seen.halts.spans()).map(|span| (span, 1));
        let all = workers.len().max(1) as u64;
        let of_host = self.sleeps.iter().copied().chain(self.shared_halts());
        merge_spans(of_threads.chain(of_host.map(|span| (span, all))))
    }

    /// When the load stood together with the agent.
    fn shared_halts(&self) -> Vec<Span> {
        if self.leader == pid_in_proc() {
            // Nothing of a process runs while it is stopped: its load does not, either.
            let rest = self.pulse.as_ref().map(Pulse::take).unwrap_or_default();
            return self.agent_gaps.iter().map(|missed| missed.span).chain(rest).collect();
        }
        let (mut watched_ns, mut demand_ns) =
            (self.last_look_ns - self.first_look_ns.unwrap_or(0), 0);
        demand_ns += self.threads.values().map(ThreadHistory::demand_ns).sum::<u64>();
        for missed in &self.agent_gaps {
            watched_ns = watched_ns.saturating_sub(missed.interval.length_ns());
            demand_ns = demand_ns.saturating_sub(missed.interval.demand_ns);
        }
        let usual = demand_ns as f64 / watched_ns.max(1) as f64;
        let hits = self.agent_gaps.iter().filter(|missed| missed.stopped_load(usual));
        hits.map(|missed| missed.span).collect()
    }
}

fn parse_pids(text: &str) -> Vec<Pid> {
    text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Processors that the quotas of this process allow, the least of all groups above it; None
/// without a limit.
#[must_use]
pub fn own_quota_cores(roots: &Roots) -> Option<f64> {
    let groups = groups_of(roots, pid_in_proc(), "cpu");
    let limits = groups.iter().filter_map(|group| cores_of_quota(group.quota()?));
    limits.min_by(f64::total_cmp)
}

fn cores_of_quota(quota: CpuQuota) -> Option<f64> {
    quota.quota_ns.map(|quota_ns| quota_ns as f64 / quota.period_ns as f64)
}

/// A control group that may limit what its processes use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    /// Where its files are.
    pub folder: PathBuf,
    /// Its path, as processes here see it.
    pub path: String,
    /// Whether it is of the tree of version 2.
    pub is_v2: bool,
}

/// What a group had up to a moment.
#[derive(Debug, Clone, Copy)]
struct GroupCounters {
    throttling: Throttling,
    pressure_ns: Option<u64>,
}

impl ControlGroup {
    fn quota(&self) -> Option<CpuQuota> {
        let read = |name: &str| read_text(&self.folder.join(name));
        if self.is_v2 {
            return parse_cpu_max(&read("cpu.max")?);
        }
        parse_cfs(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
    }

    /// None for one without a controller of processors, as is the root of version 2.
    fn read_counters(&self) -> Option<GroupCounters> {
        let throttling = parse_cpu_stat(&read_text(&self.folder.join("cpu.stat"))?)?;
        let pressure = read_text(&self.folder.join("cpu.pressure"));
        let pressure_ns = pressure.and_then(|text| parse_pressure(&text).some_ns);
        Some(GroupCounters { throttling, pressure_ns })
    }

    fn use_since(&self, before: &GroupCounters) -> Option<GroupUse> {
        let (now, quota) = (self.read_counters()?, self.quota());
        let (then, throttling) = (before.throttling, now.throttling);
        let pressure = now.pressure_ns.zip(before.pressure_ns);
        Some(GroupUse {
            path: self.path.clone(),
            quota_cores: quota.and_then(cores_of_quota),
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
#[must_use]
pub fn groups_of(roots: &Roots, pid: Pid, controller: &str) -> Vec<ControlGroup> {
    let own = read_text(&roots.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
    let mounts = visible_mounts(roots);
    let found =
        [controller, ""].into_iter().find_map(|name| Some((name, cgroup_path(&own, name)?)));
    let Some((controller, path)) = found else { return Vec::new() };
    let Some(mount) = cgroup_mount(&mounts, controller) else { return Vec::new() };
    // A path outside of what is mounted is that of another name space: only the top is known then.
    let below = Path::new(path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let group = |below: &Path| ControlGroup {
        folder: mount.mount_point.join(below),
        path: format!("/{}", below.display()),
        is_v2: controller.is_empty(),
    };
    below.ancestors().take(MAX_GROUP_LEVELS).map(group).collect()
}

#[cfg(test)]
#[path = "processor_tests.rs"]
mod tests;
