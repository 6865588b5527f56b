//! What the engine is asked to do, and whether that can be meant; all faults are told at once.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::offsets::Distribution;
use super::pace::Kind;

/// The format of the spec that this engine reads.
const FORMAT: u32 = 1;
/// Jobs of one engine: each has its own sequence, place in the files and I/Os under way.
const MAX_JOBS: usize = 10_000;
/// Files of all jobs; each is an open file.
const MAX_FILES: usize = 100_000;
/// What the kernel's own limits on requests under way are near to.
const DEPTHS: RangeInclusive<u32> = 1..=65_536;
/// Block sizes of one job.
const MAX_BLOCKS: usize = 64;
/// From a sector up to what one request may move with room to count it.
const BLOCK_BYTES: RangeInclusive<u32> = 512..=(256 << 20);
/// Every device has blocks of a multiple of this.
const SECTOR_BYTES: u64 = 512;
/// The shortest and the longest interval, as of a watch.
const INTERVALS_MS: RangeInclusive<u64> = 100..=60_000;
/// A year; longer is a mistake in the unit.
const LONGEST_S: f64 = 366.0 * 86_400.0;
/// Threads; more than any machine has processors.
const MAX_THREADS: u32 = 4096;
/// Operations a second of one job: more than any processor can be asked for.
const MAX_RATE: f64 = 1e9;
/// An hour: a longer pause is not one between two I/Os.
const LONGEST_THINK_US: u64 = 3_600_000_000;

/// All that one engine does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the spec")]
pub struct Spec {
    /// The format of this.
    pub format: u32,
    /// The jobs, all at the same time.
    pub jobs: Vec<JobSpec>,
    /// Past the page cache.
    #[serde(default = "yes")]
    pub direct: bool,
    /// How the kernel is asked.
    #[serde(default)]
    pub method: Wanted,
    /// Completions are polled for, not waited for (`IOPOLL`).
    #[serde(default)]
    pub poll: bool,
    /// A thread of the kernel looks for submissions (`SQPOLL`).
    #[serde(default)]
    pub sqpoll: bool,
    /// How many threads share the jobs; null: one for each allowed processor.
    #[serde(default)]
    pub threads: Option<u32>,
    /// When submission stops; null: when each job has moved its `io_bytes`.
    #[serde(default)]
    pub runtime_s: Option<f64>,
    /// Between two lines of counts.
    #[serde(default = "one_second")]
    pub interval_ms: u64,
    /// Where the last acknowledged write of each block is kept.
    #[serde(default)]
    pub ledger: Option<PathBuf>,
}

/// One job: a pattern on its own files, region and depth.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Taken in turn, an I/O on each.
    pub files: Vec<FileSpec>,
    /// What is done in which order.
    pub rw: Pattern,
    /// Share of reads of a mixed pattern.
    #[serde(default = "half")]
    pub read_percent: f64,
    /// Block sizes, drawn by their shares.
    pub blocks: Vec<BlockShare>,
    /// I/Os under way at a time.
    pub depth: u32,
    /// Where the region of each file begins.
    #[serde(default)]
    pub offset_bytes: u64,
    /// How long it is; null: to the end of the file.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// The job ends when it has moved so many bytes.
    #[serde(default)]
    pub io_bytes: Option<u64>,
    /// As fast as possible when null.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// With a rate: when I/Os are to begin, whatever became of those before; null: a fixed pace at
    /// which no I/O begins early.
    #[serde(default)]
    pub arrivals: Option<Kind>,
    /// A pause, after every `think_every` I/Os.
    #[serde(default)]
    pub think_us: u64,
    /// See `think_us`.
    #[serde(default = "one")]
    pub think_every: u32,
    /// How random offsets are spread.
    #[serde(default = "uniform")]
    pub distribution: Distribution,
    /// An fsync after so many writes; never when 0.
    #[serde(default)]
    pub fsync_every: u32,
    /// An fsync of every file at the end.
    #[serde(default)]
    pub end_fsync: bool,
    /// What is written.
    #[serde(default)]
    pub contents: Option<serde_json::Value>,
    /// Writes bear a stamp with a checksum, which reads look for.
    #[serde(default)]
    pub verify: bool,
    /// Where its random numbers begin.
    #[serde(default)]
    pub seed: u64,
}

/// A target of a job.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// From the working directory on.
    pub path: PathBuf,
    /// How much of it the job may use; it must be at least so long.
    pub bytes: u64,
    /// Made, and made so long, where it is not.
    #[serde(default)]
    pub create: bool,
}

