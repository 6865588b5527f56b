//! Files by descriptor: locks, names relative to an open folder, space, advice.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, IntoRawFd};
use std::path::{Component, Path};

use rustix::fs::{
    self as calls, Access, Advice, AtFlags, CWD, FileType, FlockOperation, MemfdFlags, Mode,
    OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
};
use rustix::io::{Errno, try_close};
use rustix::path::Arg;

/// Rights of a new file: its owner's alone.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Space of a file system, as for a user without reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystemSpace {
    /// Bytes in all.
    pub total_bytes: u64,
    /// Bytes that may still be written.
    pub free_bytes: u64,
    /// Files that may still be made; None where the file system has no fixed number.
    pub free_inodes: Option<u64>,
    /// Files, folders and all else that there is; None where it is not told.
    pub used_inodes: Option<u64>,
    /// Mounted for reading only.
    pub read_only: bool,
}

/// The kind of a directory entry, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInfo {
    /// A folder.
    pub is_folder: bool,
    /// Bytes of a regular file, zero for all else.
    pub size_bytes: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// The mount that it is reached by.
    pub mount: Mount,
}

/// A mount; a folder of the same file system that is bound to another place has one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mount {
    /// The file system, by the two numbers of its device.
    device: (u32, u32),
    /// Zero before Linux 5.8, where only file systems are told apart.
    pub id: u64,
}

/// Open a folder itself, not one that a symbolic link names.
pub fn open_folder(path: &Path) -> io::Result<File> {
    open_at(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
}

/// Open a folder inside an open folder, never through a symbolic link.
pub fn open_folder_in(folder: &File, name: &std::ffi::OsStr) -> io::Result<File> {
    open_at(folder, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW)
}

/// Open a file inside an open folder for reading and writing, made if missing, never a link.
pub fn open_file_in(folder: &File, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    open_at(folder, name, flags)
}

/// Open what has this relative path below an open folder (None: the working directory): through no
/// symbolic link, and not out of the folder.
pub fn open_beneath(folder: Option<&File>, path: &Path, flags: OFlags) -> io::Result<File> {
    let at = folder.map_or(CWD, File::as_fd);
    let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    let mode = if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() };
    match calls::openat2(at, path, flags | OFlags::CLOEXEC, mode, resolve) {
        // Before Linux 5.6 there is none, and where system calls are filtered it may not be known.
        Err(Errno::NOSYS | Errno::PERM) => walk_beneath(folder, path, flags),
        opened => Ok(opened?.into()),
    }
}

/// The same, folder by folder.
fn walk_beneath(folder: Option<&File>, path: &Path, flags: OFlags) -> io::Result<File> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(Errno::XDEV.into()),
        }
    }
    let last = names.pop().unwrap_or(OsStr::new("."));
    let mut here: Option<File> = None;
    for name in names {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        here = Some(open_at(here.as_ref().or(folder).map_or(CWD, File::as_fd), name, flags)?);
    }
    open_at(here.as_ref().or(folder).map_or(CWD, File::as_fd), last, flags | OFlags::NOFOLLOW)
}

/// A file that lies nowhere but in memory, as long as anybody has it open; the name is for people
/// who look. A program that is started does not inherit it.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    Ok(calls::memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

#[inline]
fn open_at(folder: impl AsFd, name: impl Arg, flags: OFlags) -> io::Result<File> {
    Ok(calls::openat(folder, name, flags | OFlags::CLOEXEC, FILE_MODE)?.into())
}

/// Remove a name from an open folder; a folder must be empty.
pub fn unlink_in(folder: &File, name: &std::ffi::OsStr, entry: EntryInfo) -> io::Result<()> {
    let flags = if entry.is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(calls::unlinkat(folder, name, flags)?)
}

/// Whether a name's attributes say that nobody may change it, or that it may only grow (`chattr`).
#[must_use]
pub fn is_immutable(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let protected = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    calls::statx(CWD, path, flags, StatxFlags::TYPE)
        .is_ok_and(|stat| stat.stx_attributes.intersects(protected))
}

/// What a name in an open folder is; a symbolic link is told as itself.
pub fn stat_in(folder: &File, name: &std::ffi::OsStr) -> io::Result<EntryInfo> {
    let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::INO | StatxFlags::MNT_ID;
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = calls::statx(folder, name, flags, wanted)?;
    let kind = FileType::from_raw_mode(u32::from(stat.stx_mode));
    let has_mount = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    let id = if has_mount { stat.stx_mnt_id } else { 0 };
    Ok(EntryInfo {
        is_folder: kind == FileType::Directory,
        size_bytes: if kind == FileType::RegularFile { stat.stx_size } else { 0 },
        inode: stat.stx_ino,
        mount: Mount { device: (stat.stx_dev_major, stat.stx_dev_minor), id },
    })
}

