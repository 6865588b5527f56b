//! The lease: what must be gone when this agent is, whatever ends it.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::error::{Context, Error, Result, io_error_text};
use crate::job::Job;
use crate::ledgers::Ledgers;
use crate::metadata::{PhaseReservation, Phases};
use crate::prepare::filesystem::{
    Backing, FileSystem, FileSystemHooks, OpenedFileSystem, mount_xfs,
};
use crate::prepare::scratch::{FolderIdentity, RemovalFailure, Removed, Retention, Scratch};
use crate::remnant::{MAX_REMNANTS, Remnant, RemnantKind};
use crate::runs::Runs;
use crate::sys::file::open_beneath;
use crate::sys::mount::{self, FileSystemWatch};
use crate::sys::process;
use crate::sys::signal::{self, SignalEvent};
use crate::sys::thread::lock;
use crate::sys::time::SECOND_NS;
use crate::{bound, keeper, tree, undo};

/// Between two looks at wall limits: a limit is kept to a quarter of a second.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The most that a look adds to a silence.
const MAX_CHECK_GAP: Duration = Duration::from_secs(1);
/// Scratch folders held at once; a session holds one a target.
const MAX_SCRATCHES: usize = 16;

/// A controller that is busy may be late by seconds; one that is silent for a day is gone.
const TERM_SECONDS: RangeInclusive<u64> = 1..=86_400;
/// The exit code of an agent whose controller fell silent.
const CODE_SILENCE: i32 = 4;

/// A scratch folder and what is mounted in it.
struct HeldScratch {
    scratch: Scratch,
    file_system: MountState,
}

enum MountState {
    None,
    /// Another thread is at it.
    Mounting,
    Mounted(FileSystem),
}

/// Everything that the end of the agent must undo.
#[derive(Default)]
pub struct Lease {
    /// The processes.
    pub runs: Runs,
    /// The metadata phases.
    pub phases: Phases,
    /// What engines wrote; the end of this process ends them.
    pub ledgers: Ledgers,
    is_ended: AtomicBool,
    scratches: Mutex<HashMap<PathBuf, HeldScratch>>,
    /// Those of which nothing is held open for as long as an event lasts.
    released: Mutex<BTreeSet<PathBuf>>,
    /// Those that could not be removed when they were let go, to be tried once more.
    removal_retries: Mutex<Vec<Scratch>>,
    /// What stays for good.
    remnants: Mutex<Vec<Remnant>>,
    temporary_files: Mutex<Vec<PathBuf>>,
    /// For how long nothing was heard while this agent could have heard it.
    silence_ns: AtomicU64,
    /// 0 while no term was set.
    term_ns: AtomicU64,
}

impl Lease {
    /// Something of the controller arrived: the term begins anew.
    pub fn note_contact(&self) {
        self.silence_ns.store(0, Ordering::Relaxed);
    }

    /// End the agent once nothing has arrived for so long.
    pub fn set_term(&self, seconds: u64) -> Result<()> {
        if !TERM_SECONDS.contains(&seconds) {
            let message = format!("a lease of {seconds} s is not 1 s to a day");
            return Err(Error::bad_request(message));
        }
        self.note_contact();
        self.term_ns.store(seconds * SECOND_NS, Ordering::Relaxed);
        Ok(())
    }

    /// So much time has passed since the last look. A host that stood still has heard nothing, but
    /// the controller may have spoken all the while.
    fn add_silence(&self, passed: Duration) {
        let counted = passed.min(MAX_CHECK_GAP).as_nanos() as u64;
        self.silence_ns.fetch_add(counted, Ordering::Relaxed);
    }

    /// For how long the controller may be silent; none while no term was set.
    pub fn term(&self) -> Duration {
        Duration::from_nanos(self.term_ns.load(Ordering::Relaxed))
    }

    /// For how long the controller has been silent, when the term would be over by the next look.
    fn silence_over_term(&self) -> Option<Duration> {
        let term = self.term();
        let silence = Duration::from_nanos(self.silence_ns.load(Ordering::Relaxed));
        (!term.is_zero() && silence + LIMIT_CHECK_INTERVAL > term).then_some(silence)
    }

