//! Pages of a file before a run: whether they can go past the cache, lie on the disk, and are cold.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use std::{io, thread};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::scratch::{Holders, holders, movable_by};
use crate::error::{Context, Result, io_error_text};
use crate::lease::{ResolvedFile, TemporaryFile};
use crate::sys::block::{
    Extent, O_DIRECT, SeekPart, cached_pages, direct_alignment, file_guarantees, for_each_extent,
    mapped_resident_pages, seek_data_or_hole,
};
use crate::sys::file::{can_write, drop_cached_pages, sync_all};
use crate::sys::time::page_bytes;

/// Alignments to try where the kernel does not tell: a 512-byte sector up to a large folio.
const MIN_ALIGNMENT: u64 = 512;
const MAX_ALIGNMENT: u64 = 64 << 10;

/// What trying the target told.
#[derive(Debug, Serialize)]
pub struct TargetProbe {
    /// Why direct I/O does not work; null when it does.
    pub direct_error: Option<String>,
    /// The smallest block that works, as the kernel tells or as tried.
    pub direct_align_bytes: Option<u64>,
    /// Who holds a scratch folder here.
    pub held_by: Option<String>,
    /// Who of another user's holds one: that stops nobody.
    pub other_user: Option<String>,
    /// Who else may move a scratch folder that is made here; null for nobody but root.
    pub movable_by: Option<String>,
    /// Why no file system can be mounted for runs alone; null when it can, or nobody asked.
    pub mount_error: Option<String>,
    /// Why a run's memory cannot be bounded; null when it can, or nobody asked.
    pub memory_error: Option<String>,
}

/// Try direct I/O in the folder `path` with a file at `aside` that is gone when this returns.
pub fn probe_target(path: &Path, aside: TemporaryFile) -> Result<TargetProbe> {
    let Holders { own: held_by, other: other_user } = holders(path);
    let movable_by = movable_by(path);
    File::create_new(&aside.path).context(format_args!("make a file in {}", path.display()))?;
    let outcome = try_direct(aside);
    let (direct_error, direct_align_bytes) = match outcome {
        Ok(align) => (None, Some(align)),
        Err(error) => {
            let message =
                format!("O_DIRECT does not work in {}: {}", path.display(), io_error_text(&error));
            (Some(message), None)
        }
    };
    let (mount_error, memory_error) = (None, None);
    Ok(TargetProbe {
        direct_error,
        direct_align_bytes,
        held_by,
        other_user,
        movable_by,
        mount_error,
        memory_error,
    })
}

fn try_direct(aside: TemporaryFile) -> io::Result<u64> {
    let file = &aside.path;
    let open = OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(file)?;
    let known = direct_alignment(file);
    drop(aside); // An agent that is killed while the disk is slow leaves no file.
    if let Some(align) = known {
        return write_and_read(&open, align.clamp(MIN_ALIGNMENT, MAX_ALIGNMENT)).map(|()| align);
    }
    let mut align = MIN_ALIGNMENT;
    loop {
        match write_and_read(&open, align) {
            Ok(()) => return Ok(align),
            Err(error) if align >= MAX_ALIGNMENT => return Err(error),
            Err(error) if error.raw_os_error() != Some(libc::EINVAL) => return Err(error),
            Err(_) => align *= 2,
        }
    }
}

fn write_and_read(file: &File, align: u64) -> io::Result<()> {
    let block = align as usize;
    let mut memory = AlignedBuffer::new(block);
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
struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    fn new(length: usize) -> Self {
        let bytes = vec![0; length * 2];
        let start = bytes.as_ptr().align_offset(length);
        Self { bytes, start, length }
    }

    fn block(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// How the answer was found, from the best evidence to the weakest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtentMethod {
    /// The file system's extent map: tells written from unwritten.
    #[default]
    Fiemap,
    /// `SEEK_DATA` and `SEEK_HOLE`, which count unwritten extents as holes.
    Seek,
    /// Fewer blocks allocated than `SEEK_DATA` claims stored: their number is the evidence.
    Blocks,
}

/// The sum over all files; `method` is the weakest that one of them needed.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExtentTotals {
    /// How it was found.
    pub method: ExtentMethod,
    /// Files looked at.
    pub file_count: u64,
    /// Their sizes.
    pub size_bytes: u64,
    /// Bytes that are stored.
    pub written_bytes: u64,
    /// Bytes allocated, never written.
    pub unwritten_bytes: u64,
    /// Bytes not even allocated.
    pub hole_bytes: u64,
    /// A digest of which files they are; null where inode numbers do not last.
    pub identity: Option<String>,
    /// A digest of where their bytes lie on the device; null where writes may move them.
    pub places: Option<String>,
}

