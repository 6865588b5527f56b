//! I/Os under way and their memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::ContentsWriter;
use super::counts::{RetryReason, Timing, WorkerCounters};
use super::queue::{FIRST_RETRY_PAUSE_NS, IoKind, IoRequest, Queue};
use super::source::{Backlog, IoOp, OpFeed};
use super::tsc::Clock;
use super::verify::{Verifier, WriteOutcome};
use crate::sys::buffer::{BLOCK_ALIGNMENT, Block, Region};

/// An I/O that the kernel refuses so often for lack of room counts as failed: after some 5 s.
const MAX_TRIES: u16 = 1000;
/// What met EAGAIN waits no longer than this, so that it begins soon after there is room.
const MAX_RETRY_PAUSE_NS: u64 = 5_000_000;
/// A registered buffer may not be longer.
const MAX_BUFFER_BYTES: usize = 1 << 30;

/// An I/O under way. Its block is its own for ever.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub(super) started: u64,
    pub(super) due: u64,
    offset: u64,
    block: Block,
    pub(super) bytes: u32,
    moved: u32,
    pub(super) lane: u32,
    target: u32,
    buffer: u16,
    tries: u16,
    kind: IoKind,
    /// The second half of the block is for writes.
    has_write_half: bool,
}

/// The memory of a worker's lanes, and where each registered buffer lies in it.
pub struct SlotMemory {
    pub(super) region: Region,
    /// Of each slot.
    free_slots: Vec<BufferSlot>,
    /// The parts of the region to be registered.
    pub buffers: Vec<Block>,
}

/// What becomes of an I/O that did not do all it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// It has failed.
    Failed,
    /// The kernel is given it, or the rest of it, at once.
    AtOnce,
    /// The same after so many nanoseconds.
    After(u64),
}

/// The place of a slot.
#[derive(Debug, Clone, Copy)]
struct BufferSlot {
    block: Block,
    buffer: u16,
    lane: u32,
    has_write_half: bool,
}

impl SlotMemory {
    /// For lanes of these depths and blocks.
    pub fn of(lanes: &[Lane]) -> io::Result<Self> {
        let mut spans = Vec::new();
        let (mut places, mut end, mut span_start) = (Vec::new(), 0_usize, 0_usize);
        for (nth, lane) in lanes.iter().enumerate() {
            let half = (lane.block_bytes as usize).next_multiple_of(BLOCK_ALIGNMENT);
            let bytes = if lane.has_write_half { 2 * half } else { half };
            for _ in 0..lane.depth {
                if end + bytes - span_start > MAX_BUFFER_BYTES {
                    spans.push((span_start, end - span_start));
                    span_start = end;
                }
                places.push((end, bytes, spans.len() as u16, nth as u32, lane.has_write_half));
                end += bytes;
            }
        }
        spans.push((span_start, end - span_start));
        let region = Region::new(end)?;
        let seats = places.into_iter().map(|(start, bytes, buffer, lane, is_split)| BufferSlot {
            block: region.block(start, bytes),
            buffer,
            lane,
            has_write_half: is_split,
        });
        let seats = seats.collect();
        let buffers = spans.into_iter().map(|(start, bytes)| region.block(start, bytes)).collect();
        Ok(Self { region, free_slots: seats, buffers })
    }

    /// All slots, free.
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        self.free_slots.iter().map(|seat| Slot::at(*seat)).collect()
    }

    /// Fill what the lanes write from.
    pub fn fill_write_buffers(&mut self, lanes: &[Lane]) {
        for seat in &self.free_slots {
            if let Some(contents) = &lanes[seat.lane as usize].contents {
                contents.fill_base(self.region.bytes_of(seat.block));
            }
        }
    }
}

impl Slot {
    fn at(BufferSlot { block, buffer, lane, has_write_half: is_split }: BufferSlot) -> Self {
        Self {
            has_write_half: is_split,
            started: 0,
            due: 0,
            offset: 0,
            block,
            bytes: 0,
            moved: 0,
            lane,
            target: 0,
            buffer,
            tries: 0,
            kind: IoKind::Read,
        }
    }

