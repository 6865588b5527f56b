//! When a load stood still for a reason that is not its storage: its threads were stopped by a
//! signal or a debugger, its control group was frozen, or the whole host stood.
//!
//! A thread that waits for storage sleeps (`S`, `D`), and one without a processor is ready (`R`):
//! neither is a halt. Where the host stood nobody could look; the load then had next to no
//! processor time, which it would have had beside an agent that alone was stopped.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

use serde::Serialize;

use crate::facts::disks::visible_mounts;
use crate::probe::mountinfo::{Mount, cgroup_mount};
use crate::probe::process::{cgroup_path, parse_schedstat};
use crate::roots::{Roots, read_text};
use crate::sys::process::Pid;
use crate::sys::thread::{lock, thread_usage};
use crate::sys::time::{mono_ns, real_ns};

/// Halts in one message; of more, those next to each other are told as one.
const MAX_REPORTED: usize = 256;
/// Those of a thread that are kept; only a hostile load is stopped more often.
const MAX_PER_THREAD: usize = 10_000;
/// Between two beats.
const PULSE_INTERVAL: Duration = Duration::from_millis(50);
/// A beat that is later than this, and did not wait for a processor, missed what it missed.
const MIN_GAP_NS: u64 = 300_000_000;
/// A load that used less than this part of its usual processor time did not run meanwhile. It is
/// looked at over the halt and up to a quarter more, in which it ran as ever.
const MIN_RUNNING_SHARE: f64 = 0.5;

/// Why a load stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A signal stopped it, until another let it continue.
    Stopped,
    /// A debugger or tracer stopped it.
    Traced,
    /// Its control group was frozen.
    Frozen,
    /// The host slept.
    Suspended,
    /// Neither the load nor the agent ran: the host stood, or all that was started with the agent.
    HostStood,
}

impl Cause {
    /// Of a thread in this state of `/proc/PID/stat`; None while it runs, or waits.
    #[must_use]
    pub fn of_state(state: char) -> Option<Self> {
        match state {
            'T' => Some(Self::Stopped),
            't' => Some(Self::Traced),
            _ => None,
        }
    }
}

/// From when to when some of a load's threads stood still.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LoadHalt {
    /// Why.
    pub cause: Cause,
    /// From about when.
    pub from_real_ns: u64,
    /// Until about when.
    pub to_real_ns: u64,
    /// How long they stood in it, summed over them.
    pub thread_ns: u64,
}

/// A halt by the monotonic clock, of one thread or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Why.
    pub cause: Cause,
    /// From when.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
}

impl Span {
    fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// The halts of one thread, by looks at its state.
#[derive(Debug, Default)]
pub struct ThreadHalts {
    open: Option<Span>,
    closed: Vec<Span>,
}

impl ThreadHalts {
    /// What a look at `now_ns` shows, after one at `before_ns`: a change was half-way between them.
    pub fn record_look(&mut self, cause: Option<Cause>, before_ns: u64, now_ns: u64) {
        let between_ns = before_ns + now_ns.saturating_sub(before_ns) / 2;
        match (&mut self.open, cause) {
            (Some(span), Some(cause)) if span.cause == cause => span.to_ns = now_ns,
            (open, cause) => {
                if let Some(mut span) = open.take().filter(|_| self.closed.len() < MAX_PER_THREAD) {
                    span.to_ns = between_ns;
                    self.closed.push(span);
                }
                *open = cause.map(|cause| Span { cause, from_ns: between_ns, to_ns: now_ns });
            }
        }
    }

    /// All of them.
    pub fn spans(&self) -> impl Iterator<Item = Span> {
        self.closed.iter().chain(self.open.as_ref()).copied()
    }

    /// How long they were together.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.spans().map(|span| span.length_ns()).sum()
    }
}