/// Look at all files; each must be a regular one.
pub fn extent_totals(paths: &[ResolvedFile]) -> Result<ExtentTotals> {
    let mut sum = ExtentTotals::default();
    let (mut identity, mut places) = (Some(Sha256::new()), Some(Sha256::new()));
    for path in paths {
        let extents =
            file_extents(&path.real).context(format_args!("map {}", path.name.display()))?;
        identity = identity.zip(extents.identity).map(|(sum, [device, inode])| {
            sum.chain_update(device.to_le_bytes()).chain_update(inode.to_le_bytes())
        });
        places = places.zip(extents.places).map(|(sum, of_file)| sum.chain_update(of_file));
        sum.method = sum.method.max(extents.method);
        sum.file_count += 1;
        sum.size_bytes += extents.size_bytes;
        sum.written_bytes += extents.written_bytes;
        sum.unwritten_bytes += extents.unwritten_bytes;
        sum.hole_bytes += extents.size_bytes - extents.written_bytes - extents.unwritten_bytes;
    }
    let hex = |sum: Sha256| format!("{:x}", sum.finalize());
    (sum.identity, sum.places) = (identity.map(hex), places.map(hex));
    Ok(sum)
}

struct FileExtents {
    method: ExtentMethod,
    size_bytes: u64,
    written_bytes: u64,
    unwritten_bytes: u64,
    identity: Option<[u64; 2]>,
    places: Option<[u8; 32]>,
}

fn file_extents(path: &Path) -> io::Result<FileExtents> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let promised = file_guarantees(&file);
    let mut extents = match extents_by_fiemap(&file, meta.len()) {
        Err(error) if is_fiemap_unsupported(&error) => extents_by_seek(&file),
        outcome => outcome,
    }?;
    extents.identity = promised.has_stable_inode.then(|| [meta.dev(), meta.ino()]);
    extents.places = extents.places.filter(|_| promised.in_place);
    Ok(extents)
}

fn is_fiemap_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ENOSYS)
    )
}

fn extents_by_fiemap(file: &File, size_bytes: u64) -> io::Result<FileExtents> {
    let mut extents = FileExtents {
        method: ExtentMethod::Fiemap,
        size_bytes,
        written_bytes: 0,
        unwritten_bytes: 0,
        identity: None,
        places: None,
    };
    let mut places = PlacementDigest::default();
    for_each_extent(file, |extent| {
        let bytes = bytes_within(extent, size_bytes);
        places.add(extent);
        if extent.unwritten {
            extents.unwritten_bytes += bytes;
        } else {
            extents.written_bytes += bytes;
        }
    })?;
    extents.places = places.digest();
    Ok(extents)
}

/// Where a file's bytes lie on the device, whichever way the map cuts them into extents: how far
/// each is from its place in the file, and from where on.
struct PlacementDigest {
    sum: Option<Sha256>,
    end: u64,
    distance: Option<u64>,
}

impl Default for PlacementDigest {
    fn default() -> Self {
        Self { sum: Some(Sha256::new()), end: 0, distance: None }
    }
}

impl PlacementDigest {
    fn add(&mut self, extent: Extent) {
        let Some(place) = extent.physical else { return self.sum = None };
        let distance = place.wrapping_sub(extent.offset);
        if self.distance != Some(distance) || self.end != extent.offset {
            for number in [self.end, extent.offset, distance] {
                self.sum = self.sum.take().map(|sum| sum.chain_update(number.to_le_bytes()));
            }
        }
        (self.end, self.distance) = (extent.offset.saturating_add(extent.length), Some(distance));
    }

