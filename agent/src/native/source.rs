//! What a job does next: one I/O after the other, drawn without memory or system calls.

use std::sync::{Arc, Mutex, PoisonError};

use super::mix::{Mix, Way, Ways};
use super::offsets::{Offsets, Sequence};
use super::pace::{Arrivals, Kind};
use super::queue::Act;
use super::random::Random;
use super::spec::{JobSpec, Pattern};
use super::tsc::Clock;

/// Keeps the seeds of a job's streams apart.
const OFFSETS: u64 = 0x0F_5E75;
const PACE: u64 = 0x9ACE;
/// Any odd constant with its bits well spread: neighbouring files get unlike orders.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// One I/O as a job wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// What is to be done.
    pub act: Act,
    /// On which target, by its place among all.
    pub target: u32,
    /// Where in the target.
    pub offset: u64,
    /// How much of it.
    pub bytes: u32,
    /// When it is to begin, in ticks since the start; 0 for as soon as there is room.
    pub due: u64,
    /// Counts the writes of the job from 1.
    pub sequence: u64,
}

/// The stream of a job's I/Os.
#[derive(Debug)]
pub struct Source {
    random: Random,
    mix: Mix,
    blocks: Box<[u32]>,
    files: Box<[Place]>,
    next_file: usize,
    left_bytes: Option<u64>,
    pace: Option<Pace>,
    fsync_every: u32,
    /// Writes since the last fsync.
    dirty: u32,
    sequence: u64,
}

/// Where a job is in one of its files.
#[derive(Debug)]
struct Place {
    target: u32,
    start: u64,
    bytes: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    /// Blocks of the smallest size, drawn.
    Random { offsets: Offsets, unit: u64 },
    /// Blocks of one size in order; the last may be shorter. One place each for reads and others.
    Blocks([Sequence; 2]),
    /// Blocks of many sizes in order, counted in bytes.
    Bytes([Sequence; 2]),
}

#[derive(Debug)]
struct Pace {
    arrivals: Arrivals,
    clock: Clock,
}

impl Source {
    /// The stream of a job on these targets; every fault of it that needs its streams to be seen.
    pub fn new(job: &JobSpec, targets: &[u32], clock: Clock) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let shares: Vec<f64> = job.blocks.iter().map(|block| block.share).collect();
        let mix = Mix::new(ways(job), &shares).map_err(|says| faults.push(says)).ok();
        let mut files = Vec::with_capacity(job.files.len());
        for (nth, (file, &target)) in job.files.iter().zip(targets).enumerate() {
            let bytes = job.region_bytes(file);
            match order(job, bytes, nth as u64) {
                Ok(order) => files.push(Place { target, start: job.offset_bytes, bytes, order }),
                // What one file's stream lacks, the others' lack as well.
                Err(says) if nth == 0 => faults.push(says),
                Err(_) => {}
            }
        }
        let pace = job.ios_per_s().map(|per_s| {
            let kind = job.arrivals.unwrap_or(Kind::Fixed);
            Arrivals::new(kind, per_s, job.seed ^ PACE).map(|arrivals| Pace { arrivals, clock })
        });
        let pace = pace.transpose().map_err(|says| faults.push(says)).ok().flatten();
        let Some(mix) = mix.filter(|_| faults.is_empty()) else { return Err(faults) };
        Ok(Self {
            random: Random::new(job.seed),
            mix,
            blocks: job.blocks.iter().map(|block| block.bytes).collect(),
            files: files.into(),
            next_file: 0,
            left_bytes: job.io_bytes,
            pace,
            fsync_every: job.fsync_every,
            dirty: 0,
            sequence: 0,
        })
    }

    /// The same, its I/Os due later by a part (0 to 1) of the time between two: so that jobs with
    /// the same rate take turns.
    #[must_use]
    pub fn later(mut self, part: f64) -> Self {
        if let Some(Pace { arrivals, clock }) = self.pace.take() {
            self.pace = Some(Pace { arrivals: arrivals.later(part), clock });
        }
        self
    }

    /// The next I/O; None when the job has moved all that it shall.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it is drawn from, not walked through")]
    pub fn next(&mut self) -> Option<Op> {
        if self.left_bytes == Some(0) {
            return None;
        }
        if self.fsync_every > 0 && self.dirty == self.fsync_every {
            self.dirty = 0;
            return Some(self.fsync());
        }
        let (way, size) = self.mix.next(&mut self.random);
        let file = &mut self.files[self.next_file];
        let (offset, bytes) = file.next(way, self.blocks[size as usize], &mut self.random);
        let target = file.target;
        if self.files.len() > 1 {
            self.next_file = (self.next_file + 1) % self.files.len();
        }
        if let Some(left) = &mut self.left_bytes {
            *left = left.saturating_sub(u64::from(bytes));
        }
        let due = self.pace.as_mut().map_or(0, Pace::next);
        if way == Way::Write {
            self.sequence += 1;
            self.dirty += u32::from(self.fsync_every > 0);
        }
        Some(Op { act: way.into(), target, offset, bytes, due, sequence: self.sequence })
    }

    /// An fsync of the file that was last written to.
    fn fsync(&mut self) -> Op {
        let last = (self.next_file + self.files.len() - 1) % self.files.len();
        let target = self.files[last].target;
        Op { act: Act::Sync, target, offset: 0, bytes: 0, due: 0, sequence: self.sequence }
    }
}

