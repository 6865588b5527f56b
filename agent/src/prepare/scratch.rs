//! The scratch folder of a session: made, locked, and removed by us alone.
//!
//! A file in it holds the owner's text and an exclusive lock (flock) for as long as the session
//! lives. Only a folder with that file, or an empty one, is ever taken; all else is somebody's.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bound;
use crate::error::{Context, Error, Result};
use crate::prepare::removal::{self, Stuck};
use crate::roots::Roots;
use crate::sign::own_agent_id;
use crate::sys::file::{
    LockedFile, is_immutable, is_locked, open_file_in, open_folder, open_folder_in, stat_in,
    unlink_in,
};
use crate::sys::process::{effective_gid, effective_uid};
use crate::tree;

/// Every scratch folder's name begins so: a wrong name can never mean another folder.
pub const PREFIX: &str = "iolab-scratch";
const LOCK_NAME: &str = ".iolab-lock";
/// Nobody but us: there are sockets in it by which guests are ruled.
const FOLDER_MODE: u32 = 0o700;
/// The owner's text is a line for people.
const MAX_OWNER_BYTES: u64 = 4096;
/// A lock file that a leaving session removed under us is tried anew; each try has another reason.
const MAX_TRIES: u32 = 10;
/// Abandoned folders told at once: each has a row on a screen, and is counted through.
const MAX_ABANDONED: usize = 1000;
/// Folders of other users that are named: enough to know which they are.
const MAX_NAMED: usize = 10;

/// A scratch folder that this process holds.
pub struct Scratch {
    dir: PathBuf,
    folder: File,
    lock: LockedFile,
    marker: LockMarker,
}

/// What the lock file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LockMarker {
    owner: String,
    /// The sign of the agent that holds it: its process id and when that started.
    #[serde(default)]
    agent: String,
    /// Where that runs. A lock may be seen on its own host alone, as on some network file systems.
    #[serde(default)]
    host: String,
    /// The running kernel there, by its boot id.
    #[serde(default)]
    boot: String,
    /// The very folder, by its file system's device number and its inode: a copy has another.
    #[serde(default)]
    device: u64,
    #[serde(default)]
    inode: u64,
    /// The files were left on purpose and must outlive the next session's start.
    kept: bool,
}

impl LockMarker {
    /// Whose lock may not be seen from here: one that was made under another kernel, unless that
    /// was this host's before it was started anew. Hosts of one kernel see each other's.
    fn is_of_another_host(&self) -> bool {
        let has_host = !self.boot.is_empty(); // Earlier agents wrote none.
        has_host
            && self.boot != read_kernel_value("random/boot_id")
            && self.host != read_kernel_value("hostname")
    }

    /// Whether it was written for another folder, of which this is a copy. Device numbers may be
    /// others after a boot.
    fn is_copied(&self, folder: &Metadata) -> bool {
        let is_known = self.inode != 0; // Earlier agents wrote none.
        let same_boot = self.boot == read_kernel_value("random/boot_id");
        is_known && (self.inode != folder.ino() || (same_boot && self.device != folder.dev()))
    }

    /// Whether the agent that wrote it for this folder lives, and has not let go of it: should its
    /// lock be lost, as when the file was replaced, the folder is still its own.
    fn is_holder_alive(&self, folder: &Metadata) -> bool {
        !self.kept
            && self.inode != 0
            && self.agent != own_agent_id()
            && self.boot == read_kernel_value("random/boot_id")
            && !self.is_copied(folder)
            && tree::is_agent_alive(&self.agent)
    }
}