    #[inline]
    pub fn begin(&mut self, op: &IoOp, due: u64) {
        self.due = due;
        self.offset = op.offset;
        self.bytes = op.bytes;
        self.moved = 0;
        self.target = op.target;
        self.tries = 0;
        self.kind = op.kind;
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "its parts then stay in registers, measured: 4 ns")]
    pub fn request(&self, number: u32) -> IoRequest {
        IoRequest {
            slot: number,
            kind: self.kind,
            target: self.target,
            offset: self.offset + u64::from(self.moved),
            block: self.memory().part(self.moved as usize, self.bytes as usize),
            bytes: self.bytes,
            buffer: self.buffer,
        }
    }

    /// The memory of the I/O as a whole.
    #[inline]
    pub fn memory(&self) -> Block {
        let half = self.block.bytes() / 2;
        let start = if self.has_write_half && self.kind == IoKind::Write { half } else { 0 };
        self.block.part(start, (self.moved + self.bytes) as usize)
    }

    /// Hold it against the ledger, or have it there.
    #[cold]
    pub fn end_verification(
        &self,
        number: u32,
        verifier: &Verifier,
        region: &mut Region,
        is_done: bool,
    ) {
        match self.kind {
            IoKind::Write => {
                let outcome = if is_done { WriteOutcome::Done } else { WriteOutcome::Failed };
                verifier.end_write(number, self.target, self.offset, outcome);
            }
            IoKind::Read if is_done => {
                let bytes = region.bytes_of(self.memory());
                verifier.end_read(number, self.target, self.offset, bytes);
            }
            _ => {}
        }
    }

    /// Count it as done, with when it was to begin.
    #[inline]
    fn count_timed(&self, scores: &WorkerCounters, clock: &Clock, now: u64) {
        let Some(tally) = scores.counters_of(self.kind) else { return };
        tally.add(clock.ns(now.saturating_sub(self.due)), self.bytes + self.moved, 1);
        if let Some(service) = &tally.service {
            service.add(clock.ns(now.saturating_sub(self.started)));
        }
    }

    /// What becomes of an I/O that did not do all it should; one that is over is counted as failed.
    #[cold]
    pub fn retry_decision(&mut self, result: i32, scores: &WorkerCounters) -> RetryDecision {
        let reason = match -result {
            libc::EAGAIN => RetryReason::Again,
            libc::EINTR => RetryReason::Interrupted,
            // The rest of it is another I/O for the kernel, and the same one for us.
            _ if result > 0 && result < self.bytes as i32 => {
                self.moved += result as u32;
                self.bytes -= result as u32;
                RetryReason::Short
            }
            errno => {
                // What is left of a short direct transfer may not be aligned any more.
                let is_short = errno <= 0 || (errno == libc::EINVAL && self.moved > 0);
                if let Some(tally) = scores.counters_of(self.kind) {
                    tally.response.fail((!is_short).then_some(errno));
                }
                return RetryDecision::Failed;
            }
        };
        self.tries += 1;
        if self.tries < MAX_TRIES {
            scores.count_retry(reason);
            return match reason {
                RetryReason::Again => RetryDecision::After(retry_pause_ns(self.tries)),
                RetryReason::Interrupted | RetryReason::Short => RetryDecision::AtOnce,
            };
        }
        if let Some(tally) = scores.counters_of(self.kind) {
            tally.response.fail((result < 0).then_some(-result));
        }
        RetryDecision::Failed
    }
}

/// I/Os that ended at the same time and were submitted at the same: counted together, as they come
/// one after the other where the kernel does them within the call that submits them.
pub struct CompletionBatch {
    count: u64,
    started: u64,
    bytes: u32,
    kind: IoKind,
}

impl CompletionBatch {
    /// None yet.
    pub fn empty() -> Self {
        Self { count: 0, started: 0, bytes: 0, kind: IoKind::Read }
    }

    /// One more that is done.
    #[inline]
    pub fn add<K: Timing>(
        &mut self,
        slot: &Slot,
        track: &LaneState,
        scores: &WorkerCounters,
        at: (&Clock, u64),
    ) {
        if track.is_timed {
            slot.count_timed(scores, at.0, at.1);
            return;
        }
        let bytes = slot.bytes + slot.moved;
        if slot.started != self.started || bytes != self.bytes || slot.kind != self.kind {
            self.count_all::<K>(scores, at);
            *self = Self { count: 0, started: slot.started, bytes, kind: slot.kind };
        }
        self.count += 1;
    }

