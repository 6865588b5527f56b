//! Latency bins: fio's, 64 a power of two, so that counts of any engine and host merge exactly.
//!
//! Below 128 ns every nanosecond has a bin of its own; above, a bin is as wide as keeps a value
//! within 1/128 of the bin's middle. fio calls these `plat_val_to_idx` and `plat_idx_to_val`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::errno_name;

/// Bins of a power of two, as a power of two itself.
const BINS_PER_OCTAVE_LOG2: u32 = 6;
/// Powers of two that have bins; the last one's values reach 17 s.
const OCTAVES: usize = 29;
/// How many bins there are.
pub const BINS: usize = OCTAVES << BINS_PER_OCTAVE_LOG2;

/// The bin of a latency; the last bin takes all that is longer.
#[inline]
#[must_use]
pub fn bin_of_ns(latency_ns: u64) -> usize {
    let top_bit = u64::BITS - (latency_ns | 1).leading_zeros() - 1;
    if top_bit <= BINS_PER_OCTAVE_LOG2 {
        return latency_ns as usize;
    }
    let octave = top_bit - BINS_PER_OCTAVE_LOG2;
    let step = (latency_ns >> octave) as usize & ((1 << BINS_PER_OCTAVE_LOG2) - 1);
    (((octave as usize + 1) << BINS_PER_OCTAVE_LOG2) + step).min(BINS - 1)
}

/// The smallest nanosecond of a bin.
#[must_use]
pub fn lower_ns(bin: usize) -> u64 {
    match width_log2(bin) {
        0 => bin as u64,
        octave => {
            let step = bin as u64 & ((1 << BINS_PER_OCTAVE_LOG2) - 1);
            ((1 << BINS_PER_OCTAVE_LOG2) + step) << octave
        }
    }
}

/// The largest nanosecond of a bin.
#[must_use]
pub fn upper_ns(bin: usize) -> u64 {
    lower_ns(bin) + (1 << width_log2(bin)) - 1
}

/// The nanosecond that stands for a bin, as fio prints it.
#[must_use]
pub fn middle_ns(bin: usize) -> u64 {
    lower_ns(bin) + ((1 << width_log2(bin)) >> 1)
}

/// The power of two that is a bin's width.
fn width_log2(bin: usize) -> u32 {
    (bin >> BINS_PER_OCTAVE_LOG2).saturating_sub(1) as u32
}

/// Linux's errnos end at 133; the first slot is for failures that have none.
const ERRNO_SLOTS: usize = 134;
/// What a failure is called that has no errno: fewer bytes were moved than the file has.
const SHORT_TRANSFER: &str = "short";

