//! The slowest I/Os of a thread: a comparison for each I/O, and no allocation after the start.

use super::queue::IoKind;

/// I/Os that may be asked for.
pub const MAX_SLOWEST: u32 = 1000;

/// An I/O, in ticks of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlowIo {
    /// When it was due, or submitted where nothing is due at a time.
    pub due: u64,
    /// When it was submitted.
    pub submitted: u64,
    /// When it ended.
    pub ended: u64,
    /// Where.
    pub offset: u64,
    /// How much.
    pub bytes: u32,
    /// On which target, by its place among all.
    pub target: u32,
    /// What it did.
    pub kind: IoKind,
}

impl SlowIo {
    /// How long it took from when it was due.
    #[must_use]
    pub fn latency(&self) -> u64 {
        self.ended.saturating_sub(self.due)
    }
}

/// The slowest so far.
#[derive(Debug, Default)]
pub struct SlowestIos {
    kept: Vec<SlowIo>,
    most: usize,
    /// What an I/O must take longer than to be kept.
    threshold: u64,
    fastest_at: usize,
}

impl SlowestIos {
    /// For so many.
    #[must_use]
    pub fn new(most: u32) -> Self {
        let most = most.min(MAX_SLOWEST) as usize;
        let threshold = if most == 0 { u64::MAX } else { 0 };
        Self { kept: Vec::with_capacity(most), most, threshold, fastest_at: 0 }
    }

    /// Whether an I/O that took so long is one of them.
    #[inline]
    #[must_use]
    pub fn is_slow(&self, latency: u64) -> bool {
        latency > self.threshold
    }

    /// Keep it in the place of the fastest.
    #[cold]
    pub fn keep_slow_io(&mut self, io: SlowIo) {
        if self.kept.len() < self.most {
            self.kept.push(io);
        } else if let Some(fastest) = self.kept.get_mut(self.fastest_at) {
            *fastest = io;
        }
        if self.kept.len() == self.most {
            let fastest = self.kept.iter().enumerate().min_by_key(|(_, io)| io.latency());
            if let Some((at, io)) = fastest {
                (self.fastest_at, self.threshold) = (at, io.latency());
            }
        }
    }

    /// All of them.
    #[must_use]
    pub fn take(&mut self) -> Vec<SlowIo> {
        std::mem::take(&mut self.kept)
    }
}

/// The slowest of all threads, the slowest first.
#[must_use]
pub fn slowest_of_all(threads: impl Iterator<Item = SlowIo>, most: u32) -> Vec<SlowIo> {
    let mut all: Vec<SlowIo> = threads.collect();
    all.sort_by_key(|io| (std::cmp::Reverse(io.latency()), io.ended));
    all.truncate(most as usize);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(latency: u64) -> SlowIo {
        let (offset, bytes, target, kind) = (latency * 512, 512, 0, IoKind::Read);
        SlowIo { due: 10, submitted: 12, ended: 10 + latency, offset, bytes, target, kind }
    }

    #[test]
    fn the_slowest_are_kept_whatever_their_order() {
        for factor in [1, 7, 99] {
            let mut slowest = SlowestIos::new(5);
            for nth in 0..100 {
                let latency = (nth * factor) % 100;
                if slowest.is_slow(latency) {
                    slowest.keep_slow_io(io(latency));
                }
            }
            let all = slowest_of_all(slowest.take().into_iter(), 5);
            assert_eq!(all.iter().map(SlowIo::latency).collect::<Vec<_>>(), [99, 98, 97, 96, 95]);
        }
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_asked_for() {
        let slowest = SlowestIos::new(0);
        assert!(!slowest.is_slow(u64::MAX));
        assert!(!SlowestIos::default().is_slow(0));
    }
}
