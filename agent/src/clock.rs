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
