//! The thread that tells: when it began, each interval, and the end with all sums.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::counts::WorkerCounters;
use super::halt::CHECK_INTERVAL_NS;
use super::lines::{CounterSnapshot, IntervalLines, insert_usage, kind_name, print_line};
use super::recording::{merge_recordings, write_iolog};
use super::slowest::slowest_of_all;
use super::spec::JobSpec;
use super::threads::{EngineContext, Threads};
use super::worker::{WorkerResult, WorkerTimes};
use crate::error::{errno_name, io_error_text};
use crate::sys::block::fsync;
use crate::sys::thread::{Usage, process_usage};
use crate::sys::time::{SECOND_NS, real_ns, sleep_until_real};

/// Threads are let off so long before the start: all have woken by then.
const GATE_LEAD_NS: u64 = 20_000_000;
/// Without a time to start at, threads are given so long to wake up.
const START_LEAD_NS: u64 = 2_000_000;
/// A rate counts as unreached when the last arrivals were late by more than this part of the time.
const MAX_LAG_RATIO: f64 = 0.01;

/// After the end of submission nothing may end for so long before what is under way counts as hung:
/// long for a device that has trouble, and shorter than the 15 s after which iolab ends an engine
/// that it has asked to.
const HANG_TIMEOUT_NS: u64 = 10 * SECOND_NS;
/// Before the end of submission, whether that was wished earlier is looked at so often.
const HALT_CHECK_NS: u64 = SECOND_NS;
/// So many I/Os must have failed, and none been done, for so long before a load is given up: it
/// would go on at full speed without a target.
const MIN_FAILED_IOS: u64 = 100;
const MIN_FAILING_NS: u64 = SECOND_NS;
/// Between two looks at what hangs.
const HANG_CHECK_NS: u64 = 200_000_000;

/// In place of an errno, of threads that did not tell how they ended.
const LOST_THREAD: &str = "lost";

/// The moments of a run, in ticks and in real time.
struct RunReport<'a> {
    shared: &'a EngineContext,
    times: WorkerTimes,
    start_real_ns: u64,
}

/// Start the threads, tell what they do, and tell the sums when they have ended.
///
/// `start_real_ns` is when to start; at once when it is past or None, or when all is halted before:
/// then nothing is done, and that is told.
pub fn report_run(
    shared: &EngineContext,
    threads: &Threads,
    start_real_ns: Option<u64>,
    depth: &Value,
) {
    let start_real_ns = start_real_ns.filter(|&at_ns| wait_for_gate(shared, at_ns));
    let run_loop = RunReport::start_threads(shared, start_real_ns);
    let none = CounterSnapshot::of(&threads.scores);
    threads.start(run_loop.times);
    sleep_until_real(run_loop.start_real_ns);
    let before = UsageSnapshot::now();
    print_line(&json!({
        "started_real_ns": run_loop.start_real_ns,
        "late_ns": start_real_ns.map_or(0, |at_ns| run_loop.start_real_ns.saturating_sub(at_ns)),
    }));
    let followed = run_loop.report_until_end(threads, none);
    let kept = if followed.hung > 0 { Default::default() } else { fsync_targets(shared) };
    run_loop.sum_up(threads, &followed, before, depth, kept);
    if followed.hung > 0 {
        // Threads that the kernel does not let go would be waited for in vain.
        process::exit(0);
    }
}

/// What was used and stolen up to a moment.
#[derive(Debug, Clone, Copy)]
struct UsageSnapshot {
    stolen_ticks: u64,
    used: Usage,
}

impl UsageSnapshot {
    fn now() -> Self {
        Self { stolen_ticks: steal_ticks(), used: process_usage() }
    }
}

/// How all threads ended.
struct RunOutcome {
    /// Those that told.
    ended: Vec<WorkerResult>,
    /// I/Os that have not ended, and were given up.
    hung: u64,
    /// When the last I/O was seen to end, nanoseconds since the start; 0 where nothing is hung.
    last_io_ns: u64,
    /// When submission stopped.
    stopped: UsageSnapshot,
    /// Every I/O failed, so it was ended early.
    gave_up: bool,
}

/// Whether anything ends after submission has stopped.
#[derive(Default)]
struct HangDetector {
    seen: u64,
    since_ns: u64,
}

