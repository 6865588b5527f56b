//! Files by descriptor: locks, names relative to an open folder, space, advice.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::sys::check;

/// Space of a file system, as for a user without reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
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
pub struct Entry {
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
    open_at(None, path.as_os_str(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW)
}

/// Open a folder inside an open folder, never through a symbolic link.
pub fn open_folder_in(folder: &File, name: &std::ffi::OsStr) -> io::Result<File> {
    open_at(Some(folder), name, libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW)
}

/// Open a file inside an open folder for reading and writing, made if missing, never a link.
pub fn open_file_in(folder: &File, name: &str) -> io::Result<File> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    open_at(Some(folder), name.as_ref(), flags)
}

/// Of linux/openat2.h.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}
const RESOLVE_NO_MAGICLINKS: u64 = 2;
const RESOLVE_NO_SYMLINKS: u64 = 4;
const RESOLVE_BENEATH: u64 = 8;

/// Open what has this relative path below an open folder (None: the working directory): through no
/// symbolic link, and not out of the folder.
pub fn open_beneath(folder: Option<&File>, path: &Path, flags: i32) -> io::Result<File> {
    let name = c_path(path)?;
    let at = folder.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    let resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
    let mode = if flags & libc::O_CREAT == 0 { 0 } else { 0o600 };
    let how = OpenHow { flags: (flags | libc::O_CLOEXEC) as u64, mode, resolve };
    // SAFETY: the name ends with NUL, the structure has the kernel's layout and its size is told;
    // the new descriptor is owned by nobody else.
    let opened = unsafe {
        let size = size_of::<OpenHow>();
        check(libc::syscall(libc::SYS_openat2, at, name.as_ptr(), &raw const how, size))
            .map(|fd| File::from_raw_fd(fd as i32))
    };
    match opened {
        // Before Linux 5.6 there is none, and where system calls are filtered it may not be known.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            walk_beneath(folder, path, flags)
        }
        opened => opened,
    }
}

/// The same, folder by folder.
fn walk_beneath(folder: Option<&File>, path: &Path, flags: i32) -> io::Result<File> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => return Err(io::Error::from_raw_os_error(libc::EXDEV)),
        }
    }
    let last = names.pop().unwrap_or(OsStr::new("."));
    let mut here = None;
    for name in names {
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        here = Some(open_at(here.as_ref().or(folder), name, flags)?);
    }
    open_at(here.as_ref().or(folder), last, flags | libc::O_NOFOLLOW)
}

/// A file that lies nowhere but in memory, as long as anybody has it open; the name is for people
/// who look. A program that is started does not inherit it.
pub fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: the name ends with NUL; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(File::from_raw_fd(fd))
    }
}

fn open_at(folder: Option<&File>, name: &std::ffi::OsStr, flags: i32) -> io::Result<File> {
    let name = c_string(name.as_bytes())?;
    let at = folder.map_or(libc::AT_FDCWD, AsRawFd::as_raw_fd);
    // SAFETY: the name ends with NUL; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::openat(at, name.as_ptr(), flags | libc::O_CLOEXEC, 0o600))?;
        Ok(File::from_raw_fd(fd))
    }
}

/// Remove a name from an open folder; a folder must be empty.
pub fn unlink_in(folder: &File, name: &std::ffi::OsStr, entry: Entry) -> io::Result<()> {
    let name = c_string(name.as_bytes())?;
    let flags = if entry.is_folder { libc::AT_REMOVEDIR } else { 0 };
    // SAFETY: the name ends with NUL and the folder is open.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) })?;
    Ok(())
}

/// What a name in an open folder is; a symbolic link is told as itself.
pub fn entry_in(folder: &File, name: &std::ffi::OsStr) -> io::Result<Entry> {
    let name = c_string(name.as_bytes())?;
    let mut stat = MaybeUninit::<libc::statx>::zeroed();
    let wanted = libc::STATX_TYPE | libc::STATX_SIZE | libc::STATX_INO | libc::STATX_MNT_ID;
    let flags = libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT;
    // SAFETY: the name ends with NUL; `stat` is valid for writing and read only on success.
    let stat = unsafe {
        check(libc::statx(folder.as_raw_fd(), name.as_ptr(), flags, wanted, stat.as_mut_ptr()))?;
        stat.assume_init()
    };
    let kind = u32::from(stat.stx_mode) & libc::S_IFMT;
    let id = if stat.stx_mask & libc::STATX_MNT_ID == 0 { 0 } else { stat.stx_mnt_id };
    Ok(Entry {
        is_folder: kind == libc::S_IFDIR,
        size_bytes: if kind == libc::S_IFREG { stat.stx_size } else { 0 },
        inode: stat.stx_ino,
        mount: Mount { device: (stat.stx_dev_major, stat.stx_dev_minor), id },
    })
}

/// A file whose lock is held, and let go when this is dropped: closing it alone would not do as long
/// as a process that is just being started has it open as well.
#[derive(Debug)]
pub struct Locked(File);

