//! A whole block device as a target: what it is, why it may not be written, who holds it, purge.

pub mod signature;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::Serialize;

use crate::error::{Context, Error, Result, io_error_text};
use crate::facts::disks::{device_of_mount, scsi_serial, visible_mounts};
use crate::facts::layers::{StackBottom, is_memory_device, stack_below_device};
use crate::guest;
use crate::roots::{Roots, list_names, read_number, read_text, read_value};
use crate::sys::block;
use crate::sys::thread::lock;
use signature::{Signature, SignatureKind, signatures};

/// Devices held at once; a session holds one a target.
const MAX_HELD_DEVICES: usize = 16;
/// Discarded at a time: an end of the agent never waits for more than this.
const DISCARD_CHUNK_BYTES: u64 = 4 << 30;

/// What a purge did.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct PurgeResult {
    /// Bytes that were given back.
    pub bytes: u64,
}

/// The devices, by the path that was requested; they are let go when this process ends.
#[derive(Default)]
pub struct Devices(Mutex<HashMap<PathBuf, (File, u64)>>);

impl Devices {
    /// Take a device if nothing objects. It can then be neither mounted nor taken by anybody else.
    pub fn take(&self, path: &Path, wish: DeviceOptions) -> Result<DeviceFacts> {
        let mut held = self.held_devices();
        if held.contains_key(path) {
            return Err(Error::busy(format!("{} is held here already", path.display())));
        }
        if held.len() >= MAX_HELD_DEVICES {
            return Err(Error::busy(format!("{MAX_HELD_DEVICES} devices are held already")));
        }
        let (facts, file) = hold_device(path, wish)?;
        held.insert(path.to_owned(), (file, facts.size_bytes));
        Ok(facts)
    }

    /// Let a device go.
    pub fn release(&self, path: &Path) -> Result<()> {
        self.held_devices().remove(path).map(drop).ok_or_else(|| not_held_error(path))
    }

    /// Discard every block of a held device.
    pub fn discard(&self, path: &Path) -> Result<PurgeResult> {
        let (file, size) = {
            let held = self.held_devices();
            let (file, size) = held.get(path).ok_or_else(|| not_held_error(path))?;
            let copy = file.try_clone();
            (copy.context("keep the device open")?, *size)
        };
        let mut at = 0;
        while at < size {
            let length = (size - at).min(DISCARD_CHUNK_BYTES);
            block::discard_range(&file, at, length)
                .context(format_args!("discard {} at byte {at}", path.display()))?;
            at += length;
        }
        Ok(PurgeResult { bytes: at })
    }

    fn held_devices(&self) -> MutexGuard<'_, HashMap<PathBuf, (File, u64)>> {
        lock(&self.0)
    }
}

/// Tell the devices below a file system what of it is free.
pub fn trim_file_system(folder: &Path) -> Result<PurgeResult> {
    let doing = format_args!("trim the file system of {}", folder.display());
    let bytes = File::open(folder).and_then(|folder| block::trim_file_system(&folder));
    bytes.map(|bytes| PurgeResult { bytes }).context(doing)
}

fn not_held_error(path: &Path) -> Error {
    Error::bad_request(format!("{} is not a device held here", path.display()))
}

const SECTOR_BYTES: u64 = 512;

/// What is wanted of a device: `serial` must be its own; `overwrite` permits a file system on it.
#[derive(Debug, Clone, Copy)]
pub struct DeviceOptions<'a> {
    /// The serial that the user named.
    pub serial: Option<&'a str>,
    /// Whether a file system there may be lost.
    pub overwrite: bool,
}

/// Whether a device is kept open after the look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Only looked at.
    Inspect,
    /// Kept for writing, by this agent alone.
    Hold,
}

/// One block device.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct DeviceFacts {
    pub path: String,
    pub real_path: String,
    pub name: String,
    pub serial: Option<String>,
    pub size_bytes: u64,
    pub logical_block_bytes: u64,
    pub discards: bool,
    pub devices: Vec<String>,
    pub memory_backed: bool,
    pub layers: Vec<String>,
    pub hidden: bool,
    pub signatures: Vec<Signature>,
    pub objections: Vec<Objection>,
}

