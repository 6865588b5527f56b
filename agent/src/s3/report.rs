//! The thread that tells: when the load began, each interval, and the end with all sums.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::counters::{
    AttemptCounters, OPERATIONS, Operation, ROWS, SIZE_CLASSES, ThreadCounters, size_class_bytes,
    sum_of,
};
use super::error_class::{ErrorCounters, ErrorCounts};
use super::load::Load;
use crate::latency::LatencyCounts;
use crate::native::halt::CHECK_INTERVAL_NS;
use crate::native::lines::{IntervalLines, KindCounts, insert_usage, print_line, quantiles_json};
use crate::sys::thread::{Usage, process_usage};
use crate::sys::time::SECOND_NS;

/// After the end of all attempts nothing may end for so long before threads count as hung.
const HANG_TIMEOUT: Duration = Duration::from_secs(10);
/// The arrivals are behind where operations of so large a part of the time never began.
const MAX_LAG_RATIO: f64 = 0.01;

/// The threads of a load, set up and waiting.
pub struct Workers {
    /// By thread.
    pub counters: Vec<Arc<ThreadCounters>>,
    /// Each tells its end here, as the tick of its last act.
    pub ended: Receiver<u64>,
}

/// What is told of a moment.
struct Snapshot {
    rows: Vec<(&'static str, KindCounts)>,
    failed: u64,
    retried: u64,
    opened: u64,
}

impl Snapshot {
    fn of(threads: &[Arc<ThreadCounters>]) -> Self {
        let mut rows = Vec::new();
        for (name, moves) in [
            ("read", Operation::reads as fn(Operation) -> bool),
            ("write", Operation::writes as fn(Operation) -> bool),
        ] {
            let counters = threads.iter().flat_map(|thread| {
                let moving = OPERATIONS.into_iter().filter(move |one| moves(*one));
                moving.filter_map(|one| thread.row(one.row()))
            });
            rows.extend(KindCounts::of(counters).map(|counts| (name, counts)));
        }
        for &row in ROWS {
            let counters = threads.iter().filter_map(|thread| thread.row(row));
            rows.extend(KindCounts::of(counters).map(|counts| (row.name(), counts)));
        }
        let failed = OPERATIONS
            .iter()
            .map(|one| errors_of(threads, |thread| &attempts_of(thread, *one).failed).total());
        Self {
            rows,
            failed: failed.sum(),
            retried: errors_of(threads, |thread| &thread.retried).total(),
            opened: sum_of(threads, |thread| &thread.opened),
        }
    }

    /// What changed since an earlier moment, and how much ended.
    fn since(&self, earlier: &Self) -> (Map<String, Value>, u64) {
        let (mut all, mut ended) = (Map::new(), 0);
        for ((name, now), (_, then)) in self.rows.iter().zip(&earlier.rows) {
            let (line, count) = now.since(then);
            all.insert((*name).to_owned(), line);
            ended += count;
        }
        (all, ended + self.failed - earlier.failed)
    }

