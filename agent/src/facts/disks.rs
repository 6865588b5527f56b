//! Block devices: what each is, and which lie below it.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::layers::{device_parents, mount_of_loop, nearest_devices};
use crate::probe::machine::{bracketed_word, non_empty, number_after};
use crate::probe::mountinfo::{Mount, parse_mountinfo};
use crate::roots::{Roots, list_names, read_number, read_text, read_value};

/// Sizes in sysfs are in these, whatever the device's block is.
const SECTOR_BYTES: u64 = 512;
const DEFAULT_BLOCK_BYTES: u64 = 512;
/// Devices below one: deeper stacks do not exist outside of a circle.
const MAX_DEPTH: usize = 32;

/// One block device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct DiskFacts {
    pub name: String,
    pub model: Option<String>,
    pub serial: Option<String>,
    pub firmware: Option<String>,
    pub size_bytes: u64,
    pub rotational: bool,
    pub scheduler: Option<String>,
    pub logical_block_bytes: u64,
    pub physical_block_bytes: u64,
    pub max_io_bytes: Option<u64>,
    pub pcie_link: Option<String>,
    pub parents: Vec<String>,
    pub backing_file: Option<String>,
}

/// All whole devices that have a size, and of partitions those `beneath` the target.
pub fn disk_facts(roots: &Roots, beneath: &[String], faults: &mut Vec<String>) -> Vec<DiskFacts> {
    let mut wanted = roots.sys_names("block");
    if wanted.is_empty() {
        faults.push("No block device is shown in /sys/block.".into());
    }
    let partitions: Vec<String> =
        beneath.iter().filter(|name| !wanted.contains(name)).cloned().collect();
    wanted.extend(partitions);
    let mounts = visible_mounts(roots);
    let all = wanted.iter().map(|name| facts_of_disk(roots, &mounts, name));
    all.filter(|disk| disk.size_bytes > 0).collect()
}

/// The devices below `name` (itself first), nearest first, each once.
#[must_use]
pub fn device_chain(roots: &Roots, mounts: &[Mount], name: &str) -> Vec<String> {
    let mut devices = vec![name.to_owned()];
    let mut next = 0;
    while next < devices.len() && devices.len() < 10_000 {
        for parent in parent_devices(roots, mounts, &devices[next].clone()) {
            if !devices.contains(&parent) {
                devices.push(parent);
            }
        }
        next += 1;
    }
    devices
}

/// The disk that a partition is of; of any other device itself.
#[must_use]
pub fn whole_disk(roots: &Roots, name: &str) -> String {
    let is_partition = roots.block_folder(name).join("partition").exists();
    let disk = device_parents(roots, name).into_iter().next().filter(|_| is_partition);
    disk.unwrap_or_else(|| name.to_owned())
}

