//! The table of runs: who waits, who lives, who ended. The only place where children are started
//! and reaped, so that none is reaped before it is known.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::guard;
use crate::probe::process::{parse_schedstat, parse_ticks};
use crate::roots::{Roots, list_names, read_text};
use crate::sys::process::{self, Pid, ReapedChild};
use crate::sys::thread::{lock, wait_timeout};
use crate::sys::time::{self, SECOND_NS, real_ns, ticks_per_second};
use crate::tree::{self, RunProcesses};
use crate::wire::MAX_ID;

/// Runs at the same time, each with a thread and two pipes: a host's engines are a handful, but
/// each guest of a node is a run as well.
pub const MAX_RUNS: usize = 256;
/// Places beyond these that programs of the agent's own have: what undoes an event finds one, also
/// where programs that a controller started hang.
pub const OWN_RUNS: usize = 64;
/// The last part of a wait for a start is slept on the clock itself, for precision.
const CLOCK_SLEEP_NS: u64 = 2_000_000;
/// How long a wait may trust the clock: a step of it is noticed at the next look.
const MAX_CLOCK_WAIT: Duration = Duration::from_millis(200);

/// How a run ended.
#[derive(Debug, Clone, Copy)]
pub struct RunExit {
    /// What the kernel told when the leader was reaped.
    pub reaped: ReapedChild,
    /// When that was.
    pub real_ns: u64,
    /// Ended by its wall limit.
    pub timed_out: bool,
}

/// A run that was started: the process with its pipes, and what `poll` sees when it ended.
pub struct StartedRun {
    /// The process; never waited for through this handle.
    pub child: Child,
    /// Readable once `exit` gives an answer.
    pub ended: Arc<OwnedFd>,
    /// Its processes.
    pub family: RunProcesses,
    /// When it was started.
    pub real_ns: u64,
}

/// What comes of the start of a run.
pub enum RunStart {
    /// Its process was started.
    Started(StartedRun),
    /// It was not: this signal came before.
    Cancelled(i32),
}

/// All runs of this agent, by their request's id.
#[derive(Default)]
pub struct Runs {
    table: Mutex<RunTable>,
    changed: Condvar,
}

#[derive(Default)]
struct RunTable {
    is_closed: bool,
    entries: HashMap<u64, RunEntry>,
}

enum RunEntry {
    Waiting { cancelled_by: Option<i32> },
    Alive { family: RunProcesses, ended: Arc<OwnedFd>, deadline: Option<Instant>, timed_out: bool },
    Ended(RunExit),
}

impl RunTable {
    /// The signal that came for a run before its start.
    fn cancelled_by(&self, id: u64) -> Option<i32> {
        match self.entries.get(&id) {
            Some(RunEntry::Waiting { cancelled_by }) => *cancelled_by,
            _ => None,
        }
    }
}

impl Runs {
    /// Take a place for a run; from now on signals for it are heard.
    pub fn reserve(&self, id: u64) -> Result<()> {
        let mut table = self.lock();
        let count = table.entries.keys().filter(|&&other| is_own(other) == is_own(id)).count();
        let limit = if is_own(id) { OWN_RUNS } else { MAX_RUNS };
        if count >= limit {
            return Err(Error::busy(format!("{limit} runs are under way, the most there may be")));
        }
        if table.entries.contains_key(&id) {
            return Err(Error::bad_request(format!("a run with id {id} is under way")));
        }
        table.entries.insert(id, RunEntry::Waiting { cancelled_by: None });
        Ok(())
    }

    /// Give the place back.
    pub fn release(&self, id: u64) {
        self.lock().entries.remove(&id);
    }

    /// Wait until the real clock shows `at_ns`; tells the signal that cancelled the run meanwhile.
    pub fn wait_for_start(&self, id: u64, at_ns: u64) -> Option<i32> {
        let mut table = self.lock();
        loop {
            if let Some(signal) = table.cancelled_by(id) {
                return Some(signal);
            }
            let left_ns = at_ns.saturating_sub(time::real_ns());
            if left_ns <= CLOCK_SLEEP_NS {
                break;
            }
            let patience = Duration::from_nanos(left_ns - CLOCK_SLEEP_NS).min(MAX_CLOCK_WAIT);
            table = wait_timeout(&self.changed, table, patience);
        }
        drop(table);
        time::sleep_until_real(at_ns);
        None
    }