/// One block size and how often it comes, in proportion to the others.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockShare {
    /// Its size.
    pub bytes: u32,
    /// Its share.
    #[serde(default = "whole")]
    pub share: f64,
}

/// How fast a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rate {
    /// I/Os a second.
    Iops(f64),
    /// Bytes a second.
    BytesPerS(f64),
}

/// What a job does, in fio's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Reads in order.
    Read,
    /// Writes in order.
    Write,
    /// Both, each in order.
    Rw,
    /// Reads at random.
    Randread,
    /// Writes at random.
    Randwrite,
    /// Both at random.
    Randrw,
    /// Trims in order.
    Trim,
    /// Trims at random.
    Randtrim,
}

/// How the kernel is asked, as the spec wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// What the probes say is best.
    #[default]
    Auto,
    /// `io_uring`.
    IoUring,
    /// Linux's asynchronous I/O.
    Libaio,
    /// One thread for each I/O under way, with plain calls.
    Sync,
}

/// How the kernel is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// `io_uring`.
    IoUring,
    /// Linux's asynchronous I/O.
    Libaio,
    /// One thread for each I/O under way, with plain calls.
    Sync,
}

impl Pattern {
    /// Whether offsets are drawn.
    #[must_use]
    pub fn is_random(self) -> bool {
        matches!(self, Self::Randread | Self::Randwrite | Self::Randrw | Self::Randtrim)
    }

    /// Whether it reads and writes.
    #[must_use]
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Rw | Self::Randrw)
    }

    /// Whether it trims.
    #[must_use]
    pub fn trims(self) -> bool {
        matches!(self, Self::Trim | Self::Randtrim)
    }
}

impl JobSpec {
    /// Whether it reads anything.
    #[must_use]
    pub fn reads(&self) -> bool {
        match self.rw {
            Pattern::Read | Pattern::Randread => true,
            Pattern::Rw | Pattern::Randrw => self.read_percent > 0.0,
            _ => false,
        }
    }

    /// Whether it changes anything.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.writes() || self.rw.trims()
    }

    /// Whether it writes anything.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self.rw {
            Pattern::Write | Pattern::Randwrite => true,
            Pattern::Rw | Pattern::Randrw => self.read_percent < 100.0,
            _ => false,
        }
    }

    /// Its largest block.
    #[must_use]
    pub fn largest_block(&self) -> u32 {
        self.blocks.iter().map(|block| block.bytes).max().unwrap_or(0)
    }

    /// Its smallest block.
    #[must_use]
    pub fn smallest_block(&self) -> u32 {
        self.blocks.iter().map(|block| block.bytes).min().unwrap_or(0)
    }

    /// Bytes of an I/O in the mean.
    #[must_use]
    pub fn mean_block(&self) -> f64 {
        let shares: f64 = self.blocks.iter().map(|block| block.share).sum();
        let bytes: f64 = self.blocks.iter().map(|one| f64::from(one.bytes) * one.share).sum();
        bytes / shares
    }

    /// I/Os a second that it shall do; none when as many as it can.
    #[must_use]
    pub fn ios_per_s(&self) -> Option<f64> {
        self.rate.map(|rate| match rate {
            Rate::Iops(iops) => iops,
            Rate::BytesPerS(bytes_per_s) => bytes_per_s / self.mean_block(),
        })
    }

    /// The length of its region in a file.
    #[must_use]
    pub fn region_bytes(&self, file: &FileSpec) -> u64 {
        let left = file.bytes.saturating_sub(self.offset_bytes);
        self.size_bytes.map_or(left, |bytes| bytes.min(left))
    }
}