    /// Count them.
    #[inline]
    pub fn count_all<K: Timing>(&self, scores: &WorkerCounters, (clock, now): (&Clock, u64)) {
        let Some(tally) = scores.counters_of(self.kind) else { return };
        if self.count == 0 {
            return;
        }
        if K::IS_TIMED {
            tally.add(clock.ns(now.saturating_sub(self.started)), self.bytes, self.count);
        } else {
            tally.add_untimed(self.bytes, self.count);
        }
    }
}

/// Before that try.
fn retry_pause_ns(tries: u16) -> u64 {
    let doubled = 2_u64.saturating_pow(u32::from(tries.saturating_sub(1)));
    FIRST_RETRY_PAUSE_NS.saturating_mul(doubled).min(MAX_RETRY_PAUSE_NS)
}

/// When a job has nothing that is due.
pub const NEVER: u64 = u64::MAX;
/// So many I/Os are worth a system call of their own: more in one are hardly cheaper.
const MIN_BATCH: usize = 4;

/// A job's part in a worker.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Lane {
    /// Where its I/Os come from.
    pub feed: OpFeed,
    /// I/Os under way at a time.
    pub depth: u32,
    /// Its largest block.
    pub block_bytes: u32,
    /// It has a rate: I/Os wait until they are due.
    pub is_paced: bool,
    /// Latency begins when an I/O is due, not when it is submitted.
    pub is_timed: bool,
    /// Its pauses.
    pub think: Option<Arc<ThinkTime>>,
    /// What it writes, where it does.
    pub contents: Option<ContentsWriter>,
    /// It reads too, with memory of its own: what is written must not be overwritten.
    pub has_write_half: bool,
    /// Its writes are in the ledger and its reads are checked.
    pub is_verified: bool,
}

/// The pauses of a job, which all threads that work on it keep together.
#[derive(Debug)]
pub struct ThinkTime {
    every: u64,
    ticks: u64,
    done: AtomicU64,
    until: AtomicU64,
}

/// A lane at work.
#[allow(clippy::struct_excessive_bools, reason = "each is looked at alone in the loop")]
pub struct LaneState {
    feed: OpFeed,
    free_slots: Box<[u32]>,
    pub(super) free_count: usize,
    /// Free slots before this turn's submissions.
    pub(super) free_before: usize,
    /// Most submissions of a turn: enough to be cheap, too few for I/Os to march in step.
    max_submissions: usize,
    /// The next I/O, where it is known and not yet due.
    next_op: Option<IoOp>,
    /// When the first slot came free after none was.
    free_since: u64,
    think: Option<Arc<ThinkTime>>,
    contents: Option<ContentsWriter>,
    is_paced: bool,
    pub(super) is_timed: bool,
    pub(super) is_verified: bool,
    has_ended: bool,
    is_ready: bool,
}

/// What a lane's submissions need of its worker.
pub struct Submitter<'a, Q> {
    /// How the kernel is asked.
    pub queue: &'a mut Q,
    /// Its I/Os.
    pub slots: &'a mut [Slot],
    /// Its memory.
    pub region: &'a mut Region,
    /// What verified lanes are compared with.
    pub verifier: &'a mut Option<Verifier>,
    /// Nothing is under way: there is nothing that more could march in step with. So it is always
    /// where the kernel does I/O within the call that submits it.
    pub is_idle: bool,
}

impl ThinkTime {
    /// After so many I/Os, for so many ticks.
    #[must_use]
    pub fn new(every: u32, ticks: u64) -> Self {
        Self { every: every.into(), ticks, done: AtomicU64::new(0), until: AtomicU64::new(0) }
    }

    /// When the pause ends that there is now.
    fn pause_end(&self, now: u64) -> Option<u64> {
        Some(self.until.load(Ordering::Relaxed)).filter(|&until| until > now)
    }

    /// An I/O has ended.
    fn count_io(&self, now: u64) {
        if (self.done.fetch_add(1, Ordering::Relaxed) + 1) % self.every == 0 {
            self.until.fetch_max(now + self.ticks, Ordering::Relaxed);
        }
    }
}

impl LaneState {
    pub fn new(lane: Lane, free: Box<[u32]>) -> Self {
        Self {
            feed: lane.feed,
            free_count: free.len(),
            free_before: free.len(),
            max_submissions: max_submissions_of(lane.depth as usize),
            free_slots: free,
            next_op: None,
            free_since: 0,
            think: lane.think,
            contents: lane.contents,
            is_paced: lane.is_paced,
            is_timed: lane.is_timed,
            is_verified: lane.is_verified,
            has_ended: false,
            is_ready: true,
        }
    }

