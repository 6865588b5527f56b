//! What lies below a mount or a block device, layer by layer, down to storage or to memory.
//!
//! `/proc/thread-self/mountinfo` repeats the options given to mount: an overlay's upper directory may be
//! relative to an unknown working directory, lie in another mount namespace, or have been moved.
//! So a path is followed only to a file system of the same size. Without such a path, the layer
//! below is the only mounted file system with the same size and the same free space: statfs of an
//! overlay returns the numbers of its upper directory.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disks::{
    bcache_parents, device_chain, device_of_mount, file_system_devices, loop_backing_device,
    loop_backing_file,
};
use crate::probe::mountinfo::{Mount, mount_of};
use crate::roots::{Roots, list_names, read_value};
use crate::sys::file::{FileSystemSpace, file_system_space};
use crate::sys::mount::inode_behind_loop;

/// Deeper stacks exist only where layers form a circle.
const MAX_LAYERS: u32 = 32;
/// Devices visited below one: more than the largest arrays have.
const MAX_DEVICES: usize = 10_000;
/// How often two spaces are compared, since others write to the file system meanwhile.
const SPACE_TRIES: u32 = 20;
const MEMORY_FILE_SYSTEMS: [&str; 5] = ["tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"];
/// Block devices that keep their blocks in memory of this host, or drop them.
const MEMORY_DEVICES: [&str; 3] = ["ram", "zram", "nullb"];
/// Models of the kernel's SCSI disks that keep their blocks in memory.
const MEMORY_DISK_MODELS: [&str; 2] = ["scsi_debug", "RAMDISK-MCP"];
/// Block devices that a program serves, which may keep the blocks anywhere.
const PROGRAM_SERVED_DEVICES: [&str; 2] = ["nbd", "ublkb"];
const NETWORK_FILE_SYSTEMS: [&str; 20] = [
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
/// Clients of storage clusters that are programs.
const NETWORK_PROGRAMS: [&str; 6] =
    ["fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.juicefs", "fuse.lizardfs", "fuse.mfs"];

/// What a stack of layers ends in, as far as it can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum StackBottom {
    /// A disk, or a server.
    #[default]
    Storage,
    /// A layer through which nothing is seen.
    Hidden,
    /// Memory of this host.
    Memory,
}

/// The layers that a file system or a device is made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LayerStack {
    /// All block devices, nearest first.
    pub devices: Vec<String>,
    /// Descriptions of the layers, nearest first; of devices side by side, the branch that ends
    /// worst.
    pub layers: Vec<String>,
    /// What the layers end in.
    pub bottom: StackBottom,
}

impl LayerStack {
    /// Memory without a block device above it: what is written there is never I/O.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.bottom == StackBottom::Memory && self.devices.is_empty()
    }

    /// A block device whose blocks are memory.
    #[must_use]
    pub fn is_memory_backed(&self) -> bool {
        self.bottom == StackBottom::Memory && !self.devices.is_empty()
    }

    /// The layers as one text.
    #[must_use]
    pub fn text(&self) -> String {
        self.layers.join(" on ")
    }

    /// A stack of one layer, which ends there.
    fn of_layer(layer: &str, bottom: StackBottom) -> Self {
        Self { devices: Vec::new(), layers: vec![layer.to_owned()], bottom }
    }

    /// The stack with a further layer on top.
    fn with_top(mut self, layer: String) -> Self {
        self.layers.insert(0, layer);
        self
    }

    /// The first of the stacks side by side that end worst.
    fn worst_of(stacks: impl IntoIterator<Item = Self>) -> Self {
        stacks
            .into_iter()
            .reduce(|worst, next| if next.bottom > worst.bottom { next } else { worst })
            .unwrap_or_default()
    }
}

/// What lies below a mount; `at` is a path on it.
#[must_use]
pub fn stack_below_mount(roots: &Roots, mounts: &[Mount], mount: &Mount, at: &Path) -> LayerStack {
    let stack = LayerWalk::new(roots, mounts).walk_mount(mount, at, MAX_LAYERS);
    LayerStack { devices: devices_below(roots, mounts, mount, at), ..stack }
}

