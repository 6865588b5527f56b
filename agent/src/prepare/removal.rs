//! Remove what is in a folder, name by name, relative to open descriptors: a symbolic link is
//! removed itself and never followed, and what is mounted inside is left alone, be it of the same
//! file system.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::vec::IntoIter;

use crate::sys::file::{EntryInfo, open_folder_in, stat_in, unlink_in};
use crate::sys::thread::lock;

/// Threads that remove: enough to keep a network file system busy, few for a host.
const MAX_THREADS: usize = 32;
/// Below so many branches one thread is as quick.
const MIN_BRANCHES: usize = 4;

/// What was, or would be, removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovalTotals {
    /// Names, folders among them.
    pub names: u64,
    /// Bytes of the regular files.
    pub bytes: u64,
}

impl RemovalTotals {
    fn add(&mut self, other: Self) {
        self.names += other.names;
        self.bytes += other.bytes;
    }
}

/// What could not be removed or looked at: where it is below the folder, and why.
#[derive(Debug)]
pub struct Stuck {
    /// Empty for the folder itself.
    pub path: PathBuf,
    /// What the kernel said.
    pub error: io::Error,
}

impl From<io::Error> for Stuck {
    fn from(error: io::Error) -> Self {
        Self { path: PathBuf::new(), error }
    }
}

type Outcome = std::result::Result<RemovalTotals, Stuck>;

/// Count what a folder holds, `keep` in it left out.
pub fn count_contents(folder: &File, keep: &OsStr) -> Outcome {
    visit(folder, keep, &|_, _, _| Ok(()))
}

/// Remove what a folder holds, except for the name `keep` in it.
///
/// All that can be removed is; the first error is told after that.
pub fn remove_contents(folder: &File, keep: &OsStr) -> Outcome {
    visit(folder, keep, &unlink_in)
}

/// The same by several threads, for folders that hold a folder for each of many ranks: on a network
/// file system a million names would take one thread an hour.
pub fn remove_contents_parallel(folder: &File, keep: &OsStr) -> Outcome {
    let branches = Mutex::new(branches(folder, keep)?);
    let threads = lock(&branches).len().min(MAX_THREADS);
    let tally = Mutex::new(RemovalTotals::default());
    thread::scope(|scope| {
        for _ in 0..threads {
            // A thread that does not start leaves its part to the others, and to the last pass.
            let _ = thread::Builder::new().spawn_scoped(scope, || {
                while let Some((above, name)) = pop(&branches) {
                    // What cannot be removed here is met again below, and told there.
                    let cleared = open_folder_in(&above, &name)
                        .map_err(Stuck::from)
                        .and_then(|branch| remove_contents(&branch, OsStr::new("")));
                    lock(&tally).add(cleared.unwrap_or_default());
                }
            });
        }
    });
    let mut tally = *lock(&tally);
    tally.add(remove_contents(folder, keep)?);
    Ok(tally)
}

/// Folders two levels down, on the same mount; none where that is not worth threads.
fn branches(folder: &File, keep: &OsStr) -> io::Result<Vec<(Arc<File>, OsString)>> {
    let here = stat_in(folder, OsStr::new("."))?;
    let is_branch = |above: &File, name: &OsStr| {
        stat_in(above, name).is_ok_and(|entry| entry.is_folder && entry.mount == here.mount)
    };
    let mut branches = Vec::new();
    for name in names_in(folder)? {
        if name != keep && is_branch(folder, &name) {
            let Ok(above) = open_folder_in(folder, &name).map(Arc::new) else { continue };
            let names = names_in(&above).unwrap_or_default();
            let below = names.into_iter().filter(|name| is_branch(&above, name));
            branches.extend(below.map(|name| (Arc::clone(&above), name)));
        }
    }
    Ok(if branches.len() >= MIN_BRANCHES { branches } else { Vec::new() })
}

fn pop<T>(stack: &Mutex<Vec<T>>) -> Option<T> {
    lock(stack).pop()
}

type Act<'a> = &'a dyn Fn(&File, &OsStr, EntryInfo) -> io::Result<()>;

/// A folder that is being gone through: its name in the one above, what it is, what is left to do.
struct Level {
    name: OsString,
    entry: EntryInfo,
    names: IntoIter<OsString>,
}

