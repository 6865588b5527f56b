//! The main flow of one phase: prepare, start all ranks together, tell what they do, sum up.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use serde::Serialize;

use super::control::{PhaseControl, PhaseReservation};
use super::load::{Phase, PhaseSpec};
use super::ranks::{Rank, RankResult};
use crate::clock::ClockStamp;
use crate::error::{Error, Result};
use crate::latency::{LatencyCounters, LatencyCounts, SparseBins};
use crate::libraries::LibraryUse;
use crate::metadata::tree::{self, OpenFolder};
use crate::processor::{ProcessorUse, ProcessorWatcher};
use crate::sys::thread::Usage;
use crate::sys::time::{SECOND_NS, mono_ns, real_ns, sleep_until_real};

/// A rank's loop has no deep calls; a small stack lets thousands of ranks fit.
const STACK_BYTES: usize = 256 << 10;

/// What all ranks of this host did between two moments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Counts from 0.
    pub seq: u64,
    /// Where the last interval ended; the first begins with the phase.
    pub from_real_ns: u64,
    /// When the counts were read.
    pub to_real_ns: u64,
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations that failed, by errno.
    pub errors: BTreeMap<String, u64>,
    /// Those that succeeded, by latency bin.
    pub bins: SparseBins,
}

/// The final message of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseResult {
    /// Which.
    pub phase: Phase,
    /// Ranks of this host.
    pub ranks: u32,
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations that failed, by errno.
    pub errors: BTreeMap<String, u64>,
    /// Operations that were not tried, because the phase was stopped or its time was over.
    pub skipped: u64,
    /// Operations that each rank came to, in their order; told where they had `runtime_s`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<u32>,
    /// Those that succeeded, by latency bin.
    pub bins: SparseBins,
    /// The shortest latency, null when nothing succeeded.
    pub latency_min_ns: Option<u64>,
    /// The longest.
    pub latency_max_ns: Option<u64>,
    /// All latencies together.
    pub latency_sum_ns: u64,
    /// When all ranks were at the gate.
    pub ready_real_ns: u64,
    /// When the first rank began; null when none did.
    pub first_start_real_ns: Option<u64>,
    /// When the last rank began.
    pub last_start_real_ns: Option<u64>,
    /// When the first rank ended.
    pub first_end_real_ns: Option<u64>,
    /// When the last rank ended.
    pub last_end_real_ns: Option<u64>,
    /// User seconds of the ranks' loops.
    pub user_s: f64,
    /// System seconds of the same.
    pub system_s: f64,
    /// How often ranks waited for something (voluntary context switches).
    pub waits: u64,
    /// How often ranks were put aside for other threads (involuntary ones).
    pub preemptions: u64,
    /// Stopped by `signal` before all was done.
    pub cancelled: bool,
    /// Stopped by the wall limit before all was done.
    pub timed_out: bool,
    /// What the ranks got of the processors, where that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorUse>,
    /// Which libraries this process has, where that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libraries: Option<LibraryUse>,
}

/// Do one phase; blocks until all ranks ended. `tell` hears of each interval.
pub fn run_phase(
    load: &PhaseSpec,
    place: &mut PhaseReservation,
    open: OpenFolder,
    mut tell: impl FnMut(&Interval),
) -> Result<PhaseResult> {
    load.check()?;
    let preparing = place.busy.take();
    let seats = tree::open_rank_folders(load, open)?;
    let counters: Vec<LatencyCounters> = seats.iter().map(|_| LatencyCounters::default()).collect();
    let control = &place.control;
    let measured = thread::scope(|scope| {
        let ranks = start_ranks(scope, load, &seats, &counters, control)?;
        control.wait_for_ranks(ranks.len());
        drop(preparing);
        let ready_real_ns = real_ns();
        let mut observer = PhaseObserver::open_gate_and_start(load, control, &counters);
        let timed_out = observer.report_intervals(&mut tell);
        let worked: Vec<Option<RankResult>> =
            ranks.into_iter().map(|rank| rank.join().unwrap_or_default()).collect();
        Ok(observer.sum_up(&worked, ready_real_ns, timed_out))
    });
    tree::remove_empty_tree(load, open);
    measured
}

fn start_ranks<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    load: &'env PhaseSpec,
    seats: &'env [Arc<File>],
    counters: &'env [LatencyCounters],
    control: &'env Arc<PhaseControl>,
) -> Result<Vec<ScopedJoinHandle<'scope, Option<RankResult>>>> {
    let mut ranks = Vec::with_capacity(seats.len());
    for ((seat, folder), counters) in load.target_ranks().enumerate().zip(seats).zip(counters) {
        let busy = control.mark_busy();
        let thread = Builder::new().name(format!("rank-{}", seat.1)).stack_size(STACK_BYTES);
        let started = thread.spawn_scoped(scope, move || {
            let _busy = busy;
            Rank::new(load, seat, folder, counters, control).run()
        });
        match started {
            Ok(rank) => ranks.push(rank),
            Err(error) => {
                control.stop(); // The ranks that wait at the gate go home.
                return Err(Error::io(format_args!("start {} threads", load.ranks), &error));
            }
        }
    }
    Ok(ranks)
}

/// Reads the ranks' counters at whole intervals from the start.
struct PhaseObserver<'a> {
    load: &'a PhaseSpec,
    control: &'a PhaseControl,
    counters: &'a [LatencyCounters],
    origin: ClockStamp,
    reported: LatencyCounts,
    reported_mono_ns: u64,
    seq: u64,
    watcher: ProcessorWatcher,
}

