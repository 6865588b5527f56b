//! One rank: the loop of system calls, with nothing else in it but a clock and a counter.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

use rustix::io::{read, write};

use super::control::PhaseControl;
use super::load::{Phase, PhaseSpec};
use super::tree::{FileName, rank_name};
use crate::latency::LatencyCounters;
use crate::sys::file;
use crate::sys::thread::{Usage, thread_usage, unshare_open_files};
use crate::sys::time::{self, SECOND_NS, mono_ns};

/// Any odd constant with its bits well spread: neighbouring ranks get unlike contents.
const HASH_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
/// Bytes at the start of a file that tell it from all others of its rank.
const STAMP_BYTES: usize = 8;

/// How many times its `runtime_s` a phase may last until each rank came to `files_least`.
const MAX_OVERTIME_FACTOR: u64 = 6;

/// All that a rank needs, made before it starts.
pub struct Rank<'a> {
    load: &'a PhaseSpec,
    number: u32,
    operations: u32,
    folder: &'a File,
    counters: &'a LatencyCounters,
    control: &'a PhaseControl,
    buffer: Vec<u8>,
}

/// When a rank worked, by the monotonic clock, and what that cost.
#[derive(Debug, Clone, Copy)]
pub struct RankResult {
    /// Before its first operation.
    pub start_mono_ns: u64,
    /// After its last one.
    pub end_mono_ns: u64,
    /// Operations that it came to, whether they succeeded or failed.
    pub tried: u32,
    /// It was stopped before it had done all; that its own time was over is no such stop.
    pub was_stopped: bool,
    /// What its loop used.
    pub usage: Usage,
}

impl<'a> Rank<'a> {
    /// This host's `nth` rank, which works on the files of rank `number`, in `folder`.
    pub fn new(
        load: &'a PhaseSpec,
        (nth, number): (usize, u32),
        folder: &'a File,
        counters: &'a LatencyCounters,
        control: &'a PhaseControl,
    ) -> Self {
        let buffer = incompressible_bytes(number, load.bytes_per_operation());
        Self {
            load,
            number,
            operations: load.operations_of_rank(nth),
            folder,
            counters,
            control,
            buffer,
        }
    }

    /// Wait at the gate, then for the start, then work; None when stopped before that.
    pub fn run(mut self) -> Option<RankResult> {
        unshare_open_files(self.folder.as_fd());
        if !self.control.wait_at_gate() {
            return None;
        }
        if let Some(at_ns) = self.load.start_at_real_ns {
            time::sleep_until_real(at_ns);
        }
        let (folder, name) = (self.folder, rank_name(self.number));
        let mut buffer = std::mem::take(&mut self.buffer);
        Some(match self.load.phase {
            Phase::TreeCreate => self.for_each_file(|_| file::make_folder(folder, &name)),
            Phase::TreeRemove => self.for_each_file(|_| file::remove_folder(folder, &name)),
            Phase::FileCreate => self.for_each_file(|file| create_file(folder, file, &mut buffer)),
            Phase::FileStat => self.for_each_file(|file| file::stat_file(folder, file.as_c_str())),
            Phase::FileRead => self.for_each_file(|file| read_file(folder, file, &mut buffer)),
            Phase::FileRemove => {
                self.for_each_file(|file| file::remove_file(folder, file.as_c_str()))
            }
        })
    }

    /// Do it for every file. The clock is read once an operation: one ends where the next begins.
    /// Operations are inlined into it, for the reason that `Queue::enter` tells.
    fn for_each_file(&self, mut operation: impl FnMut(&FileName) -> io::Result<()>) -> RankResult {
        let mut name = FileName::first();
        let mut done = 0;
        let before = thread_usage();
        let start_mono_ns = mono_ns();
        let end = StopRule::of(self.load, self.operations, start_mono_ns);
        let mut now_ns = start_mono_ns;
        while !end.is_reached(now_ns, done) && !self.control.is_stopped() {
            let outcome = operation(&name);
            let then_ns = std::mem::replace(&mut now_ns, mono_ns());
            match outcome {
                Ok(()) => self.counters.add(now_ns.saturating_sub(then_ns)),
                Err(error) => self.counters.fail(error.raw_os_error()),
            }
            name.advance();
            done += 1;
        }
        let usage = thread_usage().since(before);
        let is_cut = !end.is_reached(now_ns, done);
        RankResult { start_mono_ns, end_mono_ns: now_ns, tried: done, was_stopped: is_cut, usage }
    }
}

