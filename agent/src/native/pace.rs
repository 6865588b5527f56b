//! When each I/O of an open loop is to start, whatever became of those before it.

use serde::Deserialize;

use super::random::Random;

/// Nanoseconds of a second.
const SECOND_NS: f64 = 1e9;
/// More a second would leave less than a nanosecond between two.
const MAX_PER_S: f64 = 1e9;
/// One in four months: rarer, and sums of nanoseconds would leave 64 bits.
const MIN_PER_S: f64 = 1e-7;

/// How the time between arrivals varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalKind {
    /// Not at all.
    Fixed,
    /// Exponentially, as of many independent users.
    Poisson,
}

/// The intended start of each I/O, in nanoseconds since the start of the job.
#[derive(Debug, Clone)]
pub struct Arrivals {
    kind: ArrivalKind,
    gap_ns: f64,
    /// Of fixed arrivals, how many were told; of Poisson's, the whole nanoseconds of the last.
    count: u64,
    /// Of fixed arrivals, the time of the first; of Poisson's, the rest of the last.
    offset_ns: f64,
    random: Random,
}

impl Arrivals {
    /// Arrivals at a rate. The first fixed one is at once, the first of Poisson's after one gap. A
    /// rate that is none is told in one sentence.
    pub fn new(kind: ArrivalKind, per_s: f64, seed: u64) -> Result<Self, String> {
        if !(MIN_PER_S..=MAX_PER_S).contains(&per_s) {
            let limits = format!("{MIN_PER_S} to {MAX_PER_S}");
            return Err(format!("The rate is {per_s} a second; it must be {limits}."));
        }
        let (gap_ns, random) = (SECOND_NS / per_s, Random::new(seed));
        Ok(Self { kind, gap_ns, count: 0, offset_ns: 0.0, random })
    }

    /// The same, all later by a part (0 to 1) of the gap: so that jobs with fixed arrivals at the
    /// same rate do not all strike at the same moment.
    #[must_use]
    pub fn delayed(mut self, part: f64) -> Self {
        self.offset_ns += part.clamp(0.0, 1.0) * self.gap_ns;
        self
    }

    /// Nanoseconds between two, in the mean.
    #[must_use]
    pub fn gap_ns(&self) -> f64 {
        self.gap_ns
    }

    /// When the next I/O is to start; never before the one told before it.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        match self.kind {
            ArrivalKind::Fixed => {
                // A product, not a sum: no error adds up. It is within a nanosecond for a month,
                // as 53 bits hold it.
                let at = self.offset_ns + self.count as f64 * self.gap_ns;
                self.count += 1;
                at as u64
            }
            ArrivalKind::Poisson => {
                // Whole nanoseconds are kept apart, so the rest stays as exact as at the start.
                let rest = self.offset_ns - self.random.next_unit().ln() * self.gap_ns;
                let whole = rest as u64;
                self.count += whole;
                self.offset_ns = rest - whole as f64;
                self.count
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(kind: ArrivalKind, per_s: f64, seed: u64) -> Arrivals {
        Arrivals::new(kind, per_s, seed).unwrap()
    }

    #[test]
    fn fixed_arrivals_do_not_drift() {
        // A month at the slowest of these rates.
        for per_s in [333.3, 3333.0, 7777.7, 200_000.0, 700_000.0, 3e6] {
            for count in [0, 1, 2, 999_999, 1_000_000_000] {
                let mut arrivals = arrivals(ArrivalKind::Fixed, per_s, 1);
                arrivals.count = count;
                // In integers of a tenth of a rate, so that the truth is exact.
                let exact = u128::from(count) * 10_000_000_000 / (per_s * 10.0).round() as u128;
                let told = u128::from(arrivals.next_ns());
                assert!(told.abs_diff(exact) <= 1, "{count} at {per_s}: {told} of {exact}");
                assert!(u128::from(arrivals.next_ns()) >= told);
            }
        }
    }

    #[test]
    fn later_arrivals_are_later_by_their_part() {
        let mut arrivals = arrivals(ArrivalKind::Fixed, 1000.0, 1).delayed(0.25);
        assert_eq!([(); 3].map(|()| arrivals.next_ns()), [250_000, 1_250_000, 2_250_000]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million draws")]
    fn poisson_keeps_its_rate_where_microseconds_would_not() {
        for per_s in [200_000.0, 700_000.0] {
            let mut arrivals = arrivals(ArrivalKind::Poisson, per_s, 2);
            let last = (0..1_000_000).map(|_| arrivals.next_ns()).last().unwrap();
            let rate = 1e6 / (last as f64 / 1e9);
            // The standard deviation of the mean of a million gaps is 0.1 %.
            assert!((rate / per_s - 1.0).abs() < 0.005, "{rate} of {per_s}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn poisson_gaps_are_exponential() {
        let (draws, mean_ns) = (100_000, 5000.0);
        let mut arrivals = arrivals(ArrivalKind::Poisson, 200_000.0, 3);
        let mut before = 0;
        let mut gaps: Vec<u64> = (0..draws)
            .map(|_| {
                let at = arrivals.next_ns();
                at - std::mem::replace(&mut before, at)
            })
            .collect();
        gaps.sort_unstable();
        // Kolmogorov and Smirnov: the largest distance between both distribution functions.
        let distance = (0..draws)
            .map(|rank| {
                let law = 1.0 - (-(gaps[rank] as f64 + 0.5) / mean_ns).exp();
                (law - rank as f64 / draws as f64).abs()
            })
            .fold(0.0, f64::max);
        // 1.95 / sqrt(n) is passed by one sample in a thousand; whole nanoseconds add 10^-4.
        assert!(distance < 1.95 / (draws as f64).sqrt() + 2e-4, "{distance}");
    }

    #[test]
    fn seeds_give_other_arrivals_and_the_same_again() {
        let of = |seed| {
            let mut arrivals = arrivals(ArrivalKind::Poisson, 1000.0, seed);
            [(); 5].map(|()| arrivals.next_ns())
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn a_rate_that_is_none_is_told() {
        for per_s in [0.0, -1.0, 2e9, f64::NAN, f64::INFINITY] {
            let told = Arrivals::new(ArrivalKind::Fixed, per_s, 1).expect_err("is no rate");
            assert!(told.contains(&format!("is {per_s} a second")), "{told}");
        }
    }
}
