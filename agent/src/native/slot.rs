//! I/Os under way: their memory, what becomes of one that did not do all, and how they are counted.

use std::io;

use super::counts::{RetryReason, Timing, WorkerCounters};
use super::lane::{Lane, LaneState};
use super::queue::{FIRST_RETRY_PAUSE_NS, IoKind, IoRequest};
use super::recording::RecordedIo;
use super::slowest::SlowIo;
use super::source::IoOp;
use super::tsc::Clock;
use super::verify::{Verifier, WriteOutcome};
use crate::sys::buffer::{BLOCK_ALIGNMENT, Block, Region};

/// An I/O that the kernel refuses so often for lack of room counts as failed: after some 5 s.
const MAX_TRIES: u16 = 1000;
/// What met EAGAIN waits no longer than this, so that it begins soon after there is room.
const MAX_RETRY_PAUSE_NS: u64 = 5_000_000;
/// A registered buffer may not be longer.
const MAX_BUFFER_BYTES: usize = 1 << 30;

/// An I/O under way. Its block is its own for ever. It lies in one line of a processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
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
            block: self.block.part(self.first_byte() + self.moved as usize, self.bytes as usize),
            bytes: self.bytes,
            buffer: self.buffer,
        }
    }

    /// The memory of the I/O as a whole.
    #[inline]
    pub fn memory(&self) -> Block {
        self.block.part(self.first_byte(), (self.moved + self.bytes) as usize)
    }

    /// Where that begins in the block.
    #[inline]
    fn first_byte(&self) -> usize {
        let is_second_half = self.has_write_half && self.kind == IoKind::Write;
        if is_second_half { self.block.bytes() / 2 } else { 0 }
    }

    /// When its latency begins: when it was due, or when it was submitted.
    #[inline]
    pub fn latency_start(&self, is_timed: bool) -> u64 {
        if is_timed { self.due } else { self.started }
    }

    /// It, ended now, as one of the slowest.
    #[cold]
    pub fn as_slow(&self, is_timed: bool, now: u64) -> SlowIo {
        SlowIo {
            due: self.latency_start(is_timed),
            submitted: self.started,
            ended: now,
            offset: self.offset,
            bytes: self.bytes + self.moved,
            target: self.target,
            kind: self.kind,
        }
    }

    /// It, as it was submitted.
    #[inline]
    pub fn as_recorded(&self) -> RecordedIo {
        RecordedIo {
            submitted: self.started,
            offset: self.offset,
            bytes: self.bytes,
            target: self.target,
            kind: self.kind,
        }
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