    fn digest(mut self) -> Option<[u8; 32]> {
        let sum = self.sum.take()?;
        Some(sum.chain_update(self.end.to_le_bytes()).finalize().into())
    }
}

/// The part of an extent before the end of the file: the last one is rounded up to a block.
fn bytes_within(extent: Extent, size_bytes: u64) -> u64 {
    let end = extent.offset.saturating_add(extent.length).min(size_bytes);
    end.saturating_sub(extent.offset)
}

fn extents_by_seek(file: &File) -> io::Result<FileExtents> {
    file.sync_all()?; // Blocks of dirty pages may not be counted before they are written.
    let meta = file.metadata()?;
    let size_bytes = meta.len();
    let mut stored = 0;
    let mut at = 0;
    while let Some(start) = seek_data_or_hole(file, at, SeekPart::Stored)? {
        let end =
            seek_data_or_hole(file, start, SeekPart::Hole)?.unwrap_or(size_bytes).min(size_bytes);
        if end <= start {
            break;
        }
        stored += end - start;
        at = end;
    }
    // A file system without holes in its vocabulary calls the whole file stored.
    let allocated = meta.blocks().saturating_mul(512);
    let method = if allocated < stored { ExtentMethod::Blocks } else { ExtentMethod::Seek };
    Ok(FileExtents {
        method,
        size_bytes,
        written_bytes: stored.min(allocated),
        unwritten_bytes: 0,
        identity: None,
        places: None,
    })
}

/// Page cache, dentries and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Pages that somebody holds for a moment, such as a journal that commits them, stay when the kernel
/// is asked to forget them: it is asked again.
const EVICT_TRIES: u32 = 5;
const EVICT_PAUSE: Duration = Duration::from_millis(20);

/// What eviction did.
#[derive(Debug, Serialize)]
pub struct EvictionResult {
    /// Bytes of the files in the page cache before; null if they cannot be counted.
    pub resident_bytes_before: Option<u64>,
    /// The same after.
    pub resident_bytes_after: Option<u64>,
    /// What was done, in order: `fsync`, `fadvise`, `drop_caches`.
    pub methods: Vec<&'static str>,
    /// What could not be done and why.
    pub faults: Vec<String>,
}

/// Write and forget the pages of `paths`; with `whole_system` also what the kernel will drop.
pub fn evict_pages(paths: &[ResolvedFile], whole_system: bool) -> Result<EvictionResult> {
    for path in paths {
        File::open(&path.real).context(format_args!("open {}", path.name.display()))?;
    }
    let mut evicted = EvictionResult {
        resident_bytes_before: resident_bytes(paths),
        resident_bytes_after: None,
        methods: Vec::new(),
        faults: Vec::new(),
    };
    if !paths.is_empty() {
        evicted.note("fsync", for_each_file(paths, File::sync_all));
        evicted.note("fadvise", for_each_file(paths, drop_cached_pages));
    }
    if whole_system {
        sync_all();
        evicted.note("drop_caches", fs::write(DROP_CACHES, "3"));
    }
    evicted.resident_bytes_after = resident_bytes(paths);
    for _ in 1..EVICT_TRIES {
        if evicted.resident_bytes_after.is_none_or(|bytes| bytes == 0) {
            break;
        }
        thread::sleep(EVICT_PAUSE);
        let _ = for_each_file(paths, drop_cached_pages); // It went well above, or was told.
        evicted.resident_bytes_after = resident_bytes(paths);
    }
    Ok(evicted)
}

impl EvictionResult {
    fn note(&mut self, method: &'static str, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => self.methods.push(method),
            Err(error) => self.faults.push(format!("{method} failed: {}", io_error_text(&error))),
        }
    }
}

/// One file open at a time: a data set can have more files than a process may open.
fn for_each_file(paths: &[ResolvedFile], act: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    paths.iter().try_for_each(|path| act(&File::open(&path.real)?))
}

