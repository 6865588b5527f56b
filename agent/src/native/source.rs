//! What a job does next: one I/O after the other, drawn without memory or system calls.

use std::sync::{Arc, Mutex};

use super::offsets::{Offsets, Sequence};
use super::pace::{ArrivalKind, Arrivals};
use super::queue::IoKind;
use super::random::Random;
use super::spec::{JobSpec, Pattern};
use super::trace::Trace;
use super::tsc::Clock;
use crate::sys::thread::lock;

/// Keeps the seeds of a job's streams apart.
const OFFSETS_SEED: u64 = 0x0F_5E75;
const PACE_SEED: u64 = 0x9ACE;
/// Any odd constant with its bits well spread: neighbouring files get unlike orders.
const FILE_SEED_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// One I/O as a job wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoOp {
    /// What is to be done.
    pub kind: IoKind,
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
pub struct OpStream {
    random: Random,
    mix: OpMix,
    blocks: Box<[u32]>,
    files: Box<[FileRegion]>,
    next_file: usize,
    bytes_left: Option<u64>,
    pace: Option<Pace>,
    trace: Option<Trace>,
    fsync_every: u32,
    /// Writes since the last keep.
    writes_since_fsync: u32,
    sequence: u64,
}

/// Where a job is in one of its files.
#[derive(Debug)]
struct FileRegion {
    target: u32,
    start: u64,
    bytes: u64,
    order: OffsetOrder,
}

#[derive(Debug)]
enum OffsetOrder {
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

impl OpStream {
    /// The stream of a job on these targets; every fault of it that needs its streams to be seen.
    pub fn new(job: &JobSpec, targets: &[u32], clock: Clock) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let shares: Vec<f64> = job.blocks.iter().map(|block| block.share).collect();
        let mix =
            OpMix::new(directions_of(job), &shares).map_err(|message| faults.push(message)).ok();
        let mut files = Vec::with_capacity(job.files.len());
        for (nth, (file, &target)) in job.files.iter().zip(targets).enumerate() {
            let bytes = job.region_bytes(file);
            match offset_order(job, bytes, nth as u64) {
                Ok(order) => {
                    files.push(FileRegion { target, start: job.offset_bytes, bytes, order });
                }
                // What one file's stream lacks, the others' lack as well.
                Err(message) if nth == 0 => faults.push(message),
                Err(_) => {}
            }
        }
        let pace = job.ios_per_s().map(|per_s| {
            let kind = job.arrivals.unwrap_or(ArrivalKind::Fixed);
            Arrivals::new(kind, per_s, job.seed ^ PACE_SEED)
                .map(|arrivals| Pace { arrivals, clock })
        });
        let region = job.files.first().map_or(0, |file| job.region_bytes(file));
        let trace = job
            .trace
            .as_ref()
            .map(|trace| Trace::read(trace, region, job.largest_block(), clock))
            .transpose()
            .map_err(|message| faults.push(message))
            .ok()
            .flatten();
        let pace = pace.transpose().map_err(|message| faults.push(message)).ok().flatten();
        let Some(mix) = mix.filter(|_| faults.is_empty()) else { return Err(faults) };
        Ok(Self {
            random: Random::new(job.seed),
            mix,
            blocks: job.blocks.iter().map(|block| block.bytes).collect(),
            files: files.into(),
            next_file: 0,
            bytes_left: job.io_bytes,
            pace,
            trace,
            fsync_every: job.fsync_every,
            writes_since_fsync: 0,
            sequence: 0,
        })
    }

    /// The same, its I/Os due later by a part (0 to 1) of the time between two: so that jobs with
    /// the same rate take turns.
    #[must_use]
    pub fn delayed(mut self, part: f64) -> Self {
        if let Some(Pace { arrivals, clock }) = self.pace.take() {
            self.pace = Some(Pace { arrivals: arrivals.delayed(part), clock });
        }
        self
    }

