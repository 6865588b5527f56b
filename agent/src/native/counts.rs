//! What a worker counts: written by its thread alone, read by the one that tells of it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::{IO_KINDS, IoKind};
use crate::latency::{LatencyCounters, add_by_owner};

/// All that one worker counts, on cache lines of its own: processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
pub struct WorkerCounters {
    by_kind: [Option<Box<IoCounters>>; IO_KINDS],
    /// How late the generator itself was, of I/Os that were to begin at a time.
    pub lateness: Option<Box<LatencyCounters>>,
    /// How late it came back from mere waiting, of those before which it did nothing else: what the
    /// machine takes from a loop that looks at the clock, by interrupts, other threads and steal.
    pub wakeup_delays: Option<Box<LatencyCounters>>,
    /// I/Os that were given to the kernel once more, by why.
    pub retries: [AtomicU64; RETRY_REASONS.len()],
    /// I/Os that ended after submission had stopped.
    pub drained: AtomicU64,
    /// I/Os that have not ended, as of the last call into the kernel; of a thread that has ended,
    /// those that were left when it was broken off.
    pub in_flight: AtomicU64,
}

/// What one kind of I/O did.
#[derive(Default)]
pub struct IoCounters {
    /// From when they were to begin, or from their submission where they had no such time.
    pub response: LatencyCounters,
    /// From their submission, where they were to begin at a time.
    pub service: Option<Box<LatencyCounters>>,
    /// Bytes moved.
    pub bytes: AtomicU64,
    /// I/Os whose latency was not taken; they are in no bin.
    pub untimed: AtomicU64,
}

/// What a loop keeps of each I/O: known when it is compiled, so that it asks nothing meanwhile.
pub trait Timing {
    /// When it began and how long it took, and not only that it was done.
    const IS_TIMED: bool;
}

/// Latencies are taken.
#[derive(Debug, Clone, Copy)]
pub struct Timed;

/// I/Os are only counted: what taking latencies costs is the difference.
#[derive(Debug, Clone, Copy)]
pub struct Untimed;

impl Timing for Timed {
    const IS_TIMED: bool = true;
}

impl Timing for Untimed {
    const IS_TIMED: bool = false;
}

/// Why an I/O is given to the kernel once more, in the order of their counters.
pub const RETRY_REASONS: [&str; 3] = ["EAGAIN", "EINTR", "short"];

/// Which of `REASONS`.
#[derive(Debug, Clone, Copy)]
pub enum RetryReason {
    /// The kernel had no room for it.
    Again = 0,
    /// A signal came.
    Interrupted = 1,
    /// It moved fewer bytes than it should; the rest is asked for.
    Short = 2,
}

impl WorkerCounters {
    /// Counters for what a worker may do; those for arrivals too where something arrives.
    #[must_use]
    pub fn new(acts: &[IoKind], arrivals: ArrivalMode) -> Self {
        let counters =
            || (arrivals == ArrivalMode::Scheduled).then(Box::<LatencyCounters>::default);
        let mut scores =
            Self { lateness: counters(), wakeup_delays: counters(), ..Self::default() };
        for &act in acts {
            let tally = IoCounters { service: counters(), ..IoCounters::default() };
            scores.by_kind[act as usize] = Some(Box::new(tally));
        }
        scores
    }

    /// The counters of one kind of I/O; None for a kind that is never done.
    #[inline]
    #[must_use]
    pub fn counters_of(&self, act: IoKind) -> Option<&IoCounters> {
        self.by_kind[act as usize].as_deref()
    }

    /// Count an I/O that is given to the kernel once more.
    pub fn count_retry(&self, reason: RetryReason) {
        add_by_owner(&self.retries[reason as usize], 1);
    }

    /// How many ended after submission had stopped, or were tried once more: it grows as long as
    /// the kernel answers.
    #[must_use]
    pub fn progress(&self) -> u64 {
        let retries: u64 = self.retries.iter().map(|one| one.load(Ordering::Relaxed)).sum();
        self.drained.load(Ordering::Relaxed) + retries
    }

    /// Tell how many have not ended: who looks may never be told again.
    #[inline]
    pub fn set_in_flight(&self, count: usize) {
        self.in_flight.store(count as u64, Ordering::Relaxed);
    }

    /// Count one that ended after submission had stopped.
    pub fn count_drained(&self) {
        add_by_owner(&self.drained, 1);
    }
}

/// Whether I/Os begin at times that were set before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalMode {
    /// They do.
    Scheduled,
    /// They begin when there is room.
    Unscheduled,
}

impl IoCounters {
    /// Count I/Os that moved all their bytes and took equally long.
    #[inline]
    pub fn add(&self, latency_ns: u64, bytes: u32, count: u64) {
        self.response.add_many(latency_ns, count);
        add_by_owner(&self.bytes, u64::from(bytes) * count);
    }

    /// The same of some whose latency was not taken.
    #[inline]
    pub fn add_untimed(&self, bytes: u32, count: u64) {
        add_by_owner(&self.untimed, count);
        add_by_owner(&self.bytes, u64::from(bytes) * count);
    }
}