impl Scratch {
    /// Make `path/name` (or take over what a dead session left) and lock it.
    ///
    /// Returns the folder and the bytes found in it. They are removed already, unless their session
    /// kept them on purpose: then they stay until this session's end, which removes them.
    pub fn open(path: &Path, name: &str, owner: &str) -> Result<(Self, u64)> {
        check_name(name)?;
        if owner.len() as u64 > MAX_OWNER_BYTES / 2 {
            return Err(Error::bad_request(format!(
                "an owner of {} bytes is too long",
                owner.len()
            )));
        }
        let dir = path.join(name);
        // Whatever a dead session works on, it would disturb what is measured here.
        tree::kill_orphans();
        for _ in 0..MAX_TRIES {
            let Some((folder, lock)) = open_and_lock(&dir)? else { continue };
            let meta = folder.metadata().context(format_args!("look at {}", dir.display()))?;
            let left = read_marker(&lock);
            if let Some(living) = left.as_ref().filter(|marker| marker.is_holder_alive(&meta)) {
                let message = format!("{} is held by {}", dir.display(), living.owner);
                return Err(Error::busy(message));
            }
            if left.as_ref().is_some_and(|marker| marker.agent != own_agent_id()) {
                bound::remove_groups_of_dead_agents(&Roots::default());
            }
            let leftovers = if left.as_ref().is_some_and(|marker| marker.kept) {
                removal::count_contents(&folder, OsStr::new(LOCK_NAME))
            } else {
                removal::remove_contents_parallel(&folder, OsStr::new(LOCK_NAME))
            };
            let leftovers = leftovers.map_err(|stuck| stuck_error(&dir, &stuck))?;
            let marker = LockMarker {
                owner: owner.to_owned(),
                agent: own_agent_id().to_owned(),
                host: read_kernel_value("hostname"),
                boot: read_kernel_value("random/boot_id"),
                device: meta.dev(),
                inode: meta.ino(),
                kept: false,
            };
            let scratch = Self { dir, folder, lock, marker };
            scratch.write_marker(&scratch.marker)?;
            return Ok((scratch, leftovers.bytes));
        }
        Err(Error::busy(format!("{} is made and removed by others all the time", dir.display())))
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// By what the folder is known.
    #[must_use]
    pub fn anchor(&self) -> FolderIdentity {
        let LockMarker { device, inode, .. } = self.marker;
        FolderIdentity { dir: self.dir.clone(), device, inode }
    }

    /// Remove the folder and all that is in it, wherever it is by now.
    ///
    /// It is known by what is held open and not by its name: the name is looked for in the folder
    /// above it, which is found from the open one also behind a mount that was ended or covers it.
    pub fn remove(&self) -> std::result::Result<Removed, RemovalFailure> {
        let in_place = self.anchor().open();
        let place = self.place();
        let is_named = !matches!(place, ScratchLocation::Unmounted(_));
        let now = if is_named { place.path() } else { self.dir() };
        let stays = |stuck: Stuck| {
            let mut error = stuck_error(now, &stuck);
            let moved = match &place {
                ScratchLocation::At(_) => format!("it was moved from {}", self.dir.display()),
                other => other.text(),
            };
            if in_place.is_err() {
                error.message = format!("{moved}; {}", error.message);
            }
            RemovalFailure { now: now.to_owned(), error }
        };
        if place != ScratchLocation::Nowhere {
            removal::remove_contents_parallel(&self.folder, OsStr::new(LOCK_NAME))
                .map_err(stays)?;
            let lock = stat_in(&self.folder, OsStr::new(LOCK_NAME));
            match lock.and_then(|lock| unlink_in(&self.folder, OsStr::new(LOCK_NAME), lock)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(stays(Stuck { path: LOCK_NAME.into(), error }));
                }
                _ => {}
            }
            self.remove_empty(place.path()).map_err(|error| stays(error.into()))?;
        }
        match in_place {
            Ok(_) => Ok(Removed::InPlace),
            Err(replaced) => {
                let message = format!("{}; {}", replaced.message, place.removed_text());
                Ok(Removed::Elsewhere(Error::replaced(message)))
            }
        }
    }

    /// Remove the folder, which is empty, from the one that it lies in.
    fn remove_empty(&self, now: &Path) -> io::Result<()> {
        let above = open_folder_in(&self.folder, OsStr::new(".."))?;
        let name = now.file_name().ok_or(io::ErrorKind::NotFound)?;
        let entry = stat_in(&above, name)?;
        if !entry.is_folder || entry.inode != self.marker.inode {
            return Err(io::Error::from_raw_os_error(libc::EBUSY)); // What covers it is seen.
        }
        unlink_in(&above, name, entry)
    }

    /// Where it is by now, by what the kernel says of the open folder.
    #[must_use]
    pub fn place(&self) -> ScratchLocation {
        let link = fs::read_link(format!("/proc/self/fd/{}", self.folder.as_raw_fd()));
        let now = link.unwrap_or_default();
        // The kernel says so of a folder without a name; somebody may have named it like that.
        let is_gone = || {
            let above = open_folder_in(&self.folder, OsStr::new(".."));
            let entry =
                above.and_then(|above| stat_in(&above, now.file_name().unwrap_or_default()));
            now.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") && entry.is_err()
        };
        let reached = self.anchor().moved_to(now.clone()).open();
        if reached.is_ok() {
            ScratchLocation::At(now)
        } else if is_gone() {
            ScratchLocation::Nowhere
        } else if self.is_mounted() {
            ScratchLocation::Covered(now)
        } else {
            ScratchLocation::Unmounted(now)
        }
    }

