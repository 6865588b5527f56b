//! The thread that tells: when the phase began, each interval, and the end with what each rank did.

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::{Value, json};

use super::engine::{Checkpoint, RankOutcome, Ranks};
use crate::native::halt::{CHECK_INTERVAL_NS, Halt};
use crate::native::lines::{CounterSnapshot, print_line};
use crate::sys::thread::process_usage;
use crate::sys::time::{SECOND_NS, real_ns, sleep_until_real};

/// The phase is set up so long before the start.
const START_LEAD_NS: u64 = 20_000_000;

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
    let mut writer = IntervalWriter { ranks, start_real_ns, seq: 0, told_ns: 0, told: none };
    let interval_ns = checkpoint.spec.interval_ms * (SECOND_NS / 1000);
    let mut outcomes: Vec<RankOutcome> = Vec::new();
    while outcomes.len() < checkpoint.spec.ranks.len() {
        let now_ns = clock.ns(clock.ticks().saturating_sub(start));
        if now_ns >= writer.told_ns + interval_ns {
            writer.write(now_ns);
        }
        let next_ns = (writer.told_ns / interval_ns + 1) * interval_ns;
        let pause = Duration::from_nanos(next_ns.saturating_sub(now_ns).clamp(1, interval_ns));
        match ranks.outcomes.recv_timeout(pause) {
            Ok(outcome) => outcomes.push(outcome),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let used = process_usage().since(before);
    let measured_ns = outcomes.iter().map(|outcome| outcome.end_ns).max().unwrap_or(0);
    let measured_ns = measured_ns.max(writer.told_ns + 1);
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
        "cpu": {
            "user_s": used.user_ns as f64 / 1e9,
            "system_s": used.system_ns as f64 / 1e9,
        },
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
        "context_switches": { "voluntary": used.waits, "involuntary": used.preemptions },
        "steal_ticks": null,
        "halted": checkpoint.halt.is_requested(),
        "ranks": outcomes,
    });
    if let Value::Object(rest) = rest {
        end.extend(rest);
    }
    print_line(&json!({ "end": end }));
}

/// Sleep until shortly before the start, unless all is halted; when it is.
fn wait_for_start(halt: &Halt, start_real_ns: Option<u64>) -> u64 {
    let start_real_ns = start_real_ns.unwrap_or(0).max(real_ns() + START_LEAD_NS);
    let gate_ns = start_real_ns - START_LEAD_NS;
    while real_ns() < gate_ns && !halt.is_requested() {
        sleep_until_real(gate_ns.min(real_ns() + CHECK_INTERVAL_NS));
    }
    start_real_ns
}

struct IntervalWriter<'a> {
    ranks: &'a Ranks,
    start_real_ns: u64,
    seq: u64,
    told_ns: u64,
    told: CounterSnapshot,
}

impl IntervalWriter<'_> {
    fn write(&mut self, now_ns: u64) {
        let now = CounterSnapshot::of(&self.ranks.counters);
        let (mut line, _) = now.latency_since(&self.told);
        line.insert("seq".into(), self.seq.into());
        line.insert("end_real_ns".into(), (self.start_real_ns + now_ns).into());
        line.insert("span_ns".into(), (now_ns - self.told_ns).into());
        print_line(&Value::Object(line));
        self.told = now;
        self.told_ns = now_ns;
        self.seq += 1;
    }
}
