//! What undoes the events of a session: written down before an event, struck out once undone, and
//! done by the keeper for an agent that has ended, however it did.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::device::kernel_name;
use crate::error::{Context, Error, Result, io_error_text};
use crate::job::spawn_alone;
use crate::probe::process::parse_process_stat;
use crate::roots::{Roots, read_text};
use crate::sign::{own_agent_id, process_of_agent_id};
use crate::sys::file::LockedFile;
use crate::sys::mount::{LoopFile, limit_loop};
use crate::sys::process::{self, Pid, effective_uid};
use crate::sys::thread::{lock, wait_timeout};
use crate::sys::time::real_ns;
use crate::tree::is_agent_alive;

/// Events of a session that may need an undo at a time.
const MAX_UNDOS: usize = 64;
/// Of one event: a link may have many routes.
const MAX_STEPS: usize = 256;
/// Of a name, and of a text for a file of the kernel.
const MAX_TEXT_BYTES: usize = 4096;
/// A file of undos: so many steps with their argument lists.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// Of a step, as it is shown to people.
const MAX_SHOWN_CHARS: usize = 400;
/// Between two looks whether a command of an undo has ended.
const WAIT_PAUSE: Duration = Duration::from_millis(20);
/// Between two looks whether a lock is free, of which a thread is told anyway.
const WAIT_PATIENCE: Duration = Duration::from_secs(1);
/// An hour: nobody waits longer for an undo.
const MAX_TIMEOUT_S: f64 = 3600.0;
/// Codes of errors of a process, a device, a control group that is gone, or is another one.
const GONE: [&str; 5] = ["ESRCH", "ENXIO", "ENODEV", "ENOENT", "ESTALE"];
/// What files of undos begin with.
const PREFIX: &str = "undo-";
/// The only trees in which a step may write: of the kernel, where a file is a setting.
const SETTING_TREES: [&str; 2] = ["/sys", "/proc/sys"];

/// How long another agent may be at the folder, which takes milliseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// How long steps whose processes were killed may take to end: killing what a program left behind,
/// and its last output, have two seconds each.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The events of this agent.
static EVENTS: EventLocks = EventLocks::new();
/// When what was undone here was.
static DONE: Mutex<BTreeMap<String, StepTimes>> = Mutex::new(BTreeMap::new());

/// A signal that a step may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StepSignal {
    /// Have it stand still.
    Stop,
    /// Have it go on.
    Cont,
    /// End it.
    Kill,
}

/// What an event does to a host, or what undoes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase", deny_unknown_fields)]
pub enum Step {
    /// Run a program of the host, for so many seconds at most.
    Command {
        /// Program and arguments; never a shell line.
        argv: Vec<String>,
        /// Then it is killed.
        timeout_s: f64,
    },
    /// Signal one process: this number, and only as long as it is the process that started then.
    Signal {
        /// Its id.
        pid: Pid,
        /// The clock tick in which it started.
        start_ticks: u64,
        /// What to send.
        signal: StepSignal,
    },
    /// Write a setting of the kernel.
    Write {
        /// Below /sys or /proc/sys.
        path: PathBuf,
        /// What it is set to.
        text: String,
    },
    /// Have a loop device end after so many bytes of its file, also while it is mounted.
    #[serde(rename = "loop_limit")]
    LoopLimit {
        /// The loop device.
        device: PathBuf,
        /// The device that its file is on: another file is never limited.
        file_device: u64,
        /// The inode of its file.
        file_inode: u64,
        /// 0 for all.
        bytes: u64,
    },
}

/// The steps that undo an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Undo {
    name: String,
    steps: Vec<Step>,
}

/// What came of doing an undo.
struct PerformedUndo {
    times: StepTimes,
    /// Why steps failed.
    faults: Vec<Error>,
    /// Whether what was done is gone from its file.
    struck_out: Result<()>,
}

/// An undo that this host does by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UndoTimer {
    /// Its name.
    pub name: String,
    /// So long after the event's beginning.
    pub seconds: f64,
}

/// Runs a program in the host's PID namespace for so many seconds at most; it must succeed.
pub type Execute<'a> = &'a dyn Fn(&[String], f64) -> Result<()>;

/// When steps began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepTimes {
    started_real_ns: u64,
    ended_real_ns: u64,
}

/// What is answered to steps.
#[derive(Debug, Serialize)]
pub struct StepResult {
    /// When they were done.
    #[serde(flatten)]
    pub times: StepTimes,
    /// Whether the file system of the released folder was unmounted by them.
    pub is_unmounted: bool,
}

/// A process that a pid file names.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedProcess {
    /// Its id.
    pub pid: Pid,
    /// The clock tick in which it started.
    pub start_ticks: u64,
    /// Its name, as the kernel has it.
    pub name: String,
}

/// The undos of an agent.
#[derive(Debug, Serialize)]
pub struct UndoFile {
    /// The file that they stand in.
    pub path: PathBuf,
    /// What they do, for people.
    pub steps: Vec<String>,
}