    /// Whether the mount that the open folder was reached by is still one of the host's.
    fn is_mounted(&self) -> bool {
        let Ok(entry) = stat_in(&self.folder, OsStr::new(".")) else { return true };
        // Of the whole process: a thread may have mounts of its own, with other numbers.
        let Some(mounts) = crate::roots::read_text(Path::new("/proc/self/mountinfo")) else {
            return true;
        };
        let id = entry.mount.id.to_string();
        entry.mount.id == 0 || mounts.lines().any(|line| line.split(' ').next() == Some(&id))
    }

    /// Hold nothing of it open, so that its file system can be unmounted: it is still this
    /// process's own by what its lock file says.
    #[must_use]
    pub fn release(self) -> ReleasedScratch {
        ReleasedScratch { dir: self.dir, marker: self.marker }
    }

    /// Mark the folder, so that its files stay; the lock is held until `self` is dropped.
    pub fn keep(&self) -> Result<()> {
        self.write_marker(&LockMarker { kept: true, ..self.marker.clone() })
    }

    fn write_marker(&self, marker: &LockMarker) -> Result<()> {
        let text = serde_json::to_string(marker).map_err(|e| Error::bug(e.to_string()))?;
        let mut lock: &File = &self.lock;
        // In this order it is never empty, which would say that nothing is kept.
        lock.rewind()
            .and_then(|()| lock.write_all(text.as_bytes()))
            .and_then(|()| lock.set_len(text.len() as u64))
            .and_then(|()| lock.sync_all())
            .context(format_args!("write in {}", self.dir.display()))
    }
}

/// A scratch folder of which nothing is held open for a while.
#[derive(Debug)]
pub struct ReleasedScratch {
    dir: PathBuf,
    marker: LockMarker,
}

impl ReleasedScratch {
    /// Hold it again; `replaced` where the folder is not the one that was let go.
    pub fn reacquire(self) -> Result<Scratch> {
        let dir = self.dir.display();
        let replaced =
            || Error::replaced(format!("the scratch folder {dir} is not there any more"));
        if !self.dir.join(LOCK_NAME).exists() {
            return Err(replaced()); // Else another would be made in what is not mounted.
        }
        let (folder, lock) = open_and_lock(&self.dir)?.ok_or_else(replaced)?;
        let meta = folder.metadata().context(format_args!("look at {dir}"))?;
        if read_marker(&lock).as_ref() != Some(&self.marker) || meta.ino() != self.marker.inode {
            return Err(replaced());
        }
        // A file system without a device of its own has another number when it is mounted anew.
        let marker = LockMarker { device: meta.dev(), ..self.marker };
        let scratch = Scratch { dir: self.dir, folder, lock, marker };
        scratch.write_marker(&scratch.marker)?;
        Ok(scratch)
    }
}

/// How a scratch folder was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// Where it was made.
    InPlace,
    /// Where it was by then, or by somebody else; the error tells how that came.
    Elsewhere(Error),
}

/// Why a scratch folder stays, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovalFailure {
    /// Its path by now.
    pub now: PathBuf,
    /// What kept it.
    pub error: Error,
}

/// Where a scratch folder is that is held open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScratchLocation {
    /// It is reached by this path.
    At(PathBuf),
    /// It would be, but for a mount over it.
    Covered(PathBuf),
    /// The file system is not mounted any more (`umount -l`); the path begins at its root.
    Unmounted(PathBuf),
    /// It was removed.
    Nowhere,
}

impl ScratchLocation {
    fn path(&self) -> &Path {
        match self {
            Self::At(path) | Self::Covered(path) | Self::Unmounted(path) => path,
            Self::Nowhere => Path::new(""),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::At(path) => format!("it is {} now", path.display()),
            Self::Covered(path) => format!("a mount covers it at {}", path.display()),
            Self::Unmounted(_) => "its file system was unmounted while it was in use".to_owned(),
            Self::Nowhere => "it was removed by somebody else".to_owned(),
        }
    }

    fn removed_text(&self) -> String {
        match self {
            Self::Nowhere => self.text(),
            _ => format!("{}, and was removed there", self.text()),
        }
    }
}

/// By what a scratch folder is known, whatever has its name by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderIdentity {
    /// Where it was made.
    pub dir: PathBuf,
    device: u64,
    inode: u64,
}

impl FolderIdentity {
    /// That of a folder which is where it was made.
    pub fn of(dir: &Path) -> Result<Self> {
        let meta = fs::symlink_metadata(dir).context(format_args!("look at {}", dir.display()))?;
        Ok(Self { dir: dir.to_owned(), device: meta.dev(), inode: meta.ino() })
    }

    /// The same folder under another path.
    #[must_use]
    pub fn moved_to(&self, dir: PathBuf) -> Self {
        Self { dir, ..self.clone() }
    }

