//! What stays on a host after the end of an agent, as its last answer names it.

use std::path::Path;

use serde::Serialize;

/// Remnants named in one answer; what is beyond is seen once these are gone.
pub const MAX_REMNANTS: usize = 100;

/// One thing that could not be ended or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remnant {
    /// What it is.
    pub kind: RemnantKind,
    /// Its path where it lies by now, or its process id.
    pub name: String,
    /// Why it stays, one sentence without a stop.
    pub reason: String,
}

/// What stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemnantKind {
    /// A scratch folder.
    Folder,
    /// A process.
    Process,
    /// A control group.
    Group,
    /// A file outside of scratch folders.
    File,
    /// A mounted file system, with the loop device below it.
    Mount,
    /// What the session wrote at the beginning of a block device.
    Device,
}

impl Remnant {
    /// One with a path.
    pub fn of_path(kind: RemnantKind, path: &Path, reason: impl Into<String>) -> Self {
        Self { kind, name: path.display().to_string(), reason: reason.into() }
    }
}
