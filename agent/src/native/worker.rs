//! The loop of one thread: submit what its jobs want, wait, count what has ended.
//!
//! From the start on it allocates nothing, takes no lock (but where threads share a job) and
//! formats nothing. The clock is read twice a turn: just before the kernel is asked, which is where
//! the latency of all that is submitted begins, and when it has answered, where the latency of all
//! that has ended ends.

use std::io;
use std::sync::Arc;

use super::buffer::{BLOCK_ALIGNMENT, Block, Region};
use super::counts::{Reason, Scores};
use super::queue::{Act, Queue, Request, Wait};
use super::source::{Feed, Op};
use super::tsc::Clock;

/// An I/O that the kernel refuses so often for lack of room counts as failed.
const MAX_TRIES: u16 = 1000;
/// A registered buffer may not be longer.
pub const BUFFER_BYTES: usize = 1 << 30;
/// Before something is due the thread stays awake for so long: timers wake it some tens of
/// microseconds late.
const AWAKE_NS: u64 = 100_000;
/// When a job has nothing that is due.
const NEVER: u64 = u64::MAX;

/// A job's part in a worker.
#[derive(Debug)]
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
}

/// When a worker begins, and when it submits nothing more, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The start.
    pub start: u64,
    /// The end of submission.
    pub deadline: u64,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ended {
    /// When its last I/O ended, in ticks.
    pub last: u64,
    /// The time of the earliest I/O that was due and not submitted, in ticks since the start.
    pub oldest_due: Option<u64>,
    /// It had nothing left to do before the deadline.
    pub is_early: bool,
    /// What broke it off: the kernel took or gave no more.
    pub broken: Option<i32>,
}

/// A lane at work.
#[allow(clippy::struct_excessive_bools, reason = "each is looked at alone in the loop")]
struct Track {
    feed: Feed,
    free: Box<[u32]>,
    free_count: usize,
    /// Free slots before this turn's submissions.
    free_before: usize,
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
    is_paced: bool,
    is_timed: bool,
    has_ended: bool,
    is_listed: bool,
}

/// An I/O under way. Its block is its own for ever.
#[derive(Debug, Clone, Copy)]
struct Slot {
    stamp: u64,
    due: u64,
    offset: u64,
    block: Block,
    bytes: u32,
    moved: u32,
    lane: u32,
    target: u32,
    buffer: u16,
    tries: u16,
    act: Act,
}

/// The thread's state.
pub struct Worker<Q> {
    queue: Q,
    clock: Clock,
    scores: Arc<Scores>,
    tracks: Vec<Track>,
    /// Lanes that may have something to submit.
    listed: Vec<u32>,
    slots: Vec<Slot>,
    /// Slots whose I/O is given to the kernel once more.
    again: Vec<u32>,
    under_way: usize,
    region: Region,
}

/// The memory of a worker's lanes, and where each registered buffer lies in it.
pub struct Memory {
    region: Region,
    /// Block, buffer and lane of each slot.
    blocks: Vec<(Block, u16, u32)>,
    /// The parts of the region to be registered.
    pub buffers: Vec<Block>,
}

impl Memory {
    /// For lanes of these depths and blocks.
    pub fn of(lanes: &[Lane]) -> io::Result<Self> {
        let mut spans = Vec::new();
        let (mut places, mut end, mut span_start) = (Vec::new(), 0_usize, 0_usize);
        for (nth, lane) in lanes.iter().enumerate() {
            let bytes = (lane.block_bytes as usize).next_multiple_of(BLOCK_ALIGNMENT);
            for _ in 0..lane.depth {
                if end + bytes - span_start > BUFFER_BYTES {
                    spans.push((span_start, end - span_start));
                    span_start = end;
                }
                places.push((end, lane.block_bytes as usize, spans.len() as u16, nth as u32));
                end += bytes;
            }
        }
        spans.push((span_start, end - span_start));
        let region = Region::new(end)?;
        let blocks = places
            .into_iter()
            .map(|(start, bytes, buffer, lane)| (region.block(start, bytes), buffer, lane))
            .collect();
        let buffers = spans.into_iter().map(|(start, bytes)| region.block(start, bytes)).collect();
        Ok(Self { region, blocks, buffers })
    }
}