impl HangDetector {
    /// Look; the I/Os that are given up, once nothing has ended for too long.
    fn check(&mut self, threads: &Threads, ended: usize, now_ns: u64) -> Option<u64> {
        let sum = |of: fn(&WorkerCounters) -> u64| {
            threads.scores.iter().map(|scores| of(scores)).sum::<u64>()
        };
        let seen = sum(WorkerCounters::progress) + ended as u64;
        if seen != self.seen || self.since_ns == 0 {
            (self.seen, self.since_ns) = (seen, now_ns);
        }
        let is_hung = now_ns - self.since_ns >= HANG_TIMEOUT_NS;
        is_hung.then(|| sum(|one| one.in_flight.load(Ordering::Relaxed)).max(1))
    }
}

/// Whether all that ends has failed for too long.
#[derive(Default)]
struct FailureDetector {
    done: u64,
    failed: u64,
    since_ns: u64,
}

impl FailureDetector {
    /// Look; whether to give up.
    fn check(&mut self, now: &CounterSnapshot, now_ns: u64) -> bool {
        let (done, failed) = now.done_and_failed();
        if done > self.done || failed == self.failed {
            (self.done, self.failed, self.since_ns) = (done, failed, now_ns);
        }
        failed - self.failed >= MIN_FAILED_IOS && now_ns - self.since_ns >= MIN_FAILING_NS
    }
}

/// Sleep until shortly before the start; false when all is halted before.
fn wait_for_gate(shared: &EngineContext, start_real_ns: u64) -> bool {
    let gate_ns = start_real_ns.saturating_sub(GATE_LEAD_NS);
    let mut now_ns = real_ns();
    while now_ns < gate_ns && !shared.halt.is_requested() {
        sleep_until_real(gate_ns.min(now_ns + CHECK_INTERVAL_NS));
        now_ns = real_ns();
    }
    now_ns >= gate_ns
}

impl<'a> RunReport<'a> {
    fn start_threads(shared: &'a EngineContext, wanted: Option<u64>) -> Self {
        let (now, now_real_ns) = (shared.clock.ticks(), real_ns());
        let start_real_ns = wanted.unwrap_or(0).max(now_real_ns + START_LEAD_NS);
        let start = now + shared.clock.ticks_of(start_real_ns - now_real_ns);
        let runtime = shared.spec.runtime_s.map(|seconds| (seconds * SECOND_NS as f64) as u64);
        let deadline = runtime.map_or(u64::MAX, |ns| start + shared.clock.ticks_of(ns));
        Self { shared, times: WorkerTimes { start, deadline }, start_real_ns }
    }

    /// Nanoseconds since the start.
    fn since_start_ns(&self, ticks: u64) -> u64 {
        self.shared.clock.ns(ticks.saturating_sub(self.times.start))
    }

    /// Nanoseconds from the start to the end of submission, as far as is known now.
    fn planned_ns(&self) -> u64 {
        self.since_start_ns(self.times.deadline.min(self.shared.halt.at_ticks()))
    }

    /// The same of threads that have ended: jobs that end by their bytes do not last so long.
    fn measured_ns(&self, followed: &RunOutcome) -> u64 {
        let (all, planned_ns) = (&followed.ended, self.planned_ns());
        if followed.hung == 0 && all.iter().all(|ended| ended.is_early || ended.error.is_some()) {
            return self.last_ns(followed).min(planned_ns);
        }
        planned_ns
    }

    /// Nanoseconds from the start to the end of the last I/O.
    fn last_ns(&self, followed: &RunOutcome) -> u64 {
        let ends = followed.ended.iter().map(|ended| self.since_start_ns(ended.last_io_end));
        ends.max().unwrap_or(0).max(followed.last_io_ns)
    }

