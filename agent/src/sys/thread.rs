//! What one thread used, and how many files all may have open.

use std::io;
use std::mem::MaybeUninit;

use super::check;
use super::time::SECOND_NS;

/// What a thread used so far.
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
}

/// What the calling thread used since it began.
#[must_use]
pub fn own_usage() -> Usage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing, and an rusage of zeros is a value.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    Usage {
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
        waits: usage.ru_nvcsw as u64,
        preemptions: usage.ru_nivcsw as u64,
    }
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_usec as u64 * 1000
}

/// Have this process be allowed at least `count` open files; EMFILE when its hard limit is lower.
pub fn allow_open_files(count: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur >= count {
        return Ok(());
    }
    if limit.rlim_max < count {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    limit.rlim_cur = count;
    // SAFETY: `limit` is a valid limit for the whole call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(())
}
