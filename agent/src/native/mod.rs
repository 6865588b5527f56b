//! The native engine: this program as a process of its own that makes block and file I/O, times
//! each one, and tells what it did as lines of JSON.
//!
//! It is started as `iolab-agent engine`, with its jobs on standard input; docs/reference/wire.md
//! has both sides. What comes before the start may take its time; from the start on a worker
//! allocates nothing, takes no lock and formats nothing.

pub mod mix;
pub mod offsets;
pub mod pace;
mod permutation;
pub mod random;
mod zipf;

use std::process::ExitCode;

/// Read the jobs, do them, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(2)
}