impl Step {
    /// Refuse what cannot be meant.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Command { argv, timeout_s } => {
                let program = argv.first().map_or("", String::as_str);
                if !program.starts_with('/') {
                    return Err(Error::bad_request(format!("{program:?} is no absolute program")));
                }
                if !(*timeout_s > 0.0 && *timeout_s <= MAX_TIMEOUT_S) {
                    return Err(Error::bad_request(format!("a timeout of {timeout_s} s")));
                }
                Ok(())
            }
            Self::Signal { pid, .. } if *pid < 2 => {
                Err(Error::bad_request(format!("process {pid} is never signalled")))
            }
            Self::Write { path, text } => {
                let real =
                    fs::canonicalize(path).context(format_args!("reach {}", path.display()))?;
                if !SETTING_TREES.iter().any(|tree| real.starts_with(tree)) {
                    let message =
                        format!("{} is no setting below /sys or /proc/sys", real.display());
                    return Err(Error::bad_request(message));
                }
                if text.len() > MAX_TEXT_BYTES {
                    return Err(Error::bad_request(format!("a setting of {} bytes", text.len())));
                }
                Ok(())
            }
            Self::LoopLimit { device, .. } if !device.is_absolute() => {
                Err(Error::bad_request(format!("{} is no absolute path", device.display())))
            }
            Self::Signal { .. } | Self::LoopLimit { .. } => Ok(()),
        }
    }

    /// Do it; blocks until a command has ended, which `execute` runs.
    pub fn perform(&self, execute: Execute) -> Result<()> {
        self.check()?;
        match self {
            Self::Command { argv, timeout_s } => execute(argv, *timeout_s),
            Self::Signal { pid, start_ticks, signal } => {
                signal_process(*pid, *start_ticks, *signal)
            }
            Self::Write { path, text } => OpenOptions::new()
                .write(true)
                .open(path)
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .context(format_args!("write {text:?} to {}", path.display())),
            Self::LoopLimit { device, file_device, file_inode, bytes } => {
                let limit =
                    LoopFile { device: *file_device, inode: *file_inode, limit_bytes: *bytes };
                limit_loop(device, limit).context(format_args!("limit {}", device.display()))
            }
        }
    }

    /// For people.
    #[must_use]
    pub fn description(&self) -> String {
        match self {
            Self::Command { argv, .. } => argv.join(" "),
            Self::Signal { pid, signal, .. } => format!("signal {signal:?} to process {pid}"),
            Self::Write { path, text } => format!("write {text:?} to {}", path.display()),
            Self::LoopLimit { device, bytes: 0, .. } => {
                format!("attach all of {}", device.display())
            }
            Self::LoopLimit { device, bytes, .. } => {
                format!("detach {} beyond its first {bytes} bytes", device.display())
            }
        }
    }

    /// Whether such an error says that the process, device or group is no longer there.
    fn is_gone(&self, error: &Error) -> bool {
        !matches!(self, Self::Command { .. }) && GONE.contains(&error.code.as_str())
    }

    /// What it changes, where two events would undo each other's doing.
    fn changed_object(&self) -> String {
        match self {
            Self::Command { argv, .. } => argv.join(" "),
            Self::Signal { pid, .. } => format!("process {pid}"),
            Self::Write { path, text } => match limited_device(text) {
                Some(number) => format!("{} for device {number}", path.display()),
                None => path.display().to_string(),
            },
            // Whatever link leads to it.
            Self::LoopLimit { device, .. } => match kernel_name(&Roots::default(), device) {
                Some(name) => format!("/dev/{name}"),
                None => device.display().to_string(),
            },
        }
    }
}

/// The `major:minor` with which a limit of a control group begins: each device has its own.
fn limited_device(text: &str) -> Option<&str> {
    let word = text.split(' ').next()?;
    let (major, minor) = word.split_once(':')?;
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    (is_number(major) && is_number(minor)).then_some(word)
}

/// Keeps the steps of an event and its undo apart: whichever comes first has ended before the other
/// begins.
struct EventLocks {
    state: Mutex<EventLocksState>,
    released: Condvar,
}

struct EventLocksState {
    /// The names of undos whose event is begun or undone now; "" for an event that has none.
    held: Vec<String>,
    /// Those whose event has begun: they are not struck out.
    begun: BTreeSet<String>,
    is_ending: bool,
}

/// As long as this is kept nobody else begins or undoes the event.
pub struct EventLock {
    locks: &'static EventLocks,
    name: String,
}

impl EventLocks {
    const fn new() -> Self {
        let state = EventLocksState { held: Vec::new(), begun: BTreeSet::new(), is_ending: false };
        Self { state: Mutex::new(state), released: Condvar::new() }
    }