/// Of the devices of a stack, all of its layers, the whole disks of the nearest layer: each I/O of
/// whoever uses the stack is one of these, and then another one of each layer below.
#[must_use]
pub fn nearest_disks(roots: &Roots, mounts: &[Mount], devices: &[String]) -> Vec<String> {
    let is_below = |name: &String| {
        devices
            .iter()
            .any(|other| other != name && device_chain(roots, mounts, other).contains(name))
    };
    let mut disks = Vec::new();
    for device in devices.iter().filter(|name| !is_below(name)) {
        let disk = whole_disk(roots, device);
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    disks
}

/// The mounts that the calling thread sees, which may be others than those of its process.
#[must_use]
pub fn visible_mounts(roots: &Roots) -> Vec<Mount> {
    parse_mountinfo(&read_text(&roots.proc.join("thread-self/mountinfo")).unwrap_or_default())
}

/// The block device that a mount's file system is on, by its number or by its source.
#[must_use]
pub fn device_of_mount(roots: &Roots, mount: &Mount) -> Option<String> {
    let by_number = fs::canonicalize(roots.sys.join("dev/block").join(&mount.device)).ok();
    let by_source = || {
        // A file system over several devices may name them all, joined by colons.
        let source = mount.source.strip_prefix("/dev/")?.split(':').next()?;
        let source = fs::canonicalize(Path::new("/dev").join(source)).ok();
        let name = source?.file_name()?.to_owned();
        Some(roots.block_folder(name.to_str()?)).filter(|folder| folder.exists())
    };
    let folder = by_number.or_else(by_source)?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

fn facts_of_disk(roots: &Roots, mounts: &[Mount], name: &str) -> DiskFacts {
    let folder = roots.block_folder(name);
    let is_partition = folder.join("partition").exists();
    let parents = parent_devices(roots, mounts, name);
    // A partition has its disk's queue and device.
    let whole = match parents.first() {
        Some(disk) if is_partition => roots.block_folder(disk),
        _ => folder.clone(),
    };
    let read = |file: &str| read_value(&whole.join(file));
    let count = |file: &str| read_number::<u64>(&whole.join(file));
    let sectors = read_number::<u64>(&folder.join("size"));
    DiskFacts {
        name: name.to_owned(),
        model: disk_model(&read),
        serial: read("device/serial").or_else(|| read("serial")).or_else(|| scsi_serial(&whole)),
        firmware: read("device/firmware_rev").or_else(|| read("device/rev")),
        size_bytes: sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES),
        rotational: count("queue/rotational") == Some(1),
        scheduler: read("queue/scheduler").and_then(|text| bracketed_word(&text)),
        logical_block_bytes: count("queue/logical_block_size").unwrap_or(DEFAULT_BLOCK_BYTES),
        physical_block_bytes: count("queue/physical_block_size").unwrap_or(DEFAULT_BLOCK_BYTES),
        max_io_bytes: count("queue/max_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
        pcie_link: pcie_link(&whole.join("device")),
        parents,
        backing_file: loop_backing_file(&folder),
    }
}

fn disk_model(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let model = read("device/model")?;
    // SCSI says `ATA` as the vendor of any SATA disk; PCI devices say a number.
    match read("device/vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x")) {
        Some(vendor) => Some(format!("{vendor} {model}")),
        None => Some(model),
    }
}

/// The unit serial number page of SCSI: four bytes of header, then text.
#[must_use]
pub fn scsi_serial(folder: &Path) -> Option<String> {
    let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
    non_empty(&String::from_utf8_lossy(page.get(4..)?))
}

fn parent_devices(roots: &Roots, mounts: &[Mount], name: &str) -> Vec<String> {
    let mut parents = device_parents(roots, name);
    if let Some(file) = loop_backing_file(&roots.block_folder(name)) {
        match loop_backing_device(roots, &file) {
            Some(device) => parents.push(device),
            None => {
                parents.extend(mount_of_loop(roots, mounts, name).map_or_else(Vec::new, |mount| {
                    nearest_devices(roots, mounts, mount, &mount.mount_point)
                }));
            }
        }
    }
    parents.truncate(MAX_DEPTH * MAX_DEPTH);
    parents
}

/// All devices of a btrfs, the mounted one first; of any other file system just that one.
#[must_use]
pub fn file_system_devices(roots: &Roots, mount: &Mount, nearest: String) -> Vec<String> {
    if mount.fs_type != "btrfs" {
        return vec![nearest];
    }
    let folder = roots.sys.join("fs/btrfs");
    let all = list_names(&folder)
        .iter()
        .map(|uuid| list_names(&folder.join(uuid).join("devices")))
        .find(|devices| devices.contains(&nearest))
        .unwrap_or_default();
    let others: Vec<String> = all.into_iter().filter(|device| *device != nearest).collect();
    [vec![nearest], others].concat()
}

/// The disk behind a bcache and the devices of its cache, each by a link from its folder.
#[must_use]
pub fn bcache_parents(folder: &Path) -> Vec<String> {
    let own = folder.join("bcache");
    let caches = list_names(&own.join("cache")).into_iter();
    let caches = caches.filter(|name| number_after("cache", name).is_some());
    let links = std::iter::once(own.clone()).chain(caches.map(|name| own.join("cache").join(name)));
    links
        .filter_map(|link| {
            let device = fs::canonicalize(link).ok()?.parent()?.to_owned();
            let name = device.file_name()?.to_str()?.to_owned();
            (device.join("size").exists() && device != *folder).then_some(name)
        })
        .collect()
}

/// The file that a loop device stands for.
#[must_use]
pub fn loop_backing_file(folder: &Path) -> Option<String> {
    read_value(&folder.join("loop/backing_file"))
}

/// The block device that a loop device stands for instead of a file: its name under `/dev`.
///
/// That folder is a file system in memory, which says nothing of the device.
#[must_use]
pub fn loop_backing_device(roots: &Roots, file: &str) -> Option<String> {
    let name = file.strip_prefix("/dev/").filter(|name| !name.contains('/'))?;
    roots.block_folder(name).exists().then(|| name.to_owned())
}

/// The PCI Express link of an `nvme` disk as it runs, `32.0 GT/s x4`, and what it could be if that
/// is more.
///
/// Only of `nvme`: behind a SCSI adapter the nearest link is shared by all its disks.
fn pcie_link(device: &Path) -> Option<String> {
    let device = fs::canonicalize(device).ok()?;
    let own = device.file_name()?.to_string_lossy().into_owned();
    let controller = if number_after("nvme", &own).is_some() {
        device
    } else {
        // A multipath device's folder holds its controllers; several have no link in common.
        let names = list_names(&device).into_iter();
        let mut controllers = names.filter(|name| number_after("nvme", name).is_some());
        let only = controllers.next().filter(|_| controllers.next().is_none())?;
        fs::canonicalize(device.join(only)).ok()?
    };
    link_text(&fs::canonicalize(controller.join("device")).ok()?)
}

fn link_text(pci: &Path) -> Option<String> {
    let read = |file: &str| read_value(&pci.join(file));
    let link = |speed: &str, width: &str| {
        let speed = read(speed).filter(|speed| speed.contains("GT/s"))?;
        let width = read(width).filter(|width| width != "0")?;
        Some(format!("{} x{width}", speed.trim_end_matches(" PCIe")))
    };
    let now = link("current_link_speed", "current_link_width")?;
    match link("max_link_speed", "max_link_width").filter(|most| *most != now) {
        Some(most) => Some(format!("{now} (of {most})")),
        None => Some(now),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::trial::TestFolder;

    /// A synthetic sysfs: devices under `devices`, linked from `block` and `class/block`.
    struct Tree(TestFolder);

    impl Tree {
        fn new() -> Self {
            let folder = TestFolder::new();
            for name in ["block", "class/block", "dev/block"] {
                fs::create_dir_all(folder.path().join("sys").join(name)).unwrap();
            }
            fs::create_dir_all(folder.path().join("proc/self")).unwrap();
            Self(folder)
        }

        fn roots(&self) -> Roots {
            Roots { proc: self.0.path().join("proc"), sys: self.0.path().join("sys") }
        }

        fn device(&self, place: &str, number: &str, files: &[(&str, &str)]) {
            let sys = self.0.path().join("sys");
            let real = sys.join("devices").join(place);
            fs::create_dir_all(&real).unwrap();
            let name = real.file_name().unwrap();
            for (file, text) in files {
                self.0.put(&format!("sys/devices/{place}/{file}"), text);
            }
            symlink(&real, sys.join("class/block").join(name)).unwrap();
            symlink(&real, sys.join("dev/block").join(number)).unwrap();
            if !real.join("partition").exists() {
                symlink(&real, sys.join("block").join(name)).unwrap();
            }
        }

        fn mounts(&self, text: &str) -> Vec<Mount> {
            self.0.put("proc/thread-self/mountinfo", text);
            visible_mounts(&self.roots())
        }
    }

    const NVME: &str = "pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1";

    fn nvme(tree: &Tree) {
        let files = [
            ("size", "7501476528\n"),
            ("queue/rotational", "0\n"),
            ("queue/scheduler", "[none] mq-deadline\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/physical_block_size", "4096\n"),
        ];
        tree.device(NVME, "259:0", &files);
        let controller = "sys/devices/pci0000:00/0000:01:00.0/nvme/nvme0";
        tree.0.put(&format!("{controller}/model"), "SAMSUNG MZQL23T8HCLS-00A07              \n");
        tree.0.put(&format!("{controller}/serial"), "S64HNE0R500123      \n");
        tree.0.put(&format!("{controller}/firmware_rev"), "GDC5602Q\n");
        let pci = "sys/devices/pci0000:00/0000:01:00.0";
        tree.0.put(&format!("{pci}/current_link_speed"), "8.0 GT/s PCIe\n");
        tree.0.put(&format!("{pci}/current_link_width"), "4\n");
        tree.0.put(&format!("{pci}/max_link_speed"), "16.0 GT/s PCIe\n");
        tree.0.put(&format!("{pci}/max_link_width"), "4\n");
        let real = tree.0.path().join("sys/devices").join(NVME);
        symlink("../../nvme0", real.join("device")).unwrap();
        symlink("../../../0000:01:00.0", real.parent().unwrap().join("device")).unwrap();
    }

    #[test]
    fn an_nvme_disk_with_a_link_below_its_best() {
        let tree = Tree::new();
        nvme(&tree);
        let disk = disk_facts(&tree.roots(), &[], &mut Vec::new()).remove(0);
        assert_eq!(disk.name, "nvme0n1");
        assert_eq!(disk.model.as_deref(), Some("SAMSUNG MZQL23T8HCLS-00A07"));
        assert_eq!(disk.serial.as_deref(), Some("S64HNE0R500123"));
        assert_eq!(disk.firmware.as_deref(), Some("GDC5602Q"));
        assert_eq!(disk.size_bytes, 7_501_476_528 * 512);
        assert_eq!((disk.logical_block_bytes, disk.physical_block_bytes), (512, 4096));
        assert_eq!((disk.rotational, disk.scheduler.as_deref()), (false, Some("none")));
        assert_eq!(disk.pcie_link.as_deref(), Some("8.0 GT/s x4 (of 16.0 GT/s x4)"));
    }

    #[test]
    fn a_scsi_disk_and_a_device_that_says_nothing() {
        let tree = Tree::new();
        let files = [
            ("size", "100\n"),
            ("queue/rotational", "1\n"),
            ("device/vendor", "SEAGATE \n"),
            ("device/model", "ST8000NM    \n"),
            ("device/rev", "E005\n"),
            ("device/vpd_pg80", "\0\u{1}\0\u{8}ZA1BCDEF"),
        ];
        tree.device("pci0/host0/sda", "8:0", &files);
        tree.device("virtual/block/odd", "250:0", &[("size", "1\n")]);
        tree.device("virtual/block/loop0", "7:0", &[("size", "0\n")]);
        let all = disk_facts(&tree.roots(), &[], &mut Vec::new());
        assert_eq!(all.iter().map(|disk| disk.name.as_str()).collect::<Vec<_>>(), ["odd", "sda"]);
        assert_eq!((&all[0].model, &all[0].scheduler, all[0].rotational), (&None, &None, false));
        assert_eq!(all[1].model.as_deref(), Some("SEAGATE ST8000NM"));
        assert_eq!(all[1].serial.as_deref(), Some("ZA1BCDEF"));
        assert_eq!((all[1].firmware.as_deref(), all[1].rotational), (Some("E005"), true));
        assert_eq!(all[1].pcie_link, None);
    }

    #[test]
    fn a_namespace_with_several_controllers_has_no_link_of_its_own() {
        let tree = Tree::new();
        let link = [("current_link_speed", "8.0 GT/s PCIe\n"), ("current_link_width", "4\n")];
        for (controller, pci) in [("nvme0", "0000:01:00.0"), ("nvme1", "0000:02:00.0")] {
            let folder = tree.roots().sys.join("devices").join(controller);
            fs::create_dir_all(&folder).unwrap();
            let address = tree.roots().sys.join("devices").join(pci);
            fs::create_dir_all(&address).unwrap();
            for (name, text) in link {
                fs::write(address.join(name), text).unwrap();
            }
            symlink(&address, folder.join("device")).unwrap();
        }
        let subsystem = tree.roots().sys.join("devices/nvme-subsys0");
        fs::create_dir_all(&subsystem).unwrap();
        symlink("../nvme0", subsystem.join("nvme0")).unwrap();
        assert_eq!(pcie_link(&subsystem).as_deref(), Some("8.0 GT/s x4"));
        symlink("../nvme1", subsystem.join("nvme1")).unwrap();
        assert_eq!(pcie_link(&subsystem), None);
    }

    #[test]
    fn a_loop_on_a_file_on_a_volume_on_a_partition() {
        let tree = Tree::new();
        nvme(&tree);
        let partition = format!("{NVME}/nvme0n1p2");
        tree.device(&partition, "259:2", &[("size", "50\n"), ("partition", "2\n")]);
        let volume = [("size", "40\n"), ("slaves/nvme0n1p2/size", "50\n")];
        tree.device("virtual/block/dm-0", "253:0", &volume);
        tree.0.put("image", "");
        let image = tree.0.path().join("image").display().to_string();
        let backing = [("size", "30\n"), ("loop/backing_file", image.as_str())];
        tree.device("virtual/block/loop3", "7:3", &backing);
        let mounts = tree.mounts(
            "1 0 253:0 / / rw - xfs /dev/mapper/root rw\n2 1 7:3 / /mnt rw - xfs /dev/loop3 rw\n",
        );
        let roots = tree.roots();
        assert_eq!(device_of_mount(&roots, &mounts[1]).as_deref(), Some("loop3"));
        let chain = device_chain(&roots, &mounts, "loop3");
        assert_eq!(chain, ["loop3", "dm-0", "nvme0n1p2", "nvme0n1"]);

        let all = disk_facts(&roots, &chain, &mut Vec::new());
        let names: Vec<&str> = all.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "loop3", "nvme0n1", "nvme0n1p2"]);
        assert_eq!(all[1].parents, ["dm-0"]);
        assert_eq!(all[1].backing_file.as_deref(), Some(image.as_str()));
        assert_eq!((all[3].size_bytes, all[3].physical_block_bytes), (50 * 512, 4096));
        assert_eq!(disk_facts(&roots, &[], &mut Vec::new()).len(), 3);
    }

    #[test]
    fn a_loop_on_a_device_has_that_for_its_parent() {
        let tree = Tree::new();
        tree.0.put("image", "");
        let image = tree.0.path().join("image").display().to_string();
        let below = [("size", "50\n"), ("loop/backing_file", image.as_str())];
        tree.device("virtual/block/loop1", "7:1", &below);
        let above = [("size", "40\n"), ("loop/backing_file", "/dev/loop1\n")];
        tree.device("virtual/block/loop2", "7:2", &above);
        tree.device("virtual/block/dm-0", "253:0", &[("size", "60\n")]);
        let mounts = tree.mounts(
            "1 0 253:0 / / rw - xfs /dev/mapper/root rw\n2 1 0:5 / /dev rw - devtmpfs udev rw\n",
        );
        assert_eq!(device_chain(&tree.roots(), &mounts, "loop2"), ["loop2", "loop1", "dm-0"]);
    }

    #[test]
    fn of_a_stack_the_nearest_whole_disks_are_what_its_user_asks() {
        let tree = Tree::new();
        for (disk, major) in [("sda", 8), ("sdb", 9)] {
            tree.device(&format!("pci0/{disk}"), &format!("{major}:0"), &[("size", "9\n")]);
            let partition = [("size", "5\n"), ("partition", "1\n")];
            tree.device(&format!("pci0/{disk}/{disk}1"), &format!("{major}:1"), &partition);
        }
        tree.device("virtual/block/dm-0", "253:0", &[("size", "9\n")]);
        let slaves = tree.0.path().join("sys/devices/virtual/block/dm-0/slaves");
        fs::create_dir_all(&slaves).unwrap();
        for member in ["sda1", "sdb1"] {
            symlink(format!("/{member}"), slaves.join(member)).unwrap();
        }
        for (devices, disks) in [
            (vec!["sda1", "sda"], vec!["sda"]),
            (vec!["dm-0", "sda1", "sdb1", "sda", "sdb"], vec!["dm-0"]),
            // A btrfs of two partitions, and one that the inventory names.
            (vec!["sda1", "sdb1", "sda", "sdb"], vec!["sda", "sdb"]),
            (vec!["sdb"], vec!["sdb"]),
            (vec![], vec![]),
        ] {
            let devices: Vec<String> = devices.into_iter().map(str::to_owned).collect();
            assert_eq!(nearest_disks(&tree.roots(), &[], &devices), disks, "{devices:?}");
        }
    }

    #[test]
    fn devices_in_a_circle_end() {
        let tree = Tree::new();
        tree.device("virtual/block/dm-0", "253:0", &[("slaves/dm-1/size", "1")]);
        tree.device("virtual/block/dm-1", "253:1", &[("slaves/dm-0/size", "1")]);
        assert_eq!(device_chain(&tree.roots(), &[], "dm-0"), ["dm-0", "dm-1"]);
    }

    #[test]
    fn three_hundred_disks_and_none() {
        let tree = Tree::new();
        let mut faults = Vec::new();
        assert!(disk_facts(&tree.roots(), &[], &mut faults).is_empty());
        assert_eq!(faults.len(), 1);
        for number in 0..300 {
            let place = format!("pci0/host{number}/sd{number}");
            tree.device(&place, &format!("65:{number}"), &[("size", "8\n")]);
        }
        assert_eq!(disk_facts(&tree.roots(), &[], &mut Vec::new()).len(), 300);
    }

    #[test]
    fn a_btrfs_has_all_its_devices() {
        let tree = Tree::new();
        tree.0.put("sys/fs/btrfs/uuid-1/devices/sdb/size", "1");
        tree.0.put("sys/fs/btrfs/uuid-1/devices/sdc/size", "1");
        tree.0.put("sys/fs/btrfs/features/raid56", "1");
        let mount = &parse_mountinfo("1 0 0:9 / /b rw - btrfs /dev/sdc rw\n")[0];
        assert_eq!(file_system_devices(&tree.roots(), mount, "sdc".into()), ["sdc", "sdb"]);
    }

    #[test]
    fn a_bcache_is_on_its_disk_and_its_cache() {
        let tree = Tree::new();
        tree.device("pci0/sdb", "8:16", &[("size", "9\n"), ("bcache/state", "clean")]);
        tree.device("pci0/nvme1n1", "259:1", &[("size", "9\n"), ("bcache/set", "")]);
        tree.device("virtual/block/bcache0", "252:0", &[("size", "9\n")]);
        let devices = tree.0.path().join("sys/devices");
        let set = tree.0.path().join("sys/fs/bcache/uuid");
        fs::create_dir_all(&set).unwrap();
        symlink(devices.join("pci0/nvme1n1/bcache"), set.join("cache0")).unwrap();
        symlink(&set, devices.join("pci0/sdb/bcache/cache")).unwrap();
        let own = devices.join("virtual/block/bcache0/bcache");
        symlink(devices.join("pci0/sdb/bcache"), own).unwrap();
        assert_eq!(device_chain(&tree.roots(), &[], "bcache0"), ["bcache0", "sdb", "nvme1n1"]);
    }
}
