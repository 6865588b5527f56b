//! The engine of training-read load: accelerators take batches of samples, which loaders read ahead
//! of them, and wait for each other after every step.
//!
//! It is started as `iolab-agent training-read`, with its spec on standard input, and tells what it
//! did in the lines of the native engine. A loader is a thread that reads the files of its batch one
//! after the other; an accelerator is a thread that sleeps as long as a step computes.

mod accelerator;
mod engine;
mod loader;
mod samples;
mod spec;

pub use engine::main;
