//! What the loop of a worker wants of the kernel, in whichever way that is asked.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::target::Target;
use crate::sys::block::{fsync, read_block, trim_range, write_block};
use crate::sys::buffer::Block;

/// What the kernel had no room for waits for so long, and every further time for twice as long: no
/// storm of calls that take away the time in which room could be made.
pub const FIRST_RETRY_PAUSE_NS: u64 = 10_000;

/// What is done with a block; its number is the place of its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum IoKind {
    /// It is read.
    Read = 0,
    /// It is written.
    Write = 1,
    /// It is given back.
    Trim = 2,
    /// What was written before is kept.
    Sync = 3,
}

/// How many acts there are.
pub const IO_KINDS: usize = 4;

/// One I/O for the kernel. Its block is left alone until it is reaped.
#[derive(Debug, Clone, Copy)]
pub struct IoRequest {
    /// By what it is known when it is reaped.
    pub slot: u32,
    /// What is to be done.
    pub kind: IoKind,
    /// On which target, by its place among all.
    pub target: u32,
    /// Where in the target.
    pub offset: u64,
    /// With which memory.
    pub block: Block,
    /// How many bytes; of a trim more than the block has.
    pub bytes: u32,
    /// Which registered buffer the block lies in.
    pub buffer: u16,
}

/// How long to wait for a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Never,
    /// Until there is one.
    ForOne,
    /// Until there is one, but at most so many nanoseconds.
    AtMost(u64),
}

/// A way to have the kernel do many I/Os at a time.
pub trait Queue {
    /// Add a request; there is room for as many as there are slots.
    fn push(&mut self, request: &IoRequest);

    /// Give the kernel all that was pushed, and wait. It may return early.
    ///
    /// Where it is one system call, that belongs into the loop that calls it, without a function
    /// around: on some processors (AMD's with Linux's Safe RET) a function that returns after a
    /// system call slows all of the next one, by half a microsecond.
    fn enter(&mut self, wait: Wait) -> io::Result<()>;

    /// Call `each` with the slot and the result of every request that has ended: bytes, or a
    /// negative errno.
    fn reap(&mut self, each: impl FnMut(u32, i32));
}

/// One I/O at a time.
#[derive(Debug)]
pub struct SyncQueue {
    targets: Arc<Vec<Target>>,
    pushed: Option<IoRequest>,
    ended: Option<(u32, i32)>,
}

impl SyncQueue {
    /// On these targets.
    #[must_use]
    pub fn new(targets: Arc<Vec<Target>>) -> Self {
        Self { targets, pushed: None, ended: None }
    }
}

impl Queue for SyncQueue {
    #[inline]
    fn push(&mut self, request: &IoRequest) {
        self.pushed = Some(*request);
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see the trait")]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match (self.pushed.take(), wait) {
            (Some(request), _) => {
                let result = perform_io(&self.targets[request.target as usize], &request);
                self.ended = Some((request.slot, as_completion_result(result)));
            }
            (None, Wait::AtMost(ns)) => std::thread::sleep(Duration::from_nanos(ns)),
            (None, _) => {}
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        if let Some((slot, result)) = self.ended.take() {
            each(slot, result);
        }
    }
}

/// Do it here and now; the bytes that were moved.
#[inline(always)]
#[allow(clippy::inline_always, reason = "see `Queue::enter`")]
pub fn perform_io(target: &Target, request: &IoRequest) -> io::Result<usize> {
    let (file, offset, bytes) = (&target.file, request.offset, request.bytes as usize);
    match request.kind {
        IoKind::Read => read_block(file, request.block.part(0, bytes), offset),
        IoKind::Write => write_block(file, request.block.part(0, bytes), offset),
        IoKind::Trim => trim_range(file, target.is_device, offset, bytes as u64).map(|()| bytes),
        IoKind::Sync => fsync(file).map(|()| 0),
    }
}

/// As completions of the kernel have it: bytes, or a negative errno.
#[must_use]
fn as_completion_result(result: io::Result<usize>) -> i32 {
    match result {
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}
