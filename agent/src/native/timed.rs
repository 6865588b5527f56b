//! Load of blocking threads for a set time, as those engines make it whose operations are more than
//! single I/Os: when it began, each interval, and the end with all sums.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::counts::WorkerCounters;
use super::halt::{CHECK_INTERVAL_NS, Halt};
use super::lines::{CounterSnapshot, IntervalLines, insert_usage, latency_since, print_line};
use super::start::{head, wait_for_start};
use super::tsc::Clock;
use crate::latency::{LatencyCounters, LatencyCounts};
use crate::sys::thread::{Usage, process_usage};
use crate::sys::time::{SECOND_NS, real_ns};

/// After the end nothing may end for so long before what is under way counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(10);
/// The arrivals are behind where I/Os of so large a part of the time were never begun.
const MAX_LAG_RATIO: f64 = 0.01;

/// A thread has ended, and this was its last act, in ticks.
pub type Ended = u64;

/// A thread's counters: of its I/Os, and of the operations that are made of them.
pub type ThreadCounters<C> = (Arc<WorkerCounters>, Arc<C>);

/// An operation made of I/Os: its name in the lines, and where a thread counts it.
pub type Composite<C> = (&'static str, fn(&C) -> &LatencyCounters);

/// The threads of a load, set up and waiting.
pub struct Workers<C> {
    /// Of all threads.
    pub counters: Vec<ThreadCounters<C>>,
    /// Each that does I/O tells its end here.
    pub ended: Receiver<Ended>,
    /// How many do.
    pub count: usize,
}

/// Load that goes on for a set time.
pub trait TimedLoad: Send + Sync + 'static {
    /// What a thread counts beside its I/Os.
    type Counters: 'static;
    /// The operations that are made of I/Os.
    const COMPOSITES: &'static [Composite<Self::Counters>];

    /// The clock of all times.
    fn clock(&self) -> Clock;
    /// The wish to end early.
    fn halt(&self) -> &Halt;
    /// How long it goes on.
    fn runtime_s(&self) -> f64;
    /// Between two intervals that are told.
    fn interval_ms(&self) -> u64;
    /// Whether I/Os go past the page cache.
    fn is_direct(&self) -> bool;
    /// Begin at `start` and go on until `deadline`, both in ticks; what ends when that is over.
    fn begin(self: &Arc<Self>, start: u64, deadline: u64) -> Option<JoinHandle<()>>;
    /// Nothing more is begun: how many I/Os never were, and when the first of them was due.
    fn end_submission(&self) -> (u64, Option<u64>);
    /// What else an interval tells.
    fn interval_values(&self) -> Map<String, Value>;
    /// What else the end tells.
    fn end_values(&self) -> Map<String, Value>;
}

/// Tell what makes the load.
pub fn print_head<L: TimedLoad>(load: &L, threads: usize) {
    print_line(&head(load.clock(), "sync", load.is_direct(), threads));
}

/// What is told of a moment.
struct Snapshot {
    ios: CounterSnapshot,
    composites: Vec<(&'static str, LatencyCounts)>,
}

impl Snapshot {
    fn of<L: TimedLoad>(workers: &Workers<L::Counters>) -> Self {
        let ios: Vec<Arc<WorkerCounters>> =
            workers.counters.iter().map(|(ios, _)| Arc::clone(ios)).collect();
        let composites = L::COMPOSITES.iter().map(|&(name, of)| {
            (name, LatencyCounts::of(workers.counters.iter().map(|(_, own)| of(own))))
        });
        Self { ios: CounterSnapshot::of(&ios), composites: composites.collect() }
    }

