//! What a target needs before a run: a scratch folder, direct I/O, proven extents, cold pages.

pub mod filesystem;
pub mod pages;
pub mod removal;
pub mod scratch;
