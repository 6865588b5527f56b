//! A whole block device as a target: what it is, why it may not be written, who holds it, purge.

pub mod held;
pub mod look;
pub mod objection;
pub mod signature;
pub mod users;
