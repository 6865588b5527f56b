//! What a target needs before a run: a scratch folder, direct I/O, proven extents, cold pages.

pub mod direct;
pub mod evict;
pub mod extents;
pub mod filesystem;
pub mod leave;
pub mod privacy;
pub mod removal;
pub mod scratch;
