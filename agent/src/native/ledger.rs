//! The write ledger: which write of every block was last told to be done.
//!
//! Eight bytes a block, in a file that is mapped into memory: a store there is in the kernel's page
//! cache, so it outlives this process, however that ends. It outlives an end of the host only as
//! far as it was synced before; what is older than that is still a true lower bound, but blocks
//! that were written since cannot be told from those that were under way. Keep the file on another
//! file system than the one under test.
//!
//! A block has one write at a time: with two, nobody could say which of them should remain.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::check::Expected;
use super::random::split_mix;
use crate::error::sentence;
use crate::sys::file::try_lock;
use crate::sys::map::SharedWords;

/// Blocks of all targets: 2 GiB of memory, a TiB of target in blocks of 4 KiB.
pub const MAX_BLOCKS: u64 = 1 << 28;
/// Targets of one ledger: the files of ten thousand jobs, and half a megabyte of header.
pub const MAX_TARGETS: usize = 65_536;
/// The first word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"iolabwl\n");
/// Counted up when the layout changes.
const VERSION: u64 = 1;
/// What the words begin at a multiple of: every page size of Linux divides it.
const HEADER_UNIT_BYTES: u64 = 65_536;
const WORD_BYTES: usize = size_of::<u64>();

/// A write is under way.
const BUSY: u64 = 1 << 63;
/// One was, and nobody knows what became of it.
const UNSURE: u64 = 1 << 62;
/// Writers that follow each other leave so many sequences between them: more than the first one
/// may have had under way when it was killed.
const WRITER_GAP: u64 = 1 << 32;

/// What a ledger is of. A ledger that exists is opened only for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Of the smallest block of any job.
    pub block_bytes: u32,
    /// Of the run, so that nobody checks one run's blocks by the ledger of another.
    pub seed: u64,
    /// How many blocks each target has, in the order of their numbers.
    pub target_blocks: Vec<u64>,
}

/// The ledger of all targets of an engine.
#[derive(Debug)]
pub struct Ledger {
    words: SharedWords,
    /// Where the blocks of each target begin.
    starts: Box<[usize]>,
    /// Locked as long as this ledger is open.
    file: Option<File>,
}

impl Ledger {
    /// Open the ledger in a file, or make one. What is in the way is told in a sentence or two.
    pub fn open(path: &Path, shape: &Shape) -> Result<Self, String> {
        let (starts, blocks) = starts_of(shape)?;
        let name = path.display();
        let tell = |error: io::Error| format!("The ledger {name} fails: {}.", sentence(&error));
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(tell)?;
        // The length of a device is zero, and what is on it would be written over.
        if !file.metadata().map_err(tell)?.is_file() {
            return Err(format!("The ledger {name} is no file; name one, or a new one."));
        }
        if !try_lock(&file).map_err(tell)? {
            return Err(format!("The ledger {name} is in use by another engine."));
        }
        let header = header_of(shape);
        if file.metadata().map_err(tell)?.len() == 0 {
            file.write_all_at(&header, 0).map_err(tell)?;
        } else if let Some(fault) = difference(&file, &header).map_err(tell)? {
            return Err(format!("The ledger {name} {fault}. Name another file, or remove it."));
        }
        let words = SharedWords::of_file(&file, header.len() as u64, blocks).map_err(tell)?;
        for word in &*words {
            if word.load(Ordering::Relaxed) & BUSY != 0 {
                give_up(word);
            }
        }
        Ok(Self { words, starts, file: Some(file) })
    }

    /// A ledger that ends with the process, to verify within one run.
    pub fn in_memory(shape: &Shape) -> Result<Self, String> {
        let (starts, blocks) = starts_of(shape)?;
        let tell = |error: io::Error| format!("The ledger has no memory: {}.", sentence(&error));
        Ok(Self { words: SharedWords::in_memory(blocks).map_err(tell)?, starts, file: None })
    }

    /// Say that a write of the block is about to begin; false when one is under way already, and
    /// another may not begin.
    #[inline]
    #[must_use]
    pub fn begin(&self, target: u32, block: u64) -> bool {
        self.word(target, block).fetch_or(BUSY, Ordering::Relaxed) & BUSY == 0
    }