/// What lies below a block device.
#[must_use]
pub fn stack_below_device(roots: &Roots, mounts: &[Mount], name: &str) -> LayerStack {
    let stack = LayerWalk::new(roots, mounts).walk_device(name, MAX_LAYERS);
    LayerStack { devices: device_chain(roots, mounts, name), ..stack }
}

/// All block devices below a mount, nearest first, each once.
fn devices_below(roots: &Roots, mounts: &[Mount], mount: &Mount, at: &Path) -> Vec<String> {
    let mut devices = Vec::new();
    for member in nearest_devices(roots, mounts, mount, at) {
        for device in device_chain(roots, mounts, &member) {
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    devices
}

/// The block devices that a mount's file system is on, through overlays and the like.
#[must_use]
pub fn nearest_devices(roots: &Roots, mounts: &[Mount], mount: &Mount, at: &Path) -> Vec<String> {
    let (mut mount, mut at) = (mount, at.to_owned());
    for _ in 0..MAX_LAYERS {
        let StackedOn::Directory(folder) = StackedOn::of_mount(mount) else { break };
        let Some((below, path)) = mount_below(mounts, mount, &at, &folder) else {
            return Vec::new();
        };
        (mount, at) = (below, path);
    }
    device_of_mount(roots, mount)
        .map_or_else(Vec::new, |nearest| file_system_devices(roots, mount, nearest))
}

/// The mount that the file of a loop device is on; None where it cannot be found.
#[must_use]
pub fn mount_of_loop<'a>(roots: &Roots, mounts: &'a [Mount], name: &str) -> Option<&'a Mount> {
    let file = PathBuf::from(loop_backing_file(&roots.block_folder(name))?);
    let metadata = fs::metadata(&file).ok().filter(fs::Metadata::is_file);
    let number = read_value(&roots.block_folder(name).join("dev"));
    // The kernel knows the file itself; only root may ask it.
    let Some((device, inode)) = number.and_then(|number| inode_behind_loop(name, &number).ok())
    else {
        return metadata.and_then(|_| mount_of(mounts, &file));
    };
    if metadata.is_some_and(|metadata| (metadata.dev(), metadata.ino()) == (device, inode)) {
        return mount_of(mounts, &file);
    }
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    mounts.iter().find(|mount| mount.device == number)
}

/// Whether a block device's blocks are memory of the host.
#[must_use]
pub fn is_memory_device(name: &str) -> bool {
    is_numbered_device(&MEMORY_DEVICES, name)
}

fn is_numbered_device(kinds: &[&str], name: &str) -> bool {
    let rests = kinds.iter().filter_map(|kind| name.strip_prefix(kind));
    // A partition has its number behind a `p`.
    rests.map(|rest| rest.split('p')).any(|mut parts| parts.all(|part| part.parse::<u32>().is_ok()))
}

/// Whether the file system's storage is on servers or behind a program.
///
/// Those of FUSE on a local block device are `fuseblk`.
#[must_use]
pub fn is_network_file_system(fs_type: &str) -> bool {
    has_servers(fs_type) || fs_type.starts_with("fuse.")
}

fn has_servers(fs_type: &str) -> bool {
    let is_known = NETWORK_FILE_SYSTEMS.contains(&fs_type) || NETWORK_PROGRAMS.contains(&fs_type);
    is_known || fs_type.starts_with("nfs")
}

/// What a mount takes its files from, beside a device.
#[derive(Debug, PartialEq, Eq)]
enum StackedOn {
    /// On no other mount.
    Nothing,
    /// On this directory, as named in the options of the mount.
    Directory(String),
    /// An overlay of directories that are only read.
    ReadOnlyDirectories,
}

impl StackedOn {
    fn of_mount(mount: &Mount) -> Self {
        match mount.fs_type.as_str() {
            "overlay" => {
                mount.option("upperdir").map_or(Self::ReadOnlyDirectories, Self::Directory)
            }
            "ecryptfs" | "shiftfs" => Self::Directory(mount.source.clone()),
            _ => Self::Nothing,
        }
    }
}

