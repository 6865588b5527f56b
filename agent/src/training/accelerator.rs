//! An accelerator: it takes batches that were read, computes, and waits for the others.
//!
//! All times follow from when things were ready, not from when a thread woke up: a step begins when
//! the last one ended for all, its batch was ready when its loader was done, and it computes for
//! exactly as long from then on. What the thread is late beyond that is the emulator's lateness.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::engine::Training;
use crate::latency::LatencyCounters;
use crate::native::halt::CHECK_INTERVAL_NS;
use crate::sys::thread::{lock, set_min_timer_slack};

/// What a thread counts beside its reads: written by it alone.
#[derive(Default)]
pub struct StepCounters {
    /// Steps, from the end of the one before for all to their own; without the first of an epoch.
    pub step: LatencyCounters,
    /// The first step of each epoch.
    pub first_step: LatencyCounters,
    /// Of steps: until the batch was read.
    pub storage_wait: LatencyCounters,
    /// Of steps: until all others had ended theirs.
    pub barrier_wait: LatencyCounters,
    /// Of steps: by how much the emulator ended the computation too late.
    pub lateness: LatencyCounters,
    /// Parts of files, from their opening to the last byte.
    pub file_read: LatencyCounters,
    /// Batches, from when their loader could begin to the last byte.
    pub batch_load: LatencyCounters,
}

/// What an accelerator has of its batches.
#[derive(Debug, Default)]
struct Queue {
    epoch: u64,
    /// Batches of the epoch that it took.
    taken: u64,
    /// By batch of the epoch, when it was ready; 0 while it is not.
    ready: Vec<u64>,
    is_over: bool,
}

/// One accelerator, as its loaders know it.
#[derive(Debug, Default)]
pub struct Accelerator {
    queue: Mutex<Queue>,
    has_batch: Condvar,
    has_room: Condvar,
}

impl Accelerator {
    /// Wait until a loader may begin a batch; false when all is over.
    pub fn wait_for_room(&self, epoch: u64, batch: u64, loaders: u64, prefetch: u64) -> bool {
        let loader = batch % loaders;
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_over {
                return false;
            }
            // Its own batches of the epoch that were taken.
            let taken = (queue.taken + loaders - 1).saturating_sub(loader) / loaders;
            if queue.epoch == epoch && batch / loaders < taken + prefetch && !queue.ready.is_empty()
            {
                return true;
            }
            queue = wait(&self.has_room, queue);
        }
    }

    /// A batch was read.
    pub fn set_ready(&self, batch: u64, now: u64) {
        lock(&self.queue).ready[batch as usize] = now;
        self.has_batch.notify_all();
    }

    /// Begin an epoch of so many batches.
    fn begin_epoch(&self, epoch: u64, steps: u64) {
        let mut queue = lock(&self.queue);
        (queue.epoch, queue.taken) = (epoch, 0);
        queue.ready.clear();
        queue.ready.resize(steps as usize, 0);
        drop(queue);
        self.has_room.notify_all();
    }

    /// Take the next batch when it is there: when it was; None when all is over.
    fn take_batch(&self, batch: u64) -> Option<u64> {
        let mut queue = lock(&self.queue);
        loop {
            if queue.is_over {
                return None;
            }
            let ready = queue.ready[batch as usize];
            if ready > 0 {
                queue.taken = batch + 1;
                drop(queue);
                self.has_room.notify_all();
                return Some(ready);
            }
            queue = wait(&self.has_batch, queue);
        }
    }

    /// Nothing more is begun.
    pub fn end(&self) {
        lock(&self.queue).is_over = true;
        self.has_batch.notify_all();
        self.has_room.notify_all();
    }
}

/// Where accelerators wait until all of them have ended their step.
#[derive(Debug, Default)]
pub struct Barrier {
    state: Mutex<BarrierState>,
    is_open: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    arrived: u32,
    generation: u64,
    opened_at: u64,
    is_over: bool,
}

impl Barrier {
    /// Arrive, and wait for all `count`: when the last of them arrived; None when all is over.
    pub fn wait_for_all(&self, count: u32, now: u64) -> Option<u64> {
        let mut state = lock(&self.state);
        state.arrived += 1;
        if state.arrived == count {
            state.arrived = 0;
            state.generation += 1;
            state.opened_at = now;
            drop(state);
            self.is_open.notify_all();
            return Some(now);
        }
        let own = state.generation;
        while state.generation == own {
            if state.is_over {
                return None;
            }
            state = wait(&self.is_open, state);
        }
        // Nobody passes the next before all have arrived there, this one too.
        Some(state.opened_at)
    }

