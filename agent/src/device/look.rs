//! Facts of a block device with every reason why it may not be overwritten.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::objection::Objection;
use super::signature::{Kind, Signature, signatures};
use super::users;
use crate::error::{Error, Result, sentence};
use crate::facts::disks::{chain, mounts};
use crate::facts::target::is_memory;
use crate::guest;
use crate::roots::{Roots, text};

const SECTOR_BYTES: u64 = 512;

/// What is wanted of a device: `serial` must be its own; `overwrite` permits a file system on it.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The serial that the user named.
    pub serial: Option<&'a str>,
    /// Whether a file system there may be lost.
    pub overwrite: bool,
}

/// Whether a device is kept open after the look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Only looked at.
    No,
    /// Kept for writing, by this agent alone.
    Yes,
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
    pub signatures: Vec<Signature>,
    pub objections: Vec<Objection>,
}

/// Look at the device; one that is to be held comes back open for us alone where nothing objects.
///
/// An error where there is no block device of that path.
pub fn look(
    roots: &Roots,
    path: &Path,
    wish: Wish,
    hold: Hold,
) -> Result<(DeviceFacts, Option<File>)> {
    let real = block_device(path)?;
    let name = real.strip_prefix("/dev").unwrap_or(&real).display().to_string().replace('/', "!");
    let folder = roots.sys.join("class/block").join(&name);
    let number = |file: &str| text(&folder.join(file)).and_then(|text| text.trim().parse().ok());
    let size_bytes = number("size").unwrap_or(0_u64).saturating_mul(SECTOR_BYTES);
    let devices = chain(roots, &mounts(roots), &name);
    let mut facts = DeviceFacts {
        path: path.display().to_string(),
        real_path: real.display().to_string(),
        serial: users::serial(roots, &name),
        size_bytes,
        logical_block_bytes: number("queue/logical_block_size").unwrap_or(SECTOR_BYTES),
        discards: number("queue/discard_max_bytes").unwrap_or(0_u64) > 0,
        memory_backed: is_memory(roots, &mounts(roots), &devices),
        devices,
        signatures: Vec::new(),
        objections: users::objections(roots, &name),
        name,
    };
    facts.objections.extend(identity(&facts, wish));
    let opened = open_alone(&real, hold);
    match &opened {
        Ok(file) => {
            let bytes_at = |offset: u64, length: usize| {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset).ok().map(|()| bytes)
            };
            facts.signatures = signatures(size_bytes, &bytes_at);
            facts.objections.extend(content(&facts, wish));
        }
        Err(error) => facts.objections.push(closed(&facts.name, error)),
    }
    if size_bytes == 0 {
        facts.objections.push(Objection::new("empty", format!("{} has no size", facts.name)));
    }
    let alone = opened.ok().filter(|_| hold == Hold::Yes && facts.objections.is_empty());
    Ok((facts, alone))
}

fn block_device(path: &Path) -> Result<PathBuf> {
    let of = |error: &io::Error| Error::io(format_args!("find {}", path.display()), error);
    let real = fs::canonicalize(path).map_err(|error| of(&error))?;
    let is_block = fs::metadata(&real).map_err(|error| of(&error))?.file_type().is_block_device();
    if is_block {
        return Ok(real);
    }
    Err(Error::errno(libc::ENOTBLK, format!("{} is not a block device", path.display())))
}

/// The kernel gives a device with this flag to one opener, and to none while it is mounted, a
/// member of something, or swap; nor can it become one of these meanwhile.
fn open_alone(real: &Path, hold: Hold) -> io::Result<File> {
    let write = hold == Hold::Yes;
    OpenOptions::new().read(true).write(write).custom_flags(libc::O_EXCL).open(real)
}

fn closed(name: &str, error: &io::Error) -> Objection {
    if error.raw_os_error() == Some(libc::EBUSY) {
        return Objection::new("in-use", format!("{name} is in use: it cannot be had alone"));
    }
    Objection::new("closed", format!("{name} cannot be opened: {}", sentence(error)))
}

fn identity(facts: &DeviceFacts, wish: Wish) -> Option<Objection> {
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

fn content(facts: &DeviceFacts, wish: Wish) -> Vec<Objection> {
    let name = &facts.name;
    // Random bytes can look like anything; nothing else was ever on the disk of our own guest.
    let is_ours = wish.overwrite && guest::is_data(Path::new(&facts.path));
    let refused = facts.signatures.iter().filter_map(|signature| match signature.kind {
        _ if is_ours => None,
        Kind::Member => {
            Some(Objection::new("signature", format!("{name} holds {}", signature.name)))
        }
        Kind::FileSystem if wish.overwrite => None,
        Kind::FileSystem => {
            let says = format!("{name} holds a file system: {}", signature.name);
            Some(Objection::new("file-system", says))
        }
    });
    refused.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Wish = Wish { serial: None, overwrite: false };

    #[test]
    fn what_is_no_block_device_is_an_error() {
        let error = look(&Roots::default(), Path::new("/dev/null"), ANY, Hold::No).unwrap_err();
        assert_eq!(error.code, "ENOTBLK");
        let error = look(&Roots::default(), Path::new("/dev/nowhere"), ANY, Hold::No).unwrap_err();
        assert_eq!(error.code, "ENOENT");
    }

    fn facts(serial: Option<&str>, kinds: &[Kind]) -> DeviceFacts {
        let made = |kind: &Kind| Signature { kind: *kind, name: "x" };
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
            signatures: kinds.iter().map(made).collect(),
            objections: Vec::new(),
        }
    }

    #[test]
    fn the_serial_must_be_its_own() {
        let code = |own, named| {
            let wish = Wish { serial: named, overwrite: true };
            identity(&facts(own, &[]), wish).map(|objection| objection.code)
        };
        assert_eq!(code(Some("a"), Some("a")), None);
        assert_eq!(code(Some("a"), Some("b")), Some("other-serial"));
        assert_eq!(code(None, Some("a")), Some("no-serial"));
        assert_eq!(code(None, None), Some("no-serial"));
    }

    #[test]
    fn only_a_file_system_may_be_overwritten() {
        let codes = |overwrite| {
            let wish = Wish { serial: None, overwrite };
            let all = content(&facts(None, &[Kind::Member, Kind::FileSystem]), wish);
            all.into_iter().map(|one| one.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false), ["signature", "file-system"]);
        assert_eq!(codes(true), ["signature"]);
    }
}