    /// Push the I/Os that are due, up to `cap` where others are under way; when the next one is
    /// due, 0 for at once.
    #[inline]
    pub fn submit<Q: Queue>(&mut self, submitter: &mut Submitter<Q>, now: u64, start: u64) -> u64 {
        if let Some(pause) = self.think.as_ref().and_then(|think| think.pause_end(now)) {
            return pause;
        }
        let cap = if submitter.is_idle { self.free_count } else { self.max_submissions };
        let last = self.free_count.saturating_sub(cap);
        while self.free_count > last {
            let may_wait = self.is_paced || self.is_verified;
            let ahead = if may_wait { self.next_op.take() } else { None };
            let Some(op) = ahead.or_else(|| self.feed.next()) else {
                self.has_ended = true;
                return NEVER;
            };
            let due = if op.due == 0 { now } else { start + op.due };
            if self.is_paced && due > now {
                self.next_op = Some(op);
                return due;
            }
            let number = self.free_slots[self.free_count - 1];
            let mut sequence = op.sequence;
            if let Some(verifier) = submitter.verifier.as_mut().filter(|_| self.is_verified) {
                let Some(own) = verifier.begin_io(number, &op) else {
                    self.next_op = Some(op);
                    return now + 1;
                };
                sequence = own;
            }
            self.free_count -= 1;
            let slot = &mut submitter.slots[number as usize];
            slot.begin(&op, due);
            if op.kind == IoKind::Write {
                if let Some(contents) = &self.contents {
                    let bytes = submitter.region.bytes_of(slot.memory());
                    contents.stamp_block(bytes, op.target, op.offset, sequence);
                }
            }
            submitter.queue.push(&slot.request(number));
        }
        if self.free_count > 0 { 0 } else { NEVER }
    }

    /// Stamp what was pushed in this turn: those slots still lie behind the free ones. `waited` is
    /// when the turn began, where the one before it did nothing but wait.
    #[inline]
    pub fn stamp_submitted(
        &self,
        slots: &mut [Slot],
        stamp: u64,
        waited: Option<u64>,
        clock: &Clock,
        scores: &WorkerCounters,
    ) {
        for &number in &self.free_slots[self.free_count..self.free_before] {
            let slot = &mut slots[number as usize];
            slot.started = stamp;
            if self.is_timed {
                // Late by its own doing: not while all slots were taken.
                let able = slot.due.max(self.free_since);
                if let Some(lateness) = &scores.lateness {
                    lateness.add(clock.ns(stamp.saturating_sub(able)));
                }
                if let (Some(now), Some(waits)) = (waited, &scores.wakeup_delays) {
                    waits.add(clock.ns(now.saturating_sub(able)));
                }
            }
        }
    }

    /// What was due by then, in ticks since the start, and was not submitted; told by the rate
    /// where that is more than so many.
    pub fn unsubmitted(&mut self, until: u64, draws: u64) -> Backlog {
        if !self.is_paced || self.has_ended {
            return Backlog::default();
        }
        match self.next_op.take().map(|op| op.due) {
            // What comes after it is due later still.
            Some(due) if due > until => Backlog::default(),
            Some(due) if due > 0 => {
                let others = self.feed.backlog(until, draws);
                Backlog { count: others.count + 1, oldest: Some(due) }
            }
            _ => self.feed.backlog(until, draws),
        }
    }

    #[inline]
    pub fn stays_ready(&mut self) -> bool {
        self.is_ready = self.free_count > 0 && !self.has_ended;
        self.is_ready
    }

    /// A slot is free again; whether the lane is to be listed for that.
    #[inline]
    pub fn return_slot(&mut self, number: u32, now: u64) -> bool {
        if self.free_count == 0 {
            self.free_since = now;
        }
        self.free_slots[self.free_count] = number;
        self.free_count += 1;
        if let Some(think) = &self.think {
            think.count_io(now);
        }
        !std::mem::replace(&mut self.is_ready, true) && !self.has_ended
    }
}

/// Enough to be cheap, and few enough that I/Os do not march in step.
fn max_submissions_of(depth: usize) -> usize {
    (depth / 4).max(MIN_BATCH.min(depth / 2)).max(1)
}