struct LayerWalk<'a> {
    roots: &'a Roots,
    mounts: &'a [Mount],
    visited: Vec<String>,
}

impl<'a> LayerWalk<'a> {
    fn new(roots: &'a Roots, mounts: &'a [Mount]) -> Self {
        Self { roots, mounts, visited: Vec::new() }
    }

    fn walk_mount(&mut self, mount: &Mount, at: &Path, left: u32) -> LayerStack {
        let fs_type = mount.fs_type.as_str();
        if MEMORY_FILE_SYSTEMS.contains(&fs_type) {
            return LayerStack::of_layer(fs_type, StackBottom::Memory);
        }
        if left == 0 {
            return LayerStack::of_layer(fs_type, StackBottom::Hidden);
        }
        match StackedOn::of_mount(mount) {
            StackedOn::ReadOnlyDirectories => {
                return LayerStack::of_layer(
                    "overlay without an upper directory",
                    StackBottom::Hidden,
                );
            }
            StackedOn::Directory(folder) => {
                let word = if fs_type == "overlay" { "upper directory" } else { "directory" };
                let layer = format!("{fs_type} with the {word} '{folder}'");
                return match mount_below(self.mounts, mount, at, &folder) {
                    Some((below, path)) => self.walk_mount(below, &path, left - 1).with_top(layer),
                    None => LayerStack::of_layer(&layer, StackBottom::Hidden),
                };
            }
            StackedOn::Nothing => {}
        }
        if let Some(nearest) = device_of_mount(self.roots, mount) {
            let members = file_system_devices(self.roots, mount, nearest);
            let stacks = members.iter().map(|device| self.walk_device(device, left - 1));
            return LayerStack::worst_of(stacks.collect::<Vec<_>>()).with_top(fs_type.to_owned());
        }
        let bottom = if has_servers(fs_type) { StackBottom::Storage } else { StackBottom::Hidden };
        LayerStack::of_layer(&format!("{fs_type} from '{}'", mount.source), bottom)
    }

    fn walk_device(&mut self, name: &str, left: u32) -> LayerStack {
        let folder = self.roots.block_folder(name);
        let model = read_value(&folder.join("device/model")).unwrap_or_default();
        if is_memory_device(name) || MEMORY_DISK_MODELS.contains(&model.as_str()) {
            return LayerStack::of_layer(name, StackBottom::Memory);
        }
        if left == 0 || is_numbered_device(&PROGRAM_SERVED_DEVICES, name) {
            return LayerStack::of_layer(name, StackBottom::Hidden);
        }
        if self.visited.iter().any(|visited| visited == name) || self.visited.len() >= MAX_DEVICES {
            return LayerStack::of_layer(name, StackBottom::Storage);
        }
        self.visited.push(name.to_owned());
        if let Some(file) = loop_backing_file(&folder) {
            return self.walk_file(name, &file, left).with_top(name.to_owned());
        }
        let parents = device_parents(self.roots, name);
        if parents.is_empty() {
            // Every kind of mapping but those to nowhere names what it is on.
            let is_mapping = folder.join("dm").is_dir();
            let bottom = if is_mapping { StackBottom::Hidden } else { StackBottom::Storage };
            return LayerStack::of_layer(name, bottom);
        }
        let stacks: Vec<LayerStack> =
            parents.iter().map(|parent| self.walk_device(parent, left - 1)).collect();
        LayerStack::worst_of(stacks).with_top(name.to_owned())
    }

    fn walk_file(&mut self, name: &str, file: &str, left: u32) -> LayerStack {
        if let Some(device) = loop_backing_device(self.roots, file) {
            return self.walk_device(&device, left - 1);
        }
        let layer = format!("the file '{file}'");
        match mount_of_loop(self.roots, self.mounts, name) {
            Some(mount) => {
                // Where the file is not at its path, its mount is still known.
                let folder = Path::new(file).parent().filter(|_| Path::new(file).exists());
                let at = folder.unwrap_or(&mount.mount_point).to_owned();
                self.walk_mount(mount, &at, left - 1).with_top(layer)
            }
            None => LayerStack::of_layer(&layer, StackBottom::Hidden),
        }
    }
}