/// Look at the device; one that is to be held comes back open for us alone where nothing objects.
///
/// An error where there is no block device of that path.
pub fn inspect_device(
    roots: &Roots,
    path: &Path,
    wish: DeviceOptions,
    hold: OpenMode,
) -> Result<(DeviceFacts, Option<File>)> {
    let real = resolve_block_device(path)?;
    let name = kernel_name(roots, &real).unwrap_or_else(|| {
        real.strip_prefix("/dev").unwrap_or(&real).display().to_string().replace('/', "!")
    });
    let count = |file: &str| read_number(&roots.block_folder(&name).join(file));
    let size_bytes = count("size").unwrap_or(0_u64).saturating_mul(SECTOR_BYTES);
    let stack = stack_below_device(roots, &visible_mounts(roots), &name);
    let mut facts = DeviceFacts {
        path: path.display().to_string(),
        real_path: real.display().to_string(),
        serial: device_serial(roots, &name),
        size_bytes,
        logical_block_bytes: count("queue/logical_block_size").unwrap_or(SECTOR_BYTES),
        discards: count("queue/discard_max_bytes").unwrap_or(0_u64) > 0,
        memory_backed: stack.is_memory_backed(),
        devices: stack.devices,
        layers: stack.layers,
        hidden: stack.bottom == StackBottom::Hidden,
        signatures: Vec::new(),
        objections: objections(roots, &name),
        name,
    };
    facts.objections.extend(serial_objection(&facts, wish));
    let opened = open_exclusive(&real, hold);
    match &opened {
        Ok(file) => {
            let bytes_at = |offset: u64, length: usize| {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
            };
            facts.signatures = signatures(size_bytes, &bytes_at);
            facts.objections.extend(content_objections(&facts, wish));
        }
        Err(error) => facts.objections.push(open_objection(&facts.name, error)),
    }
    if size_bytes == 0 {
        facts.objections.push(Objection::new("empty", format!("{} has no size", facts.name)));
    }
    let alone = opened.ok().filter(|_| hold == OpenMode::Hold && facts.objections.is_empty());
    Ok((facts, alone))
}

/// The same of one that is to be held and nothing else, by this agent alone, or why it is not.
pub fn hold_device(path: &Path, wish: DeviceOptions) -> Result<(DeviceFacts, File)> {
    let (facts, file) = inspect_device(&Roots::default(), path, wish, OpenMode::Hold)?;
    let Some(file) = file else {
        let reasons: Vec<&str> = facts.objections.iter().map(|one| one.message.as_str()).collect();
        return Err(Error::refused(reasons.join("; ")));
    };
    Ok((facts, file))
}

fn resolve_block_device(path: &Path) -> Result<PathBuf> {
    let found = fs::canonicalize(path).and_then(|real| Ok((fs::metadata(&real)?, real)));
    let (meta, real) = found.context(format_args!("find {}", path.display()))?;
    if meta.file_type().is_block_device() {
        return Ok(real);
    }
    Err(Error::errno(libc::ENOTBLK, format!("{} is not a block device", path.display())))
}

/// The kernel's own name of a device node, by its number: in a container it may be called anything,
/// also as another device is.
#[must_use]
pub fn kernel_name(roots: &Roots, real: &Path) -> Option<String> {
    let number = fs::metadata(real).ok()?.rdev();
    let id = format!("{}:{}", libc::major(number), libc::minor(number));
    let folder = fs::canonicalize(roots.sys.join("dev/block").join(id)).ok()?;
    Some(folder.file_name()?.to_string_lossy().into_owned())
}

/// The kernel gives a device with this flag to one opener, and to none while it is mounted, a
/// member of something, or swap; nor can it become one of these meanwhile.
fn open_exclusive(real: &Path, hold: OpenMode) -> io::Result<File> {
    let write = hold == OpenMode::Hold;
    OpenOptions::new().read(true).write(write).custom_flags(libc::O_EXCL).open(real)
}

fn open_objection(name: &str, error: &io::Error) -> Objection {
    if error.raw_os_error() == Some(libc::EBUSY) {
        return Objection::new("in-use", format!("{name} is in use: it cannot be had alone"));
    }
    Objection::new("closed", format!("{name} cannot be opened: {}", io_error_text(error)))
}

fn serial_objection(facts: &DeviceFacts, wish: DeviceOptions) -> Option<Objection> {
    let name = &facts.name;
    match (&facts.serial, wish.serial) {
        (None, _) => {
            Some(Objection::new("no-serial", format!("{name} has no serial to be known by")))
        }
        (Some(own), Some(named)) if own != named => Some(Objection::new(
            "other-serial",
            format!("{name} has the serial {own:?}, not {named:?}"),
        )),
        _ => None,
    }
}

