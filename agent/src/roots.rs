//! Where the kernel's file trees are: an argument, so that tests and benches can bring their own.

use std::fs;
use std::path::{Path, PathBuf};

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
    /// A file under `/sys`; None when it is missing or not readable.
    #[must_use]
    pub fn sys_text(&self, path: impl AsRef<Path>) -> Option<String> {
        text(&self.sys.join(path))
    }

    /// Names in a folder under `/sys`, sorted; empty when it is missing.
    #[must_use]
    pub fn sys_names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        names(&self.sys.join(folder))
    }
}

/// The text of a small kernel file, None when it cannot be read (an absent attribute is normal).
#[must_use]
pub fn text(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Names in a folder, sorted so that answers are always the same; empty when it is missing.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}