    /// Open the folder where it was made; `replaced` when that is another one, or none.
    pub fn open(&self) -> Result<File> {
        let dir = self.dir.display();
        let replaced =
            |how: &str| Error::replaced(format!("the scratch folder {dir} was replaced: {how}"));
        let folder = open_folder(&self.dir).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => replaced("it was moved, removed or unmounted"),
            Some(libc::ENOTDIR | libc::ELOOP) => replaced("a link or a file has its place"),
            _ => Error::io(format_args!("open the scratch folder {dir}"), &error),
        })?;
        let meta = folder.metadata().context(format_args!("look at {dir}"))?;
        if (meta.dev(), meta.ino()) != (self.device, self.inode) {
            return Err(replaced("another folder, or a mount, has its place"));
        }
        Ok(folder)
    }
}

/// Refuse a folder with symbolic links in it, which programs would follow: iolab makes none.
pub fn refuse_links(folder: &File, dir: &Path) -> Result<()> {
    let doing = format!("read {}", dir.display());
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd())).context(&doing)?;
    for entry in entries {
        let entry = entry.context(&doing)?;
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            let name = entry.file_name();
            let message = format!(
                "{} in the scratch folder {} is a symbolic link, which iolab did not make",
                name.to_string_lossy(),
                dir.display()
            );
            return Err(Error::replaced(message));
        }
    }
    Ok(())
}

/// The lock in a folder, for a look at it. It may be anybody's: a link is not followed, and nothing is
/// waited for at the end of a FIFO.
fn open_lock(dir: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(dir.join(LOCK_NAME))
}

/// Who holds scratch folders in a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The owner of one of this user's.
    pub own: Option<String>,
    /// That of one of another user's, with his id: any user can make and hold one.
    pub other: Option<String>,
}

/// Look at those in `path`.
#[must_use]
pub fn holders(path: &Path) -> Holders {
    let mut holders = Holders::default();
    let mut beside = None;
    for name in scratch_names(path) {
        let dir = path.join(name);
        let Ok(meta) = fs::symlink_metadata(&dir) else { continue };
        let user = meta.uid();
        if user == effective_uid()
            || Some(user) == *beside.get_or_insert_with(|| owner_of_new_files(&dir))
        {
            holders.own = holders.own.or_else(|| holder_of(&dir));
        } else if holders.other.is_none() {
            holders.other = holder_of(&dir).map(|owner| format!("user {user}, {owner}"));
        }
    }
    holders
}

/// Who holds a scratch folder; None when nobody does.
fn holder_of(dir: &Path) -> Option<String> {
    let lock = open_lock(dir).ok()?;
    let marker = read_marker(&lock);
    let is_in_force = || {
        let meta = fs::symlink_metadata(dir).ok()?;
        Some(marker.as_ref()?.is_holder_alive(&meta))
    };
    let is_held = is_locked(&lock).ok()? || is_in_force().unwrap_or(false);
    is_held.then(|| owner_in_lock(&lock))
}

/// Who but this user and root may move or remove a folder that is made in `path`: whoever owns a
/// folder on the way, or may write to one without the sticky bit, as that of /tmp has.
#[must_use]
pub fn movable_by(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    path.ancestors().find_map(|folder| {
        let meta = fs::metadata(folder).ok()?;
        let (mode, folder) = (meta.mode(), folder.display());
        let is_sticky = mode & libc::S_ISVTX != 0;
        if ![0, effective_uid()].contains(&meta.uid()) {
            return Some(format!("{folder} belongs to user {}", meta.uid()));
        }
        if mode & 0o002 != 0 && !is_sticky {
            return Some(format!("everybody may write to {folder}"));
        }
        let by_group =
            mode & 0o020 != 0 && !is_sticky && ![0, effective_gid()].contains(&meta.gid());
        by_group.then(|| format!("group {} may write to {folder}", meta.gid()))
    })
}

fn scratch_names(path: &Path) -> Vec<String> {
    let all = crate::roots::list_names(path);
    all.into_iter().filter(|name| name.starts_with(PREFIX)).collect()
}

/// A scratch folder whose session is dead, and whose files nobody kept on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Abandoned {
    /// Where it is.
    pub dir: PathBuf,
    /// Whose it was.
    pub owner: String,
    /// What its files hold.
    pub bytes: u64,
    /// The other host that may hold it still; empty where it is known that nobody does.
    pub host: String,
}

/// Scratch folders in a directory that no session of this user holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbandonedFolders {
    /// Those of this user, at most `MAX_ABANDONED`.
    pub own: Vec<Abandoned>,
    /// How many more there may be of them.
    pub more_folders: u64,
    /// The first of other users, at most `MAX_NAMED`, whatever they hold.
    pub foreign_folders: Vec<PathBuf>,
    /// How many there are of other users.
    pub foreign_folder_count: u64,
}

