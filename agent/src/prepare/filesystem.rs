//! A file system of the session's own: an XFS on a device or in an image, mounted in the scratch
//! folder and seen by this agent's runs alone.
//!
//! The kernel ends it when the last process of the agent's mount namespace is gone, however that
//! came, and detaches the loop device of the image with it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::Serialize;

use super::scratch::{FolderIdentity, Retention, ScratchLocation};
use crate::device::{DeviceOptions, hold_device};
use crate::error::{Context, Error, Result, io_error_text};
use crate::remnant::{Remnant, RemnantKind};
use crate::roots::{Roots, read_number};
use crate::sys::block::{allocate, direct_alignment};
use crate::sys::file::file_system_space;
use crate::sys::mount::{UnmountMode, attach_loop, free_loop_number, mount_device, unmount};

/// Where it is mounted, in the scratch folder.
const MOUNT_POINT: &str = "fs";
/// The image, in the scratch folder.
const IMAGE: &str = "fs.img";
/// A loop device that another process took first is not asked for again; each try has another.
const MAX_TRIES: u32 = 32;
/// Blocks of a loop device: no kernel takes others.
const LOOP_BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=4096;
/// Zeros over the beginning of a device that is let go: more than any superblock there.
const WIPE_BYTES: usize = 64 << 10;
/// How long a file that is just being closed may keep a mount busy.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(1);
const UNMOUNT_PAUSE: Duration = Duration::from_millis(10);

/// On what it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backing {
    /// A file of that size in the scratch folder.
    Image(u64),
    /// A whole device, by its path and serial; `overwrite` permits a file system on it.
    Device {
        /// The device's path.
        path: PathBuf,
        /// The serial that must be its own.
        serial: String,
        /// Whether a file system there may be lost.
        overwrite: bool,
    },
}

impl Backing {
    /// As a request says it: an image, or a device by path and serial.
    pub fn of(
        image_bytes: Option<u64>,
        path: Option<PathBuf>,
        serial: Option<String>,
        overwrite: bool,
    ) -> Result<Self> {
        match (image_bytes, path, serial) {
            (Some(bytes), None, None) => Ok(Self::Image(bytes)),
            (None, Some(path), Some(serial)) => Ok(Self::Device { path, serial, overwrite }),
            _ => {
                let message = "a file system needs either image_bytes or the path and serial of a \
                            device";
                Err(Error::bad_request(message))
            }
        }
    }
}

/// What is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpenedFileSystem {
    /// Where it is mounted.
    pub dir: PathBuf,
    /// The kernel's name of its block device.
    pub device: String,
    /// An earlier session had kept it.
    pub kept: bool,
    /// Its device passes the page cache of what is below it.
    pub direct: bool,
}

/// A mounted file system; to be closed.
#[derive(Debug)]
pub struct FileSystem {
    mount_point: PathBuf,
    root: FolderIdentity,
    backing: MountedBacking,
}

/// What must be undone below it.
#[derive(Debug)]
enum MountedBacking {
    /// The file is to be removed; the kernel detaches the loop device.
    Image(PathBuf),
    /// The device is to lose its superblock.
    Device { path: PathBuf, serial: String },
}

/// What is done by others on the way.
#[derive(Clone, Copy)]
pub struct FileSystemHooks<'a> {
    /// Move this thread to where its mounts are seen by runs alone.
    pub enter_namespace: &'a dyn Fn() -> io::Result<()>,
    /// Run a program to its end: Ok when its exit code is 0.
    pub run_program: &'a dyn Fn(&[&str]) -> Result<()>,
    /// Mount the XFS of a device, by `mount_xfs`, unless the agent is ending.
    pub mount: &'a dyn Fn(&Path, &Path) -> Result<()>,
}

