//! What only the first process of a machine does: its mounts, modules, clock and name, and its end.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount as mount_with, mount_move};
use rustix::process::chroot;
use rustix::system::{self, RebootCommand};
use rustix::time::{ClockId, clock_settime};

use super::time::SECOND_NS;

/// Mount a file system of the kernel's own, or a device for reading only.
pub fn mount(source: &Path, at: &Path, kind: &CStr, access: Access) -> io::Result<()> {
    let flags = if access == Access::ReadOnly { MountFlags::RDONLY } else { MountFlags::empty() };
    Ok(mount_with(source, at, kind, flags, None)?)
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
pub fn switch_root(mount: &Path) -> io::Result<()> {
    std::env::set_current_dir(mount)?;
    mount_move(c".", c"/")?;
    chroot(c".")?;
    std::env::set_current_dir("/")
}

/// Load a kernel module; one that is there already is fine.
pub fn load_module(module: &File) -> io::Result<()> {
    match system::finit_module(module, c"", 0) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Set `CLOCK_REALTIME`, in nanoseconds since 1970.
pub fn set_real_ns(real_ns: u64) -> io::Result<()> {
    let time = Timespec { tv_sec: (real_ns / SECOND_NS) as _, tv_nsec: (real_ns % SECOND_NS) as _ };
    Ok(clock_settime(ClockId::Realtime, time)?)
}

/// Name this machine.
pub fn set_host_name(name: &str) -> io::Result<()> {
    Ok(system::sethostname(name.as_bytes())?)
}

/// Whether the other side of a port is there.
pub fn has_listener(port: BorrowedFd<'_>) -> io::Result<bool> {
    let mut entry = [PollFd::from_borrowed_fd(port, PollFlags::OUT)];
    poll(&mut entry, Some(&Timespec::default()))?;
    Ok(!entry[0].revents().contains(PollFlags::HUP))
}

/// Start the machine anew at once, which ends one that was told not to be.
pub fn reboot() {
    // It only returns where it is not permitted.
    let _ = system::reboot(RebootCommand::Restart);
}
