//! What the next I/O is: read, write or trim, and how large.

use super::random::Random;

/// Sizes that one job may mix; a draw looks at all of them.
pub const MAX_BLOCK_SIZES: usize = 32;
/// What half of a random number can tell apart.
const WHOLE: f64 = (1_u64 << 32) as f64;

/// The direction of an I/O; its number is the place of its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Way {
    /// From the target.
    Read = 0,
    /// To the target.
    Write = 1,
    /// Tell the target that it may forget.
    Trim = 2,
}

/// The directions of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ways {
    /// Always the same.
    Only(Way),
    /// Reads, and writes for the rest.
    Mixed {
        /// 0 to 100.
        read_percent: f64,
    },
}

/// The stream of directions and sizes of one job: each drawn by itself, so shares are met on
/// average, as fio does it.
#[derive(Debug, Clone)]
pub struct Mix {
    first: Way,
    /// Whether anything must be drawn.
    is_drawn: bool,
    /// Below it, of 2^32, the first direction; else a write.
    first_below: u64,
    /// The end of the part of each size but the last, of 2^32.
    ends: Box<[u64]>,
}

impl Mix {
    /// The stream of a job whose block sizes have these shares, in any unit. What is wrong is told
    /// in one sentence.
    pub fn new(ways: Ways, shares: &[f64]) -> Result<Self, String> {
        let (first, first_part) = match ways {
            Ways::Only(way) => (way, 1.0),
            Ways::Mixed { read_percent } if (0.0..=100.0).contains(&read_percent) => {
                (Way::Read, read_percent / 100.0)
            }
            Ways::Mixed { read_percent } => {
                return Err(format!("read_percent is {read_percent}; it must be 0 to 100."));
            }
        };
        let first_below = (first_part * WHOLE).round() as u64;
        let ends = ends(shares)?;
        let is_drawn = !(matches!(ways, Ways::Only(_)) && ends.is_empty());
        Ok(Self { first, is_drawn, first_below, ends })
    }

    /// The next direction, and which of the block sizes.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> (Way, u32) {
        if !self.is_drawn {
            return (self.first, 0);
        }
        // Both halves of a number are random by themselves.
        let bits = random.next();
        let (high, low) = (bits >> 32, bits & u64::from(u32::MAX));
        let way = if low < self.first_below { self.first } else { Way::Write };
        (way, self.ends.iter().map(|&end| u32::from(high >= end)).sum())
    }
}

fn ends(shares: &[f64]) -> Result<Box<[u64]>, String> {
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
        (sum * WHOLE).round() as u64
    });
    Ok(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 100_000;

    fn shares_of(ways: Ways, shares: &[f64]) -> ([f64; 3], [f64; 4]) {
        let mut mix = Mix::new(ways, shares).unwrap();
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
        for way in [Way::Read, Way::Write, Way::Trim] {
            let mut random = Random::new(1);
            let mut mix = Mix::new(Ways::Only(way), &[100.0]).unwrap();
            assert_eq!((mix.next(&mut random), mix.next(&mut random)), ((way, 0), (way, 0)));
            assert_eq!(random.next(), Random::new(1).next());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn shares_are_met_and_independent() {
        let mixed = Ways::Mixed { read_percent: 70.0 };
        let (ways, sizes) = shares_of(mixed, &[60.0, 0.0, 30.0, 10.0]);
        assert_close(&ways, &[0.7, 0.3, 0.0]);
        assert_close(&sizes, &[0.6, 0.0, 0.3, 0.1]);
        assert!(sizes[1] == 0.0);
        let (ways, sizes) = shares_of(Ways::Only(Way::Trim), &[1.0, 3.0]);
        assert_eq!(ways.map(|share| share as u32), [0, 0, 1]);
        assert_close(&sizes, &[0.25, 0.75]);
        // The size says nothing about the direction.
        let mut mix = Mix::new(mixed, &[1.0, 1.0]).unwrap();
        let mut random = Random::new(6);
        let all: Vec<_> = (0..DRAWS).map(|_| mix.next(&mut random)).collect();
        let small = all.iter().filter(|&&(_, size)| size == 0);
        let reads = small.clone().filter(|&&(way, _)| way == Way::Read).count();
        assert_close(&[reads as f64 / small.count() as f64], &[0.7]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn none_and_all_are_exact() {
        for (read_percent, other) in [(0.0, Way::Read), (100.0, Way::Write)] {
            let (ways, _) = shares_of(Ways::Mixed { read_percent }, &[1.0]);
            assert!(ways[other as usize] == 0.0 && ways[Way::Trim as usize] == 0.0);
        }
        let (_, sizes) = shares_of(Ways::Only(Way::Read), &[1.0, 1.0, 1.0, 0.0]);
        assert!(sizes[3] == 0.0);
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        let told = |ways, shares: &[f64]| Mix::new(ways, shares).expect_err("cannot be meant");
        let read = Ways::Only(Way::Read);
        assert!(told(Ways::Mixed { read_percent: 101.0 }, &[1.0]).contains("101"));
        assert!(told(Ways::Mixed { read_percent: f64::NAN }, &[1.0]).contains("NaN"));
        assert!(told(read, &[]).contains("0 block sizes"));
        assert!(told(read, &[1.0; 33]).contains("33 block sizes"));
        assert!(told(read, &[1.0, -1.0]).contains("-1"));
        assert!(told(read, &[0.0, 0.0]).contains("add up to 0"));
        assert!(told(read, &[f64::MAX, f64::MAX]).contains("inf"));
    }
}
