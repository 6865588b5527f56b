//! The file system under the target path, and the devices under that.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use super::disks::visible_mounts;
use super::layers::{LayerStack, StackBottom, is_network_file_system, stack_below_mount};
use crate::error::io_error_text;
use crate::probe::mountinfo::{Mount, mount_of};
use crate::roots::Roots;
use crate::sys::file::{FileSystemSpace, can_create_in, file_system_space};

/// The number of files of a file system that has no fixed number: the largest that all readers of
/// JSON integers keep.
const UNLIMITED_INODES: u64 = i64::MAX as u64;
/// Windows on the kernel: no file of a user lies there, although root may seem to write.
const KERNEL_FILE_SYSTEMS: [&str; 14] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "efivarfs",
    "fusectl",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// The file system under a path.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state")]
pub struct TargetFacts {
    pub path: String,
    pub fs_type: String,
    pub mount_point: String,
    pub mount_source: String,
    pub mount_options: String,
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub free_inodes: u64,
    pub device: Option<String>,
    pub devices: Vec<String>,
    pub in_memory: bool,
    pub network: bool,
    pub writable: bool,
    pub memory_backed: bool,
    pub layers: Vec<String>,
    pub hidden: bool,
}

/// Why a path is no target.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct TargetFault {
    pub code: &'static str,
    pub message: String,
}

impl TargetFault {
    fn of(error: &io::Error) -> Self {
        let missing = error.kind() == io::ErrorKind::NotFound;
        Self {
            code: if missing { "missing" } else { "unreachable" },
            message: io_error_text(error),
        }
    }
}

/// Facts of the target; a sentence in `faults` where a layer hides what is below.
pub fn target_facts(
    roots: &Roots,
    path: &Path,
    faults: &mut Vec<String>,
) -> Result<TargetFacts, TargetFault> {
    let real = fs::canonicalize(path).map_err(|error| TargetFault::of(&error))?;
    let space = file_system_space(&real).map_err(|error| TargetFault::of(&error))?;
    if !real.is_dir() {
        return Err(TargetFault { code: "no-directory", message: "It is not a directory".into() });
    }
    let mounts = visible_mounts(roots);
    let mount = mount_of(&mounts, &real).ok_or_else(|| TargetFault {
        code: "no-mount",
        message: "Its mount is not in /proc/self/mountinfo".into(),
    })?;
    if KERNEL_FILE_SYSTEMS.contains(&mount.fs_type.as_str()) {
        return Err(TargetFault { code: "not-for-files", message: mount.fs_type.clone() });
    }
    let stack = stack_below_mount(roots, &mounts, mount, &real);
    if stack.bottom == StackBottom::Hidden {
        let layers = stack.text();
        faults.push(format!("What lies below {} ({layers}) cannot be seen.", path.display()));
    }
    Ok(facts_of_mount(path, &real, mount, space, stack))
}

fn facts_of_mount(
    path: &Path,
    real: &Path,
    mount: &Mount,
    space: FileSystemSpace,
    stack: LayerStack,
) -> TargetFacts {
    let read_only = space.read_only || mount.options.split(',').any(|option| option == "ro");
    TargetFacts {
        path: path.display().to_string(),
        fs_type: mount.fs_type.clone(),
        mount_point: mount.mount_point.display().to_string(),
        mount_source: mount.source.clone(),
        mount_options: mount.all_options(),
        total_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
        free_inodes: space.free_inodes.unwrap_or(UNLIMITED_INODES).min(UNLIMITED_INODES),
        device: stack.devices.first().cloned(),
        in_memory: stack.is_in_memory(),
        network: is_network_file_system(&mount.fs_type),
        writable: !read_only && can_create_in(real),
        memory_backed: stack.is_memory_backed(),
        devices: stack.devices,
        layers: stack.layers,
        hidden: stack.bottom == StackBottom::Hidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_target_says_why() {
        let none = Roots { proc: "/nowhere".into(), sys: "/nowhere".into() };
        for (roots, path, code) in [
            (&Roots::default(), "/nowhere/x", "missing"),
            (&Roots::default(), "/proc/stat/x", "unreachable"),
            (&Roots::default(), "/proc/stat", "no-directory"),
            (&Roots::default(), "/proc", "not-for-files"),
            (&none, "/proc", "no-mount"),
        ] {
            let fault = target_facts(roots, Path::new(path), &mut Vec::new()).unwrap_err();
            assert_eq!(fault.code, code, "{path}: {}", fault.message);
        }
    }
}