    fn acquire(&'static self, name: &str) -> Result<EventLock> {
        let mut state = lock(&self.state);
        loop {
            if state.is_ending {
                let message = "the agent is ending, and what has begun is undone by that";
                return Err(Error::errno(libc::ECANCELED, message));
            }
            if name.is_empty() || !state.held.iter().any(|held| held == name) {
                state.held.push(name.to_owned());
                return Ok(EventLock { locks: self, name: name.to_owned() });
            }
            state = wait_timeout(&self.released, state, WAIT_PATIENCE);
        }
    }

    /// Give out no lock from now on.
    fn close(&self) {
        lock(&self.state).is_ending = true;
        self.released.notify_all();
    }

    /// Wait until none is held, or patience ends.
    fn wait_until_free(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut state = lock(&self.state);
        while !state.held.is_empty() && Instant::now() < deadline {
            state = wait_timeout(&self.released, state, WAIT_PAUSE);
        }
    }
}

impl Drop for EventLock {
    fn drop(&mut self) {
        let held = &mut lock(&self.locks.state).held;
        if let Some(place) = held.iter().position(|name| *name == self.name) {
            held.swap_remove(place);
        }
        self.locks.released.notify_all();
    }
}

/// Begin an event, whose undo has that name: refused where that is not kept, since it was done or
/// struck out by then, and where the agent is ending.
pub fn begin(undo: Option<&str>) -> Result<EventLock> {
    let event = EVENTS.acquire(undo.unwrap_or_default())?;
    if let Some(name) = undo {
        let undos = kept_undos(&own_file())?;
        if !undos.iter().any(|undo| undo.name == name) {
            return Err(unknown_undo(name));
        }
        lock(&EVENTS.state).begun.insert(name.to_owned());
    }
    Ok(event)
}

/// Begin and undo no event from now on.
pub fn refuse_events() {
    EVENTS.close();
}

/// Wait for what of events is under way, once its processes were killed.
pub fn wait_for_events() {
    EVENTS.wait_until_free(END_PATIENCE);
}

fn unknown_undo(name: &str) -> Error {
    Error::bad_request(format!("no undo {name:?} is kept here"))
}

/// Do an event: one step after the other, up to the first that fails.
pub fn perform_all(steps: &[Step], execute: Execute) -> Result<StepTimes> {
    let started_real_ns = real_ns();
    steps.iter().try_for_each(|step| step.perform(execute))?;
    Ok(StepTimes { started_real_ns, ended_real_ns: real_ns() })
}

/// Undo one: every step, also after one that fails. The steps that failed, with why; what is gone
/// by now needs no undo.
fn undo_all(steps: &[Step], execute: Execute) -> Vec<(Step, Error)> {
    let perform = |step: &Step| {
        let error = step.perform(execute).err().filter(|error| !step.is_gone(error))?;
        Some((step.clone(), error))
    };
    steps.iter().filter_map(perform).collect()
}

fn signal_process(pid: Pid, start_ticks: u64, signal: StepSignal) -> Result<()> {
    let handle = process::open_pidfd(pid).context(format_args!("reach process {pid}"))?;
    if start_ticks_of(pid) != Some(start_ticks) {
        let message = format!("process {pid} is another one than was meant");
        return Err(Error::errno(libc::ESRCH, message));
    }
    let number = match signal {
        StepSignal::Stop => libc::SIGSTOP,
        StepSignal::Cont => libc::SIGCONT,
        StepSignal::Kill => libc::SIGKILL,
    };
    process::signal_pidfd(&handle, number).context(format_args!("signal process {pid}"))
}

fn start_ticks_of(pid: Pid) -> Option<u64> {
    let text = read_text(&Path::new("/proc").join(pid.to_string()).join("stat"))?;
    Some(parse_process_stat(&text)?.start_ticks)
}

/// The process whose number stands in a file.
pub fn process_in_file(path: &Path) -> Result<NamedProcess> {
    let text = read_text(path)
        .ok_or_else(|| Error::errno(libc::ENOENT, format!("cannot read {}", path.display())))?;
    let pid: Pid = text
        .trim()
        .parse()
        .map_err(|_| Error::bad_request(format!("{} holds no process id", path.display())))?;
    if pid <= 1 {
        let message = format!("process {pid} of {} is none to signal", path.display());
        return Err(Error::bad_request(message));
    }
    let gone = || Error::errno(libc::ESRCH, format!("process {pid} of {} is gone", path.display()));
    let start_ticks = start_ticks_of(pid).ok_or_else(gone)?;
    let name = read_text(&Path::new("/proc").join(pid.to_string()).join("comm"));
    Ok(NamedProcess { pid, start_ticks, name: name.unwrap_or_default().trim().to_owned() })
}

/// The keeper's way to run a program: where no other thread reaps.
pub fn run_alone(argv: &[String], timeout_s: f64) -> Result<()> {
    let mut child = spawn_alone(argv)?;
    let deadline = Instant::now() + Duration::from_secs_f64(timeout_s);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(Error::errno(libc::EIO, format!("{} ended with {status}", argv[0])));
            }
            Ok(None) if Instant::now() < deadline => thread::sleep(WAIT_PAUSE),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                let message = format!("{} took longer than {timeout_s} s", argv[0]);
                return Err(Error::errno(libc::ETIME, message));
            }
            Err(error) => return Err(Error::io(format_args!("wait for {}", argv[0]), &error)),
        }
    }
}

