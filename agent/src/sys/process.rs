//! Processes: fork, sessions, death with the parent, reaping with what was used.

use std::ffi::{CString, NulError};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{check, signal};

/// A process id.
pub type Pid = i32;

/// A child that ended, and what it and the children it waited for used.
#[derive(Debug, Clone, Copy)]
pub struct Reaped {
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
pub fn shown_pid() -> Pid {
    let shown = std::fs::read_link("/proc/self").ok();
    shown.and_then(|pid| pid.to_str()?.parse().ok()).unwrap_or_else(own_pid)
}

/// The file of this program.
///
/// To be asked for first in `main`: a thread with mounts of its own sees another root behind
/// `chroot`, and would be told a path that nobody else can follow.
pub fn own_file() -> Option<&'static Path> {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| std::env::current_exe().ok()).as_deref()
}

/// The user whose rights this process has.
#[must_use]
pub fn own_user() -> u32 {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() }
}

/// The group whose rights this process has.
#[must_use]
pub fn own_group() -> u32 {
    // SAFETY: getegid has no preconditions.
    unsafe { libc::getegid() }
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
    let pid = check(unsafe { libc::fork() })?;
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
        fork_into(&self.inside)?;
        let started = start();
        fork_into(&self.outside)?;
        started
    }
}

/// Have the next fork of the calling thread make the first process of a new PID namespace.
pub fn fork_into_new_pids() -> io::Result<()> {
    // SAFETY: unshare touches no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWPID) })?;
    Ok(())
}

/// Have forks of the calling thread be in a PID namespace; it starts threads in its own alone.
pub fn fork_into(namespace: &File) -> io::Result<()> {
    // SAFETY: setns touches no memory, and of many threads it concerns the calling one alone.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWPID) })?;
    Ok(())
}

/// A pipe: where to read, and where to write.
pub fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written; nobody else owns them.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

/// Leave the terminal and its Ctrl-C; a process that leads its group already cannot, and need not.
pub fn leave_terminal() {
    // SAFETY: setsid has no preconditions.
    unsafe { libc::setsid() };
}

/// Become the parent of every orphan among the descendants.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: this prctl takes one flag and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1_u64, 0_u64, 0_u64, 0_u64) })?;
    Ok(())
}

/// Receive `signal` when the thread that started this process ends.
pub fn die_with_parent(signal: i32) -> io::Result<()> {
    // SAFETY: this prctl takes a signal number and touches no memory.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as u64, 0_u64, 0_u64, 0_u64) })?;
    Ok(())
}

/// Send a signal; a process that is gone already is fine.
pub fn kill(pid: Pid, signal: i32) {
    if pid > 1 {
        // SAFETY: sending a signal has no memory effect here; 0, 1 and groups are excluded.
        unsafe { libc::kill(pid, signal) };
    }
}

