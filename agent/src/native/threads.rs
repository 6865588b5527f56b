//! The threads of an engine: set up, started together, listened to, and summed up.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::aio::AioQueue;
use super::counts::{Timed, Untimed, WorkerCounters};
use super::halt::Halt;
use super::plan::{Plan, ThreadPlan};
use super::queue::{Queue, SyncQueue};
use super::ring::{RingOptions, UringQueue};
use super::slot::SlotMemory;
use super::spec::{Method, Spec};
use super::target::Target;
use super::tsc::Clock;
use super::verify::Verification;
use super::worker::{Worker, WorkerResult, WorkerTimes};
use crate::error::io_error_text;
use crate::sys::thread::{lock, set_min_timer_slack};

/// A worker's loop has no deep calls; a small stack lets thousands of threads fit.
const STACK_BYTES: usize = 256 << 10;

/// All threads, ready for the start.
pub struct Threads {
    handles: Vec<JoinHandle<()>>,
    gate: Arc<StartGate>,
    /// What each says when it has ended.
    pub ended: Receiver<WorkerResult>,
    /// What each counts.
    pub scores: Vec<Arc<WorkerCounters>>,
    /// What their set-up says about the results.
    pub notes: Vec<String>,
}

/// What the threads wait at for the start.
#[derive(Default)]
struct StartGate {
    times: Mutex<Option<WorkerTimes>>,
    is_open: Condvar,
}

/// What all threads share.
#[derive(Clone)]
pub struct EngineContext {
    /// What is done.
    pub spec: Arc<Spec>,
    /// On what.
    pub targets: Arc<Vec<Target>>,
    /// By job and file: its place among the targets.
    pub targets_by_job: Arc<Vec<Vec<u32>>>,
    /// By which clock.
    pub clock: Clock,
    /// What verified jobs are compared with.
    pub verification: Option<Arc<Verification>>,
    /// Whether it is to end early.
    pub halt: Arc<Halt>,
}

impl StartGate {
    fn wait(&self) -> WorkerTimes {
        let mut times = lock(&self.times);
        loop {
            if let Some(times) = *times {
                return times;
            }
            times = self.is_open.wait(times).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Threads {
    /// Start the threads and wait until each is set up; or all that went wrong with that.
    pub fn set_up(shared: &EngineContext, plan: Plan) -> Result<Self, Vec<String>> {
        let (ready, readiness) = channel();
        let (tell, ended) = channel();
        let gate = Arc::new(StartGate::default());
        let recorded_ios = shared.spec.record.as_ref().map_or(0, |record| record.ios as usize);
        let recorded_ios = recorded_ios.div_ceil(plan.threads.len().max(1));
        let mut handles = Vec::with_capacity(plan.threads.len());
        let mut scores = Vec::with_capacity(plan.threads.len());
        for (nth, thread) in plan.threads.into_iter().enumerate() {
            let own = Arc::new(thread.scores(&shared.spec));
            scores.push(Arc::clone(&own));
            let shared = shared.clone();
            let line = ThreadChannels {
                gate: Arc::clone(&gate),
                ready: ready.clone(),
                ended: tell.clone(),
            };
            let seat = ThreadWork {
                plan: thread,
                scores: own,
                samples_start_usage: nth == 0,
                recorded_ios,
            };
            let work = move || run_thread(&shared, seat, line);
            let handle = Builder::new().name("engine".into()).stack_size(STACK_BYTES).spawn(work);
            handles.push(handle.map_err(|error| {
                vec![format!("A thread cannot be started: {}.", io_error_text(&error))]
            })?);
        }
        drop((ready, tell));
        let said: Vec<Readiness> = readiness.iter().collect();
        let mut faults: Vec<String> =
            said.iter().filter_map(|said| said.as_ref().err().cloned()).collect();
        if said.len() < handles.len() {
            faults.push("A thread ended in its set-up, which is a fault of the engine.".into());
        }
        if !faults.is_empty() {
            faults.sort();
            faults.dedup();
            return Err(faults);
        }
        let mut notes: Vec<String> = said.into_iter().flatten().flatten().collect();
        notes.sort();
        notes.dedup();
        Ok(Self { handles, gate, ended, scores, notes })
    }

    /// Let them begin.
    pub fn start(&self, times: WorkerTimes) {
        *lock(&self.gate.times) = Some(times);
        self.gate.is_open.notify_all();
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.handles.len()
    }
}

impl Drop for Threads {
    /// Threads that have said how they ended still give back what they hold in the kernel.
    fn drop(&mut self) {
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

/// One thread's part.
struct ThreadWork {
    plan: ThreadPlan,
    scores: Arc<WorkerCounters>,
    samples_start_usage: bool,
    /// I/Os that it has room to record.
    recorded_ios: usize,
}

/// What a thread says of its set-up: notes, or why it cannot begin.
type Readiness = Result<Vec<String>, String>;

/// Where a thread waits, and to whom it speaks.
struct ThreadChannels {
    gate: Arc<StartGate>,
    ready: Sender<Readiness>,
    ended: Sender<WorkerResult>,
}

/// The whole life of one thread.
fn run_thread(shared: &EngineContext, seat: ThreadWork, line: ThreadChannels) {
    let lanes = &seat.plan.lanes;
    let mut memory = match SlotMemory::of(lanes) {
        Ok(memory) => memory,
        Err(error) => return line.give_up("There is no memory for the blocks", &error),
    };
    memory.fill_write_buffers(lanes);
    let depth = lanes.iter().map(|lane| lane.depth).sum();
    let (targets, mut notes) = (&shared.targets, Vec::new());
    match seat.plan.method {
        Method::Sync => {
            line.run_queue(shared, seat, memory, Ok(SyncQueue::new(Arc::clone(targets))), notes);
        }
        Method::Libaio => {
            line.run_queue(shared, seat, memory, AioQueue::new(depth, targets), notes);
        }
        Method::IoUring => {
            let Spec { poll, sqpoll, .. } = *shared.spec;
            let all: Vec<&Target> = targets.iter().collect();
            let ring = UringQueue::new(
                RingOptions { depth, poll, sqpoll },
                &all,
                &memory.buffers,
                &mut notes,
            );
            line.run_queue(shared, seat, memory, ring, notes);
        }
    }
}

impl ThreadChannels {
    fn give_up(self, what: &str, error: &io::Error) {
        let _ = self.ready.send(Err(format!("{what}: {}.", io_error_text(error))));
    }

    /// Work by a queue of whichever kind, once the gate is open.
    fn run_queue<Q: Queue>(
        self,
        shared: &EngineContext,
        ThreadWork { plan: thread, scores, samples_start_usage: leads, recorded_ios }: ThreadWork,
        memory: SlotMemory,
        queue: io::Result<Q>,
        notes: Vec<String>,
    ) {
        let queue = match queue {
            Ok(queue) => queue,
            Err(error) => return self.give_up("The kernel gives no queue", &error),
        };
        let worker = Worker::new(queue, thread.lanes, memory, shared.clock, scores)
            .with_verification(shared.verification.clone())
            .with_halt(Arc::clone(&shared.halt))
            .with_slowest(shared.spec.slow_ios)
            .with_recorder(recorded_ios);
        let worker = if leads { worker.with_start_usage() } else { worker };
        set_min_timer_slack();
        let _ = self.ready.send(Ok(notes));
        drop(self.ready); // Who waits for all to be ready waits until nobody has this any more.
        let times = self.gate.wait();
        let is_timed = shared.spec.timed;
        let ended =
            if is_timed { worker.run::<Timed>(times) } else { worker.run::<Untimed>(times) };
        let _ = self.ended.send(ended);
    }
}