impl<Q: Queue> Worker<Q> {
    /// A worker that does these lanes in this memory; nothing is allocated after this.
    #[must_use]
    pub fn new(
        queue: Q,
        lanes: Vec<Lane>,
        memory: Memory,
        clock: Clock,
        scores: Arc<Scores>,
    ) -> Self {
        let slots: Vec<Slot> = memory.blocks.iter().map(|place| Slot::at(*place)).collect();
        let mut first = 0;
        let mut tracks = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let end = first + lane.depth;
            tracks.push(Track::new(lane, (first..end).rev().collect()));
            first = end;
        }
        Self {
            queue,
            clock,
            scores,
            listed: (0..tracks.len() as u32).collect(),
            tracks,
            again: Vec::with_capacity(slots.len()),
            slots,
            under_way: 0,
            region: memory.region,
        }
    }

    /// Fill all blocks, before the start.
    pub fn fill(&mut self, mut contents: impl FnMut(&mut [u8])) {
        for slot in &self.slots {
            contents(self.region.bytes_of(slot.block));
        }
    }

    /// Work from the start to the deadline, and until all that is under way has ended.
    pub fn run(mut self, times: Times) -> Ended {
        self.clock.wait_until(times.start);
        let mut now = self.clock.ticks();
        let mut ended = Ended { last: now, ..Ended::default() };
        while now < times.deadline {
            let next_due = self.submit(now, times.start);
            let wait = self.wait_for(next_due.min(times.deadline), now);
            let Some(wait) = wait else {
                ended.is_early = true;
                break;
            };
            if let Err(error) = self.queue.enter(wait) {
                ended.broken = error.raw_os_error();
                break;
            }
            now = self.clock.ticks();
            if self.reap(now, times) {
                ended.last = now;
            }
        }
        while self.under_way > 0 && ended.broken.is_none() {
            self.submit_again();
            if let Err(error) = self.queue.enter(Wait::One) {
                ended.broken = error.raw_os_error();
            }
            now = self.clock.ticks();
            if self.reap(now, times) {
                ended.last = now;
            }
        }
        ended.oldest_due = self.tracks.iter_mut().filter_map(Track::oldest_due).min();
        ended
    }

    /// Give the queue once more what did not go through.
    #[inline]
    fn submit_again(&mut self) {
        for number in self.again.drain(..) {
            self.queue.push(&self.slots[number as usize].request(number));
        }
    }

    /// Give the queue what may be submitted now; when there is something to submit next: 0 for at
    /// once.
    #[inline]
    fn submit(&mut self, now: u64, start: u64) -> u64 {
        self.submit_again();
        let Self { queue, tracks, listed, slots, clock, scores, under_way, .. } = self;
        let mut next_due = NEVER;
        let mut pushed = 0;
        for &lane in listed.iter() {
            let track = &mut tracks[lane as usize];
            track.free_before = track.free_count;
            next_due = next_due.min(track.submit(queue, slots, now, start));
            pushed += track.free_before - track.free_count;
        }
        if pushed > 0 {
            *under_way += pushed;
            let stamp = clock.ticks();
            for &lane in listed.iter() {
                tracks[lane as usize].stamp(slots, stamp, clock, scores);
            }
        }
        listed.retain(|&lane| tracks[lane as usize].stays_listed());
        next_due
    }

    /// How long to wait when the next thing to submit is due then; None when all is done.
    #[inline]
    fn wait_for(&self, next_due: u64, now: u64) -> Option<Wait> {
        if next_due == 0 {
            return Some(Wait::No);
        }
        if self.listed.is_empty() {
            return (self.under_way > 0).then_some(Wait::One);
        }
        let left_ns = self.clock.ns(next_due.saturating_sub(now));
        if left_ns <= AWAKE_NS {
            std::hint::spin_loop();
            return Some(Wait::No);
        }
        Some(Wait::AtMost(left_ns - AWAKE_NS))
    }

    /// Count what has ended; whether anything has.
    #[inline]
    fn reap(&mut self, now: u64, times: Times) -> bool {
        let Self { queue, tracks, listed, slots, again, clock, scores, under_way, .. } = self;
        let is_late = now >= times.deadline;
        let before = *under_way;
        queue.reap(|number, result| {
            let slot = &mut slots[number as usize];
            let track = &mut tracks[slot.lane as usize];
            if result == slot.bytes as i32 {
                slot.count(track, scores, clock, now);
            } else if slot.goes_on(result, scores) {
                again.push(number);
                return;
            }
            *under_way -= 1;
            if is_late {
                scores.drain();
            }
            if track.take_back(number, now) {
                listed.push(slot.lane);
            }
        });
        *under_way < before
    }
}

