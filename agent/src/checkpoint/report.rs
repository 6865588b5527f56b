//! The thread that tells: when the phase began, each interval, and the end with what each rank did.

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use super::engine::{Checkpoint, RankOutcome, Ranks};
use crate::native::lines::{CounterSnapshot, IntervalLines, insert_usage, print_line};
use crate::native::start::wait_for_start;
use crate::sys::thread::process_usage;
use crate::sys::time::real_ns;

/// Do the phase, and tell it. `start_real_ns` is when to start; at once when it is past or None.
pub fn report_phase(checkpoint: &Checkpoint, ranks: &Ranks, start_real_ns: Option<u64>) {
    // Before anything begins: on a busy host this thread may come back late.
    let none = CounterSnapshot::of(&ranks.counters);
    let start_real_ns = wait_for_start(&checkpoint.halt, start_real_ns);
    let clock = checkpoint.clock;
    let start = clock.ticks() + clock.ticks_of(start_real_ns.saturating_sub(real_ns()));
    ranks.start_at(start);
    let before = process_usage();
    print_line(&json!({ "started_real_ns": start_real_ns, "late_ns": 0 }));
    let interval_ms = checkpoint.spec.interval_ms;
    let lines = IntervalLines::new(start_real_ns, interval_ms);
    let mut writer = IntervalWriter { ranks, lines, reported: none };
    let mut outcomes: Vec<RankOutcome> = Vec::new();
    while outcomes.len() < checkpoint.spec.ranks.len() {
        let now_ns = clock.ns(clock.ticks().saturating_sub(start));
        if writer.lines.is_due(now_ns) {
            writer.write(now_ns);
        }
        let pause_ns = writer.lines.next_ns().saturating_sub(now_ns).max(1);
        let pause = Duration::from_nanos(pause_ns).min(Duration::from_millis(interval_ms));
        match ranks.outcomes.recv_timeout(pause) {
            Ok(outcome) => outcomes.push(outcome),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let used = process_usage().since(before);
    let measured_ns = outcomes.iter().map(|outcome| outcome.end_ns).max().unwrap_or(0);
    let measured_ns = writer.lines.end_ns(measured_ns);
    writer.write(measured_ns);
    let lost = checkpoint.spec.ranks.len() - outcomes.len();
    let broken: BTreeMap<&str, usize> = (lost > 0).then_some(("lost", lost)).into_iter().collect();
    outcomes.sort_by_key(|outcome| outcome.rank);
    let whole = CounterSnapshot::of(&ranks.counters);
    let mut end = whole.totals();
    let rest = json!({
        "start_real_ns": start_real_ns,
        "end_real_ns": start_real_ns + measured_ns,
        "errors": whole.errors(),
        "retries": whole.retries(),
        "broken": broken,
        "hung": 0,
        "gave_up": false,
        "measured_ns": measured_ns,
        "drain_ns": 0,
        "drained_ios": 0,
        "begun_ns": {
            "first": outcomes.iter().map(|outcome| outcome.begin_ns).min().unwrap_or(0),
            "last": outcomes.iter().map(|outcome| outcome.begin_ns).max().unwrap_or(0),
        },
        "lateness": null,
        "unreached": false,
        "unsubmitted": { "count": 0, "oldest_ns": null },
        "verify": checkpoint.contents.verification(checkpoint.spec.phase),
        "depth": null,
        "steal_ticks": null,
        "halted": checkpoint.halt.is_requested(),
        "ranks": outcomes,
    });
    insert_usage(&mut end, &used);
    if let Value::Object(rest) = rest {
        end.extend(rest);
    }
    print_line(&json!({ "end": end }));
}

struct IntervalWriter<'a> {
    ranks: &'a Ranks,
    lines: IntervalLines,
    reported: CounterSnapshot,
}

impl IntervalWriter<'_> {
    fn write(&mut self, now_ns: u64) {
        let now = CounterSnapshot::of(&self.ranks.counters);
        let (values, _) = now.latency_since(&self.reported);
        self.lines.print(values, now_ns);
        self.reported = now;
    }
}