impl FileSystem {
    /// Make it, or mount what an earlier session kept, in a scratch folder that is held.
    pub fn open(
        scratch: &Path,
        backing: &Backing,
        steps: FileSystemHooks,
    ) -> Result<(Self, OpenedFileSystem)> {
        (steps.enter_namespace)()
            .context("make a file system, for which the agent needs to be root")?;
        let mount_point = scratch.join(MOUNT_POINT);
        match DirBuilder::new().mode(0o700).create(&mount_point) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io(format_args!("make {}", mount_point.display()), &error));
            }
            _ => {}
        }
        let made = match backing {
            Backing::Image(bytes) => create_in_image(scratch, *bytes, &mount_point, steps),
            Backing::Device { path, serial, overwrite } => {
                let wish = DeviceOptions { serial: Some(serial), overwrite: *overwrite };
                create_on_device(path, wish, &mount_point, steps)
            }
        };
        if made.is_err() {
            let _ = fs::remove_dir(&mount_point);
        }
        made
    }

    /// The root of what is mounted, for a path that leads there.
    #[must_use]
    pub fn root_of(&self, path: &Path) -> Option<FolderIdentity> {
        path.starts_with(&self.mount_point).then(|| self.root.clone())
    }

    /// End it and, unless its files are to stay, what it was made on. An error leaves it mounted.
    pub fn close(&self, leave: Retention) -> Result<()> {
        let doing = format_args!("unmount {}", self.mount_point.display());
        unmount_when_free(&self.mount_point).context(doing)?;
        self.remove_backing(leave)
    }

    /// The same at the end of the agent: what still holds a file in it goes on without a name. The
    /// scratch folder `dir` may be at another place by now. What stays.
    #[must_use]
    pub fn close_at_exit(&self, dir: &Path, place: &ScratchLocation) -> Vec<Remnant> {
        let mut left = Vec::new();
        // Elsewhere a mount ends with the last of this agent's processes.
        let now = if let ScratchLocation::At(now) = place { Some(now.as_path()) } else { None };
        let at = now.map(|now| now.join(MOUNT_POINT));
        if let Some(at) = at.filter(|at| self.root.moved_to(at.clone()).open().is_ok()) {
            if let Err(error) = unmount_when_free(&at) {
                let _ = unmount(&at, UnmountMode::Detached);
                let why =
                    format!("another process has files in it open: {}", io_error_text(&error));
                left.push(Remnant::of_path(RemnantKind::Mount, &at, why));
            }
        }
        if now == Some(dir) {
            let _ = fs::remove_dir(&self.mount_point); // Else it goes with the folder's files.
        }
        // So does an image.
        if let MountedBacking::Device { path, serial } = &self.backing {
            if let Err(error) = wipe_superblock(path, serial) {
                let why = format!("its superblock is not wiped: {}", error.message);
                left.push(Remnant::of_path(RemnantKind::Device, path, why));
            }
        }
        left
    }

    /// End what may have been mounted in a scratch folder while the agent came to its end.
    pub fn unmount_unfinished(scratch: &Path) {
        let _ = unmount(&scratch.join(MOUNT_POINT), UnmountMode::Detached);
    }

    fn remove_backing(&self, leave: Retention) -> Result<()> {
        let _ = fs::remove_dir(&self.mount_point); // The scratch folder may keep an empty one.
        match (&self.backing, leave) {
            (_, Retention::Files) => Ok(()),
            (MountedBacking::Image(image), Retention::Nothing) => {
                fs::remove_file(image).context(format_args!("remove {}", image.display()))
            }
            (MountedBacking::Device { path, serial }, Retention::Nothing) => {
                wipe_superblock(path, serial)
            }
        }
    }
}

fn create_in_image(
    scratch: &Path,
    bytes: u64,
    mount_point: &Path,
    steps: FileSystemHooks,
) -> Result<(FileSystem, OpenedFileSystem)> {
    let image = scratch.join(IMAGE);
    let opened = |device: &LoopDevice, kept| {
        let dir = mount_point.to_owned();
        let made =
            OpenedFileSystem { dir, device: device.name.clone(), kept, direct: device.is_direct() };
        let (mount_point, backing) = (mount_point.to_owned(), MountedBacking::Image(image.clone()));
        let root = FolderIdentity::of(&mount_point)?;
        Ok((FileSystem { mount_point, root, backing }, made))
    };
    if let Some(file) = open_kept_image(&image, bytes) {
        let device = LoopDevice::attach(&file, &image)?;
        if (steps.mount)(&device.path, mount_point).is_ok() {
            return opened(&device, true);
        }
    }
    let failed = |error: &io::Error| {
        let _ = fs::remove_file(&image);
        Error::io(format_args!("make the image {} of {bytes} bytes", image.display()), error)
    };
    let file = create_image(&image, bytes).map_err(|error| failed(&error))?;
    let device = LoopDevice::attach(&file, &image)?;
    let made = make_xfs(&device.path, &["-K"], steps)
        .and_then(|()| (steps.mount)(&device.path, mount_point));
    if let Err(error) = made {
        let _ = fs::remove_file(&image);
        return Err(error);
    }
    opened(&device, false)
}

