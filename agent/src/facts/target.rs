//! The file system under the target path, and the devices under that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::disks::{backing_device, backing_file, chain, device_of, mounts};
use crate::error::sentence;
use crate::probe::mountinfo::{Mount, mount_of};
use crate::roots::{Roots, names};
use crate::sys::file::{Space, may_write, space};

/// The number of files of a file system that has no fixed number: the largest that all readers of
/// JSON integers keep.
const UNLIMITED: u64 = i64::MAX as u64;
/// Overlays on overlays; the kernel allows two.
const MAX_OVERLAYS: u32 = 4;
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Block devices whose blocks are memory of this host, or nowhere.
const MEMORY_DEVICES: [&str; 3] = ["ram", "zram", "nullb"];
/// Windows on the kernel: no file of a user lies there, although root may seem to write.
const OF_THE_KERNEL: [&str; 14] = [
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
const NETWORK: [&str; 20] = [
    "9p",
    "acfs",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "glusterfs",
    "gpfs",
    "lustre",
    "mmfs",
    "ncpfs",
    "orangefs",
    "panfs",
    "pvfs2",
    "smb3",
    "smbfs",
    "virtiofs",
    "wekafs",
    "yrfs",
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
        Self { code: if missing { "missing" } else { "unreachable" }, message: sentence(error) }
    }
}

/// Facts of the target; a sentence in `faults` where no device is known below it.
pub fn target(
    roots: &Roots,
    path: &Path,
    faults: &mut Vec<String>,
) -> Result<TargetFacts, TargetFault> {
    let real = fs::canonicalize(path).map_err(|error| TargetFault::of(&error))?;
    let space = space(&real).map_err(|error| TargetFault::of(&error))?;
    if !real.is_dir() {
        return Err(TargetFault { code: "no-directory", message: "It is not a directory".into() });
    }
    let mounts = mounts(roots);
    let mount = mount_of(&mounts, &real).ok_or_else(|| TargetFault {
        code: "no-mount",
        message: "Its mount is not in /proc/self/mountinfo".into(),
    })?;
    if OF_THE_KERNEL.contains(&mount.fs_type.as_str()) {
        return Err(TargetFault { code: "not-for-files", message: mount.fs_type.clone() });
    }
    let beneath = beneath(roots, &mounts, mount, MAX_OVERLAYS);
    if beneath.devices.is_empty() && !beneath.in_memory && !is_network(&mount.fs_type) {
        let fs_type = &mount.fs_type;
        faults.push(format!("No block device is known below {} ({fs_type}).", path.display()));
    }
    Ok(told(path, &real, mount, space, beneath))
}

fn told(path: &Path, real: &Path, mount: &Mount, space: Space, beneath: Beneath) -> TargetFacts {
    let read_only = space.read_only || mount.options.split(',').any(|option| option == "ro");
    TargetFacts {
        path: path.display().to_string(),
        fs_type: mount.fs_type.clone(),
        mount_point: mount.mount_point.display().to_string(),
        mount_source: mount.source.clone(),
        mount_options: mount.all_options(),
        total_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
        free_inodes: space.free_inodes.unwrap_or(UNLIMITED).min(UNLIMITED),
        device: beneath.devices.first().cloned(),
        devices: beneath.devices,
        in_memory: beneath.in_memory,
        network: is_network(&mount.fs_type),
        writable: !read_only && may_write(real),
        memory_backed: beneath.memory_backed,
    }
}

/// What a file system is made of.
#[derive(Debug, Default, PartialEq, Eq)]
struct Beneath {
    devices: Vec<String>,
    in_memory: bool,
    memory_backed: bool,
}

