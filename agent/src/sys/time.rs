//! Clocks and absolute sleep.

use std::mem::MaybeUninit;

use rustix::io::Errno;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// `CLOCK_REALTIME` in nanoseconds since 1970.
#[must_use]
pub fn real_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME)
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn mono_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_MONOTONIC_RAW` in nanoseconds: at the hardware's rate, never slewed.
#[must_use]
pub fn mono_raw_ns() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC_RAW)
}

/// `CLOCK_BOOTTIME` in nanoseconds: as `CLOCK_MONOTONIC`, with the time of a suspended host.
#[must_use]
pub fn boot_ns() -> u64 {
    read_clock(libc::CLOCK_BOOTTIME)
}

/// What the processor's time stamp counter shows; None where it has none.
#[must_use]
pub fn stamp_counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction.
    return Some(unsafe { std::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Processor time of this process in nanoseconds, all threads.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the calling thread in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleep until `CLOCK_REALTIME` shows `until_ns`; returns at once when that is in the past.
pub fn sleep_until_real(until_ns: u64) {
    let until =
        Timespec { tv_sec: (until_ns / SECOND_NS) as _, tv_nsec: (until_ns % SECOND_NS) as _ };
    while clock_nanosleep_absolute(ClockId::Realtime, &until) == Err(Errno::INTR) {}
}

/// Kernel ticks a second in /proc/stat (`USER_HZ`); 100 where the system does not say.
#[must_use]
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&ticks| ticks > 0).unwrap_or(100)
}

/// Bytes of a page of memory.
#[must_use]
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).ok().filter(|&size| size > 0).unwrap_or(4096)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `now` is valid for writing; a zeroed timespec is a value, should the call fail.
    let now = unsafe {
        libc::clock_gettime(clock, now.as_mut_ptr());
        now.assume_init()
    };
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}
