//! The loop of one thread: submit what its jobs want, wait, count what has ended.
//!
//! From the start on it allocates nothing, takes no lock (but where threads share a job) and
//! formats nothing. The clock is read twice a turn: just before the kernel is asked, which is where
//! the latency of all that is submitted begins, and when it has answered, where the latency of all
//! that has ended ends. A loop that keeps no times leaves the first of these out.

use std::sync::Arc;
use std::thread;

use super::counts::{Timing, WorkerCounters};
use super::halt::{CHECK_INTERVAL_NS, Halt};
use super::lane::{Lane, LaneState, NEVER, Submitter};
use super::queue::{Queue, Wait};
use super::recording::{Recorder, Recording};
use super::slot::{CompletionBatch, RetryDecision, Slot, SlotMemory};
use super::slowest::{SlowIo, SlowestIos};
use super::tsc::Clock;
use super::verify::{Verification, Verifier};
use crate::sys::buffer::Region;
use crate::sys::thread::{Usage, process_usage};

/// Before something is due the thread stays awake for so long: timers wake it some tens of
/// microseconds late.
const SPIN_BEFORE_DUE_NS: u64 = 100_000;

/// How many I/Os that were due and not submitted are drawn to be counted, of all lanes together:
/// for some tens of milliseconds. More of them are told by the rate.
const MAX_DRAWS: u64 = 1 << 20;

/// When a worker begins, and when it submits nothing more, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct WorkerTimes {
    /// The start.
    pub start: u64,
    /// The end of submission.
    pub deadline: u64,
}

/// How a worker ended.
#[derive(Debug, Clone, Default)]
pub struct WorkerResult {
    /// When it began, in ticks.
    pub started: u64,
    /// When its last I/O ended, in ticks.
    pub last_io_end: u64,
    /// I/Os that were due and not submitted.
    pub unsubmitted: u64,
    /// When the first of them was due, in ticks since the start.
    pub oldest_due: Option<u64>,
    /// It had nothing left to do before the deadline.
    pub is_early: bool,
    /// What the process had used at the start, as the first of the threads saw it.
    pub used_before: Option<Usage>,
    /// What it had used when this thread submitted nothing more.
    pub used_after: Usage,
    /// What broke it off: the kernel took or gave no more.
    pub error: Option<i32>,
    /// Its slowest I/Os, where they were asked for.
    pub slowest: Vec<SlowIo>,
    /// What it submitted, where that was to be recorded.
    pub recording: Recording,
}

/// The thread's state.
pub struct Worker<Q> {
    queue: Q,
    clock: Clock,
    scores: Arc<WorkerCounters>,
    lanes: Vec<LaneState>,
    /// Lanes that may have something to submit.
    ready_lanes: Vec<u32>,
    slots: Vec<Slot>,
    /// Slots whose I/O is given to the kernel once more.
    retry_now: Vec<u32>,
    /// The same, each not before its time.
    retry_later: Vec<(u64, u32)>,
    /// The earliest of these times; `NEVER` where there are none.
    next_retry: u64,
    in_flight: usize,
    region: Region,
    verifier: Option<Verifier>,
    halt: Arc<Halt>,
    samples_start_usage: bool,
    slowest: SlowestIos,
    recorder: Recorder,
}