    /// Kill every process, remove what was made, and exit with `code`; `before_exit` is the last
    /// word, and gets what stays. Only the first caller does it.
    pub fn end_agent(&self, code: i32, before_exit: impl FnOnce(&[Remnant])) -> ! {
        if self.is_ended.swap(true, Ordering::SeqCst) {
            loop {
                thread::park();
            }
        }
        self.runs.refuse_new();
        undo::refuse_events();
        self.phases.stop_all();
        let remnants = self.remove_all();
        for remnant in &remnants {
            // It may be closed.
            let _ = writeln!(io::stderr(), "iolab-agent: {}: {}", remnant.name, remnant.reason);
        }
        before_exit(&remnants);
        process::exit_now(code)
    }

    /// Never return once the agent is ending: what was killed by that is no result.
    pub fn park_if_ending(&self) {
        while self.is_ended.load(Ordering::SeqCst) {
            thread::park();
        }
    }

    /// End and remove all there is; what of it stays.
    fn remove_all(&self) -> Vec<Remnant> {
        let mut remnants = std::mem::take(&mut *lock(&self.remnants));
        // Whoever waits for a process hears of its end: an event then holds its folder again.
        for process in tree::kill_descendants(|| _ = self.runs.reap()) {
            let reason = format!("{} did not end when it was killed", process.command);
            remnants.push(Remnant {
                kind: RemnantKind::Process,
                name: process.pid.to_string(),
                reason,
            });
        }
        undo::wait_for_events();
        if let Err(error) = undo::strike_out_done() {
            let path = undo::own_file();
            remnants.push(Remnant::of_path(RemnantKind::File, &path, error.message));
        }
        keeper::undo_events(); // What is removed next may wait for that.
        let _ = mount::enter_namespace_if_any(); // To where the groups and files are.
        for group in bound::remove_own_groups() {
            remnants.push(Remnant::of_path(RemnantKind::Group, &group, "it is still in use"));
        }
        for path in lock(&self.temporary_files).drain(..) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    remnants.push(Remnant::of_path(
                        RemnantKind::File,
                        &path,
                        io_error_text(&error),
                    ));
                }
                _ => {}
            }
        }
        let mut held = lock(&self.scratches);
        for dir in std::mem::take(&mut *lock(&self.released)) {
            let reason = "the event for which it was released has not ended";
            remnants.push(Remnant::of_path(RemnantKind::Folder, &dir, reason));
        }
        for (dir, held) in held.drain() {
            match held.file_system {
                MountState::None => {}
                MountState::Mounting => FileSystem::unmount_unfinished(&dir),
                MountState::Mounted(file_system) => {
                    remnants.extend(file_system.close_at_exit(&dir, &held.scratch.place()));
                }
            }
            lock(&self.removal_retries).push(held.scratch);
        }
        for scratch in lock(&self.removal_retries).drain(..) {
            if let Err(RemovalFailure { now, error }) = scratch.remove() {
                remnants.push(Remnant::of_path(RemnantKind::Folder, &now, error.message));
            }
        }
        remnants.truncate(MAX_REMNANTS);
        remnants
    }

    /// Reap children, keep wall limits and the term, hear signals, for ever. Needs a thread of its
    /// own.
    pub fn run_housekeeping(&self) -> ! {
        let mut looked = Instant::now();
        loop {
            match signal::wait_for_signal(LIMIT_CHECK_INTERVAL) {
                SignalEvent::Child if self.runs.reap() => {
                    self.end_agent(128 + libc::SIGKILL, |_| {})
                }
                SignalEvent::Child | SignalEvent::Undo | SignalEvent::Nothing => {}
                SignalEvent::End(signal) => self.end_agent(128 + signal, |_| {}),
            }
            self.runs.enforce_limits();
            let now = Instant::now();
            self.add_silence(now - looked);
            looked = now;
            if let Some(silence) = self.silence_over_term() {
                let seconds = silence.as_secs_f64().round();
                eprintln!("iolab-agent: nothing was heard for {seconds} s: the lease is over");
                self.end_agent(CODE_SILENCE, |_| {});
            }
        }
    }

    /// Hold a scratch folder until it is closed or the agent ends.
    pub fn hold_scratch(&self, scratch: Scratch) -> Result<()> {
        let mut held = lock(&self.scratches);
        if held.len() >= MAX_SCRATCHES {
            let _ = scratch.remove();
            return Err(Error::busy(format!("{MAX_SCRATCHES} scratch folders are held already")));
        }
        let file_system = MountState::None;
        held.insert(scratch.dir().to_owned(), HeldScratch { scratch, file_system });
        Ok(())
    }

    /// Have a metadata phase work in a scratch folder, which cannot be closed meanwhile.
    pub fn start_phase_in(&self, dir: &Path, place: &PhaseReservation) -> Result<()> {
        let held = lock(&self.scratches);
        if !held.contains_key(dir) {
            return Err(self.absent_error(dir));
        }
        place.add_folder(dir);
        Ok(())
    }

    /// A scratch folder that is held, open.
    pub fn open_scratch(&self, dir: &Path) -> Result<File> {
        let anchor = lock(&self.scratches).get(dir).map(|held| held.scratch.anchor());
        anchor.ok_or_else(|| self.absent_error(dir))?.open()
    }

    /// The scratch folders that a job works in or names.
    #[must_use]
    pub fn scratches_used_by(&self, job: &Job) -> Vec<FolderIdentity> {
        let names = |dir: &Path| {
            let text = dir.display().to_string();
            let words = job.argv.iter().chain(job.env.values());
            job.cwd.as_deref().is_some_and(|cwd| cwd.starts_with(dir))
                || words.into_iter().any(|word| word.contains(&text))
        };
        let held = lock(&self.scratches);
        held.values()
            .map(|held| held.scratch.anchor())
            .filter(|anchor| names(&anchor.dir))
            .collect()
    }

    /// Open a folder; below a scratch folder that is held, through that and by no link.
    pub fn open_folder(&self, path: &Path) -> Result<File> {
        let flags = OFlags::DIRECTORY;
        match self.split_at_held_folder(path)? {
            None => OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path),
            Some((folder, rest)) if rest.as_os_str().is_empty() => Ok(folder),
            Some((folder, rest)) => open_beneath(Some(&folder), &rest, flags),
        }
        .context(format_args!("open {}", path.display()))
    }

    /// A file to be opened; below a scratch folder that is held, through that and by no link.
    pub fn resolve_file(&self, path: PathBuf) -> Result<ResolvedFile> {
        let Some((folder, rest)) = self.split_at_held_folder(&path)? else {
            return Ok(ResolvedFile { real: path.clone(), name: path, _folder: None });
        };
        let above = rest.parent().filter(|above| !above.as_os_str().is_empty());
        let doing = format_args!("reach {}", path.display()).to_string();
        let folder = match above {
            None => folder,
            Some(above) => open_beneath(Some(&folder), above, OFlags::DIRECTORY).context(&doing)?,
        };
        let last = rest.file_name().unwrap_or(OsStr::new("."));
        let real = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(last);
        if fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_symlink()) {
            let message =
                format!("{} is a symbolic link, which iolab did not make", path.display());
            return Err(Error::replaced(message));
        }
        Ok(ResolvedFile { real, name: path, _folder: Some(folder) })
    }

    /// The held folder that a path lies in, or the file system in that, and the rest of the path.
    fn split_at_held_folder(&self, path: &Path) -> Result<Option<(File, PathBuf)>> {
        let found = {
            let held = lock(&self.scratches);
            let around = held.iter().find(|(dir, _)| path.starts_with(dir));
            around.map(|(_, held)| {
                let mounted = match &held.file_system {
                    MountState::Mounted(file_system) => file_system.root_of(path),
                    _ => None,
                };
                (held.scratch.anchor(), mounted)
            })
        };
        let Some((anchor, mounted)) = found else { return Ok(None) };
        let folder = anchor.open()?;
        let (folder, top) = match mounted {
            None => (folder, anchor.dir),
            Some(root) => (root.open()?, root.dir),
        };
        Ok(Some((folder, path.strip_prefix(&top).unwrap_or(Path::new("")).to_owned())))
    }

    /// Let go of a scratch folder: remove it, or keep its files.
    ///
    /// The table stays locked meanwhile, so that an end of the agent waits for a removal under way.
    pub fn release_scratch(&self, dir: &Path, leave: Retention) -> Result<()> {
        let mut held = lock(&self.scratches);
        if self.phases.has_phase_in(dir) {
            return Err(Error::busy(format!("a metadata phase works in {}", dir.display())));
        }
        unmount_held(held.get_mut(dir).ok_or_else(|| self.absent_error(dir))?, leave)?;
        let HeldScratch { scratch, .. } = held.remove(dir).ok_or_else(|| self.absent_error(dir))?;
        match leave {
            Retention::Files => scratch.keep().inspect_err(|error| {
                let why = format!("its files could not be marked as kept: {}", error.message);
                lock(&self.remnants).push(Remnant::of_path(RemnantKind::Folder, dir, why));
            }),
            Retention::Nothing => match scratch.remove() {
                Ok(Removed::InPlace) => Ok(()),
                Ok(Removed::Elsewhere(error)) => Err(error),
                Err(RemovalFailure { error, .. }) => {
                    lock(&self.removal_retries).push(scratch);
                    Err(error)
                }
            },
        }
    }

    /// Do something while nothing holds a scratch folder open, and whether its file system was
    /// unmounted meanwhile.
    ///
    /// The table is not locked while it is done: nobody would see programs end when the agent ends.
    pub fn with_released_scratch<T>(
        &self,
        dir: &Path,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<(T, bool)> {
        let (own, watch) = self.take_unused(dir)?;
        let released = own.scratch.release();
        let acted = act();
        let mut held = lock(&self.scratches);
        let scratch = released.reacquire();
        lock(&self.released).remove(dir);
        let is_ended = watch.has_ended();
        match (acted, scratch) {
            (acted, Ok(scratch)) => {
                held.insert(dir.to_owned(), HeldScratch { scratch, file_system: own.file_system });
                Ok((acted?, is_ended))
            }
            (Err(mut error), Err(gone)) => {
                error.message = format!("{}; {}", error.message, gone.message);
                Err(error)
            }
            (Ok(_), Err(gone)) => Err(gone),
        }
    }

    /// Take a scratch folder out of the table, to be released; what is mounted there is watched.
    fn take_unused(&self, dir: &Path) -> Result<(HeldScratch, FileSystemWatch)> {
        let mut held = lock(&self.scratches);
        let own = held.get(dir).ok_or_else(|| self.absent_error(dir))?;
        if self.phases.has_phase_in(dir) || !matches!(own.file_system, MountState::None) {
            return Err(Error::busy(format!("{} is in use", dir.display())));
        }
        let watch = FileSystemWatch::new(dir).context(format_args!("watch {}", dir.display()))?;
        let own = held.remove(dir).ok_or_else(|| self.absent_error(dir))?;
        lock(&self.released).insert(dir.to_owned());
        Ok((own, watch))
    }

    /// Why a folder is not in the table.
    fn absent_error(&self, dir: &Path) -> Error {
        if lock(&self.released).contains(dir) {
            return Error::busy(format!("{} is released for an event", dir.display()));
        }
        Error::bad_request(format!("{} is not a scratch folder held here", dir.display()))
    }

    /// Make a file system in a scratch folder that is held; `execute` runs a program to its end.
    ///
    /// The table is not locked while programs run: nobody would see them end when the agent ends.
    pub fn open_file_system(
        &self,
        dir: &Path,
        backing: &Backing,
        execute: &dyn Fn(&[&str]) -> Result<()>,
    ) -> Result<OpenedFileSystem> {
        {
            let mut held = lock(&self.scratches);
            let held = held.get_mut(dir).ok_or_else(|| self.absent_error(dir))?;
            if !matches!(held.file_system, MountState::None) {
                let message = format!("there is a file system in {} already", dir.display());
                return Err(Error::busy(message));
            }
            held.scratch.anchor().open()?;
            held.file_system = MountState::Mounting;
        }
        let mount_here = |device: &Path, at: &Path| {
            // Nothing is mounted behind the back of an end of the agent, which takes this lock.
            let _held = lock(&self.scratches);
            if self.is_ended.load(Ordering::SeqCst) {
                return Err(Error::errno(libc::ECANCELED, "the agent is ending"));
            }
            mount_xfs(device, at)
        };
        let made = FileSystem::open(
            dir,
            backing,
            FileSystemHooks {
                enter_namespace: &mount::enter_or_create_namespace,
                run_program: execute,
                mount: &mount_here,
            },
        );
        let mut held = lock(&self.scratches);
        let Some(held) = held.get_mut(dir) else {
            return Err(Error::errno(libc::ECANCELED, "the agent is ending"));
        };
        let (file_system, opened) = match made {
            Ok((file_system, opened)) => (MountState::Mounted(file_system), Ok(opened)),
            Err(error) => (MountState::None, Err(error)),
        };
        held.file_system = file_system;
        opened
    }

    /// End the file system in a scratch folder, and remove what it was made on.
    pub fn close_file_system(&self, dir: &Path) -> Result<()> {
        let mut held = lock(&self.scratches);
        let held = held.get_mut(dir).ok_or_else(|| self.absent_error(dir))?;
        if matches!(held.file_system, MountState::None) {
            let message = format!("there is no file system in {}", dir.display());
            return Err(Error::bad_request(message));
        }
        unmount_held(held, Retention::Nothing)
    }

    /// Have a half-written file removed, should the agent end before the guard is dropped.
    #[must_use]
    pub fn temporary_file(self: &Arc<Self>, path: PathBuf) -> TemporaryFile {
        lock(&self.temporary_files).push(path.clone());
        TemporaryFile { lease: Arc::clone(self), path }
    }
}

