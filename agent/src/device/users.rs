//! Who uses a block device, as the kernel tells it: mounts, swap, holders, partitions.

use std::fs;
use std::path::Path;

use super::objection::Objection;
use crate::facts::disks::{device_of, mounts};
use crate::probe::word::non_empty;
use crate::roots::{Roots, names, text};

/// Every use of the device and of its partitions.
#[must_use]
pub fn objections(roots: &Roots, name: &str) -> Vec<Objection> {
    let mut found = Vec::new();
    let folder = roots.sys.join("class/block").join(name);
    if folder.join("partition").exists() {
        found.push(Objection::new("partition", format!("{name} is a partition")));
    }
    let partitions: Vec<String> = names(&folder)
        .into_iter()
        .filter(|inner| folder.join(inner).join("partition").exists())
        .collect();
    if !partitions.is_empty() {
        let says = format!("{name} has partitions: {}", partitions.join(", "));
        found.push(Objection::new("partitioned", says));
    }
    if text(&folder.join("ro")).is_some_and(|text| text.trim() != "0") {
        found.push(Objection::new("read-only", format!("{name} is read-only")));
    }
    let mut all = vec![name.to_owned()];
    all.extend(partitions);
    for device in &all {
        found.extend(uses_of(roots, device));
    }
    found
}

fn uses_of(roots: &Roots, device: &str) -> Vec<Objection> {
    let mut found = Vec::new();
    for mount in &mounts(roots) {
        if device_of(roots, mount).as_deref() == Some(device) {
            let says = format!("{device} is mounted on {}", mount.mount_point.display());
            found.push(Objection::new("mounted", says));
        }
    }
    let holders = names(&roots.sys.join("class/block").join(device).join("holders"));
    if !holders.is_empty() {
        let says = format!("{device} is held by {}", holders.join(", "));
        found.push(Objection::new("held", says));
    }
    if swaps(roots).iter().any(|swap| swap == device) {
        found.push(Objection::new("swap", format!("{device} is swap space in use")));
    }
    found
}

/// The devices that are swapped to, by the kernel's names.
fn swaps(roots: &Roots) -> Vec<String> {
    let table = text(&roots.proc.join("swaps")).unwrap_or_default();
    let paths = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    paths
        .filter_map(|path| {
            let real = fs::canonicalize(path).unwrap_or_else(|_| Path::new(path).to_owned());
            Some(real.strip_prefix("/dev").ok()?.display().to_string().replace('/', "!"))
        })
        .collect()
}

/// What tells the device from all others; None where nothing does.
///
/// A disk has its serial number or its world-wide name; a loop device its file; a device-mapper
/// device its UUID or name; devices in memory, which lose all with the host, their own name.
#[must_use]
pub fn serial(roots: &Roots, name: &str) -> Option<String> {
    let folder = roots.sys.join("class/block").join(name);
    let read = |file: &str| text(&folder.join(file)).and_then(|text| non_empty(&text));
    let scsi = || {
        let page = fs::read(folder.join("device/vpd_pg80")).ok()?;
        non_empty(&String::from_utf8_lossy(page.get(4..)?))
    };
    read("device/serial")
        .or_else(|| read("serial"))
        .or_else(scsi)
        .or_else(|| read("wwid"))
        .or_else(|| read("device/wwid"))
        .or_else(|| read("loop/backing_file"))
        .or_else(|| read("dm/uuid"))
        .or_else(|| read("dm/name"))
        .or_else(|| is_memory(name).then(|| name.to_owned()))
}

/// Whether the device's blocks are memory of the host.
fn is_memory(name: &str) -> bool {
    ["zram", "ram", "nullb"]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;

    fn codes(tree: &Folder, name: &str) -> Vec<&'static str> {
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().to_owned() };
        objections(&roots, name).iter().map(|one| one.code).collect()
    }

    #[test]
    fn a_quiet_disk_has_no_user() {
        let tree = Folder::new();
        tree.put("class/block/sdb/ro", "0\n");
        tree.put("proc/swaps", "Filename Type Size Used Priority\n/dev/sdc partition 9 0 -2\n");
        assert!(codes(&tree, "sdb").is_empty());
        assert_eq!(codes(&tree, "sdc"), ["swap"]);
    }

    #[test]
    fn partitions_their_mounts_and_holders_count() {
        let tree = Folder::new();
        tree.put("class/block/sdb/ro", "1\n");
        tree.put("class/block/sdb/sdb1/partition", "1\n");
        tree.put("class/block/sdb1/partition", "1\n");
        tree.put("class/block/sdb1/holders/dm-0/x", "");
        tree.put("proc/thread-self/mountinfo", "1 0 8:17 / /m rw - ext4 /dev/sdb1 rw\n");
        fs::create_dir_all(tree.path().join("dev/block")).unwrap();
        std::os::unix::fs::symlink(
            tree.path().join("class/block/sdb1"),
            tree.path().join("dev/block/8:17"),
        )
        .unwrap();
        assert_eq!(codes(&tree, "sdb"), ["partitioned", "read-only", "mounted", "held"]);
        assert_eq!(codes(&tree, "sdb1"), ["partition", "mounted", "held"]);
    }

    #[test]
    fn what_tells_devices_apart() {
        let tree = Folder::new();
        tree.put("class/block/nvme0n1/device/serial", "S5 \n");
        tree.put("class/block/loop3/loop/backing_file", "/srv/image\n");
        tree.put("class/block/dm-0/dm/name", "slow\n");
        tree.put("class/block/dm-0/dm/uuid", "\n");
        tree.put("class/block/zram0/size", "8\n");
        tree.put("class/block/vdb/serial", "\n");
        let roots = Roots { proc: tree.path().to_owned(), sys: tree.path().to_owned() };
        let told = |name: &str| serial(&roots, name);
        assert_eq!(told("nvme0n1").as_deref(), Some("S5"));
        assert_eq!(told("loop3").as_deref(), Some("/srv/image"));
        assert_eq!(told("dm-0").as_deref(), Some("slow"));
        assert_eq!(told("zram0").as_deref(), Some("zram0"));
        assert_eq!(told("vdb"), None);
    }
}