    fn totals(&self) -> Map<String, Value> {
        self.rows.iter().map(|(name, counts)| ((*name).to_owned(), counts.total())).collect()
    }
}

fn attempts_of(thread: &ThreadCounters, operation: Operation) -> &AttemptCounters {
    &thread.attempts[operation as usize]
}

fn errors_of(
    threads: &[Arc<ThreadCounters>],
    counters: impl Fn(&ThreadCounters) -> &ErrorCounters,
) -> ErrorCounts {
    let mut sums = ErrorCounts::default();
    for thread in threads {
        counters(thread).add_to(&mut sums);
    }
    sums
}

/// Tell a load that starts at `start`, in ticks, which is `start_real_ns` by the time of the day.
pub fn report_load(load: &Arc<Load>, workers: &Workers, start: u64, start_real_ns: u64) {
    let clock = load.clock;
    let deadline = start + clock.ticks_of((load.spec.runtime_s * SECOND_NS as f64) as u64);
    let before = process_usage();
    print_line(&json!({ "started_real_ns": start_real_ns, "late_ns": 0 }));
    let threads = &workers.counters;
    let lines = IntervalLines::new(start_real_ns, load.spec.interval_ms);
    let mut writer = IntervalWriter { threads, lines, reported: Snapshot::of(threads) };
    let (mut last, mut ended) = (start, 0);
    loop {
        let now_ns = clock.ns(clock.ticks().saturating_sub(start));
        let end_ns = clock.ns(load.halt.at_ticks().min(deadline).saturating_sub(start));
        if now_ns >= end_ns || ended == threads.len() {
            break;
        }
        if writer.lines.is_due(now_ns) {
            writer.write(now_ns);
        }
        let pause_ns =
            writer.lines.next_ns().min(end_ns).saturating_sub(now_ns).clamp(1, CHECK_INTERVAL_NS);
        thread::sleep(Duration::from_nanos(pause_ns));
        while let Ok(at) = workers.ended.try_recv() {
            last = last.max(at);
            ended += 1;
        }
    }
    let end = deadline.min(load.halt.at_ticks());
    let is_early = ended == threads.len();
    let end = if is_early { last.max(start) } else { clock.ticks().min(end) };
    let measured_ns = clock.ns(end.saturating_sub(start)).max(1);
    let used = process_usage().since(before);
    writer.write(measured_ns);
    let patience = load.spec.timeout() * 2 + HANG_TIMEOUT;
    while ended < threads.len() {
        match workers.ended.recv_timeout(patience) {
            Ok(at) => {
                last = last.max(at);
                ended += 1;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    let last_ns = clock.ns(last.saturating_sub(start)).max(measured_ns);
    writer.write_rest(last_ns);
    let is_hung = ended < threads.len();
    print_end(load, threads, &End { start_real_ns, last_ns, measured_ns, used, is_hung });
    if is_hung {
        // Threads that the kernel does not let go would be waited for in vain.
        process::exit(0);
    }
}

struct IntervalWriter<'a> {
    threads: &'a [Arc<ThreadCounters>],
    lines: IntervalLines,
    reported: Snapshot,
}

impl IntervalWriter<'_> {
    fn write(&mut self, now_ns: u64) {
        let now = Snapshot::of(self.threads);
        let (mut values, _) = now.since(&self.reported);
        for (name, value) in [
            ("in_flight", sum_of(self.threads, |thread| &thread.in_flight)),
            ("backlog", sum_of(self.threads, |thread| &thread.backlog)),
            ("connections_opened", now.opened - self.reported.opened),
            ("failed", now.failed - self.reported.failed),
            ("retried", now.retried - self.reported.retried),
        ] {
            values.insert(name.to_owned(), value.into());
        }
        let end_ns = self.lines.end_ns(now_ns);
        self.lines.print(values, end_ns);
        self.reported = now;
    }

    /// What ended after the end, if anything did.
    fn write_rest(&mut self, last_ns: u64) {
        let (_, ended) = Snapshot::of(self.threads).since(&self.reported);
        if ended > 0 || !self.lines.has_reported_until(last_ns) {
            self.write(last_ns);
        }
    }
}

struct End {
    start_real_ns: u64,
    last_ns: u64,
    measured_ns: u64,
    used: Usage,
    is_hung: bool,
}

fn print_end(load: &Load, threads: &[Arc<ThreadCounters>], end: &End) {
    let sum =
        |counter: fn(&ThreadCounters) -> &std::sync::atomic::AtomicU64| sum_of(threads, counter);
    let mut line = Snapshot::of(threads).totals();
    let mut errors: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    for operation in OPERATIONS {
        let failed = errors_of(threads, |thread| &attempts_of(thread, operation).failed);
        if failed.total() > 0 {
            errors.insert(operation.row().name(), failed.named().collect());
        }
    }
    let retried = errors_of(threads, |thread| &thread.retried);
    let unsubmitted = sum(|thread| &thread.unsubmitted);
    let oldest_ns = threads
        .iter()
        .map(|thread| thread.oldest_unsubmitted_ns.load(Ordering::Relaxed))
        .max()
        .filter(|_| unsubmitted > 0);
    let (examples, content_examples) = load.examples();
    let verification = (load.spec.verify_every > 0).then(|| {
        json!({
            "checked": sum(|thread| &thread.verified),
            "torn": sum(|thread| &thread.torn),
            "stale": 0,
            "misplaced": 0,
            "corrupt": sum(|thread| &thread.corrupt),
            "first": content_examples,
        })
    });
    let hung = sum(|thread| &thread.hung);
    let rest = json!({
        "start_real_ns": end.start_real_ns,
        "end_real_ns": end.start_real_ns + end.last_ns,
        "errors": errors,
        "retries": retried.named().collect::<BTreeMap<_, _>>(),
        "broken": {},
        "hung": if end.is_hung { hung.max(1) } else { hung },
        "gave_up": false,
        "measured_ns": end.measured_ns,
        "drain_ns": end.last_ns - end.measured_ns,
        "drained_ios": sum(|thread| &thread.drained),
        "begun_ns": { "first": 0, "last": 0 },
        "lateness": lateness(load, threads),
        "unreached": oldest_ns.unwrap_or(0) as f64 > MAX_LAG_RATIO * end.measured_ns as f64,
        "unsubmitted": { "count": unsubmitted, "oldest_ns": oldest_ns },
        "verify": verification,
        "depth": null,
        "steal_ticks": null,
        "objects": object_counts(load, threads, &examples),
    });
    insert_usage(&mut line, &end.used);
    if let Value::Object(rest) = rest {
        line.extend(rest);
    }
    print_line(&json!({ "end": line }));
}

fn lateness(load: &Load, threads: &[Arc<ThreadCounters>]) -> Value {
    if load.spec.rate.is_none() {
        return Value::Null;
    }
    let late = LatencyCounts::of(threads.iter().map(|thread| &thread.lateness));
    let woken = LatencyCounts::of(threads.iter().map(|thread| &thread.wakeup_delays));
    let mut line = quantiles_json(&late);
    line["machine"] = quantiles_json(&woken);
    line
}

fn object_counts(load: &Load, threads: &[Arc<ThreadCounters>], examples: &[String]) -> Value {
    let sum =
        |counter: fn(&ThreadCounters) -> &std::sync::atomic::AtomicU64| sum_of(threads, counter);
    let mut kinds = Map::new();
    for operation in OPERATIONS {
        let counters = threads.iter().filter_map(|thread| thread.row(operation.row()));
        let Some(counts) = KindCounts::of(counters) else { continue };
        kinds.insert(
            operation.row().name().to_owned(),
            operation_counts(threads, operation, &counts),
        );
    }
    let rows = |operation: Operation| {
        let counters = threads.iter().filter_map(move |thread| thread.row(operation.row()));
        KindCounts::of(counters).map_or((0, 0), |counts| (counts.count(), counts.bytes()))
    };
    let (put, multipart) = (rows(Operation::Put), rows(Operation::Multipart));
    let servers: Vec<Value> = load
        .servers
        .iter()
        .enumerate()
        .map(|(nth, server)| {
            let mut kinds = Map::new();
            for operation in OPERATIONS {
                let counters =
                    threads.iter().filter_map(|thread| thread.servers[nth].latencies(operation));
                let Some(counts) = KindCounts::of(counters) else { continue };
                if counts.count() > 0 {
                    kinds.insert(operation.row().name().to_owned(), counts.total());
                }
            }
            json!({
                "kinds": kinds,
                "endpoint": server.endpoint.url,
                "addresses": server.addresses.len(),
                "operations": sum_of(threads, |thread| &thread.servers[nth].operations),
                "failed": sum_of(threads, |thread| &thread.servers[nth].failed),
                "bytes": sum_of(threads, |thread| &thread.servers[nth].bytes),
                "lat_sum_ns": sum_of(threads, |thread| &thread.servers[nth].lat_sum_ns),
            })
        })
        .collect();
    let dates = load.dates.load(Ordering::Relaxed);
    let ahead =
        |value: &std::sync::atomic::AtomicI64| (dates > 0).then(|| value.load(Ordering::Relaxed));
    json!({
        "kinds": kinds,
        "connections": {
            "opened_before": sum(|thread| &thread.opened_before),
            "opened": sum(|thread| &thread.opened),
            "closed_by_server": sum(|thread| &thread.closed_by_server),
            "connect_failures": sum(|thread| &thread.connect_failures),
        },
        "endpoints": servers,
        "server_clock": {
            "answers": dates,
            "ahead_min_ms": ahead(&load.ahead_min_ms),
            "ahead_max_ms": ahead(&load.ahead_max_ms),
        },
        "cpu_parts": {
            "tls_ns": sum(|thread| &thread.tls_ns),
            "contents_ns": sum(|thread| &thread.contents_ns),
            "verify_ns": sum(|thread| &thread.verify_ns),
            "sign_ns": sum(|thread| &thread.sign_ns),
        },
        "verified_bytes": sum(|thread| &thread.verified_bytes),
        "listed_keys": sum(|thread| &thread.listed_keys),
        "put_objects": put.0 + multipart.0,
        "put_bytes": put.1 + multipart.1,
        "deleted_objects": rows(Operation::Delete).0,
        "uploads": {
            "completed": sum(|thread| &thread.uploads_completed),
            "aborted": sum(|thread| &thread.uploads_aborted),
            "left": sum(|thread| &thread.uploads_left),
        },
        "ended_early": load.is_exhausted().then_some("each object was taken once"),
        "examples": examples,
    })
}

fn operation_counts(
    threads: &[Arc<ThreadCounters>],
    operation: Operation,
    counts: &KindCounts,
) -> Value {
    let failed = errors_of(threads, |thread| &attempts_of(thread, operation).failed);
    let errors = errors_of(threads, |thread| &attempts_of(thread, operation).attempt_errors);
    let sizes: Vec<Value> = (0..SIZE_CLASSES)
        .filter_map(|class| {
            let counters = threads.iter().filter_map(|thread| thread.size_class(operation, class));
            let counts = KindCounts::of(counters).filter(|counts| counts.count() > 0)?;
            Some(json!([size_class_bytes(class), counts.total()]))
        })
        .collect();
    json!({
        "operations": counts.count(),
        "failed": failed.total(),
        "attempts": sum_of(threads, |thread| &attempts_of(thread, operation).attempts),
        "attempt_errors": errors.named().collect::<BTreeMap<_, _>>(),
        "sizes": sizes,
    })
}