impl Track {
    fn new(lane: Lane, free: Box<[u32]>) -> Self {
        Self {
            feed: lane.feed,
            free_count: free.len(),
            free_before: free.len(),
            cap: (lane.depth as usize / 4).max(1),
            free,
            ahead: None,
            pause_until: 0,
            room_since: 0,
            done: 0,
            think: lane.think,
            is_paced: lane.is_paced,
            is_timed: lane.is_timed,
            has_ended: false,
            is_listed: true,
        }
    }

    /// Push up to `cap` I/Os that are due; when the next one is, 0 for at once.
    #[inline]
    fn submit(&mut self, queue: &mut impl Queue, slots: &mut [Slot], now: u64, start: u64) -> u64 {
        if self.pause_until > now {
            return self.pause_until;
        }
        let last = self.free_count.saturating_sub(self.cap);
        while self.free_count > last {
            let ahead = if self.is_paced { self.ahead.take() } else { None };
            let Some(op) = ahead.or_else(|| self.feed.next()) else {
                self.has_ended = true;
                return NEVER;
            };
            let due = if op.due == 0 { now } else { start + op.due };
            if self.is_paced && due > now {
                self.ahead = Some(op);
                return due;
            }
            self.free_count -= 1;
            let number = self.free[self.free_count];
            let slot = &mut slots[number as usize];
            slot.begin(&op, due);
            queue.push(&slot.request(number));
        }
        if self.free_count > 0 { 0 } else { NEVER }
    }

    /// Stamp what was pushed in this turn: those slots still lie behind the free ones.
    #[inline]
    fn stamp(&self, slots: &mut [Slot], stamp: u64, clock: &Clock, scores: &Scores) {
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
    fn oldest_due(&mut self) -> Option<u64> {
        if !self.is_paced || self.has_ended {
            return None;
        }
        self.ahead.or_else(|| self.feed.next()).map(|op| op.due).filter(|&due| due > 0)
    }

    #[inline]
    fn stays_listed(&mut self) -> bool {
        self.is_listed = self.free_count > 0 && !self.has_ended;
        self.is_listed
    }

    /// A slot is free again; whether the lane is to be listed for that.
    #[inline]
    fn take_back(&mut self, number: u32, now: u64) -> bool {
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

impl Slot {
    fn at((block, buffer, lane): (Block, u16, u32)) -> Self {
        Self {
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
    fn begin(&mut self, op: &Op, due: u64) {
        self.due = due;
        self.offset = op.offset;
        self.bytes = op.bytes;
        self.moved = 0;
        self.target = op.target;
        self.tries = 0;
        self.act = op.act;
    }

    #[inline]
    fn request(&self, number: u32) -> Request {
        Request {
            slot: number,
            act: self.act,
            target: self.target,
            offset: self.offset + u64::from(self.moved),
            block: self.block.part(self.moved as usize, self.bytes as usize),
            bytes: self.bytes,
            buffer: self.buffer,
        }
    }

    /// Count it as done.
    #[inline]
    fn count(&self, track: &Track, scores: &Scores, clock: &Clock, now: u64) {
        let Some(tally) = scores.of(self.act) else { return };
        let service_ns = clock.ns(now.saturating_sub(self.stamp));
        if track.is_timed {
            tally.add(clock.ns(now.saturating_sub(self.due)), self.bytes + self.moved);
            if let Some(service) = &tally.service {
                service.add(service_ns);
            }
        } else {
            tally.add(service_ns, self.bytes + self.moved);
        }
    }

    /// Whether an I/O that did not do all it should goes on; else it is counted as failed.
    #[cold]
    fn goes_on(&mut self, result: i32, scores: &Scores) -> bool {
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
                return false;
            }
        };
        self.tries += 1;
        if self.tries < MAX_TRIES {
            scores.retry(reason);
            return true;
        }
        if let Some(tally) = scores.of(self.act) {
            tally.response.fail((result < 0).then_some(-result));
        }
        false
    }
}