fn beneath(roots: &Roots, mounts: &[Mount], mount: &Mount, overlays_left: u32) -> Beneath {
    if IN_MEMORY.contains(&mount.fs_type.as_str()) {
        return Beneath { in_memory: true, ..Beneath::default() };
    }
    if mount.fs_type == "overlay" {
        return beneath_overlay(roots, mounts, mount, overlays_left);
    }
    let Some(nearest) = device_of(roots, mount) else { return Beneath::default() };
    let mut devices = Vec::new();
    for member in members(roots, mount, nearest) {
        for device in chain(roots, mounts, &member) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    let memory_backed = is_memory(roots, mounts, &devices);
    Beneath { devices, in_memory: false, memory_backed }
}

/// Writes to an overlay go to its upper folder; where that is known, its file system counts.
fn beneath_overlay(roots: &Roots, mounts: &[Mount], mount: &Mount, left: u32) -> Beneath {
    let upper = mount.option("upperdir").map(PathBuf::from);
    let upper = upper.filter(|upper| left > 0 && upper.is_dir());
    let below = upper.and_then(|upper| mount_of(mounts, &upper));
    match below {
        Some(below) if below != mount => beneath(roots, mounts, below, left - 1),
        _ => Beneath::default(),
    }
}

/// All devices of a btrfs, the mounted one first; of any other file system just that one.
fn members(roots: &Roots, mount: &Mount, nearest: String) -> Vec<String> {
    if mount.fs_type != "btrfs" {
        return vec![nearest];
    }
    let folder = roots.sys.join("fs/btrfs");
    let all = names(&folder)
        .iter()
        .map(|uuid| names(&folder.join(uuid).join("devices")))
        .find(|devices| devices.contains(&nearest))
        .unwrap_or_default();
    let others: Vec<String> = all.into_iter().filter(|device| *device != nearest).collect();
    [vec![nearest], others].concat()
}

/// Whether a block device's blocks are memory of the host.
#[must_use]
pub fn is_memory_device(name: &str) -> bool {
    let kinds = MEMORY_DEVICES.iter();
    kinds.filter_map(|kind| name.strip_prefix(kind)).any(|rest| rest.parse::<u32>().is_ok())
}

/// Whether the deepest devices are memory: RAM disks, zram, loops on files of a memory file system.
#[must_use]
pub fn is_memory(roots: &Roots, mounts: &[Mount], devices: &[String]) -> bool {
    let is_on_memory = |name: &String| {
        backing_file(&roots.block(name))
            .filter(|file| backing_device(roots, file).is_none())
            .and_then(|file| mount_of(mounts, Path::new(&file)))
            .is_some_and(|mount| IN_MEMORY.contains(&mount.fs_type.as_str()))
    };
    devices.iter().any(|name| is_memory_device(name) || is_on_memory(name))
}

/// FUSE file systems other than those on a local block device count as network: their storage is
/// behind a program.
fn is_network(fs_type: &str) -> bool {
    NETWORK.contains(&fs_type) || fs_type.starts_with("nfs") || fs_type.starts_with("fuse.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::mountinfo::parse_mountinfo;
    use crate::trial::Folder;

    #[test]
    fn network_file_systems() {
        for fs_type in ["nfs", "nfs4", "cifs", "ceph", "wekafs", "fuse.sshfs", "lustre"] {
            assert!(is_network(fs_type), "{fs_type}");
        }
        for fs_type in ["ext4", "xfs", "fuseblk", "overlay", "tmpfs"] {
            assert!(!is_network(fs_type), "{fs_type}");
        }
    }

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
            let fault = target(roots, Path::new(path), &mut Vec::new()).unwrap_err();
            assert_eq!(fault.code, code, "{path}: {}", fault.message);
        }
    }

    #[test]
    fn an_overlay_whose_upper_folder_is_in_memory() {
        let upper = Folder::new();
        let upper = upper.path().display();
        let text = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {upper} rw - tmpfs tmpfs rw\n\
             3 1 0:10 / /m rw - overlay overlay rw,lowerdir=/l,upperdir={upper},workdir=/w\n\
             4 1 0:11 / /n rw - overlay overlay rw,lowerdir=/l,upperdir=/nowhere,workdir=/w\n"
        );
        let mounts = parse_mountinfo(&text);
        let roots = Roots { proc: "/nowhere".into(), sys: "/nowhere".into() };
        assert!(beneath(&roots, &mounts, &mounts[2], MAX_OVERLAYS).in_memory);
        assert_eq!(beneath(&roots, &mounts, &mounts[3], MAX_OVERLAYS), Beneath::default());
    }

    #[test]
    fn memory_devices_and_loops_on_memory() {
        let tree = Folder::new();
        tree.put("class/block/loop1/loop/backing_file", "/dev/shm/image\n");
        tree.put("class/block/loop2/loop/backing_file", "/srv/image\n");
        tree.put("class/block/loop3/loop/backing_file", "/dev/loop2\n");
        tree.put("class/block/loop4/loop/backing_file", "/dev/image\n");
        let text = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /dev rw - devtmpfs udev rw\n\
                    3 2 0:9 / /dev/shm rw - tmpfs tmpfs rw\n";
        let mounts = parse_mountinfo(text);
        let roots = Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() };
        let is_memory = |name: &str| is_memory(&roots, &mounts, &[name.to_owned()]);
        assert!(is_memory("zram0") && is_memory("ram1") && is_memory("loop1"));
        assert!(is_memory("loop4") && !is_memory("loop3"));
        assert!(!is_memory("loop2") && !is_memory("sda") && !is_memory("rambus"));
    }

    #[test]
    fn a_btrfs_has_all_its_devices() {
        let tree = Folder::new();
        tree.put("fs/btrfs/uuid-1/devices/sdb/size", "1");
        tree.put("fs/btrfs/uuid-1/devices/sdc/size", "1");
        tree.put("fs/btrfs/features/raid56", "1");
        let mount = &parse_mountinfo("1 0 0:9 / /b rw - btrfs /dev/sdc rw\n")[0];
        let roots = Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() };
        assert_eq!(members(&roots, mount, "sdc".into()), ["sdc", "sdb"]);
    }
}