/// What of this user's is left in a directory; other users' folders are counted, not looked into.
#[must_use]
pub fn find_abandoned(path: &Path) -> AbandonedFolders {
    let mut found = AbandonedFolders::default();
    let mut beside = None;
    for name in scratch_names(path) {
        let dir = path.join(&name);
        let Ok(folder) = open_folder(&dir) else { continue };
        let Ok(meta) = folder.metadata() else { continue };
        if meta.uid() != effective_uid()
            && Some(meta.uid()) != *beside.get_or_insert_with(|| owner_of_new_files(&dir))
        {
            found.foreign_folder_count += 1;
            if found.foreign_folders.len() < MAX_NAMED {
                found.foreign_folders.push(dir);
            }
        } else if found.own.len() == MAX_ABANDONED {
            found.more_folders += 1;
        } else if let Some(left) = abandoned_folder(dir, &folder, &meta) {
            found.own.push(left);
        }
    }
    found
}

/// Whether a folder of this user's is left, by nobody of another host.
#[must_use]
pub fn is_abandoned(dir: &Path) -> bool {
    let look = || {
        let folder = open_folder(dir).ok()?;
        let meta = folder.metadata().ok()?;
        abandoned_folder(dir.to_owned(), &folder, &meta)
    };
    look().is_some_and(|left| left.host.is_empty())
}

/// A folder of this user's; None when it is held, or its files were kept on purpose.
fn abandoned_folder(dir: PathBuf, folder: &File, meta: &Metadata) -> Option<Abandoned> {
    let lock = open_lock(&dir).ok()?;
    let marker = read_marker(&lock);
    // One that is there and cannot be read may say that the files are kept.
    let is_kept = marker.as_ref().map_or(lock.metadata().ok()?.len() > 0, |marker| marker.kept);
    let is_in_force = marker.as_ref().is_some_and(|marker| marker.is_holder_alive(meta));
    if is_locked(&lock).ok()? || is_in_force || is_kept {
        return None;
    }
    let bytes =
        removal::count_contents(folder, OsStr::new(LOCK_NAME)).map_or(0, |found| found.bytes);
    let other = marker.as_ref().filter(|marker| marker.is_of_another_host());
    let host = other.map(|marker| marker.host.clone()).unwrap_or_default();
    let is_copied = marker.as_ref().is_some_and(|marker| marker.is_copied(meta));
    let owner = marker.map(|marker| marker.owner).unwrap_or_default();
    let owner = if is_copied { format!("a copy of {owner}'s") } else { owner };
    Some(Abandoned { dir, owner, bytes, host })
}

/// Whether an open folder has the lock file of a scratch folder in it.
#[must_use]
pub fn is_scratch_folder(folder: &File) -> bool {
    stat_in(folder, OsStr::new(LOCK_NAME)).is_ok_and(|entry| !entry.is_folder)
}

fn check_name(name: &str) -> Result<()> {
    let plain = name.starts_with(PREFIX) && !name.contains(['/', '\0']) && name.len() <= 200;
    if plain {
        return Ok(());
    }
    Err(Error::bad_request(format!("a scratch folder's name begins with {PREFIX}, not {name:?}")))
}

/// The open folder and its locked lock file; None when it vanished meanwhile.
fn open_and_lock(dir: &Path) -> Result<Option<(File, LockedFile)>> {
    let failed = |doing: &str, error: &io::Error| {
        Error::io(format_args!("{doing} the scratch folder {}", dir.display()), error)
    };
    match DirBuilder::new().mode(FOLDER_MODE).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("make", &error));
        }
        _ => {}
    }
    let folder = match open_folder(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The kernel says ENOTDIR or ELOOP of a symbolic link, by the flags it came with.
        opened => opened.map_err(|error| failed("open (links are not followed)", &error))?,
    };
    // From here on the open folder counts: its name may mean another by now.
    let names =
        crate::roots::list_names(&PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())));
    if !names.is_empty() && !names.iter().any(|name| name == LOCK_NAME) {
        let message = format!("{} was not made by this program and is not empty", dir.display());
        return Err(Error::errno(libc::EEXIST, message));
    }
    require_own_user(&folder, dir)?;
    let lock = match open_file_in(&folder, LOCK_NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| failed("lock", &error))?,
    };
    let lock = match LockedFile::try_lock(lock).map_err(|error| failed("lock", &error))? {
        Ok(lock) => lock,
        Err(held) => {
            let message = format!("{} is held by {}", dir.display(), owner_in_lock(&held));
            return Err(Error::busy(message));
        }
    };
    let by_name = stat_in(&folder, OsStr::new(LOCK_NAME));
    let is_same = match (by_name, lock.metadata()) {
        (Ok(by_name), Ok(open)) => by_name.inode == open.ino() && open.is_file(),
        _ => false,
    };
    Ok(is_same.then_some((folder, lock)))
}