    /// The next I/O; None when the job has moved all that it shall.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it is drawn from, not walked through")]
    pub fn next(&mut self) -> Option<IoOp> {
        if self.bytes_left == Some(0) {
            return None;
        }
        if let Some(trace) = &mut self.trace {
            let file = &self.files[0];
            return trace.next(file.target, file.start, &mut self.sequence);
        }
        if self.fsync_every > 0 && self.writes_since_fsync == self.fsync_every {
            self.writes_since_fsync = 0;
            return Some(self.next_fsync());
        }
        let (act, size) = self.mix.next(&mut self.random);
        let file = &mut self.files[self.next_file];
        let (offset, bytes) = file.next(act, self.blocks[size as usize], &mut self.random);
        let target = file.target;
        if self.files.len() > 1 {
            self.next_file = (self.next_file + 1) % self.files.len();
        }
        if let Some(left) = &mut self.bytes_left {
            *left = left.saturating_sub(u64::from(bytes));
        }
        let due = self.pace.as_mut().map_or(0, Pace::next);
        if act == IoKind::Write {
            self.sequence += 1;
            self.writes_since_fsync += u32::from(self.fsync_every > 0);
        }
        Some(IoOp { kind: act, target, offset, bytes, due, sequence: self.sequence })
    }

    /// An fsync of the file that was last written to.
    fn next_fsync(&mut self) -> IoOp {
        let last = (self.next_file + self.files.len() - 1) % self.files.len();
        let target = self.files[last].target;
        IoOp { kind: IoKind::Sync, target, offset: 0, bytes: 0, due: 0, sequence: self.sequence }
    }
}

/// I/Os that were due and not submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// How many.
    pub count: u64,
    /// When the first of them was due, in ticks since the start.
    pub oldest: Option<u64>,
}

