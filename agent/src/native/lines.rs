//! What the engine says: one JSON object a line.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::counts::{IoCounters, RETRY_REASONS, WorkerCounters};
use super::queue::IoKind;
use crate::job::START_VARIABLE;
use crate::latency::{LatencyCounters, LatencyCounts, SparseBins, lower_ns, middle_ns, upper_ns};
use crate::sys::thread::Usage;

/// Faults in one answer: what is wrong with a thousand jobs alike is told by some of them.
const MAX_FAULTS: usize = 50;
/// The exit code when the spec cannot be done.
const CODE_FAULT: u8 = 2;

/// Each kind of I/O and its name.
const IO_KIND_NAMES: [(IoKind, &str); 4] = [
    (IoKind::Read, "read"),
    (IoKind::Write, "write"),
    (IoKind::Trim, "trim"),
    (IoKind::Sync, "sync"),
];

/// The name of a kind of I/O.
#[must_use]
pub fn kind_name(kind: IoKind) -> &'static str {
    IO_KIND_NAMES.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

/// Say one line at once. A reader that is gone ends the engine by its signal.
pub fn print_line(line: &Value) {
    let mut text = line.to_string();
    text.push('\n');
    let mut output = io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Do what the spec on standard input asks for, of at most `max_bytes`; with more, `advice` is told.
pub fn run_spec_of_stdin(
    max_bytes: u64,
    advice: &str,
    run: impl FnOnce(&[u8]) -> Result<(), Vec<String>>,
) -> ExitCode {
    let mut text = Vec::new();
    let outcome = match io::stdin().lock().take(max_bytes + 1).read_to_end(&mut text) {
        Err(error) => Err(vec![format!("The spec cannot be read: {error}.")]),
        Ok(bytes) if bytes as u64 > max_bytes => {
            Err(vec![format!("The spec has more than {max_bytes} bytes; {advice}.")])
        }
        Ok(_) => run(&text),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(faults) => {
            print_faults(faults);
            ExitCode::from(CODE_FAULT)
        }
    }
}

/// When the load is to start, by the clock of the day; None for at once.
#[must_use]
pub fn requested_start_real_ns() -> Option<u64> {
    env::var(START_VARIABLE).ok().and_then(|at_ns| at_ns.parse().ok())
}

/// Say what speaks against the spec.
fn print_faults(mut faults: Vec<String>) {
    let more = faults.len().saturating_sub(MAX_FAULTS);
    faults.truncate(MAX_FAULTS);
    if more > 0 {
        faults.push(format!("There are {more} faults more."));
    }
    print_line(&json!({ "fault": faults }));
}

/// What all workers counted up to a moment.
pub struct CounterSnapshot {
    by_kind: Vec<(&'static str, KindCounts)>,
    lateness: Option<LatencyCounts>,
    wakeup_delays: Option<LatencyCounts>,
    retries: [u64; RETRY_REASONS.len()],
    drained: u64,
    in_flight: u64,
}

/// What all threads counted of one kind of I/O up to a moment.
pub struct KindCounts {
    response: LatencyCounts,
    service: Option<LatencyCounts>,
    bytes: u64,
    untimed: u64,
}

#[derive(Serialize)]
struct Direction {
    ios: u64,
    bytes: u64,
    #[serde(flatten)]
    latency: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Latency>,
}

#[derive(Serialize)]
struct Latency {
    lat_sum_ns: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    bins: SparseBins,
}

const NS_PER_MS: u64 = 1_000_000;

/// The intervals that an engine tells one after the other.
#[derive(Debug)]
pub struct IntervalLines {
    start_real_ns: u64,
    interval_ns: u64,
    count: u64,
    /// Where the last one ended, from the start.
    reported_ns: u64,
}

impl IntervalLines {
    /// Of load that starts then; so long is between two of them.
    #[must_use]
    pub fn new(start_real_ns: u64, interval_ms: u64) -> Self {
        Self { start_real_ns, interval_ns: interval_ms * NS_PER_MS, count: 0, reported_ns: 0 }
    }

    /// When the next one is to end, from the start.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        (self.reported_ns / self.interval_ns + 1) * self.interval_ns
    }

    /// Whether an interval is over at that moment.
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.reported_ns + self.interval_ns
    }

    /// Whether the load was told up to that moment, in one interval at least.
    #[must_use]
    pub fn has_reported_until(&self, now_ns: u64) -> bool {
        self.count > 0 && now_ns <= self.reported_ns
    }

    /// Where an interval ends that ends at `now_ns`: behind the one before.
    #[must_use]
    pub fn end_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.reported_ns + 1)
    }

    /// Tell what was done up to `now_ns` from the start, and since the one before.
    pub fn print(&mut self, mut values: Map<String, Value>, now_ns: u64) {
        values.insert("seq".into(), self.count.into());
        values.insert("end_real_ns".into(), (self.start_real_ns + now_ns).into());
        values.insert("span_ns".into(), (now_ns - self.reported_ns).into());
        print_line(&Value::Object(values));
        self.reported_ns = now_ns;
        self.count += 1;
    }
}

