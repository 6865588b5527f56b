//! What agents that were killed have left on this host: found, and removed when that is asked for.
//!
//! Nothing of a living agent is removed: its processes have it above them, its folders' locks are
//! held, its control groups bear the number of a process that lives.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::bound;
use crate::error::{Error, Result};
use crate::prepare::scratch::{
    self, Abandoned, AbandonedFolders, RemovalFailure, Removed, Scratch,
};
use crate::roots::{Roots, list_names};
use crate::sys::process::{effective_uid, own_program};
use crate::tree::{self, Orphan};
use crate::undo::{self, Execute, UndoFile};

/// A file that is still being sent to this host is not older than that.
const MAX_UPLOAD_AGE: Duration = Duration::from_secs(3600);
/// How long the kernel may take to detach a loop device once its last user is gone.
const DETACH_PATIENCE: Duration = Duration::from_secs(2);
const DETACH_PAUSE: Duration = Duration::from_millis(10);
/// Under what name folders are taken that are removed.
const OWNER: &str = "iolab clean";

/// All that was found, and what of it could not be removed.
#[derive(Debug, Default, Serialize)]
pub struct Leftovers {
    processes: Vec<Orphan>,
    groups: Vec<PathBuf>,
    folders: Vec<Abandoned>,
    /// Scratch folders that other hosts may hold: this one cannot see it, and leaves them alone.
    elsewhere: Vec<Abandoned>,
    /// Further scratch folders of this user, beyond what is told at once.
    more_folders: u64,
    /// The first scratch folders of other users, which are theirs.
    foreign_folders: Vec<PathBuf>,
    /// How many there are of those.
    foreign_folder_count: u64,
    /// Loop devices over images in these folders.
    loops: Vec<PathBuf>,
    /// Files of agents that no process runs.
    agents: Vec<PathBuf>,
    /// Events that nobody has undone.
    undos: Vec<UndoFile>,
    /// Events of living sessions, which are theirs to undo.
    held_undos: Vec<UndoFile>,
    faults: Vec<String>,
}

/// Look, with `path` for scratch folders in it too; remove nothing.
#[must_use]
pub fn find_leftovers(path: Option<&Path>) -> Leftovers {
    let roots = Roots::default();
    let all = path.map(scratch::find_abandoned).unwrap_or_default();
    let AbandonedFolders { own, more_folders, foreign_folders, foreign_folder_count } = all;
    let (folders, elsewhere): (Vec<_>, Vec<_>) =
        own.into_iter().partition(|folder| folder.host.is_empty());
    Leftovers {
        processes: tree::find_orphans(),
        groups: bound::groups_of_dead_agents(&roots),
        loops: loop_devices_over(&roots, &folders),
        folders,
        elsewhere,
        more_folders,
        foreign_folders,
        foreign_folder_count,
        agents: unused_agent_files(),
        undos: undo::find_abandoned(),
        held_undos: undo::find_held(),
        faults: Vec::new(),
    }
}

/// The same, and remove what of it was `shown`, by process id or path; all else is a fault.
#[must_use]
pub fn remove_leftovers(
    path: Option<&Path>,
    shown: &BTreeSet<String>,
    execute: Execute,
) -> Leftovers {
    let mut found = find_leftovers(path);
    let mut faults = found.keep_confirmed(shown);
    for left in &found.undos {
        faults.extend(undo::perform_abandoned(left, execute));
    }
    let pids = found.processes.iter().map(|orphan| orphan.pid).collect();
    for left in tree::kill_these_orphans(&pids) {
        faults.push(format!("process {left} lives on"));
    }
    for group in &found.groups {
        bound::remove_group(group);
        if group.exists() {
            faults.push(format!("the control group {} is still in use", group.display()));
        }
    }
    for folder in &found.folders {
        if let Err(error) = remove_folder(&folder.dir) {
            faults.push(error.message);
        }
    }
    let deadline = Instant::now() + DETACH_PATIENCE;
    while found.loops.iter().any(|device| is_attached(device)) && Instant::now() < deadline {
        thread::sleep(DETACH_PAUSE);
    }
    for device in found.loops.iter().filter(|device| is_attached(device)) {
        faults.push(format!("{} is still attached: see who has it mounted", device.display()));
    }
    for file in &found.agents {
        if let Err(error) = fs::remove_file(file) {
            faults.push(Error::io(format_args!("remove {}", file.display()), &error).message);
        }
        let _ = file.parent().map(fs::remove_dir); // It goes when it is empty.
    }
    found.faults = faults;
    found
}

