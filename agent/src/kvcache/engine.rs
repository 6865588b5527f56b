//! The threads: one that hands requests out, those that read, those that write.

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::objects::{Buffer, Objects};
use super::spec::Spec;
use super::store::{ReadTask, Store, WriteTask};
use crate::error::io_error_text;
use crate::latency::{LatencyCounters, add_by_owner};
use crate::native::counts::{ArrivalMode, WorkerCounters};
use crate::native::halt::{CHECK_INTERVAL_NS, Halt};
use crate::native::lines;
use crate::native::queue::IoKind;
use crate::native::start::{reserve_files, set_up_process, start_thread};
use crate::native::timed::{self, Composite, Ended, TimedLoad};
use crate::native::tsc::Clock;
use crate::sys::thread::{lock, request_short_slices, set_min_timer_slack};
use crate::sys::time::real_ns;

/// Requests of a million blocks fit.
const MAX_SPEC_BYTES: u64 = 256 << 20;
/// Between two looks for room.
const ROOM_PAUSE: Duration = Duration::from_micros(100);
/// Descriptors beside one for each thread.
const RESERVED_FILES: u64 = 64;
/// Threads of a kind that are woken at once; each that finds work wakes the next ones. Who hands
/// requests out is put aside for some of those that it wakes: it would be late for the next request.
const MAX_WAKES: usize = 2;

/// Read the spec, replay it, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    lines::run_spec_of_stdin(MAX_SPEC_BYTES, "replay fewer requests", |text| {
        Spec::parse(text).and_then(run_engine).map_err(|fault| vec![fault])
    })
}

/// What all threads share.
pub struct Replay {
    /// What is done.
    pub spec: Spec,
    /// By request, the blocks of those that are replayed.
    pub paths: Vec<Vec<u32>>,
    /// The clock of all times.
    pub clock: Clock,
    /// The wish to end early.
    pub halt: Arc<Halt>,
    /// The target.
    pub objects: Objects,
    /// What is held, read and written, and who waits for it.
    pub shared: Mutex<Shared>,
    held_at_start: usize,
    /// Of the thread that hands requests out.
    own_counters: ThreadCounters,
    has_reads: Condvar,
    has_writes: Condvar,
    is_over: AtomicBool,
    /// By request, reads that it still waits for, and all that it waits for.
    left: Vec<(AtomicU32, AtomicU32)>,
    /// Requests whose prefix is not loaded.
    pub backlog: AtomicU64,
}

/// What threads do only one at a time.
pub struct Shared {
    /// The store.
    pub store: Store,
    /// Threads that wait for reads, and for writes.
    idle: (usize, usize),
}

impl Shared {
    /// How many threads to wake for reads, and for writes.
    fn wakes(&self) -> (usize, usize) {
        let (reads, writes) = (self.store.queued().0, self.store.writable());
        (reads.min(self.idle.0).min(MAX_WAKES), writes.min(self.idle.1).min(MAX_WAKES))
    }
}

/// What a thread counts of requests: written by it alone.
#[derive(Default)]
pub struct RequestCounters {
    /// From when a request was due to the last block of its prefix; of those that read any.
    pub prefix: LatencyCounters,
    /// The same of all requests, where those without a read are done when they were looked up.
    pub request: LatencyCounters,
    /// The time of each `PACE_BYTES` of a prefix that was read: how fast it came.
    pub pace: LatencyCounters,
}

/// The bytes whose time the pace of a prefix is.
const PACE_BYTES: u128 = 1 << 20;

type ThreadCounters = timed::ThreadCounters<RequestCounters>;
type Workers = timed::Workers<RequestCounters>;

fn run_engine(spec: Spec) -> Result<(), String> {
    let (paths, blocks) = spec.paths()?;
    let files = u64::from(spec.reads_in_flight + spec.writes_in_flight) + RESERVED_FILES;
    reserve_files(files)?;
    let (clock, halt) = set_up_process()?;
    let mut store = Store::new(&spec, blocks, real_ns());
    for path in &paths[..spec.warm] {
        store.warm_up(path);
    }
    store.place_held_blocks();
    let held_at_start = store.held_blocks();
    let replay = Arc::new(Replay {
        objects: Objects::open(&spec)?,
        left: paths[spec.warm..].iter().map(|_| Default::default()).collect(),
        paths: paths[spec.warm..].to_vec(),
        clock,
        halt,
        shared: Mutex::new(Shared { store, idle: (0, 0) }),
        held_at_start,
        own_counters: (counters_of(&[IoKind::Read, IoKind::Write]), Arc::default()),
        has_reads: Condvar::new(),
        has_writes: Condvar::new(),
        is_over: AtomicBool::new(false),
        backlog: AtomicU64::new(0),
        spec,
    });
    let workers = start_workers(&replay)?;
    timed::print_head(&*replay, workers.count);
    timed::report_run(&replay, &workers, lines::requested_start_real_ns());
    Ok(())
}

