//! Random numbers for the hot loop: xoshiro256++ of Blackman and Vigna, seeded by `SplitMix64`.
//!
//! A few instructions a number, a period of 2^256 - 1, and no state shared between workers.

/// What `SplitMix64` adds for each number: an odd constant with its bits well spread.
const SPLIT_MIX_STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// A step between neighbouring floating point numbers in [0.5, 1).
const UNIT_STEP: f64 = 1.0 / (1_u64 << 53) as f64;

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
    pub fn next_below(&mut self, n: u64) -> u64 {
        scale_below(self.next(), n)
    }

    /// A number in (0, 1], all multiples of 2^-53 alike: its logarithm is always finite.
    #[inline]
    pub fn next_unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 * UNIT_STEP
    }
}

/// 64 random bits brought below `n`.
#[inline]
#[must_use]
pub fn scale_below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// The number `step` of the `SplitMix64` stream of a seed, counted from one.
#[inline]
#[must_use]
pub fn split_mix(seed: u64, step: u64) -> u64 {
    let mut bits = seed.wrapping_add(step.wrapping_mul(SPLIT_MIX_STEP));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// Each round mixes both halves. Two would do for statistics; three hide the structure also where
/// one half has few values.
const ROUNDS: usize = 3;
/// Odd, its bits well spread: one multiplication moves every bit of a half upwards.
const HASH_FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// A permutation of the numbers below `blocks`.
#[derive(Debug, Clone)]
pub struct Permutation {
    blocks: u64,
    low_bits: u32,
    high_halves: u64,
    keys: [[u64; 2]; ROUNDS],
}

impl Permutation {
    /// The permutation of that number; at least one block.
    #[must_use]
    pub fn new(blocks: u64, seed: u64, number: u64) -> Self {
        debug_assert!(blocks > 0);
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        let low_bits = bits.div_ceil(2);
        let highs = ((blocks - 1) >> low_bits) + 1;
        let mut permutation = Self { blocks, low_bits, high_halves: highs, keys: [[0; 2]; ROUNDS] };
        permutation.reseed(seed, number);
        permutation
    }

    /// Become the permutation of another number, of the same blocks.
    pub fn reseed(&mut self, seed: u64, number: u64) {
        let own = split_mix(seed, number.wrapping_add(1));
        for (step, keys) in (1..).zip(&mut self.keys) {
            *keys = [split_mix(own, 2 * step), split_mix(own, 2 * step + 1)];
        }
    }

    /// Where the block of that index is: a different one for each index below `blocks`.
    #[inline]
    #[must_use]
    pub fn at(&self, index: u64) -> u64 {
        let mut place = self.permute_padded(index);
        while place >= self.blocks {
            place = self.permute_padded(place);
        }
        place
    }

    #[inline]
    fn permute_padded(&self, place: u64) -> u64 {
        let low_mask = (1 << self.low_bits) - 1;
        let (mut high, mut low) = (place >> self.low_bits, place & low_mask);
        for [of_low, of_high] in self.keys {
            // 32 bits times at most 2^32 values of the high half: the product fits.
            high += (hash_half(low, of_low) * self.high_halves) >> 32;
            high -= if high >= self.high_halves { self.high_halves } else { 0 };
            low ^= hash_half(high, of_high) & low_mask;
        }
        (high << self.low_bits) | low
    }
}

/// 32 bits that depend on all of a half, which has at most 32.
#[inline]
fn hash_half(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(HASH_FACTOR);
    (product ^ (product >> 29)) >> 32
}

/// Draws a rank k of n with a probability proportional to k^-theta.
#[derive(Debug, Clone)]
pub struct Zipf {
    ranks: f64,
    theta: f64,
    /// The integral of the hat function at its two ends.
    integral_low: f64,
    integral_high: f64,
    /// Closer than this above the inverse, a rank is accepted without a second look.
    accept_margin: f64,
}

impl Zipf {
    /// At least one rank, a theta above zero.
    #[must_use]
    pub fn new(ranks: u64, theta: f64) -> Self {
        let ranks = ranks as f64;
        let hat = Self { ranks, theta, integral_low: 0.0, integral_high: 0.0, accept_margin: 0.0 };
        Self {
            integral_low: hat.integral(1.5) - 1.0,
            integral_high: hat.integral(ranks + 0.5),
            accept_margin: 2.0 - hat.inverse_integral(hat.integral(2.5) - hat.density(2.0)),
            ..hat
        }
    }

    /// The next rank, from zero: the likeliest is zero.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        loop {
            let area =
                self.integral_high + random.next_unit() * (self.integral_low - self.integral_high);
            let at = self.inverse_integral(area);
            let rank = (at + 0.5).floor().clamp(1.0, self.ranks);
            if rank - at <= self.accept_margin
                || area >= self.integral(rank + 0.5) - self.density(rank)
            {
                return rank as u64 - 1;
            }
        }
    }

    /// x^-theta.
    #[inline]
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// (x^(1 - theta) - 1) / (1 - theta), and its limit ln x where theta is one.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.theta) * log;
        if power.abs() < 1e-8 { log * (1.0 + power / 2.0) } else { power.exp_m1() / power * log }
    }

    /// Of the integral.
    #[inline]
    fn inverse_integral(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        if power.abs() < 1e-8 {
            (area * (1.0 - power / 2.0)).exp()
        } else {
            (power.ln_1p() / power * area).exp()
        }
    }
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
                counts[(random.next_below(bound) * 256 / bound) as usize] += 1;
            }
            let chi_square: f64 =
                counts.iter().map(|&count| (f64::from(count) - 1000.0).powi(2) / 1000.0).sum();
            assert!((160.0..375.0).contains(&chi_square), "{bound}: {chi_square}");
        }
        assert_eq!((Random::new(1).next_below(0), Random::new(1).next_below(1)), (0, 0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a hundred thousand draws")]
    fn a_unit_is_above_zero_and_reaches_one() {
        assert!(((u64::MAX >> 11) + 1) as f64 * UNIT_STEP >= 1.0);
        let mut random = Random::new(3);
        let mean = (0..100_000).map(|_| random.next_unit()).sum::<f64>() / 1e5;
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

    /// Goes through a permutation with a bit for each block.
    fn assert_each_once(blocks: u64, permutation: &Permutation) {
        let mut seen = vec![0_u64; blocks.div_ceil(64) as usize];
        for index in 0..blocks {
            let place = permutation.at(index);
            assert!(place < blocks, "{place} of {blocks}");
            let bit = 1 << (place % 64);
            assert_eq!(seen[(place / 64) as usize] & bit, 0, "{place} of {blocks} twice");
            seen[(place / 64) as usize] |= bit;
        }
    }

    #[test]
    fn each_block_comes_once_whatever_their_number() {
        let last = if cfg!(miri) { 70 } else { 520 };
        for blocks in 1..=last {
            assert_each_once(blocks, &Permutation::new(blocks, 1, 0));
            assert_each_once(blocks, &Permutation::new(blocks, 2, 77));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of steps")]
    fn each_block_comes_once_of_many_that_are_no_power_of_two() {
        for blocks in [65_535, 65_537, 100_003, 524_289] {
            assert_each_once(blocks, &Permutation::new(blocks, 5, 0));
        }
    }

    #[test]
    fn numbers_and_seeds_give_other_orders() {
        let order = |seed, number| {
            let permutation = Permutation::new(1000, seed, number);
            (0..1000).map(|index| permutation.at(index)).collect::<Vec<_>>()
        };
        let orders = [order(1, 0), order(1, 1), order(2, 0), order(2, 1)];
        for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let alike = orders[one].iter().zip(&orders[other]).filter(|(a, b)| a == b).count();
            // Two random orders agree in one place on average; 10 or more is one in 10^7.
            assert!(alike < 10, "{one} and {other}: {alike}");
        }
        let mut renewed = Permutation::new(1000, 1, 0);
        renewed.reseed(2, 1);
        assert_eq!((0..1000).map(|index| renewed.at(index)).collect::<Vec<_>>(), orders[3]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a million steps")]
    fn the_order_looks_random() {
        // Where the next block lies after this one, in 64 parts of the device: chi square with 63
        // degrees of freedom is above 140 for one order in 10^7.
        for blocks in [4096, 100_003, 1 << 20, (1 << 40) + 12_345] {
            let permutation = Permutation::new(blocks, 9, 3);
            let mut counts = [0_u32; 64];
            let steps = blocks.min(64_000) - 1;
            for index in 0..steps {
                let step = permutation.at(index + 1).wrapping_sub(permutation.at(index));
                let step = if step >> 63 == 1 { step.wrapping_add(blocks) } else { step };
                counts[(u128::from(step) * 64 / u128::from(blocks)) as usize] += 1;
            }
            let mean = steps as f64 / 64.0;
            let chi_square: f64 =
                counts.iter().map(|&count| (f64::from(count) - mean).powi(2) / mean).sum();
            assert!(chi_square < 140.0, "{blocks}: {chi_square}");
        }
    }

    #[test]
    fn the_largest_number_of_blocks_has_an_order() {
        let permutation = Permutation::new(1 << 62, 1, 0);
        let mut places: Vec<u64> = (0..1000).map(|index| permutation.at(index)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 1000);
        assert!(places.iter().all(|&place| place < 1 << 62));
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of draws")]
    fn ranks_come_as_often_as_the_law_says() {
        const DRAWS: u32 = 400_000;
        for (ranks, theta) in [(1000, 1.1), (1000, 0.9), (1000, 1.0), (50, 2.0), (100_000, 1.2)] {
            let zipf = Zipf::new(ranks, theta);
            let mut random = Random::new(11);
            let mut counts = [0_u32; 20];
            for _ in 0..DRAWS {
                let rank = zipf.next(&mut random);
                assert!(rank < ranks);
                if let Some(count) = counts.get_mut(rank as usize) {
                    *count += 1;
                }
            }
            let whole: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).sum();
            for (rank, count) in (1..).zip(counts) {
                let expected = f64::from(DRAWS) * f64::from(rank).powf(-theta) / whole;
                let off = (f64::from(count) - expected) / expected.sqrt();
                // A hundred ranks are looked at; one in a million of them is off by so much.
                assert!(off.abs() < 5.0, "theta {theta}, rank {rank}: {count} of {expected}");
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn_and_huge_devices_have_ranks() {
        let mut random = Random::new(1);
        assert!((0..100).all(|_| Zipf::new(1, 1.1).next(&mut random) == 0));
        let huge = Zipf::new(1 << 50, 0.5);
        assert!((0..1000).all(|_| huge.next(&mut random) < 1 << 50));
        let steep = Zipf::new(1 << 50, 100.0);
        assert!((0..1000).all(|_| steep.next(&mut random) == 0));
    }
}
