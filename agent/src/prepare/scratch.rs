//! The scratch folder of a session: made, locked, and removed by us alone.
//!
//! A file in it holds the owner's text and an exclusive lock (flock) for as long as the session
//! lives. Only a folder with that file, or an empty one, is ever taken; all else is somebody's.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bound;
use crate::error::{Context, Error, Result};
use crate::prepare::removal;
use crate::roots::Roots;
use crate::sign::own_sign;
use crate::sys::file::{Locked, entry_in, is_locked, open_file_in, open_folder};
use crate::sys::process::own_user;
use crate::tree::kill_orphans_of;

/// Every scratch folder's name begins so: a wrong name can never mean another folder.
pub const PREFIX: &str = "iolab-scratch";
const LOCK: &str = ".iolab-lock";
/// Nobody but us: there are sockets in it by which guests are ruled.
const RIGHTS: u32 = 0o700;
/// The owner's text is a line for people.
const MAX_OWNER_BYTES: u64 = 4096;
/// A lock file that a leaving session removed under us is tried anew; each try has another reason.
const MAX_TRIES: u32 = 10;

/// A scratch folder that this process holds.
pub struct Scratch {
    dir: PathBuf,
    folder: File,
    lock: Locked,
    marker: Marker,
}

/// What the lock file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    owner: String,
    /// The sign of the agent that holds it: should that die, its processes are known by it.
    #[serde(default)]
    agent: String,
    /// Where that runs. A lock may be seen on its own host alone, as on some network file systems.
    #[serde(default)]
    host: String,
    /// The running kernel there, by its boot id.
    #[serde(default)]
    boot: String,
    /// The files were left on purpose and must outlive the next session's start.
    kept: bool,
}