impl OpStream {
    /// What is due by then, in ticks since the start: drawn up to so many, and what is more told by
    /// the rate, as it would take too long. That uses the source up: who shares it adds nothing.
    pub fn backlog(&mut self, until: u64, draws: u64) -> Backlog {
        if let Some(trace) = &self.trace {
            let waiting = trace.backlog(until);
            self.bytes_left = Some(0);
            return waiting;
        }
        let (mut waiting, mut last, mut bytes) = (Backlog::default(), 0, 0);
        while waiting.count < draws {
            match self.next() {
                Some(op) if op.kind == IoKind::Sync => {}
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
        let left = self.bytes_left.map_or(u64::MAX, |left| left.div_ceil(mean));
        waiting.count += by_rate.min(left);
        self.bytes_left = Some(0);
        waiting
    }
}

impl FileRegion {
    #[inline]
    fn next(&mut self, act: IoKind, block: u32, random: &mut Random) -> (u64, u32) {
        let bytes = u64::from(block);
        let (at, length) = match &mut self.order {
            OffsetOrder::Random { offsets, unit } => (offsets.next(random) * *unit, block),
            OffsetOrder::Blocks(sequences) => {
                let at = sequences[usize::from(act != IoKind::Read)].next(1) * bytes;
                (at, bytes.min(self.bytes - at) as u32)
            }
            OffsetOrder::Bytes(sequences) => {
                (sequences[usize::from(act != IoKind::Read)].next(bytes), block)
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

fn directions_of(job: &JobSpec) -> Directions {
    match job.rw {
        Pattern::Read | Pattern::Randread => Directions::Only(IoKind::Read),
        Pattern::Write | Pattern::Randwrite => Directions::Only(IoKind::Write),
        Pattern::Trim | Pattern::Randtrim => Directions::Only(IoKind::Trim),
        Pattern::Rw | Pattern::Randrw => Directions::Mixed { read_percent: job.read_percent },
    }
}

fn offset_order(job: &JobSpec, region_bytes: u64, nth: u64) -> Result<OffsetOrder, String> {
    let (smallest, largest) = (u64::from(job.smallest_block()), u64::from(job.largest_block()));
    if job.rw.is_random() {
        // A block that begins in the last unit must still lie within the region.
        let units = (region_bytes.saturating_sub(largest)) / smallest + 1;
        let seed = (job.seed ^ OFFSETS_SEED).wrapping_add(nth.wrapping_mul(FILE_SEED_FACTOR));
        let offsets = Offsets::new(&job.distribution, units, seed)?;
        return Ok(OffsetOrder::Random { offsets, unit: smallest });
    }
    let both = |length| [Sequence::new(length, 0), Sequence::new(length, 0)];
    if smallest == largest {
        return Ok(OffsetOrder::Blocks(both(region_bytes.div_ceil(largest))));
    }
    Ok(OffsetOrder::Bytes(both(region_bytes)))
}

/// Where a worker draws from: a stream of its own, or one of a job that many threads work on.
#[derive(Debug)]
pub enum OpFeed {
    /// Of this worker alone.
    Own(Box<OpStream>),
    /// Of many, one at a time.
    Shared(Arc<Mutex<OpStream>>),
}

impl OpFeed {
    /// The next I/O.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it is drawn from, not walked through")]
    pub fn next(&mut self) -> Option<IoOp> {
        match self {
            Self::Own(source) => source.next(),
            Self::Shared(source) => lock(source).next(),
        }
    }

    /// See there.
    pub fn backlog(&mut self, until: u64, draws: u64) -> Backlog {
        match self {
            Self::Own(source) => source.backlog(until, draws),
            Self::Shared(source) => lock(source).backlog(until, draws),
        }
    }
}

/// Sizes that one job may mix; a draw looks at all of them.
const MAX_BLOCK_SIZES: usize = 32;
/// What half of a random number can tell apart.
const HALF_RANGE: f64 = (1_u64 << 32) as f64;

/// The directions of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Directions {
    /// Always the same.
    Only(IoKind),
    /// Reads, and writes for the rest.
    Mixed {
        /// 0 to 100.
        read_percent: f64,
    },
}

/// The stream of directions and sizes of one job: each drawn by itself, so shares are met on
/// average, as fio does it.
#[derive(Debug, Clone)]
struct OpMix {
    first: IoKind,
    /// Whether anything must be drawn.
    is_drawn: bool,
    /// Below it, of 2^32, the first direction; else a write.
    first_below: u64,
    /// The end of the part of each size but the last, of 2^32.
    ends: Box<[u64]>,
}

impl OpMix {
    /// The stream of a job whose block sizes have these shares, in any unit. What is wrong is told
    /// in one sentence.
    pub fn new(ways: Directions, shares: &[f64]) -> Result<Self, String> {
        let (first, first_part) = match ways {
            Directions::Only(act) => (act, 1.0),
            Directions::Mixed { read_percent } if (0.0..=100.0).contains(&read_percent) => {
                (IoKind::Read, read_percent / 100.0)
            }
            Directions::Mixed { read_percent } => {
                return Err(format!("read_percent is {read_percent}; it must be 0 to 100."));
            }
        };
        let first_below = (first_part * HALF_RANGE).round() as u64;
        let ends = cumulative_ends(shares)?;
        let is_drawn = !(matches!(ways, Directions::Only(_)) && ends.is_empty());
        Ok(Self { first, is_drawn, first_below, ends })
    }

    /// The next direction, and which of the block sizes.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> (IoKind, u32) {
        if !self.is_drawn {
            return (self.first, 0);
        }
        // Both halves of a number are random by themselves.
        let bits = random.next();
        let (high, low) = (bits >> 32, bits & u64::from(u32::MAX));
        let act = if low < self.first_below { self.first } else { IoKind::Write };
        (act, self.ends.iter().map(|&end| u32::from(high >= end)).sum())
    }
}

fn cumulative_ends(shares: &[f64]) -> Result<Box<[u64]>, String> {
    if shares.is_empty() || shares.len() > MAX_BLOCK_SIZES {
        let count = shares.len();
        return Err(format!("There are {count} block sizes; a job takes 1 to {MAX_BLOCK_SIZES}."));
    }
    if let Some(share) = shares.iter().find(|share| !(share.is_finite() && **share >= 0.0)) {
        return Err(format!("A block size has a share of {share}; it must be 0 or more."));
    }
    let whole: f64 = shares.iter().sum();
    if !(whole > 0.0 && whole.is_finite()) {
        return Err(format!("The shares of the block sizes add up to {whole}, not above 0."));
    }
    // Sizes that come after the last with a share must not get what rounding leaves over.
    let last = shares.iter().rposition(|&share| share > 0.0).unwrap_or(0);
    let mut sum = 0.0;
    let parts = shares[..last].iter().map(|share| {
        sum += share / whole;
        (sum * HALF_RANGE).round() as u64
    });
    Ok(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 100_000;

    fn shares_of(ways: Directions, shares: &[f64]) -> ([f64; 3], [f64; 4]) {
        let mut mix = OpMix::new(ways, shares).unwrap();
        let mut random = Random::new(5);
        let (mut by_way, mut by_size) = ([0_u32; 3], [0_u32; 4]);
        for _ in 0..DRAWS {
            let (way, size) = mix.next(&mut random);
            by_way[way as usize] += 1;
            by_size[size as usize] += 1;
        }
        let share = |count| f64::from(count) / f64::from(DRAWS);
        (by_way.map(share), by_size.map(share))
    }

    /// Five standard deviations of a half.
    fn assert_close(got: &[f64], expected: &[f64]) {
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 5.0 * 0.5 / 316.0, "{got} of {expected}");
        }
    }

    #[test]
    fn one_way_and_one_size_take_no_random_number() {
        for way in [IoKind::Read, IoKind::Write, IoKind::Trim] {
            let mut random = Random::new(1);
            let mut mix = OpMix::new(Directions::Only(way), &[100.0]).unwrap();
            assert_eq!((mix.next(&mut random), mix.next(&mut random)), ((way, 0), (way, 0)));
            assert_eq!(random.next(), Random::new(1).next());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn shares_are_met_and_independent() {
        let mixed = Directions::Mixed { read_percent: 70.0 };
        let (ways, sizes) = shares_of(mixed, &[60.0, 0.0, 30.0, 10.0]);
        assert_close(&ways, &[0.7, 0.3, 0.0]);
        assert_close(&sizes, &[0.6, 0.0, 0.3, 0.1]);
        assert!(sizes[1] == 0.0);
        let (ways, sizes) = shares_of(Directions::Only(IoKind::Trim), &[1.0, 3.0]);
        assert_eq!(ways.map(|share| share as u32), [0, 0, 1]);
        assert_close(&sizes, &[0.25, 0.75]);
        // The size says nothing about the direction.
        let mut mix = OpMix::new(mixed, &[1.0, 1.0]).unwrap();
        let mut random = Random::new(6);
        let all: Vec<_> = (0..DRAWS).map(|_| mix.next(&mut random)).collect();
        let small = all.iter().filter(|&&(_, size)| size == 0);
        let reads = small.clone().filter(|&&(way, _)| way == IoKind::Read).count();
        assert_close(&[reads as f64 / small.count() as f64], &[0.7]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn none_and_all_are_exact() {
        for (read_percent, other) in [(0.0, IoKind::Read), (100.0, IoKind::Write)] {
            let (ways, _) = shares_of(Directions::Mixed { read_percent }, &[1.0]);
            assert!(ways[other as usize] == 0.0 && ways[IoKind::Trim as usize] == 0.0);
        }
        let (_, sizes) = shares_of(Directions::Only(IoKind::Read), &[1.0, 1.0, 1.0, 0.0]);
        assert!(sizes[3] == 0.0);
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        let told = |ways, shares: &[f64]| OpMix::new(ways, shares).expect_err("cannot be meant");
        let read = Directions::Only(IoKind::Read);
        assert!(told(Directions::Mixed { read_percent: 101.0 }, &[1.0]).contains("101"));
        assert!(told(Directions::Mixed { read_percent: f64::NAN }, &[1.0]).contains("NaN"));
        assert!(told(read, &[]).contains("0 block sizes"));
        assert!(told(read, &[1.0; 33]).contains("33 block sizes"));
        assert!(told(read, &[1.0, -1.0]).contains("-1"));
        assert!(told(read, &[0.0, 0.0]).contains("add up to 0"));
        assert!(told(read, &[f64::MAX, f64::MAX]).contains("inf"));
    }
}
