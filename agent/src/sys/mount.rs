//! Mounts: a namespace of one's own, file systems in it, loop devices under them.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags,
    fsconfig_create, fsmount, fsopen, mount_change, unmount as unmount_with,
};
use rustix::process::{chroot, fchdir};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::check_result;
use super::thread::lock;
use crate::error::io_error_text;

/// Of linux/loop.h.
const LOOP_SET_FD: libc::Ioctl = 0x4C00;
const LOOP_SET_STATUS64: libc::Ioctl = 0x4C04;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_SET_DIRECT_IO: libc::Ioctl = 0x4C08;
const LOOP_SET_BLOCK_SIZE: libc::Ioctl = 0x4C09;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
/// Of its numbers, the most bytes of the file that the device has.
const LOOP_LIMIT: usize = 4;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Sees the end of a file system, which it does not hold open.
#[derive(Debug)]
pub struct FileSystemWatch(OwnedFd);

impl FileSystemWatch {
    /// Of the file system of a folder.
    pub fn new(folder: &Path) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        // The end is told of whatever is watched.
        inotify::add_watch(&queue, folder, WatchFlags::DELETE_SELF)?;
        Ok(Self(queue))
    }

    /// Whether its last mount ended, and all that the kernel held of it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 1024];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::UNMOUNT) {
                return true;
            }
        }
        false
    }
}

#[repr(C)]
struct LoopStatus {
    /// The file's device and inode come first.
    numbers: [u64; 5],
    number: u32,
    encryption: [u32; 2],
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    status: LoopStatus,
    reserved: [u64; 8],
}

/// A mount namespace of one's own, in which the host's mounts still arrive and from which none goes
/// out. It lasts as long as this, or a process in it.
#[derive(Debug)]
pub struct MountNamespace {
    namespace: File,
    /// The root of whoever made it: entering a namespace leads to the namespace's own root, which is
    /// another behind `chroot`. Opened inside, as mounts of the host's namespace are not these.
    root: File,
}

impl MountNamespace {
    /// Move the calling thread into a new one.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the files that are open stay shared. Of many threads it concerns the calling one.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        let root = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open("/")?;
        let own = Self { namespace: File::open("/proc/thread-self/ns/mnt")?, root };
        // How mounts spread can be told of mount points alone, which the root need not be.
        own.enter_namespace()?;
        let told =
            mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM);
        own.enter_root()?;
        told?;
        Ok(own)
    }

    /// Move the calling thread into it, below the same root.
    pub fn enter(&self) -> io::Result<()> {
        self.enter_namespace()?;
        self.enter_root()
    }

    fn enter_namespace(&self) -> io::Result<()> {
        // SAFETY: the files that are open stay shared. This thread gets its own working directory,
        // without which the kernel does not permit the second call.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Mount))?;
        Ok(())
    }

    fn enter_root(&self) -> io::Result<()> {
        fchdir(&self.root)?;
        chroot(c".")?;
        Ok(())
    }
}

static NAMESPACE: Mutex<Option<MountNamespace>> = Mutex::new(None);

/// Move the calling thread into the namespace, which is made if there is none.
///
/// What the host mounts later still arrives where it shares its mounts.
pub fn enter_or_create_namespace() -> io::Result<()> {
    let mut namespace = lock(&NAMESPACE);
    if let Some(namespace) = namespace.as_ref() {
        return namespace.enter();
    }
    *namespace = Some(MountNamespace::new()?);
    Ok(())
}

/// Why the namespace cannot be had, None when it can. The calling thread may have left the host's
/// mounts after this and should do nothing more.
#[must_use]
pub fn unsupported_reason() -> Option<String> {
    let namespace = lock(&NAMESPACE);
    if namespace.is_some() {
        return None;
    }
    MountNamespace::new()
        .err()
        .map(|error| format!("the agent may not mount anything: {}", io_error_text(&error)))
}

/// Move the calling thread into the namespace, if there is one.
pub fn enter_namespace_if_any() -> io::Result<()> {
    let namespace = lock(&NAMESPACE);
    namespace.as_ref().map_or(Ok(()), MountNamespace::enter)
}

/// Mount a block device, without times of access.
pub fn mount_device(device: &Path, at: &Path, kind: &CStr, options: &CStr) -> io::Result<()> {
    Ok(rustix::mount::mount(device, at, kind, MountFlags::NOATIME, options)?)
}

/// Show a folder at another place as well.
#[cfg(test)]
pub fn bind_mount(folder: &Path, at: &Path) -> io::Result<()> {
    Ok(rustix::mount::mount_bind(folder, at)?)
}

