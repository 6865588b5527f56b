//! I/Os under way and their memory.

use std::io;

use super::buffer::{BLOCK_ALIGNMENT, Block, Region};
use super::counts::{Keeping, Reason, Scores};
use super::lane::{Lane, Track};
use super::proof::{Outcome, Proof};
use super::queue::{Act, FIRST_PAUSE_NS, Request};
use super::source::Op;
use super::tsc::Clock;

/// An I/O that the kernel refuses so often for lack of room counts as failed: after some 5 s.
const MAX_TRIES: u16 = 1000;
/// What met EAGAIN waits no longer than this, so that it begins soon after there is room.
const LONGEST_PAUSE_NS: u64 = 5_000_000;
/// A registered buffer may not be longer.
const BUFFER_BYTES: usize = 1 << 30;

/// An I/O under way. Its block is its own for ever.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub(super) stamp: u64,
    pub(super) due: u64,
    offset: u64,
    block: Block,
    pub(super) bytes: u32,
    moved: u32,
    pub(super) lane: u32,
    target: u32,
    buffer: u16,
    tries: u16,
    act: Act,
    /// The second half of the block is for writes.
    is_split: bool,
}

/// The memory of a worker's lanes, and where each registered buffer lies in it.
pub struct Memory {
    pub(super) region: Region,
    /// Of each slot.
    seats: Vec<Seat>,
    /// The parts of the region to be registered.
    pub buffers: Vec<Block>,
}

/// What becomes of an I/O that did not do all it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It has failed.
    Over,
    /// The kernel is given it, or the rest of it, at once.
    AtOnce,
    /// The same after so many nanoseconds.
    After(u64),
}

/// The place of a slot.
#[derive(Debug, Clone, Copy)]
struct Seat {
    block: Block,
    buffer: u16,
    lane: u32,
    is_split: bool,
}

impl Memory {
    /// For lanes of these depths and blocks.
    pub fn of(lanes: &[Lane]) -> io::Result<Self> {
        let mut spans = Vec::new();
        let (mut places, mut end, mut span_start) = (Vec::new(), 0_usize, 0_usize);
        for (nth, lane) in lanes.iter().enumerate() {
            let half = (lane.block_bytes as usize).next_multiple_of(BLOCK_ALIGNMENT);
            let bytes = if lane.is_split { 2 * half } else { half };
            for _ in 0..lane.depth {
                if end + bytes - span_start > BUFFER_BYTES {
                    spans.push((span_start, end - span_start));
                    span_start = end;
                }
                places.push((end, bytes, spans.len() as u16, nth as u32, lane.is_split));
                end += bytes;
            }
        }
        spans.push((span_start, end - span_start));
        let region = Region::new(end)?;
        let seats = places.into_iter().map(|(start, bytes, buffer, lane, is_split)| Seat {
            block: region.block(start, bytes),
            buffer,
            lane,
            is_split,
        });
        let seats = seats.collect();
        let buffers = spans.into_iter().map(|(start, bytes)| region.block(start, bytes)).collect();
        Ok(Self { region, seats, buffers })
    }

    /// All slots, free.
    #[must_use]
    pub fn slots(&self) -> Vec<Slot> {
        self.seats.iter().map(|seat| Slot::at(*seat)).collect()
    }

    /// Fill what the lanes write from.
    pub fn fill(&mut self, lanes: &[Lane]) {
        for seat in &self.seats {
            if let Some(contents) = &lanes[seat.lane as usize].contents {
                contents.fill_base(self.region.bytes_of(seat.block));
            }
        }
    }
}

impl Slot {
    fn at(Seat { block, buffer, lane, is_split }: Seat) -> Self {
        Self {
            is_split,
            stamp: 0,
            due: 0,
            offset: 0,
            block,
            bytes: 0,
            moved: 0,
            lane,
            target: 0,
            buffer,
            tries: 0,
            act: Act::Read,
        }
    }

