//! The two clocks of every message.

use serde::Serialize;

use crate::sys::time;

/// The clocks, read one right after the other.
///
/// `CLOCK_REALTIME` and `CLOCK_BOOTTIME` are slewed alike and both count a suspended host's time, so
/// their difference changes only when somebody sets the clock, by as much as it was set.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ClockStamp {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub real_ns: u64,
    /// `CLOCK_BOOTTIME` at `real_ns`, nanoseconds.
    pub boot_ns: u64,
}

impl ClockStamp {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let looks = (0..READ_ATTEMPTS).map(|_| {
            let before_ns = time::boot_ns();
            let (mono_ns, real_ns) = (time::mono_ns(), time::real_ns());
            let width_ns = time::boot_ns().saturating_sub(before_ns);
            (width_ns, Self { mono_ns, real_ns, boot_ns: before_ns + width_ns / 2 })
        });
        let best = looks.min_by_key(|&(width_ns, _)| width_ns);
        best.map_or(Self { mono_ns: 0, real_ns: 0, boot_ns: 0 }, |(_, stamp)| stamp)
    }
}

/// Looks for one reading: the fastest was not put aside between two clocks.
const READ_ATTEMPTS: u32 = 8;

/// Both clocks, and what the processor counts: two readings tell how fast that is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ClockReading {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub real_ns: u64,
    /// The time stamp counter at `mono_ns`, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsc: Option<u64>,
}

impl ClockReading {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let counted = (0..READ_ATTEMPTS).filter_map(|_| {
            let before_ns = time::mono_ns();
            let tsc = time::stamp_counter()?;
            Some((time::mono_ns() - before_ns, before_ns, tsc))
        });
        let best = counted.min();
        Self {
            mono_ns: best.map_or_else(time::mono_ns, |(_, mono_ns, _)| mono_ns),
            real_ns: time::real_ns(),
            tsc: best.map(|(_, _, tsc)| tsc),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_a_stamp_keep_their_distance() {
        let distance = |stamp: ClockStamp| stamp.real_ns.wrapping_sub(stamp.boot_ns).cast_signed();
        let first = distance(ClockStamp::now());
        std::thread::sleep(std::time::Duration::from_millis(20));
        let moved_ns = distance(ClockStamp::now()) - first;
        // Nobody sets the clock here; each look may have been put aside, though not by this much.
        assert!(moved_ns.abs() < 1_000_000, "{moved_ns} ns");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn two_readings_tell_the_rate_of_the_counter() {
        let first = ClockReading::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let later = ClockReading::now();
        let passed_ns = later.mono_ns - first.mono_ns;
        let counted = later.tsc.unwrap() - first.tsc.unwrap();
        assert!(passed_ns >= 20_000_000);
        // From the slowest processor of this architecture to more than any has.
        assert!((passed_ns / 10..passed_ns * 10).contains(&counted), "{counted} in {passed_ns} ns");
    }
}