/// Of folders in folders, however deep, one is open at a time: from each its own `..` leads back.
fn visit(folder: &File, keep: &OsStr, act: Act) -> Outcome {
    let top = stat_in(folder, OsStr::new("."))?;
    let mut names = names_in(folder)?;
    names.retain(|name| name != keep);
    let mut levels = vec![Level { name: OsString::new(), entry: top, names: names.into_iter() }];
    let mut here = folder.try_clone()?;
    let mut tally = RemovalTotals::default();
    let mut first_error = None;
    while let Some(level) = levels.last_mut() {
        let mut done = |here: &File, name: &OsStr, entry: EntryInfo| {
            act(here, name, entry)?;
            tally.add(RemovalTotals { names: 1, bytes: entry.size_bytes });
            Ok(())
        };
        let (name, outcome) = if let Some(name) = level.names.next() {
            let entered = enter(&here, &name, top).and_then(|(entry, inside)| {
                let Some((inside, names)) = inside else { return done(&here, &name, entry) };
                here = inside;
                levels.push(Level { name: name.clone(), entry, names: names.into_iter() });
                Ok(())
            });
            (name, entered)
        } else {
            let Some(Level { name, entry, .. }) = levels.pop() else { break };
            let Some(above) = levels.last() else { break };
            here = open_unmoved_parent(&here, above.entry)?;
            let outcome = done(&here, &name, entry);
            (name, outcome)
        };
        match outcome {
            // Another host may be removing its files here at the same time; gone is gone.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                first_error.get_or_insert_with(|| {
                    let mut path: PathBuf = levels.iter().map(|level| &level.name).collect();
                    path.push(name);
                    Stuck { path, error }
                });
            }
            _ => {}
        }
    }
    first_error.map_or(Ok(tally), Err)
}

/// What a name is and, of a folder on the same mount as `top`, the open folder and its names.
type Entered = (EntryInfo, Option<(File, Vec<OsString>)>);

fn enter(folder: &File, name: &OsStr, top: EntryInfo) -> io::Result<Entered> {
    let entry = stat_in(folder, name)?;
    if !entry.is_folder {
        return Ok((entry, None));
    }
    if entry.mount != top.mount {
        return Err(io::Error::from_raw_os_error(libc::EXDEV));
    }
    let inside = open_folder_in(folder, name)?;
    let names = names_in(&inside)?;
    Ok((entry, Some((inside, names))))
}

/// The folder above, which must be the one that was come from.
fn open_unmoved_parent(folder: &File, above: EntryInfo) -> io::Result<File> {
    let parent = open_folder_in(folder, OsStr::new(".."))?;
    let found = stat_in(&parent, OsStr::new("."))?;
    if (found.inode, found.mount) != (above.inode, above.mount) {
        return Err(io::Error::other("a folder in it was moved meanwhile"));
    }
    Ok(parent)
}

