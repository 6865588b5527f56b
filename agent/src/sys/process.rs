//! Processes: fork, sessions, death with the parent, reaping with what was used.

use std::ffi::{CString, NulError};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{self, EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{Errno, FdFlags};
use rustix::pipe::PipeFlags;
use rustix::process::{self as calls, PidfdFlags, Signal};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::{fs, io as descriptors, pipe as pipes, stdio};

use super::{check_result, signal};

/// A process id.
pub type Pid = i32;

/// A child that ended, and what it and the children it waited for used.
#[derive(Debug, Clone, Copy)]
pub struct ReapedChild {
    /// Its process id, free again.
    pub pid: Pid,
    /// The exit code, None when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// User time in seconds.
    pub user_s: f64,
    /// System time in seconds.
    pub system_s: f64,
    /// The largest resident set of one process of the tree.
    pub max_rss_bytes: u64,
}

/// The own process id.
#[must_use]
pub fn own_pid() -> Pid {
    std::process::id() as Pid
}

/// The own process id as `/proc` shows it, which may be that of an outer PID namespace.
#[must_use]
pub fn pid_in_proc() -> Pid {
    let shown = std::fs::read_link("/proc/self").ok();
    shown.and_then(|pid| pid.to_str()?.parse().ok()).unwrap_or_else(own_pid)
}

/// The file of this program.
///
/// To be asked for first in `main`: a thread with mounts of its own sees another root behind
/// `chroot`, and would be told a path that nobody else can follow.
pub fn own_program() -> Option<&'static Path> {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| std::env::current_exe().ok()).as_deref()
}

/// The user whose rights this process has.
#[must_use]
pub fn effective_uid() -> u32 {
    calls::geteuid().as_raw()
}

/// The group whose rights this process has.
#[must_use]
pub fn effective_gid() -> u32 {
    calls::getegid().as_raw()
}

/// The parent's process id.
#[must_use]
pub fn parent_pid() -> Pid {
    std::os::unix::process::parent_id() as Pid
}

/// Split this process in two: None in the child, its id in the parent.
///
/// Only for a process that has one thread.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the caller has a single thread, so the child may go on as a normal process.
    let pid = check_result(unsafe { libc::fork() })?;
    Ok((pid != 0).then_some(pid))
}

/// A PID namespace to start processes in, and the own one to come back to.
pub struct PidNamespace {
    /// That of the processes.
    pub inside: File,
    /// That of this process.
    pub outside: File,
}

impl PidNamespace {
    /// Have what `start` forks begin inside. It may start no thread.
    pub fn start<T>(&self, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        set_child_pid_namespace(&self.inside)?;
        let started = start();
        set_child_pid_namespace(&self.outside)?;
        started
    }
}

/// Have the next fork of the calling thread make the first process of a new PID namespace.
pub fn unshare_pid_namespace() -> io::Result<()> {
    // SAFETY: unshare touches no memory.
    check_result(unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
    Ok(())
}

/// Have forks of the calling thread be in a PID namespace; it starts threads in its own alone.
pub fn set_child_pid_namespace(namespace: &File) -> io::Result<()> {
    // Of many threads it concerns the calling one alone.
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))?)
}

/// A pipe: where to read, and where to write.
pub fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = pipes::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((reader.into(), writer.into()))
}

/// Leave the terminal and its Ctrl-C; a process that leads its group already cannot, and need not.
pub fn start_session() {
    let _ = calls::setsid();
}

/// Become the parent of every orphan among the descendants.
pub fn become_subreaper() -> io::Result<()> {
    Ok(calls::set_child_subreaper(Some(calls::getpid()))?)
}

/// Receive `signal` when the thread that started this process ends.
pub fn die_with_parent(signal: i32) -> io::Result<()> {
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    Ok(calls::set_parent_process_death_signal(Some(signal))?)
}

/// Send a signal; a process that is gone already is fine.
pub fn kill(pid: Pid, signal: i32) {
    // 0, 1 and groups are excluded.
    if let (2.., Some(pid), Some(signal)) =
        (pid, calls::Pid::from_raw(pid), Signal::from_named_raw(signal))
    {
        let _ = calls::kill_process(pid, signal);
    }
}

/// A handle of the process that has this id now, whatever gets the id later.
///
/// ESRCH when there is none, ENOSYS before Linux 5.3.
pub fn open_pidfd(pid: Pid) -> io::Result<OwnedFd> {
    let pid = calls::Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    Ok(calls::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Send a signal to the process of a handle; one that is gone already is fine.
pub fn signal_pidfd(process: &OwnedFd, signal: i32) -> io::Result<()> {
    let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
    match calls::pidfd_send_signal(process, signal) {
        Err(Errno::SRCH) => Ok(()),
        sent => Ok(sent?),
    }
}

/// Whether this user may signal a process: EPERM where not. None is sent.
pub fn try_signal(pid: Pid) -> io::Result<()> {
    let pid = calls::Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    Ok(calls::test_kill_process(pid)?)
}

/// Reap one ended child, whichever; None when none has ended or there is none.
#[must_use]
pub fn reap() -> Option<ReapedChild> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writing; an rusage of zeros is a value.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    (pid > 0).then(|| ReapedChild {
        pid,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss as u64 * 1024,
    })
}

/// A program with its arguments and environment, as execve takes them.
pub struct Program {
    path: CString,
    argv: CStringArray,
    environment: CStringArray,
}

impl Program {
    /// Fails for a text with a zero byte in it, which no program can be given.
    pub fn new<'a>(
        path: &Path,
        argv: impl IntoIterator<Item = &'a str>,
        environment: impl IntoIterator<Item = String>,
    ) -> io::Result<Self> {
        Ok(Self {
            path: CString::new(path.as_os_str().as_bytes())?,
            argv: CStringArray::new(argv.into_iter().map(CString::new))?,
            environment: CStringArray::new(environment.into_iter().map(CString::new))?,
        })
    }
}

