//! The queue of a thread that does one I/O at a time with a plain call.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::queue::{Act, Queue, Request, Wait};
use super::target::Target;
use crate::sys::block::{keep, read_block, trim_range, write_block};

/// One I/O at a time.
#[derive(Debug)]
pub struct OneByOne {
    targets: Arc<Vec<Target>>,
    pushed: Option<Request>,
    ended: Option<(u32, i32)>,
}

impl OneByOne {
    /// On these targets.
    #[must_use]
    pub fn new(targets: Arc<Vec<Target>>) -> Self {
        Self { targets, pushed: None, ended: None }
    }
}

impl Queue for OneByOne {
    #[inline]
    fn push(&mut self, request: &Request) {
        self.pushed = Some(*request);
    }

    #[inline]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match (self.pushed.take(), wait) {
            (Some(request), _) => {
                let result = perform(&self.targets[request.target as usize], &request);
                self.ended = Some((request.slot, result_number(result)));
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
pub fn perform(target: &Target, request: &Request) -> io::Result<usize> {
    let (file, offset, bytes) = (&target.file, request.offset, request.bytes as usize);
    match request.act {
        Act::Read => read_block(file, request.block.part(0, bytes), offset),
        Act::Write => write_block(file, request.block.part(0, bytes), offset),
        Act::Trim => trim_range(file, target.is_device, offset, bytes as u64).map(|()| bytes),
        Act::Sync => keep(file).map(|()| 0),
    }
}

/// As completions of the kernel have it: bytes, or a negative errno.
#[must_use]
pub fn result_number(result: io::Result<usize>) -> i32 {
    match result {
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}
