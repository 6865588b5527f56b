//! Blocks of a file moved by one blocking system call each, and what a file wants of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::slice;

use rustix::fs::{self as calls, AtFlags, CWD, FallocateFlags, OFlags, SeekFrom, StatxFlags};
use rustix::io::{Errno, pread, pwrite};

use crate::sys::buffer::Block;
use crate::sys::check_result;
use crate::sys::file::open_beneath;

/// `_IOR(0x12, 114, size_t)` of linux/fs.h.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;

/// How a target is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of open")]
pub struct TargetOpenOptions {
    /// For writing too.
    pub writes: bool,
    /// Past the page cache.
    pub direct: bool,
    /// Refused where the block device is mounted or held by somebody else.
    pub exclusive: bool,
    /// By whatever way it is named; else a relative path leads through no link.
    pub follow_links: bool,
    /// Made if it is not there; never through a link, which may lead out of the folder.
    pub create: bool,
}

/// Open a target.
pub fn open_target(path: &Path, how: TargetOpenOptions) -> Result<File> {
    let mut flags = OFlags::empty();
    flags.set(OFlags::DIRECT, how.direct);
    flags.set(OFlags::EXCL, how.exclusive);
    flags.set(OFlags::NOFOLLOW, how.create);
    if path.is_relative() && !how.follow_links {
        return open_relative(path, how, flags);
    }
    let mut options = OpenOptions::new();
    options.read(true).write(how.writes);
    if how.create {
        options.create(true).truncate(false).mode(0o600);
    }
    // Reads need not be noted in the file, as only its owner may say.
    match options.custom_flags(as_custom_flags(flags | OFlags::NOATIME)).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            options.custom_flags(as_custom_flags(flags)).open(path)
        }
        opened => opened,
    }
}

/// The flags of an open as Rust's own library takes them.
fn as_custom_flags(flags: OFlags) -> i32 {
    flags.bits() as i32
}

/// A file of the working directory, which is ours: no link in it leads anywhere.
fn open_relative(path: &Path, how: TargetOpenOptions, mut flags: OFlags) -> Result<File> {
    flags |= if how.writes { OFlags::RDWR } else { OFlags::RDONLY };
    flags.set(OFlags::CREATE, how.create);
    match open_beneath(None, path, flags | OFlags::NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => open_beneath(None, path, flags),
        opened => opened,
    }
}

/// Read into a block; how many bytes came.
#[inline]
pub fn read_block(file: &File, block: Block, offset: u64) -> Result<usize> {
    // SAFETY: a block is memory that is mapped for ever, and nothing else uses it meanwhile.
    let bytes = unsafe { slice::from_raw_parts_mut(block.start(), block.bytes()) };
    Ok(pread(file, bytes, offset)?)
}

/// Write a block; how many bytes were taken.
#[inline]
pub fn write_block(file: &File, block: Block, offset: u64) -> Result<usize> {
    // SAFETY: a block is memory that is mapped for ever, and nobody changes it meanwhile.
    let bytes = unsafe { slice::from_raw_parts(block.start(), block.bytes()) };
    Ok(pwrite(file, bytes, offset)?)
}

/// Read into a block only if that needs no waiting: `EAGAIN` where it does, `EOPNOTSUPP` where the
/// target cannot tell.
pub fn read_block_now(file: &File, block: Block, offset: u64) -> Result<usize> {
    let part = libc::iovec { iov_base: block.start().cast(), iov_len: block.bytes() };
    let (fd, offset) = (file.as_raw_fd(), offset as i64);
    // SAFETY: one part, which is memory that is mapped for ever.
    let read = unsafe { libc::preadv2(fd, &raw const part, 1, offset, libc::RWF_NOWAIT) };
    Ok(check_result(read)? as usize)
}

/// Have all that was written to a file be kept.
pub fn fsync(file: &File) -> Result<()> {
    Ok(calls::fsync(file)?)
}

/// Give back a range: discarded on a device, a hole in a file.
pub fn trim_range(file: &File, is_device: IsDevice, offset: u64, bytes: u64) -> Result<()> {
    if is_device == IsDevice::Yes {
        return discard_range(file, offset, bytes);
    }
    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(calls::fallocate(file, mode, offset, bytes)?)
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
    match calls::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP) if file.metadata()?.len() < bytes => file.set_len(bytes),
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The size of a block device.
pub fn device_bytes(device: &File) -> Result<u64> {
    let mut bytes = 0_u64;
    // SAFETY: the request writes one 64-bit number.
    check_result(unsafe { libc::ioctl(device.as_raw_fd(), BLKGETSIZE64, &raw mut bytes) })?;
    Ok(bytes)
}