/// What the process used, as the end tells it.
pub fn insert_usage(end: &mut Map<String, Value>, used: &Usage) {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let cpu = json!({ "user_s": seconds(used.user_ns), "system_s": seconds(used.system_ns) });
    let switches = json!({ "voluntary": used.waits, "involuntary": used.preemptions });
    end.insert("cpu".into(), cpu);
    end.insert("context_switches".into(), switches);
}

impl CounterSnapshot {
    /// Now.
    #[must_use]
    pub fn of(scores: &[Arc<WorkerCounters>]) -> Self {
        let acts = IO_KIND_NAMES.iter().filter_map(|&(act, name)| {
            let tallies = scores.iter().filter_map(|one| one.counters_of(act));
            KindCounts::of(tallies).map(|counted| (name, counted))
        });
        let counts = |of: fn(&WorkerCounters) -> Option<&LatencyCounters>| {
            let all: Vec<&LatencyCounters> = scores.iter().filter_map(|one| of(one)).collect();
            (!all.is_empty()).then(|| LatencyCounts::of(all))
        };
        let sum = |of: &dyn Fn(&WorkerCounters) -> &AtomicU64| -> u64 {
            scores.iter().map(|one| of(one).load(Ordering::Relaxed)).sum()
        };
        Self {
            by_kind: acts.collect(),
            lateness: counts(|one| one.lateness.as_deref()),
            wakeup_delays: counts(|one| one.wakeup_delays.as_deref()),
            retries: std::array::from_fn(|nth| sum(&|one| &one.retries[nth])),
            drained: sum(&|one| &one.drained),
            in_flight: sum(&|one| &one.in_flight),
        }
    }

    /// I/Os that ended after submission had stopped.
    #[must_use]
    pub fn drained_ios(&self) -> u64 {
        self.drained
    }

    /// I/Os that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// I/Os that were done, and those that failed.
    #[must_use]
    pub fn done_and_failed(&self) -> (u64, u64) {
        let (mut done, mut failed) = (0, 0);
        for (_, counted) in &self.by_kind {
            let (bins, errors) = counted.response.since(&LatencyCounts::empty());
            done += bins.iter().map(|(_, count)| count).sum::<u64>() + counted.untimed;
            failed += errors.values().sum::<u64>();
        }
        (done, failed)
    }

    /// The directions as they changed since an earlier moment, and how many I/Os that were.
    #[must_use]
    pub fn latency_since(&self, earlier: &Self) -> (Map<String, Value>, u64) {
        let mut all = Map::new();
        let mut ios = 0;
        for ((name, now), (_, then)) in self.by_kind.iter().zip(&earlier.by_kind) {
            let (direction, count) = now.since(then);
            ios += count;
            all.insert((*name).to_owned(), direction);
        }
        (all, ios)
    }

    /// All since the start: with the true extremes, which intervals have by their bins alone.
    #[must_use]
    pub fn totals(&self) -> Map<String, Value> {
        let whole = self.by_kind.iter();
        whole.map(|(name, counted)| ((*name).to_owned(), counted.total())).collect()
    }

    /// Failures by direction and errno.
    #[must_use]
    pub fn errors(&self) -> BTreeMap<&'static str, BTreeMap<String, u64>> {
        let all = self
            .by_kind
            .iter()
            .map(|(name, counted)| (*name, counted.response.since(&LatencyCounts::empty()).1));
        all.filter(|(_, errors)| !errors.is_empty()).collect()
    }

    /// I/Os that were given to the kernel once more, by why.
    #[must_use]
    pub fn retries(&self) -> BTreeMap<&'static str, u64> {
        RETRY_REASONS.iter().copied().zip(self.retries).filter(|&(_, count)| count > 0).collect()
    }

    /// How late the generator was, and of that the machine; null where nothing was to begin at a
    /// time.
    #[must_use]
    pub fn lateness(&self) -> Value {
        let Some(counts) = &self.lateness else { return Value::Null };
        let mut lateness = quantiles_json(counts);
        lateness["machine"] = self.wakeup_delays.as_ref().map_or(Value::Null, quantiles_json);
        lateness
    }
}