/// A file that is named and a way to it that nobody can bend, as long as this is kept.
#[derive(Debug)]
pub struct ResolvedFile {
    /// As it was requested.
    pub name: PathBuf,
    /// By what it is to be opened.
    pub real: PathBuf,
    _folder: Option<File>,
}

impl From<PathBuf> for ResolvedFile {
    fn from(name: PathBuf) -> Self {
        Self { real: name.clone(), name, _folder: None }
    }
}

/// End what is mounted in a scratch folder, if anything is.
fn unmount_held(held: &mut HeldScratch, leave: Retention) -> Result<()> {
    match &held.file_system {
        MountState::None => Ok(()),
        MountState::Mounting => {
            let dir = held.scratch.dir().display();
            Err(Error::busy(format!("a file system is being made in {dir}")))
        }
        MountState::Mounted(file_system) => {
            held.scratch.anchor().open()?; // Else other files would be removed by these names.
            file_system.close(leave)?;
            held.file_system = MountState::None;
            Ok(())
        }
    }
}

/// A file that exists only until it is complete; removed when this is dropped.
pub struct TemporaryFile {
    lease: Arc<Lease>,
    /// Where it is.
    pub path: PathBuf,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        lock(&self.lease.temporary_files).retain(|path| *path != self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_over_after_its_term_and_whatever_is_heard_renews_it() {
        let lease = Lease::default();
        let look = |times: u32| (0..times).for_each(|_| lease.add_silence(LIMIT_CHECK_INTERVAL));
        look(1000);
        assert_eq!(lease.silence_over_term(), None);
        for renew in [|lease: &Lease| lease.set_term(10).unwrap(), Lease::note_contact] {
            renew(&lease);
            look(39);
            assert_eq!(lease.silence_over_term(), None);
            look(1);
            assert_eq!(lease.silence_over_term(), Some(Duration::from_secs(10)));
        }
    }

    #[test]
    fn a_host_that_stood_still_hears_its_controller_first() {
        let lease = Lease::default();
        lease.set_term(15).unwrap();
        lease.add_silence(Duration::from_secs(3600));
        assert_eq!(lease.silence_over_term(), None);
    }

    #[test]
    fn a_term_that_cannot_be_meant_is_refused() {
        for seconds in [0, 86_401, u64::MAX] {
            assert_eq!(Lease::default().set_term(seconds).unwrap_err().code, "bad-request");
        }
        assert!(Lease::default().set_term(86_400).is_ok());
    }
}