    /// Say that the write which began was told to be done.
    #[inline]
    pub fn acknowledge(&self, target: u32, block: u64, sequence: u64) {
        self.word(target, block).store(sequence & !(BUSY | UNSURE), Ordering::Relaxed);
    }

    /// Say that the write which began failed: the block may hold any part of it.
    #[inline]
    pub fn abandon(&self, target: u32, block: u64) {
        give_up(self.word(target, block));
    }

    /// What a read that begins now will find.
    #[inline]
    #[must_use]
    pub fn expected(&self, target: u32, block: u64) -> Expected {
        let word = self.word(target, block).load(Ordering::Relaxed);
        let sequence = word & !(BUSY | UNSURE);
        if word == sequence { Expected::AtLeast(sequence) } else { Expected::MixedFrom(sequence) }
    }

    /// The first sequence of a new writer: above all that any writer before it gave.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        let sequences = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        let highest = sequences.map(|word| word & !(BUSY | UNSURE)).max().unwrap_or(0);
        if highest == 0 { 1 } else { (highest / WRITER_GAP + 1) * WRITER_GAP + 1 }
    }

    /// Have what was said up to now outlive an end of the host as well. Not for the hot loop.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    #[inline]
    fn word(&self, target: u32, block: u64) -> &AtomicU64 {
        &self.words[self.starts[target as usize] + block as usize]
    }
}

/// Only the thread that began the write does this, so it need not be one step.
fn give_up(word: &AtomicU64) {
    let now = word.load(Ordering::Relaxed);
    word.store(now & !BUSY | UNSURE, Ordering::Relaxed);
}

fn starts_of(shape: &Shape) -> Result<(Box<[usize]>, usize), String> {
    let targets = shape.target_blocks.len();
    if targets > MAX_TARGETS {
        return Err(format!("A ledger takes {MAX_TARGETS} targets; these are {targets}."));
    }
    let mut blocks = 0_u64;
    let starts = shape.target_blocks.iter().map(|&more| {
        let start = blocks as usize;
        blocks = blocks.saturating_add(more);
        start
    });
    let starts = starts.collect();
    match blocks {
        0 => Err("There is no block to keep a ledger of.".into()),
        1..=MAX_BLOCKS => Ok((starts, blocks as usize)),
        _ => Err(format!(
            "A ledger takes {MAX_BLOCKS} blocks, 8 bytes each; these are {blocks}. Verify larger \
             blocks, or less of the targets."
        )),
    }
}

/// The header, whole pages of it: magic, version, shape and, last, a checksum of all before it.
fn header_of(shape: &Shape) -> Vec<u8> {
    let targets = shape.target_blocks.len() as u64;
    let mut words = vec![MAGIC, VERSION, u64::from(shape.block_bytes), shape.seed, targets];
    words.extend(&shape.target_blocks);
    let bytes = (((words.len() + 1) * WORD_BYTES) as u64).next_multiple_of(HEADER_UNIT_BYTES);
    words.resize(bytes as usize / WORD_BYTES - 1, 0);
    words.push(words.iter().fold(0, |sum, &word| split_mix(sum, word)));
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// How the header in a file differs from the one it should have; None when it does not.
fn difference(file: &File, header: &[u8]) -> io::Result<Option<String>> {
    let mut found = vec![0; header.len()];
    let mut length = 0;
    while length < found.len() {
        match file.read_at(&mut found[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    if found == header {
        return Ok(None);
    }
    let [ours, theirs] = [header, &found].map(|bytes| {
        let words = bytes.chunks_exact(WORD_BYTES).take(5);
        let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        words.collect::<Vec<_>>()
    });
    Ok(Some(match ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs) {
        Some(0) => "is no ledger".into(),
        Some(1) => format!("has the version {}, and this engine {VERSION}", theirs[1]),
        Some(2) => format!("has blocks of {} bytes, and these jobs {}", theirs[2], ours[2]),
        Some(3) => format!("is of the seed {}, and these jobs of {}", theirs[3], ours[3]),
        Some(4) => format!("has {} targets, and these jobs {}", theirs[4], ours[4]),
        _ => "has targets of other sizes".into(),
    }))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