impl Spec {
    /// Read one; the fault when it cannot be read at all.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            format!("The engine cannot read its spec: {error}. Give one JSON object as documented.")
        })
    }

    /// Every fault that needs no look at a target.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut must = |holds: bool, says: String| {
            if !holds {
                faults.push(says);
            }
        };
        must(self.format == FORMAT, format!("format is {}; it must be {FORMAT}.", self.format));
        let jobs = self.jobs.len();
        must(
            (1..=MAX_JOBS).contains(&jobs),
            format!("There are {jobs} jobs; give 1 to {MAX_JOBS} of them."),
        );
        let files: usize = self.jobs.iter().map(|job| job.files.len()).sum();
        must(
            files <= MAX_FILES,
            format!("There are {files} files; give at most {MAX_FILES} of them."),
        );
        must(
            INTERVALS_MS.contains(&self.interval_ms),
            format!("interval_ms is {}; give 100 to 60000.", self.interval_ms),
        );
        must(
            self.runtime_s.is_none_or(|seconds| seconds > 0.0 && seconds <= LONGEST_S),
            format!("runtime_s is {:?}; give a time above zero.", self.runtime_s.unwrap_or(0.0)),
        );
        must(
            self.threads.is_none_or(|threads| (1..=MAX_THREADS).contains(&threads)),
            format!("threads is {}; give 1 to {MAX_THREADS}.", self.threads.unwrap_or(0)),
        );
        must(
            !(self.poll || self.sqpoll) || matches!(self.method, Wanted::Auto | Wanted::IoUring),
            format!("poll and sqpoll need io_uring; method is {:?}.", self.method),
        );
        must(
            !self.poll || self.direct,
            "poll needs direct I/O; leave one of poll and direct = false out.".to_owned(),
        );
        for (nth, job) in self.jobs.iter().enumerate().take(MAX_JOBS) {
            faults.extend(
                self.job_faults(job).into_iter().map(|says| format!("jobs[{nth}]: {says}")),
            );
        }
        faults
    }

    fn job_faults(&self, job: &JobSpec) -> Vec<String> {
        let mut faults = job.shape_faults();
        faults.extend(job.pace_faults());
        if self.runtime_s.is_none() && job.io_bytes.is_none() {
            faults.push("it would never end; give runtime_s or io_bytes.".into());
        }
        if job.rw.trims() && self.method != Wanted::Auto && self.method != Wanted::Sync {
            faults.push("trims need the method auto or sync; there are no others for them.".into());
        }
        faults
    }
}

impl JobSpec {
    fn shape_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut must = |holds: bool, says: String| {
            if !holds {
                faults.push(says);
            }
        };
        must(!self.files.is_empty(), "files is empty; give at least one.".into());
        must(DEPTHS.contains(&self.depth), format!("depth is {}; give 1 to 65536.", self.depth));
        let sizes = self.blocks.len();
        must(
            (1..=MAX_BLOCKS).contains(&sizes),
            format!("blocks has {sizes} sizes; give 1 to {MAX_BLOCKS} of them."),
        );
        for block in self.blocks.iter().take(MAX_BLOCKS) {
            must(
                BLOCK_BYTES.contains(&block.bytes) && u64::from(block.bytes) % SECTOR_BYTES == 0,
                format!("a block of {} bytes; give a multiple of 512 up to 256 MiB.", block.bytes),
            );
        }
        for file in &self.files {
            let region = self.region_bytes(file);
            must(
                region >= u64::from(self.largest_block()),
                format!(
                    "its region of {} has {region} bytes, and a block has {}; give it more.",
                    file.path.display(),
                    self.largest_block()
                ),
            );
            must(
                self.size_bytes.is_none_or(|bytes| {
                    self.offset_bytes.checked_add(bytes).is_some_and(|end| end <= file.bytes)
                }),
                format!(
                    "offset_bytes {} and size_bytes {} reach past the {} bytes of {}; give less.",
                    self.offset_bytes,
                    self.size_bytes.unwrap_or(0),
                    file.bytes,
                    file.path.display()
                ),
            );
        }
        must(self.io_bytes != Some(0), "io_bytes is 0; leave the job out.".into());
        faults
    }

    fn pace_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut must = |holds: bool, says: String| {
            if !holds {
                faults.push(says);
            }
        };
        if let Some(per_s) = self.ios_per_s() {
            must(
                per_s > 0.0 && per_s <= MAX_RATE,
                format!("a rate of {per_s} I/Os a second; give one above 0 and up to 1e9."),
            );
        }
        must(
            self.arrivals.is_none() || self.rate.is_some(),
            "arrivals without a rate; give a rate as well.".into(),
        );
        must(
            self.arrivals.is_none() || self.think_us == 0,
            "arrivals and think_us; what arrives does not think.".into(),
        );
        must(self.think_every > 0, "think_every is 0; give 1 or more.".into());
        must(
            self.think_us <= LONGEST_THINK_US,
            format!("think_us is {}; give at most an hour.", self.think_us),
        );
        must(
            self.fsync_every == 0 || self.writes(),
            "fsync_every without writes; leave it out.".into(),
        );
        faults
    }
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn half() -> f64 {
    50.0
}

fn whole() -> f64 {
    100.0
}

fn one_second() -> u64 {
    1000
}

fn uniform() -> Distribution {
    Distribution::Uniform {}
}
