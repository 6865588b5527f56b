//! Who works on a phase, the gate its ranks start from together, and how it is stopped.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::sys::thread::{lock, wait_timeout};
use crate::sys::time::real_ns;

/// Phases at the same time: two would only measure each other.
const MAX_PHASES: usize = 1;
/// The gate opens this long before the start: thousands of threads have woken by then.
const GATE_LEAD_NS: u64 = 50_000_000;
/// How long a wait may trust the clock: a step of it is noticed at the next look.
const MAX_CLOCK_WAIT: Duration = Duration::from_millis(200);
/// At the end of the agent, for a rank that is stuck in the kernel; no longer can be helped.
const STUCK_PATIENCE: Duration = Duration::from_secs(10);

/// What the thread of the request and those of the ranks tell each other.
#[derive(Default)]
pub struct PhaseControl {
    state: Mutex<GateState>,
    gate: Condvar,
    state_changed: Condvar,
    stopped: AtomicBool,
}

#[derive(Default)]
struct GateState {
    ranks_at_gate: usize,
    is_open: bool,
    busy_threads: usize,
}

/// A thread that may touch files; as long as one exists, the scratch folder is not removed.
pub struct BusyGuard(Arc<PhaseControl>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.lock().busy_threads -= 1;
        self.0.state_changed.notify_all();
    }
}

impl PhaseControl {
    /// Say that one more thread may touch files.
    pub fn mark_busy(self: &Arc<Self>) -> BusyGuard {
        self.lock().busy_threads += 1;
        BusyGuard(Arc::clone(self))
    }

    /// Have all ranks stop after the operation they are in.
    pub fn stop(&self) {
        let state = self.lock(); // Held, so that nobody checks and then misses the notice.
        self.stopped.store(true, Ordering::Relaxed);
        drop(state);
        self.gate.notify_all();
        self.state_changed.notify_all();
    }

    /// Whether ranks are to stop.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// For a rank: wait until the gate opens; false when the phase is stopped instead.
    pub fn wait_at_gate(&self) -> bool {
        let mut state = self.lock();
        state.ranks_at_gate += 1;
        self.state_changed.notify_all();
        while !state.is_open && !self.is_stopped() {
            state = self.gate.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !self.is_stopped()
    }

    /// Wait until so many ranks are at the gate, or the phase is stopped.
    pub fn wait_for_ranks(&self, ranks: usize) {
        let mut state = self.lock();
        while state.ranks_at_gate < ranks && !self.is_stopped() {
            state = self.state_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Open the gate, shortly before the real clock shows `at_ns`.
    pub fn open_gate(&self, at_ns: u64) {
        let mut state = self.lock();
        while !self.is_stopped() {
            let early_ns = at_ns.saturating_sub(real_ns()).saturating_sub(GATE_LEAD_NS);
            if early_ns == 0 {
                break;
            }
            let patience = Duration::from_nanos(early_ns).min(MAX_CLOCK_WAIT);
            state = wait_timeout(&self.state_changed, state, patience);
        }
        state.is_open = true;
        drop(state);
        self.gate.notify_all();
    }

    /// Wait until nobody touches files any more, at most `patience`; whether that is so.
    pub fn wait_idle(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        while state.busy_threads > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = wait_timeout(&self.state_changed, state, left);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        lock(&self.state)
    }
}

/// The phases under way, by their request's id.
#[derive(Default)]
pub struct Phases(Arc<Mutex<PhaseTable>>);

#[derive(Default)]
struct PhaseTable {
    closed: bool,
    entries: HashMap<u64, PhaseEntry>,
}

struct PhaseEntry {
    control: Arc<PhaseControl>,
    dirs: Vec<PathBuf>,
}

/// The place of one phase in the table; given back when dropped.
pub struct PhaseReservation {
    table: Arc<Mutex<PhaseTable>>,
    id: u64,
    /// How its threads are reached.
    pub control: Arc<PhaseControl>,
    /// Held from the reservation on, so that an end of the agent waits for a phase in preparation.
    pub busy: Option<BusyGuard>,
}

impl Drop for PhaseReservation {
    fn drop(&mut self) {
        lock(&self.table).entries.remove(&self.id);
    }
}

impl PhaseReservation {
    /// Say which folder the phase works in, for `is_in`.
    pub fn add_folder(&self, dir: &Path) {
        if let Some(entry) = lock(&self.table).entries.get_mut(&self.id) {
            entry.dirs.push(dir.to_owned());
        }
    }
}

impl Phases {
    /// Take a place for a phase; from now on it can be stopped.
    pub fn reserve(&self, id: u64) -> Result<PhaseReservation> {
        let mut table = lock(&self.0);
        if table.closed || table.entries.len() >= MAX_PHASES {
            return Err(Error::busy("a metadata phase is under way, and there is one at a time"));
        }
        let control = Arc::new(PhaseControl::default());
        let preparing = Some(control.mark_busy());
        table.entries.insert(id, PhaseEntry { control: Arc::clone(&control), dirs: Vec::new() });
        Ok(PhaseReservation { table: Arc::clone(&self.0), id, control, busy: preparing })
    }

    /// Stop a phase; false when there is none of that id.
    #[must_use]
    pub fn stop(&self, id: u64) -> bool {
        let control = lock(&self.0).entries.get(&id).map(|entry| Arc::clone(&entry.control));
        control.map(|control| control.stop()).is_some()
    }

    /// Whether a phase works in a folder.
    #[must_use]
    pub fn has_phase_in(&self, dir: &Path) -> bool {
        lock(&self.0).entries.values().any(|entry| entry.dirs.iter().any(|used| used == dir))
    }

    /// Begin none from now on, stop those under way and wait until they touch no file any more.
    pub fn stop_all(&self) {
        let mut table = lock(&self.0);
        table.closed = true;
        let controls: Vec<Arc<PhaseControl>> =
            table.entries.values().map(|entry| Arc::clone(&entry.control)).collect();
        drop(table);
        for control in &controls {
            control.stop();
        }
        for control in &controls {
            control.wait_idle(STUCK_PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_phase_at_a_time_and_its_place_comes_free() {
        let phases = Phases::default();
        let place = phases.reserve(1).unwrap();
        assert_eq!(phases.reserve(2).map(|_| ()).unwrap_err().code, "busy");
        assert!(!phases.stop(2));
        drop(place);
        assert!(phases.reserve(2).is_ok());
    }

    #[test]
    fn a_folder_is_in_use_while_a_phase_works_in_it() {
        let phases = Phases::default();
        let place = phases.reserve(1).unwrap();
        place.add_folder(Path::new("/a"));
        assert!(phases.has_phase_in(Path::new("/a")) && !phases.has_phase_in(Path::new("/b")));
        drop(place);
        assert!(!phases.has_phase_in(Path::new("/a")));
    }

    #[test]
    fn closing_stops_a_phase_and_waits_until_it_is_idle() {
        let phases = Phases::default();
        let mut place = phases.reserve(1).unwrap();
        let (control, busy) = (Arc::clone(&place.control), place.busy.take());
        let rank = std::thread::spawn(move || {
            let started = control.wait_at_gate();
            drop(busy);
            started
        });
        place.control.wait_for_ranks(1);
        phases.stop_all();
        assert!(place.control.wait_idle(Duration::ZERO));
        assert!(!rank.join().unwrap());
        drop(place);
        assert_eq!(phases.reserve(2).map(|_| ()).unwrap_err().code, "busy");
    }
}