    /// What changed since an earlier moment, and how much ended.
    fn since(&self, earlier: &Self) -> (Map<String, Value>, u64) {
        let (mut all, mut ended) = self.ios.latency_since(&earlier.ios);
        for ((name, now), (_, then)) in self.composites.iter().zip(&earlier.composites) {
            let (counts, count) = latency_since(now, then);
            all.insert((*name).into(), counts);
            ended += count;
        }
        (all, ended)
    }
}

/// Make the load, and tell it. `start_real_ns` is when to start; at once when it is past or None.
pub fn report_run<L: TimedLoad>(
    load: &Arc<L>,
    workers: &Workers<L::Counters>,
    start_real_ns: Option<u64>,
) {
    let none = Snapshot::of::<L>(workers);
    let start_real_ns = wait_for_start(load.halt(), start_real_ns);
    let clock = load.clock();
    let now = clock.ticks();
    let start = now + clock.ticks_of(start_real_ns.saturating_sub(real_ns()));
    let runtime_ns = (load.runtime_s() * SECOND_NS as f64) as u64;
    let deadline = start + clock.ticks_of(runtime_ns);
    let begun = load.begin(start, deadline);
    let before = process_usage();
    print_line(&json!({ "started_real_ns": start_real_ns, "late_ns": 0 }));
    let lines = IntervalLines::new(start_real_ns, load.interval_ms());
    let mut writer = IntervalWriter { load: &**load, workers, lines, reported: none };
    loop {
        let now_ns = clock.ns(clock.ticks().saturating_sub(start));
        let end_ns = clock.ns(load.halt().at_ticks().min(deadline).saturating_sub(start));
        if now_ns >= end_ns {
            break;
        }
        if writer.lines.is_due(now_ns) {
            writer.write(now_ns);
        }
        let pause_ns =
            writer.lines.next_ns().min(end_ns).saturating_sub(now_ns).clamp(1, CHECK_INTERVAL_NS);
        thread::sleep(Duration::from_nanos(pause_ns));
    }
    let measured_ns = clock.ns(clock.ticks().min(deadline).saturating_sub(start)).max(1);
    let (unsubmitted, oldest) = load.end_submission();
    let used = process_usage().since(before);
    writer.write(measured_ns);
    let is_broken = begun.is_none_or(|thread| thread.join().is_err());
    let (last, hung) = await_workers(workers);
    let last_ns = clock.ns(last.saturating_sub(start)).max(measured_ns);
    writer.write_rest(last_ns);
    let lag_ns = oldest.map(|due| measured_ns.saturating_sub(clock.ns(due.saturating_sub(start))));
    let end =
        End { start_real_ns, last_ns, measured_ns, unsubmitted, lag_ns, hung, used, is_broken };
    end.print(&**load, workers);
    if hung > 0 {
        // Threads that the kernel does not let go would be waited for in vain.
        process::exit(0);
    }
}

/// Wait until all threads have ended: when the last I/O did, in ticks, and how many hang.
fn await_workers<C>(workers: &Workers<C>) -> (u64, u64) {
    let (mut last, mut ended) = (0, 0);
    while ended < workers.count {
        match workers.ended.recv_timeout(HANG_TIMEOUT) {
            Ok(at) => {
                last = last.max(at);
                ended += 1;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    (last, (workers.count - ended) as u64)
}

struct IntervalWriter<'a, L: TimedLoad> {
    load: &'a L,
    workers: &'a Workers<L::Counters>,
    lines: IntervalLines,
    reported: Snapshot,
}

impl<L: TimedLoad> IntervalWriter<'_, L> {
    fn write(&mut self, now_ns: u64) {
        let now = Snapshot::of::<L>(self.workers);
        let (mut values, _) = now.since(&self.reported);
        values.extend(self.load.interval_values());
        let end_ns = self.lines.end_ns(now_ns);
        self.lines.print(values, end_ns);
        self.reported = now;
    }

    /// What ended after the end, if anything did.
    fn write_rest(&mut self, last_ns: u64) {
        let (_, ended) = Snapshot::of::<L>(self.workers).since(&self.reported);
        if ended > 0 || !self.lines.has_reported_until(last_ns) {
            self.write(last_ns);
        }
    }
}

struct End {
    start_real_ns: u64,
    last_ns: u64,
    measured_ns: u64,
    unsubmitted: u64,
    lag_ns: Option<u64>,
    hung: u64,
    used: Usage,
    is_broken: bool,
}

impl End {
    fn print<L: TimedLoad>(&self, load: &L, workers: &Workers<L::Counters>) {
        let whole = Snapshot::of::<L>(workers);
        let mut end = whole.ios.totals();
        let broken: BTreeMap<&str, u64> =
            self.is_broken.then_some(("lost", 1)).into_iter().collect();
        let rest = json!({
            "start_real_ns": self.start_real_ns,
            "end_real_ns": self.start_real_ns + self.last_ns,
            "errors": whole.ios.errors(),
            "retries": whole.ios.retries(),
            "broken": broken,
            "hung": self.hung,
            "gave_up": false,
            "measured_ns": self.measured_ns,
            "drain_ns": self.last_ns - self.measured_ns,
            "drained_ios": whole.ios.drained_ios(),
            "begun_ns": { "first": 0, "last": 0 },
            "lateness": whole.ios.lateness(),
            "unreached": self.lag_ns.unwrap_or(0) as f64
                > MAX_LAG_RATIO * self.measured_ns as f64,
            "unsubmitted": { "count": self.unsubmitted, "oldest_ns": self.lag_ns },
            "depth": null,
            "steal_ticks": null,
        });
        insert_usage(&mut end, &self.used);
        if let Value::Object(rest) = rest {
            end.extend(rest);
            end.extend(load.end_values());
        }
        print_line(&json!({ "end": end }));
    }
}
