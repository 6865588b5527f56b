//! Where the kernel's file trees are: an argument, so that tests and benches can bring their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::probe::machine::non_empty;

/// The roots of procfs and sysfs.
#[derive(Debug, Clone)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

impl Roots {
    /// What a file under `/sys` says; None when it is missing or says nothing.
    #[must_use]
    pub fn sys_value(&self, path: impl AsRef<Path>) -> Option<String> {
        read_value(&self.sys.join(path))
    }

    /// The folder of a block device or partition, by the kernel's name.
    #[must_use]
    pub fn block_folder(&self, name: &str) -> PathBuf {
        self.sys.join("class/block").join(name)
    }

    /// Names in a folder under `/sys`, sorted; empty when it is missing.
    #[must_use]
    pub fn sys_names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        list_names(&self.sys.join(folder))
    }
}

/// The text of a small kernel file, None when it cannot be read (an absent attribute is normal).
#[must_use]
pub fn read_text(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What a small kernel file says, None when it cannot be read or says nothing.
#[must_use]
pub fn read_value(path: &Path) -> Option<String> {
    non_empty(&read_text(path)?)
}

/// The number that stands alone in a small kernel file.
#[must_use]
pub fn read_number<N: FromStr>(path: &Path) -> Option<N> {
    read_text(path)?.trim().parse().ok()
}

/// Names in a folder, sorted so that answers are always the same; empty when it is missing.
#[must_use]
pub fn list_names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