/// A tracefs of one's own that is mounted nowhere: files of it are opened below the descriptor.
pub fn detached_tracefs() -> io::Result<File> {
    let made = fsopen(c"tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(made.as_fd())?;
    let mounted = fsmount(made.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok(mounted.into())
}

/// How a mount is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmountMode {
    /// Only when nobody uses it; EBUSY else.
    IfUnused,
    /// At once for all names; the file system ends with its last user.
    Detached,
}

/// End a mount; links are not followed.
pub fn unmount(at: &Path, how: UnmountMode) -> io::Result<()> {
    let detach = match how {
        UnmountMode::Detached => UnmountFlags::DETACH,
        UnmountMode::IfUnused => UnmountFlags::empty(),
    };
    Ok(unmount_with(at, UnmountFlags::NOFOLLOW | detach)?)
}

/// The number of a loop device that is free at this moment; `control` is /dev/loop-control.
pub fn free_loop_number(control: &File) -> io::Result<u32> {
    // SAFETY: this request takes no argument.
    let number = check_result(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })?;
    Ok(number as u32)
}

/// Put a file behind a loop device: in blocks of that size, past the page cache where the file
/// takes that, detached by the kernel when its last user closes it. EBUSY when somebody was faster.
pub fn attach_loop(device: &File, file: &File, block_bytes: u32) -> io::Result<()> {
    let status = LoopStatus {
        numbers: [0; 5],
        number: 0,
        encryption: [0; 2],
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let fd = file.as_raw_fd() as u32;
    let config = LoopConfig { fd, block_size: block_bytes, status, reserved: [0; 8] };
    // SAFETY: the request reads a structure of the kernel's layout.
    match check_result(unsafe {
        libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config)
    }) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => {
            attach_loop_in_steps(device, &config)
        }
        Err(error) => Err(error),
    }
}

/// The same where the kernel cannot do it in one (before Linux 5.8).
fn attach_loop_in_steps(device: &File, config: &LoopConfig) -> io::Result<()> {
    let device = device.as_raw_fd();
    let block_bytes = libc::c_ulong::from(config.block_size);
    // SAFETY: the first takes a descriptor, the second reads a structure of the kernel's layout,
    // the others take a number. The last two only make it faster: it serves without them.
    unsafe {
        check_result(libc::ioctl(device, LOOP_SET_FD, config.fd as libc::c_ulong))?;
        check_result(libc::ioctl(device, LOOP_SET_STATUS64, &raw const config.status))?;
        libc::ioctl(device, LOOP_SET_BLOCK_SIZE, block_bytes);
        libc::ioctl(device, LOOP_SET_DIRECT_IO, 1 as libc::c_ulong);
    }
    Ok(())
}

/// Device and inode of the file behind a loop device, whatever its path is by now; `number` is
/// `major:minor` of the device, which another node of that name would not have.
pub fn inode_behind_loop(name: &str, number: &str) -> io::Result<(u64, u64)> {
    let device = File::open(Path::new("/dev").join(name))?;
    let node = device.metadata()?.rdev();
    if format!("{}:{}", libc::major(node), libc::minor(node)) != number {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let status = read_loop_status(&device)?;
    Ok((status.numbers[0], status.numbers[1]))
}

fn read_loop_status(device: &File) -> io::Result<LoopStatus> {
    let mut status = MaybeUninit::<LoopStatus>::zeroed();
    // SAFETY: the request writes a structure of the kernel's layout, for which all bits may be zero.
    unsafe {
        check_result(libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, status.as_mut_ptr()))?;
        Ok(status.assume_init())
    }
}

/// A loop device's file, and how much of it may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopFile {
    /// The device that the file is on.
    pub device: u64,
    /// Its inode there.
    pub inode: u64,
    /// Bytes that the device has; 0 for as many as the file has.
    pub limit_bytes: u64,
}

/// What is behind a loop device.
pub fn loop_file(path: &Path) -> io::Result<LoopFile> {
    let [device, inode, _, _, limit_bytes] = read_loop_status(&File::open(path)?)?.numbers;
    Ok(LoopFile { device, inode, limit_bytes })
}

/// Limit a loop device, also one that is mounted, as long as it has that file; ESTALE else.
pub fn limit_loop(path: &Path, wanted: LoopFile) -> io::Result<()> {
    let device = File::open(path)?;
    let mut status = read_loop_status(&device)?;
    if (status.numbers[0], status.numbers[1]) != (wanted.device, wanted.inode) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    status.numbers[LOOP_LIMIT] = wanted.limit_bytes;
    // SAFETY: the request reads a structure of the kernel's layout.
    check_result(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_STATUS64, &raw const status) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopStatus>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }

    #[test]
    fn what_is_no_loop_device_takes_no_file() {
        let nothing = File::open("/dev/null").unwrap();
        assert!(attach_loop(&nothing, &nothing, 512).is_err());
        assert!(free_loop_number(&nothing).is_err());
        assert!(loop_file(Path::new("/dev/null")).is_err());
    }

    #[test]
    fn a_path_that_no_kernel_takes_is_an_error() {
        let odd = Path::new("/a\0b");
        let error = unmount(odd, UnmountMode::IfUnused).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    }
}
