//! The engine of KV-cache load: requests of a trace come at their times, whatever became of those
//! before; the blocks that a store of that capacity holds are read, the others written.
//!
//! It is started as `iolab-agent kv-cache`, with its spec on standard input, and tells what it did
//! in the lines of the native engine. One thread hands requests out when they are due and does
//! nothing else. Reads and writes are blocking calls of a thread each, as the engines of language
//! models make them: objects are so large that a switch of threads is nothing beside them.

mod engine;
mod lru;
mod objects;
mod spec;
mod store;

pub use engine::main;