/// When a rank ends its phase: with its last file, or by time.
struct StopRule {
    max_operations: u32,
    min_operations: u32,
    end_mono_ns: u64,
    latest_end_mono_ns: u64,
}

impl StopRule {
    fn of(load: &PhaseSpec, all: u32, start_mono_ns: u64) -> Self {
        let runtime_ns = load.runtime_s.map_or(u64::MAX, |s| (s * SECOND_NS as f64) as u64);
        Self {
            max_operations: all,
            min_operations: load.files_least,
            end_mono_ns: start_mono_ns.saturating_add(runtime_ns),
            latest_end_mono_ns: start_mono_ns
                .saturating_add(runtime_ns.saturating_mul(MAX_OVERTIME_FACTOR)),
        }
    }

    fn is_reached(&self, now_mono_ns: u64, done: u32) -> bool {
        done == self.max_operations
            || now_mono_ns >= self.latest_end_mono_ns
            || (now_mono_ns >= self.end_mono_ns && done >= self.min_operations)
    }
}

#[inline]
fn create_file(folder: &File, name: &FileName, buffer: &mut [u8]) -> io::Result<()> {
    let file = file::create_file(folder, name.as_c_str())?;
    if !buffer.is_empty() {
        stamp_contents(buffer);
        let written = write(&file, buffer)?;
        if written < buffer.len() {
            return Err(ErrorKind::WriteZero.into());
        }
    }
    file::close_checked(file)
}

#[inline]
fn read_file(folder: &File, name: &FileName, buffer: &mut [u8]) -> io::Result<()> {
    let file = file::open_file(folder, name.as_c_str())?;
    if !buffer.is_empty() && read(&file, &mut *buffer)? < buffer.len() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    file::close_checked(file)
}

/// Make the next file's content unlike the last one's, so that nothing below can share it.
fn stamp_contents(buffer: &mut [u8]) {
    if let Some(first) = buffer.first_chunk_mut::<STAMP_BYTES>() {
        *first = u64::from_ne_bytes(*first).wrapping_add(1).to_ne_bytes();
    }
}

/// Bytes that no storage can compress, unlike those of any other rank (xorshift64*).
fn incompressible_bytes(rank: u32, size: usize) -> Vec<u8> {
    let mut state = (u64::from(rank) + 1).wrapping_mul(HASH_MULTIPLIER);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_F491_4F6C_DD1D).to_ne_bytes());
    }
    bytes.truncate(size);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_goes_on_past_its_time_for_the_least_files_until_its_overtime() {
        let end = StopRule {
            max_operations: 1000,
            min_operations: 40,
            end_mono_ns: 100,
            latest_end_mono_ns: 600,
        };
        for (now_mono_ns, done, is_reached) in [
            (0, 0, false),
            (99, 999, false),
            (99, 1000, true),
            (100, 39, false),
            (100, 40, true),
            (599, 39, false),
            (600, 39, true),
        ] {
            assert_eq!(end.is_reached(now_mono_ns, done), is_reached, "{done} at {now_mono_ns}");
        }
    }

    #[test]
    fn contents_differ_by_rank_and_by_file() {
        let (mut one, two) = (incompressible_bytes(1, 3901), incompressible_bytes(2, 3901));
        assert_eq!(one.len(), 3901);
        assert_ne!(one, two);
        let before = one.clone();
        stamp_contents(&mut one);
        assert_ne!(one[..8], before[..8]);
        assert_eq!(one[8..], before[8..]);
        stamp_contents(&mut [0; 3]); // Too small for a stamp, and no crash.
        assert!(incompressible_bytes(1, 0).is_empty());
    }
}
