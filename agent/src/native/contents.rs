//! What written blocks hold.
//!
//! Every sector of 512 bytes begins with a stamp that no other write has: target, offset, sequence
//! and checksums. So no two sectors are alike, and whoever reads one later can tell whether it is
//! what was written there last. A stamp costs a few nanoseconds, because the bytes behind it stay
//! as they are (`scrambled`, as fio does with `scramble_buffers`) or are only combined with its
//! checksum (`random`, so that compressors that look at several blocks at a time find nothing
//! either; instead of fio's `refill_buffers`).
//!
//! Compressible bytes are zeros at the end of every sector: fio's `buffer_compress_percentage`
//! with a `buffer_compress_chunk` of 512, so that any part of a block compresses as the whole
//! does. Blocks to be deduplicated are alike as wholes; there is one new content of them in every
//! `SHARERS` writes, so as many of all blocks as was requested, and at most a thousandth less, are
//! copies of others of the job.

use serde::Deserialize;

use super::random::{Random, split_mix};

/// In so many writes, all blocks to be deduplicated are alike. Few enough that no storage runs out
/// of references to one block.
const DEDUPE_PERIOD: u64 = 1024;
/// The target in stamps of blocks that are alike: they belong to none.
const NO_TARGET: u32 = u32::MAX;

/// What the blocks of a job hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentsSpec {
    /// How new every block is.
    pub kind: ContentsKind,
    /// How much of every sector is zeros; above 92 as for 92, for the stamp stays.
    #[serde(default)]
    pub compress_percent: u8,
    /// How many of the blocks are copies of others.
    #[serde(default)]
    pub dedupe_percent: u8,
}

/// How new every block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentsKind {
    /// All random bytes are other ones with each write.
    Random,
    /// Random bytes, the same with each write but for the stamps.
    Scrambled,
    /// Nothing but zeros.
    Zeros,
}

impl ContentsSpec {
    /// Whether a block that is read can be told from another.
    #[must_use]
    pub fn is_verifiable(&self) -> bool {
        self.kind != ContentsKind::Zeros && self.dedupe_percent == 0
    }

    /// What is wrong with it, each in a sentence.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let percents =
            [("compress_percent", self.compress_percent), ("dedupe_percent", self.dedupe_percent)];
        let mut faults = Vec::new();
        for (name, percent) in percents {
            if percent > 100 {
                faults.push(format!("{name} is {percent}; it must be 0 to 100."));
            }
            if percent > 0 && self.kind == ContentsKind::Zeros {
                faults.push(format!("{name} is {percent} and contents are zeros, all alike."));
            }
        }
        faults
    }
}

/// The writer of one job's blocks.
#[derive(Debug, Clone)]
pub struct ContentsWriter {
    kind: ContentsKind,
    seed: u64,
    /// Words behind a stamp that are random; zeros follow.
    random_words: usize,
    /// Blocks that are copies, of 2^64.
    copy_threshold: u64,
}

impl ContentsWriter {
    /// Contents as described, which must have no faults.
    #[must_use]
    pub fn new(spec: &ContentsSpec, seed: u64) -> Self {
        let zero_bytes = SECTOR_BYTES * usize::from(spec.compress_percent) / 100;
        let random_words = REST_WORDS.saturating_sub((zero_bytes + WORD / 2) / WORD);
        let copies_below = u64::MAX / 100 * u64::from(spec.dedupe_percent.min(100));
        Self { kind: spec.kind, seed, random_words, copy_threshold: copies_below }
    }

    /// Fill the buffer of one block: before its first stamp, and again after a read into it. All
    /// blocks of a job get the same. Bytes behind the last whole sector are random as well; they
    /// never get a stamp.
    pub fn fill_base(&self, block: &mut [u8]) {
        if self.kind == ContentsKind::Zeros {
            block.fill(0);
            return;
        }
        let mut random = Random::new(self.seed);
        for chunk in block.chunks_mut(SECTOR_BYTES) {
            chunk.fill(0);
            let rest_start = STAMP_BYTES.min(chunk.len());
            for word in chunk[rest_start..].chunks_mut(WORD).take(self.random_words) {
                word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
            }
            if let Ok(sector) = <&mut Sector>::try_from(chunk) {
                add_rest_checksum(sector);
            }
        }
    }

    /// Make the block the one of this write: of that target, at that offset in bytes. Sequences
    /// begin at one.
    #[inline]
    pub fn stamp_block(&self, block: &mut [u8], target: u32, offset: u64, sequence: u64) {
        let mut stamp = SectorStamp { target, offset, sequence };
        if self.copy_threshold > 0 && split_mix(self.seed, sequence) < self.copy_threshold {
            stamp =
                SectorStamp { target: NO_TARGET, offset: 0, sequence: sequence / DEDUPE_PERIOD };
        }
        match self.kind {
            ContentsKind::Random => stamp_sectors(block, stamp, self.random_words),
            ContentsKind::Scrambled => stamp_sectors(block, stamp, 0),
            ContentsKind::Zeros => {}
        }
    }
}

