//! Files to and from this host: written aside, flushed and renamed; read in pieces, under a limit.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Context, Error, Result};
use crate::lease::{ResolvedFile, TemporaryFile};
use crate::sys::process::own_pid;

/// A piece of a file in one message.
const CHUNK_BYTES: usize = 256 << 10;

/// What was moved.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct TransferResult {
    /// Bytes.
    pub size: u64,
    /// SHA-256 of them, in hex.
    pub sha256: String,
}

/// Write `bytes` to `path` as a whole or not at all. `aside` is a name beside it.
pub fn put_file(
    path: &ResolvedFile,
    mode: u32,
    bytes: &[u8],
    aside: &TemporaryFile,
) -> Result<TransferResult> {
    if mode > 0o7777 {
        return Err(Error::bad_request(format!("a mode of {mode} (decimal) is above 0o7777")));
    }
    write_whole(&path.real, mode, bytes, &aside.path)
        .context(format_args!("write {}", path.name.display()))?;
    Ok(TransferResult { size: bytes.len() as u64, sha256: format!("{:x}", Sha256::digest(bytes)) })
}

fn write_whole(path: &Path, mode: u32, bytes: &[u8], aside: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside)?;
    file.write_all(bytes)?;
    // After the umask, and after the content: nobody reads half of it.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()?;
    fs::rename(aside, path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Read a regular file of at most `max_bytes` in pieces.
pub fn get_file(
    path: &ResolvedFile,
    max_bytes: u64,
    mut tell: impl FnMut(&[u8]),
) -> Result<TransferResult> {
    let failed = |error: &io::Error| Error::io(format_args!("read {}", path.name.display()), error);
    // Opening a pipe without a writer would wait for one.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&path.real)
        .map_err(|error| failed(&error))?;
    let meta = file.metadata().map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(failed(&io::Error::other("it is not a regular file")));
    }
    let too_large = |size: u64| {
        let message =
            format!("{} has {size} bytes or more, above {max_bytes}", path.name.display());
        Error::errno(libc::EFBIG, message)
    };
    if meta.len() > max_bytes {
        return Err(too_large(meta.len()));
    }
    let mut digest = Sha256::new();
    let mut size = 0;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(&error)),
        };
        size += count as u64;
        if size > max_bytes {
            return Err(too_large(size)); // It grows while it is read, or is a kernel file.
        }
        digest.update(&chunk[..count]);
        tell(&chunk[..count]);
    }
    Ok(TransferResult { size, sha256: format!("{:x}", digest.finalize()) })
}

/// A name beside `path` that no other request and no other agent uses.
pub fn temporary_name(path: &Path, id: u64) -> Result<PathBuf> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::bad_request(format!("{} does not name a file", path.display())))?;
    let aside = format!(".{}.iolab-{}-{id}", name.to_string_lossy(), own_pid());
    Ok(path.with_file_name(aside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn a_file_above_the_limit_is_refused_before_a_piece_is_sent() {
        let folder = TestFolder::new();
        folder.put("file", "12345");
        let path = folder.path().join("file").into();
        let mut pieces = 0;
        assert_eq!(get_file(&path, 4, |_| pieces += 1).unwrap_err().code, "EFBIG");
        assert_eq!(pieces, 0);
        assert_eq!(get_file(&path, 5, |_| pieces += 1).unwrap().size, 5);
        assert_eq!(pieces, 1);
    }

    #[test]
    fn a_folder_is_not_read() {
        assert!(
            get_file(&Path::new("/").to_owned().into(), 1, |_| ())
                .unwrap_err()
                .message
                .contains("not a regular file")
        );
    }
}