impl Leftovers {
    /// Forget what was not shown; a sentence for each of those.
    fn keep_confirmed(&mut self, shown: &BTreeSet<String>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut is_shown = |name: String| {
            let was_shown = shown.contains(&name);
            if !was_shown {
                faults.push(format!("{name} was left since the look, and was not removed"));
            }
            was_shown
        };
        self.processes.retain(|orphan| is_shown(orphan.pid.to_string()));
        self.folders.retain(|folder| is_shown(folder.dir.display().to_string()));
        self.undos.retain(|undo| is_shown(undo.path.display().to_string()));
        for paths in [&mut self.groups, &mut self.loops, &mut self.agents] {
            paths.retain(|path| is_shown(path.display().to_string()));
        }
        faults
    }
}

fn remove_folder(dir: &Path) -> Result<()> {
    let (Some(path), Some(name)) = (dir.parent(), dir.file_name().and_then(OsStr::to_str)) else {
        return Err(Error::bad_request(format!("{} is no scratch folder", dir.display())));
    };
    // Somebody may have taken it, and kept its files, since it was looked at.
    if !scratch::is_abandoned(dir) {
        return Ok(());
    }
    match Scratch::open(path, name, OWNER)?.0.remove() {
        Ok(Removed::InPlace) => Ok(()),
        Ok(Removed::Elsewhere(error)) | Err(RemovalFailure { error, .. }) => Err(error),
    }
}

fn loop_devices_over(roots: &Roots, folders: &[Abandoned]) -> Vec<PathBuf> {
    let lies_in_one = |name: &String| {
        let file = roots.sys_value(format!("block/{name}/loop/backing_file"));
        file.is_some_and(|file| {
            folders.iter().any(|folder| Path::new(&file).starts_with(&folder.dir))
        })
    };
    let all = roots.sys_names("block").into_iter();
    all.filter(lies_in_one).map(|name| Path::new("/dev").join(name)).collect()
}

fn is_attached(device: &Path) -> bool {
    device
        .file_name()
        .is_some_and(|name| Path::new("/sys/block").join(name).join("loop/backing_file").exists())
}

/// What lies beside this agent's file in the folder that controllers keep agents in, unless
/// somebody runs it or is just sending it. This very agent's own is among it.
fn unused_agent_files() -> Vec<PathBuf> {
    let Some(folder) = own_program().and_then(Path::parent) else { return Vec::new() };
    let kept_here = format!("iolab-agent-{}", effective_uid());
    let is_private = fs::symlink_metadata(folder).is_ok_and(|meta| {
        meta.is_dir() && meta.uid() == effective_uid() && meta.mode() & 0o777 == 0o700
    });
    if folder.file_name() != Some(OsStr::new(&kept_here)) || !is_private {
        return Vec::new();
    }
    let in_use = tree::running_programs();
    let is_idle = |file: &PathBuf| {
        let Ok(meta) = fs::symlink_metadata(file) else { return false };
        let is_sent = file.extension().is_some()
            && meta.modified().is_ok_and(|at| {
                SystemTime::now().duration_since(at).is_ok_and(|age| age < MAX_UPLOAD_AGE)
            });
        meta.is_file() && !is_sent && !in_use.contains(&(meta.dev(), meta.ino()))
    };
    list_names(folder).into_iter().map(|name| folder.join(name)).filter(is_idle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn only_what_was_shown_is_removed() {
        let target = TestFolder::new();
        for name in ["iolab-scratch-shown", "iolab-scratch-new"] {
            drop(Scratch::open(target.path(), name, "dead").unwrap());
        }
        let shown = target.path().join("iolab-scratch-shown").display().to_string();
        let new = target.path().join("iolab-scratch-new").display().to_string();
        let left = remove_leftovers(
            Some(target.path()),
            &BTreeSet::from([shown.clone()]),
            &undo::run_alone,
        );
        assert!(left.faults.iter().any(|message| message.contains(&new)), "{:?}", left.faults);
        assert_eq!((Path::new(&shown).exists(), Path::new(&new).exists()), (false, true));
    }
}
