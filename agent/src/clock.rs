//! The two clocks of every message.

use serde::Serialize;

use crate::sys::time;

/// Both clocks, read one right after the other.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Stamp {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub real_ns: u64,
}

impl Stamp {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self { mono_ns: time::mono_ns(), real_ns: time::real_ns() }
    }
}

/// Looks at the counter for one reading: the fastest was not put aside meanwhile.
const LOOKS: u32 = 8;

/// Both clocks, and what the processor counts: two readings tell how fast that is.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Reading {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    pub real_ns: u64,
    /// The time stamp counter at `mono_ns`, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsc: Option<u64>,
}

impl Reading {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let counted = (0..LOOKS).filter_map(|_| {
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
    #[cfg(target_arch = "x86_64")]
    fn two_readings_tell_the_rate_of_the_counter() {
        let first = Reading::now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let later = Reading::now();
        let passed_ns = later.mono_ns - first.mono_ns;
        let counted = later.tsc.unwrap() - first.tsc.unwrap();
        assert!(passed_ns >= 20_000_000);
        // From the slowest processor of this architecture to more than any has.
        assert!((passed_ns / 10..passed_ns * 10).contains(&counted), "{counted} in {passed_ns} ns");
    }
}
