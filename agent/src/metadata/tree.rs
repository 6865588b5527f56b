//! The folders that ranks work in, opened before the loop and never through a symbolic link.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::load::{Phase, PhaseSpec};
use crate::error::{Context, Error, Result};
use crate::prepare::scratch;
use crate::sys::file::{self, open_folder_in};
use crate::sys::thread::allow_open_files;

/// How a scratch folder is opened.
pub type OpenFolder<'a> = &'a dyn Fn(&Path) -> Result<File>;

/// Descriptors of the agent itself: pipes, locks, runs, watches.
const RESERVED_FILES: u64 = 1024;

/// The folder each rank works in: its own one, or that of the iteration when its own is the work.
///
/// Makes the iteration's folder where trees are created.
pub fn open_rank_folders(load: &PhaseSpec, open: OpenFolder) -> Result<Vec<Arc<File>>> {
    let wanted = RESERVED_FILES + 2 * u64::from(load.ranks) + load.others.len() as u64;
    allow_open_files(wanted).context(format_args!("open {wanted} files at a time"))?;
    let tree = tree_name(load.iteration);
    if load.phase == Phase::TreeCreate {
        make_tree(&load.dir, &tree, open)?;
    }
    let mut trees: HashMap<&Path, Arc<File>> = HashMap::new();
    let mut seats = Vec::with_capacity(load.ranks as usize);
    for rank in load.target_ranks() {
        let dir = load.folder_of(rank).ok_or_else(|| Error::bug("a rank without a folder"))?;
        let opened = match trees.get(dir) {
            Some(opened) => Arc::clone(opened),
            None => Arc::new(open_tree(dir, &tree, open)?),
        };
        trees.insert(dir, Arc::clone(&opened));
        if load.phase.is_of_trees() {
            seats.push(opened);
        } else {
            let name = rank_name(rank);
            let folder =
                open_folder_in(&opened, as_os(&name)).map_err(|e| folder_error(dir, &name, &e))?;
            seats.push(Arc::new(folder));
        }
    }
    Ok(seats)
}

/// Remove the iteration's folder if nothing is left in it.
pub fn remove_empty_tree(load: &PhaseSpec, open: OpenFolder) {
    if load.phase == Phase::TreeRemove {
        if let Ok(scratch) = open(&load.dir) {
            let _ = file::remove_folder(&scratch, &tree_name(load.iteration));
        }
    }
}

fn make_tree(dir: &Path, tree: &CStr, open: OpenFolder) -> Result<()> {
    match file::make_folder(&open(dir)?, tree) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(folder_error(dir, tree, &error))
        }
        _ => Ok(()),
    }
}

/// A folder of an iteration in a scratch folder; one without our lock file is somebody else's.
fn open_tree(dir: &Path, tree: &CStr, open: OpenFolder) -> Result<File> {
    let scratch = open(dir)?;
    if !scratch::is_scratch_folder(&scratch) {
        let message = format!("{} is not a scratch folder of this program", dir.display());
        return Err(Error::bad_request(message));
    }
    open_folder_in(&scratch, as_os(tree)).map_err(|e| folder_error(dir, tree, &e))
}

fn folder_error(dir: &Path, name: &CStr, error: &io::Error) -> Error {
    Error::io(format_args!("open {} in {}", name.to_string_lossy(), dir.display()), error)
}

fn as_os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Enough for the most files of a rank; a fixed width keeps every name equally long.
const DIGITS: usize = 7;
const PREFIX: &[u8; 5] = b"file.";
const NAME_BYTES: usize = PREFIX.len() + DIGITS + 1;

/// The name of a rank's file, first that of number 0.
#[derive(Debug, Clone)]
pub struct FileName([u8; NAME_BYTES]);

impl FileName {
    /// `file.0000000`.
    #[must_use]
    pub fn first() -> Self {
        let mut bytes = [b'0'; NAME_BYTES];
        bytes[..PREFIX.len()].copy_from_slice(PREFIX);
        bytes[NAME_BYTES - 1] = 0;
        Self(bytes)
    }

    /// Become the name of the next number; after the last comes the first.
    #[inline]
    pub fn advance(&mut self) {
        for digit in self.0[PREFIX.len()..NAME_BYTES - 1].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }

    /// As system calls take it.
    #[inline]
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

/// The folder of one iteration, in a scratch folder.
#[must_use]
fn tree_name(iteration: u32) -> CString {
    CString::new(format!("metadata.{iteration}")).unwrap_or_default()
}

/// The folder of one rank, in that of the iteration.
#[must_use]
pub fn rank_name(rank: u32) -> CString {
    CString::new(format!("rank.{rank}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_advances_as_its_number_would_be_written() {
        let mut name = FileName::first();
        for number in 0..20_000 {
            assert_eq!(name.as_c_str().to_str().unwrap(), format!("file.{number:07}"));
            name.advance();
        }
    }

    #[test]
    fn folders_are_named_by_number() {
        assert_eq!(tree_name(2).as_c_str(), c"metadata.2");
        assert_eq!(rank_name(1087).as_c_str(), c"rank.1087");
    }
}
