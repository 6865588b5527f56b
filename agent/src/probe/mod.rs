//! Parsers of what the kernel shows: pure functions over file text, tested with real files.

pub mod counters;
pub mod machine;
pub mod meters;
pub mod mountinfo;
pub mod process;