/// I/Os that were due and not submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many.
    pub count: u64,
    /// When the first of them was due, in ticks since the start.
    pub oldest: Option<u64>,
}

impl Source {
    /// What is due by then, in ticks since the start: drawn up to so many, and what is more told by
    /// the rate, as it would take too long. That uses the source up: who shares it adds nothing.
    pub fn waiting(&mut self, until: u64, draws: u64) -> Waiting {
        let (mut waiting, mut last, mut bytes) = (Waiting::default(), 0, 0);
        while waiting.count < draws {
            match self.next() {
                Some(op) if op.act == Act::Sync => {}
                Some(op) if op.due <= until => {
                    waiting.oldest.get_or_insert(op.due);
                    waiting.count += 1;
                    last = op.due;
                    bytes += u64::from(op.bytes);
                }
                _ => return waiting,
            }
        }
        let Some(Pace { arrivals, clock }) = &self.pace else { return waiting };
        let gap = clock.ticks_of(1_000_000_000) as f64 / 1e9 * arrivals.gap_ns();
        let by_rate = (until.saturating_sub(last) as f64 / gap) as u64;
        let mean = (bytes / waiting.count.max(1)).max(1);
        let left = self.left_bytes.map_or(u64::MAX, |left| left.div_ceil(mean));
        waiting.count += by_rate.min(left);
        self.left_bytes = Some(0);
        waiting
    }
}

impl Place {
    #[inline]
    fn next(&mut self, way: Way, block: u32, random: &mut Random) -> (u64, u32) {
        let bytes = u64::from(block);
        let (at, length) = match &mut self.order {
            Order::Random { offsets, unit } => (offsets.next(random) * *unit, block),
            Order::Blocks(sequences) => {
                let at = sequences[usize::from(way != Way::Read)].next(1) * bytes;
                (at, bytes.min(self.bytes - at) as u32)
            }
            Order::Bytes(sequences) => {
                (sequences[usize::from(way != Way::Read)].next(bytes), block)
            }
        };
        (self.start + at, length)
    }
}

impl Pace {
    #[inline]
    fn next(&mut self) -> u64 {
        self.clock.ticks_of(self.arrivals.next_ns()).max(1)
    }
}

fn ways(job: &JobSpec) -> Ways {
    match job.rw {
        Pattern::Read | Pattern::Randread => Ways::Only(Way::Read),
        Pattern::Write | Pattern::Randwrite => Ways::Only(Way::Write),
        Pattern::Trim | Pattern::Randtrim => Ways::Only(Way::Trim),
        Pattern::Rw | Pattern::Randrw => Ways::Mixed { read_percent: job.read_percent },
    }
}

fn order(job: &JobSpec, region_bytes: u64, nth: u64) -> Result<Order, String> {
    let (smallest, largest) = (u64::from(job.smallest_block()), u64::from(job.largest_block()));
    if job.rw.is_random() {
        // A block that begins in the last unit must still lie within the region.
        let units = (region_bytes.saturating_sub(largest)) / smallest + 1;
        let seed = (job.seed ^ OFFSETS).wrapping_add(nth.wrapping_mul(SPREAD));
        let offsets = Offsets::new(&job.distribution, units, seed)?;
        return Ok(Order::Random { offsets, unit: smallest });
    }
    let both = |length| [Sequence::new(length, 0), Sequence::new(length, 0)];
    if smallest == largest {
        return Ok(Order::Blocks(both(region_bytes.div_ceil(largest))));
    }
    Ok(Order::Bytes(both(region_bytes)))
}

/// Where a worker draws from: a stream of its own, or one of a job that many threads work on.
#[derive(Debug)]
pub enum Feed {
    /// Of this worker alone.
    Own(Box<Source>),
    /// Of many, one at a time.
    Shared(Arc<Mutex<Source>>),
}

impl Feed {
    /// The next I/O.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it is drawn from, not walked through")]
    pub fn next(&mut self) -> Option<Op> {
        match self {
            Self::Own(source) => source.next(),
            Self::Shared(source) => source.lock().unwrap_or_else(PoisonError::into_inner).next(),
        }
    }

    /// See there.
    pub fn waiting(&mut self, until: u64, draws: u64) -> Waiting {
        match self {
            Self::Own(source) => source.waiting(until, draws),
            Self::Shared(source) => {
                source.lock().unwrap_or_else(PoisonError::into_inner).waiting(until, draws)
            }
        }
    }
}