fn start_workers(replay: &Arc<Replay>) -> Result<Workers, String> {
    let (tell, ended) = channel();
    let mut counters = vec![replay.own_counters.clone()];
    let spec = &replay.spec;
    let kinds = [(IoKind::Read, spec.reads_in_flight), (IoKind::Write, spec.writes_in_flight)];
    for (kind, threads) in kinds {
        for _ in 0..threads {
            let own: ThreadCounters = (counters_of(&[kind]), Arc::default());
            counters.push((Arc::clone(&own.0), Arc::clone(&own.1)));
            let buffer = replay.objects.buffer().map_err(|error| {
                format!("There is no memory for a thread: {}.", io_error_text(&error))
            })?;
            let (shared, tell) = (Arc::clone(replay), tell.clone());
            let work = move || match kind {
                IoKind::Read => shared.read_until_over(&own, buffer, &tell),
                _ => shared.write_until_over(&own.0, buffer, &tell),
            };
            start_thread("engine", work)?;
        }
    }
    let count = counters.len() - 1;
    Ok(Workers { counters, ended, count })
}

fn counters_of(kinds: &[IoKind]) -> Arc<WorkerCounters> {
    Arc::new(WorkerCounters::new(kinds, ArrivalMode::Scheduled))
}

impl TimedLoad for Replay {
    type Counters = RequestCounters;
    const COMPOSITES: &'static [Composite<RequestCounters>] = &[
        ("prefix_load", |own| &own.prefix),
        ("request", |own| &own.request),
        ("prefix_pace", |own| &own.pace),
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
        let shared = Arc::clone(self);
        let work = move || shared.hand_out(start, deadline);
        thread::Builder::new().name("requests".into()).spawn(work).ok()
    }

    fn end_submission(&self) -> (u64, Option<u64>) {
        let mut shared = lock(&self.shared);
        self.is_over.store(true, Ordering::Relaxed);
        let waiting = shared.store.drop_waiting();
        drop(shared);
        self.has_reads.notify_all();
        self.has_writes.notify_all();
        waiting
    }

    fn interval_values(&self) -> Map<String, Value> {
        let (_, writes) = lock(&self.shared).store.queued();
        Map::from_iter([
            ("backlog".into(), self.backlog.load(Ordering::Relaxed).into()),
            ("write_backlog".into(), writes.into()),
        ])
    }

    fn end_values(&self) -> Map<String, Value> {
        let shared = lock(&self.shared);
        let mut requests = json!(shared.store.counts);
        requests["held_at_start"] = self.held_at_start.into();
        requests["held_at_end"] = shared.store.held_blocks().into();
        requests["unloaded"] = self.backlog.load(Ordering::Relaxed).into();
        Map::from_iter([
            ("verify".into(), self.objects.verification()),
            ("requests".into(), requests),
        ])
    }
}

impl Replay {
    /// Hand each request out when it is due, until `deadline`; times are in ticks.
    fn hand_out(&self, start: u64, deadline: u64) {
        set_min_timer_slack();
        request_short_slices();
        let counters = &self.own_counters;
        let requests = &self.spec.requests[self.spec.warm..];
        let mut due_ns = 0;
        for (nth, request) in requests.iter().enumerate() {
            due_ns += request.0 * 1000;
            let due = if self.spec.closed {
                self.wait_for_room(start, deadline)
            } else {
                start + self.clock.ticks_of(due_ns)
            };
            let has_waited = self.clock.ticks() < due;
            if due >= deadline || !self.wait_until(due) {
                return;
            }
            let awake = self.clock.ticks();
            let mut shared = lock(&self.shared);
            let reads = shared.store.begin_request(nth as u32, &self.paths[nth], due);
            self.left[nth].0.store(reads, Ordering::Relaxed);
            self.left[nth].1.store(reads, Ordering::Relaxed);
            self.backlog.fetch_add(u64::from(reads > 0), Ordering::Relaxed);
            // From here on any thread that reads may begin; one that is woken may take this one's
            // processor, which makes no request late but the next.
            let done = self.clock.ticks();
            self.release(shared);
            if let Some(late) = &counters.0.lateness {
                late.add(self.clock.ns(done.saturating_sub(due)));
            }
            if let (true, Some(late)) = (has_waited, &counters.0.wakeup_delays) {
                late.add(self.clock.ns(awake.saturating_sub(due)));
            }
            if reads == 0 {
                counters.1.request.add(self.clock.ns(done.saturating_sub(due)));
            }
        }
    }

    /// Wait until threads have nothing left to do; now, or the deadline.
    fn wait_for_room(&self, start: u64, deadline: u64) -> u64 {
        loop {
            let now = self.clock.ticks().max(start);
            let (reads, writes) = lock(&self.shared).store.queued();
            let has_room = reads < self.spec.reads_in_flight as usize
                && writes < self.spec.writes_in_flight as usize;
            if has_room || now >= deadline || self.halt.is_requested() {
                return now;
            }
            thread::sleep(ROOM_PAUSE);
        }
    }

