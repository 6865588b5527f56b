//! A job's part in a worker: what it submits in each turn, and the pauses that it makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::ContentsWriter;
use super::counts::WorkerCounters;
use super::queue::{IoKind, Queue};
use super::slot::Slot;
use super::source::{Backlog, IoOp, OpFeed};
use super::tsc::Clock;
use super::verify::Verifier;
use crate::sys::buffer::Region;

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

    /// The slots that were pushed in this turn, in their order.
    #[inline]
    pub fn submitted_slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.free_slots[self.free_count..self.free_before].iter().rev().copied()
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