    /// Nobody waits any longer.
    pub fn end(&self) {
        lock(&self.state).is_over = true;
        self.is_open.notify_all();
    }
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    let limit = Duration::from_nanos(CHECK_INTERVAL_NS);
    condition.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner).0
}

impl Training {
    /// Make steps of one accelerator from `start` until all is over; times are in ticks.
    pub fn make_steps(&self, number: u32, start: u64, deadline: u64) {
        set_min_timer_slack();
        let (own, counters) =
            (&self.accelerators[number as usize], &self.step_counters[number as usize]);
        let compute = self.clock.ticks_of(self.spec.compute_ns);
        let mut began = start;
        self.wait_awake(start);
        for epoch in 0.. {
            own.begin_epoch(epoch, self.steps);
            for step in 0..self.steps {
                let Some(ready) = own.take_batch(step) else { return };
                let computed = ready.max(began) + compute;
                if computed >= deadline || !self.wait_awake(computed) {
                    return;
                }
                let now = self.clock.ticks();
                let Some(ended) = self.end_step(now) else { return };
                let ns = |ticks: u64| self.clock.ns(ticks);
                let parts = StepParts {
                    step_ns: ns(ended.saturating_sub(began)),
                    storage_ns: ns(ready.saturating_sub(began)),
                    late_ns: ns(now.saturating_sub(computed)),
                    barrier_ns: ns(ended.saturating_sub(now)),
                };
                if let Some(lateness) = &counters.0.lateness {
                    lateness.add(parts.late_ns);
                }
                parts.count(&counters.1, step == 0);
                self.epochs.add_step(epoch, step == 0, &parts);
                began = ended;
            }
        }
    }

    fn end_step(&self, now: u64) -> Option<u64> {
        if self.spec.barrier {
            self.barrier.wait_for_all(self.spec.accelerators, now)
        } else {
            Some(now)
        }
    }

    /// Wait for a moment; false when all is over before.
    fn wait_awake(&self, until: u64) -> bool {
        let step = self.clock.ticks_of(CHECK_INTERVAL_NS);
        loop {
            let now = self.clock.ticks();
            if self.is_over() {
                return false;
            }
            if until <= now + step {
                self.clock.wait_until(until);
                return true;
            }
            self.clock.wait_until(now + step);
        }
    }
}

/// What a step consists of beside the computation.
#[allow(clippy::struct_field_names, reason = "units stand last")]
pub struct StepParts {
    /// All of it.
    pub step_ns: u64,
    /// Until the batch was there.
    pub storage_ns: u64,
    /// After the computation should have ended.
    pub late_ns: u64,
    /// Until all others had ended.
    pub barrier_ns: u64,
}

impl StepParts {
    fn count(&self, counters: &StepCounters, is_first: bool) {
        if is_first {
            counters.first_step.add(self.step_ns);
            return;
        }
        counters.step.add(self.step_ns);
        counters.storage_wait.add(self.storage_ns);
        counters.barrier_wait.add(self.barrier_ns);
        counters.lateness.add(self.late_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn a_loader_is_so_many_batches_ahead_and_no_more() {
        let one = Accelerator::default();
        one.begin_epoch(0, 12);
        let may = |batch: u64| {
            let mut queue = lock(&one.queue);
            let taken = (queue.taken + 1).saturating_sub(batch % 2) / 2;
            queue.ready[0] = 1;
            batch / 2 < taken + 2
        };
        assert_eq!((0..12).filter(|&batch| may(batch)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(one.take_batch(0), Some(1));
        // The first loader's first batch was taken: it may begin its third, the other not.
        assert_eq!((0..12).filter(|&batch| may(batch)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert!(one.wait_for_room(0, 4, 2, 2));
        one.end();
        assert!(!one.wait_for_room(0, 5, 2, 2));
    }

    #[test]
    fn all_pass_a_barrier_with_the_time_of_the_last() {
        let barrier = Arc::new(Barrier::default());
        let threads: Vec<_> = (1..=4_u64)
            .map(|at| {
                let barrier = Arc::clone(&barrier);
                thread::spawn(move || {
                    (0..50)
                        .map(|round| barrier.wait_for_all(4, round * 10 + at))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let passed: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(passed.iter().all(|one| *one == passed[0] && one.len() == 50));
        barrier.end();
        assert_eq!(barrier.wait_for_all(2, 0), None);
    }
}