    /// Let go of the store, and wake threads for what waits in it.
    fn release(&self, shared: MutexGuard<'_, Shared>) {
        let wakes = shared.wakes();
        drop(shared);
        self.wake(wakes);
    }

    fn wake(&self, (readers, writers): (usize, usize)) {
        for _ in 0..readers {
            self.has_reads.notify_one();
        }
        for _ in 0..writers {
            self.has_writes.notify_one();
        }
    }

    /// Wait for work of a kind; there may be none yet when it returns.
    fn wait_for_work<'a>(
        &self,
        kind: IoKind,
        mut shared: MutexGuard<'a, Shared>,
    ) -> MutexGuard<'a, Shared> {
        // What this thread did last may have made room for the other kind.
        self.wake(shared.wakes());
        let (news, idle): (_, fn(&mut Shared) -> &mut usize) = match kind {
            IoKind::Read => (&self.has_reads, |shared| &mut shared.idle.0),
            _ => (&self.has_writes, |shared| &mut shared.idle.1),
        };
        *idle(&mut shared) += 1;
        shared = news.wait(shared).unwrap_or_else(PoisonError::into_inner);
        *idle(&mut shared) -= 1;
        shared
    }

    /// Wait for a moment; false when all is halted before.
    fn wait_until(&self, due: u64) -> bool {
        loop {
            let now = self.clock.ticks();
            if self.halt.is_requested() {
                return false;
            }
            let step = self.clock.ticks_of(CHECK_INTERVAL_NS);
            if due <= now + step {
                self.clock.wait_until(due);
                return true;
            }
            self.clock.wait_until(now + step);
        }
    }

    fn read_until_over(&self, own: &ThreadCounters, mut buffer: Buffer, tell: &Sender<Ended>) {
        let mut last = 0;
        let mut shared = lock(&self.shared);
        while !self.is_over.load(Ordering::Relaxed) {
            let Some((task, place)) = shared.store.next_read() else {
                shared = self.wait_for_work(IoKind::Read, shared);
                continue;
            };
            self.release(shared);
            let begun = self.clock.ticks();
            own.0.set_in_flight(1);
            let outcome = self.objects.read(place, &mut buffer);
            last = self.count(IoKind::Read, &own.0, outcome, task.due, begun);
            self.count_prefix(task, last, &own.1);
            shared = lock(&self.shared);
            shared.store.end_read(task.block);
        }
        drop(shared);
        let _ = tell.send(last);
    }

    fn write_until_over(&self, own: &WorkerCounters, mut buffer: Buffer, tell: &Sender<Ended>) {
        let mut last = 0;
        let mut shared = lock(&self.shared);
        while !self.is_over.load(Ordering::Relaxed) {
            let Some((task, place)) = shared.store.next_write() else {
                shared = self.wait_for_work(IoKind::Write, shared);
                continue;
            };
            self.release(shared);
            let begun = self.clock.ticks();
            own.set_in_flight(1);
            let outcome = self.objects.write(place, &mut buffer);
            let WriteTask { block, due, .. } = task;
            last = self.count(IoKind::Write, own, outcome, due, begun);
            shared = lock(&self.shared);
            shared.store.end_write(block);
        }
        drop(shared);
        let _ = tell.send(last);
    }

    /// Count an I/O that has ended; now.
    fn count(
        &self,
        kind: IoKind,
        own: &WorkerCounters,
        outcome: io::Result<()>,
        due: u64,
        begun: u64,
    ) -> u64 {
        let now = self.clock.ticks();
        own.set_in_flight(0);
        if self.is_over.load(Ordering::Relaxed) {
            own.count_drained();
        }
        let Some(counters) = own.counters_of(kind) else { return now };
        match outcome {
            Ok(()) => {
                counters.response.add(self.clock.ns(now.saturating_sub(due)));
                if let Some(service) = &counters.service {
                    service.add(self.clock.ns(now.saturating_sub(begun)));
                }
                add_by_owner(&counters.bytes, self.spec.object_bytes);
            }
            Err(error) => counters.response.fail(error.raw_os_error()),
        }
        now
    }

    /// A read of a request has ended: with the last of them its prefix is loaded.
    fn count_prefix(&self, task: ReadTask, now: u64, own: &RequestCounters) {
        let (left, all) = &self.left[task.request as usize];
        if left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let latency_ns = self.clock.ns(now.saturating_sub(task.due));
            let bytes = u64::from(all.load(Ordering::Relaxed)) * self.spec.object_bytes;
            own.pace.add((u128::from(latency_ns) * PACE_BYTES / u128::from(bytes.max(1))) as u64);
            own.prefix.add(latency_ns);
            own.request.add(latency_ns);
            self.backlog.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
