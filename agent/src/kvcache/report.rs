//! The thread that tells: when the replay began, each interval, and the end with all sums.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::engine::{Replay, RequestCounters, Workers};
use crate::latency::{LatencyCounters, LatencyCounts};
use crate::native::counts::WorkerCounters;
use crate::native::halt::CHECK_INTERVAL_NS;
use crate::native::lines::{CounterSnapshot, latency_since, print_line};
use crate::sys::thread::{Usage, lock, process_usage};
use crate::sys::time::{SECOND_NS, real_ns, sleep_until_real};

/// The replay is set up so long before the start.
const START_LEAD_NS: u64 = 20_000_000;
/// Latencies of requests as the lines name them.
const PREFIX: &str = "prefix_load";
const REQUEST: &str = "request";
const PACE: &str = "prefix_pace";
/// After the end nothing may end for so long before what is under way counts as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(10);
/// The arrivals are behind where reads of so large a part of the time were never begun.
const MAX_LAG_RATIO: f64 = 0.01;

/// What is told of a moment.
struct Snapshot {
    ios: CounterSnapshot,
    prefix: LatencyCounts,
    request: LatencyCounts,
    pace: LatencyCounts,
}

impl Snapshot {
    fn of(workers: &Workers) -> Self {
        let ios: Vec<Arc<WorkerCounters>> =
            workers.counters.iter().map(|(ios, _)| Arc::clone(ios)).collect();
        let requests = |of: fn(&RequestCounters) -> &LatencyCounters| {
            LatencyCounts::of(workers.counters.iter().map(|(_, requests)| of(requests)))
        };
        Self {
            ios: CounterSnapshot::of(&ios),
            prefix: requests(|one| &one.prefix),
            request: requests(|one| &one.request),
            pace: requests(|one| &one.pace),
        }
    }

    /// What changed since an earlier moment, and how much ended.
    fn since(&self, earlier: &Self) -> (Map<String, Value>, u64) {
        let (mut all, mut ended) = self.ios.latency_since(&earlier.ios);
        for (name, now, then) in [
            (PREFIX, &self.prefix, &earlier.prefix),
            (REQUEST, &self.request, &earlier.request),
            (PACE, &self.pace, &earlier.pace),
        ] {
            let (counts, count) = latency_since(now, then);
            all.insert(name.into(), counts);
            ended += count;
        }
        (all, ended)
    }
}

/// Replay, and tell it. `start_real_ns` is when to start; at once when it is past or None.
pub fn report_run(
    replay: &Arc<Replay>,
    workers: &Workers,
    start_real_ns: Option<u64>,
    held_at_start: usize,
) {
    let none = Snapshot::of(workers);
    let start_real_ns = wait_for_start(replay, start_real_ns);
    let clock = replay.clock;
    let now = clock.ticks();
    let start = now + clock.ticks_of(start_real_ns.saturating_sub(real_ns()));
    let runtime_ns = (replay.spec.runtime_s * SECOND_NS as f64) as u64;
    let deadline = start + clock.ticks_of(runtime_ns);
    let (shared, counters) = (Arc::clone(replay), workers.counters[0].clone());
    let handing_out = thread::Builder::new()
        .name("requests".into())
        .spawn(move || shared.hand_out(start, deadline, &counters));
    let before = process_usage();
    print_line(&json!({ "started_real_ns": start_real_ns, "late_ns": 0 }));
    let mut writer =
        IntervalWriter { replay, workers, start_real_ns, seq: 0, told_ns: 0, told: none };
    let interval_ns = replay.spec.interval_ms * (SECOND_NS / 1000);
    loop {
        let now_ns = clock.ns(clock.ticks().saturating_sub(start));
        let end_ns = clock.ns(replay.halt.at_ticks().min(deadline).saturating_sub(start));
        if now_ns >= end_ns {
            break;
        }
        if now_ns >= writer.told_ns + interval_ns {
            writer.write(now_ns);
        }
        let next_ns = (writer.told_ns / interval_ns + 1) * interval_ns;
        let pause_ns = next_ns.min(end_ns).saturating_sub(now_ns).clamp(1, CHECK_INTERVAL_NS);
        thread::sleep(Duration::from_nanos(pause_ns));
    }
    let measured_ns = clock.ns(clock.ticks().min(deadline).saturating_sub(start)).max(1);
    let (unsubmitted, oldest) = replay.end_submission();
    let used = process_usage().since(before);
    writer.write(measured_ns.max(writer.told_ns + 1));
    let handed_out = handing_out.ok().and_then(|thread| thread.join().ok());
    let (last, hung) = await_workers(workers);
    let last_ns = clock.ns(last.saturating_sub(start)).max(measured_ns);
    writer.write_rest(last_ns);
    let lag_ns = oldest.map(|due| measured_ns.saturating_sub(clock.ns(due.saturating_sub(start))));
    let end = End {
        start_real_ns,
        last_ns,
        measured_ns,
        unsubmitted,
        lag_ns,
        hung,
        used,
        held_at_start,
        is_broken: handed_out.is_none(),
    };
    end.print(replay, workers);
    if hung > 0 {
        // Threads that the kernel does not let go would be waited for in vain.
        process::exit(0);
    }
}