/// Write down what undoes an event, before that begins.
///
/// A name is used once: neither a later event nor its timer ever meets the undo of an earlier one.
/// Refused while another event holds what it changes, since what was found is what is set again.
pub fn add(name: String, steps: Vec<Step>) -> Result<()> {
    steps.iter().try_for_each(Step::check)?;
    if name.is_empty() || name.len() > MAX_TEXT_BYTES {
        return Err(Error::bad_request(format!("an undo's name of {} bytes", name.len())));
    }
    if steps.is_empty() || steps.len() > MAX_STEPS {
        return Err(Error::bad_request(format!("an undo of {} steps", steps.len())));
    }
    if lock(&DONE).contains_key(&name) {
        return Err(Error::bad_request(format!("the undo {name:?} was done already")));
    }
    change_file(&own_file(), |undos| {
        if undos.iter().any(|undo| undo.name == name) {
            return Err(Error::bad_request(format!("an undo {name:?} is kept already")));
        }
        if undos.len() >= MAX_UNDOS {
            return Err(Error::busy(format!("{MAX_UNDOS} undos are kept already")));
        }
        require_free(&steps)?;
        undos.push(Undo { name, steps });
        Ok(())
    })
}

/// Strike out the undo of an event that did not begin, if it is there.
pub fn remove(name: &str) -> Result<()> {
    let _event = EVENTS.acquire(name)?;
    if lock(&EVENTS.state).begun.contains(name) {
        return Err(Error::bad_request(format!("the event of the undo {name:?} has begun")));
    }
    change_file(&own_file(), |undos| {
        undos.retain(|undo| undo.name != name);
        Ok(())
    })
}

/// Undo an event whose undo is written down here, and strike it out; when that was done already
/// where a timer was faster. Of one that fails the steps that failed stay.
pub fn undo(name: &str, execute: Execute) -> Result<StepTimes> {
    let _event = EVENTS.acquire(name)?;
    if let Some(times) = lock(&DONE).get(name) {
        return Ok(*times);
    }
    let undos = kept_undos(&own_file())?;
    let kept = undos.into_iter().find(|undo| undo.name == name);
    let kept = kept.ok_or_else(|| unknown_undo(name))?;
    let performed = perform_kept(&own_file(), &kept, execute);
    if let Some(fault) = performed.faults.into_iter().next() {
        return Err(fault);
    }
    lock(&DONE).insert(name.to_owned(), performed.times);
    if let Err(error) = performed.struck_out {
        eprintln!("iolab-agent: {name} was undone, but not struck out: {}", error.message);
    }
    Ok(performed.times)
}

/// Strike out what was undone here, where that failed before.
pub fn strike_out_done() -> Result<()> {
    match read_undos(&own_file()) {
        Ok(undos) if undos.iter().any(is_done) => change_file(&own_file(), |_| Ok(())),
        _ => Ok(()), // What cannot be read is told by whoever undoes the rest.
    }
}

/// Do an undo that stands in a file, where only the steps that failed stay.
fn perform_kept(path: &Path, kept: &Undo, execute: Execute) -> PerformedUndo {
    let started_real_ns = real_ns();
    let (failed, faults): (Vec<Step>, Vec<Error>) =
        undo_all(&kept.steps, execute).into_iter().unzip();
    let times = StepTimes { started_real_ns, ended_real_ns: real_ns() };
    let struck_out = change_file(path, |undos| {
        if failed.is_empty() {
            undos.retain(|undo| undo.name != kept.name);
        } else if let Some(undo) = undos.iter_mut().find(|undo| undo.name == kept.name) {
            undo.steps = failed;
        }
        Ok(())
    });
    PerformedUndo { times, faults, struck_out }
}

/// Refuse an undo of what another event holds. Commands of one session are the user's to order, and
/// are undone the newest first.
pub fn require_free(steps: &[Step]) -> Result<()> {
    let not_known = |error: Error| {
        let message = format!(
            "cannot see whether another event holds this: {} (see iolab clean)",
            error.message
        );
        Error { message, ..error }
    };
    for name in names_in_folder().map_err(not_known)? {
        let Some(sign) = name.strip_prefix(PREFIX) else { continue };
        let is_own = sign == own_agent_id();
        let holder = match () {
            () if is_own => "event",
            () if is_agent_alive(sign) => "another session's event,",
            () => "what has ended without undoing it (see iolab clean):",
        };
        let counts = |step: &&Step| !(is_own && matches!(step, Step::Command { .. }));
        let wanted: BTreeSet<String> =
            steps.iter().filter(counts).map(Step::changed_object).collect();
        for undo in kept_undos(&folder().join(&name)).map_err(not_known)? {
            let held = undo.steps.iter().map(Step::changed_object);
            if let Some(object) = held.into_iter().find(|object| wanted.contains(object)) {
                return Err(Error::busy(format!("{object} is held by {holder} {}", undo.name)));
            }
        }
    }
    Ok(())
}

