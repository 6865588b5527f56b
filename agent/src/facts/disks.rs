//! Block devices: what each is, and which lie below it.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::probe::machine::{chosen, non_empty, number_after};
use crate::probe::mountinfo::{Mount, mount_of, parse_mountinfo};
use crate::roots::{Roots, names, text};

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
pub fn disks(roots: &Roots, beneath: &[String], faults: &mut Vec<String>) -> Vec<DiskFacts> {
    let mut wanted = roots.sys_names("block");
    if wanted.is_empty() {
        faults.push("No block device is shown in /sys/block.".into());
    }
    let partitions: Vec<String> =
        beneath.iter().filter(|name| !wanted.contains(name)).cloned().collect();
    wanted.extend(partitions);
    let mounts = mounts(roots);
    let all = wanted.iter().map(|name| disk(roots, &mounts, name));
    all.filter(|disk| disk.size_bytes > 0).collect()
}

/// The devices below `name` (itself first), nearest first, each once.
#[must_use]
pub fn chain(roots: &Roots, mounts: &[Mount], name: &str) -> Vec<String> {
    let mut found = vec![name.to_owned()];
    let mut next = 0;
    while next < found.len() && found.len() < 10_000 {
        for parent in parents(roots, mounts, &found[next].clone()) {
            if !found.contains(&parent) {
                found.push(parent);
            }
        }
        next += 1;
    }
    found
}

/// The mounts that the calling thread sees, which may be others than those of its process.
#[must_use]
pub fn mounts(roots: &Roots) -> Vec<Mount> {
    parse_mountinfo(&text(&roots.proc.join("thread-self/mountinfo")).unwrap_or_default())
}

/// The block device that a mount's file system is on, by its number or by its source.
#[must_use]
pub fn device_of(roots: &Roots, mount: &Mount) -> Option<String> {
    let by_number = fs::canonicalize(roots.sys.join("dev/block").join(&mount.device)).ok();
    let by_source = || {
        // A file system over several devices may name them all, joined by colons.
        let source = mount.source.strip_prefix("/dev/")?.split(':').next()?;
        let source = fs::canonicalize(Path::new("/dev").join(source)).ok();
        let name = source?.file_name()?.to_owned();
        Some(roots.sys.join("class/block").join(name)).filter(|folder| folder.exists())
    };
    let folder = by_number.or_else(by_source)?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

fn disk(roots: &Roots, mounts: &[Mount], name: &str) -> DiskFacts {
    let folder = roots.sys.join("class/block").join(name);
    let is_partition = folder.join("partition").exists();
    let parents = parents(roots, mounts, name);
    // A partition has its disk's queue and device.
    let whole = match parents.first() {
        Some(disk) if is_partition => roots.sys.join("class/block").join(disk),
        _ => folder.clone(),
    };
    let read = |file: &str| text(&whole.join(file)).and_then(|text| non_empty(&text));
    let number = |file: &str| read(file).and_then(|text| text.parse::<u64>().ok());
    let sectors = text(&folder.join("size")).and_then(|text| text.trim().parse::<u64>().ok());
    DiskFacts {
        name: name.to_owned(),
        model: model(&read),
        serial: read("device/serial").or_else(|| read("serial")).or_else(|| scsi_serial(&whole)),
        firmware: read("device/firmware_rev").or_else(|| read("device/rev")),
        size_bytes: sectors.unwrap_or(0).saturating_mul(SECTOR_BYTES),
        rotational: number("queue/rotational") == Some(1),
        scheduler: read("queue/scheduler").and_then(|text| chosen(&text)),
        logical_block_bytes: number("queue/logical_block_size").unwrap_or(DEFAULT_BLOCK_BYTES),
        physical_block_bytes: number("queue/physical_block_size").unwrap_or(DEFAULT_BLOCK_BYTES),
        max_io_bytes: number("queue/max_sectors_kb").and_then(|kib| kib.checked_mul(1024)),
        pcie_link: pcie_link(&whole.join("device")),
        parents,
        backing_file: backing_file(&folder),
    }
}

fn model(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
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

fn parents(roots: &Roots, mounts: &[Mount], name: &str) -> Vec<String> {
    let folder = roots.sys.join("class/block").join(name);
    if folder.join("partition").exists() {
        let whole = fs::canonicalize(&folder).ok();
        let whole = whole.as_deref().and_then(Path::parent).and_then(Path::file_name);
        return whole.map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
    }
    let mut parents = names(&folder.join("slaves"));
    let backing = backing_file(&folder).and_then(|file| {
        backing_device(roots, &file)
            .or_else(|| device_of(roots, mount_of(mounts, Path::new(&file))?))
    });
    parents.extend(backing);
    parents.truncate(MAX_DEPTH * MAX_DEPTH);
    parents
}

/// The file that a loop device stands for.
#[must_use]
pub fn backing_file(folder: &Path) -> Option<String> {
    text(&folder.join("loop/backing_file")).and_then(|text| non_empty(&text))
}

/// The block device that a loop device stands for instead of a file: its name under `/dev`.
///
/// That folder is a file system in memory, which says nothing of the device.
#[must_use]
pub fn backing_device(roots: &Roots, file: &str) -> Option<String> {
    let name = file.strip_prefix("/dev/").filter(|name| !name.contains('/'))?;
    roots.sys.join("class/block").join(name).exists().then(|| name.to_owned())
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
        // A multipath device's folder holds its controllers.
        let first = names(&device).into_iter().find(|n| number_after("nvme", n).is_some())?;
        fs::canonicalize(device.join(first)).ok()?
    };
    link_of(&fs::canonicalize(controller.join("device")).ok()?)
}

fn link_of(pci: &Path) -> Option<String> {
    let read = |file: &str| text(&pci.join(file)).and_then(|text| non_empty(&text));
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
#[path = "disks_tests.rs"]
mod tests;