fn create_on_device(
    path: &Path,
    wish: DeviceOptions,
    mount_point: &Path,
    steps: FileSystemHooks,
) -> Result<(FileSystem, OpenedFileSystem)> {
    let (facts, file) = hold_device(path, wish)?;
    drop(file); // mkfs takes it for itself alone in turn, and fails where somebody was faster.
    let device = PathBuf::from(&facts.real_path);
    make_xfs(&device, if wish.overwrite { &["-f"] } else { &[] }, steps)?;
    if let Err(error) = (steps.mount)(&device, mount_point) {
        let _ = wipe_superblock(&device, wish.serial.unwrap_or_default());
        return Err(error);
    }
    let dir = mount_point.to_owned();
    let made = OpenedFileSystem { dir: dir.clone(), device: facts.name, kept: false, direct: true };
    let root = FolderIdentity::of(&dir)?;
    let backing = MountedBacking::Device { path: device, serial: facts.serial.unwrap_or_default() };
    Ok((FileSystem { mount_point: dir, root, backing }, made))
}

fn make_xfs(device: &Path, options: &[&str], steps: FileSystemHooks) -> Result<()> {
    let device = device.display().to_string();
    let all = ["mkfs.xfs", "-q", "-m", "crc=1,reflink=1"];
    (steps.run_program)(&[&all[..], options, &[device.as_str()]].concat())
}

/// Mount the XFS of a device, with discard and without times of access.
pub fn mount_xfs(device: &Path, at: &Path) -> Result<()> {
    mount_device(device, at, c"xfs", c"discard").context(format_args!(
        "mount {} at {}",
        device.display(),
        at.display()
    ))
}

fn unmount_when_free(at: &Path) -> io::Result<()> {
    let deadline = Instant::now() + UNMOUNT_PATIENCE;
    loop {
        match unmount(at, UnmountMode::IfUnused) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline =>
            {
                thread::sleep(UNMOUNT_PAUSE);
            }
            ended => return ended,
        }
    }
}

/// What an earlier session left on purpose, if it has the size that is wanted.
fn open_kept_image(image: &Path, bytes: u64) -> Option<File> {
    let open = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(image);
    let file = open.ok()?;
    let is_whole = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() == bytes);
    is_whole.then_some(file)
}

/// A file with all its blocks, so that a full disk shows now and not in the middle of a run; a
/// sparse one where the file system below cannot do that.
fn create_image(image: &Path, bytes: u64) -> io::Result<File> {
    match fs::remove_file(image) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Asked to allocate more than there is, a file system takes all of it before it gives up, and
    // whoever else writes there meanwhile finds it full.
    if file_system_space(image.parent().unwrap_or(image))?.free_bytes < bytes {
        return Err(io::Error::from_raw_os_error(libc::ENOSPC));
    }
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(image)?;
    allocate(&file, bytes)?;
    Ok(file)
}

/// Zeros in the place of the superblock of a device that must be nobody's, and still the one with
/// that serial: its name may be another's by now.
fn wipe_superblock(device: &Path, serial: &str) -> Result<()> {
    let (_, file) = hold_device(device, DeviceOptions { serial: Some(serial), overwrite: true })?;
    let doing = format_args!("wipe {}", device.display());
    file.write_all_at(&vec![0; WIPE_BYTES], 0).and_then(|()| file.sync_all()).context(doing)
}

/// A loop device with a file behind it, until this is dropped and nothing is mounted from it.
struct LoopDevice {
    name: String,
    path: PathBuf,
    _device: File,
}

impl LoopDevice {
    fn attach(file: &File, image: &Path) -> Result<Self> {
        Self::attach_to_free(file, image)
            .context(format_args!("attach {} to a loop device", image.display()))
    }

