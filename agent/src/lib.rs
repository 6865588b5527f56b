//! The agent: one static program on every host, spoken to over its stdin and stdout.
//!
//! It reads facts, samples counters, runs processes and prepares targets; it knows a job, never a
//! study. See docs/reference/wire.md for what it is asked and says.

pub mod action;
pub mod bound;
pub mod checkpoint;
pub mod clock;
pub mod connection;
pub mod device;
pub mod drive_logs;
pub mod elf;
pub mod error;
pub mod facts;
pub mod guard;
pub mod guest;
pub mod job;
pub mod keeper;
pub mod kvcache;
pub mod latency;
pub mod lease;
pub mod ledgers;
pub mod leftovers;
pub mod libraries;
pub mod load_halt;
pub mod metadata;
pub mod native;
pub mod prepare;
pub mod probe;
pub mod processor;
pub mod remnant;
pub mod request;
pub mod roots;
pub mod runs;
pub mod s3;
pub mod sampler;
pub mod serve;
pub mod sign;
pub mod sys;
pub mod token;
pub mod trace;
pub mod training;
pub mod transfer;
pub mod tree;
pub mod undo;
pub mod watch;
pub mod wire;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod trial;