/// Do, for an agent that has ended, what it had not yet undone; what of it failed.
#[must_use]
pub fn perform_left(sign: &str) -> Vec<String> {
    perform_file(&folder().join(format!("{PREFIX}{sign}")), &run_alone)
}

/// What fails stays in the file.
fn perform_file(path: &Path, execute: Execute) -> Vec<String> {
    let undos = match kept_undos(path) {
        Ok(undos) => undos,
        Err(error) => return vec![error.message],
    };
    let mut messages = Vec::new();
    for kept in undos.iter().rev() {
        let PerformedUndo { faults, struck_out, .. } = perform_kept(path, kept, execute);
        let not_undone = |error: &Error| format!("{} was not undone: {}", kept.name, error.message);
        messages.extend(faults.iter().map(not_undone));
        let not_struck_out = |error: Error| {
            format!("what was done to undo {} is not struck out: {}", kept.name, error.message)
        };
        messages.extend(struck_out.err().map(not_struck_out));
    }
    messages
}

/// What dead agents of this user have left to be undone.
#[must_use]
pub fn find_abandoned() -> Vec<UndoFile> {
    undo_files(|sign| process_of_agent_id(sign).is_some() && !is_agent_alive(sign))
}

/// What other living agents of this user have yet to undo.
#[must_use]
pub fn find_held() -> Vec<UndoFile> {
    undo_files(|sign| sign != own_agent_id() && is_agent_alive(sign))
}

fn undo_files(is_wanted: impl Fn(&str) -> bool) -> Vec<UndoFile> {
    let folder = folder();
    let listed = match require_private(&folder) {
        Err(error) if error.code == "ENOENT" => return Vec::new(),
        refused => refused.and_then(|()| names_in_folder()),
    };
    let is_theirs = |name: &String| name.strip_prefix(PREFIX).is_some_and(&is_wanted);
    match listed {
        Ok(names) => names
            .into_iter()
            .filter(is_theirs)
            .filter_map(|name| described_file(folder.join(name)))
            .collect(),
        Err(error) => {
            let advice = "look at it by hand: it may hold events that are not undone";
            let step = shortened(&format!("{} ({advice})", error.message));
            vec![UndoFile { path: folder, steps: vec![step] }]
        }
    }
}

/// What stands in a file of undos, for people; None where it is gone by now.
fn described_file(path: PathBuf) -> Option<UndoFile> {
    let texts = |undo: &Undo| -> Vec<String> {
        let text = |step: &Step| shortened(&format!("{}: {}", undo.name, step.description()));
        undo.steps.iter().map(text).collect()
    };
    let steps = match read_undos(&path) {
        Ok(undos) => undos.iter().flat_map(texts).collect(),
        Err(error) if error.code == "ENOENT" => return None,
        Err(error) => {
            let advice = "undo the event by hand, then remove the file";
            vec![shortened(&format!("{} ({advice})", error.message))]
        }
    };
    Some(UndoFile { path, steps })
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

/// Do what stands in such a file; what of it failed.
#[must_use]
pub fn perform_abandoned(undo: &UndoFile, execute: Execute) -> Vec<String> {
    perform_file(&undo.path, execute)
}

fn folder() -> PathBuf {
    // What unit tests damage is not in the way of agents.
    let owner =
        if cfg!(test) { format!("test-{}", own_agent_id()) } else { effective_uid().to_string() };
    PathBuf::from(format!("/tmp/iolab-undo-{owner}"))
}

/// Nobody else may say what is run here.
fn require_private(folder: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(folder).context(format_args!("see {}", folder.display()))?;
    if meta.is_dir() && meta.uid() == effective_uid() && meta.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    Err(Error::replaced(format!("{} is not this user's alone", folder.display())))
}

/// Where the undos of this agent stand.
#[must_use]
pub fn own_file() -> PathBuf {
    folder().join(format!("{PREFIX}{}", own_agent_id()))
}

/// The names in the folder, none where there is no folder.
fn names_in_folder() -> Result<Vec<String>> {
    let folder = folder();
    let read = || -> io::Result<Vec<String>> {
        let name = |entry: io::Result<DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        fs::read_dir(&folder)?.map(name).collect()
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.context(format_args!("list {}", folder.display())),
    }
}

/// The undos of a file, none where there is no file; without those that were done here and could
/// not be struck out.
fn kept_undos(path: &Path) -> Result<Vec<Undo>> {
    let mut undos = match read_undos(path) {
        Err(error) if error.code == "ENOENT" => Vec::new(),
        undos => undos?,
    };
    if path == own_file() {
        undos.retain(|undo| !is_done(undo));
    }
    Ok(undos)
}

fn is_done(undo: &Undo) -> bool {
    lock(&DONE).contains_key(&undo.name)
}

fn read_undos(path: &Path) -> Result<Vec<Undo>> {
    require_private(&folder())?;
    let meta = fs::symlink_metadata(path).context(format_args!("see {}", path.display()))?;
    if !meta.is_file() || meta.uid() != effective_uid() || meta.len() > MAX_FILE_BYTES {
        return Err(Error::replaced(format!("{} is no file of undos", path.display())));
    }
    let bytes = fs::read(path).context(format_args!("read {}", path.display()))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::bad_request(format!("{}: {error}", path.display())))
}

