//! I/Os under way and their memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::Contents;
use super::counts::{Keeping, Reason, Scores};
use super::queue::{Act, FIRST_PAUSE_NS, Queue, Request};
use super::source::{Feed, Op, Waiting};
use super::tsc::Clock;
use super::verify::{Outcome, Verifier};
use crate::sys::buffer::{BLOCK_ALIGNMENT, Block, Region};

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
    pub fn verify(&self, number: u32, verifier: &Verifier, region: &mut Region, is_done: bool) {
        match self.act {
            Act::Write => {
                let outcome = if is_done { Outcome::Done } else { Outcome::Failed };
                verifier.end_write(number, self.target, self.offset, outcome);
            }
            Act::Read if is_done => {
                let bytes = region.bytes_of(self.memory());
                verifier.end_read(number, self.target, self.offset, bytes);
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

/// When a job has nothing that is due.
pub const NEVER: u64 = u64::MAX;
/// So many I/Os are worth a system call of their own: more in one are hardly cheaper.
const CHEAP_BATCH: usize = 4;

/// A job's part in a worker.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Lane {
    /// Where its I/Os come from.
    pub feed: Feed,
    /// I/Os under way at a time.
    pub depth: u32,
    /// Its largest block.
    pub block_bytes: u32,
    /// It has a rate: I/Os wait until they are due.
    pub is_paced: bool,
    /// Latency begins when an I/O is due, not when it is submitted.
    pub is_timed: bool,
    /// Its pauses.
    pub think: Option<Arc<Think>>,
    /// What it writes, where it does.
    pub contents: Option<Contents>,
    /// It reads too, with memory of its own: what is written must not be overwritten.
    pub is_split: bool,
    /// Its writes are in the ledger and its reads are checked.
    pub is_verified: bool,
}

/// The pauses of a job, which all threads that work on it keep together.
#[derive(Debug)]
pub struct Think {
    every: u64,
    ticks: u64,
    done: AtomicU64,
    until: AtomicU64,
}

/// A lane at work.
#[allow(clippy::struct_excessive_bools, reason = "each is looked at alone in the loop")]
pub struct Track {
    feed: Feed,
    free: Box<[u32]>,
    pub(super) free_count: usize,
    /// Free slots before this turn's submissions.
    pub(super) free_before: usize,
    /// Most submissions of a turn: enough to be cheap, too few for I/Os to march in step.
    cap: usize,
    /// The next I/O, where it is known and not yet due.
    ahead: Option<Op>,
    /// When the first slot came free after none was.
    room_since: u64,
    think: Option<Arc<Think>>,
    contents: Option<Contents>,
    is_paced: bool,
    pub(super) is_timed: bool,
    pub(super) is_verified: bool,
    has_ended: bool,
    is_listed: bool,
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

impl Think {
    /// After so many I/Os, for so many ticks.
    #[must_use]
    pub fn new(every: u32, ticks: u64) -> Self {
        Self { every: every.into(), ticks, done: AtomicU64::new(0), until: AtomicU64::new(0) }
    }

    /// When the pause ends that there is now.
    fn pause(&self, now: u64) -> Option<u64> {
        Some(self.until.load(Ordering::Relaxed)).filter(|&until| until > now)
    }

    /// An I/O has ended.
    fn count(&self, now: u64) {
        if (self.done.fetch_add(1, Ordering::Relaxed) + 1) % self.every == 0 {
            self.until.fetch_max(now + self.ticks, Ordering::Relaxed);
        }
    }
}

impl Track {
    pub fn new(lane: Lane, free: Box<[u32]>) -> Self {
        Self {
            feed: lane.feed,
            free_count: free.len(),
            free_before: free.len(),
            cap: cap_of(lane.depth as usize),
            free,
            ahead: None,
            room_since: 0,
            think: lane.think,
            contents: lane.contents,
            is_paced: lane.is_paced,
            is_timed: lane.is_timed,
            is_verified: lane.is_verified,
            has_ended: false,
            is_listed: true,
        }
    }

    /// Push the I/Os that are due, up to `cap` where others are under way; when the next one is
    /// due, 0 for at once.
    #[inline]
    pub fn submit<Q: Queue>(&mut self, submitter: &mut Submitter<Q>, now: u64, start: u64) -> u64 {
        if let Some(pause) = self.think.as_ref().and_then(|think| think.pause(now)) {
            return pause;
        }
        let cap = if submitter.is_idle { self.free_count } else { self.cap };
        let last = self.free_count.saturating_sub(cap);
        while self.free_count > last {
            let may_wait = self.is_paced || self.is_verified;
            let ahead = if may_wait { self.ahead.take() } else { None };
            let Some(op) = ahead.or_else(|| self.feed.next()) else {
                self.has_ended = true;
                return NEVER;
            };
            let due = if op.due == 0 { now } else { start + op.due };
            if self.is_paced && due > now {
                self.ahead = Some(op);
                return due;
            }
            let number = self.free[self.free_count - 1];
            let mut sequence = op.sequence;
            if let Some(verifier) = submitter.verifier.as_mut().filter(|_| self.is_verified) {
                let Some(own) = verifier.begin(number, &op) else {
                    self.ahead = Some(op);
                    return now + 1;
                };
                sequence = own;
            }
            self.free_count -= 1;
            let slot = &mut submitter.slots[number as usize];
            slot.begin(&op, due);
            if op.act == Act::Write {
                if let Some(contents) = &self.contents {
                    let bytes = submitter.region.bytes_of(slot.memory());
                    contents.stamp(bytes, op.target, op.offset, sequence);
                }
            }
            submitter.queue.push(&slot.request(number));
        }
        if self.free_count > 0 { 0 } else { NEVER }
    }

    /// Stamp what was pushed in this turn: those slots still lie behind the free ones. `waited` is
    /// when the turn began, where the one before it did nothing but wait.
    #[inline]
    pub fn stamp(
        &self,
        slots: &mut [Slot],
        stamp: u64,
        waited: Option<u64>,
        clock: &Clock,
        scores: &Scores,
    ) {
        for &number in &self.free[self.free_count..self.free_before] {
            let slot = &mut slots[number as usize];
            slot.stamp = stamp;
            if self.is_timed {
                // Late by its own doing: not while all slots were taken.
                let able = slot.due.max(self.room_since);
                if let Some(lateness) = &scores.lateness {
                    lateness.add(clock.ns(stamp.saturating_sub(able)));
                }
                if let (Some(now), Some(waits)) = (waited, &scores.waits) {
                    waits.add(clock.ns(now.saturating_sub(able)));
                }
            }
        }
    }

    /// What was due by then, in ticks since the start, and was not submitted; told by the rate
    /// where that is more than so many.
    pub fn unsubmitted(&mut self, until: u64, draws: u64) -> Waiting {
        if !self.is_paced || self.has_ended {
            return Waiting::default();
        }
        match self.ahead.take().map(|op| op.due) {
            // What comes after it is due later still.
            Some(due) if due > until => Waiting::default(),
            Some(due) if due > 0 => {
                let others = self.feed.waiting(until, draws);
                Waiting { count: others.count + 1, oldest: Some(due) }
            }
            _ => self.feed.waiting(until, draws),
        }
    }

    #[inline]
    pub fn stays_listed(&mut self) -> bool {
        self.is_listed = self.free_count > 0 && !self.has_ended;
        self.is_listed
    }

    /// A slot is free again; whether the lane is to be listed for that.
    #[inline]
    pub fn take_back(&mut self, number: u32, now: u64) -> bool {
        if self.free_count == 0 {
            self.room_since = now;
        }
        self.free[self.free_count] = number;
        self.free_count += 1;
        if let Some(think) = &self.think {
            think.count(now);
        }
        !std::mem::replace(&mut self.is_listed, true) && !self.has_ended
    }
}

/// Enough to be cheap, and few enough that I/Os do not march in step.
fn cap_of(depth: usize) -> usize {
    (depth / 4).max(CHEAP_BATCH.min(depth / 2)).max(1)
}