/// The names are taken before anything is removed: removing while listing may skip some.
fn names_in(folder: &File) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    entries.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sys::file::{make_folder, open_folder};
    use crate::sys::mount::{MountNamespace, UnmountMode, bind_mount, mount_device, unmount};
    use crate::trial::TestFolder;
    use std::os::unix::fs::symlink;

    #[test]
    fn everything_goes_but_the_kept_name_and_what_links_point_to() {
        let outside = TestFolder::new();
        fs::write(outside.path().join("precious"), "stays").unwrap();
        let folder = TestFolder::new();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        fs::write(folder.path().join("a/b/file"), "12345").unwrap();
        fs::write(folder.path().join("lock"), "").unwrap();
        symlink(outside.path(), folder.path().join("link")).unwrap();
        let open = open_folder(folder.path()).unwrap();

        let expected = RemovalTotals { names: 4, bytes: 5 };
        assert_eq!(count_contents(&open, OsStr::new("lock")).unwrap(), expected);
        assert_eq!(remove_contents(&open, OsStr::new("lock")).unwrap(), expected);
        assert_eq!(crate::roots::list_names(folder.path()), ["lock"]);
        assert_eq!(fs::read(outside.path().join("precious")).unwrap(), b"stays");
    }

    #[test]
    fn many_branches_go_as_one_would() {
        let outside = TestFolder::new();
        fs::write(outside.path().join("precious"), "stays").unwrap();
        let folder = TestFolder::new();
        for rank in 0..50 {
            for file in 0..20 {
                folder.put(&format!("metadata.0/rank.{rank}/file.{file}"), "123");
            }
        }
        symlink(outside.path(), folder.path().join("metadata.0/link")).unwrap();
        folder.put("lock", "");
        let open = open_folder(folder.path()).unwrap();
        let expected = RemovalTotals { names: 1 + 1 + 50 + 1000, bytes: 3000 };
        assert_eq!(remove_contents_parallel(&open, OsStr::new("lock")).unwrap(), expected);
        assert_eq!(crate::roots::list_names(folder.path()), ["lock"]);
        assert_eq!(fs::read(outside.path().join("precious")).unwrap(), b"stays");
    }

    #[test]
    fn a_kept_folder_stays_with_its_branches() {
        let folder = TestFolder::new();
        for name in ["kept", "other"] {
            for branch in 0..8 {
                folder.put(&format!("{name}/branch.{branch}/file"), "123");
            }
        }
        let open = open_folder(folder.path()).unwrap();
        let expected = RemovalTotals { names: 1 + 8 + 8, bytes: 24 };
        assert_eq!(remove_contents_parallel(&open, OsStr::new("kept")).unwrap(), expected);
        assert_eq!(count_contents(&open, OsStr::new("")).unwrap(), expected);
    }

    /// Whoever may not mount, as in some containers, has nothing mounted in a folder of their own.
    #[test]
    fn what_is_mounted_inside_stays_with_all_in_it() {
        let outside = TestFolder::new();
        outside.put("precious/rank.0/file", "stays");
        // Mounts of a thread's own, which no other test sees.
        thread::scope(|scope| {
            scope.spawn(|| {
                let Ok(_own) = MountNamespace::new() else {
                    assert!(std::env::var_os("CI").is_none(), "CI may mount");
                    return;
                };
                for deep in ["mounted", "metadata.0/mounted"] {
                    for is_bound in [true, false] {
                        assert_mount_stays(outside.path(), deep, is_bound);
                    }
                }
            });
        });
    }

    fn assert_mount_stays(outside: &Path, deep: &str, is_bound: bool) {
        let folder = TestFolder::new();
        let at = folder.path().join(deep);
        // So many branches that several threads remove them.
        for branch in 0..8 {
            folder.put(&format!("metadata.0/rank.{branch}/file"), "goes");
        }
        fs::create_dir_all(&at).unwrap();
        let inside = at.join("rank.0/file");
        if is_bound {
            bind_mount(&outside.join("precious"), &at).unwrap();
        } else {
            mount_device(Path::new("none"), &at, c"tmpfs", c"").unwrap();
            fs::create_dir(at.join("rank.0")).unwrap();
            fs::write(&inside, "stays").unwrap();
        }
        let open = open_folder(folder.path()).unwrap();
        let errors = [count_contents, remove_contents_parallel, remove_contents]
            .map(|act| act(&open, OsStr::new("")).unwrap_err());
        let left = fs::read(&inside);
        unmount(&at, UnmountMode::IfUnused).unwrap();
        assert_eq!(left.unwrap(), b"stays", "{deep}, bound: {is_bound}");
        for Stuck { path, error } in errors {
            assert_eq!((path, error.raw_os_error()), (deep.into(), Some(libc::EXDEV)));
        }
        assert!(!folder.path().join("metadata.0/rank.7").exists());
    }

    #[test]
    fn folders_in_folders_go_however_deep_they_are() {
        let folder = TestFolder::new();
        let mut here = open_folder(folder.path()).unwrap();
        for _ in 0..3000 {
            make_folder(&here, c"d").unwrap();
            here = open_folder_in(&here, OsStr::new("d")).unwrap();
        }
        let open = open_folder(folder.path()).unwrap();
        let expected = RemovalTotals { names: 3000, bytes: 0 };
        assert_eq!(count_contents(&open, OsStr::new("")).unwrap(), expected);
        assert_eq!(remove_contents(&open, OsStr::new("")).unwrap(), expected);
        assert!(crate::roots::list_names(folder.path()).is_empty());
    }
}
