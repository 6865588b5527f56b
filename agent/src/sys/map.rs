//! Numbers that a file and a process share: stored as soon as they are written to memory.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A mapping of numbers, writable; with a file behind it they outlive the process.
#[derive(Debug)]
pub struct SharedWords {
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping belongs to this value alone, and its words are atomic.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// The words of a file from an offset on, a multiple of the page size. The file gets its space
    /// now, as a full file system would end the process later; every page is in memory on return.
    pub fn of_file(file: &File, offset: u64, count: usize) -> io::Result<Self> {
        let bytes = bytes_of(count)?;
        // SAFETY: allocating space of an open file touches no memory.
        let outcome =
            unsafe { libc::posix_fallocate64(file.as_raw_fd(), offset as i64, bytes as i64) };
        if outcome != 0 {
            return Err(io::Error::from_raw_os_error(outcome));
        }
        map(count, libc::MAP_SHARED, file.as_raw_fd(), offset)
    }

    /// Zeros that end with this value.
    pub fn in_memory(count: usize) -> io::Result<Self> {
        map(count, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words, aligned as pages are, and lives as long as this.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.count) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody borrows from it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}

/// No mapping may be empty.
fn bytes_of(count: usize) -> io::Result<usize> {
    match count.checked_mul(size_of::<u64>()) {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
}

fn map(count: usize, kind: i32, fd: i32, offset: u64) -> io::Result<SharedWords> {
    let bytes = bytes_of(count)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = kind | libc::MAP_POPULATE;
    // SAFETY: a new mapping at a place of the kernel's choice; its result is checked below.
    let start =
        unsafe { libc::mmap64(std::ptr::null_mut(), bytes, access, flags, fd, offset as i64) };
    match NonNull::new(start.cast()) {
        Some(words) if start != libc::MAP_FAILED => Ok(SharedWords { words, count }),
        _ => Err(io::Error::last_os_error()),
    }
}
