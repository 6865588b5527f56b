//! Whether a block that was read is the one that was written there last.

use super::stamp::{SECTOR_BYTES, Sector, Stamp, read_stamp};

/// What is known of the last write of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It was told to be done, and had this sequence: the block holds it, or a later write. Zero
    /// where nothing is known; then zeros are in order as well.
    AtLeast(u64),
    /// The write after that sequence was under way when the writer ended, or failed: each sector
    /// may hold one or the other.
    MixedFrom(u64),
}

/// What a block is found to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// What was to be expected.
    Ok,
    /// Sectors of two writes; zero is the sequence of zeros that nobody wrote.
    Torn {
        /// The lowest sequence in the block.
        older: u64,
        /// The highest.
        newer: u64,
    },
    /// An older write than the last one that was told to be done: that was lost.
    Stale {
        /// Of the older write; zero for zeros that nobody wrote.
        sequence: u64,
    },
    /// A whole sector that was written to another place.
    Misplaced {
        /// Where it was meant to be.
        target: u32,
        /// There, in bytes.
        offset: u64,
    },
    /// A sector whose bytes are not what any write left.
    Corrupt {
        /// Of the sector, in bytes.
        offset: u64,
    },
}

impl Found {
    /// One sentence of what is wrong with the block at an offset of `name`; None when nothing is.
    #[must_use]
    pub fn sentence(&self, name: &str, offset: u64, expected: Expected) -> Option<String> {
        let (Expected::AtLeast(least) | Expected::MixedFrom(least)) = expected;
        let says = match self {
            Self::Ok => return None,
            Self::Torn { older, newer } => {
                format!("is torn: it holds sectors of the writes {older} and {newer}")
            }
            Self::Stale { sequence } => {
                format!("is stale: it holds the write {sequence}, and {least} was acknowledged")
            }
            Self::Misplaced { target, offset } => {
                format!("is misplaced: it holds what was written to target {target} at {offset}")
            }
            Self::Corrupt { offset } => {
                format!("is corrupt: the sector at {offset} does not match its checksum")
            }
        };
        Some(format!("The block at {offset} of {name} {says}."))
    }
}

/// Look at a block of a target at an offset in bytes, as large as it was written or a part of that;
/// several blocks at once would look torn. Bytes behind the last whole sector are not looked at.
#[inline]
#[must_use]
pub fn check(block: &[u8], target: u32, offset: u64, expected: Expected) -> Found {
    let (mut older, mut newer) = (u64::MAX, 0);
    let mut here = offset;
    for chunk in block.chunks_exact(SECTOR_BYTES) {
        let Ok(sector) = <&Sector>::try_from(chunk) else { continue };
        let Some(stamp) = stamp_or_blank(sector, target, here) else {
            return Found::Corrupt { offset: here };
        };
        if (stamp.target, stamp.offset) != (target, here) {
            return Found::Misplaced { target: stamp.target, offset: stamp.offset };
        }
        older = older.min(stamp.sequence);
        newer = newer.max(stamp.sequence);
        here += SECTOR_BYTES as u64;
    }
    let (least, may_mix) = match expected {
        Expected::AtLeast(least) => (least, false),
        Expected::MixedFrom(least) => (least, true),
    };
    if older < newer && !may_mix {
        Found::Torn { older, newer }
    } else if older < least {
        Found::Stale { sequence: older }
    } else {
        Found::Ok
    }
}

/// Zeros are what a new target holds: a write of sequence zero, at its place.
#[inline]
fn stamp_or_blank(sector: &Sector, target: u32, offset: u64) -> Option<Stamp> {
    let is_blank = || sector.iter().all(|&byte| byte == 0);
    read_stamp(sector).or_else(|| is_blank().then_some(Stamp { target, offset, sequence: 0 }))
}
