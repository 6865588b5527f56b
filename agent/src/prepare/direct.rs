//! Does direct I/O work here? A file is written past the page cache, read back and compared.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;

use super::scratch::held_by;
use crate::error::{Error, Result, sentence};
use crate::lease::Aside;
use crate::sys::storage::{DIRECT, direct_alignment};

/// Alignments to try where the kernel does not tell: a 512-byte sector up to a large folio.
const SMALLEST: u64 = 512;
const LARGEST: u64 = 64 << 10;

/// What trying the target told.
#[derive(Debug, Serialize)]
pub struct Probed {
    /// Why direct I/O does not work; null when it does.
    pub direct_error: Option<String>,
    /// The smallest block that works, as the kernel tells or as tried.
    pub direct_align_bytes: Option<u64>,
    /// Who holds a scratch folder here.
    pub held_by: Option<String>,
    /// Why no file system can be mounted for runs alone; null when it can, or nobody asked.
    pub mount_error: Option<String>,
    /// Why a run's memory cannot be bounded; null when it can, or nobody asked.
    pub memory_error: Option<String>,
}

/// Try direct I/O in the folder `path` with a file at `aside` that is gone when this returns.
pub fn probe(path: &Path, aside: Aside) -> Result<Probed> {
    let held_by = held_by(path);
    File::create_new(&aside.path)
        .map_err(|error| Error::io(format_args!("make a file in {}", path.display()), &error))?;
    let outcome = try_direct(aside);
    let (direct_error, direct_align_bytes) = match outcome {
        Ok(align) => (None, Some(align)),
        Err(error) => {
            let says =
                format!("O_DIRECT does not work in {}: {}", path.display(), sentence(&error));
            (Some(says), None)
        }
    };
    let (mount_error, memory_error) = (None, None);
    Ok(Probed { direct_error, direct_align_bytes, held_by, mount_error, memory_error })
}

fn try_direct(aside: Aside) -> io::Result<u64> {
    let file = &aside.path;
    let open = OpenOptions::new().read(true).write(true).custom_flags(DIRECT).open(file)?;
    let known = direct_alignment(file);
    drop(aside); // An agent that is killed while the disk is slow leaves no file.
    if let Some(align) = known {
        return write_and_read(&open, align.clamp(SMALLEST, LARGEST)).map(|()| align);
    }
    let mut align = SMALLEST;
    loop {
        match write_and_read(&open, align) {
            Ok(()) => return Ok(align),
            Err(error) if align >= LARGEST => return Err(error),
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
            Err(_) => align *= 2,
        }
    }
}

fn write_and_read(file: &File, align: u64) -> io::Result<()> {
    let block = align as usize;
    let mut memory = Aligned::new(block);
    let pattern = |n: usize| (n % 251) as u8;
    for (n, byte) in memory.block().iter_mut().enumerate() {
        *byte = pattern(n);
    }
    file.write_all_at(memory.block(), 0)?;
    memory.block().fill(0);
    file.read_exact_at(memory.block(), 0)?;
    if memory.block().iter().enumerate().any(|(n, &byte)| byte != pattern(n)) {
        return Err(io::Error::other("what was read back is not what was written"));
    }
    Ok(())
}

/// A block of memory that starts at a multiple of its length.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length * 2];
        let start = bytes.as_ptr().align_offset(length);
        Self { bytes, start, length }
    }

    fn block(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_aligned() {
        for length in [512, 4096, 65_536] {
            let mut memory = Aligned::new(length);
            assert_eq!(memory.block().as_ptr() as usize % length, 0);
            assert_eq!(memory.block().len(), length);
        }
    }
}
