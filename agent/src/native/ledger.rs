//! The write ledger: which write of every block was last told to be done.
//!
//! Eight bytes a block, in a file that is mapped into memory: a store there is in the kernel's page
//! cache, so it outlives this process, however that ends. It outlives an end of the host only as
//! far as it was synced before; what is older than that is still a true lower bound, but blocks
//! that were written since cannot be told from those that were under way. Keep the file on another
//! file system than the one under test; an agent keeps it in memory (see `crate::ledgers`).
//!
//! A block has one write at a time: with two, nobody could say which of them should remain.
//!
//! The ledger is of the targets of the engine that made it. Later ones may use the first of these
//! alone, and less of the last: runs of fewer jobs on the same data set do.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::contents::ExpectedWrite;
use super::random::split_mix;
use crate::error::io_error_text;
use crate::probe::counters::parse_meminfo;
use crate::sys::file::LockedFile;
use crate::sys::map::SharedWords;

/// Blocks of all targets: 2 GiB of memory, a TiB of target in blocks of 4 KiB.
pub const MAX_BLOCKS: u64 = 1 << 28;
/// Targets of one ledger: the files of ten thousand jobs, and a megabyte of header.
pub const MAX_TARGETS: usize = 65_536;
/// A ledger may take one part of so many of all memory, where it is all the time.
const MEMORY_DIVISOR: u64 = 4;
/// The first word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"iolabwl\n");
/// Counted up when the layout changes.
const VERSION: u64 = 2;
/// What the words begin at a multiple of: every page size of Linux divides it.
const HEADER_UNIT_BYTES: u64 = 65_536;
const WORD_BYTES: usize = size_of::<u64>();
/// Words before those of the targets: magic, version, bytes of a block, count of targets.
const HEADER_WORDS: usize = 4;
/// Words of a target: its blocks and its name.
const TARGET_WORDS: usize = 2;

/// A write is under way.
const WRITE_IN_FLIGHT: u64 = 1 << 63;
/// One was, and nobody knows what became of it.
const OUTCOME_UNKNOWN: u64 = 1 << 62;
/// Writers that follow each other leave so many sequences between them: more than the first one
/// may have had under way when it was killed.
const WRITER_GAP: u64 = 1 << 32;

/// What a ledger is of. A ledger that exists is opened only for the same, or a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerShape {
    /// What a word stands for.
    pub block_bytes: u32,
    /// Each target, in the order of their numbers.
    pub targets: Vec<TargetShape>,
}

/// A target as a ledger knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetShape {
    /// How many blocks it has.
    pub blocks: u64,
    /// A number made of its name, so that nobody checks one file by the ledger of another.
    pub name: u64,
}

impl TargetShape {
    /// A target of that name.
    #[must_use]
    pub fn new(blocks: u64, name: &[u8]) -> Self {
        let name = name.iter().fold(0, |sum, &byte| split_mix(sum, byte.into()));
        Self { blocks, name }
    }
}

/// The ledger of all targets of an engine.
#[derive(Debug)]
pub struct Ledger {
    words: SharedWords,
    /// Where the blocks of each target begin.
    starts: Box<[usize]>,
    /// Locked as long as this ledger is open.
    file: Option<LockedFile>,
}

