//! What only the first process of a machine does: its mounts, modules, clock and name, and its end.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr;

use super::check;
use super::file::c_path;
use super::time::SECOND_NS;

/// Mount a file system of the kernel's own, or a device for reading only.
pub fn mount(source: &Path, at: &Path, kind: &CStr, access: Access) -> io::Result<()> {
    let (source, at) = (c_path(source)?, c_path(at)?);
    let flags = if access == Access::ReadOnly { libc::MS_RDONLY } else { 0 };
    // SAFETY: all texts end with NUL and outlive the call; there are no options.
    check(unsafe { libc::mount(source.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, ptr::null()) })?;
    Ok(())
}

/// What may be done in a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// All.
    Full,
    /// Nothing that changes it.
    ReadOnly,
}

/// Make a mount the root of this process and of its children, in the place of the first one.
pub fn become_root(mount: &Path) -> io::Result<()> {
    std::env::set_current_dir(mount)?;
    let nothing = ptr::null();
    // SAFETY: the texts end with NUL; with this flag the others are not read.
    unsafe {
        let (here, root) = (c".".as_ptr(), c"/".as_ptr());
        check(libc::mount(here, root, nothing, libc::MS_MOVE, ptr::null()))?;
        check(libc::chroot(here))?;
    }
    std::env::set_current_dir("/")
}

/// Load a kernel module; one that is there already is fine.
pub fn load_module(module: &File) -> io::Result<()> {
    let (options, flags) = (c"", 0);
    // SAFETY: the options end with NUL; the file is open.
    let loaded = check(unsafe {
        libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), options.as_ptr(), flags)
    });
    match loaded {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

/// Set `CLOCK_REALTIME`, in nanoseconds since 1970.
pub fn set_real_ns(real_ns: u64) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: (real_ns / SECOND_NS) as _,
        tv_nsec: (real_ns % SECOND_NS) as libc::c_long,
    };
    // SAFETY: `time` is a valid timespec for the whole call.
    check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &raw const time) })?;
    Ok(())
}

/// Name this machine.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the name is given with its length.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })?;
    Ok(())
}

/// Whether the other side of a port is there.
pub fn is_listened_to(port: BorrowedFd<'_>) -> io::Result<bool> {
    let mut entry = libc::pollfd { fd: port.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one valid entry of an open descriptor.
    check(unsafe { libc::poll(&raw mut entry, 1, 0) })?;
    Ok(entry.revents & libc::POLLHUP == 0)
}

/// Start the machine anew at once, which ends one that was told not to be.
pub fn reboot() {
    // SAFETY: it touches no memory. It only returns where it is not permitted.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
}