    /// Tell each interval until all threads have ended, or are given up; how they did.
    fn report_until_end(&self, threads: &Threads, mut reported: CounterSnapshot) -> RunOutcome {
        let clock = self.shared.clock;
        let mut all = Vec::with_capacity(threads.count());
        let mut lines = IntervalLines::new(self.start_real_ns, self.shared.spec.interval_ms);
        let (mut stopped, mut hang_watch, mut hung) = (None, HangDetector::default(), None);
        let (mut fail_watch, mut gave_up) = (FailureDetector::default(), false);
        while all.len() < threads.count() && hung.is_none() {
            let planned_ns = self.planned_ns();
            let tick_ns = lines.next_ns();
            let now_ns = self.since_start_ns(clock.ticks());
            let look_ns = match stopped {
                None => planned_ns.min(now_ns + HALT_CHECK_NS),
                Some(_) => now_ns + HANG_CHECK_NS,
            };
            let left_ns = tick_ns.min(look_ns).saturating_sub(now_ns);
            match threads.ended.recv_timeout(Duration::from_nanos(left_ns)) {
                Ok(ended) => all.push(ended),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let now_ns = self.since_start_ns(clock.ticks());
                    let stops = now_ns >= planned_ns && stopped.is_none();
                    if stops {
                        stopped = Some(UsageSnapshot::now());
                    }
                    if stopped.is_some() {
                        hung = hang_watch.check(threads, all.len(), now_ns);
                    }
                    // It may have been halted before it began, which is no interval.
                    if now_ns > 0 && (stops || now_ns >= tick_ns) {
                        let now = CounterSnapshot::of(&threads.scores);
                        lines.print(now.latency_since(&reported).0, now_ns);
                        reported = now;
                        if stopped.is_none() && fail_watch.check(&reported, now_ns) {
                            gave_up = true;
                            self.shared.halt.request(clock.ticks());
                        }
                    }
                }
            }
        }
        let followed = RunOutcome {
            ended: all,
            hung: hung.unwrap_or(0),
            last_io_ns: if hung.is_some() { hang_watch.since_ns } else { 0 },
            stopped: stopped.unwrap_or_else(UsageSnapshot::now),
            gave_up,
        };
        let last_ns = self.last_ns(&followed).max(self.measured_ns(&followed));
        // Time without I/Os too: rates of intervals would be too high without it.
        let (rest, ios) = CounterSnapshot::of(&threads.scores).latency_since(&reported);
        if ios > 0 || !lines.has_reported_until(last_ns) {
            let end_ns = lines.end_ns(last_ns);
            lines.print(rest, end_ns);
        }
        followed
    }

    fn sum_up(
        &self,
        threads: &Threads,
        followed: &RunOutcome,
        before: UsageSnapshot,
        depth: &Value,
        (kept_ns, unkept): (Option<u64>, BTreeMap<String, u64>),
    ) {
        let whole = CounterSnapshot::of(&threads.scores);
        let all = &followed.ended;
        let (last_ns, measured_ns) = (self.last_ns(followed), self.measured_ns(followed));
        let used = run_usage(followed, before);
        // What a thread left that the kernel broke off has not ended either.
        let hung = followed.hung.max(whole.in_flight());
        let mut end = whole.totals();
        let mut errors = whole.errors();
        for (errno, count) in unkept {
            *errors.entry("sync").or_default().entry(errno).or_default() += count;
        }
        let rest = json!({
            "start_real_ns": self.start_real_ns,
            "end_real_ns": self.start_real_ns + last_ns,
            "errors": errors,
            "retries": whole.retries(),
            "broken": broken_threads(all, if followed.hung > 0 { all.len() } else { threads.count() }),
            "hung": hung,
            "gave_up": followed.gave_up,
            "measured_ns": measured_ns,
            "drain_ns": last_ns.saturating_sub(measured_ns),
            "drained_ios": whole.drained_ios(),
            "begun_ns": self.first_and_last_start_ns(all),
            "lateness": whole.lateness(),
            "unreached": self.is_unreached(all, hung, measured_ns),
            "unsubmitted": self.unsubmitted(all, hung, measured_ns),
            "verify": self.shared.verification.as_ref().map(|verification| verification.results()),
            "depth": depth,
            "steal_ticks": followed.stopped.stolen_ticks.saturating_sub(before.stolen_ticks),
            "end_fsync_ns": kept_ns,
            "slow_ios": self.slow_ios(all),
            "recorded": self.write_recording(all),
        });
        insert_usage(&mut end, &used);
        if let Value::Object(rest) = rest {
            end.extend(rest);
        }
        print_line(&json!({ "end": end }));
    }

    /// The slowest I/Os of all threads, the slowest first; null where they were not asked for.
    fn slow_ios(&self, all: &[WorkerResult]) -> Value {
        let most = self.shared.spec.slow_ios;
        if most == 0 {
            return Value::Null;
        }
        let every = all.iter().flat_map(|ended| ended.slowest.iter().copied());
        let told = slowest_of_all(every, most).into_iter().map(|io| {
            json!({
                "at_ns": self.since_start_ns(io.due),
                "latency_ns": self.shared.clock.ns(io.latency()),
                "service_ns": self.shared.clock.ns(io.ended.saturating_sub(io.submitted)),
                "do": kind_name(io.kind),
                "path": self.shared.targets[io.target as usize].path.display().to_string(),
                "offset": io.offset,
                "bytes": io.bytes,
            })
        });
        told.collect()
    }

    /// Write what was recorded: how many I/Os, and why the file is not there; null where nothing
    /// was to be recorded.
    fn write_recording(&self, all: &[WorkerResult]) -> Value {
        let Some(record) = &self.shared.spec.record else { return Value::Null };
        let ios = merge_recordings(all.iter().map(|ended| &ended.recording));
        let targets: Vec<&Path> =
            self.shared.targets.iter().map(|target| target.path.as_path()).collect();
        let clock = (self.shared.clock, self.times.start);
        let failed = write_iolog(&record.path, &ios, &targets, clock).err();
        if failed.is_some() {
            let _ = fs::remove_file(&record.path);
        }
        json!({ "ios": ios.len(), "fault": failed.map(|error| io_error_text(&error)) })
    }

    /// When the first and the last thread began, nanoseconds after the start; null where none told.
    fn first_and_last_start_ns(&self, all: &[WorkerResult]) -> Value {
        let begun = || all.iter().map(|ended| self.since_start_ns(ended.started));
        json!({ "first": begun().min(), "last": begun().max() })
    }

    /// How long the oldest I/O was due that was not submitted; None where each was.
    fn lag_ns(&self, all: &[WorkerResult], measured_ns: u64) -> Option<u64> {
        let oldest = all.iter().filter_map(|ended| ended.oldest_due).min();
        oldest.map(|due| measured_ns.saturating_sub(self.shared.clock.ns(due)))
    }

    /// Whether arrivals were far behind when submission stopped: as they were behind what hangs.
    fn is_unreached(&self, all: &[WorkerResult], hung: u64, measured_ns: u64) -> bool {
        if hung > 0 && self.has_rate() {
            return true;
        }
        let lag_ns = self.lag_ns(all, measured_ns).unwrap_or(0);
        lag_ns as f64 > MAX_LAG_RATIO * measured_ns as f64
    }

    /// Whether anything is due at a time.
    fn has_rate(&self) -> bool {
        self.shared.spec.jobs.iter().any(JobSpec::is_paced)
    }

    /// What was due and not submitted; null where nothing is due at a time, and where threads that
    /// hang did not tell of it.
    fn unsubmitted(&self, all: &[WorkerResult], hung: u64, measured_ns: u64) -> Value {
        if hung > 0 || !self.has_rate() {
            return Value::Null;
        }
        let count: u64 = all.iter().map(|ended| ended.unsubmitted).sum();
        json!({ "count": count, "oldest_ns": self.lag_ns(all, measured_ns) })
    }
}