impl Marker {
    /// Whose lock may not be seen from here: one that was made under another kernel, unless that
    /// was this host's before it was started anew. Hosts of one kernel see each other's.
    fn is_of_another_host(&self) -> bool {
        let has_host = !self.boot.is_empty(); // Earlier agents wrote none.
        has_host
            && self.boot != kernel_name("random/boot_id")
            && self.host != kernel_name("hostname")
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
        kill_orphans_of("");
        for _ in 0..MAX_TRIES {
            let Some((folder, lock)) = enter(&dir)? else { continue };
            let left = read_marker(&lock);
            if let Some(dead) = left.as_ref().filter(|marker| !marker.agent.is_empty()) {
                if dead.agent != own_sign() {
                    // Nobody writes into the folder any more before it is cleared.
                    kill_orphans_of(&dead.agent);
                    bound::remove_of(&Roots::default(), &dead.agent);
                }
            }
            let leftovers = if left.as_ref().is_some_and(|marker| marker.kept) {
                removal::count(&folder, OsStr::new(LOCK))
            } else {
                removal::empty_wide(&folder, OsStr::new(LOCK))
            };
            let leftovers =
                leftovers.context(format_args!("clear what was left in {}", dir.display()))?;
            let marker = Marker {
                owner: owner.to_owned(),
                agent: own_sign().to_owned(),
                host: kernel_name("hostname"),
                boot: kernel_name("random/boot_id"),
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

    /// The folder itself, open.
    pub fn folder(&self) -> io::Result<File> {
        self.folder.try_clone()
    }

    /// Remove the folder and all that is in it.
    pub fn remove(self) -> Result<()> {
        let failed = |e| Error::io(format_args!("remove {}", self.dir.display()), &e);
        removal::empty_wide(&self.folder, OsStr::new(LOCK)).map_err(failed)?;
        let still_ours = self.folder.metadata().is_ok_and(|open| {
            fs::symlink_metadata(&self.dir).is_ok_and(|named| named.ino() == open.ino())
        });
        if still_ours {
            fs::remove_file(self.dir.join(LOCK)).map_err(failed)?;
            fs::remove_dir(&self.dir).map_err(failed)?;
        }
        Ok(())
    }

    /// Leave the folder with its files, marked so, and let go of the lock.
    pub fn keep(self) -> Result<()> {
        self.write_marker(&Marker { kept: true, ..self.marker.clone() })
    }

    fn write_marker(&self, marker: &Marker) -> Result<()> {
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

/// The lock in a folder, for a look at it. It may be anybody's: a link is not followed, and nothing is
/// waited for at the end of a FIFO.
fn open_lock(dir: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags).open(dir.join(LOCK))
}

/// Who holds a scratch folder in `path` (any of ours), None when none is held.
#[must_use]
pub fn held_by(path: &Path) -> Option<String> {
    crate::roots::names(path).iter().filter(|name| name.starts_with(PREFIX)).find_map(|name| {
        let lock = open_lock(&path.join(name)).ok()?;
        is_locked(&lock).ok()?.then(|| owner_of(&lock))
    })
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

/// Those in `path`.
#[must_use]
pub fn abandoned(path: &Path) -> Vec<Abandoned> {
    let look = |name: &String| {
        let dir = path.join(name);
        let folder = open_folder(&dir).ok()?;
        let lock = open_lock(&dir).ok()?;
        let marker = read_marker(&lock);
        // One that is there and cannot be read may say that the files are kept.
        let is_kept = marker.as_ref().map_or(lock.metadata().ok()?.len() > 0, |marker| marker.kept);
        if is_locked(&lock).ok()? || is_kept {
            return None;
        }
        let bytes = removal::count(&folder, OsStr::new(LOCK)).map_or(0, |found| found.bytes);
        let other = marker.as_ref().filter(|marker| marker.is_of_another_host());
        let host = other.map(|marker| marker.host.clone()).unwrap_or_default();
        Some(Abandoned {
            dir,
            owner: marker.map(|marker| marker.owner).unwrap_or_default(),
            bytes,
            host,
        })
    };
    let all = crate::roots::names(path);
    all.iter().filter(|name| name.starts_with(PREFIX)).filter_map(look).collect()
}

/// Whether an open folder has the lock file of a scratch folder in it.
#[must_use]
pub fn is_ours(folder: &File) -> bool {
    entry_in(folder, OsStr::new(LOCK)).is_ok_and(|entry| !entry.is_folder)
}

fn check_name(name: &str) -> Result<()> {
    let plain = name.starts_with(PREFIX) && !name.contains(['/', '\0']) && name.len() <= 200;
    if plain {
        return Ok(());
    }
    Err(Error::bad_request(format!("a scratch folder's name begins with {PREFIX}, not {name:?}")))
}

/// The open folder and its locked lock file; None when it vanished meanwhile.
fn enter(dir: &Path) -> Result<Option<(File, Locked)>> {
    let failed = |doing: &str, error: &io::Error| {
        Error::io(format_args!("{doing} the scratch folder {}", dir.display()), error)
    };
    let was_there = match DirBuilder::new().mode(RIGHTS).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(failed("make", &error));
        }
        made => made.is_err(),
    };
    let folder = match open_folder(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The kernel says ENOTDIR or ELOOP of a symbolic link, by the flags it came with.
        opened => opened.map_err(|error| failed("open (links are not followed)", &error))?,
    };
    let names = crate::roots::names(dir);
    if !names.is_empty() && !names.iter().any(|name| name == LOCK) {
        let says = format!("{} was not made by this program and is not empty", dir.display());
        return Err(Error::errno(libc::EEXIST, says));
    }
    if was_there {
        require_own(&folder, dir)?;
    }
    let lock = match open_file_in(&folder, LOCK) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| failed("lock", &error))?,
    };
    let lock = match Locked::take(lock).map_err(|error| failed("lock", &error))? {
        Ok(lock) => lock,
        Err(held) => {
            let says = format!("{} is held by {}", dir.display(), owner_of(&held));
            return Err(Error::busy(says));
        }
    };
    let by_name = fs::symlink_metadata(dir.join(LOCK));
    let is_same = match (by_name, lock.metadata()) {
        (Ok(by_name), Ok(open)) => by_name.ino() == open.ino() && by_name.is_file(),
        _ => false,
    };
    Ok(is_same.then_some((folder, lock)))
}

/// Refuse a folder that another user made: what is in it would be in his hands.
fn require_own(folder: &File, dir: &Path) -> Result<()> {
    let meta = folder.metadata().context(format_args!("look at {}", dir.display()))?;
    let user = meta.uid();
    if user != own_user() && Some(user) != user_beside(dir) {
        let says = format!("{} was made by another user, whose id is {user}", dir.display());
        return Err(Error::errno(libc::EPERM, says));
    }
    if meta.mode() & 0o777 != RIGHTS {
        let _ = folder.set_permissions(Permissions::from_mode(RIGHTS)); // Some know no rights.
    }
    Ok(())
}

/// Whose a folder is that we make there: another's where the file system maps users.
fn user_beside(dir: &Path) -> Option<u32> {
    let name = dir.file_name()?.to_string_lossy();
    let trial = dir.with_file_name(format!("{name}.{}", own_sign()));
    DirBuilder::new().mode(RIGHTS).create(&trial).ok()?;
    let user = fs::symlink_metadata(&trial).map(|made| made.uid());
    let _ = fs::remove_dir(&trial); // It is empty.
    user.ok()
}

fn owner_of(lock: &File) -> String {
    read_marker(lock).map_or_else(|| "another session".to_owned(), |marker| marker.owner)
}

fn kernel_name(file: &str) -> String {
    let text = crate::roots::text(&Path::new("/proc/sys/kernel").join(file));
    text.map(|text| text.trim().to_owned()).unwrap_or_default()
}

fn read_marker(lock: &File) -> Option<Marker> {
    let mut text = String::new();
    let mut lock = lock;
    lock.rewind().ok()?;
    lock.take(MAX_OWNER_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// What is to be left of a scratch folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Neither the folder nor what is in it.
    Nothing,
    /// All of it, for a later session.
    Files,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::trial::Folder;

    const NAME: &str = "iolab-scratch-local";

    fn open(target: &Folder) -> Result<(Scratch, u64)> {
        Scratch::open(target.path(), NAME, "session one")
    }

    #[test]
    fn a_held_folder_names_its_holder_until_it_is_gone() {
        let target = Folder::new();
        let (scratch, left) = open(&target).unwrap();
        assert_eq!(left, 0);
        let error = Scratch::open(target.path(), NAME, "session two").map(|_| ()).unwrap_err();
        assert_eq!(error.code, "busy");
        assert!(error.says.ends_with("is held by session one"), "{}", error.says);
        assert_eq!(held_by(target.path()).as_deref(), Some("session one"));
        fs::write(scratch.dir().join("file"), "x").unwrap();
        scratch.remove().unwrap();
        assert!(crate::roots::names(target.path()).is_empty());
        assert_eq!(held_by(target.path()), None);
    }

    #[test]
    fn what_a_dead_session_left_is_removed_and_told() {
        let target = Folder::new();
        let (scratch, _) = open(&target).unwrap();
        fs::write(scratch.dir().join("file"), "12345").unwrap();
        drop(scratch); // Its process died: the lock is gone, the files are not.
        let (scratch, left) = open(&target).unwrap();
        assert_eq!(left, 5);
        assert_eq!(crate::roots::names(scratch.dir()), [LOCK]);
    }

    #[test]
    fn a_folder_of_another_host_is_told_from_one_that_nobody_holds() {
        let target = Folder::new();
        let (scratch, _) = open(&target).unwrap();
        let own = scratch.marker.clone();
        let elsewhere =
            Marker { host: "node7".to_owned(), boot: "another".to_owned(), ..own.clone() };
        let started_anew = Marker { boot: "another".to_owned(), ..own.clone() };
        let container = Marker { host: "node7".to_owned(), ..own.clone() };
        let earlier = Marker { host: String::new(), boot: String::new(), ..own.clone() };
        let cases =
            [(elsewhere, "node7"), (own, ""), (started_anew, ""), (container, ""), (earlier, "")];
        let mut scratch = Some(scratch);
        for (marker, host) in cases {
            let held = scratch.take().unwrap_or_else(|| open(&target).unwrap().0);
            held.write_marker(&marker).unwrap();
            drop(held);
            let found = abandoned(target.path());
            assert_eq!(found.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), [host]);
        }
    }

    #[test]
    fn what_was_kept_stays_for_one_more_session() {
        let target = Folder::new();
        let (scratch, _) = open(&target).unwrap();
        fs::write(scratch.dir().join("file"), "12345").unwrap();
        scratch.keep().unwrap();
        let (scratch, left) = open(&target).unwrap();
        assert_eq!((left, crate::roots::names(scratch.dir()).len()), (5, 2));
        scratch.remove().unwrap();
        assert!(crate::roots::names(target.path()).is_empty());
    }

    #[test]
    fn what_a_dead_agent_left_running_is_killed_before_its_folder_is_taken() {
        let target = Folder::new();
        let (scratch, _) = open(&target).unwrap();
        let marker = Marker { agent: "1-00000000deadbeef".to_owned(), ..scratch.marker.clone() };
        scratch.write_marker(&marker).unwrap();
        drop(scratch);
        let sleeper = |mark: &str| {
            let child = Command::new("sleep").arg("60").env("IOLAB_RUN", mark).spawn().unwrap();
            // The kernel shows an environment a little after the call that gives it has returned.
            while fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
                thread::yield_now();
            }
            child
        };
        let (mut orphan, mut other) =
            (sleeper("1-00000000deadbeef.7"), sleeper("1-00000000deadbeee.7"));
        let (scratch, _) = open(&target).unwrap();
        assert_eq!(orphan.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
        scratch.remove().unwrap();
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused_and_untouched() {
        let target = Folder::new();
        target.put(&format!("{NAME}/precious"), "stays");
        assert_eq!(open(&target).map(|_| ()).unwrap_err().code, "EEXIST");
        assert_eq!(fs::read(target.path().join(NAME).join("precious")).unwrap(), b"stays");
    }

    #[test]
    fn a_folder_that_others_may_enter_is_closed_to_them() {
        let target = Folder::new();
        let dir = target.path().join(NAME);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
        let (scratch, _) = open(&target).unwrap();
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
        scratch.remove().unwrap();
    }

    #[test]
    fn a_folder_that_another_user_made_is_refused() {
        let target = Folder::new();
        let dir = target.path().join(NAME);
        fs::create_dir(&dir).unwrap();
        // Only root may give it away; what everybody else made stays their own.
        let given = chown(&dir, Some(12_345), None).is_ok();
        assert_eq!(given, own_user() == 0);
        let refused = open(&target).err().map(|error| (error.code, error.says.contains("12345")));
        assert_eq!(refused, given.then(|| ("EPERM".to_owned(), true)));
        assert_eq!(crate::roots::names(target.path()), [NAME]);
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let (target, elsewhere) = (Folder::new(), Folder::new());
        symlink(elsewhere.path(), target.path().join(NAME)).unwrap();
        let error = open(&target).map(|_| ()).unwrap_err();
        assert!(["ELOOP", "ENOTDIR"].contains(&error.code.as_str()), "{error:?}");
        assert!(crate::roots::names(elsewhere.path()).is_empty());
    }

    #[test]
    fn a_name_that_could_mean_another_folder_is_refused() {
        let target = Folder::new();
        for name in ["..", "", "home", "iolab-scratch/../..", "iolab-scratch\0"] {
            let error = Scratch::open(target.path(), name, "x").map(|_| ()).unwrap_err();
            assert_eq!(error.code, "bad-request", "{name}");
        }
    }

    #[test]
    fn a_missing_target_says_so() {
        let error = Scratch::open(Path::new("/nowhere"), NAME, "x").map(|_| ()).unwrap_err();
        assert_eq!(error.code, "ENOENT");
        assert!(error.says.contains("/nowhere"), "{}", error.says);
    }
}
