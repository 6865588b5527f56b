//! Which bytes of files are really stored: a hole or an unwritten extent is read without any I/O.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::sys::storage::{Extent, Part, for_each_extent, seek};

/// How the answer was found, from the best evidence to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The file system's extent map: tells written from unwritten.
    Fiemap,
    /// `SEEK_DATA` and `SEEK_HOLE`, which count unwritten extents as holes.
    Seek,
    /// Fewer blocks allocated than `SEEK_DATA` claims stored: their number is the evidence.
    Blocks,
}

/// The sum over all files; `method` is the weakest that one of them needed.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Extents {
    /// How it was found.
    pub method: Method,
    /// Files looked at.
    pub files: u64,
    /// Their sizes.
    pub size_bytes: u64,
    /// Bytes that are stored.
    pub written_bytes: u64,
    /// Bytes allocated, never written.
    pub unwritten_bytes: u64,
    /// Bytes not even allocated.
    pub hole_bytes: u64,
}

/// Look at all files; each must be a regular one.
pub fn prove(paths: &[PathBuf]) -> Result<Extents> {
    let mut sum = Extents {
        method: Method::Fiemap,
        files: 0,
        size_bytes: 0,
        written_bytes: 0,
        unwritten_bytes: 0,
        hole_bytes: 0,
    };
    for path in paths {
        let one = of_file(path)
            .map_err(|error| Error::io(format_args!("map {}", path.display()), &error))?;
        sum.method = sum.method.max(one.method);
        sum.files += 1;
        sum.size_bytes += one.size_bytes;
        sum.written_bytes += one.written_bytes;
        sum.unwritten_bytes += one.unwritten_bytes;
        sum.hole_bytes += one.size_bytes - one.written_bytes - one.unwritten_bytes;
    }
    Ok(sum)
}

struct OneFile {
    method: Method,
    size_bytes: u64,
    written_bytes: u64,
    unwritten_bytes: u64,
}

fn of_file(path: &Path) -> io::Result<OneFile> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    match by_map(&file, meta.len()) {
        Err(error) if has_no_map(&error) => by_seek(&file),
        outcome => outcome,
    }
}

fn has_no_map(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ENOSYS)
    )
}

fn by_map(file: &File, size_bytes: u64) -> io::Result<OneFile> {
    let mut one =
        OneFile { method: Method::Fiemap, size_bytes, written_bytes: 0, unwritten_bytes: 0 };
    for_each_extent(file, |extent| {
        let bytes = bytes_within(extent, size_bytes);
        if extent.unwritten {
            one.unwritten_bytes += bytes;
        } else {
            one.written_bytes += bytes;
        }
    })?;
    Ok(one)
}

/// The part of an extent before the end of the file: the last one is rounded up to a block.
fn bytes_within(extent: Extent, size_bytes: u64) -> u64 {
    let end = extent.offset.saturating_add(extent.length).min(size_bytes);
    end.saturating_sub(extent.offset)
}

fn by_seek(file: &File) -> io::Result<OneFile> {
    file.sync_all()?; // Blocks of dirty pages may not be counted before they are written.
    let meta = file.metadata()?;
    let size_bytes = meta.len();
    let mut stored = 0;
    let mut at = 0;
    while let Some(start) = seek(file, at, Part::Stored)? {
        let end = seek(file, start, Part::Hole)?.unwrap_or(size_bytes).min(size_bytes);
        if end <= start {
            break;
        }
        stored += end - start;
        at = end;
    }
    // A file system without holes in its vocabulary calls the whole file stored.
    let allocated = meta.blocks().saturating_mul(512);
    let method = if allocated < stored { Method::Blocks } else { Method::Seek };
    Ok(OneFile { method, size_bytes, written_bytes: stored.min(allocated), unwritten_bytes: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_cut_at_the_end_of_the_file() {
        let extent = |offset, length| Extent { offset, length, unwritten: false };
        assert_eq!(bytes_within(extent(0, 4096), 100), 100);
        assert_eq!(bytes_within(extent(4096, 4096), 8192), 4096);
        assert_eq!(bytes_within(extent(8192, 4096), 8192), 0);
        assert_eq!(bytes_within(extent(u64::MAX - 1, 4096), u64::MAX), 1);
    }

    #[test]
    fn the_weakest_method_is_told() {
        assert!(Method::Fiemap < Method::Seek && Method::Seek < Method::Blocks);
    }

    #[test]
    fn a_missing_file_and_a_folder_are_errors_with_their_path() {
        let error = prove(&[PathBuf::from("/nowhere/x")]).unwrap_err();
        assert_eq!((error.code.as_str(), error.says.contains("/nowhere/x")), ("ENOENT", true));
        assert!(prove(&[PathBuf::from("/")]).unwrap_err().says.contains("not a regular file"));
    }
}
