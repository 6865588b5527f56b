//! What was found in blocks that were read and held against what was written.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::contents::{BlockState, ExpectedWrite};
use crate::sys::thread::lock;

/// Sentences about what was found; all are counted.
const MAX_FAULTS_NAMED: usize = 8;
/// What can be wrong with a block, in the order of the counters.
pub const FAULT_KINDS: [&str; 4] = ["torn", "stale", "misplaced", "corrupt"];

/// Blocks by what was found in them; all threads count here.
#[derive(Debug, Default)]
pub struct BlockFindings {
    checked: AtomicU64,
    fault_counts: [AtomicU64; FAULT_KINDS.len()],
    first_faults: Mutex<Vec<String>>,
}

impl BlockFindings {
    /// A block was looked at.
    pub fn add_checked(&self) {
        self.checked.fetch_add(1, Ordering::Relaxed);
    }

    /// What was found in a block of the target `name` at an offset; nothing where it is sound.
    #[cold]
    pub fn record_fault(
        &self,
        found: BlockState,
        name: &str,
        offset: u64,
        expected: ExpectedWrite,
    ) {
        let kind = match found {
            BlockState::Ok => return,
            BlockState::Torn { .. } => 0,
            BlockState::Stale { .. } => 1,
            BlockState::Misplaced { .. } => 2,
            BlockState::Corrupt { .. } => 3,
        };
        self.fault_counts[kind].fetch_add(1, Ordering::Relaxed);
        let mut first = lock(&self.first_faults);
        if first.len() < MAX_FAULTS_NAMED {
            first.extend(found.message(name, offset, expected));
        }
    }

    /// What was found, as the end tells it.
    #[must_use]
    pub fn results(&self) -> Value {
        let mut results = json!({
            "checked": self.checked.load(Ordering::Relaxed),
            "first": *lock(&self.first_faults),
        });
        for (kind, count) in FAULT_KINDS.iter().zip(&self.fault_counts) {
            results[kind] = count.load(Ordering::Relaxed).into();
        }
        results
    }
}