/// The folder, made where it is missing, for as long as the lock is kept.
fn lock_folder() -> Result<LockedFile> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match try_lock_folder() {
            Ok(Some(locked)) => return Ok(locked),
            Ok(None) => {}
            Err(error) if error.code == "ENOENT" => {} // It was removed since it was made.
            Err(error) => return Err(error),
        }
        if Instant::now() >= deadline {
            return Err(Error::busy(format!("another agent holds {}", folder().display())));
        }
        thread::sleep(WAIT_PAUSE);
    }
}

fn try_lock_folder() -> Result<Option<LockedFile>> {
    let folder = folder();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io(format_args!("make {}", folder.display()), &error));
        }
        _ => require_private(&folder)?,
    }
    let doing = format!("lock {}", folder.display());
    let opened = File::open(&folder).context(&doing)?;
    let Ok(locked) = LockedFile::try_lock(opened).context(&doing)? else { return Ok(None) };
    // Who held it before may have removed it.
    let own = locked.metadata().context(&doing)?;
    let there = fs::symlink_metadata(&folder).context(&doing)?;
    Ok(((own.dev(), own.ino()) == (there.dev(), there.ino())).then_some(locked))
}

/// Change a file of undos, which no other agent or thread looks at meanwhile: at every moment it is
/// whole. It goes with its last undo, and the folder with its last file.
fn change_file(path: &Path, change: impl FnOnce(&mut Vec<Undo>) -> Result<()>) -> Result<()> {
    let _locked = lock_folder()?;
    let mut undos = kept_undos(path)?;
    let changed = change(&mut undos);
    let aside = folder().join(format!("new-{}", own_agent_id()));
    if undos.is_empty() {
        let _ = fs::remove_file(&aside);
        let removed = fs::remove_file(path);
        let _ = fs::remove_dir(folder());
        return match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                changed.and(Err(Error::io(format_args!("remove {}", path.display()), &error)))
            }
            _ => changed,
        };
    }
    changed?;
    let write = || -> io::Result<()> {
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&serde_json::to_vec(&undos).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    };
    write().map_err(|error| {
        Error::errno(
            libc::EIO,
            format!("cannot write {}: {}", path.display(), io_error_text(&error)),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::trial::TestFolder;

    fn sleeper() -> (std::process::Child, NamedProcess) {
        let child = std::process::Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let pid = child.id() as Pid;
        let process =
            NamedProcess { pid, start_ticks: start_ticks_of(pid).unwrap(), name: "sleep".into() };
        (child, process)
    }

    fn state_of(pid: Pid) -> char {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        text.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    #[test]
    fn a_signal_meets_only_the_process_that_was_meant() {
        let (mut child, NamedProcess { pid, start_ticks, .. }) = sleeper();
        let send =
            |start_ticks, signal| Step::Signal { pid, start_ticks, signal }.perform(&run_alone);
        assert_eq!(send(start_ticks + 1, StepSignal::Stop).unwrap_err().code, "ESRCH");
        assert_ne!(state_of(pid), 'T');
        send(start_ticks, StepSignal::Stop).unwrap();
        while state_of(pid) != 'T' {
            thread::sleep(WAIT_PAUSE);
        }
        send(start_ticks, StepSignal::Cont).unwrap();
        while state_of(pid) == 'T' {
            thread::sleep(WAIT_PAUSE);
        }
        send(start_ticks, StepSignal::Kill).unwrap();
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_value() {
        let command =
            |program: &str, timeout_s| Step::Command { argv: vec![program.into()], timeout_s };
        let write = |path: &str| Step::Write { path: path.into(), text: "1".into() };
        let init = Step::Signal { pid: 1, start_ticks: 0, signal: StepSignal::Kill };
        for (step, part) in [
            (command("true", 1.0), "\"true\""),
            (command("/bin/true", 0.0), "0 s"),
            (write("/etc/hostname"), "/etc/hostname"),
            (write("/sys/../etc/hostname"), "/etc/hostname"),
            (init, "process 1"),
        ] {
            let error = step.perform(&run_alone).unwrap_err();
            assert!(error.message.contains(part), "{} lacks {part}", error.message);
        }
    }

    #[test]
    fn what_is_gone_needs_no_undo() {
        let (mut child, NamedProcess { pid, start_ticks, .. }) = sleeper();
        child.kill().unwrap();
        child.wait().unwrap();
        let step = Step::Signal { pid, start_ticks, signal: StepSignal::Cont };
        assert_eq!(step.perform(&run_alone).unwrap_err().code, "ESRCH");
        assert_eq!(undo_all(&[step], &run_alone), []);
        let failing = Step::Command { argv: vec!["/bin/false".into()], timeout_s: 10.0 };
        assert_eq!(undo_all(&[failing], &run_alone).len(), 1);
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_told() {
        let run = |argv: &[&str], timeout_s| {
            let argv = argv.iter().map(|&word| word.to_owned()).collect();
            Step::Command { argv, timeout_s }.perform(&run_alone)
        };
        run(&["/bin/true"], 10.0).unwrap();
        assert!(run(&["/bin/false"], 10.0).unwrap_err().message.contains("/bin/false"));
        assert!(run(&["/bin/sleep", "60"], 0.1).unwrap_err().message.contains("0.1 s"));
    }

    /// Tests of the agent's own file, which they share.
    static ALONE: Mutex<()> = Mutex::new(());

    fn undo_command(word: &str) -> Step {
        Step::Command { argv: vec![format!("/{word}")], timeout_s: 1.0 }
    }

    fn limit(device: &str) -> Step {
        Step::Write { path: "/proc/sys/kernel/ostype".into(), text: format!("{device} rbps=max") }
    }

    #[test]
    fn a_file_with_the_number_of_no_ordinary_process_is_refused_with_it() {
        let folder = TestFolder::new();
        let path = folder.path().join("pid");
        for (text, part) in [("1", "process 1 of"), ("0", "process 0 of"), ("x", "no process id")] {
            fs::write(&path, text).unwrap();
            let error = process_in_file(&path).unwrap_err();
            assert_eq!(error.code, "bad-request");
            assert!(error.message.contains(part), "{} lacks {part}", error.message);
        }
    }

    #[test]
    fn a_folder_of_undos_that_others_may_change_is_told() {
        let _alone = lock(&ALONE);
        add("kept".into(), vec![undo_command("kept")]).unwrap();
        let set_mode = |mode| fs::set_permissions(folder(), Permissions::from_mode(mode)).unwrap();
        set_mode(0o755);
        let (abandoned, held) = (find_abandoned(), find_held());
        set_mode(0o700);
        remove("kept").unwrap();
        for found in [abandoned, held] {
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].path, folder());
            assert!(found[0].steps[0].contains("not this user's alone"), "{:?}", found[0].steps);
        }
    }

    #[test]
    fn a_name_is_used_once_and_an_object_is_held_by_one_event() {
        let _alone = lock(&ALONE);
        let done = |_: &[String], _: f64| Ok(());
        let add_one = |name: &str, step: Step| add(name.into(), vec![step]);
        add_one("once", undo_command("once")).unwrap();
        assert!(add_one("once", undo_command("other")).unwrap_err().message.contains("once"));
        undo("once", &done).unwrap();
        assert!(add_one("once", undo_command("once")).unwrap_err().message.contains("once"));
        add_one("first", limit("8:0")).unwrap();
        assert_eq!(add_one("second", limit("8:0")).unwrap_err().code, "busy");
        add_one("other disk", limit("8:16")).unwrap();
        remove("first").unwrap();
        remove("first").unwrap();
        add_one("second", limit("8:0")).unwrap();
        for name in ["other disk", "second"] {
            remove(name).unwrap();
        }
        assert!(!own_file().exists());
        assert!(undo("first", &done).unwrap_err().message.contains("first"));
    }

    #[test]
    fn an_event_begins_once_its_undo_is_kept_and_before_it_is_done() {
        let _alone = lock(&ALONE);
        let refusal = |name| begin(Some(name)).map(drop).unwrap_err().message;
        assert!(refusal("event").contains("event"));
        add("event".into(), vec![undo_command("event")]).unwrap();
        drop(begin(Some("event")).unwrap());
        assert!(remove("event").unwrap_err().message.contains("has begun"));
        undo("event", &|_, _| Ok(())).unwrap();
        assert!(refusal("event").contains("event"));
        drop(begin(None).unwrap());
    }

    #[test]
    fn one_event_is_begun_and_undone_by_one_at_a_time_and_by_none_at_the_end() {
        let locks: &'static EventLocks = Box::leak(Box::new(EventLocks::new()));
        let first = locks.acquire("first").unwrap();
        let others = ["", "", "other"].map(|name| locks.acquire(name).unwrap());
        let waiting = thread::spawn(|| locks.acquire("first").map(drop));
        thread::sleep(10 * WAIT_PAUSE);
        assert!(!waiting.is_finished());
        drop(first);
        waiting.join().unwrap().unwrap();
        locks.close();
        for name in ["first", ""] {
            assert!(locks.acquire(name).map(drop).unwrap_err().message.contains("is ending"));
        }
        locks.wait_until_free(Duration::ZERO);
        let freeing = thread::spawn(|| drop(others));
        locks.wait_until_free(Duration::from_secs(60));
        assert!(lock(&locks.state).held.is_empty());
        freeing.join().unwrap();
    }

    #[test]
    fn a_file_of_undos_that_cannot_be_read_is_told() {
        let _alone = lock(&ALONE);
        add("event".into(), vec![undo_command("event")]).unwrap();
        let steps = || described_file(own_file()).unwrap().steps;
        assert_eq!(steps(), ["event: /event"]);
        fs::write(own_file(), "[{").unwrap();
        let damaged = steps();
        assert!(damaged.len() == 1 && damaged[0].contains("by hand"), "{damaged:?}");
        assert!(damaged[0].contains(&own_file().display().to_string()), "{damaged:?}");
        fs::remove_file(own_file()).unwrap();
        assert!(described_file(own_file()).is_none());
        let _ = fs::remove_dir(folder());
    }

    #[test]
    fn undos_that_cannot_be_read_are_not_taken_for_none() {
        let _alone = lock(&ALONE);
        add("kept".into(), vec![undo_command("kept")]).unwrap();
        let text = fs::read(own_file()).unwrap();
        let other = folder().join(format!("{PREFIX}other"));
        for damaged in [own_file(), other] {
            let path = damaged.display().to_string();
            let is_own = damaged == own_file();
            fs::write(&damaged, "[{").unwrap();
            let error = require_free(&[limit("8:0")]).unwrap_err();
            assert!(error.message.contains("holds this") && error.message.contains(&path));
            assert!(add("next".into(), vec![limit("8:0")]).unwrap_err().message.contains(&path));
            if is_own {
                for error in [
                    begin(Some("kept")).map(drop).unwrap_err(),
                    undo("kept", &|_, _| Ok(())).unwrap_err(),
                ] {
                    assert!(error.message.contains(&path), "{}", error.message);
                }
                fs::write(&damaged, &text).unwrap();
            } else {
                fs::remove_file(&damaged).unwrap();
            }
        }
        require_free(&[limit("8:0")]).unwrap();
        remove("kept").unwrap();
    }

    #[test]
    fn what_was_undone_is_not_undone_again_where_it_was_not_struck_out() {
        let _alone = lock(&ALONE);
        let calls = Mutex::new(0);
        let count = |_: &[String], _: f64| {
            *lock(&calls) += 1;
            Ok(())
        };
        let names = || -> Vec<String> {
            read_undos(&own_file()).unwrap().into_iter().map(|undo| undo.name).collect()
        };
        add("other event".into(), vec![undo_command("other")]).unwrap();
        add("done event".into(), vec![undo_command("done")]).unwrap();
        let aside = folder().join(format!("new-{}", own_agent_id()));
        fs::create_dir(&aside).unwrap(); // The file cannot be written anew.
        let times = undo("done event", &count).unwrap();
        assert_eq!(undo("done event", &count).unwrap(), times);
        assert_eq!(*lock(&calls), 1);
        assert_eq!(names(), ["other event", "done event"]);
        assert!(begin(Some("done event")).is_err());
        strike_out_done().unwrap_err();
        fs::remove_dir(&aside).unwrap();
        strike_out_done().unwrap();
        assert_eq!(names(), ["other event"]);
        remove("other event").unwrap();
        strike_out_done().unwrap();
    }

    #[test]
    fn of_undos_that_fail_only_what_failed_is_done_again_the_newest_first() {
        let _alone = lock(&ALONE);
        let calls = Mutex::new(Vec::new());
        let does = |is_broken: bool, calls: &Mutex<Vec<String>>, argv: &[String]| {
            lock(calls).push(argv[0].clone());
            if is_broken && argv[0] == "/fails" {
                return Err(Error::errno(libc::EIO, "it is broken"));
            }
            Ok(())
        };
        let broken = |argv: &[String], _: f64| does(true, &calls, argv);
        let mended = |argv: &[String], _: f64| does(false, &calls, argv);
        add("old".into(), vec![undo_command("old")]).unwrap();
        add("new".into(), vec![undo_command("works"), undo_command("fails")]).unwrap();
        let messages = perform_file(&own_file(), &broken);
        assert!(messages.len() == 1 && messages[0].contains("new"), "{messages:?}");
        assert_eq!(std::mem::take(&mut *lock(&calls)), ["/works", "/fails", "/old"]);
        undo("new", &broken).unwrap_err();
        let times = undo("new", &mended).unwrap();
        assert_eq!(undo("new", &mended).unwrap(), times);
        assert_eq!(*lock(&calls), ["/fails", "/fails"]);
        assert!(!own_file().exists());
    }

    #[test]
    fn nobody_changes_a_file_while_another_agent_is_at_the_folder() {
        let _alone = lock(&ALONE);
        let held = lock_folder().unwrap();
        let adding = thread::spawn(|| add("waits".into(), vec![undo_command("waits")]));
        thread::sleep(10 * WAIT_PAUSE);
        assert!(!own_file().exists());
        drop(held);
        adding.join().unwrap().unwrap();
        assert!(own_file().exists());
        remove("waits").unwrap();
    }
}