fn content_objections(facts: &DeviceFacts, wish: DeviceOptions) -> Vec<Objection> {
    let name = &facts.name;
    // Random bytes can look like anything; nothing else was ever on the disk of our own guest.
    let is_ours = wish.overwrite && guest::is_data_disk(Path::new(&facts.path));
    let refused = facts.signatures.iter().filter_map(|signature| match signature.kind {
        _ if is_ours => None,
        SignatureKind::Member => {
            Some(Objection::new("signature", format!("{name} holds {}", signature.name)))
        }
        SignatureKind::FileSystem if wish.overwrite => None,
        SignatureKind::FileSystem => {
            let message = format!("{name} holds a file system: {}", signature.name);
            Some(Objection::new("file-system", message))
        }
    });
    refused.collect()
}

/// One reason against writing to a device: a word and half a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Objection {
    /// One of the words of docs/reference/wire.md.
    pub code: &'static str,
    /// What is the matter, with names and values.
    pub message: String,
}

impl Objection {
    /// Make one.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Every use of the device and of its partitions.
#[must_use]
pub fn objections(roots: &Roots, name: &str) -> Vec<Objection> {
    let mut objections = Vec::new();
    let folder = roots.block_folder(name);
    if folder.join("partition").exists() {
        objections.push(Objection::new("partition", format!("{name} is a partition")));
    }
    let partitions: Vec<String> = list_names(&folder)
        .into_iter()
        .filter(|inner| folder.join(inner).join("partition").exists())
        .collect();
    if !partitions.is_empty() {
        let message = format!("{name} has partitions: {}", partitions.join(", "));
        objections.push(Objection::new("partitioned", message));
    }
    if read_value(&folder.join("ro")).is_some_and(|is_so| is_so != "0") {
        objections.push(Objection::new("read-only", format!("{name} is read-only")));
    }
    let mut all = vec![name.to_owned()];
    all.extend(partitions);
    for device in &all {
        objections.extend(use_objections(roots, device));
    }
    objections
}

fn use_objections(roots: &Roots, device: &str) -> Vec<Objection> {
    let mut objections = Vec::new();
    for mount in &visible_mounts(roots) {
        if device_of_mount(roots, mount).as_deref() == Some(device) {
            let message = format!("{device} is mounted on {}", mount.mount_point.display());
            objections.push(Objection::new("mounted", message));
        }
    }
    let holders = list_names(&roots.block_folder(device).join("holders"));
    if !holders.is_empty() {
        let message = format!("{device} is held by {}", holders.join(", "));
        objections.push(Objection::new("held", message));
    }
    if swap_device_names(roots).iter().any(|swap| swap == device) {
        objections.push(Objection::new("swap", format!("{device} is swap space in use")));
    }
    objections
}

/// The devices that are swapped to, by the kernel's names.
fn swap_device_names(roots: &Roots) -> Vec<String> {
    let table = read_text(&roots.proc.join("swaps")).unwrap_or_default();
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
pub fn device_serial(roots: &Roots, name: &str) -> Option<String> {
    let folder = roots.block_folder(name);
    let read = |file: &str| read_value(&folder.join(file));
    read("device/serial")
        .or_else(|| read("serial"))
        .or_else(|| scsi_serial(&folder))
        .or_else(|| read("wwid"))
        .or_else(|| read("device/wwid"))
        .or_else(|| read("loop/backing_file"))
        .or_else(|| read("dm/uuid"))
        .or_else(|| read("dm/name"))
        .or_else(|| is_memory_device(name).then(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn nothing_is_done_to_a_device_that_is_not_held() {
        let devices = Devices::default();
        assert_eq!(devices.discard(Path::new("/dev/x")).unwrap_err().code, "bad-request");
        assert_eq!(devices.release(Path::new("/dev/x")).unwrap_err().code, "bad-request");
    }

    #[test]
    fn what_is_no_block_device_cannot_be_taken() {
        let wish = DeviceOptions { serial: Some("x"), overwrite: true };
        let error = Devices::default().take(Path::new("/dev/null"), wish).unwrap_err();
        assert_eq!(error.code, "ENOTBLK");
    }

    #[test]
    fn a_device_is_known_by_its_number_whatever_its_node_is_called() {
        let folder = TestFolder::new();
        let roots = Roots { sys: folder.path().to_owned(), ..Roots::default() };
        fs::create_dir_all(folder.path().join("devices/vdb")).unwrap();
        fs::create_dir_all(folder.path().join("dev/block")).unwrap();
        let link = folder.path().join("dev/block/1:3");
        std::os::unix::fs::symlink("../../devices/vdb", link).unwrap();
        assert_eq!(kernel_name(&roots, Path::new("/dev/null")).as_deref(), Some("vdb"));
        assert_eq!(kernel_name(&roots, Path::new("/dev/zero")), None);
    }

    const ANY: DeviceOptions = DeviceOptions { serial: None, overwrite: false };

    #[test]
    fn what_is_no_block_device_is_an_error() {
        let error =
            inspect_device(&Roots::default(), Path::new("/dev/null"), ANY, OpenMode::Inspect)
                .unwrap_err();
        assert_eq!(error.code, "ENOTBLK");
        let error =
            inspect_device(&Roots::default(), Path::new("/dev/nowhere"), ANY, OpenMode::Inspect)
                .unwrap_err();
        assert_eq!(error.code, "ENOENT");
    }

    fn facts(serial: Option<&str>, kinds: &[SignatureKind]) -> DeviceFacts {
        let made = |kind: &SignatureKind| Signature { kind: *kind, name: "x" };
        DeviceFacts {
            path: "/dev/x".into(),
            real_path: "/dev/x".into(),
            name: "x".into(),
            serial: serial.map(str::to_owned),
            size_bytes: 1,
            logical_block_bytes: 512,
            discards: false,
            devices: Vec::new(),
            memory_backed: false,
            layers: Vec::new(),
            hidden: false,
            signatures: kinds.iter().map(made).collect(),
            objections: Vec::new(),
        }
    }

    #[test]
    fn the_serial_must_be_its_own() {
        let code = |own, named| {
            let wish = DeviceOptions { serial: named, overwrite: true };
            serial_objection(&facts(own, &[]), wish).map(|objection| objection.code)
        };
        assert_eq!(code(Some("a"), Some("a")), None);
        assert_eq!(code(Some("a"), Some("b")), Some("other-serial"));
        assert_eq!(code(None, Some("a")), Some("no-serial"));
        assert_eq!(code(None, None), Some("no-serial"));
    }

    #[test]
    fn only_a_file_system_may_be_overwritten() {
        let codes = |overwrite| {
            let wish = DeviceOptions { serial: None, overwrite };
            let all = content_objections(
                &facts(None, &[SignatureKind::Member, SignatureKind::FileSystem]),
                wish,
            );
            all.into_iter().map(|one| one.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false), ["signature", "file-system"]);
        assert_eq!(codes(true), ["signature"]);
    }

    fn codes(tree: &TestFolder, name: &str) -> Vec<&'static str> {
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().to_owned() };
        objections(&roots, name).iter().map(|one| one.code).collect()
    }

    #[test]
    fn a_quiet_disk_has_no_user() {
        let tree = TestFolder::new();
        tree.put("class/block/sdb/ro", "0\n");
        tree.put("proc/swaps", "Filename Type Size Used Priority\n/dev/sdc partition 9 0 -2\n");
        assert!(codes(&tree, "sdb").is_empty());
        assert_eq!(codes(&tree, "sdc"), ["swap"]);
    }

    #[test]
    fn partitions_their_mounts_and_holders_count() {
        let tree = TestFolder::new();
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
        let tree = TestFolder::new();
        tree.put("class/block/nvme0n1/device/serial", "S5 \n");
        tree.put("class/block/loop3/loop/backing_file", "/srv/image\n");
        tree.put("class/block/dm-0/dm/name", "slow\n");
        tree.put("class/block/dm-0/dm/uuid", "\n");
        tree.put("class/block/zram0/size", "8\n");
        tree.put("class/block/vdb/serial", "\n");
        let roots = Roots { proc: tree.path().to_owned(), sys: tree.path().to_owned() };
        let told = |name: &str| device_serial(&roots, name);
        assert_eq!(told("nvme0n1").as_deref(), Some("S5"));
        assert_eq!(told("loop3").as_deref(), Some("/srv/image"));
        assert_eq!(told("dm-0").as_deref(), Some("slow"));
        assert_eq!(told("zram0").as_deref(), Some("zram0"));
        assert_eq!(told("vdb"), None);
    }
}