#[inline]
fn stamp_sectors(block: &mut [u8], mut stamp: SectorStamp, combined: usize) {
    for chunk in block.chunks_exact_mut(SECTOR_BYTES) {
        if let Ok(sector) = <&mut Sector>::try_from(chunk) {
            put_stamp(sector, stamp, combined);
        }
        stamp.offset += SECTOR_BYTES as u64;
    }
}

/// The unit of stamps: the smallest piece that storage writes at once.
pub const SECTOR_BYTES: usize = 512;
/// A sector.
pub type Sector = [u8; SECTOR_BYTES];

/// Bytes of a word.
const WORD: usize = 8;
/// The first word of the rest of a sector.
const FIRST_OF_REST: usize = 5;
/// Where the rest of a sector begins.
pub const STAMP_BYTES: usize = FIRST_OF_REST * WORD;
/// Words of the rest of a sector.
const REST_WORDS: usize = SECTOR_BYTES / WORD - FIRST_OF_REST;

/// What tells a stamp from other bytes, in the upper bits of the first word.
const STAMP_MAGIC: u64 = 0x10_1AB5;
const MAGIC_SHIFT: u32 = 40;
/// Below the mark: how many words of the rest are combined.
const COMBINED_SHIFT: u32 = 32;
/// Places of words.
const OFFSET_WORD: usize = 1;
const SEQUENCE_WORD: usize = 2;
const REST_CHECKSUM_WORD: usize = 3;
const STAMP_CHECKSUM_WORD: usize = 4;
/// Odd and without pattern, so that a product depends on all lower bits of both factors. These are
/// the multipliers of xxHash.
const CHECKSUM_FACTORS: [u64; 4] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x27D4_EB2F_1656_67C5];

/// Sums that are computed side by side, as a multiplication takes longer than the next can wait.
const LANES: usize = CHECKSUM_FACTORS.len();

/// What a stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorStamp {
    /// The number of the target that was meant.
    pub target: u32,
    /// Of the sector, in bytes.
    pub offset: u64,
    /// Of the write.
    pub sequence: u64,
}

/// Give a fresh sector its checksum: `rest` was written, no stamp yet.
pub fn add_rest_checksum(sector: &mut Sector) {
    sector[..STAMP_BYTES].fill(0);
    let rest = rest_checksum(sector, 0, 0);
    write_word(sector, REST_CHECKSUM_WORD, rest);
}

/// Put a stamp on a prepared sector, and combine that many words of its rest anew.
#[inline]
fn put_stamp(sector: &mut Sector, stamp: SectorStamp, combined: usize) {
    let first =
        STAMP_MAGIC << MAGIC_SHIFT | (combined as u64) << COMBINED_SHIFT | u64::from(stamp.target);
    let whole = stamp_checksum([
        first,
        stamp.offset,
        stamp.sequence,
        read_word(sector, REST_CHECKSUM_WORD),
    ]);
    let change = whole ^ read_word(sector, STAMP_CHECKSUM_WORD);
    write_word(sector, 0, first);
    write_word(sector, OFFSET_WORD, stamp.offset);
    write_word(sector, SEQUENCE_WORD, stamp.sequence);
    write_word(sector, STAMP_CHECKSUM_WORD, whole);
    let mut groups =
        sector[STAMP_BYTES..][..combined * WORD].chunks_exact_mut(WORDS_PER_TURN * WORD);
    for group in &mut groups {
        if let Ok(group) = <&mut [u8; WORDS_PER_TURN * WORD]>::try_from(group) {
            combine::<0>(group, change);
            combine::<1>(group, change);
            combine::<2>(group, change);
            combine::<3>(group, change);
            combine::<4>(group, change);
            combine::<5>(group, change);
            combine::<6>(group, change);
            combine::<7>(group, change);
        }
    }
    for bytes in groups.into_remainder().chunks_exact_mut(WORD) {
        if let Ok(bytes) = <&mut [u8; WORD]>::try_from(bytes) {
            *bytes = (u64::from_le_bytes(*bytes) ^ change).to_le_bytes();
        }
    }
}

/// Words that are combined in one turn of the loop, which a compiler that keeps programs small does
/// not unroll: most of what a write of random bytes takes.
const WORDS_PER_TURN: usize = 8;

#[inline]
fn combine<const AT: usize>(group: &mut [u8; WORDS_PER_TURN * WORD], change: u64) {
    let mut bytes = [0; WORD];
    bytes.copy_from_slice(&group[AT * WORD..][..WORD]);
    let word = u64::from_le_bytes(bytes) ^ change;
    group[AT * WORD..][..WORD].copy_from_slice(&word.to_le_bytes());
}