/// The smallest unit in which a block device takes I/O.
pub fn device_sector_bytes(device: &File) -> Result<u64> {
    Ok(u64::from(calls::ioctl_blksszget(device)?))
}

/// The processors that this thread may run on.
#[must_use]
pub fn allowed_processors() -> usize {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) if set.count() > 0 => set.count() as usize,
        // More processors than the set has room for.
        _ => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// `_IOWR('f', 11, struct fiemap)` of linux/fs.h.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// `_IO(0x12, 119)` of linux/fs.h.
const BLKDISCARD: libc::Ioctl = 0x1277;
/// `_IOWR('X', 121, struct fstrim_range)` of linux/fs.h.
const FITRIM: libc::Ioctl = 0xC018_5879_u32 as libc::Ioctl;
const FIEMAP_FLAG_SYNC: u32 = 0x1;
const FIEMAP_EXTENT_LAST: u32 = 0x1;
/// Unknown, delayed, encoded, not aligned, inline or shared: no place on the device of its own.
const FIEMAP_EXTENT_UNPLACED: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x2000;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents asked for in one call: 14 KiB of buffer, few calls even for a fragmented file.
const EXTENTS_PER_CALL: usize = 256;
/// cachestat has the same number on every architecture (Linux 6.5).
const SYS_CACHESTAT: libc::c_long = 451;
/// Bytes mapped at a time to count resident pages: 256 Ki pages, a 256 KiB answer.
const MINCORE_WINDOW_BYTES: u64 = 1 << 30;

/// One extent of a file as FIEMAP tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length; the last one may reach past the end of the file.
    pub length: u64,
    /// Allocated but never written: reads give zeros without asking the device.
    pub unwritten: bool,
    /// Its first byte on the device; None where the map does not tell it, or others share it.
    pub physical: Option<u64>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_PER_CALL],
}

/// Call `each` with every extent of a file, in order, after writing its dirty pages.
pub fn for_each_extent(file: &File, mut each: impl FnMut(Extent)) -> io::Result<()> {
    let empty = RawExtent {
        logical: 0,
        physical: 0,
        length: 0,
        reserved64: [0; 2],
        flags: 0,
        reserved: [0; 3],
    };
    let mut start = 0;
    loop {
        let mut map = Box::new(RawMap {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: EXTENTS_PER_CALL as u32,
            reserved: 0,
            extents: [empty; EXTENTS_PER_CALL],
        });
        // SAFETY: `map` has room for the `extent_count` extents that it announces.
        check_result(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *map) })?;
        let mapped = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_PER_CALL)];
        for extent in mapped {
            let unwritten = extent.flags & FIEMAP_EXTENT_UNWRITTEN != 0;
            let is_placed = extent.flags & FIEMAP_EXTENT_UNPLACED == 0;
            each(Extent {
                offset: extent.logical,
                length: extent.length,
                unwritten,
                physical: is_placed.then_some(extent.physical),
            });
        }
        let Some(last) = mapped.last() else { return Ok(()) };
        let next = last.logical.saturating_add(last.length);
        if last.flags & FIEMAP_EXTENT_LAST != 0 || next <= start {
            return Ok(());
        }
        start = next;
    }
}

/// What file systems that write in place bear in statfs.
const EXT4_MAGIC: i64 = 0xEF53;
const XFS_MAGIC: i64 = 0x5846_5342;
/// The same of others whose inode numbers last as long as their files: not those of FUSE and SMB.
const STABLE_INODE_MAGICS: [i64; 9] = [
    EXT4_MAGIC,
    XFS_MAGIC,
    0x9123_683E, // btrfs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0x0102_1994, // tmpfs
    0x6969,      // NFS
    0x0BD0_0BD0, // Lustre
    0x00C3_6400, // Ceph
];
/// `_IOR('X', 31, struct fsxattr)`.
const FS_IOC_FSGETXATTR: libc::Ioctl = 0x801c_581f_u32 as libc::Ioctl;
/// A file on a device of its own of an XFS, which may be zoned and then never writes in place.
const FS_XFLAG_REALTIME: u32 = 1;