/// Bins and errors of one thread. Aligned, so that no two threads share a cache line.
#[repr(align(128))]
pub struct LatencyCounters {
    bins: [AtomicU64; BINS],
    errors: [AtomicU64; ERRNO_SLOTS],
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for LatencyCounters {
    fn default() -> Self {
        Self {
            bins: [const { AtomicU64::new(0) }; BINS],
            errors: [const { AtomicU64::new(0) }; ERRNO_SLOTS],
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl LatencyCounters {
    /// Count an operation that succeeded.
    #[inline]
    pub fn add(&self, latency_ns: u64) {
        self.add_many(latency_ns, 1);
    }

    /// The same of so many that took equally long.
    #[inline]
    pub fn add_many(&self, latency_ns: u64, count: u64) {
        add_by_owner(&self.bins[bin_of_ns(latency_ns)], count);
        add_by_owner(&self.sum_ns, latency_ns * count);
        if latency_ns < self.min_ns.load(Ordering::Relaxed) {
            self.min_ns.store(latency_ns, Ordering::Relaxed);
        }
        if latency_ns > self.max_ns.load(Ordering::Relaxed) {
            self.max_ns.store(latency_ns, Ordering::Relaxed);
        }
    }

    /// Count one that failed; None for fewer bytes than the file should have.
    #[inline]
    pub fn fail(&self, errno: Option<i32>) {
        let slot = errno.map_or(0, |errno| errno as usize);
        add_by_owner(&self.errors[if slot < ERRNO_SLOTS { slot } else { 0 }], 1);
    }
}

/// Only one thread writes, so no locked instruction is needed.
#[inline]
pub fn add_by_owner(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// The counts of all threads together at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyCounts {
    bins: Vec<u64>,
    errors: Vec<u64>,
    /// The sum of all latencies.
    pub sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Bins that are not empty: number and count.
pub type SparseBins = Vec<(usize, u64)>;

impl LatencyCounts {
    /// Nothing counted yet.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            bins: vec![0; BINS],
            errors: vec![0; ERRNO_SLOTS],
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// What all of them counted up to now.
    #[must_use]
    pub fn of<'a>(counters: impl IntoIterator<Item = &'a LatencyCounters>) -> Self {
        let mut all = Self::empty();
        for counter in counters {
            add_counts(&mut all.bins, &counter.bins);
            add_counts(&mut all.errors, &counter.errors);
            all.sum_ns += counter.sum_ns.load(Ordering::Relaxed);
            all.min_ns = all.min_ns.min(counter.min_ns.load(Ordering::Relaxed));
            all.max_ns = all.max_ns.max(counter.max_ns.load(Ordering::Relaxed));
        }
        all
    }

    /// What was counted after `earlier`: operations by bin, errors by name.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> (SparseBins, BTreeMap<String, u64>) {
        let bins = differences(&self.bins, &earlier.bins).collect();
        let errors = differences(&self.errors, &earlier.errors);
        (bins, errors.map(|(slot, count)| (error_name(slot), count)).collect())
    }

    /// The shortest and the longest latency; None when nothing succeeded.
    #[must_use]
    pub fn extremes_ns(&self) -> Option<(u64, u64)> {
        (self.min_ns <= self.max_ns).then_some((self.min_ns, self.max_ns))
    }
}

fn add_counts(into: &mut [u64], from: &[AtomicU64]) {
    for (sum, count) in into.iter_mut().zip(from) {
        *sum += count.load(Ordering::Relaxed);
    }
}

fn differences<'a>(now: &'a [u64], then: &'a [u64]) -> impl Iterator<Item = (usize, u64)> + 'a {
    let pairs = now.iter().zip(then).enumerate();
    pairs.map(|(slot, (now, then))| (slot, now - then)).filter(|&(_, count)| count > 0)
}

fn error_name(slot: usize) -> String {
    match slot {
        0 => SHORT_TRANSFER.to_owned(),
        errno => errno_name(errno as i32).map_or_else(|| format!("errno-{errno}"), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use sha2::{Digest, Sha256};

    use super::*;

    /// Of the lines "lower upper middle" of all bins. A test of the controller computes the same
    /// from its own table, so both sides have the same bins or a test fails.
    const TABLE_SHA256: &str = "82e4aa5e8c7c178622666c4a3597f4e6fd55791cdbcb8e00b3ebb324b6e20518";

    #[test]
    fn the_table_is_the_controllers() {
        let mut lines = String::new();
        for bin in 0..BINS {
            writeln!(lines, "{} {} {}", lower_ns(bin), upper_ns(bin), middle_ns(bin)).unwrap();
        }
        let digest: String =
            Sha256::digest(lines).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, TABLE_SHA256);
    }

    #[test]
    fn bins_follow_each_other_without_gap_and_hold_their_edges() {
        assert_eq!(lower_ns(0), 0);
        for bin in 0..BINS {
            assert_eq!(bin_of_ns(lower_ns(bin)), bin);
            assert_eq!(bin_of_ns(middle_ns(bin)), bin);
            assert_eq!(bin_of_ns(upper_ns(bin)), bin);
            assert_eq!(bin_of_ns(upper_ns(bin) + 1), (bin + 1).min(BINS - 1));
        }
        assert_eq!(bin_of_ns(u64::MAX), BINS - 1);
    }

    #[test]
    fn fios_own_midpoints_are_ours() {
        // Keys as they stand in json+ documents, and their bins.
        for (middle, bin) in [(53, 53), (129, 128), (1004, 317), (24_192, 606), (1_003_520, 954)] {
            assert_eq!((bin_of_ns(middle), middle_ns(bin)), (bin, middle));
        }
    }

    #[test]
    fn a_middle_is_within_a_128th_of_every_value_of_its_bin() {
        for bin in 0..BINS {
            let far = (middle_ns(bin) - lower_ns(bin)).max(upper_ns(bin) - middle_ns(bin));
            assert!(far * 128 <= lower_ns(bin), "bin {bin}");
        }
    }

    #[test]
    fn counts_of_ranks_add_up_and_differences_are_exact() {
        let ranks = vec![LatencyCounters::default(), LatencyCounters::default()];
        ranks[0].add(100);
        ranks[1].add(100);
        ranks[1].add(5000);
        let first = LatencyCounts::of(&ranks);
        let (bins, errors) = first.since(&LatencyCounts::empty());
        assert_eq!(bins, [(100, 2), (bin_of_ns(5000), 1)]);
        assert!(errors.is_empty());
        assert_eq!((first.sum_ns, first.extremes_ns()), (5200, Some((100, 5000))));

        ranks[0].add(100);
        ranks[0].fail(Some(libc::ENOSPC));
        let (bins, errors) = LatencyCounts::of(&ranks).since(&first);
        assert_eq!(bins, [(100, 1)]);
        assert_eq!(errors, BTreeMap::from([("ENOSPC".to_owned(), 1)]));
    }

    #[test]
    fn every_failure_has_a_name() {
        let rank = [LatencyCounters::default()];
        for errno in [None, Some(libc::EEXIST), Some(libc::ERFKILL), Some(4095), Some(-1)] {
            rank[0].fail(errno);
        }
        let counts = LatencyCounts::of(&rank);
        let (_, errors) = counts.since(&LatencyCounts::empty());
        let named: Vec<(&str, u64)> = errors.iter().map(|(name, &n)| (name.as_str(), n)).collect();
        assert_eq!(named, [("EEXIST", 1), ("errno-132", 1), ("short", 3)]);
        assert_eq!(counts.extremes_ns(), None);
    }
}