/// How many threads the kernel broke off, by errno, and how many of `count` ended without a word:
/// by a fault of the engine, of which standard error tells.
fn broken_threads(all: &[WorkerResult], count: usize) -> BTreeMap<&'static str, usize> {
    let mut broken = BTreeMap::new();
    for errno in all.iter().filter_map(|ended| ended.error) {
        *broken.entry(errno_name(errno).unwrap_or("EIO")).or_default() += 1;
    }
    if all.len() < count {
        broken.insert(LOST_THREAD, count - all.len());
    }
    broken
}

/// What the process used from the start until the last thread submitted nothing more; of threads
/// that did not tell, as it was seen from here.
fn run_usage(followed: &RunOutcome, before: UsageSnapshot) -> Usage {
    let all = &followed.ended;
    let then = all.iter().find_map(|ended| ended.used_before).unwrap_or(before.used);
    let seen = (followed.hung > 0).then_some(followed.stopped.used);
    let after = all.iter().map(|ended| ended.used_after).chain(seen);
    let now = after.max_by_key(|usage| usage.user_ns + usage.system_ns).unwrap_or_default();
    now.since(then)
}

/// What the hypervisor took from this machine since its start.
fn steal_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    // cpu  user nice system idle iowait irq softirq steal …
    let steal = stat.lines().next().and_then(|all| all.split_whitespace().nth(8)?.parse().ok());
    steal.unwrap_or(0)
}

/// Keep all that jobs with `end_fsync` wrote; how long that took, and what failed by errno.
fn fsync_targets(shared: &EngineContext) -> (Option<u64>, BTreeMap<String, u64>) {
    let (start, mut failed) = (Instant::now(), BTreeMap::new());
    let mut places: Vec<u32> = Vec::new();
    for (job, own) in shared.spec.jobs.iter().zip(shared.targets_by_job.iter()) {
        if job.end_fsync {
            places.extend(own);
        }
    }
    places.sort_unstable();
    places.dedup();
    let of_ledger = shared.verification.iter().map(|verification| verification.sync_ledger());
    for kept in places.iter().map(|&nth| fsync(&shared.targets[nth as usize].file)).chain(of_ledger)
    {
        if let Err(error) = kept {
            let name = error.raw_os_error().and_then(errno_name).unwrap_or("EIO");
            *failed.entry(name.to_owned()).or_default() += 1;
        }
    }
    ((!places.is_empty()).then(|| start.elapsed().as_nanos() as u64), failed)
}