/// The trees of control groups that can freeze a process.
#[derive(Debug, Default)]
pub struct FreezerGroups(Vec<(&'static str, Mount)>);

impl FreezerGroups {
    /// Those that are mounted.
    #[must_use]
    pub fn of(roots: &Roots) -> Self {
        let mounts = visible_mounts(roots);
        let tree = |&name: &&'static str| Some((name, cgroup_mount(&mounts, name)?.clone()));
        Self(["freezer", ""].iter().filter_map(tree).collect())
    }

    /// Whether the group of a process is frozen now, by itself or with one above it.
    #[must_use]
    pub fn have_frozen(&self, roots: &Roots, pid: Pid) -> bool {
        let own = read_text(&roots.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
        let is_frozen_in = |(name, mount): &(&str, Mount)| {
            let below = Path::new(cgroup_path(&own, name)?).strip_prefix(&mount.root).ok()?;
            let folder = mount.mount_point.join(below);
            let file = if name.is_empty() { "cgroup.events" } else { "freezer.state" };
            Some(parse_frozen(&read_text(&folder.join(file))?))
        };
        self.0.iter().filter_map(is_frozen_in).any(|frozen| frozen)
    }
}

fn parse_frozen(text: &str) -> bool {
    text.trim() == "FROZEN" || text.lines().any(|line| line == "frozen 1")
}

/// What a load used between two looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchedInterval {
    /// When the earlier look began.
    pub from_ns: u64,
    /// When the later one did.
    pub to_ns: u64,
    /// How long the load's threads ran, or waited to run, meanwhile.
    pub demand_ns: u64,
}

impl WatchedInterval {
    /// How long it is.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// Whether most of a span lies in it: the later look may begin just before the span is over.
    #[must_use]
    pub fn covers_most_of(&self, span: &Span) -> bool {
        let (from_ns, to_ns) = (self.from_ns.max(span.from_ns), self.to_ns.min(span.to_ns));
        2 * to_ns.saturating_sub(from_ns) > span.length_ns()
    }
}

/// A time in which the agent stood, and what the load did between the looks around it.
#[derive(Debug, Clone, Copy)]
pub struct AgentGap {
    /// When the agent stood.
    pub span: Span,
    /// What the load used around it.
    pub interval: WatchedInterval,
}

impl AgentGap {
    /// Whether the load stood as well: it used far less than the `usual` processors.
    #[must_use]
    pub fn stopped_load(&self, usual: f64) -> bool {
        let expected_ns = usual * self.interval.length_ns() as f64;
        expected_ns > 0.0 && (self.interval.demand_ns as f64) < MIN_RUNNING_SHARE * expected_ns
    }
}

/// A thread that does nothing but wake up, and notes when it could not.
pub struct Pulse {
    shared: Arc<PulseState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct PulseState {
    missed: Mutex<Vec<Span>>,
    ended: AtomicBool,
}

impl Pulse {
    /// Begin; None where no thread can be had.
    #[must_use]
    pub fn start() -> Option<Self> {
        let shared = Arc::new(PulseState::default());
        let beats = Arc::clone(&shared);
        let thread = Builder::new().name("pulse".into()).spawn(move || beats.run()).ok()?;
        Some(Self { shared, thread: Some(thread) })
    }

    /// When it stood since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut lock(&self.shared.missed))
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl PulseState {
    fn run(&self) {
        let roots = Roots::default();
        let read = || (thread_usage().major_faults, own_wait_ns(&roots));
        let mut before = read();
        while !self.ended.load(Ordering::Relaxed) {
            let due_ns = mono_ns() + PULSE_INTERVAL.as_nanos() as u64;
            park_timeout(PULSE_INTERVAL);
            let now_ns = mono_ns();
            let (faults, waited_ns) = before;
            before = read();
            // A page that had to be read hangs on a disk, a want of processors is not a halt.
            let waited_ns = before.1.saturating_sub(waited_ns);
            let stood_ns = now_ns.saturating_sub(due_ns).saturating_sub(waited_ns);
            if before.0 == faults && stood_ns >= MIN_GAP_NS {
                let cause = Cause::HostStood;
                lock(&self.missed).push(Span { cause, from_ns: now_ns - stood_ns, to_ns: now_ns });
            }
        }
    }
}

fn own_wait_ns(roots: &Roots) -> u64 {
    let schedule = read_text(&roots.proc.join("thread-self/schedstat"));
    schedule.and_then(|text| parse_schedstat(&text)).map_or(0, |(_, ns)| ns)
}

/// What threads went through together, as it is told: each cause by itself, in the order of time.
#[must_use]
pub fn merge_spans(spans: impl IntoIterator<Item = (Span, u64)>) -> Vec<LoadHalt> {
    let (mono, real) = (mono_ns(), real_ns());
    let real_of = |ns: u64| real.saturating_sub(mono.saturating_sub(ns));
    let spans = spans.into_iter().filter(|(span, _)| span.length_ns() > 0);
    let mut all: Vec<LoadHalt> = spans
        .map(|(span, threads)| LoadHalt {
            cause: span.cause,
            from_real_ns: real_of(span.from_ns),
            to_real_ns: real_of(span.to_ns),
            thread_ns: span.length_ns().saturating_mul(threads),
        })
        .collect();
    all.sort_by_key(|one| (one.cause, one.from_real_ns));
    let mut apart_ns = 0;
    let mut told = merge_adjacent(&all, apart_ns);
    while told.len() > MAX_REPORTED {
        apart_ns = (2 * apart_ns).max(1_000_000_000);
        told = merge_adjacent(&told, apart_ns);
    }
    told.sort_by_key(|one| one.from_real_ns);
    told
}

fn merge_adjacent(all: &[LoadHalt], apart_ns: u64) -> Vec<LoadHalt> {
    let mut told: Vec<LoadHalt> = Vec::new();
    for one in all {
        match told.last_mut() {
            Some(last)
                if last.cause == one.cause
                    && one.from_real_ns <= last.to_real_ns.saturating_add(apart_ns) =>
            {
                last.to_real_ns = last.to_real_ns.max(one.to_real_ns);
                last.thread_ns += one.thread_ns;
            }
            _ => told.push(*one),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPED: Option<Cause> = Some(Cause::Stopped);

    #[test]
    fn a_stop_is_from_between_two_looks_to_between_two_others() {
        let mut stops = ThreadHalts::default();
        for (before, now, cause) in
            [(0, 200, None), (200, 400, STOPPED), (400, 600, STOPPED), (600, 800, None)]
        {
            stops.record_look(cause, before, now);
        }
        let span = Span { cause: Cause::Stopped, from_ns: 300, to_ns: 700 };
        assert_eq!(stops.spans().collect::<Vec<_>>(), [span]);
        stops.record_look(Some(Cause::Traced), 800, 1000);
        assert_eq!(stops.length_ns(), 500); // It may end so.
    }

    #[test]
    fn a_thread_that_waits_for_storage_does_not_stand_still() {
        for state in ['R', 'S', 'D', 'Z', 'I', 'X', 'P'] {
            assert_eq!(Cause::of_state(state), None, "{state}");
        }
    }

    #[test]
    fn both_versions_of_a_frozen_group() {
        for text in ["FROZEN\n", "populated 1\nfrozen 1\n"] {
            assert!(parse_frozen(text), "{text}");
        }
        for text in ["THAWED\n", "FREEZING\n", "populated 1\nfrozen 0\n", ""] {
            assert!(!parse_frozen(text), "{text}");
        }
    }

    #[test]
    fn a_stopped_agent_is_no_halt_of_a_load_that_worked_on() {
        let span = Span { cause: Cause::HostStood, from_ns: 0, to_ns: 4_000 };
        let missed = |demand_ns| {
            let interval = WatchedInterval { from_ns: 0, to_ns: 4_200, demand_ns };
            AgentGap { span, interval }
        };
        assert!(missed(20).stopped_load(0.1));
        assert!(!missed(400).stopped_load(0.1));
        assert!(!missed(0).stopped_load(0.0)); // Nothing can be said of a load that never runs.
    }

    #[test]
    fn a_gap_is_of_the_interval_that_most_of_it_lies_in() {
        let span = Span { cause: Cause::HostStood, from_ns: 100, to_ns: 300 };
        let holds =
            |from_ns, to_ns| WatchedInterval { from_ns, to_ns, demand_ns: 0 }.covers_most_of(&span);
        assert!(holds(50, 299)); // A look that began before the pulse had told of the gap.
        assert!(!holds(299, 500));
        assert!(!holds(0, 120)); // A look that was stopped while it read.
        assert!(holds(120, 320));
    }

    #[test]
    fn threads_that_stood_together_are_one_halt() {
        let span = |from_ns, to_ns| Span { cause: Cause::Stopped, from_ns, to_ns };
        let told = merge_spans([(span(100, 300), 1), (span(500, 600), 2), (span(100, 400), 1)]);
        let lengths: Vec<(u64, u64)> =
            told.iter().map(|one| (one.to_real_ns - one.from_real_ns, one.thread_ns)).collect();
        assert_eq!(lengths, [(300, 500), (100, 200)]);
    }

    #[test]
    fn ten_thousand_stops_are_told_as_a_few_that_last_as_long() {
        let span = |n: u64| Span { cause: Cause::Stopped, from_ns: n * 900, to_ns: n * 900 + 9 };
        let told = merge_spans((0..10_000).map(|n| (span(n * 1_000_000), 1)));
        assert!(told.len() <= MAX_REPORTED);
        assert_eq!(told.iter().map(|one| one.thread_ns).sum::<u64>(), 90_000);
    }

    #[test]
    fn a_pulse_that_beats_misses_nothing() {
        let pulse = Pulse::start().expect("a thread");
        std::thread::sleep(PULSE_INTERVAL);
        assert_eq!(pulse.take().iter().filter(|span| span.length_ns() < MIN_GAP_NS).count(), 0);
    }
}