/// What in the folder `dir` cannot be removed, and why; of a file with an attribute, what ends that.
fn stuck_error(dir: &Path, stuck: &Stuck) -> Error {
    let path: PathBuf = dir.join(&stuck.path).components().collect();
    let mut error = Error::io(format_args!("remove {}", path.display()), &stuck.error);
    let is_protected = || path.ancestors().take(2).any(is_immutable);
    if stuck.error.raw_os_error() == Some(libc::EPERM) && is_protected() {
        error.message += ", as it is immutable or append-only (chattr -ia)";
    }
    error
}

/// Refuse a folder that another user made: what is in it would be in his hands.
fn require_own_user(folder: &File, dir: &Path) -> Result<()> {
    let meta = folder.metadata().context(format_args!("look at {}", dir.display()))?;
    let user = meta.uid();
    if user != effective_uid() && Some(user) != owner_of_new_files(dir) {
        let message = format!("{} was made by another user, whose id is {user}", dir.display());
        return Err(Error::errno(libc::EPERM, message));
    }
    if meta.mode() & 0o777 != FOLDER_MODE {
        let _ = folder.set_permissions(Permissions::from_mode(FOLDER_MODE)); // Some know no rights.
    }
    Ok(())
}

/// Whose a folder is that we make there: another's where the file system maps users.
fn owner_of_new_files(dir: &Path) -> Option<u32> {
    let name = dir.file_name()?.to_string_lossy();
    let trial = dir.with_file_name(format!("{name}.{}", own_agent_id()));
    DirBuilder::new().mode(FOLDER_MODE).create(&trial).ok()?;
    let user = fs::symlink_metadata(&trial).map(|made| made.uid());
    let _ = fs::remove_dir(&trial); // It is empty.
    user.ok()
}

fn owner_in_lock(lock: &File) -> String {
    read_marker(lock).map_or_else(|| "another session".to_owned(), |marker| marker.owner)
}

