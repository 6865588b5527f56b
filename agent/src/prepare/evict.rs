//! Make files cold, and count what stays warm: a cache drop is believed only when it is seen.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result, sentence};
use crate::sys::file::{forget_pages, may_change, sync_all};
use crate::sys::storage::{cached_pages, mapped_resident_pages};
use crate::sys::time::page_bytes;

/// Page cache, dentries and inodes.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Pages that somebody holds for a moment, such as a journal that commits them, stay when the kernel
/// is asked to forget them: it is asked again.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// What eviction did.
#[derive(Debug, Serialize)]
pub struct Evicted {
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
pub fn evict(paths: &[PathBuf], whole_system: bool) -> Result<Evicted> {
    for path in paths {
        File::open(path)
            .map_err(|error| Error::io(format_args!("open {}", path.display()), &error))?;
    }
    let mut evicted = Evicted {
        resident_bytes_before: resident_bytes(paths),
        resident_bytes_after: None,
        methods: Vec::new(),
        faults: Vec::new(),
    };
    if !paths.is_empty() {
        evicted.note("fsync", for_each(paths, File::sync_all));
        evicted.note("fadvise", for_each(paths, forget_pages));
    }
    if whole_system {
        sync_all();
        evicted.note("drop_caches", fs::write(DROP_CACHES, "3"));
    }
    evicted.resident_bytes_after = resident_bytes(paths);
    for _ in 1..TRIES {
        if evicted.resident_bytes_after.is_none_or(|bytes| bytes == 0) {
            break;
        }
        thread::sleep(PAUSE);
        let _ = for_each(paths, forget_pages); // It went well above, or was told.
        evicted.resident_bytes_after = resident_bytes(paths);
    }
    Ok(evicted)
}

impl Evicted {
    fn note(&mut self, method: &'static str, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => self.methods.push(method),
            Err(error) => self.faults.push(format!("{method} failed: {}", sentence(&error))),
        }
    }
}

/// One file open at a time: a data set can have more files than a process may open.
fn for_each(paths: &[PathBuf], act: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    paths.iter().try_for_each(|path| act(&File::open(path)?))
}

/// Bytes of files in the page cache, by cachestat or else mincore; None when neither can tell:
/// mincore calls every page of another user's file resident.
fn resident_bytes(paths: &[PathBuf]) -> Option<u64> {
    let page = page_bytes();
    let pages = |path: &PathBuf| {
        let file = File::open(path).ok()?;
        cached_pages(&file)
            .ok()
            .or_else(|| may_change(path).then(|| mapped_resident_pages(&file, page).ok()).flatten())
    };
    paths.iter().map(pages).sum::<Option<u64>>().map(|pages| pages * page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;

    #[test]
    fn both_ways_of_counting_agree_on_a_file_just_written() {
        let folder = Folder::new();
        folder.put("file", &"x".repeat(300_000));
        let file = File::open(folder.path().join("file")).unwrap();
        let pages = 300_000_u64.div_ceil(page_bytes());
        assert_eq!(mapped_resident_pages(&file, page_bytes()).unwrap(), pages);
        assert_eq!(cached_pages(&file).unwrap_or(pages), pages);
    }

    #[test]
    fn nothing_to_evict_does_nothing() {
        let evicted = evict(&[], false).unwrap();
        assert_eq!((evicted.resident_bytes_before, evicted.methods.len()), (Some(0), 0));
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert_eq!(evict(&["/nowhere/x".into()], false).unwrap_err().code, "ENOENT");
    }
}