    /// Start the process of a reserved run; `mark` is the setting in its environment that no other
    /// run's processes have. One `of_host` is started in the agent's own PID namespace. None is
    /// started once a signal was taken for the run.
    pub fn start(
        &self,
        id: u64,
        command: &mut Command,
        mark: String,
        wall_limit: Option<Duration>,
        of_host: bool,
    ) -> io::Result<RunStart> {
        let ended = Arc::new(process::new_event()?);
        let mut table = self.lock();
        if let Some(signal) = table.cancelled_by(id) {
            return Ok(RunStart::Cancelled(signal));
        }
        if table.is_closed {
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        let real_ns = time::real_ns();
        let child = match guard::run_namespace().filter(|_| !of_host) {
            Some(namespace) => namespace.start(|| command.spawn())?,
            None => command.spawn()?,
        };
        let family = RunProcesses { leader: child.id() as Pid, mark };
        let entry = RunEntry::Alive {
            family: family.clone(),
            ended: Arc::clone(&ended),
            deadline: wall_limit.and_then(|limit| Instant::now().checked_add(limit)),
            timed_out: false,
        };
        table.entries.insert(id, entry);
        Ok(RunStart::Started(StartedRun { child, ended, family, real_ns }))
    }

    /// Reap every child that ended; those that no run knows are adopted orphans. Whether the guard
    /// was among them, without whom no run can be started.
    #[must_use]
    pub fn reap(&self) -> bool {
        let mut table = self.lock();
        let mut guard_ended = false;
        while let Some(reaped) = process::reap() {
            guard_ended |= Some(reaped.pid) == guard::guard_pid();
            let known = table.entries.values_mut().find(
                |entry| matches!(entry, RunEntry::Alive { family, .. } if family.leader == reaped.pid),
            );
            let Some(entry) = known else { continue };
            let RunEntry::Alive { ended, timed_out, .. } = entry else { continue };
            let (ended, timed_out) = (Arc::clone(ended), *timed_out);
            *entry = RunEntry::Ended(RunExit { reaped, real_ns: time::real_ns(), timed_out });
            process::signal_event(&ended);
        }
        guard_ended
    }

    /// Kill the runs whose wall limit has passed.
    pub fn enforce_limits(&self) {
        let now = Instant::now();
        let mut overdue = Vec::new();
        for entry in self.lock().entries.values_mut() {
            if let RunEntry::Alive { family, deadline: Some(deadline), timed_out, .. } = entry {
                if *deadline <= now {
                    *timed_out = true;
                    overdue.push(family.clone());
                }
            }
        }
        for family in &overdue {
            tree::kill_run_once(family); // Those that are left are struck at the next look.
        }
    }

    /// How a run ended; None while it lives.
    pub fn exit(&self, id: u64) -> Option<RunExit> {
        match self.lock().entries.get(&id) {
            Some(RunEntry::Ended(exit)) => Some(*exit),
            _ => None,
        }
    }

    /// The process of a run that lives; an error when it waits for its start or has ended.
    pub fn leader(&self, id: u64) -> Result<Pid> {
        match self.lock().entries.get(&id) {
            None => Err(Error::bad_request(format!("no run with id {id} is under way"))),
            Some(RunEntry::Alive { family, .. }) => Ok(family.leader),
            Some(RunEntry::Waiting { .. }) => {
                Err(Error::errno(libc::ESRCH, format!("run {id} has not started")))
            }
            Some(RunEntry::Ended(_)) => {
                Err(Error::errno(libc::ESRCH, format!("run {id} has ended")))
            }
        }
    }

    /// Send a signal: KILL to the whole tree, others to the leader. One that ended is fine.
    pub fn signal(&self, id: u64, signal: i32) -> Result<()> {
        let mut table = self.lock();
        match table.entries.get_mut(&id) {
            None => Err(Error::bad_request(format!("no run with id {id} is under way"))),
            Some(RunEntry::Waiting { cancelled_by }) => {
                *cancelled_by = Some(signal);
                self.changed.notify_all();
                Ok(())
            }
            // The table is locked, so the leader is not reaped and its number is still its own.
            Some(RunEntry::Alive { family, .. }) if signal != libc::SIGKILL => {
                process::kill(family.leader, signal);
                Ok(())
            }
            Some(RunEntry::Alive { family, .. }) => {
                let family = family.clone();
                drop(table);
                tree::kill_run(&family);
                Ok(())
            }
            Some(RunEntry::Ended(_)) => Ok(()),
        }
    }

    /// Start nothing from now on.
    pub fn refuse_new(&self) {
        self.lock().is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, RunTable> {
        lock(&self.table)
    }
}

/// Whether a run is of the agent itself, by its id.
fn is_own(id: u64) -> bool {
    id > MAX_ID
}

/// How QEMU names the threads of a guest's processors (with `debug-threads=on`).
const GUEST_PROCESSOR: &str = "CPU ";

/// Times since the process began, in nanoseconds; null where the kernel does not count them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct RunUse {
    /// When this was read.
    pub real_ns: u64,
    /// Its threads that live now, on a processor.
    pub run_ns: Option<u64>,
    /// The same, ready but without a processor.
    pub wait_ns: Option<u64>,
    /// The threads of a guest's processors alone.
    pub vcpu_run_ns: Option<u64>,
    /// The same, ready but without a processor.
    pub vcpu_wait_ns: Option<u64>,
    /// The whole process in its own code, in ticks of the kernel.
    pub user_ns: Option<u64>,
    /// The same in the kernel.
    pub system_ns: Option<u64>,
}

/// What the leader of a run has used; an error when it does not live.
pub fn use_of_run(roots: &Roots, runs: &Runs, id: u64) -> Result<RunUse> {
    let leader = runs.leader(id)?;
    let used = use_of_process(roots, leader);
    runs.leader(id)?; // It was not reaped meanwhile, so the number was its own.
    Ok(used)
}

fn use_of_process(roots: &Roots, pid: Pid) -> RunUse {
    let folder = roots.proc.join(pid.to_string());
    let threads = thread_times(&folder.join("task"));
    let sum = |of: fn(&ThreadTimes) -> u64, all: bool| {
        let chosen = threads.as_ref()?.iter().filter(|thread| all || thread.is_vcpu);
        Some(chosen.map(of).sum())
    };
    let ticks = read_text(&folder.join("stat")).and_then(|text| parse_ticks(&text));
    let as_ns = |ticks: u64| ticks.saturating_mul(SECOND_NS / ticks_per_second());
    RunUse {
        real_ns: real_ns(),
        run_ns: sum(|thread| thread.run_ns, true),
        wait_ns: sum(|thread| thread.wait_ns, true),
        vcpu_run_ns: sum(|thread| thread.run_ns, false),
        vcpu_wait_ns: sum(|thread| thread.wait_ns, false),
        user_ns: ticks.map(|(user, _)| as_ns(user)),
        system_ns: ticks.map(|(_, system)| as_ns(system)),
    }
}

struct ThreadTimes {
    is_vcpu: bool,
    run_ns: u64,
    wait_ns: u64,
}

/// None where the kernel counts no such times. A thread that ends meanwhile is left out.
fn thread_times(tasks: &Path) -> Option<Vec<ThreadTimes>> {
    let read = |name: &String| {
        let folder = tasks.join(name);
        let (run_ns, wait_ns) = parse_schedstat(&read_text(&folder.join("schedstat"))?)?;
        let is_vcpu = read_text(&folder.join("comm"))?.starts_with(GUEST_PROCESSOR);
        Some(ThreadTimes { is_vcpu, run_ns, wait_ns })
    };
    let found: Vec<ThreadTimes> = list_names(tasks).iter().filter_map(read).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn roots(tree: &TestFolder) -> Roots {
        Roots { proc: tree.path().to_owned(), sys: "/nowhere".into() }
    }

    #[test]
    fn runs_of_a_controller_leave_places_for_the_agents_own() {
        let runs = Runs::default();
        for id in 1..=MAX_RUNS as u64 {
            runs.reserve(id).unwrap();
        }
        assert_eq!(runs.reserve(MAX_RUNS as u64 + 1).unwrap_err().code, "busy");
        for id in 1..=OWN_RUNS as u64 {
            runs.reserve(MAX_ID + id).unwrap();
        }
        assert_eq!(runs.reserve(MAX_ID + OWN_RUNS as u64 + 1).unwrap_err().code, "busy");
        runs.release(1);
        runs.reserve(1).unwrap();
    }

    #[test]
    fn a_signal_between_the_request_and_the_start_of_a_run_is_heeded() {
        let runs = Runs::default();
        for (id, signal) in [(1, libc::SIGINT), (2, libc::SIGKILL)] {
            runs.reserve(id).unwrap();
            runs.signal(id, signal).unwrap();
            let mut command = Command::new("/no/such/program");
            let start = runs.start(id, &mut command, String::new(), None, false);
            assert!(matches!(start, Ok(RunStart::Cancelled(by)) if by == signal));
        }
        runs.reserve(3).unwrap();
        let mut command = Command::new("/bin/true");
        let start = runs.start(3, &mut command, String::new(), None, false);
        let Ok(RunStart::Started(mut started)) = start else { panic!("it was not started") };
        assert!(started.child.wait().unwrap().success());
    }

    #[test]
    fn a_guests_processors_are_told_apart() {
        let tree = TestFolder::new();
        tree.put("7/stat", "7 (qemu-system-x86) S 1 7 7 0 -1 0 0 0 0 0 300 200 0 0 20 0 4 0\n");
        for (thread, name, times) in [
            ("7", "qemu-system-x86", "100 1 5"),
            ("8", "CPU 0/TCG", "2000 20 5"),
            ("9", "CPU 1/KVM", "30000 300 5"),
        ] {
            tree.put(&format!("7/task/{thread}/comm"), &format!("{name}\n"));
            tree.put(&format!("7/task/{thread}/schedstat"), &format!("{times}\n"));
        }
        let used = use_of_process(&roots(&tree), 7);
        let tick_ns = SECOND_NS / ticks_per_second();
        assert_eq!((used.run_ns, used.wait_ns), (Some(32_100), Some(321)));
        assert_eq!((used.vcpu_run_ns, used.vcpu_wait_ns), (Some(32_000), Some(320)));
        assert_eq!((used.user_ns, used.system_ns), (Some(300 * tick_ns), Some(200 * tick_ns)));
    }

    #[test]
    fn what_the_kernel_does_not_count_is_null() {
        let tree = TestFolder::new();
        tree.put("7/task/7/comm", "qemu\n");
        let used = use_of_process(&roots(&tree), 7);
        assert_eq!((used.run_ns, used.vcpu_wait_ns, used.user_ns), (None, None, None));
    }
}
