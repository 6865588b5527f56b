//! A job's part in a worker: when its next I/O begins, and which slots are free for that.

use super::buffer::Region;
use super::contents::Contents;
use super::counts::Scores;
use super::proof::Proof;
use super::queue::{Act, Queue};
use super::slot::Slot;
use super::source::{Feed, Op};
use super::tsc::Clock;

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
    /// After how many I/Os it pauses, and for how many ticks.
    pub think: Option<(u32, u64)>,
    /// What it writes, where it does.
    pub contents: Option<Contents>,
    /// It reads too, with memory of its own: what is written must not be overwritten.
    pub is_split: bool,
    /// Its writes are in the ledger and its reads are checked.
    pub is_proven: bool,
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
    /// Nothing is submitted before this.
    pause_until: u64,
    /// When the first slot came free after none was.
    room_since: u64,
    done: u32,
    think: Option<(u32, u64)>,
    contents: Option<Contents>,
    is_paced: bool,
    pub(super) is_timed: bool,
    pub(super) is_proven: bool,
    has_ended: bool,
    is_listed: bool,
}

/// What a lane's submissions need of its worker.
pub struct Ground<'a, Q> {
    /// How the kernel is asked.
    pub queue: &'a mut Q,
    /// Its I/Os.
    pub slots: &'a mut [Slot],
    /// Its memory.
    pub region: &'a mut Region,
    /// What proven lanes are held against.
    pub proof: &'a mut Option<Proof>,
    /// Nothing is under way: there is nothing that more could march in step with. So it is always
    /// where the kernel does I/O within the call that submits it.
    pub is_idle: bool,
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
            pause_until: 0,
            room_since: 0,
            done: 0,
            think: lane.think,
            contents: lane.contents,
            is_paced: lane.is_paced,
            is_timed: lane.is_timed,
            is_proven: lane.is_proven,
            has_ended: false,
            is_listed: true,
        }
    }

    /// Push the I/Os that are due, up to `cap` where others are under way; when the next one is
    /// due, 0 for at once.
    #[inline]
    pub fn submit<Q: Queue>(&mut self, ground: &mut Ground<Q>, now: u64, start: u64) -> u64 {
        if self.pause_until > now {
            return self.pause_until;
        }
        let cap = if ground.is_idle { self.free_count } else { self.cap };
        let last = self.free_count.saturating_sub(cap);
        while self.free_count > last {
            let may_wait = self.is_paced || self.is_proven;
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
            if let Some(proof) = ground.proof.as_mut().filter(|_| self.is_proven) {
                let Some(own) = proof.begin(number, &op) else {
                    self.ahead = Some(op);
                    return now + 1;
                };
                sequence = own;
            }
            self.free_count -= 1;
            let slot = &mut ground.slots[number as usize];
            slot.begin(&op, due);
            if op.act == Act::Write {
                if let Some(contents) = &self.contents {
                    let bytes = ground.region.bytes_of(slot.memory());
                    contents.stamp(bytes, op.target, op.offset, sequence);
                }
            }
            ground.queue.push(&slot.request(number));
        }
        if self.free_count > 0 { 0 } else { NEVER }
    }

    /// Stamp what was pushed in this turn: those slots still lie behind the free ones.
    #[inline]
    pub fn stamp(&self, slots: &mut [Slot], stamp: u64, clock: &Clock, scores: &Scores) {
        for &number in &self.free[self.free_count..self.free_before] {
            let slot = &mut slots[number as usize];
            slot.stamp = stamp;
            if self.is_timed {
                // Late by its own doing: not while all slots were taken.
                let able = slot.due.max(self.room_since);
                if let Some(lateness) = &scores.lateness {
                    lateness.add(clock.ns(stamp.saturating_sub(able)));
                }
            }
        }
    }

    /// When the first I/O is due that was not submitted, in ticks since the start.
    pub fn oldest_due(&mut self) -> Option<u64> {
        if !self.is_paced || self.has_ended {
            return None;
        }
        self.ahead.or_else(|| self.feed.next()).map(|op| op.due).filter(|&due| due > 0)
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
        if let Some((every, ticks)) = self.think {
            self.done += 1;
            if self.done >= every {
                self.done = 0;
                self.pause_until = now + ticks;
            }
        }
        !std::mem::replace(&mut self.is_listed, true) && !self.has_ended
    }
}

/// Enough to be cheap, and few enough that I/Os do not march in step.
fn cap_of(depth: usize) -> usize {
    (depth / 4).max(CHEAP_BATCH.min(depth / 2)).max(1)
}