/// The devices that a device is made of: a partition's disk, members, the two sides of a cache.
#[must_use]
pub fn device_parents(roots: &Roots, name: &str) -> Vec<String> {
    let folder = roots.block_folder(name);
    if folder.join("partition").exists() {
        let whole = fs::canonicalize(&folder).ok();
        let whole = whole.as_deref().and_then(Path::parent).and_then(Path::file_name);
        return whole.map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
    }
    let mut parents = list_names(&folder.join("slaves"));
    for parent in bcache_parents(&folder) {
        if !parents.contains(&parent) {
            parents.push(parent);
        }
    }
    parents
}

/// The mount below a stacked mount, and a path on it; None where it is unknown.
///
/// `at` is a path on the mount above, `folder` the directory below in its options.
fn mount_below<'a>(
    mounts: &'a [Mount],
    above: &Mount,
    at: &Path,
    folder: &str,
) -> Option<(&'a Mount, PathBuf)> {
    mount_below_by_path(mounts, above, at, folder)
        .or_else(|| mount_below_by_space(mounts, above, at))
}

fn mount_below_by_path<'a>(
    mounts: &'a [Mount],
    above: &Mount,
    at: &Path,
    folder: &str,
) -> Option<(&'a Mount, PathBuf)> {
    // The overlay itself drops a backslash before a comma or a colon.
    let paths = [strip_backslashes(folder), folder.to_owned()].map(PathBuf::from);
    let path = paths.into_iter().find(|path| path.is_absolute() && path.is_dir())?;
    let is_same =
        (0..SPACE_TRIES).any(|_| match (file_system_space(at), file_system_space(&path)) {
            (Ok(above), Ok(below)) => above.total_bytes == below.total_bytes,
            _ => false,
        });
    let below = mount_of(mounts, &path).filter(|below| is_same && *below != above)?;
    Some((below, path))
}

fn strip_backslashes(text: &str) -> String {
    let mut stripped = String::new();
    let mut rest = text.chars();
    while let Some(first) = rest.next() {
        stripped.push(if first == '\\' { rest.next().unwrap_or('\\') } else { first });
    }
    stripped
}

/// The only file system with the same size and free space.
///
/// Overlays, of containers for example, have those of the file system that they lie on: beside it
/// they are no candidates.
fn mount_below_by_space<'a>(
    mounts: &'a [Mount],
    above: &Mount,
    at: &Path,
) -> Option<(&'a Mount, PathBuf)> {
    let is_alike = |mount: &&Mount| {
        mount.device != above.device
            && is_local(mount)
            && (0..SPACE_TRIES).any(|_| has_same_space(at, &mount.mount_point).unwrap_or(false))
            // Another mount may cover this one.
            && mount_of(mounts, &mount.mount_point) == Some(*mount)
    };
    let alike: Vec<&Mount> = mounts.iter().filter(is_alike).collect();
    let only_device = |candidates: &[&'a Mount]| {
        let first = *candidates.first()?;
        candidates.iter().all(|other| other.device == first.device).then_some(first)
    };
    let plain: Vec<&Mount> =
        alike.iter().copied().filter(|mount| mount.fs_type != "overlay").collect();
    let mount = only_device(&alike).or_else(|| only_device(&plain))?;
    Some((mount, mount.mount_point.clone()))
}

/// Whether it can lie below an overlay, and statfs of it does not wait for a server or a program.
fn is_local(mount: &Mount) -> bool {
    let fs_type = mount.fs_type.as_str();
    !is_network_file_system(fs_type) && !fs_type.starts_with("fuse") && fs_type != "autofs"
}

