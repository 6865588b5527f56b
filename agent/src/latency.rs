//! Latency bins: fio's, 64 a power of two, so that counts of any engine and host merge exactly.
//!
//! Below 128 ns every nanosecond has a bin of its own; above, a bin is as wide as keeps a value
//! within 1/128 of the bin's middle. fio calls these `plat_val_to_idx` and `plat_idx_to_val`.

/// Bins of a power of two, as a power of two itself.
const BITS: u32 = 6;
/// Powers of two that have bins; the last one's values reach 17 s.
const GROUPS: usize = 29;
/// How many bins there are.
pub const BINS: usize = GROUPS << BITS;

/// The bin of a latency; the last bin takes all that is longer.
#[inline]
#[must_use]
pub fn bin_of_ns(latency_ns: u64) -> usize {
    let top_bit = u64::BITS - (latency_ns | 1).leading_zeros() - 1;
    if top_bit <= BITS {
        return latency_ns as usize;
    }
    let octave = top_bit - BITS;
    let step = (latency_ns >> octave) as usize & ((1 << BITS) - 1);
    (((octave as usize + 1) << BITS) + step).min(BINS - 1)
}

/// The smallest nanosecond of a bin.
#[must_use]
pub fn lower_ns(bin: usize) -> u64 {
    match octave_of(bin) {
        0 => bin as u64,
        octave => {
            let step = bin as u64 & ((1 << BITS) - 1);
            ((1 << BITS) + step) << octave
        }
    }
}

/// The largest nanosecond of a bin.
#[must_use]
pub fn upper_ns(bin: usize) -> u64 {
    lower_ns(bin) + (1 << octave_of(bin)) - 1
}

/// The nanosecond that stands for a bin, as fio prints it.
#[must_use]
pub fn middle_ns(bin: usize) -> u64 {
    lower_ns(bin) + ((1 << octave_of(bin)) >> 1)
}

/// The power of two that is a bin's width.
fn octave_of(bin: usize) -> u32 {
    (bin >> BITS).saturating_sub(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;

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
}
