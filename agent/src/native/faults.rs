//! What cannot be meant in a spec; all of it is told at once.

use std::ops::RangeInclusive;

use super::plan::MAX_LANES;
use super::recording::MAX_RECORDED;
use super::slowest::MAX_SLOWEST;
use super::spec::{JobSpec, MethodChoice, Spec};

/// The format of the spec that this engine reads.
const FORMAT: u32 = 1;
/// Jobs of one engine: each has its own sequence, place in the files and I/Os under way.
const MAX_JOBS: usize = 10_000;
/// Files of all jobs; each is an open file.
const MAX_FILES: usize = 100_000;
/// What the kernel's own limits on requests under way are near to.
const DEPTHS: RangeInclusive<u32> = 1..=65_536;
/// Block sizes of one job.
const MAX_BLOCK_SHARES: usize = 64;
/// From a sector up to what one request may move with room to count it.
const BLOCK_BYTES: RangeInclusive<u32> = 512..=(256 << 20);
/// Every device has blocks of a multiple of this.
const SECTOR_BYTES: u64 = 512;
/// The shortest and the longest interval, as of a watch.
const INTERVALS_MS: RangeInclusive<u64> = 100..=60_000;
/// A year; longer is a mistake in the unit.
const MAX_RUNTIME_S: f64 = 366.0 * 86_400.0;
/// Threads; more than any machine has processors.
const MAX_THREADS: u32 = 4096;
/// Operations a second of one job: more than any processor can be asked for.
const MAX_RATE: f64 = 1e9;
/// An hour: a longer pause is not one between two I/Os.
const MAX_THINK_US: u64 = 3_600_000_000;

/// What is told of a spec, in the order in which it is looked at.
#[derive(Default)]
struct SpecFaults(Vec<String>);

impl SpecFaults {
    fn add_unless(&mut self, holds: bool, message: String) {
        if !holds {
            self.0.push(message);
        }
    }
}

impl Spec {
    /// Every fault that needs no look at a target.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = SpecFaults::default();
        faults.add_unless(
            self.format == FORMAT,
            format!("format is {}; it must be {FORMAT}.", self.format),
        );
        let jobs = self.jobs.len();
        faults.add_unless(
            (1..=MAX_JOBS).contains(&jobs),
            format!("There are {jobs} jobs; give 1 to {MAX_JOBS} of them."),
        );
        let files: usize = self.jobs.iter().map(|job| job.files.len()).sum();
        faults.add_unless(
            files <= MAX_FILES,
            format!("There are {files} files; give at most {MAX_FILES} of them."),
        );
        faults.add_unless(
            INTERVALS_MS.contains(&self.interval_ms),
            format!("interval_ms is {}; give 100 to 60000.", self.interval_ms),
        );
        faults.add_unless(
            self.runtime_s.is_none_or(|seconds| seconds > 0.0 && seconds <= MAX_RUNTIME_S),
            format!("runtime_s is {:?}; give a time above zero.", self.runtime_s.unwrap_or(0.0)),
        );
        faults.add_unless(
            (0.0..1.0).contains(&self.later),
            format!("later is {}; give a part of 1, from 0 on.", self.later),
        );
        faults.add_unless(
            self.ledger_block.is_none_or(|bytes| u64::from(bytes) % SECTOR_BYTES == 0 && bytes > 0),
            format!(
                "ledger_block is {}; give a multiple of 512, as each sector bears a stamp.",
                self.ledger_block.unwrap_or(0)
            ),
        );
        faults.add_unless(
            self.threads.is_none_or(|threads| (1..=MAX_THREADS).contains(&threads)),
            format!("threads is {}; give 1 to {MAX_THREADS}.", self.threads.unwrap_or(0)),
        );
        faults.add_unless(
            self.slow_ios <= MAX_SLOWEST,
            format!("slow_ios is {}; give at most {MAX_SLOWEST}.", self.slow_ios),
        );
        faults.add_unless(
            self.slow_ios == 0 || self.timed,
            "slow_ios without timed, which takes no times; leave one of them out.".to_owned(),
        );
        let recorded = self.record.as_ref().map_or(1, |record| record.ios);
        faults.add_unless(
            (1..=MAX_RECORDED).contains(&recorded),
            format!("record of {recorded} I/Os; give 1 to {MAX_RECORDED}."),
        );
        faults.add_unless(
            self.record.is_none() || self.timed,
            "record without timed, which takes no times; leave one of them out.".to_owned(),
        );
        let is_plain = |job: &&JobSpec| self.method == MethodChoice::Sync || job.rw.trims();
        let plain = self.jobs.iter().filter(is_plain).count();
        faults.add_unless(
            plain <= MAX_LANES,
            format!(
                "{plain} jobs with plain calls, each a thread of its own; give at most {MAX_LANES}."
            ),
        );
        faults.add_unless(
            !(self.poll || self.sqpoll)
                || matches!(self.method, MethodChoice::Auto | MethodChoice::IoUring),
            format!("poll and sqpoll need io_uring; method is {:?}.", self.method),
        );
        faults.add_unless(
            !self.poll || self.direct,
            "poll needs direct I/O; leave one of poll and direct = false out.".to_owned(),
        );
        for (nth, job) in self.jobs.iter().enumerate().take(MAX_JOBS) {
            faults.0.extend(
                self.job_faults(job).into_iter().map(|message| format!("jobs[{nth}]: {message}")),
            );
        }
        faults.0
    }

    fn job_faults(&self, job: &JobSpec) -> Vec<String> {
        let mut faults = job.shape_faults();
        faults.extend(job.pace_faults());
        if self.runtime_s.is_none() && job.io_bytes.is_none() {
            faults.push("it would never end; give runtime_s or io_bytes.".into());
        }
        if !self.timed && (job.is_paced() || job.is_timed() || job.think_us > 0) {
            faults.push(
                "timed is false, and a trace, a rate, arrivals or think_us go by the clock; leave one out."
                    .into(),
            );
        }
        if job.syncs() && self.poll {
            faults.push("fsync with poll, which rings do not take; leave one out.".into());
        }
        if job.rw.trims() && self.method != MethodChoice::Auto && self.method != MethodChoice::Sync
        {
            faults.push("trims need the method auto or sync; there are no others for them.".into());
        }
        faults
    }
}

