//! What one thread used, and how many files all may have open.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;

use super::time::SECOND_NS;

/// Lock; a thread that panicked left nothing half done that others could not go on with.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wait for news, but no longer than `patience`; spurious wakes come as news.
pub fn wait_timeout<'a, T>(
    news: &Condvar,
    held: MutexGuard<'a, T>,
    patience: Duration,
) -> MutexGuard<'a, T> {
    news.wait_timeout(held, patience).unwrap_or_else(PoisonError::into_inner).0
}

/// What a thread or a process used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Time in its own code.
    pub user_ns: u64,
    /// Time in the kernel for it.
    pub system_ns: u64,
    /// How often it waited for something.
    pub waits: u64,
    /// How often it was put aside for another thread.
    pub preemptions: u64,
    /// How often it waited for a page to be read.
    pub major_faults: u64,
}

impl Usage {
    /// What was used after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            waits: self.waits.saturating_sub(earlier.waits),
            preemptions: self.preemptions.saturating_sub(earlier.preemptions),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }
}

/// What the calling thread used since it began.
#[must_use]
pub fn thread_usage() -> Usage {
    read_usage(libc::RUSAGE_THREAD)
}

/// What this process used, ended threads and the kernel's workers for it included.
#[must_use]
pub fn process_usage() -> Usage {
    read_usage(libc::RUSAGE_SELF)
}

/// Have waits of this thread end as soon after their time as the kernel can.
pub fn set_min_timer_slack() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Have the calling thread, which sleeps more than it runs, keep its processor when it wakes others,
/// and get one as soon as it is woken. Linux before 6.12 does neither; load is made there, too.
pub fn request_short_slices() {
    /// Longer than what it does at once, part of which is looking at the clock; far shorter than the
    /// milliseconds of others.
    const SLICE_NS: u64 = 500_000;
    const KEEP_POLICY: u64 = 0x08;
    let Ok(nice) = getpriority_process(None) else { return };
    let attributes = SchedulerAttributes {
        size: size_of::<SchedulerAttributes>() as u32,
        flags: KEEP_POLICY,
        nice,
        runtime_ns: SLICE_NS,
        ..SchedulerAttributes::default()
    };
    // SAFETY: the kernel reads `attributes`, which are of the size that they tell, and changes the
    // calling thread alone.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// The kernel's `sched_attr`, in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedulerAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Give the calling thread a table of open files of its own, with standard ones and `kept` alone.
///
/// Then no thread waits for another where files are opened and closed, nor counts who uses them.
/// What the thread opens nobody else sees; what others close is closed. Before Linux 5.9 all share
/// one table as ever.
pub fn unshare_open_files(kept: BorrowedFd) {
    const FIRST: libc::c_long = 3;
    let kept = libc::c_long::from(kept.as_raw_fd());
    let close = |first: libc::c_long, last: libc::c_long, flags: libc::c_uint| {
        // SAFETY: with the flag, which the second call needs no more, descriptors are closed in this
        // thread alone, which uses no other than it keeps.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } == 0
    };
    if close(kept + 1, libc::c_long::from(u32::MAX), libc::CLOSE_RANGE_UNSHARE) {
        close(FIRST, kept - 1, 0);
    }
}

fn read_usage(whose: libc::c_int) -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing, and an rusage of zeros is a value.
    let usage = unsafe {
        libc::getrusage(whose, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        waits: usage.ru_nvcsw as u64,
        preemptions: usage.ru_nivcsw as u64,
        major_faults: usage.ru_majflt as u64,
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_usec as u64 * 1000
}

/// Have this process be allowed at least `count` open files; EMFILE when its hard limit is lower.
pub fn allow_open_files(count: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let allows = |bound: Option<u64>| bound.is_none_or(|bound| bound >= count);
    if allows(limit.current) {
        return Ok(());
    }
    if !allows(limit.maximum) {
        return Err(Errno::MFILE.into());
    }
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(count), ..limit })?)
}