fn read_kernel_value(file: &str) -> String {
    let text = crate::roots::read_text(&Path::new("/proc/sys/kernel").join(file));
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn read_marker(lock: &File) -> Option<LockMarker> {
    let mut text = String::new();
    let mut lock = lock;
    lock.rewind().ok()?;
    lock.take(MAX_OWNER_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// What is to be left of a scratch folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// Neither the folder nor what is in it.
    Nothing,
    /// All of it, for a later session.
    Files,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::sys::process;
    use crate::token::tests::Planted;
    use crate::trial::TestFolder;

    const NAME: &str = "iolab-scratch-local";

    fn open(target: &TestFolder) -> Result<(Scratch, u64)> {
        Scratch::open(target.path(), NAME, "session one")
    }

    #[test]
    fn a_held_folder_names_its_holder_until_it_is_gone() {
        let target = TestFolder::new();
        let (scratch, left) = open(&target).unwrap();
        assert_eq!(left, 0);
        let error = Scratch::open(target.path(), NAME, "session two").map(|_| ()).unwrap_err();
        assert_eq!(error.code, "busy");
        assert!(error.message.ends_with("is held by session one"), "{}", error.message);
        assert_eq!(holders(target.path()).own.as_deref(), Some("session one"));
        fs::write(scratch.dir().join("file"), "x").unwrap();
        scratch.remove().unwrap();
        assert!(crate::roots::list_names(target.path()).is_empty());
        assert_eq!(holders(target.path()), Holders::default());
    }

    #[test]
    fn what_a_dead_session_left_is_removed_and_told() {
        let target = TestFolder::new();
        let (scratch, _) = open(&target).unwrap();
        fs::write(scratch.dir().join("file"), "12345").unwrap();
        drop(scratch); // Its process died: the lock is gone, the files are not.
        let (scratch, left) = open(&target).unwrap();
        assert_eq!(left, 5);
        assert_eq!(crate::roots::list_names(scratch.dir()), [LOCK_NAME]);
    }

    #[test]
    fn a_released_folder_stays_this_sessions_and_is_known_again() {
        let target = TestFolder::new();
        let (scratch, _) = open(&target).unwrap();
        let dir = scratch.dir().to_owned();
        fs::write(dir.join("file"), "x").unwrap();
        let scratch = scratch.release().reacquire().unwrap();
        assert_eq!(fs::read(dir.join("file")).unwrap(), b"x");
        let error = Scratch::open(target.path(), NAME, "session two").map(|_| ()).unwrap_err();
        assert_eq!(error.code, "busy");
        let released = scratch.release();
        let moved = target.path().join("moved");
        fs::rename(&dir, &moved).unwrap();
        assert_eq!(released.reacquire().map(|_| ()).unwrap_err().code, "replaced");
        assert!(!dir.exists()); // As where a mount is missing: nothing is made there.
        fs::rename(&moved, &dir).unwrap();
        let (other, _) = open(&target).unwrap();
        let released = other.release();
        fs::create_dir(&moved).unwrap();
        fs::copy(dir.join(LOCK_NAME), moved.join(LOCK_NAME)).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        fs::rename(&moved, &dir).unwrap();
        assert_eq!(released.reacquire().map(|_| ()).unwrap_err().code, "replaced");
    }

    #[test]
    fn a_folder_of_another_host_is_told_from_one_that_nobody_holds() {
        let target = TestFolder::new();
        let (scratch, _) = open(&target).unwrap();
        let own = scratch.marker.clone();
        let elsewhere =
            LockMarker { host: "node7".to_owned(), boot: "another".to_owned(), ..own.clone() };
        let started_anew = LockMarker { boot: "another".to_owned(), ..own.clone() };
        let container = LockMarker { host: "node7".to_owned(), ..own.clone() };
        let earlier = LockMarker { host: String::new(), boot: String::new(), ..own.clone() };
        let cases =
            [(elsewhere, "node7"), (own, ""), (started_anew, ""), (container, ""), (earlier, "")];
        let mut scratch = Some(scratch);
        for (marker, host) in cases {
            let held = scratch.take().unwrap_or_else(|| open(&target).unwrap().0);
            held.write_marker(&marker).unwrap();
            drop(held);
            let found = find_abandoned(target.path()).own;
            assert_eq!(found.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), [host]);
        }
    }

    #[test]
    fn what_was_kept_stays_for_one_more_session() {
        let target = TestFolder::new();
        let (scratch, _) = open(&target).unwrap();
        fs::write(scratch.dir().join("file"), "12345").unwrap();
        scratch.keep().unwrap();
        drop(scratch);
        let (scratch, left) = open(&target).unwrap();
        assert_eq!((left, crate::roots::list_names(scratch.dir()).len()), (5, 2));
        scratch.remove().unwrap();
        assert!(crate::roots::list_names(target.path()).is_empty());
    }

    #[test]
    fn what_a_dead_agent_left_running_is_killed_before_a_folder_is_taken() {
        let target = TestFolder::new();
        let mut orphan = Planted::of("1-00000000deadbeef");
        let living = Planted::of("1-00000000deadbeee");
        let marked = Planted::marked("1-00000000deadbeed");
        orphan.orphan();
        let (scratch, _) = open(&target).unwrap();
        assert_eq!(orphan.child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert!(living.end() && marked.end());
        scratch.remove().unwrap();
    }

    #[test]
    fn a_lock_is_that_of_its_folder_and_of_no_copy() {
        let target = TestFolder::new();
        let (scratch, _) = open(&target).unwrap();
        let meta = scratch.folder.metadata().unwrap();
        let parent = process::parent_pid();
        let started = tree::process_info(parent).unwrap().start_ticks;
        let sign = |ticks: u64| format!("{parent}-{:016x}", ticks << 24);
        let living = LockMarker { agent: sign(started), ..scratch.marker.clone() };
        let recycled = LockMarker { agent: sign(started + 1), ..living.clone() };
        let kept = LockMarker { kept: true, ..living.clone() };
        let copied = LockMarker { inode: living.inode + 1, ..living.clone() };
        let cloned = LockMarker { device: living.device + 1, ..living.clone() };
        let booted = LockMarker { boot: "another".into(), ..cloned.clone() };
        assert!(living.is_holder_alive(&meta));
        for other in [&recycled, &kept, &copied, &cloned, &booted, &scratch.marker] {
            assert!(!other.is_holder_alive(&meta), "{other:?}");
        }
        let told = [&living, &recycled, &copied, &cloned, &booted].map(|m| m.is_copied(&meta));
        assert_eq!(told, [false, false, true, true, false]);
        // The lock itself is lost, and the agent lives.
        scratch.write_marker(&living).unwrap();
        drop(scratch);
        assert_eq!(holders(target.path()).own.as_deref(), Some("session one"));
        assert!(find_abandoned(target.path()).own.is_empty());
        assert_eq!(open(&target).map(|_| ()).unwrap_err().code, "busy");
    }

    #[test]
    fn folders_of_another_user_are_counted_and_left_alone() {
        if effective_uid() != 0 {
            return; // Only root may give a folder away.
        }
        let target = TestFolder::new();
        for nth in 0..30 {
            let dir = target.path().join(format!("{NAME}-{nth:02}"));
            fs::create_dir(&dir).unwrap();
            fs::write(dir.join(LOCK_NAME), "").unwrap();
            chown(&dir, Some(12_345), None).unwrap();
        }
        let theirs = open_lock(&target.path().join(format!("{NAME}-07"))).unwrap();
        let _held = LockedFile::try_lock(theirs).unwrap().unwrap();
        let holders = holders(target.path());
        assert_eq!((holders.own, holders.other.unwrap().contains("12345")), (None, true));
        drop(open(&target).unwrap());
        let found = find_abandoned(target.path());
        assert_eq!((found.own.len(), found.foreign_folder_count), (1, 30));
        assert_eq!(found.foreign_folders.len(), MAX_NAMED);
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused_and_untouched() {
        let target = TestFolder::new();
        target.put(&format!("{NAME}/precious"), "stays");
        assert_eq!(open(&target).map(|_| ()).unwrap_err().code, "EEXIST");
        assert_eq!(fs::read(target.path().join(NAME).join("precious")).unwrap(), b"stays");
    }

    #[test]
    fn a_folder_that_others_may_enter_is_closed_to_them() {
        let target = TestFolder::new();
        let dir = target.path().join(NAME);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
        let (scratch, _) = open(&target).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        scratch.remove().unwrap();
    }

    #[test]
    fn a_folder_that_another_user_made_is_refused() {
        let target = TestFolder::new();
        let dir = target.path().join(NAME);
        fs::create_dir(&dir).unwrap();
        // Only root may give it away; what everybody else made stays their own.
        let given = chown(&dir, Some(12_345), None).is_ok();
        assert_eq!(given, effective_uid() == 0);
        let refused =
            open(&target).err().map(|error| (error.code, error.message.contains("12345")));
        assert_eq!(refused, given.then(|| ("EPERM".to_owned(), true)));
        assert_eq!(crate::roots::list_names(target.path()), [NAME]);
    }

    #[test]
    fn whoever_may_move_the_folder_is_named() {
        if effective_uid() != 0 {
            return; // Only root may give folders away.
        }
        let target = TestFolder::new();
        let path = target.path().join("a/b");
        fs::create_dir_all(&path).unwrap();
        let above = path.parent().unwrap();
        let set = |dir: &Path, user, group, mode| {
            chown(dir, Some(user), Some(group)).unwrap();
            fs::set_permissions(dir, Permissions::from_mode(mode)).unwrap();
        };
        // The temporary folder, which everybody may write to, has the sticky bit.
        for (user, group, mode, named) in [
            (0, 0, 0o755, None),
            (0, 0, 0o775, None),
            (0, 12_345, 0o755, None),
            (0, 12_345, 0o1775, None),
            (0, 0, 0o1777, None),
            (0, 12_345, 0o775, Some("group 12345")),
            (0, 0, 0o777, Some("everybody")),
            (12_345, 0, 0o755, Some("user 12345")),
            (12_345, 0, 0o1777, Some("user 12345")),
        ] {
            for dir in [above, &path] {
                set(dir, user, group, mode);
                let found = movable_by(&path);
                assert_eq!(found.is_some(), named.is_some(), "{mode:o} {found:?}");
                let message = found.unwrap_or_default();
                assert!(message.contains(named.unwrap_or_default()), "{mode:o} {message}");
                set(dir, 0, 0, 0o755);
            }
        }
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let (target, elsewhere) = (TestFolder::new(), TestFolder::new());
        symlink(elsewhere.path(), target.path().join(NAME)).unwrap();
        let error = open(&target).map(|_| ()).unwrap_err();
        assert!(["ELOOP", "ENOTDIR"].contains(&error.code.as_str()), "{error:?}");
        assert!(crate::roots::list_names(elsewhere.path()).is_empty());
    }

    #[test]
    fn a_name_that_could_mean_another_folder_is_refused() {
        let target = TestFolder::new();
        for name in ["..", "", "home", "iolab-scratch/../..", "iolab-scratch\0"] {
            let error = Scratch::open(target.path(), name, "x").map(|_| ()).unwrap_err();
            assert_eq!(error.code, "bad-request", "{name}");
        }
    }

    #[test]
    fn a_missing_target_says_so() {
        let error = Scratch::open(Path::new("/nowhere"), NAME, "x").map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOENT");
        assert!(error.message.contains("/nowhere"), "{}", error.message);
    }
}
