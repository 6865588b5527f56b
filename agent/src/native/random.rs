//! Random numbers for the hot loop: xoshiro256++ of Blackman and Vigna, seeded by `SplitMix64`.
//!
//! A few instructions a number, a period of 2^256 - 1, and no state shared between workers.

/// What `SplitMix64` adds for each number: an odd constant with its bits well spread.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
/// A step between neighbouring floating point numbers in [0.5, 1).
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// A stream of random numbers; one seed gives the same stream on every machine.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed; neighbouring seeds give unlike streams.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { state: std::array::from_fn(|step| split_mix(seed, step as u64 + 1)) }
    }

    /// 64 random bits.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let carried = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= carried;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `n`, by one multiplication; zero for an `n` of zero. No number is more than
    /// n / 2^64 likelier than another.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        scaled(self.next(), n)
    }

    /// A number in (0, 1], all multiples of 2^-53 alike: its logarithm is always finite.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 * UNIT
    }
}

/// 64 random bits brought below `n`.
#[inline]
#[must_use]
pub fn scaled(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// The number `step` of the `SplitMix64` stream of a seed, counted from one.
#[inline]
#[must_use]
pub fn split_mix(seed: u64, step: u64) -> u64 {
    let mut bits = seed.wrapping_add(step.wrapping_mul(GOLDEN));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_are_the_published_ones() {
        // The first numbers of the authors' C program from the state 1, 2, 3, 4.
        let mut random = Random { state: [1, 2, 3, 4] };
        let first = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(first.map(|_| random.next()), first);
        // And of SplitMix64 from the seed 1477776061723855037.
        let seeded =
            [1_985_237_415_132_408_290, 2_979_275_885_539_914_483, 13_511_426_838_097_143_398];
        assert_eq!([1, 2, 3].map(|step| split_mix(1_477_776_061_723_855_037, step)), seeded);
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn numbers_below_a_bound_are_alike_by_chi_square() {
        // 255 degrees of freedom: one stream in 10^6 has more than 375, or less than 160.
        for bound in [256, 3 * 256, 7 * 256] {
            let mut counts = [0_u32; 256];
            let mut random = Random::new(7);
            for _ in 0..256_000 {
                counts[(random.below(bound) * 256 / bound) as usize] += 1;
            }
            let chi_square: f64 =
                counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
            assert!((160.0..375.0).contains(&chi_square), "{bound}: {chi_square}");
        }
        assert_eq!((Random::new(1).below(0), Random::new(1).below(1)), (0, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand draws")]
    fn a_unit_is_above_zero_and_reaches_one() {
        assert!(((u64::MAX >> 11) + 1) as f64 * UNIT >= 1.0);
        let mut random = Random::new(3);
        let mean = (0..100_000).map(|_| random.unit()).sum::<f64>() / 1e5;
        // The standard deviation of the mean is 0.2887 / 316.
        assert!((mean - 0.5).abs() < 5.0 * 0.000_913, "{mean}");
    }

    #[test]
    fn seeds_that_are_neighbours_share_nothing() {
        let (mut one, mut two) = (Random::new(1), Random::new(2));
        let alike: u32 = (0..1000).map(|_| (one.next() ^ two.next()).count_zeros()).sum();
        // Of 64,000 fair bits half agree; the standard deviation is 126.
        assert!(alike.abs_diff(32_000) < 5 * 126, "{alike}");
    }
}