impl Ledger {
    /// Open the ledger in a file, or make one. What is in the way is told in a sentence or two.
    pub fn open(path: &Path, shape: &LedgerShape) -> Result<Self, String> {
        target_starts(shape)?;
        let name = path.display();
        let tell =
            |error: io::Error| format!("The ledger {name} fails: {}.", io_error_text(&error));
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).open(path).map_err(tell)?;
        // The length of a device is zero, and what is on it would be written over.
        if !file.metadata().map_err(tell)?.is_file() {
            return Err(format!("The ledger {name} is no file; name one, or a new one."));
        }
        let Ok(file) = LockedFile::try_lock(file).map_err(tell)? else {
            return Err(format!("The ledger {name} is in use by another engine."));
        };
        let whole = if file.metadata().map_err(tell)?.len() == 0 {
            file.write_all_at(&encode_header(shape), 0).map_err(tell)?;
            shape.clone()
        } else {
            let found = read_shape(&file).map_err(tell)?.and_then(|found| found.narrowed_to(shape));
            let other =
                |fault| format!("The ledger {name} {fault}. Name another file, or remove it.");
            found.map_err(other)?
        };
        let (starts, blocks) = target_starts(&whole)?;
        let words = SharedWords::of_file(&file, header_bytes(&whole), blocks).map_err(tell)?;
        for word in &*words {
            if word.load(Ordering::Relaxed) & WRITE_IN_FLIGHT != 0 {
                mark_unknown(word);
            }
        }
        Ok(Self { words, starts, file: Some(file) })
    }

    /// A ledger that ends with the process, to verify within one run.
    pub fn in_memory(shape: &LedgerShape) -> Result<Self, String> {
        let (starts, blocks) = target_starts(shape)?;
        let tell =
            |error: io::Error| format!("The ledger has no memory: {}.", io_error_text(&error));
        Ok(Self { words: SharedWords::in_memory(blocks).map_err(tell)?, starts, file: None })
    }

    /// Say that a write of the block is about to begin; false when one is under way already, and
    /// another may not begin.
    #[inline]
    #[must_use]
    pub fn begin_write(&self, target: u32, block: u64) -> bool {
        self.block_word(target, block).fetch_or(WRITE_IN_FLIGHT, Ordering::Relaxed)
            & WRITE_IN_FLIGHT
            == 0
    }

    /// Say that it does not begin after all: nothing has become of the block.
    pub fn cancel_write(&self, target: u32, block: u64) {
        self.block_word(target, block).fetch_and(!WRITE_IN_FLIGHT, Ordering::Relaxed);
    }

    /// Say that the write which began was told to be done.
    #[inline]
    pub fn acknowledge_write(&self, target: u32, block: u64, sequence: u64) {
        self.block_word(target, block)
            .store(sequence & !(WRITE_IN_FLIGHT | OUTCOME_UNKNOWN), Ordering::Relaxed);
    }

    /// Say that the write which began failed: the block may hold any part of it.
    #[inline]
    pub fn fail_write(&self, target: u32, block: u64) {
        mark_unknown(self.block_word(target, block));
    }

    /// What a read that begins now will find.
    #[inline]
    #[must_use]
    pub fn expected(&self, target: u32, block: u64) -> ExpectedWrite {
        let word = self.block_word(target, block).load(Ordering::Relaxed);
        let sequence = word & !(WRITE_IN_FLIGHT | OUTCOME_UNKNOWN);
        if word == sequence {
            ExpectedWrite::AtLeast(sequence)
        } else {
            ExpectedWrite::MixedFrom(sequence)
        }
    }

    /// The first sequence of a new writer: above all that any writer before it gave.
    #[must_use]
    pub fn first_sequence(&self) -> u64 {
        let sequences = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        let highest =
            sequences.map(|word| word & !(WRITE_IN_FLIGHT | OUTCOME_UNKNOWN)).max().unwrap_or(0);
        if highest == 0 { 1 } else { (highest / WRITER_GAP + 1) * WRITER_GAP + 1 }
    }

    /// Have what was said up to now outlive an end of the host as well. Not for the hot loop.
    pub fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.sync_data())
    }

    #[inline]
    fn block_word(&self, target: u32, block: u64) -> &AtomicU64 {
        &self.words[self.starts[target as usize] + block as usize]
    }
}

/// Only the thread that began the write does this, so it need not be one step.
fn mark_unknown(word: &AtomicU64) {
    let now = word.load(Ordering::Relaxed);
    word.store(now & !WRITE_IN_FLIGHT | OUTCOME_UNKNOWN, Ordering::Relaxed);
}

fn target_starts(shape: &LedgerShape) -> Result<(Box<[usize]>, usize), String> {
    let targets = shape.targets.len();
    if targets > MAX_TARGETS {
        return Err(format!("A ledger takes {MAX_TARGETS} targets; these are {targets}."));
    }
    let mut blocks = 0_u64;
    let starts = shape.targets.iter().map(|target| {
        let start = blocks as usize;
        blocks = blocks.saturating_add(target.blocks);
        start
    });
    let starts = starts.collect();
    match blocks {
        0 => Err("There is no block to keep a ledger of.".into()),
        1..=MAX_BLOCKS => {
            let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
            let fault =
                parse_meminfo(&text).total_bytes.and_then(|all| memory_limit_fault(blocks, all));
            fault.map_or(Ok((starts, blocks as usize)), Err)
        }
        _ => Err(format!(
            "A ledger takes {MAX_BLOCKS} blocks, 8 bytes each; these are {blocks}. Verify larger \
             blocks, or less of the targets."
        )),
    }
}