/// What the file system of a file promises of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileGuarantees {
    /// Its inode number names it as long as it is there.
    pub has_stable_inode: bool,
    /// What is written again is written to the same place.
    pub in_place: bool,
}

/// What is promised of a file; nothing where it is not known.
#[must_use]
pub fn file_guarantees(file: &File) -> FileGuarantees {
    #[allow(clippy::unnecessary_cast, reason = "its type differs between architectures")]
    let magic = calls::fstatfs(file).map_or(0, |stat| stat.f_type as i64 & 0xFFFF_FFFF);
    let mut attributes = [0_u32; 7];
    // SAFETY: the request writes a structure of 28 bytes.
    let asked = check_result(unsafe {
        libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR, attributes.as_mut_ptr())
    });
    let is_plain = asked.is_ok() && attributes[0] & FS_XFLAG_REALTIME == 0;
    FileGuarantees {
        has_stable_inode: STABLE_INODE_MAGICS.contains(&magic),
        in_place: matches!(magic, EXT4_MAGIC | XFS_MAGIC) && is_plain,
    }
}

/// Which part of a file `seek` looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekPart {
    /// Bytes that are stored.
    Stored,
    /// Bytes that are not; the end of the file counts as one.
    Hole,
}

/// The first offset from `from` on that is stored or a hole; None past the last of it.
pub fn seek_data_or_hole(file: &File, from: u64, part: SeekPart) -> io::Result<Option<u64>> {
    let part = match part {
        SeekPart::Stored => SeekFrom::Data(from),
        SeekPart::Hole => SeekFrom::Hole(from),
    };
    match calls::seek(file, part) {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Pages of a file that are in the page cache, by cachestat; fails where the kernel has none.
pub fn cached_pages(file: &File) -> io::Result<u64> {
    #[repr(C)]
    #[derive(Default)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Counts {
        cache: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range::default();
    let mut counts = Counts::default();
    // SAFETY: both structures have the kernel's layout; a length of zero means to the end.
    check_result(unsafe {
        let (range, counts) = (&raw const range, &raw mut counts);
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range, counts, 0_u32)
    })?;
    Ok(counts.cache)
}

/// The same by mincore over a mapping, for older kernels.
pub fn mapped_resident_pages(file: &File, page_bytes: u64) -> io::Result<u64> {
    let size = file.metadata()?.len();
    let mut resident = 0;
    let mut offset = 0;
    while offset < size {
        let length = (size - offset).min(MINCORE_WINDOW_BYTES);
        resident += resident_in_window(file, offset, length, page_bytes)?;
        offset += length;
    }
    Ok(resident)
}

fn resident_in_window(file: &File, offset: u64, length: u64, page_bytes: u64) -> io::Result<u64> {
    let mut pages = vec![0_u8; length.div_ceil(page_bytes) as usize];
    let bytes = length as usize;
    // SAFETY: the mapping is never read, only asked about, and unmapped before return; `pages`
    // has one byte for each page of it.
    unsafe {
        let map = libc::mmap64(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as i64,
        );
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let asked = check_result(libc::mincore(map, bytes, pages.as_mut_ptr()));
        libc::munmap(map, bytes);
        asked?;
    }
    Ok(pages.iter().filter(|&&page| page & 1 == 1).count() as u64)
}

/// The alignment of offsets that direct I/O needs on a file; None where the kernel cannot say.
#[must_use]
pub fn direct_alignment(path: &Path) -> Option<u64> {
    let stat = calls::statx(CWD, path, AtFlags::empty(), StatxFlags::DIOALIGN).ok()?;
    let known = stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && stat.stx_dio_offset_align != 0;
    known.then(|| u64::from(stat.stx_dio_offset_align.max(stat.stx_dio_mem_align)))
}

/// Tell a block device that a range of it is not needed any more.
pub fn discard_range(device: &File, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: the request reads two numbers, an offset and a length.
    check_result(unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, range.as_ptr()) }).map(drop)
}

/// Tell the devices below a file system which of its blocks are free; how many bytes it told.
pub fn trim_file_system(folder: &File) -> io::Result<u64> {
    let mut range = [0, u64::MAX, 0];
    // SAFETY: the request reads and writes three numbers: start, length, smallest extent.
    check_result(unsafe { libc::ioctl(folder.as_raw_fd(), FITRIM, range.as_mut_ptr()) })?;
    Ok(range[1])
}

/// The open flag that bypasses the page cache.
pub const O_DIRECT: i32 = libc::O_DIRECT;