    fn attach_to_free(file: &File, image: &Path) -> io::Result<Self> {
        let (least, most) = LOOP_BLOCK_BYTES.into_inner();
        let block_bytes = direct_alignment(image).unwrap_or(most).clamp(least, most) as u32;
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        for _ in 0..MAX_TRIES {
            let name = format!("loop{}", free_loop_number(&control)?);
            let path = Path::new("/dev").join(&name);
            let device = OpenOptions::new().read(true).write(true).open(&path)?;
            match attach_loop(&device, file, block_bytes) {
                Ok(()) => return Ok(Self { name, path, _device: device }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    fn is_direct(&self) -> bool {
        read_number(&Roots::default().block_folder(&self.name).join("loop/dio")) == Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    const NOTHING: FileSystemHooks = FileSystemHooks {
        enter_namespace: &|| Err(io::Error::from_raw_os_error(libc::EPERM)),
        run_program: &|_| panic!("nothing is to be run"),
        mount: &|_, _| panic!("nothing is to be mounted"),
    };

    #[test]
    fn without_mounts_of_its_own_nothing_is_made() {
        let scratch = TestFolder::new();
        let opened = FileSystem::open(scratch.path(), &Backing::Image(1 << 30), NOTHING);
        assert_eq!(opened.map(|_| ()).unwrap_err().code, "EPERM");
        assert!(crate::roots::list_names(scratch.path()).is_empty());
    }

    #[test]
    fn an_image_has_its_blocks_and_takes_the_place_of_an_older_one() {
        use std::os::unix::fs::MetadataExt;
        let scratch = TestFolder::new();
        let image = scratch.path().join(IMAGE);
        scratch.put(IMAGE, "an older one");
        let meta = create_image(&image, 1 << 20).unwrap().metadata().unwrap();
        assert_eq!(meta.len(), 1 << 20);
        assert!(meta.blocks() * 512 >= 1 << 20, "{} blocks", meta.blocks());
    }

    #[test]
    fn only_an_image_of_the_same_size_is_used_again() {
        let scratch = TestFolder::new();
        let image = scratch.path().join(IMAGE);
        assert!(open_kept_image(&image, 8).is_none());
        scratch.put(IMAGE, "12345678");
        assert!(open_kept_image(&image, 8).is_some());
        assert!(open_kept_image(&image, 9).is_none());
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&image, &link).unwrap();
        assert!(open_kept_image(&link, 8).is_none());
    }

    #[test]
    fn what_is_formatted_is_told_to_the_program_as_arguments() {
        use std::cell::RefCell;
        let told = RefCell::new(Vec::new());
        let execute = |argv: &[&str]| {
            told.borrow_mut().push(argv.join("|"));
            Ok(())
        };
        let steps = FileSystemHooks { run_program: &execute, ..NOTHING };
        make_xfs(Path::new("/dev/loop7"), &["-K"], steps).unwrap();
        make_xfs(Path::new("/dev/a disk"), &[], steps).unwrap();
        assert_eq!(
            *told.borrow(),
            [
                "mkfs.xfs|-q|-m|crc=1,reflink=1|-K|/dev/loop7",
                "mkfs.xfs|-q|-m|crc=1,reflink=1|/dev/a disk",
            ]
        );
    }

    #[test]
    fn a_device_with_objections_is_refused() {
        let wish = DeviceOptions { serial: Some("x"), overwrite: true };
        let at = Path::new("/nowhere");
        let error =
            create_on_device(Path::new("/dev/null"), wish, at, NOTHING).map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOTBLK");
    }

    #[test]
    fn a_file_system_is_backed_by_an_image_or_a_device() {
        let path = Some(PathBuf::from("/dev/x"));
        let serial = Some("x".to_owned());
        assert_eq!(Backing::of(Some(8), None, None, false).unwrap(), Backing::Image(8));
        let device = Backing::of(None, path.clone(), serial.clone(), true).unwrap();
        assert!(matches!(device, Backing::Device { overwrite: true, .. }));
        for (bytes, path, serial) in
            [(None, None, None), (Some(8), path.clone(), serial), (None, path, None)]
        {
            assert_eq!(Backing::of(bytes, path, serial, false).unwrap_err().code, "bad-request");
        }
    }
}
