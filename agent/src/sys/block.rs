//! Blocks of a file moved by one blocking system call each, and what a file wants of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Result};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{check, storage};
use crate::native::buffer::Block;

/// `_IOR(0x12, 114, size_t)` of linux/fs.h.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
/// `_IO(0x12, 104)` of linux/fs.h.
const BLKSSZGET: libc::Ioctl = 0x1268;

/// How a target is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of open")]
pub struct Opening {
    /// For writing too.
    pub writes: bool,
    /// Past the page cache.
    pub direct: bool,
    /// Refused where the block device is mounted or held by somebody else.
    pub alone: bool,
    /// Made if it is not there; never through a link, which may lead out of the folder.
    pub create: bool,
}

/// Open a target.
pub fn open_target(path: &Path, how: Opening) -> Result<File> {
    let direct = if how.direct { libc::O_DIRECT } else { 0 };
    let alone = if how.alone { libc::O_EXCL } else { 0 };
    let own = if how.create { libc::O_NOFOLLOW } else { 0 };
    let flags = direct | alone | own;
    let mut options = OpenOptions::new();
    options.read(true).write(how.writes);
    if how.create {
        options.create(true).truncate(false).mode(0o600);
    }
    // Reads need not be noted in the file, as only its owner may say.
    match options.custom_flags(flags | libc::O_NOATIME).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            options.custom_flags(flags).open(path)
        }
        opened => opened,
    }
}

/// Read into a block; how many bytes came.
pub fn read_block(file: &File, block: Block, offset: u64) -> Result<usize> {
    let (start, bytes) = (block.start().cast(), block.bytes());
    // SAFETY: a block is memory that is mapped for ever, and nothing else uses it meanwhile.
    let read = check(unsafe { libc::pread64(file.as_raw_fd(), start, bytes, offset as i64) })?;
    Ok(read as usize)
}

/// Write a block; how many bytes were taken.
pub fn write_block(file: &File, block: Block, offset: u64) -> Result<usize> {
    let (start, bytes) = (block.start().cast(), block.bytes());
    // SAFETY: a block is memory that is mapped for ever.
    let written = check(unsafe { libc::pwrite64(file.as_raw_fd(), start, bytes, offset as i64) })?;
    Ok(written as usize)
}

/// Read into a block only if that needs no waiting: `EAGAIN` where it does, `EOPNOTSUPP` where the
/// target cannot tell.
pub fn read_block_now(file: &File, block: Block, offset: u64) -> Result<usize> {
    let part = libc::iovec { iov_base: block.start().cast(), iov_len: block.bytes() };
    let (fd, offset) = (file.as_raw_fd(), offset as i64);
    // SAFETY: one part, which is memory that is mapped for ever.
    let read = unsafe { libc::preadv2(fd, &raw const part, 1, offset, libc::RWF_NOWAIT) };
    Ok(check(read)? as usize)
}

/// Have all that was written to a file be kept.
pub fn keep(file: &File) -> Result<()> {
    // SAFETY: fsync of an open descriptor touches no memory.
    check(unsafe { libc::fsync(file.as_raw_fd()) }).map(drop)
}

/// Give back a range: discarded on a device, a hole in a file.
pub fn trim_range(file: &File, is_device: IsDevice, offset: u64, bytes: u64) -> Result<()> {
    if is_device == IsDevice::Yes {
        return storage::discard(file, offset, bytes);
    }
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let (fd, offset, bytes) = (file.as_raw_fd(), offset as i64, bytes as i64);
    // SAFETY: fallocate of an open descriptor touches no memory.
    check(unsafe { libc::fallocate64(fd, mode, offset, bytes) }).map(drop)
}

/// Whether a target is a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsDevice {
    /// It is one.
    Yes,
    /// A file.
    No,
}

/// Make a file at least so long, its blocks reserved where the file system can do that.
pub fn allocate(file: &File, bytes: u64) -> Result<()> {
    // SAFETY: fallocate of an open descriptor touches no memory.
    let made = check(unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, bytes as i64) });
    match made.map_err(|error| error.raw_os_error()) {
        Err(Some(libc::EOPNOTSUPP)) if file.metadata()?.len() < bytes => file.set_len(bytes),
        Ok(_) | Err(Some(libc::EOPNOTSUPP)) => Ok(()),
        Err(Some(errno)) => Err(io::Error::from_raw_os_error(errno)),
        Err(None) => Err(io::Error::other("fallocate failed")),
    }
}

/// The size of a block device.
pub fn device_bytes(device: &File) -> Result<u64> {
    let mut bytes = 0_u64;
    // SAFETY: the request writes one 64-bit number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) })?;
    Ok(bytes)
}

/// The smallest unit in which a block device takes I/O.
pub fn device_sector_bytes(device: &File) -> Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes one int.
    check(unsafe { libc::ioctl(device.as_raw_fd(), BLKSSZGET, &raw mut bytes) })?;
    Ok(bytes as u64)
}

/// The processors that this thread may run on.
#[must_use]
pub fn allowed_processors() -> usize {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is valid for writing, of the size told, and zeros are a value.
    let count = unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr());
        libc::CPU_COUNT(&set.assume_init())
    };
    // More processors than the set has room for: the call fails and the set is empty.
    if count > 0 {
        return count as usize;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}