/// A handle of the process that has this id now, whatever gets the id later.
///
/// ESRCH when there is none, ENOSYS before Linux 5.3.
pub fn open_process(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers; the new descriptor is owned by nobody else.
    unsafe {
        let fd = check(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

/// Send a signal to the process of a handle; one that is gone already is fine.
pub fn signal_process(process: &OwnedFd, signal: i32) {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    let fd = process.as_raw_fd();
    // SAFETY: the descriptor is open; without details of the signal no memory is read.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, nothing, 0) };
}

/// Reap one ended child, whichever; None when none has ended or there is none.
#[must_use]
pub fn reap() -> Option<Reaped> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writing; an rusage of zeros is a value.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    (pid > 0).then(|| Reaped {
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
    argv: Strings,
    environment: Strings,
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
            argv: Strings::new(argv.into_iter().map(CString::new))?,
            environment: Strings::new(environment.into_iter().map(CString::new))?,
        })
    }
}

impl Program {
    /// Replace this process; returns only why it could not. Async-signal-safe.
    fn become_it(&self) -> io::Error {
        let (argv, environment) = (&self.argv.pointers, &self.environment.pointers);
        // SAFETY: all texts end with NUL, both lists with null, and all outlive the call.
        unsafe { libc::execve(self.path.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

/// Texts and the list of pointers to them that ends with null.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead into heap memory that this owns, never changes and frees only with
// itself.
unsafe impl Send for Strings {}
// SAFETY: as above; nothing can be changed through a shared reference.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(texts: impl Iterator<Item = Result<CString, NulError>>) -> io::Result<Self> {
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Ok(Self { pointers, _texts: texts })
    }
}

/// What the kernel tells of a parent in an outer PID namespace.
const OUT_OF_SIGHT: Pid = 0;

/// Where a program is started, and what it is given.
pub struct Surroundings {
    /// Its working directory, which is this folder whatever its name means by now.
    pub folder: File,
    /// What it inherits open, so that it can be known by it.
    pub token: Option<OwnedFd>,
    /// The control group that it first joins is behind that.
    pub door: Option<OwnedFd>,
}

/// Have `command` start `program` in a session of its own, with default signals, killed when the
/// thread that starts it ends.
///
/// The program is started by execve: Rust's own way would hand a file that is none to a shell.
pub fn start_alone(command: &mut Command, program: Program, surroundings: Surroundings) {
    let parent = own_pid();
    let prepare = move || {
        check(
            // SAFETY: setsid is async-signal-safe and a forked child never leads a group.
            unsafe { libc::setsid() },
        )?;
        signal::restore_defaults();
        die_with_parent(libc::SIGKILL)?;
        // SAFETY: getppid is async-signal-safe.
        if ![parent, OUT_OF_SIGHT].contains(&unsafe { libc::getppid() }) {
            // The parent died before the line above took effect: nobody would end this process.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: fchdir of an open descriptor is async-signal-safe.
        check(unsafe { libc::fchdir(surroundings.folder.as_raw_fd()) })?;
        if let Some(token) = &surroundings.token {
            // SAFETY: fcntl is async-signal-safe. Without the flag exec leaves it open.
            check(unsafe { libc::fcntl(token.as_raw_fd(), libc::F_SETFD, 0) })?;
        }
        if let Some(door) = &surroundings.door {
            // SAFETY: write is async-signal-safe; one readable byte. Zero means the writer itself.
            check(unsafe { libc::write(door.as_raw_fd(), b"0".as_ptr().cast(), 1) })?;
        }
        Err(program.become_it())
    };
    // SAFETY: the closure calls async-signal-safe functions only and does not allocate.
    unsafe { command.pre_exec(prepare) };
}

/// End this process at once, without running what other threads left behind.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and needs no state.
    unsafe { libc::_exit(code) }
}

/// A counter that `poll` can wait for.
pub fn event() -> io::Result<OwnedFd> {
    // SAFETY: eventfd returns a new descriptor that nobody else owns.
    unsafe {
        let fd = check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Make an event readable for ever.
pub fn raise(event: &OwnedFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: eight readable bytes, an open descriptor; a full counter is readable as well.
    unsafe { libc::write(event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// Wait until one of the descriptors can be read (or, where wanted, written).
///
/// Returns for each whether it is ready; None descriptors never are. A negative `timeout_ms`
/// waits for ever.
pub fn poll<const N: usize>(
    wanted: [Option<(BorrowedFd<'_>, i16)>; N],
    timeout_ms: i32,
) -> io::Result<[bool; N]> {
    let mut set = wanted.map(|entry| {
        let (fd, events) = entry.map_or((-1, 0), |(fd, events)| (fd.as_raw_fd(), events));
        libc::pollfd { fd, events, revents: 0 }
    });
    // SAFETY: `set` holds N valid entries; the descriptors are borrowed for the whole call.
    match check(unsafe { libc::poll(set.as_mut_ptr(), N as libc::nfds_t, timeout_ms) }) {
        Ok(_) => Ok(set.map(|entry| entry.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// Wait to read.
pub const READABLE: i16 = libc::POLLIN;
/// Wait to write.
pub const WRITABLE: i16 = libc::POLLOUT;

/// Let reads and writes of a descriptor return at once.
pub fn never_block(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: flags of an open descriptor are read and written; no memory is passed.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Put `with` in the place of the standard descriptor `number`.
pub fn replace_standard(number: i32, with: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open descriptors; dup2 replaces one that Rust does not own.
    check(unsafe { libc::dup2(with.as_raw_fd(), number) })?;
    Ok(())
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