impl JobSpec {
    fn shape_faults(&self) -> Vec<String> {
        let mut faults = SpecFaults::default();
        faults.add_unless(!self.files.is_empty(), "files is empty; give at least one.".into());
        faults.add_unless(
            DEPTHS.contains(&self.depth),
            format!("depth is {}; give 1 to 65536.", self.depth),
        );
        let sizes = self.blocks.len();
        faults.add_unless(
            (1..=MAX_BLOCK_SHARES).contains(&sizes),
            format!("blocks has {sizes} sizes; give 1 to {MAX_BLOCK_SHARES} of them."),
        );
        for block in self.blocks.iter().take(MAX_BLOCK_SHARES) {
            faults.add_unless(
                BLOCK_BYTES.contains(&block.bytes) && u64::from(block.bytes) % SECTOR_BYTES == 0,
                format!("a block of {} bytes; give a multiple of 512 up to 256 MiB.", block.bytes),
            );
        }
        for file in &self.files {
            let region = self.region_bytes(file);
            faults.add_unless(
                region >= u64::from(self.largest_block()),
                format!(
                    "its region of {} has {region} bytes, and a block has {}; give it more.",
                    file.path.display(),
                    self.largest_block()
                ),
            );
            faults.add_unless(
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
        faults.add_unless(self.io_bytes != Some(0), "io_bytes is 0; leave the job out.".into());
        faults.add_unless(
            !self.verify || (self.smallest_block() == self.largest_block()),
            "verify with several block sizes, whose blocks would overlap; give one.".into(),
        );
        faults.add_unless(
            !self.verify || self.contents().is_verifiable(),
            "verify needs contents that are all unlike: neither zeros nor copies.".into(),
        );
        faults.0.extend(self.contents().faults());
        faults.0
    }

    fn pace_faults(&self) -> Vec<String> {
        let mut faults = SpecFaults::default();
        if let Some(per_s) = self.ios_per_s() {
            faults.add_unless(
                per_s > 0.0 && per_s <= MAX_RATE,
                format!("a rate of {per_s} I/Os a second; give one above 0 and up to 1e9."),
            );
        }
        if let Some(trace) = &self.trace {
            faults.0.extend(trace.faults());
            let others = self.rate.is_some() || self.think_us > 0 || self.fsync_every > 0;
            faults.add_unless(
                !others && !self.verify && !self.rw.trims(),
                "a trace with rate, think_us, fsync_every, verify or trims; leave these out."
                    .into(),
            );
            faults.add_unless(
                self.files.len() == 1,
                format!("a trace on {} files; give one.", self.files.len()),
            );
        }
        faults.add_unless(
            self.arrivals.is_none() || self.rate.is_some(),
            "arrivals without a rate; give a rate as well.".into(),
        );
        faults.add_unless(
            self.arrivals.is_none() || self.think_us == 0,
            "arrivals and think_us; what arrives does not think.".into(),
        );
        faults.add_unless(self.think_every > 0, "think_every is 0; give 1 or more.".into());
        faults.add_unless(
            self.think_us <= MAX_THINK_US,
            format!("think_us is {}; give at most an hour.", self.think_us),
        );
        faults.add_unless(
            self.fsync_every == 0 || self.writes(),
            "fsync_every without writes; leave it out.".into(),
        );
        faults.0
    }
}