/// Sleep until shortly before the start, unless all is halted; when it is.
fn wait_for_start(replay: &Replay, start_real_ns: Option<u64>) -> u64 {
    let start_real_ns = start_real_ns.unwrap_or(0).max(real_ns() + START_LEAD_NS);
    let gate_ns = start_real_ns - START_LEAD_NS;
    while real_ns() < gate_ns && !replay.halt.is_requested() {
        sleep_until_real(gate_ns.min(real_ns() + CHECK_INTERVAL_NS));
    }
    start_real_ns
}

/// Wait until all threads have ended: when the last I/O did, in ticks, and how many hang.
fn await_workers(workers: &Workers) -> (u64, u64) {
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

struct IntervalWriter<'a> {
    replay: &'a Replay,
    workers: &'a Workers,
    start_real_ns: u64,
    seq: u64,
    told_ns: u64,
    told: Snapshot,
}

impl IntervalWriter<'_> {
    fn write(&mut self, now_ns: u64) {
        let now = Snapshot::of(self.workers);
        let (mut line, _) = now.since(&self.told);
        let (_, writes) = lock(&self.replay.store).queued();
        line.insert("backlog".into(), self.replay.backlog.load(Ordering::Relaxed).into());
        line.insert("write_backlog".into(), writes.into());
        line.insert("seq".into(), self.seq.into());
        line.insert("end_real_ns".into(), (self.start_real_ns + now_ns).into());
        line.insert("span_ns".into(), (now_ns - self.told_ns).into());
        print_line(&Value::Object(line));
        self.told = now;
        self.told_ns = now_ns;
        self.seq += 1;
    }

    /// What ended after the end, if anything did.
    fn write_rest(&mut self, last_ns: u64) {
        let (_, ended) = Snapshot::of(self.workers).since(&self.told);
        if ended > 0 || last_ns > self.told_ns {
            self.write(last_ns.max(self.told_ns + 1));
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
    held_at_start: usize,
    is_broken: bool,
}

impl End {
    fn print(&self, replay: &Replay, workers: &Workers) {
        let whole = Snapshot::of(workers);
        let mut end = whole.ios.totals();
        let broken: BTreeMap<&str, u64> =
            self.is_broken.then_some(("lost", 1)).into_iter().collect();
        let store = lock(&replay.store);
        let mut requests = json!(store.counts);
        requests["held_at_start"] = self.held_at_start.into();
        requests["held_at_end"] = store.held_blocks().into();
        requests["unloaded"] = replay.backlog.load(Ordering::Relaxed).into();
        drop(store);
        let rest = json!({
            "start_real_ns": self.start_real_ns,
            "end_real_ns": self.start_real_ns + self.last_ns,
            "errors": whole.ios.errors(),
            "retries": whole.ios.retries(),
            "broken": broken,
            "hung": self.hung,
            "gave_up": false,
            "cpu": {
                "user_s": self.used.user_ns as f64 / 1e9,
                "system_s": self.used.system_ns as f64 / 1e9,
            },
            "measured_ns": self.measured_ns,
            "drain_ns": self.last_ns - self.measured_ns,
            "drained_ios": whole.ios.drained(),
            "begun_ns": { "first": 0, "last": 0 },
            "lateness": whole.ios.lateness(),
            "unreached": self.lag_ns.unwrap_or(0) as f64
                > MAX_LAG_RATIO * self.measured_ns as f64,
            "unsubmitted": { "count": self.unsubmitted, "oldest_ns": self.lag_ns },
            "verify": replay.objects.verification(),
            "depth": null,
            "context_switches": {
                "voluntary": self.used.waits,
                "involuntary": self.used.preemptions,
            },
            "steal_ticks": null,
            "requests": requests,
        });
        if let Value::Object(rest) = rest {
            end.extend(rest);
        }
        print_line(&json!({ "end": end }));
    }
}