impl Program {
    /// Replace this process; returns only why it could not. Async-signal-safe.
    fn exec(&self) -> io::Error {
        let (argv, environment) = (&self.argv.pointers, &self.environment.pointers);
        // SAFETY: all texts end with NUL, both lists with null, and all outlive the call.
        unsafe { libc::execve(self.path.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Texts and the list of pointers to them that ends with null.
struct CStringArray {
    pointers: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead into heap memory that this owns, never changes and frees only with
// itself.
unsafe impl Send for CStringArray {}
// SAFETY: as above; nothing can be changed through a shared reference.
unsafe impl Sync for CStringArray {}

impl CStringArray {
    fn new(texts: impl Iterator<Item = Result<CString, NulError>>) -> io::Result<Self> {
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { pointers, _texts: texts })
    }
}

/// What the kernel tells of a parent in an outer PID namespace.
const PARENT_OUTSIDE_NAMESPACE: Pid = 0;

/// Where a program is started, and what it is given.
pub struct LaunchContext {
    /// Its working directory, which is this folder whatever its name means by now.
    pub folder: File,
    /// What it inherits open, so that it can be known by it.
    pub token: Option<OwnedFd>,
    /// The control group that it first joins is behind that.
    pub join_file: Option<OwnedFd>,
}

/// Have `command` start `program` in a session of its own, with default signals, killed when the
/// thread that starts it ends.
///
/// The program is started by execve: Rust's own way would hand a file that is none to a shell.
pub fn start_isolated(command: &mut Command, program: Program, surroundings: LaunchContext) {
    let parent = own_pid();
    let prepare = move || {
        calls::setsid()?; // A forked child never leads a group.
        signal::restore_defaults();
        die_with_parent(libc::SIGKILL)?;
        let parent_now =
            calls::getppid().map_or(PARENT_OUTSIDE_NAMESPACE, |pid| pid.as_raw_nonzero().get());
        if ![parent, PARENT_OUTSIDE_NAMESPACE].contains(&parent_now) {
            // The parent died before the line above took effect: nobody would end this process.
            return Err(Errno::SRCH.into());
        }
        calls::fchdir(&surroundings.folder)?;
        if let Some(token) = &surroundings.token {
            descriptors::fcntl_setfd(token, FdFlags::empty())?; // So that exec leaves it open.
        }
        if let Some(door) = &surroundings.join_file {
            descriptors::write(door, b"0")?; // Zero means the writer itself.
        }
        Err(program.exec())
    };
    // SAFETY: the closure makes bare system calls, calls async-signal-safe functions else, and does
    // not allocate.
    unsafe { command.pre_exec(prepare) };
}

/// End this process at once, without running what other threads left behind.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and needs no state.
    unsafe { libc::_exit(code) }
}

/// A counter that `poll` can wait for.
pub fn new_event() -> io::Result<OwnedFd> {
    Ok(event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Make an event readable for ever.
pub fn signal_event(event: &OwnedFd) {
    // A full counter is readable as well.
    let _ = descriptors::write(event, &1_u64.to_ne_bytes());
}

/// Wait until one of the descriptors can be read (or, where wanted, written).
///
/// Returns for each whether it is ready; None descriptors never are. Without a timeout it waits for
/// ever.
pub fn poll<const N: usize>(
    wanted: [Option<(BorrowedFd<'_>, PollFlags)>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut set: Vec<PollFd<'_>> =
        wanted.iter().flatten().map(|&(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
    match event::poll(&mut set, timeout.as_ref()) {
        Ok(_) => {
            let mut ready = set.iter().map(|entry| !entry.revents().is_empty());
            Ok(wanted.map(|entry| entry.is_some() && ready.next() == Some(true)))
        }
        Err(Errno::INTR) => Ok([false; N]),
        Err(error) => Err(error.into()),
    }
}

/// Wait to read.
pub const READABLE: PollFlags = PollFlags::IN;
/// Wait to write.
pub const WRITABLE: PollFlags = PollFlags::OUT;

/// Let reads and writes of a descriptor return at once.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = fs::fcntl_getfl(fd)?;
    Ok(fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

/// Put `with` in the place of the standard descriptor `number`.
pub fn replace_standard(number: i32, with: BorrowedFd<'_>) -> io::Result<()> {
    match number {
        0 => stdio::dup2_stdin(with)?,
        1 => stdio::dup2_stdout(with)?,
        2 => stdio::dup2_stderr(with)?,
        _ => return Err(Errno::BADF.into()),
    }
    Ok(())
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