/// A file whose lock is held, and let go when this is dropped: closing it alone would not do as long
/// as a process that is just being started has it open as well.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Take the exclusive lock without waiting; the file comes back when somebody else holds it.
    pub fn try_lock(file: File) -> io::Result<Result<Self, File>> {
        Ok(if try_flock(&file, FlockOperation::NonBlockingLockExclusive)? {
            Ok(Self(file))
        } else {
            Err(file)
        })
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

/// Whether somebody holds the exclusive lock of a file (open for reading is enough).
pub fn is_locked(file: &File) -> io::Result<bool> {
    let free = try_flock(file, FlockOperation::NonBlockingLockShared)?;
    if free {
        unlock(file);
    }
    Ok(!free)
}

fn unlock(file: &File) {
    let _ = calls::flock(file, FlockOperation::Unlock);
}

fn try_flock(file: &File, kind: FlockOperation) -> io::Result<bool> {
    match calls::flock(file, kind) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Space of the file system that holds `path`.
pub fn file_system_space(path: &Path) -> io::Result<FileSystemSpace> {
    let stat = calls::statvfs(path)?;
    let unit = if stat.f_frsize == 0 { stat.f_bsize } else { stat.f_frsize };
    Ok(FileSystemSpace {
        total_bytes: stat.f_blocks.saturating_mul(unit),
        free_bytes: stat.f_bavail.saturating_mul(unit),
        free_inodes: (stat.f_files != 0).then_some(stat.f_favail),
        used_inodes: (stat.f_files != 0).then_some(stat.f_files.saturating_sub(stat.f_ffree)),
        read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
    })
}

/// Whether this process may make files in a folder, as the kernel judges it.
#[must_use]
pub fn can_create_in(folder: &Path) -> bool {
    calls::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether this process may write to a file, as the kernel judges it.
#[must_use]
pub fn can_write(file: &Path) -> bool {
    calls::access(file, Access::WRITE_OK).is_ok()
}

/// Ask the kernel to forget the cached pages of a file.
pub fn drop_cached_pages(file: &File) -> io::Result<()> {
    Ok(calls::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Write everything dirty on every file system.
pub fn sync_all() {
    calls::sync();
}

/// Make a folder.
pub fn make_folder(folder: &File, name: &CStr) -> io::Result<()> {
    Ok(calls::mkdirat(folder, name, Mode::RWXU)?)
}

/// Remove an empty folder.
pub fn remove_folder(folder: &File, name: &CStr) -> io::Result<()> {
    Ok(calls::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Make a file that must not be there yet and open it for writing.
#[inline]
pub fn create_file(folder: &File, name: &CStr) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    open_at(folder, name, flags | OFlags::NOFOLLOW)
}

/// Open a file for reading.
#[inline]
pub fn open_file(folder: &File, name: &CStr) -> io::Result<File> {
    open_at(folder, name, OFlags::RDONLY | OFlags::NOFOLLOW)
}

/// Read a file's attributes, and throw them away.
#[inline]
pub fn stat_file(folder: &File, name: &CStr) -> io::Result<()> {
    calls::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Remove a file.
#[inline]
pub fn remove_file(folder: &File, name: &CStr) -> io::Result<()> {
    Ok(calls::unlinkat(folder, name, AtFlags::empty())?)
}

/// Close a file and hear what a network file system has to say only then.
#[inline]
pub fn close_checked(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was owned by `file` alone and is not used again.
    Ok(unsafe { try_close(file.into_raw_fd()) }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_and_nothing_outside_is_opened_by_either_way() {
        let (folder, outside) = (TestFolder::new(), TestFolder::new());
        outside.put("precious", "stays");
        folder.put("a/b/file", "here");
        symlink(outside.path(), folder.path().join("a/link")).unwrap();
        symlink("file", folder.path().join("a/b/other")).unwrap();
        let open = open_folder(folder.path()).unwrap();
        for way in [open_beneath, walk_beneath] {
            let opened = |path: &str, flags| way(Some(&open), Path::new(path), flags);
            assert!(opened("a/b/file", OFlags::RDONLY).is_ok());
            assert!(opened("a/b/./file", OFlags::RDONLY).is_ok());
            assert!(opened("a", OFlags::RDONLY | OFlags::DIRECTORY).is_ok());
            assert!(opened("a/b/new", OFlags::RDWR | OFlags::CREATE).is_ok());
            let outer = outside.path().join("precious").display().to_string();
            for path in ["a/link/precious", "a/b/other", "a/../../x", "..", &outer] {
                let flags = OFlags::RDWR | OFlags::CREATE;
                let error = opened(path, flags).unwrap_err().raw_os_error().unwrap();
                assert!([libc::ELOOP, libc::EXDEV, libc::ENOTDIR].contains(&error), "{path}");
            }
        }
    }
}
