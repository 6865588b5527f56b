//! The threads: one for each accelerator, and its loaders.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Map, Value, json};

use super::accelerator::{Accelerator, Barrier, StepCounters, StepParts};
use super::loader::Buffer;
use super::samples::Samples;
use super::spec::Spec;
use crate::error::io_error_text;
use crate::latency::LatencyCounts;
use crate::native::counts::{ArrivalMode, WorkerCounters};
use crate::native::halt::Halt;
use crate::native::lines;
use crate::native::queue::IoKind;
use crate::native::start::{reserve_files, set_up_process, start_thread};
use crate::native::timed::{self, Composite, ThreadCounters, TimedLoad, Workers};
use crate::native::tsc::Clock;
use crate::sys::thread::lock;

/// Some hundred bytes, whatever is read.
const MAX_SPEC_BYTES: u64 = 1 << 20;
/// Descriptors beside one for each loader.
const RESERVED_FILES: u64 = 64;

/// Read the spec, make the steps, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    lines::run_spec_of_stdin(MAX_SPEC_BYTES, "give fewer accelerators", |text| {
        Spec::parse(text).and_then(run_engine).map_err(|fault| vec![fault])
    })
}

/// What all threads share.
pub struct Training {
    /// What is done.
    pub spec: Spec,
    /// Where samples lie.
    pub samples: Samples,
    /// Of an epoch.
    pub steps: u64,
    /// The clock of all times.
    pub clock: Clock,
    /// By number.
    pub accelerators: Vec<Accelerator>,
    /// By number, what the thread of an accelerator counts.
    pub step_counters: Vec<ThreadCounters<StepCounters>>,
    /// Where they meet.
    pub barrier: Barrier,
    /// What was done in the first and in later epochs.
    pub epochs: Epochs,
    halt: Arc<Halt>,
    is_over: AtomicBool,
    order: Mutex<Option<(u64, Arc<Vec<u32>>)>>,
}

fn run_engine(spec: Spec) -> Result<(), String> {
    let samples = Samples::of(&spec)?;
    let files = u64::from(spec.accelerators) * u64::from(spec.loaders) + RESERVED_FILES;
    reserve_files(files)?;
    let (clock, halt) = set_up_process()?;
    let training = Arc::new(Training {
        steps: samples.steps(&spec),
        accelerators: (0..spec.accelerators).map(|_| Accelerator::default()).collect(),
        step_counters: (0..spec.accelerators)
            .map(|_| (Arc::new(WorkerCounters::new(&[], ArrivalMode::Scheduled)), Arc::default()))
            .collect(),
        barrier: Barrier::default(),
        epochs: Epochs::default(),
        halt,
        is_over: AtomicBool::new(false),
        order: Mutex::new(None),
        samples,
        clock,
        spec,
    });
    let workers = start_loaders(&training)?;
    timed::print_head(&*training, workers.count);
    timed::report_run(&training, &workers, lines::requested_start_real_ns());
    Ok(())
}

fn start_loaders(training: &Arc<Training>) -> Result<Workers<StepCounters>, String> {
    let (tell, ended) = channel();
    let mut counters = training.step_counters.clone();
    let spec = &training.spec;
    for place in (0..spec.accelerators).flat_map(|one| (0..spec.loaders).map(move |nth| (one, nth)))
    {
        let reads = WorkerCounters::new(&[IoKind::Read], ArrivalMode::Unscheduled);
        let own: ThreadCounters<StepCounters> = (Arc::new(reads), Arc::default());
        counters.push(own.clone());
        let buffer = Buffer::new(spec.read_bytes).map_err(|error| {
            format!("There is no memory for a loader: {}.", io_error_text(&error))
        })?;
        let (shared, tell) = (Arc::clone(training), tell.clone());
        start_thread("loader", move || shared.load_until_over(place, &own, &buffer, &tell))?;
    }
    let count = counters.len() - training.step_counters.len();
    Ok(Workers { counters, ended, count })
}

impl Training {
    /// Whether nothing more is to be begun.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// How many steps each has made.
    fn steps_by_accelerator(&self) -> Vec<u64> {
        let counts = self.step_counters.iter().map(|(_, own)| {
            let (bins, _) =
                LatencyCounts::of([&own.step, &own.first_step]).since(&LatencyCounts::empty());
            bins.iter().map(|(_, count)| count).sum()
        });
        counts.collect()
    }