    #[inline]
    pub fn begin(&mut self, op: &Op, due: u64) {
        self.due = due;
        self.offset = op.offset;
        self.bytes = op.bytes;
        self.moved = 0;
        self.target = op.target;
        self.tries = 0;
        self.act = op.act;
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "its parts then stay in registers, measured: 4 ns")]
    pub fn request(&self, number: u32) -> Request {
        Request {
            slot: number,
            act: self.act,
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
        let start = if self.is_split && self.act == Act::Write { half } else { 0 };
        self.block.part(start, (self.moved + self.bytes) as usize)
    }

    /// Hold it against the ledger, or have it there.
    #[cold]
    pub fn prove(&self, number: u32, proof: &Proof, region: &mut Region, is_done: bool) {
        match self.act {
            Act::Write => {
                let outcome = if is_done { Outcome::Done } else { Outcome::Failed };
                proof.end_write(number, self.target, self.offset, outcome);
            }
            Act::Read if is_done => {
                let bytes = region.bytes_of(self.memory());
                proof.end_read(number, self.target, self.offset, bytes);
            }
            _ => {}
        }
    }

    /// Count it as done, with when it was to begin.
    #[inline]
    fn count_timed(&self, scores: &Scores, clock: &Clock, now: u64) {
        let Some(tally) = scores.of(self.act) else { return };
        tally.add(clock.ns(now.saturating_sub(self.due)), self.bytes + self.moved, 1);
        if let Some(service) = &tally.service {
            service.add(clock.ns(now.saturating_sub(self.stamp)));
        }
    }

    /// What becomes of an I/O that did not do all it should; one that is over is counted as failed.
    #[cold]
    pub fn next(&mut self, result: i32, scores: &Scores) -> Next {
        let reason = match -result {
            libc::EAGAIN => Reason::Again,
            libc::EINTR => Reason::Interrupted,
            // The rest of it is another I/O for the kernel, and the same one for us.
            _ if result > 0 && result < self.bytes as i32 => {
                self.moved += result as u32;
                self.bytes -= result as u32;
                Reason::Short
            }
            errno => {
                // What is left of a short direct transfer may not be aligned any more.
                let is_short = errno <= 0 || (errno == libc::EINVAL && self.moved > 0);
                if let Some(tally) = scores.of(self.act) {
                    tally.response.fail((!is_short).then_some(errno));
                }
                return Next::Over;
            }
        };
        self.tries += 1;
        if self.tries < MAX_TRIES {
            scores.retry(reason);
            return match reason {
                Reason::Again => Next::After(pause_ns(self.tries)),
                Reason::Interrupted | Reason::Short => Next::AtOnce,
            };
        }
        if let Some(tally) = scores.of(self.act) {
            tally.response.fail((result < 0).then_some(-result));
        }
        Next::Over
    }
}

/// I/Os that ended at the same time and were submitted at the same: counted together, as they come
/// one after the other where the kernel does them within the call that submits them.
pub struct Alike {
    count: u64,
    stamp: u64,
    bytes: u32,
    act: Act,
}

impl Alike {
    /// None yet.
    pub fn none() -> Self {
        Self { count: 0, stamp: 0, bytes: 0, act: Act::Read }
    }

    /// One more that is done.
    #[inline]
    pub fn add<K: Keeping>(
        &mut self,
        slot: &Slot,
        track: &Track,
        scores: &Scores,
        at: (&Clock, u64),
    ) {
        if track.is_timed {
            slot.count_timed(scores, at.0, at.1);
            return;
        }
        let bytes = slot.bytes + slot.moved;
        if slot.stamp != self.stamp || bytes != self.bytes || slot.act != self.act {
            self.tell::<K>(scores, at);
            *self = Self { count: 0, stamp: slot.stamp, bytes, act: slot.act };
        }
        self.count += 1;
    }

    /// Count them.
    #[inline]
    pub fn tell<K: Keeping>(&self, scores: &Scores, (clock, now): (&Clock, u64)) {
        let Some(tally) = scores.of(self.act) else { return };
        if self.count == 0 {
            return;
        }
        if K::TIMES {
            tally.add(clock.ns(now.saturating_sub(self.stamp)), self.bytes, self.count);
        } else {
            tally.add_untimed(self.bytes, self.count);
        }
    }
}

/// Before that try.
fn pause_ns(tries: u16) -> u64 {
    let doubled = 2_u64.saturating_pow(u32::from(tries.saturating_sub(1)));
    FIRST_PAUSE_NS.saturating_mul(doubled).min(LONGEST_PAUSE_NS)
}
