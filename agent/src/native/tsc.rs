//! The clock of the engine: the processor's time stamp counter where it can be trusted, else the
//! kernel's monotonic clock.
//!
//! A tick is one count of either. The counter is trusted when CPUID says that it runs at one rate
//! in all states of the processor, and the kernel has not struck it from its list of clocks.
#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::time::Duration;

use crate::sys::time::{self, SECOND_NS};

/// Where the kernel lists the clocks that it trusts.
#[cfg(target_arch = "x86_64")]
const CLOCK_SOURCES_FILE: &str =
    "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// How long the counter is held against the kernel's clock: with readings that are 50 ns wide the
/// rate is then right to two parts in a million.
const CALIBRATION_TIME: Duration = Duration::from_millis(25);
/// Looks for one reading of both clocks: the fastest was not put aside meanwhile.
const READ_ATTEMPTS: u32 = 16;
/// Ticks are turned into nanoseconds by a factor with so many bits behind the point.
const FRACTION_BITS: u32 = 32;
/// The last part of a wait is spent looking at the clock: waking up takes tens of microseconds.
const SPIN_NS: u64 = 200_000;

/// Which clock stamps the I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSource {
    /// The time stamp counter.
    Tsc,
    /// `clock_gettime` of `CLOCK_MONOTONIC_RAW`.
    Kernel,
}

/// A clock with its rate; a copy is as good as the original.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: ClockSource,
    /// Nanoseconds of a tick, with `POINT` bits behind the point.
    factor: u64,
    /// Ticks of a nanosecond, likewise: a product is much cheaper than a quotient.
    inverse: u64,
}

impl Clock {
    /// The best clock of this host; takes some 25 ms.
    #[must_use]
    pub fn calibrated() -> Self {
        if !may_trust_counter() {
            return Self::of_kernel();
        }
        let (from_ns, from) = read_both_clocks();
        std::thread::sleep(CALIBRATION_TIME);
        let (to_ns, to) = read_both_clocks();
        let (passed_ns, ticks) = (to_ns - from_ns, to.saturating_sub(from));
        if ticks == 0 || passed_ns / ticks > 1000 {
            return Self::of_kernel();
        }
        let factor = ((u128::from(passed_ns) << FRACTION_BITS) / u128::from(ticks)) as u64;
        let inverse = ((u128::from(ticks) << FRACTION_BITS) / u128::from(passed_ns.max(1))) as u64;
        Self { source: ClockSource::Tsc, factor, inverse }
    }

    /// The kernel's clock, whose tick is a nanosecond.
    #[must_use]
    pub fn of_kernel() -> Self {
        Self {
            source: ClockSource::Kernel,
            factor: 1 << FRACTION_BITS,
            inverse: 1 << FRACTION_BITS,
        }
    }

    /// Which it is.
    #[must_use]
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Now.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        match self.source {
            ClockSource::Tsc => counter(),
            ClockSource::Kernel => time::mono_raw_ns(),
        }
    }

    /// How many nanoseconds so many ticks are.
    #[inline]
    #[must_use]
    pub fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.factor)) >> FRACTION_BITS) as u64
    }

    /// How many ticks so many nanoseconds are.
    #[inline]
    #[must_use]
    pub fn ticks_of(&self, ns: u64) -> u64 {
        ((u128::from(ns) * u128::from(self.inverse)) >> FRACTION_BITS) as u64
    }

    /// Wait until the clock shows `until`: asleep first, awake for the last part.
    pub fn wait_until(&self, until: u64) {
        loop {
            let left_ns = self.ns(until.saturating_sub(self.ticks()));
            if left_ns <= SPIN_NS {
                break;
            }
            std::thread::sleep(Duration::from_nanos((left_ns - SPIN_NS).min(SECOND_NS)));
        }
        while self.ticks() < until {
            spin_loop();
        }
    }
}

/// The kernel's clock and the counter at the same moment.
fn read_both_clocks() -> (u64, u64) {
    let looks = (0..READ_ATTEMPTS).map(|_| {
        let before_ns = time::mono_raw_ns();
        let ticks = counter();
        let after_ns = time::mono_raw_ns();
        (after_ns - before_ns, before_ns + (after_ns - before_ns) / 2, ticks)
    });
    looks.min().map_or((0, 0), |(_, ns, ticks)| (ns, ticks))
}

#[cfg(target_arch = "x86_64")]
fn may_trust_counter() -> bool {
    use std::arch::x86_64::__cpuid;
    const MAX_EXTENDED_LEAF: u32 = 0x8000_0000;
    const POWER_LEAF: u32 = 0x8000_0007;
    const INVARIANT_TSC_BIT: u32 = 1 << 8;
    // SAFETY: every x86-64 processor has the CPUID instruction; it changes nothing.
    #[allow(unused_unsafe, reason = "newer compilers call this intrinsic safe")]
    let is_invariant = unsafe {
        __cpuid(MAX_EXTENDED_LEAF).eax >= POWER_LEAF
            && __cpuid(POWER_LEAF).edx & INVARIANT_TSC_BIT != 0
    };
    // Where the list cannot be read, CPUID alone must do.
    let clocks = std::fs::read_to_string(CLOCK_SOURCES_FILE);
    is_invariant && clocks.map_or(true, |all| all.split_whitespace().any(|clock| clock == "tsc"))
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every processor of this architecture has the instruction; it changes nothing.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn may_trust_counter() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    time::mono_raw_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_nanoseconds_turn_into_each_other() {
        for clock in [Clock::calibrated(), Clock::of_kernel()] {
            for ns in [0, 1, 999, 1_000_000_007, 3600 * SECOND_NS] {
                let back = clock.ns(clock.ticks_of(ns));
                // Both factors are right to 2^-31.
                assert!(back.abs_diff(ns) <= 2 + (ns >> 29), "{clock:?} makes {ns} ns {back} ns");
            }
        }
    }

    #[test]
    fn both_clocks_run_equally_fast() {
        let clock = Clock::calibrated();
        let look = || (time::mono_raw_ns(), clock.ticks(), time::mono_raw_ns());
        let from = look();
        std::thread::sleep(Duration::from_millis(20));
        let to = look();
        let ours = clock.ns(to.1 - from.1);
        // Each look at the one lies between two at the other, however long those are apart.
        let (least, most) = (to.0 - from.2, to.2 - from.0);
        assert!((least - least / 50..=most + most / 50).contains(&ours), "{ours}: {least}, {most}");
    }

    #[test]
    fn no_wait_ends_early() {
        let clock = Clock::calibrated();
        let until = clock.ticks() + clock.ticks_of(1_000_000);
        clock.wait_until(until);
        assert!(clock.ticks() >= until);
        clock.wait_until(0);
    }
}