/// The stamp of a sector; None when any of its bytes is not as it was written.
#[inline]
#[must_use]
pub fn read_stamp(sector: &Sector) -> Option<SectorStamp> {
    let [first, offset, sequence, rest] =
        [0, OFFSET_WORD, SEQUENCE_WORD, REST_CHECKSUM_WORD].map(|at| read_word(sector, at));
    let combined = (first >> COMBINED_SHIFT) as u8 as usize;
    let whole = read_word(sector, STAMP_CHECKSUM_WORD);
    let is_whole = first >> MAGIC_SHIFT == STAMP_MAGIC
        && combined <= REST_WORDS
        && whole == stamp_checksum([first, offset, sequence, rest])
        && rest == rest_checksum(sector, whole, combined);
    is_whole.then_some(SectorStamp { target: first as u32, offset, sequence })
}

/// No two stamps that differ in one word have the same: each step can be undone.
#[inline]
fn stamp_checksum(words: [u64; 4]) -> u64 {
    let mut sum = 0;
    for (word, factor) in words.into_iter().zip(CHECKSUM_FACTORS) {
        sum = (sum ^ word).wrapping_mul(factor);
        sum ^= sum >> 31;
    }
    sum
}

/// A change in one word always changes the result, any other but for one in 2^64.
#[inline]
fn rest_checksum(sector: &Sector, key: u64, combined: usize) -> u64 {
    let mut sums = CHECKSUM_FACTORS;
    let mut step = |lane: usize, at: usize| {
        let plain = read_word(sector, FIRST_OF_REST + at) ^ if at < combined { key } else { 0 };
        sums[lane] = (sums[lane] ^ plain).wrapping_mul(CHECKSUM_FACTORS[1]).rotate_left(29);
    };
    for first in (0..REST_WORDS - LANES).step_by(LANES) {
        step(0, first);
        step(1, first + 1);
        step(2, first + 2);
        step(3, first + 3);
    }
    for at in REST_WORDS / LANES * LANES..REST_WORDS {
        step(at % LANES, at);
    }
    let [a, b, c, d] = sums;
    a.wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18))
}

#[inline]
fn read_word(sector: &Sector, at: usize) -> u64 {
    let mut bytes = [0; WORD];
    bytes.copy_from_slice(&sector[at * WORD..][..WORD]);
    u64::from_le_bytes(bytes)
}

#[inline]
fn write_word(sector: &mut Sector, at: usize, word: u64) {
    sector[at * WORD..][..WORD].copy_from_slice(&word.to_le_bytes());
}

/// What is known of the last write of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedWrite {
    /// It was told to be done, and had this sequence: the block holds it, or a later write. Zero
    /// where nothing is known; then zeros are in order as well.
    AtLeast(u64),
    /// The write after that sequence was under way when the writer ended, or failed: each sector
    /// may hold one or the other.
    MixedFrom(u64),
}

/// What a block is found to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
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

impl BlockState {
    /// One sentence of what is wrong with the block at an offset of `name`; None when nothing is.
    #[must_use]
    pub fn message(&self, name: &str, offset: u64, expected: ExpectedWrite) -> Option<String> {
        let (ExpectedWrite::AtLeast(least) | ExpectedWrite::MixedFrom(least)) = expected;
        let message = match self {
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
        Some(format!("The block at {offset} of {name} {message}."))
    }
}

/// Look at a block of a target at an offset in bytes, as large as it was written or a part of that;
/// several blocks at once would look torn. Bytes behind the last whole sector are not looked at.
#[inline]
#[must_use]
pub fn verify_block(block: &[u8], target: u32, offset: u64, expected: ExpectedWrite) -> BlockState {
    let (mut older, mut newer) = (u64::MAX, 0);
    let mut here = offset;
    for chunk in block.chunks_exact(SECTOR_BYTES) {
        let Ok(sector) = <&Sector>::try_from(chunk) else { continue };
        let Some(stamp) = read_stamp_or_zeros(sector, target, here) else {
            return BlockState::Corrupt { offset: here };
        };
        if (stamp.target, stamp.offset) != (target, here) {
            return BlockState::Misplaced { target: stamp.target, offset: stamp.offset };
        }
        older = older.min(stamp.sequence);
        newer = newer.max(stamp.sequence);
        here += SECTOR_BYTES as u64;
    }
    let (least, may_mix) = match expected {
        ExpectedWrite::AtLeast(least) => (least, false),
        ExpectedWrite::MixedFrom(least) => (least, true),
    };
    if older < newer && !may_mix {
        BlockState::Torn { older, newer }
    } else if older < least {
        BlockState::Stale { sequence: older }
    } else {
        BlockState::Ok
    }
}

/// Zeros are what a new target holds: a write of sequence zero, at its place.
#[inline]
fn read_stamp_or_zeros(sector: &Sector, target: u32, offset: u64) -> Option<SectorStamp> {
    let is_blank = || sector.iter().all(|&byte| byte == 0);
    read_stamp(sector).or_else(|| is_blank().then_some(SectorStamp { target, offset, sequence: 0 }))
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
