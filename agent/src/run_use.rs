//! What a run's process has used so far, and how long its threads waited for a processor.

use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::probe::process::{parse_schedule, parse_ticks};
use crate::roots::{Roots, names, text};
use crate::runs::Runs;
use crate::sys::process::Pid;
use crate::sys::time::{SECOND_NS, real_ns, ticks_per_second};

/// How QEMU names the threads of a guest's processors (with `debug-threads=on`).
const GUEST_PROCESSOR: &str = "CPU ";

/// Times since the process began, in nanoseconds; null where the kernel does not count them.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Use {
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
pub fn of_run(roots: &Roots, runs: &Runs, id: u64) -> Result<Use> {
    let leader = runs.leader(id)?;
    let used = of_process(roots, leader);
    runs.leader(id)?; // It was not reaped meanwhile, so the number was its own.
    Ok(used)
}

fn of_process(roots: &Roots, pid: Pid) -> Use {
    let folder = roots.proc.join(pid.to_string());
    let threads = threads(&folder.join("task"));
    let sum = |of: fn(&Thread) -> u64, all: bool| {
        let chosen = threads.as_ref()?.iter().filter(|thread| all || thread.is_vcpu);
        Some(chosen.map(of).sum())
    };
    let ticks = text(&folder.join("stat")).and_then(|text| parse_ticks(&text));
    let as_ns = |ticks: u64| ticks.saturating_mul(SECOND_NS / ticks_per_second());
    Use {
        real_ns: real_ns(),
        run_ns: sum(|thread| thread.run_ns, true),
        wait_ns: sum(|thread| thread.wait_ns, true),
        vcpu_run_ns: sum(|thread| thread.run_ns, false),
        vcpu_wait_ns: sum(|thread| thread.wait_ns, false),
        user_ns: ticks.map(|(user, _)| as_ns(user)),
        system_ns: ticks.map(|(_, system)| as_ns(system)),
    }
}

struct Thread {
    is_vcpu: bool,
    run_ns: u64,
    wait_ns: u64,
}

/// None where the kernel counts no such times. A thread that ends meanwhile is left out.
fn threads(tasks: &Path) -> Option<Vec<Thread>> {
    let read = |name: &String| {
        let folder = tasks.join(name);
        let (run_ns, wait_ns) = parse_schedule(&text(&folder.join("schedstat"))?)?;
        let is_vcpu = text(&folder.join("comm"))?.starts_with(GUEST_PROCESSOR);
        Some(Thread { is_vcpu, run_ns, wait_ns })
    };
    let found: Vec<Thread> = names(tasks).iter().filter_map(read).collect();
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;

    fn roots(tree: &Folder) -> Roots {
        Roots { proc: tree.path().to_owned(), sys: "/nowhere".into() }
    }

    #[test]
    fn a_guests_processors_are_told_apart() {
        let tree = Folder::new();
        tree.put("7/stat", "7 (qemu-system-x86) S 1 7 7 0 -1 0 0 0 0 0 300 200 0 0 20 0 4 0\n");
        for (thread, name, times) in [
            ("7", "qemu-system-x86", "100 1 5"),
            ("8", "CPU 0/TCG", "2000 20 5"),
            ("9", "CPU 1/KVM", "30000 300 5"),
        ] {
            tree.put(&format!("7/task/{thread}/comm"), &format!("{name}\n"));
            tree.put(&format!("7/task/{thread}/schedstat"), &format!("{times}\n"));
        }
        let used = of_process(&roots(&tree), 7);
        let tick_ns = SECOND_NS / ticks_per_second();
        assert_eq!((used.run_ns, used.wait_ns), (Some(32_100), Some(321)));
        assert_eq!((used.vcpu_run_ns, used.vcpu_wait_ns), (Some(32_000), Some(320)));
        assert_eq!((used.user_ns, used.system_ns), (Some(300 * tick_ns), Some(200 * tick_ns)));
    }

    #[test]
    fn what_the_kernel_does_not_count_is_null() {
        let tree = Folder::new();
        tree.put("7/task/7/comm", "qemu\n");
        let used = of_process(&roots(&tree), 7);
        assert_eq!((used.run_ns, used.vcpu_wait_ns, used.user_ns), (None, None, None));
    }
}