impl<Q: Queue> Worker<Q> {
    /// A worker that does these lanes in this memory; nothing is allocated after this.
    #[must_use]
    pub fn new(
        queue: Q,
        lanes: Vec<Lane>,
        memory: SlotMemory,
        clock: Clock,
        scores: Arc<WorkerCounters>,
    ) -> Self {
        let slots: Vec<Slot> = memory.slots();
        let mut first = 0;
        let mut tracks = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let end = first + lane.depth;
            tracks.push(LaneState::new(lane, (first..end).rev().collect()));
            first = end;
        }
        Self {
            queue,
            clock,
            scores,
            ready_lanes: (0..tracks.len() as u32).collect(),
            lanes: tracks,
            retry_now: Vec::with_capacity(slots.len()),
            retry_later: Vec::with_capacity(slots.len()),
            next_retry: NEVER,
            slots,
            in_flight: 0,
            region: memory.region,
            verifier: None,
            halt: Arc::default(),
            samples_start_usage: false,
            slowest: SlowestIos::default(),
            recorder: Recorder::default(),
        }
    }

    /// Have lanes that verify do so.
    #[must_use]
    pub fn with_verification(mut self, verification: Option<Arc<Verification>>) -> Self {
        self.verifier =
            verification.map(|verification| Verifier::new(verification, self.slots.len()));
        self
    }

    /// Have it end early when that is wished.
    #[must_use]
    pub fn with_halt(mut self, halt: Arc<Halt>) -> Self {
        self.halt = halt;
        self
    }

    /// Have it keep so many of its slowest I/Os.
    #[must_use]
    pub fn with_slowest(mut self, most: u32) -> Self {
        self.slowest = SlowestIos::new(most);
        self
    }

    /// Have it record so many I/Os.
    #[must_use]
    pub fn with_recorder(mut self, most: usize) -> Self {
        self.recorder = Recorder::new(most);
        self
    }

    /// Have it look at the start what the process has used: the thread that tells may wake later.
    #[must_use]
    pub fn with_start_usage(mut self) -> Self {
        self.samples_start_usage = true;
        self
    }

    /// Work from the start to the deadline, or to an earlier halt, and until all that is under way
    /// has ended.
    pub fn run<K: Timing>(mut self, times: WorkerTimes) -> WorkerResult {
        self.clock.wait_until(times.start);
        let used_before = self.samples_start_usage.then(process_usage);
        let mut now = self.clock.ticks();
        let mut ended =
            WorkerResult { started: now, last_io_end: now, used_before, ..WorkerResult::default() };
        let mut has_waited = false;
        let mut is_first = true;
        while now < self.submission_end(times) {
            let before = self.in_flight;
            let next_due = self.submit::<K>(now, times.start, has_waited.then_some(now));
            let has_submitted = self.in_flight > before;
            let wait = self.next_wait(next_due.min(times.deadline), now);
            let Some(wait) = wait else {
                ended.is_early = true;
                break;
            };
            self.scores.set_in_flight(self.in_flight);
            if let Err(error) = self.queue.enter(wait) {
                ended.error = error.raw_os_error();
                break;
            }
            now = self.clock.ticks();
            let has_reaped = self.reap::<K>(now, times);
            if has_reaped {
                ended.last_io_end = now;
            }
            has_waited = !has_submitted && !has_reaped && next_due != 0;
            if is_first && self.in_flight == 0 {
                // Threads that share a processor all begin now, and not each after a time slice.
                thread::yield_now();
                now = self.clock.ticks();
            }
            is_first = false;
        }
        ended.used_after = process_usage();
        while self.in_flight > 0 && ended.error.is_none() {
            self.submit_retries(now);
            self.scores.set_in_flight(self.in_flight);
            if let Err(error) = self.queue.enter(self.wait_for_completion(now)) {
                ended.error = error.raw_os_error();
            }
            now = self.clock.ticks();
            if self.reap::<K>(now, times) {
                ended.last_io_end = now;
            }
        }
        // Where it was broken off, these stay as they are for ever.
        self.scores.set_in_flight(self.in_flight);
        let until = self.submission_end(times).min(now).saturating_sub(times.start);
        let draws = MAX_DRAWS / self.lanes.len().max(1) as u64;
        for track in &mut self.lanes {
            let left = track.unsubmitted(until, draws);
            ended.unsubmitted += left.count;
            ended.oldest_due = [ended.oldest_due, left.oldest].into_iter().flatten().min();
        }
        ended.slowest = self.slowest.take();
        ended.recording = self.recorder.take();
        ended
    }

    /// When submission ends, as far as is known now.
    #[inline]
    fn submission_end(&self, times: WorkerTimes) -> u64 {
        times.deadline.min(self.halt.at_ticks())
    }

    /// Give the queue once more what did not go through, if its time has come.
    #[inline]
    fn submit_retries(&mut self, now: u64) {
        if now >= self.next_retry {
            self.move_due_retries(now);
        }
        if !self.retry_now.is_empty() {
            self.push_retries();
        }
    }

    #[cold]
    fn push_retries(&mut self) {
        for number in self.retry_now.drain(..) {
            self.queue.push(&self.slots[number as usize].request(number));
        }
    }

    /// Have what waited long enough among what is tried once more.
    #[cold]
    fn move_due_retries(&mut self, now: u64) {
        let Self { retry_now: again, retry_later: later, .. } = self;
        let mut next_at = NEVER;
        later.retain(|&(at, number)| {
            if at <= now {
                again.push(number);
            } else {
                next_at = next_at.min(at);
            }
            at > now
        });
        self.next_retry = next_at;
    }

    /// Give the queue what may be submitted now; when there is something to submit next: 0 for at
    /// once. `waited` is now, where nothing was done before but to wait.
    #[inline]
    fn submit<K: Timing>(&mut self, now: u64, start: u64, waited: Option<u64>) -> u64 {
        self.submit_retries(now);
        let Self {
            queue,
            lanes: tracks,
            ready_lanes: listed,
            slots,
            clock,
            scores,
            in_flight: under_way,
            region,
            verifier,
            ..
        } = self;
        let mut next_due = NEVER;
        let mut pushed = 0;
        let is_idle = *under_way == 0;
        let mut submitter = Submitter { queue, slots, region, verifier, is_idle };
        for &lane in listed.iter() {
            let track = &mut tracks[lane as usize];
            track.free_before = track.free_count;
            next_due = next_due.min(track.submit(&mut submitter, now, start));
            pushed += track.free_before - track.free_count;
        }
        if pushed > 0 {
            *under_way += pushed;
            if K::IS_TIMED {
                let stamp = clock.ticks();
                for &lane in listed.iter() {
                    tracks[lane as usize].stamp_submitted(
                        submitter.slots,
                        stamp,
                        waited,
                        clock,
                        scores,
                    );
                }
                if self.recorder.has_room() {
                    for &lane in listed.iter() {
                        for number in tracks[lane as usize].submitted_slots() {
                            self.recorder.record(submitter.slots[number as usize].as_recorded());
                        }
                    }
                }
            }
        }
        listed.retain(|&lane| tracks[lane as usize].stays_ready());
        next_due
    }

    /// How long to wait when the next thing to submit is due then; None when all is done.
    #[inline]
    fn next_wait(&self, next_due: u64, now: u64) -> Option<Wait> {
        if next_due == 0 {
            return Some(Wait::Never);
        }
        if self.ready_lanes.is_empty() {
            return (self.in_flight > 0).then(|| self.wait_for_completion(now));
        }
        let left_ns = self.clock.ns(next_due.saturating_sub(now));
        if left_ns <= SPIN_BEFORE_DUE_NS {
            std::hint::spin_loop();
            return Some(Wait::Never);
        }
        let left_ns = (left_ns - SPIN_BEFORE_DUE_NS).min(CHECK_INTERVAL_NS);
        match self.wait_for_completion(now) {
            Wait::AtMost(again_ns) => Some(Wait::AtMost(left_ns.min(again_ns))),
            _ => Some(Wait::AtMost(left_ns)),
        }
    }

    /// How long to wait for what is under way alone: until some of it is to be tried again.
    #[inline]
    fn wait_for_completion(&self, now: u64) -> Wait {
        if self.retry_later.is_empty() {
            return Wait::ForOne;
        }
        Wait::AtMost(self.clock.ns(self.next_retry.saturating_sub(now)).min(CHECK_INTERVAL_NS))
    }

    /// Count what has ended; whether anything has.
    #[inline]
    fn reap<K: Timing>(&mut self, now: u64, times: WorkerTimes) -> bool {
        let is_late = now >= self.submission_end(times);
        let Self {
            queue,
            lanes: tracks,
            ready_lanes: listed,
            slots,
            clock,
            scores,
            in_flight: under_way,
            ..
        } = self;
        let (again, later, later_at) =
            (&mut self.retry_now, &mut self.retry_later, &mut self.next_retry);
        let (region, verifier) = (&mut self.region, &self.verifier);
        let slowest = &mut self.slowest;
        let before = *under_way;
        let mut alike = CompletionBatch::empty();
        queue.reap(|number, result| {
            let slot = &mut slots[number as usize];
            let track = &mut tracks[slot.lane as usize];
            let is_done = result == slot.bytes as i32;
            if is_done {
                alike.add::<K>(slot, track, scores, (clock, now));
                if K::IS_TIMED
                    && slowest.is_slow(now.saturating_sub(slot.latency_start(track.is_timed)))
                {
                    slowest.keep_slow_io(slot.as_slow(track.is_timed, now));
                }
            } else {
                match slot.retry_decision(result, scores) {
                    RetryDecision::Failed => {}
                    RetryDecision::AtOnce => return again.push(number),
                    RetryDecision::After(ns) => {
                        let at = now + clock.ticks_of(ns);
                        *later_at = at.min(*later_at);
                        return later.push((at, number));
                    }
                }
            }
            if track.is_verified {
                if let Some(verifier) = verifier {
                    slot.end_verification(number, verifier, region, is_done);
                }
            }
            *under_way -= 1;
            if is_late {
                scores.count_drained();
            }
            if track.return_slot(number, now) {
                listed.push(slot.lane);
            }
        });
        alike.count_all::<K>(scores, (clock, now));
        *under_way < before
    }
}
