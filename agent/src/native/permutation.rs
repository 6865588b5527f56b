//! An order of all blocks in which each comes once, computed and not kept.
//!
//! A Feistel network over pairs (high, low): low is a few bits and is mixed by exclusive or, high
//! is a number below the quotient and is mixed by addition modulo the quotient. So the pairs are
//! hardly more than the blocks, and the walk that skips the few too many hardly ever takes a step.
//! See Black and Rogaway, Ciphers with Arbitrary Finite Domains (2002).

use super::random::split_mix;

/// Each round mixes both halves. Two would do for statistics; three hide the structure also where
/// one half has few values.
const ROUNDS: usize = 3;
/// Odd, its bits well spread: one multiplication moves every bit of a half upwards.
const SPREAD: u64 = 0xD6E8_FEB8_6659_FD93;

/// A permutation of the numbers below `blocks`.
#[derive(Debug, Clone)]
pub struct Permutation {
    blocks: u64,
    low_bits: u32,
    highs: u64,
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
        let mut permutation = Self { blocks, low_bits, highs, keys: [[0; 2]; ROUNDS] };
        permutation.renew(seed, number);
        permutation
    }

    /// Become the permutation of another number, of the same blocks.
    pub fn renew(&mut self, seed: u64, number: u64) {
        let own = split_mix(seed, number.wrapping_add(1));
        for (step, keys) in (1..).zip(&mut self.keys) {
            *keys = [split_mix(own, 2 * step), split_mix(own, 2 * step + 1)];
        }
    }

    /// Where the block of that index is: a different one for each index below `blocks`.
    #[inline]
    #[must_use]
    pub fn at(&self, index: u64) -> u64 {
        let mut place = self.mixed(index);
        while place >= self.blocks {
            place = self.mixed(place);
        }
        place
    }

    #[inline]
    fn mixed(&self, place: u64) -> u64 {
        let low_mask = (1 << self.low_bits) - 1;
        let (mut high, mut low) = (place >> self.low_bits, place & low_mask);
        for [of_low, of_high] in self.keys {
            // 32 bits times at most 2^32 values of the high half: the product fits.
            high += (spread(low, of_low) * self.highs) >> 32;
            high -= if high >= self.highs { self.highs } else { 0 };
            low ^= spread(high, of_high) & low_mask;
        }
        (high << self.low_bits) | low
    }
}

/// 32 bits that depend on all of a half, which has at most 32.
#[inline]
fn spread(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(SPREAD);
    (product ^ (product >> 29)) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

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
        renewed.renew(2, 1);
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
}