    /// The order of an epoch, which the first who asks draws.
    pub fn order(&self, epoch: u64) -> Arc<Vec<u32>> {
        let mut current = lock(&self.order);
        if let Some((of, order)) = &*current {
            if *of == epoch {
                return Arc::clone(order);
            }
        }
        let order = Arc::new(self.samples.order(&self.spec, epoch));
        *current = Some((epoch, Arc::clone(&order)));
        order
    }
}

impl TimedLoad for Training {
    type Counters = StepCounters;
    const COMPOSITES: &'static [Composite<StepCounters>] = &[
        ("file_read", |own| &own.file_read),
        ("batch_load", |own| &own.batch_load),
        ("step", |own| &own.step),
        ("first_step", |own| &own.first_step),
        ("storage_wait", |own| &own.storage_wait),
        ("barrier_wait", |own| &own.barrier_wait),
        ("compute_lateness", |own| &own.lateness),
    ];

    fn clock(&self) -> Clock {
        self.clock
    }

    fn halt(&self) -> &Halt {
        &self.halt
    }

    fn runtime_s(&self) -> f64 {
        self.spec.runtime_s
    }

    fn interval_ms(&self) -> u64 {
        self.spec.interval_ms
    }

    fn is_direct(&self) -> bool {
        self.spec.direct
    }

    fn begin(self: &Arc<Self>, start: u64, deadline: u64) -> Option<JoinHandle<()>> {
        let mut threads = Vec::new();
        for number in 0..self.spec.accelerators {
            let shared = Arc::clone(self);
            let work = move || shared.make_steps(number, start, deadline);
            threads.push(start_thread("accelerator", work).ok()?);
        }
        start_thread("steps", move || {
            for thread in threads {
                thread.join().expect("an accelerator broke");
            }
        })
        .ok()
    }

    fn end_submission(&self) -> (u64, Option<u64>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.barrier.end();
        self.accelerators.iter().for_each(Accelerator::end);
        (0, None)
    }

    fn interval_values(&self) -> Map<String, Value> {
        Map::new()
    }

    fn end_values(&self) -> Map<String, Value> {
        let steps = self.steps_by_accelerator();
        let values = json!({
            "steps_least": steps.iter().min(),
            "steps_most": steps.iter().max(),
            "samples": self.samples.count(),
            "steps_per_epoch": self.steps,
            "epochs": self.epochs.count.load(Ordering::Relaxed),
            "first_epoch": self.epochs.first.totals(),
            "later_epochs": self.epochs.later.totals(),
        });
        Map::from_iter([("verify".into(), Value::Null), ("training".into(), values)])
    }
}

/// What was done in the first epoch, and in all later ones.
#[derive(Debug, Default)]
pub struct Epochs {
    count: AtomicU64,
    first: EpochSums,
    later: EpochSums,
}

#[derive(Debug, Default)]
struct EpochSums {
    steps: AtomicU64,
    step_ns: AtomicU64,
    storage_ns: AtomicU64,
    first_step_ns: AtomicU64,
    loads: AtomicU64,
    load_ns: AtomicU64,
    bytes: AtomicU64,
}

impl Epochs {
    fn of(&self, epoch: u64) -> &EpochSums {
        self.count.fetch_max(epoch + 1, Ordering::Relaxed);
        if epoch == 0 { &self.first } else { &self.later }
    }

    /// A step of an epoch has ended.
    pub fn add_step(&self, epoch: u64, is_first: bool, parts: &StepParts) {
        let sums = self.of(epoch);
        if is_first {
            sums.first_step_ns.fetch_add(parts.step_ns, Ordering::Relaxed);
            return;
        }
        sums.steps.fetch_add(1, Ordering::Relaxed);
        sums.step_ns.fetch_add(parts.step_ns, Ordering::Relaxed);
        sums.storage_ns.fetch_add(parts.storage_ns, Ordering::Relaxed);
    }

    /// A batch of an epoch was read.
    pub fn add_load(&self, epoch: u64, ns: u64, bytes: u64) {
        let sums = self.of(epoch);
        sums.loads.fetch_add(1, Ordering::Relaxed);
        sums.load_ns.fetch_add(ns, Ordering::Relaxed);
        sums.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl EpochSums {
    fn totals(&self) -> Value {
        let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        json!({
            "steps": of(&self.steps),
            "step_ns": of(&self.step_ns),
            "storage_wait_ns": of(&self.storage_ns),
            "first_step_ns": of(&self.first_step_ns),
            "batches": of(&self.loads),
            "load_ns": of(&self.load_ns),
            "bytes": of(&self.bytes),
        })
    }
}