/// Bytes of files in the page cache, by cachestat or else mincore; None when neither can tell:
/// mincore calls every page of another user's file resident.
fn resident_bytes(paths: &[ResolvedFile]) -> Option<u64> {
    let page = page_bytes();
    let pages = |path: &ResolvedFile| {
        let file = File::open(&path.real).ok()?;
        cached_pages(&file).ok().or_else(|| {
            can_write(&path.real).then(|| mapped_resident_pages(&file, page).ok()).flatten()
        })
    };
    paths.iter().map(pages).sum::<Option<u64>>().map(|pages| pages * page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn a_block_is_aligned() {
        for length in [512, 4096, 65_536] {
            let mut memory = AlignedBuffer::new(length);
            assert_eq!(memory.block().as_ptr() as usize % length, 0);
            assert_eq!(memory.block().len(), length);
        }
    }

    #[test]
    fn an_extent_is_cut_at_the_end_of_the_file() {
        let extent = |offset, length| Extent { offset, length, unwritten: false, physical: None };
        assert_eq!(bytes_within(extent(0, 4096), 100), 100);
        assert_eq!(bytes_within(extent(4096, 4096), 8192), 4096);
        assert_eq!(bytes_within(extent(8192, 4096), 8192), 0);
        assert_eq!(bytes_within(extent(u64::MAX - 1, 4096), u64::MAX), 1);
    }

    #[test]
    fn the_weakest_method_is_told() {
        assert!(
            ExtentMethod::Fiemap < ExtentMethod::Seek && ExtentMethod::Seek < ExtentMethod::Blocks
        );
    }

    #[test]
    fn a_missing_file_and_a_folder_are_errors_with_their_path() {
        let error = extent_totals(&[Path::new("/nowhere/x").to_owned().into()]).unwrap_err();
        assert_eq!((error.code.as_str(), error.message.contains("/nowhere/x")), ("ENOENT", true));
        assert!(
            extent_totals(&[Path::new("/").to_owned().into()])
                .unwrap_err()
                .message
                .contains("not a regular file")
        );
    }

    #[test]
    fn both_ways_of_counting_agree_on_a_file_just_written() {
        let folder = TestFolder::new();
        folder.put("file", &"x".repeat(300_000));
        let file = File::open(folder.path().join("file")).unwrap();
        let pages = 300_000_u64.div_ceil(page_bytes());
        assert_eq!(mapped_resident_pages(&file, page_bytes()).unwrap(), pages);
        assert_eq!(cached_pages(&file).unwrap_or(pages), pages);
    }

    #[test]
    fn places_are_the_same_however_the_map_cuts_them() {
        let extent =
            |offset, length, place| Extent { offset, length, unwritten: false, physical: place };
        let digest = |extents: &[Extent]| {
            let mut places = PlacementDigest::default();
            for &one in extents {
                places.add(one);
            }
            places.digest()
        };
        let whole = digest(&[extent(0, 8, Some(100))]);
        assert!(whole.is_some());
        assert_eq!(digest(&[extent(0, 4, Some(100)), extent(4, 4, Some(104))]), whole);
        assert_ne!(digest(&[extent(0, 4, Some(100)), extent(4, 4, Some(105))]), whole);
        assert_ne!(digest(&[extent(0, 4, Some(100))]), whole);
        assert_ne!(digest(&[extent(0, 4, Some(100)), extent(5, 3, Some(105))]), whole);
        assert_eq!(digest(&[extent(0, 8, None)]), None);
    }

    #[test]
    fn a_file_that_was_replaced_has_another_identity() {
        let folder = TestFolder::new();
        let path = folder.path().join("file");
        folder.put("file", "12345");
        let look = || extent_totals(&[path.clone().into()]).unwrap();
        let first = look();
        assert_eq!(look(), first);
        folder.put("other", "12345");
        fs::rename(folder.path().join("other"), &path).unwrap();
        let other = look();
        assert!(first.identity.is_none() || other.identity != first.identity);
    }

    #[test]
    fn nothing_to_evict_does_nothing() {
        let evicted = evict_pages(&[], false).unwrap();
        assert_eq!((evicted.resident_bytes_before, evicted.methods.len()), (Some(0), 0));
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert_eq!(
            evict_pages(&[Path::new("/nowhere/x").to_owned().into()], false).unwrap_err().code,
            "ENOENT"
        );
    }
}
