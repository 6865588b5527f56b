//! The metadata engine: many ranks that make, look at, read and remove small files, each rank in
//! a folder of its own, one phase a request so that the controller has its barrier between them.
//!
//! A rank is a thread. Its loop makes plain system calls relative to an open folder, with names
//! that are advanced in place; it allocates nothing, takes no lock and formats nothing. Each rank
//! counts into bins of its own, which another thread reads while it goes on.

mod control;
mod load;
mod measure;
mod ranks;
mod tree;

pub use control::{PhaseReservation, Phases};
pub use load::{Phase, PhaseSpec, RankFolders};
pub use measure::{Interval, PhaseResult, run_phase};