impl Locked {
    /// Take the exclusive lock without waiting; the file comes back when somebody else holds it.
    pub fn take(file: File) -> io::Result<Result<Self, File>> {
        Ok(if lock_now(&file, libc::LOCK_EX)? { Ok(Self(file)) } else { Err(file) })
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

/// Whether somebody holds the exclusive lock of a file (open for reading is enough).
pub fn is_locked(file: &File) -> io::Result<bool> {
    let free = lock_now(file, libc::LOCK_SH)?;
    if free {
        unlock(file);
    }
    Ok(!free)
}

fn unlock(file: &File) {
    // SAFETY: flock of an open descriptor touches no memory.
    let _ = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

fn lock_now(file: &File, kind: i32) -> io::Result<bool> {
    // SAFETY: flock of an open descriptor touches no memory.
    match check(unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) }) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Space of the file system that holds `path`.
pub fn space(path: &Path) -> io::Result<Space> {
    let path = c_path(path)?;
    let mut stat = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path ends with NUL; `stat` is valid for writing and read only on success.
    let stat = unsafe {
        check(libc::statvfs(path.as_ptr(), stat.as_mut_ptr()))?;
        stat.assume_init()
    };
    let unit = if stat.f_frsize == 0 { stat.f_bsize } else { stat.f_frsize };
    Ok(Space {
        total_bytes: stat.f_blocks.saturating_mul(unit),
        free_bytes: stat.f_bavail.saturating_mul(unit),
        free_inodes: (stat.f_files != 0).then_some(stat.f_favail),
        used_inodes: (stat.f_files != 0).then_some(stat.f_files.saturating_sub(stat.f_ffree)),
        read_only: stat.f_flag & libc::ST_RDONLY != 0,
    })
}

/// Whether this process may make files in a folder, as the kernel judges it.
#[must_use]
pub fn may_write(folder: &Path) -> bool {
    has_access(folder, libc::W_OK | libc::X_OK)
}

/// Whether this process may write to a file, as the kernel judges it.
#[must_use]
pub fn may_change(file: &Path) -> bool {
    has_access(file, libc::W_OK)
}

fn has_access(path: &Path, rights: i32) -> bool {
    let Ok(path) = c_path(path) else { return false };
    // SAFETY: the path ends with NUL.
    unsafe { libc::access(path.as_ptr(), rights) == 0 }
}

/// Ask the kernel to forget the cached pages of a file.
pub fn forget_pages(file: &File) -> io::Result<()> {
    // SAFETY: advice on an open descriptor touches no memory.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Write everything dirty on every file system.
pub fn sync_all() {
    // SAFETY: sync has no preconditions.
    unsafe { libc::sync() };
}

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// A path as the kernel takes it.
pub(super) fn c_path(path: &Path) -> io::Result<CString> {
    c_string(path.as_os_str().as_bytes())
}

/// Make a folder.
pub fn make_folder(folder: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with NUL and the folder is open.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o700) })?;
    Ok(())
}

/// Remove an empty folder.
pub fn remove_folder(folder: &File, name: &CStr) -> io::Result<()> {
    unlink(folder, name, libc::AT_REMOVEDIR)
}

/// Make a file that must not be there yet and open it for writing.
pub fn create_file(folder: &File, name: &CStr) -> io::Result<File> {
    open(folder, name, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)
}

/// Open a file for reading.
pub fn open_file(folder: &File, name: &CStr) -> io::Result<File> {
    open(folder, name, libc::O_RDONLY)
}

/// Read a file's attributes, and throw them away.
pub fn stat_file(folder: &File, name: &CStr) -> io::Result<()> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the name ends with NUL; `stat` is valid for writing and never read.
    check(unsafe {
        libc::fstatat(
            folder.as_raw_fd(),
            name.as_ptr(),
            stat.as_mut_ptr(),
            libc::AT_SYMLINK_NOFOLLOW,
        )
    })?;
    Ok(())
}

/// Remove a file.
pub fn remove_file(folder: &File, name: &CStr) -> io::Result<()> {
    unlink(folder, name, 0)
}

/// Close a file and hear what a network file system has to say only then.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was owned by `file` alone and is not used again.
    check(unsafe { libc::close(file.into_raw_fd()) })?;
    Ok(())
}

fn open(folder: &File, name: &CStr, flags: i32) -> io::Result<File> {
    let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: the name ends with NUL; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o600))?;
        Ok(File::from_raw_fd(fd))
    }
}

fn unlink(folder: &File, name: &CStr, flags: i32) -> io::Result<()> {
    // SAFETY: the name ends with NUL and the folder is open.
    check(unsafe { libc::unlinkat(folder.as_raw_fd(), name.as_ptr(), flags) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_and_nothing_outside_is_opened_by_either_way() {
        let (folder, outside) = (Folder::new(), Folder::new());
        outside.put("precious", "stays");
        folder.put("a/b/file", "here");
        symlink(outside.path(), folder.path().join("a/link")).unwrap();
        symlink("file", folder.path().join("a/b/other")).unwrap();
        let open = open_folder(folder.path()).unwrap();
        for way in [open_beneath, walk_beneath] {
            let opened = |path: &str, flags| way(Some(&open), Path::new(path), flags);
            assert!(opened("a/b/file", libc::O_RDONLY).is_ok());
            assert!(opened("a/b/./file", libc::O_RDONLY).is_ok());
            assert!(opened("a", libc::O_RDONLY | libc::O_DIRECTORY).is_ok());
            assert!(opened("a/b/new", libc::O_RDWR | libc::O_CREAT).is_ok());
            let outer = outside.path().join("precious").display().to_string();
            for path in ["a/link/precious", "a/b/other", "a/../../x", "..", &outer] {
                let flags = libc::O_RDWR | libc::O_CREAT;
                let error = opened(path, flags).unwrap_err().raw_os_error().unwrap();
                assert!([libc::ELOOP, libc::EXDEV, libc::ENOTDIR].contains(&error), "{path}");
            }
        }
    }
}
