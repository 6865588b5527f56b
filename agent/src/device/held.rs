//! Devices that this agent holds for itself alone, and their purge.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::look::{DeviceFacts, Hold, Wish, look};
use crate::error::{Error, Result};
use crate::roots::Roots;
use crate::sys::storage;

/// Devices held at once; a session holds one a target.
const MAX_HELD: usize = 16;
/// Discarded at a time: an end of the agent never waits for more than this.
const PIECE_BYTES: u64 = 4 << 30;

/// What a purge did.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Purged {
    /// Bytes that were given back.
    pub bytes: u64,
}

/// The devices, by the path that was asked for; they are let go when this process ends.
#[derive(Default)]
pub struct Devices(Mutex<HashMap<PathBuf, (File, u64)>>);

impl Devices {
    /// Take a device if nothing objects. It can then be neither mounted nor taken by anybody else.
    pub fn take(&self, path: &Path, wish: Wish) -> Result<DeviceFacts> {
        let mut held = self.held();
        if held.contains_key(path) {
            return Err(Error::busy(format!("{} is held here already", path.display())));
        }
        if held.len() >= MAX_HELD {
            return Err(Error::busy(format!("{MAX_HELD} devices are held already")));
        }
        let (facts, file) = look(&Roots::default(), path, wish, Hold::Yes)?;
        let Some(file) = file else {
            let reasons: Vec<&str> = facts.objections.iter().map(|one| one.says.as_str()).collect();
            return Err(Error::refused(reasons.join("; ")));
        };
        held.insert(path.to_owned(), (file, facts.size_bytes));
        Ok(facts)
    }

    /// Let a device go.
    pub fn let_go(&self, path: &Path) -> Result<()> {
        self.held().remove(path).map(drop).ok_or_else(|| not_held(path))
    }

    /// Discard every block of a held device.
    pub fn discard(&self, path: &Path) -> Result<Purged> {
        let (file, size) = {
            let held = self.held();
            let (file, size) = held.get(path).ok_or_else(|| not_held(path))?;
            let copy = file.try_clone();
            (copy.map_err(|error| Error::io("keep the device open", &error))?, *size)
        };
        let mut at = 0;
        while at < size {
            let length = (size - at).min(PIECE_BYTES);
            storage::discard(&file, at, length).map_err(|error| {
                Error::io(format_args!("discard {} at byte {at}", path.display()), &error)
            })?;
            at += length;
        }
        Ok(Purged { bytes: at })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<PathBuf, (File, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tell the devices below a file system what of it is free.
pub fn trim(folder: &Path) -> Result<Purged> {
    let doing = format_args!("trim the file system of {}", folder.display());
    let bytes = File::open(folder).and_then(|folder| storage::trim(&folder));
    bytes.map(|bytes| Purged { bytes }).map_err(|error| Error::io(doing, &error))
}

fn not_held(path: &Path) -> Error {
    Error::bad_request(format!("{} is not a device held here", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_done_to_a_device_that_is_not_held() {
        let devices = Devices::default();
        assert_eq!(devices.discard(Path::new("/dev/x")).unwrap_err().code, "bad-request");
        assert_eq!(devices.let_go(Path::new("/dev/x")).unwrap_err().code, "bad-request");
    }

    #[test]
    fn what_is_no_block_device_cannot_be_taken() {
        let wish = Wish { serial: Some("x"), overwrite: true };
        let error = Devices::default().take(Path::new("/dev/null"), wish).unwrap_err();
        assert_eq!(error.code, "ENOTBLK");
    }
}