impl KindCounts {
    /// What the threads counted; None where none of them has counters of it.
    #[must_use]
    pub fn of<'a>(threads: impl IntoIterator<Item = &'a IoCounters>) -> Option<Self> {
        let tallies: Vec<&IoCounters> = threads.into_iter().collect();
        let service: Vec<&LatencyCounters> =
            tallies.iter().filter_map(|tally| tally.service.as_deref()).collect();
        (!tallies.is_empty()).then(|| Self {
            response: LatencyCounts::of(tallies.iter().map(|tally| &tally.response)),
            service: (!service.is_empty()).then(|| LatencyCounts::of(service)),
            bytes: tallies.iter().map(|tally| tally.bytes.load(Ordering::Relaxed)).sum(),
            untimed: tallies.iter().map(|tally| tally.untimed.load(Ordering::Relaxed)).sum(),
        })
    }

    /// How many succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        binned_count(&since(&self.response, &LatencyCounts::empty())) + self.untimed
    }

    /// The bytes that they moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What changed since an earlier moment, and how many that were.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> (Value, u64) {
        let service = self.service.as_ref().zip(earlier.service.as_ref());
        let latency = since(&self.response, &earlier.response);
        let direction = Direction {
            ios: binned_count(&latency) + self.untimed - earlier.untimed,
            bytes: self.bytes - earlier.bytes,
            latency,
            service: service.map(|(now, then)| since(now, then)),
        };
        let ios = direction.ios;
        (json!(direction), ios)
    }

    /// All since the start, with the true extremes.
    #[must_use]
    pub fn total(&self) -> Value {
        let latency = total_latency(&self.response);
        json!(Direction {
            ios: binned_count(&latency) + self.untimed,
            bytes: self.bytes,
            latency,
            service: self.service.as_ref().map(total_latency),
        })
    }
}

/// Latencies as they changed since an earlier moment, and how many they are of.
#[must_use]
pub fn latency_since(now: &LatencyCounts, earlier: &LatencyCounts) -> (Value, u64) {
    let latency = since(now, earlier);
    let ios = binned_count(&latency);
    (json!(Direction { ios, bytes: 0, latency, service: None }), ios)
}

/// How many there are, their median, 99th percentile and longest, and their bins.
#[must_use]
pub fn quantiles_json(counts: &LatencyCounts) -> Value {
    let all = total_latency(counts);
    json!({
        "count": binned_count(&all),
        "p50_ns": quantile(&all.bins, 0.5),
        "p99_ns": quantile(&all.bins, 0.99),
        "max_ns": all.max_ns,
        "bins": all.bins,
    })
}

fn binned_count(latency: &Latency) -> u64 {
    latency.bins.iter().map(|(_, count)| count).sum()
}

fn total_latency(counts: &LatencyCounts) -> Latency {
    let latency = since(counts, &LatencyCounts::empty());
    let extremes = counts.extremes_ns();
    Latency {
        min_ns: extremes.map(|(min_ns, _)| min_ns),
        max_ns: extremes.map(|(_, max_ns)| max_ns),
        ..latency
    }
}

fn since(now: &LatencyCounts, then: &LatencyCounts) -> Latency {
    let (bins, _) = now.since(then);
    // A bin's edges, but no further out than anything that ever happened.
    let (min_ns, max_ns) = now.extremes_ns().unwrap_or((0, u64::MAX));
    Latency {
        lat_sum_ns: now.sum_ns - then.sum_ns,
        min_ns: bins.first().map(|&(bin, _)| lower_ns(bin).max(min_ns)),
        max_ns: bins.last().map(|&(bin, _)| upper_ns(bin).min(max_ns)),
        bins,
    }
}

/// The middle of the first bin up to which there is that part of all counts.
fn quantile(bins: &SparseBins, part: f64) -> Option<u64> {
    let all: u64 = bins.iter().map(|(_, count)| count).sum();
    let wanted = (part * all as f64).ceil() as u64;
    let mut sum = 0;
    bins.iter()
        .find(|&&(_, count)| {
            sum += count;
            sum >= wanted
        })
        .map(|&(bin, _)| middle_ns(bin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::counts::ArrivalMode;

    #[test]
    fn differences_have_edges_and_the_whole_has_extremes() {
        let scores = [Arc::new(WorkerCounters::new(&[IoKind::Read], ArrivalMode::Scheduled))];
        let tally = scores[0].counters_of(IoKind::Read).unwrap();
        tally.add(100, 4096, 1);
        let first = CounterSnapshot::of(&scores);
        tally.add(1_000_123, 4096, 1);
        tally.response.fail(Some(libc::EIO));
        let second = CounterSnapshot::of(&scores);
        let (since, ios) = second.latency_since(&first);
        assert_eq!((ios, &since["read"]["bytes"]), (1, &json!(4096)));
        assert_eq!(since["read"]["lat_sum_ns"], json!(1_000_123));
        assert!(since["read"]["min_ns"].as_u64().unwrap() <= 1_000_123);
        assert_eq!(since["read"]["max_ns"], json!(1_000_123));
        assert_eq!(second.totals()["read"]["min_ns"], json!(100));
        assert_eq!(second.errors()["read"]["EIO"], 1);
        assert_eq!(second.lateness()["count"], json!(0));
    }

    #[test]
    fn a_quantile_is_of_the_bin_that_reaches_it() {
        let bins = vec![(1, 50), (2, 49), (3, 1)];
        assert_eq!([0.5, 0.99, 1.0].map(|part| quantile(&bins, part)), [Some(1), Some(2), Some(3)]);
        assert_eq!(quantile(&Vec::new(), 0.5), None);
    }
}