impl<'a> PhaseObserver<'a> {
    /// Open the gate and be there when the phase starts.
    fn open_gate_and_start(
        load: &'a PhaseSpec,
        control: &'a PhaseControl,
        counters: &'a [LatencyCounters],
    ) -> Self {
        let origin = if let Some(at_ns) = load.start_at_real_ns {
            control.open_gate(at_ns);
            wait_for_start(control, at_ns)
        } else {
            let origin = ClockStamp::now(); // Before the gate: no rank may start before its phase.
            control.open_gate(0);
            origin
        };
        let reported_mono_ns = origin.mono_ns;
        let watcher = ProcessorWatcher::for_own_process(0);
        let reported = LatencyCounts::empty();
        Self { load, control, counters, origin, reported, reported_mono_ns, seq: 0, watcher }
    }

    /// Tell each interval until all ranks ended; returns whether the wall limit stopped them.
    fn report_intervals(&mut self, tell: &mut impl FnMut(&Interval)) -> bool {
        let interval_ns = self.load.interval_ms * (SECOND_NS / 1000);
        let limit_ns = self.load.wall_limit_s.map(|limit_s| (limit_s * SECOND_NS as f64) as u64);
        let mut deadline_ns = limit_ns.map(|limit| self.origin.mono_ns.saturating_add(limit));
        let mut timed_out = false;
        loop {
            self.watcher.look_if_due();
            let passed = (self.reported_mono_ns - self.origin.mono_ns) / interval_ns;
            let tick_ns = self.origin.mono_ns + (passed + 1) * interval_ns;
            let wake_ns = deadline_ns.map_or(tick_ns, |deadline| deadline.min(tick_ns));
            let patience = Duration::from_nanos(wake_ns.saturating_sub(mono_ns()));
            let all_ended = self.control.wait_idle(patience);
            let now_ns = mono_ns();
            if !all_ended && deadline_ns.is_some_and(|deadline| now_ns >= deadline) {
                (timed_out, deadline_ns) = (true, None);
                self.control.stop();
            }
            if all_ended || now_ns >= tick_ns {
                tell(&self.next_interval(now_ns));
            }
            if all_ended {
                return timed_out;
            }
        }
    }

    fn next_interval(&mut self, now_ns: u64) -> Interval {
        let counts = LatencyCounts::of(self.counters);
        let (bins, errors) = counts.since(&self.reported);
        let interval = Interval {
            seq: self.seq,
            from_real_ns: self.real_ns_at(self.reported_mono_ns),
            to_real_ns: self.real_ns_at(now_ns),
            ops: total_count(&bins),
            errors,
            bins,
        };
        (self.reported, self.reported_mono_ns, self.seq) = (counts, now_ns, self.seq + 1);
        interval
    }

    /// By the real clock as it was at the start: a step of it does not bend durations.
    fn real_ns_at(&self, moment_mono_ns: u64) -> u64 {
        (self.origin.real_ns + moment_mono_ns).saturating_sub(self.origin.mono_ns)
    }

    fn sum_up(
        &self,
        ranks: &[Option<RankResult>],
        ready_real_ns: u64,
        timed_out: bool,
    ) -> PhaseResult {
        let counts = LatencyCounts::of(self.counters);
        let (bins, errors) = counts.since(&LatencyCounts::empty());
        let worked = || ranks.iter().flatten();
        let ops = total_count(&bins);
        let planned: u64 = (0..self.load.ranks as usize)
            .map(|nth| u64::from(self.load.operations_of_rank(nth)))
            .sum();
        let tried = |rank: &Option<RankResult>| rank.map_or(0, |rank| rank.tried);
        let is_cut = worked().any(|rank| rank.was_stopped) || worked().count() < ranks.len();
        let used = |of: fn(&Usage) -> u64| worked().map(|rank| of(&rank.usage)).sum::<u64>();
        let starts = || worked().map(|rank| self.real_ns_at(rank.start_mono_ns));
        let ends = || worked().map(|rank| self.real_ns_at(rank.end_mono_ns));
        PhaseResult {
            phase: self.load.phase,
            ranks: self.load.ranks,
            ops,
            skipped: planned.saturating_sub(ops + errors.values().sum::<u64>()),
            tried: self.load.runtime_s.map_or(Vec::new(), |_| ranks.iter().map(tried).collect()),
            errors,
            bins,
            latency_min_ns: counts.extremes_ns().map(|(min, _)| min),
            latency_max_ns: counts.extremes_ns().map(|(_, max)| max),
            latency_sum_ns: counts.sum_ns,
            ready_real_ns,
            first_start_real_ns: starts().min(),
            last_start_real_ns: starts().max(),
            first_end_real_ns: ends().min(),
            last_end_real_ns: ends().max(),
            user_s: used(|usage| usage.user_ns) as f64 / SECOND_NS as f64,
            system_s: used(|usage| usage.system_ns) as f64 / SECOND_NS as f64,
            waits: used(|usage| usage.waits),
            preemptions: used(|usage| usage.preemptions),
            cancelled: is_cut && !timed_out,
            timed_out: is_cut && timed_out,
            processor: self.watcher.result(),
            libraries: self.watcher.libraries(),
        }
    }
}

/// Both clocks at the start, even when this thread wakes later than the ranks do.
fn wait_for_start(control: &PhaseControl, at_ns: u64) -> ClockStamp {
    if control.is_stopped() || real_ns() >= at_ns {
        return ClockStamp::now();
    }
    sleep_until_real(at_ns);
    let now = ClockStamp::now();
    let late_ns = now.real_ns.saturating_sub(at_ns);
    let ago = |ns: u64| ns.saturating_sub(late_ns);
    ClockStamp { mono_ns: ago(now.mono_ns), real_ns: ago(now.real_ns), boot_ns: ago(now.boot_ns) }
}

fn total_count(bins: &[(usize, u64)]) -> u64 {
    bins.iter().map(|(_, count)| count).sum()
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
