//! Watches: samples on a schedule of their own until they are called off.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::roots::Roots;
use crate::sampler::{Sample, Sampler};
use crate::sys::thread::lock;
use crate::trace::{TraceResult, sample_device};

/// The shortest and the longest interval: below, watching disturbs; above, it shows nothing.
const INTERVALS_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// Watches at the same time; a session needs one.
const MAX_WATCHES: usize = 8;

/// The watches under way, by their request's id.
#[derive(Default)]
pub struct Watches(Mutex<HashMap<u64, Sender<()>>>);

/// A watch that was agreed on but not begun.
pub struct Watch {
    /// Of a trace how long it may last.
    interval: Duration,
    cancelled: Receiver<()>,
}

impl Watches {
    /// Take a place for a watch; from now on it can be called off.
    pub fn reserve(&self, id: u64, interval_ms: u64) -> Result<Watch> {
        if !INTERVALS_MS.contains(&interval_ms) {
            return Err(Error::bad_request(format!(
                "an interval of {interval_ms} ms is not within {} to {} ms",
                INTERVALS_MS.start(),
                INTERVALS_MS.end()
            )));
        }
        self.reserve_every(id, Duration::from_millis(interval_ms))
    }

    /// Take a place for a trace, which is called off as a watch is, and ends by itself after that time.
    pub fn reserve_limited(&self, id: u64, wall_limit_s: f64) -> Result<Watch> {
        match Duration::try_from_secs_f64(wall_limit_s) {
            Ok(limit) if !limit.is_zero() => self.reserve_every(id, limit),
            _ => Err(Error::bad_request(format!(
                "wall_limit_s {wall_limit_s} is not a time above zero"
            ))),
        }
    }

    fn reserve_every(&self, id: u64, interval: Duration) -> Result<Watch> {
        let mut under_way = lock(&self.0);
        if under_way.len() >= MAX_WATCHES {
            return Err(Error::busy(format!("{MAX_WATCHES} watches are under way")));
        }
        if under_way.contains_key(&id) {
            return Err(Error::bad_request(format!("a watch with id {id} is under way")));
        }
        let (call_off, called_off) = channel();
        under_way.insert(id, call_off);
        Ok(Watch { interval, cancelled: called_off })
    }

    /// End a watch; it says `done` itself, after its last sample.
    pub fn cancel(&self, id: u64) -> Result<()> {
        let mut under_way = lock(&self.0);
        let known = under_way.remove(&id);
        known
            .map(|_| ())
            .ok_or_else(|| Error::bad_request(format!("no watch with id {id} is under way")))
    }
}

impl Watch {
    /// Sample what the block layer does for a device until called off, or until the trace's limit.
    pub fn trace(&self, device: &str, tell: impl FnOnce(&TraceResult)) {
        sample_device(&Roots::default(), device, self.interval, &self.cancelled, tell);
    }

    /// Sample now and then at every whole interval from now, until called off.
    ///
    /// A sample that comes late does not move those after it; one that is overtaken is left out.
    pub fn for_each_sample(&self, sampler: &mut Sampler, mut tell: impl FnMut(&Sample)) {
        let begun = Instant::now();
        loop {
            tell(&sampler.sample());
            let patience = until_next_tick(begun.elapsed(), self.interval);
            // The sender is dropped when the watch is called off; nothing is ever sent.
            if self.cancelled.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}

fn until_next_tick(since_begin: Duration, interval: Duration) -> Duration {
    let ticks = since_begin.as_nanos() / interval.as_nanos() + 1;
    let next_ns = ticks * interval.as_nanos();
    Duration::from_nanos((next_ns - since_begin.as_nanos()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_whole_intervals_from_the_beginning() {
        let ms = Duration::from_millis;
        assert_eq!(until_next_tick(ms(0), ms(100)), ms(100));
        assert_eq!(until_next_tick(ms(130), ms(100)), ms(70));
        assert_eq!(until_next_tick(ms(200), ms(100)), ms(100));
        assert_eq!(until_next_tick(ms(1_000_000_037), ms(1000)), ms(963));
    }

    #[test]
    fn an_interval_out_of_range_is_refused() {
        let watches = Watches::default();
        for interval_ms in [0, 99, 60_001, u64::MAX] {
            let error = watches.reserve(1, interval_ms).map(|_| ()).unwrap_err();
            assert_eq!(error.code, "bad-request");
        }
    }

    #[test]
    fn watches_are_few_and_each_is_called_off_once() {
        let watches = Watches::default();
        let kept: Vec<Watch> =
            (1..=8).map(|id| watches.reserve(id, 1000).expect("there is room")).collect();
        assert_eq!(watches.reserve(9, 1000).map(|_| ()).unwrap_err().code, "busy");
        assert!(watches.cancel(3).is_ok());
        assert_eq!(watches.cancel(3).unwrap_err().code, "bad-request");
        assert_eq!(
            kept[2].cancelled.recv_timeout(Duration::ZERO),
            Err(RecvTimeoutError::Disconnected)
        );
        assert_eq!(watches.reserve(4, 1000).map(|_| ()).unwrap_err().code, "bad-request");
    }
}
