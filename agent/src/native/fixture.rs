//! A file of this machine, specs of one job on it, and a worker for each thread of them.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::counts::{Timed, Untimed};
use super::halt::Halt;
use super::lines::CounterSnapshot;
use super::plan::Plan;
use super::queue::Queue;
use super::slot::SlotMemory;
use super::spec::{Method, Spec};
use super::target::Targets;
use super::threads::{EngineContext, Threads};
use super::tsc::Clock;
use super::verify::Verification;
use super::worker::{Worker, WorkerResult, WorkerTimes};
use crate::native::{aio, ring};
use crate::trial::TestFolder;

pub const BLOCK: u64 = 4096;
pub const BLOCKS: u64 = 256;

/// A folder with one file.
pub struct Fixture {
    pub folder: TestFolder,
}

impl Fixture {
    pub fn new() -> Self {
        let folder = TestFolder::new();
        File::create(folder.path().join("f")).unwrap().set_len(BLOCK * BLOCKS).unwrap();
        Self { folder }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("f")
    }

    /// A spec of one job, with these keys of it changed.
    pub fn spec(&self, keys: &Value) -> Spec {
        let mut job = json!({
            "files": [{"path": self.file(), "bytes": BLOCK * BLOCKS}],
            "rw": "randread", "blocks": [{"bytes": BLOCK}], "depth": 8, "seed": 3,
        });
        let mut all = json!({"format": 1, "direct": false, "runtime_s": 30.0});
        for (key, value) in keys.as_object().unwrap() {
            let place = if job.get(key).is_some() || !TOP.contains(&key.as_str()) {
                &mut job
            } else {
                &mut all
            };
            place[key] = value.clone();
        }
        all["jobs"] = json!([job]);
        Spec::parse(all.to_string().as_bytes()).unwrap()
    }
}

const TOP: [&str; 9] = [
    "format",
    "direct",
    "runtime_s",
    "interval_ms",
    "threads",
    "method",
    "ledger",
    "timed",
    "later",
];

/// What a run of a job by one method came to.
pub struct Run {
    /// How its threads ended.
    pub ended: WorkerResult,
    /// What all counted.
    pub now: CounterSnapshot,
    /// What was verified.
    pub verified: Option<Value>,
}

/// Run the spec's job to its end.
pub fn run(spec: &Spec, method: Method) -> Run {
    run_with_halt(spec, method, &Arc::default())
}

/// The same, to an earlier halt.
pub fn run_with_halt(spec: &Spec, method: Method, halt: &Arc<Halt>) -> Run {
    assert_eq!(spec.faults(), Vec::<String>::new());
    run_on(Targets::open(spec, 1, &mut Vec::new()).unwrap(), spec, method, halt)
}

/// The same on open targets, which need not be as the spec has them.
pub fn run_on(targets: Targets, spec: &Spec, method: Method, halt: &Arc<Halt>) -> Run {
    let clock = Clock::of_kernel();
    let plan = Plan::of(spec, &targets, &[method], (1, clock), &mut Vec::new()).unwrap();
    let verification = Verification::open(spec, &targets).unwrap().map(Arc::new);
    let halt = Arc::clone(halt);
    let (spec, targets, of_jobs) =
        (Arc::new(spec.clone()), Arc::new(targets.all), Arc::new(targets.by_job));
    let shared =
        EngineContext { spec, targets, targets_by_job: of_jobs, clock, verification, halt };
    let threads = Threads::set_up(&shared, plan).unwrap();
    threads.start(times(&shared.spec, clock));
    let ended = threads.ended.iter().reduce(|first, other| merge_results(&first, other)).unwrap();
    let now = CounterSnapshot::of(&threads.scores);
    Run { ended, now, verified: shared.verification.map(|verification| verification.results()) }
}

/// From now to the end of the spec's time.
fn times(spec: &Spec, clock: Clock) -> WorkerTimes {
    let start = clock.ticks();
    let runtime_ns = (spec.runtime_s.unwrap_or(3600.0) * 1e9) as u64;
    WorkerTimes { start, deadline: start + runtime_ns }
}

/// How two threads ended.
fn merge_results(first: &WorkerResult, other: WorkerResult) -> WorkerResult {
    WorkerResult {
        last_io_end: first.last_io_end.max(other.last_io_end),
        unsubmitted: first.unsubmitted + other.unsubmitted,
        oldest_due: [first.oldest_due, other.oldest_due].into_iter().flatten().min(),
        is_early: first.is_early && other.is_early,
        error: first.error.or(other.error),
        ..other
    }
}

/// Run the spec's job with a queue of one's own, to an earlier halt.
pub fn run_on_queue<Q: Queue>(spec: &Spec, queue: Q, halt: &Arc<Halt>) -> Run {
    let clock = Clock::of_kernel();
    let targets = Targets::open(spec, 1, &mut Vec::new()).unwrap();
    let methods = [Method::IoUring];
    let mut plan = Plan::of(spec, &targets, &methods, (1, clock), &mut Vec::new()).unwrap();
    let thread = plan.threads.remove(0);
    let (memory, scores) = (SlotMemory::of(&thread.lanes).unwrap(), Arc::new(thread.scores(spec)));
    let worker = Worker::new(queue, thread.lanes, memory, clock, Arc::clone(&scores));
    let (worker, times) = (worker.with_halt(Arc::clone(halt)), times(spec, clock));
    let ended = if spec.timed { worker.run::<Timed>(times) } else { worker.run::<Untimed>(times) };
    Run { ended, now: CounterSnapshot::of(&[scores]), verified: None }
}

/// The methods that this machine's kernel has.
pub fn methods() -> Vec<Method> {
    let ring = ring::unsupported_reason().is_none().then_some(Method::IoUring);
    let aio = aio::unsupported_reason().is_none().then_some(Method::Libaio);
    [Some(Method::Sync), ring, aio].into_iter().flatten().collect()
}

/// I/Os of a direction, their bytes, and how many are in bins.
pub fn counts(run: &Run, way: &str) -> (u64, u64, u64) {
    let whole = run.now.totals();
    let bins = whole[way]["bins"].as_array().unwrap();
    let sum = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    (whole[way]["ios"].as_u64().unwrap(), whole[way]["bytes"].as_u64().unwrap(), sum)
}
