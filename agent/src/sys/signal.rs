//! Signals are blocked in every thread and taken by one of them, so none arrives by surprise.

use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::Signal;

/// By which an agent that ends has its keeper undo its events.
pub const UNDO_SIGNAL: i32 = libc::SIGUSR1;

const HANDLED_SIGNALS: [i32; 5] =
    [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, UNDO_SIGNAL];

/// Signals from here on have no default that anybody inherits otherwise.
const FIRST_REAL_TIME: i32 = 32;

/// What `wait` saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// A child changed its state (several may be behind one signal).
    Child,
    /// The agent is asked to end, by this signal.
    End(i32),
    /// The keeper is asked to undo events.
    Undo,
    /// Nothing, for the whole time.
    Nothing,
}

/// Block the signals that `wait` takes, in this thread and those it will start.
pub fn block_handled() {
    for signal in HANDLED_SIGNALS {
        set_action(signal, DefaultAction::Default); // Ignored, it would be dropped although it is blocked.
    }
    let set = handled_set();
    // SAFETY: `set` is an initialised signal set; the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Wait for one of the blocked signals, at most `patience`.
#[must_use]
pub fn wait_for_signal(patience: Duration) -> SignalEvent {
    let set = handled_set();
    let timeout = libc::timespec {
        tv_sec: patience.as_secs() as _,
        tv_nsec: libc::c_long::from(patience.subsec_nanos() as i32),
    };
    // SAFETY: set and timeout are valid; the details of the signal are not asked for.
    let got =
        unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout) };
    match got {
        libc::SIGCHLD => SignalEvent::Child,
        UNDO_SIGNAL => SignalEvent::Undo,
        libc::SIGTERM | libc::SIGINT | libc::SIGHUP => SignalEvent::End(got),
        _ => SignalEvent::Nothing,
    }
}

/// Have the waiting thread see `End`: the way out for a thread that finds nobody listening.
pub fn terminate_self() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TERM);
}

/// Have this process end by its signal when it writes to a pipe that nobody reads any more, which
/// Rust has it ignore.
pub fn restore_sigpipe() {
    set_action(libc::SIGPIPE, DefaultAction::Default);
}

/// Have children that end be nobody's to wait for.
pub fn ignore_children() {
    set_action(libc::SIGCHLD, DefaultAction::Ignore);
}

/// Give a new process the defaults. Async-signal-safe: for the time between fork and exec.
///
/// What was ignored when the agent was started - INT and QUIT of a job in the background of a
/// script, HUP under nohup - would stay ignored over exec.
pub(super) fn restore_defaults() {
    for signal in 1..FIRST_REAL_TIME {
        set_action(signal, DefaultAction::Default); // For KILL and STOP it fails, which is as it should be.
    }
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before it is read; both calls are signal-safe.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// What happens at a signal without a handler.
#[derive(Clone, Copy)]
enum DefaultAction {
    Default,
    Ignore,
}

fn set_action(signal: i32, action: DefaultAction) {
    let action = match action {
        DefaultAction::Default => libc::SIG_DFL,
        DefaultAction::Ignore => libc::SIG_IGN,
    };
    // SAFETY: sets no handler, and is async-signal-safe.
    unsafe { libc::signal(signal, action) };
}

fn handled_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set; the numbers are valid signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in HANDLED_SIGNALS {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
