//! What a thread of an engine counts while it works: written by it alone, read by another at any
//! time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::errno_name;
use crate::latency::{BINS, bin_of_ns};

/// Linux's errnos end at 133; the first slot is for failures that have none.
const ERRNOS: usize = 134;
/// What a failure is called that has no errno: fewer bytes were moved than the file has.
const SHORT: &str = "short";

/// Bins and errors of one thread. Aligned, so that no two threads share a cache line.
#[repr(align(128))]
pub struct Counters {
    bins: [AtomicU64; BINS],
    errors: [AtomicU64; ERRNOS],
    sum_ns: AtomicU64,
    min_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            bins: [const { AtomicU64::new(0) }; BINS],
            errors: [const { AtomicU64::new(0) }; ERRNOS],
            sum_ns: AtomicU64::new(0),
            min_ns: AtomicU64::new(u64::MAX),
            max_ns: AtomicU64::new(0),
        }
    }
}

impl Counters {
    /// Count an operation that succeeded.
    #[inline]
    pub fn add(&self, latency_ns: u64) {
        self.add_alike(latency_ns, 1);
    }

    /// The same of so many that took equally long.
    #[inline]
    pub fn add_alike(&self, latency_ns: u64, count: u64) {
        raise(&self.bins[bin_of_ns(latency_ns)], count);
        raise(&self.sum_ns, latency_ns * count);
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
        raise(&self.errors[if slot < ERRNOS { slot } else { 0 }], 1);
    }
}

/// Only one thread writes, so no locked instruction is needed.
#[inline]
fn raise(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// The counts of all threads together at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    bins: Vec<u64>,
    errors: Vec<u64>,
    /// The sum of all latencies.
    pub sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

/// Bins that are not empty: number and count.
pub type SparseBins = Vec<(usize, u64)>;

impl Counts {
    /// Nothing counted yet.
    #[must_use]
    pub fn none() -> Self {
        Self {
            bins: vec![0; BINS],
            errors: vec![0; ERRNOS],
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    /// What all of them counted up to now.
    #[must_use]
    pub fn of<'a>(counters: impl IntoIterator<Item = &'a Counters>) -> Self {
        let mut all = Self::none();
        for one in counters {
            gather(&mut all.bins, &one.bins);
            gather(&mut all.errors, &one.errors);
            all.sum_ns += one.sum_ns.load(Ordering::Relaxed);
            all.min_ns = all.min_ns.min(one.min_ns.load(Ordering::Relaxed));
            all.max_ns = all.max_ns.max(one.max_ns.load(Ordering::Relaxed));
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

fn gather(into: &mut [u64], from: &[AtomicU64]) {
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
        0 => SHORT.to_owned(),
        errno => errno_name(errno as i32).map_or_else(|| format!("errno-{errno}"), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ranks_add_up_and_differences_are_exact() {
        let ranks = vec![Counters::default(), Counters::default()];
        ranks[0].add(100);
        ranks[1].add(100);
        ranks[1].add(5000);
        let first = Counts::of(&ranks);
        let (bins, errors) = first.since(&Counts::none());
        assert_eq!(bins, [(100, 2), (bin_of_ns(5000), 1)]);
        assert!(errors.is_empty());
        assert_eq!((first.sum_ns, first.extremes_ns()), (5200, Some((100, 5000))));

        ranks[0].add(100);
        ranks[0].fail(Some(libc::ENOSPC));
        let (bins, errors) = Counts::of(&ranks).since(&first);
        assert_eq!(bins, [(100, 1)]);
        assert_eq!(errors, BTreeMap::from([("ENOSPC".to_owned(), 1)]));
    }

    #[test]
    fn every_failure_has_a_name() {
        let rank = [Counters::default()];
        for errno in [None, Some(libc::EEXIST), Some(libc::ERFKILL), Some(4095), Some(-1)] {
            rank[0].fail(errno);
        }
        let counts = Counts::of(&rank);
        let (_, errors) = counts.since(&Counts::none());
        let named: Vec<(&str, u64)> = errors.iter().map(|(name, &n)| (name.as_str(), n)).collect();
        assert_eq!(named, [("EEXIST", 1), ("errno-132", 1), ("short", 3)]);
        assert_eq!(counts.extremes_ns(), None);
    }
}
