//! The engine of checkpoints: every rank of a model writes its files, or reads what was saved.
//!
//! It is started as `iolab-agent checkpoint`, with its spec on standard input, for one phase: a
//! save, a restore, or the removal of the files. All ranks of a host begin at the common start, each
//! a thread that goes through its files one after the other, with so many requests under way as the
//! spec says. Each rank's times are told: a checkpoint is as slow as its slowest rank.

mod engine;
mod files;
mod report;
mod spec;

pub use engine::main;
