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
//! `SHARERS` writes, so as many of all blocks as was asked for, and at most a thousandth less, are
//! copies of others of the job.

use serde::Deserialize;

use super::random::{Random, split_mix};
use super::stamp::{
    REST_WORDS, SECTOR_BYTES, STAMP_BYTES, Sector, Stamp, WORD, prepare, put_stamp,
};

/// In so many writes, all blocks to be deduplicated are alike. Few enough that no storage runs out
/// of references to one block.
const SHARERS: u64 = 1024;
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
pub struct Contents {
    kind: ContentsKind,
    seed: u64,
    /// Words behind a stamp that are random; zeros follow.
    random_words: usize,
    /// Blocks that are copies, of 2^64.
    copies_below: u64,
}

impl Contents {
    /// Contents as described, which must have no faults.
    #[must_use]
    pub fn new(spec: &ContentsSpec, seed: u64) -> Self {
        let zero_bytes = SECTOR_BYTES * usize::from(spec.compress_percent) / 100;
        let random_words = REST_WORDS.saturating_sub((zero_bytes + WORD / 2) / WORD);
        let copies_below = u64::MAX / 100 * u64::from(spec.dedupe_percent.min(100));
        Self { kind: spec.kind, seed, random_words, copies_below }
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
                prepare(sector);
            }
        }
    }

    /// Make the block the one of this write: of that target, at that offset in bytes. Sequences
    /// begin at one.
    #[inline]
    pub fn stamp(&self, block: &mut [u8], target: u32, offset: u64, sequence: u64) {
        let mut stamp = Stamp { target, offset, sequence };
        if self.copies_below > 0 && split_mix(self.seed, sequence) < self.copies_below {
            stamp = Stamp { target: NO_TARGET, offset: 0, sequence: sequence / SHARERS };
        }
        match self.kind {
            ContentsKind::Random => put_stamps(block, stamp, self.random_words),
            ContentsKind::Scrambled => put_stamps(block, stamp, 0),
            ContentsKind::Zeros => {}
        }
    }
}

#[inline]
fn put_stamps(block: &mut [u8], mut stamp: Stamp, combined: usize) {
    for chunk in block.chunks_exact_mut(SECTOR_BYTES) {
        if let Ok(sector) = <&mut Sector>::try_from(chunk) {
            put_stamp(sector, stamp, combined);
        }
        stamp.offset += SECTOR_BYTES as u64;
    }
}

#[cfg(test)]
#[path = "contents_tests.rs"]
mod tests;