fn memory_limit_fault(blocks: u64, memory_bytes: u64) -> Option<String> {
    let most = memory_bytes / MEMORY_DIVISOR;
    let wanted = blocks * WORD_BYTES as u64;
    (wanted > most).then(|| {
        format!(
            "A ledger of {blocks} blocks takes {wanted} bytes, and {most} is a quarter of this \
             host's memory; verify larger blocks, or less of the targets."
        )
    })
}

/// The bytes of the header of such a ledger, whole pages.
fn header_bytes(shape: &LedgerShape) -> u64 {
    let words = HEADER_WORDS + TARGET_WORDS * shape.targets.len() + 1;
    ((words * WORD_BYTES) as u64).next_multiple_of(HEADER_UNIT_BYTES)
}

/// The header: magic, version, shape and, last, a checksum of all before it.
fn encode_header(shape: &LedgerShape) -> Vec<u8> {
    let targets = shape.targets.len() as u64;
    let mut words = vec![MAGIC, VERSION, u64::from(shape.block_bytes), targets];
    words.extend(shape.targets.iter().flat_map(|target| [target.blocks, target.name]));
    words.resize(header_bytes(shape) as usize / WORD_BYTES - 1, 0);
    words.push(checksum(&words));
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn checksum(words: &[u64]) -> u64 {
    words.iter().fold(0, |sum, &word| split_mix(sum, word))
}

/// The shape that a file tells of, or what is wrong with it.
fn read_shape(file: &File) -> io::Result<Result<LedgerShape, String>> {
    let head = read_words(file, HEADER_WORDS)?;
    let targets = match head[..] {
        [MAGIC, VERSION, _, targets] if targets <= MAX_TARGETS as u64 => targets as usize,
        [MAGIC, version, ..] if version != VERSION => {
            return Ok(Err(format!("has the version {version}, and this engine {VERSION}")));
        }
        _ => return Ok(Err("is no ledger".into())),
    };
    let mut shape = LedgerShape { block_bytes: head[2] as u32, targets: Vec::new() };
    shape.targets.resize(targets, TargetShape { blocks: 0, name: 0 });
    let words = read_words(file, header_bytes(&shape) as usize / WORD_BYTES)?;
    if words.split_last().is_none_or(|(last, rest)| *last != checksum(rest)) {
        return Ok(Err("is damaged: its header does not match its checksum".into()));
    }
    for (target, words) in shape.targets.iter_mut().zip(words[HEADER_WORDS..].chunks(TARGET_WORDS))
    {
        *target = TargetShape { blocks: words[0], name: words[1] };
    }
    // Who made it may have been killed before it had its words; it never had a part of them.
    let (header, length) = (header_bytes(&shape), file.metadata()?.len());
    let blocks: u64 = shape.targets.iter().map(|target| target.blocks).sum();
    if length != header && length != header + blocks * WORD_BYTES as u64 {
        return Ok(Err(format!("is damaged: it has {length} bytes")));
    }
    Ok(Ok(shape))
}

/// The first words of a file; zeros where it is shorter.
fn read_words(file: &File, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * WORD_BYTES];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    let words = bytes.chunks_exact(WORD_BYTES);
    Ok(words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect())
}

impl LedgerShape {
    /// This shape where a ledger of it serves such jobs, or how it differs.
    fn narrowed_to(self, jobs: &Self) -> Result<Self, String> {
        if self.block_bytes != jobs.block_bytes {
            let (theirs, ours) = (self.block_bytes, jobs.block_bytes);
            return Err(format!("has blocks of {theirs} bytes, and these jobs {ours}"));
        }
        let (theirs, ours) = (self.targets.len(), jobs.targets.len());
        if theirs < ours {
            return Err(format!("has {theirs} targets, and these jobs {ours}"));
        }
        for (nth, (known, wanted)) in self.targets.iter().zip(&jobs.targets).enumerate() {
            if known.name != wanted.name {
                return Err(format!("is of other files: target {nth} has another name"));
            }
            // Where a target begins depends on the sizes of those before it, not on its own.
            let fits = if nth + 1 < ours {
                known.blocks == wanted.blocks
            } else {
                known.blocks >= wanted.blocks
            };
            if !fits {
                let (known, wanted) = (known.blocks, wanted.blocks);
                return Err(format!("has {known} blocks of target {nth}, and these jobs {wanted}"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
