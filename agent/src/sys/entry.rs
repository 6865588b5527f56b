//! Single operations on names in an open folder: one system call each, nothing allocated.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

use super::check;

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
