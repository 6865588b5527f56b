//! The folders that ranks work in, opened before the loop and never through a symbolic link.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::load::{Load, Phase};
use super::names::{rank_name, tree_name};
use crate::error::{Error, Result};
use crate::prepare::scratch;
use crate::sys::entry;
use crate::sys::file::{open_folder, open_folder_in};
use crate::sys::thread::allow_open_files;

/// Descriptors of the agent itself: pipes, locks, runs, watches.
const OWN_FILES: u64 = 1024;

/// The folder each rank works in: its own one, or that of the iteration when its own is the work.
///
/// Makes the iteration's folder where trees are created.
pub fn open_all(load: &Load) -> Result<Vec<Arc<File>>> {
    let wanted = OWN_FILES + 2 * u64::from(load.ranks) + load.others.len() as u64;
    allow_open_files(wanted)
        .map_err(|e| Error::io(format_args!("open {wanted} files at a time"), &e))?;
    let tree = tree_name(load.iteration);
    if load.phase == Phase::TreeCreate {
        make_tree(&load.dir, &tree)?;
    }
    let mut trees: HashMap<&Path, Arc<File>> = HashMap::new();
    let mut seats = Vec::with_capacity(load.ranks as usize);
    for rank in load.addressed() {
        let dir = load.folder_of(rank).ok_or_else(|| Error::bug("a rank without a folder"))?;
        let opened = match trees.get(dir) {
            Some(opened) => Arc::clone(opened),
            None => Arc::new(open_tree(dir, &tree)?),
        };
        trees.insert(dir, Arc::clone(&opened));
        if load.phase.is_of_trees() {
            seats.push(opened);
        } else {
            let name = rank_name(rank);
            let folder =
                open_folder_in(&opened, as_os(&name)).map_err(|e| cannot(dir, &name, &e))?;
            seats.push(Arc::new(folder));
        }
    }
    Ok(seats)
}

/// Remove the iteration's folder if nothing is left in it.
pub fn tidy(load: &Load) {
    if load.phase == Phase::TreeRemove {
        if let Ok(scratch) = open_folder(&load.dir) {
            let _ = entry::remove_folder(&scratch, &tree_name(load.iteration));
        }
    }
}

fn make_tree(dir: &Path, tree: &CStr) -> Result<()> {
    let made = open_folder(dir).and_then(|scratch| entry::make_folder(&scratch, tree));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(cannot(dir, tree, &error))
        }
        _ => Ok(()),
    }
}

/// A folder of an iteration in a scratch folder; one without our lock file is somebody else's.
fn open_tree(dir: &Path, tree: &CStr) -> Result<File> {
    let scratch = open_folder(dir)
        .map_err(|e| Error::io(format_args!("open the scratch folder {}", dir.display()), &e))?;
    if !scratch::is_ours(&scratch) {
        let says = format!("{} is not a scratch folder of this program", dir.display());
        return Err(Error::bad_request(says));
    }
    open_folder_in(&scratch, as_os(tree)).map_err(|e| cannot(dir, tree, &e))
}

fn cannot(dir: &Path, name: &CStr, error: &io::Error) -> Error {
    Error::io(format_args!("open {} in {}", name.to_string_lossy(), dir.display()), error)
}

fn as_os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}
