//! The wish to end early: a signal ends submission, so that all that was measured is still told.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::tsc::Clock;
use crate::sys::signal::{self, SignalEvent};

/// Nobody sleeps longer than this without a look at the wish.
pub const CHECK_INTERVAL_NS: u64 = 50_000_000;
/// Between two waits for a signal; any time would do.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(3600);
/// The exit code of a process that ends by a signal's wish is that much above its number, as
/// shells have it.
const CODE_SIGNAL: i32 = 128;

/// When submission is to end, whatever the time that was planned.
#[derive(Debug)]
pub struct Halt {
    /// In ticks; the largest number as long as nobody wishes it.
    at_ticks: AtomicU64,
}

impl Default for Halt {
    fn default() -> Self {
        Self { at_ticks: AtomicU64::new(u64::MAX) }
    }
}

impl Halt {
    /// One that INT, TERM and HUP wish for, which all threads have blocked. The second of these
    /// ends the process at once.
    pub fn on_signals(clock: Clock) -> io::Result<Arc<Self>> {
        let halt = Arc::new(Self::default());
        let own = Arc::clone(&halt);
        thread::Builder::new().name("signals".into()).spawn(move || own.wait_for_signals(clock))?;
        Ok(halt)
    }

    /// When, in ticks; later than everything as long as nobody wishes it.
    #[inline]
    #[must_use]
    pub fn at_ticks(&self) -> u64 {
        self.at_ticks.load(Ordering::Relaxed)
    }

    /// Whether anybody wishes it.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.at_ticks() != u64::MAX
    }

    /// Wish it from that tick on; the earliest wish counts.
    pub fn request(&self, now: u64) {
        self.at_ticks.fetch_min(now, Ordering::Relaxed);
    }

    fn wait_for_signals(&self, clock: Clock) {
        loop {
            match signal::wait_for_signal(SIGNAL_PATIENCE) {
                SignalEvent::End(number) if self.is_requested() => {
                    process::exit(CODE_SIGNAL + number)
                }
                SignalEvent::End(_) => self.request(clock.ticks()),
                SignalEvent::Child | SignalEvent::Undo | SignalEvent::Nothing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_wish_counts() {
        let halt = Halt::default();
        assert!(!halt.is_requested());
        for (wished, at) in [(70, 70), (50, 50), (60, 50)] {
            halt.request(wished);
            assert!(halt.is_requested());
            assert_eq!(halt.at_ticks(), at);
        }
    }
}
