//! What the engine is asked to do, and whether that can be meant; all faults are told at once.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::contents::{ContentsKind, ContentsSpec};
use super::offsets::Distribution;
use super::pace::ArrivalKind;
use super::recording::RecordingSpec;
use super::trace::TraceSpec;

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
    #[serde(default = "default_true")]
    pub direct: bool,
    /// How the kernel is asked.
    #[serde(default)]
    pub method: MethodChoice,
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
    /// Each I/O's latency is taken; else I/Os are only counted.
    #[serde(default = "default_true")]
    pub timed: bool,
    /// By which part (0 to 1) of the time between two of its arrivals this host is later than the
    /// first of its fleet, so that hosts with fixed arrivals take turns.
    #[serde(default)]
    pub later: f64,
    /// Where the last acknowledged write of each block is kept.
    #[serde(default)]
    pub ledger: Option<PathBuf>,
    /// So many of the slowest I/Os are told one by one.
    #[serde(default)]
    pub slow_ios: u32,
    /// I/Os are recorded one by one, to be replayed.
    #[serde(default)]
    pub record: Option<RecordingSpec>,
    /// What a word of the ledger stands for, where later runs have smaller blocks; null: the block.
    #[serde(default)]
    pub ledger_block: Option<u32>,
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
    #[serde(default = "default_half")]
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
    pub arrivals: Option<ArrivalKind>,
    /// Recorded I/Os, each at its time, instead of a pattern's: `rw` and `blocks` then bound what
    /// they may be.
    #[serde(default)]
    pub trace: Option<TraceSpec>,
    /// A pause, after every `think_every` I/Os.
    #[serde(default)]
    pub think_us: u64,
    /// See `think_us`.
    #[serde(default = "default_one")]
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
    pub contents: Option<ContentsSpec>,
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
    #[serde(default = "default_whole")]
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
pub enum MethodChoice {
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
    pub fn changes_data(&self) -> bool {
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
    fn mean_block(&self) -> f64 {
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

    /// Whether an I/O waits until it is due.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.rate.is_some() || self.trace.is_some()
    }

    /// Whether latency begins when an I/O is due, and not when it is submitted.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.arrivals.is_some() || self.trace.is_some()
    }

    /// Whether it flushes anything before its end.
    #[must_use]
    pub fn syncs(&self) -> bool {
        self.fsync_every > 0 || self.trace.as_ref().is_some_and(|trace| trace.syncs)
    }

    /// What it writes: as incompressible and unlike as costs least, unless noted otherwise.
    #[must_use]
    pub fn contents(&self) -> ContentsSpec {
        let kind = ContentsKind::Scrambled;
        self.contents.unwrap_or(ContentsSpec { kind, compress_percent: 0, dedupe_percent: 0 })
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
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            format!("The engine cannot read its spec: {error}. Give one JSON object as documented.")
        })
    }
}

fn default_true() -> bool {
    true
}

fn default_one() -> u32 {
    1
}

fn default_half() -> f64 {
    50.0
}

fn default_whole() -> f64 {
    100.0
}

fn one_second() -> u64 {
    1000
}

fn uniform() -> Distribution {
    Distribution::Uniform {}
}