/// Whether the space of `below` lies between two readings of the space of `above`.
fn has_same_space(above: &Path, below: &Path) -> Option<bool> {
    let (first, there, last) = (
        file_system_space(above).ok()?,
        file_system_space(below).ok()?,
        file_system_space(above).ok()?,
    );
    let is_between = |number: fn(&FileSystemSpace) -> Option<u64>| {
        let (first, there, last) = (number(&first), number(&there), number(&last));
        first.min(last) <= there && there <= first.max(last)
    };
    Some(
        there.total_bytes > 0
            && there.total_bytes == first.total_bytes
            && is_between(|space| Some(space.free_bytes))
            && is_between(|space| space.used_inodes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::mountinfo::parse_mountinfo;
    use crate::trial::TestFolder;

    /// What lies below the last of these mounts, which has the space of the folder `at`.
    fn stack_on_tree(tree: &TestFolder, at: &Path, text: &str) -> LayerStack {
        let roots = Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() };
        let mounts = parse_mountinfo(text);
        stack_below_mount(&roots, &mounts, mounts.last().unwrap(), at)
    }

    fn overlay(options: &str) -> String {
        format!("9 1 0:10 / /m rw - overlay overlay rw,lowerdir=/l,{options}workdir=/w\n")
    }

    #[test]
    fn network_file_systems() {
        for fs_type in ["nfs", "nfs4", "cifs", "ceph", "wekafs", "fuse.sshfs", "lustre"] {
            assert!(is_network_file_system(fs_type), "{fs_type}");
        }
        for fs_type in ["ext4", "xfs", "fuseblk", "overlay", "tmpfs"] {
            assert!(!is_network_file_system(fs_type), "{fs_type}");
        }
    }

    #[test]
    fn an_overlay_whose_upper_directory_is_in_memory() {
        let upper = TestFolder::new();
        let upper = upper.path();
        let mounts = format!(
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / {} rw - tmpfs tmpfs rw\n{}",
            upper.display(),
            overlay(&format!("upperdir={},", upper.display()))
        );
        let found = stack_on_tree(&TestFolder::new(), upper, &mounts);
        assert!(found.is_in_memory() && !found.is_memory_backed());
        let text = format!("overlay with the upper directory '{}' on tmpfs", upper.display());
        assert_eq!(found.text(), text);
    }

    #[test]
    fn an_upper_directory_that_is_not_here_hides_what_is_below() {
        let tree = TestFolder::new();
        for options in ["upperdir=/nowhere,", "upperdir=u,", ""] {
            let mounts = format!("1 0 0:9 / /nowhere rw - tmpfs t rw\n{}", overlay(options));
            let found = stack_on_tree(&tree, tree.path(), &mounts);
            assert_eq!((found.bottom, found.devices.len()), (StackBottom::Hidden, 0), "{options}");
            assert!(!found.is_in_memory() && found.text().starts_with("overlay with"));
        }
    }

    #[test]
    fn a_relative_upper_directory_is_found_by_its_space_if_only_one_has_it() {
        let (tree, other) = (TestFolder::new(), TestFolder::new());
        let at = tree.path();
        let first = format!("1 0 0:9 / {} rw - tmpfs t rw\n", at.display());
        let found = stack_on_tree(&tree, at, &format!("{first}{}", overlay("upperdir=u,")));
        assert_eq!(found.text(), "overlay with the upper directory 'u' on tmpfs");
        assert!(found.is_in_memory());
        let second = format!("2 0 0:11 / {} rw - xfs t rw\n", other.path().display());
        let found = stack_on_tree(&tree, at, &format!("{first}{second}{}", overlay("upperdir=u,")));
        assert_eq!(found.bottom, StackBottom::Hidden);
    }

    #[test]
    fn escapes_of_the_kernel_and_of_the_overlay() {
        let tree = TestFolder::new();
        tree.put("a,b:c d\\e/x", "");
        let upper = tree.path().display();
        let text = format!("upperdir={upper}/a\\134\\054b:c\\040d\\134\\134e,");
        let mounts = format!("1 0 0:9 / {upper} rw - tmpfs t rw\n{}", overlay(&text));
        let mounts = parse_mountinfo(&mounts);
        let folder = mounts[1].option("upperdir").unwrap();
        let (mount, path) = mount_below_by_path(&mounts, &mounts[1], tree.path(), &folder).unwrap();
        assert_eq!((mount.fs_type.as_str(), path), ("tmpfs", tree.path().join("a,b:c d\\e")));
    }

    #[test]
    fn programs_and_servers() {
        let tree = TestFolder::new();
        for (mount, bottom) in [
            ("fuse.sshfs host:/x", StackBottom::Hidden),
            ("fuse.fuse-overlayfs f", StackBottom::Hidden),
            ("fuse prog", StackBottom::Hidden),
            ("zfs pool/set", StackBottom::Hidden),
            ("nfs4 server:/x", StackBottom::Storage),
            ("fuse.glusterfs server:/x", StackBottom::Storage),
            ("ramfs none", StackBottom::Memory),
        ] {
            let found =
                stack_on_tree(&tree, tree.path(), &format!("1 0 0:9 / /x rw - {mount} rw\n"));
            assert_eq!(found.bottom, bottom, "{mount}");
        }
        let mounts = format!(
            "1 0 0:9 / {} rw - fuse.sshfs h:/x rw\n9 1 0:10 / /m rw - ecryptfs {0} rw\n",
            tree.path().display()
        );
        let found = stack_on_tree(&tree, tree.path(), &mounts);
        assert_eq!(found.bottom, StackBottom::Hidden);
        assert!(found.text().ends_with("fuse.sshfs from 'h:/x'"), "{}", found.text());
    }

    #[test]
    fn devices_that_are_or_hide_memory() {
        let (tree, memory, disk) = (TestFolder::new(), TestFolder::new(), TestFolder::new());
        memory.put("image", "");
        disk.put("image", "");
        let file = |loop_name: &str, path: String| {
            tree.put(&format!("class/block/{loop_name}/loop/backing_file"), &format!("{path}\n"));
        };
        file("loop1", format!("{}/image", memory.path().display()));
        file("loop2", format!("{}/image", disk.path().display()));
        file("loop3", "/dev/loop2".into());
        file("loop4", "/dev/loop1".into());
        file("loop5", format!("{}/gone (deleted)", disk.path().display()));
        for (device, member) in
            [("dm-0", "loop1"), ("dm-1", "loop2"), ("md0", "dm-0"), ("md0", "dm-1")]
        {
            tree.put(&format!("class/block/{device}/slaves/{member}/size"), "1");
        }
        tree.put("class/block/dm-2/dm/name", "zero");
        tree.put("class/block/sdb/device/model", "scsi_debug\n");
        let mounts = parse_mountinfo(&format!(
            "1 0 0:8 / {} rw - ext4 /dev/sda1 rw\n2 1 0:9 / {} rw - tmpfs tmpfs rw\n",
            disk.path().display(),
            memory.path().display()
        ));
        let roots = Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() };
        let bottom = |name: &str| stack_below_device(&roots, &mounts, name).bottom;
        for name in ["zram0", "ram1", "nullb0", "nullb0p1", "loop1", "loop4", "dm-0", "md0", "sdb"]
        {
            assert_eq!(bottom(name), StackBottom::Memory, "{name}");
        }
        for name in ["nbd0", "nbd0p1", "ublkb3", "loop5", "dm-2"] {
            assert_eq!(bottom(name), StackBottom::Hidden, "{name}");
        }
        // The type that the mount has is ext4, whose device is not in this tree.
        assert_eq!(bottom("loop2"), StackBottom::Hidden);
        for name in ["sda", "rambus", "vda1", "nvme0n1p2"] {
            assert_eq!(bottom(name), StackBottom::Storage, "{name}");
        }
        let text = stack_below_device(&roots, &mounts, "md0").text();
        let image = memory.path().join("image");
        let expected = format!("md0 on dm-0 on loop1 on the file '{}' on tmpfs", image.display());
        assert_eq!(text, expected);
    }
}
