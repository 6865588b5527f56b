//! The engine of objects: requests of S3 to a server, signed by version 4, over connections that
//! are kept, with TLS or without.
//!
//! It is started as `iolab-agent objects`, with its spec on standard input, and tells what it did
//! in lines of JSON. Who signs stands in the spec alone: never in an argument, a line or a message.

mod body;
mod client;
mod contents;
mod counters;
mod dataset;
mod date;
mod endpoint;
mod engine;
mod error_class;
mod generator_limit;
mod http;
mod lane;
mod listing;
mod load;
pub mod null_server;
mod report;
mod signature;
mod spec;
mod tasks;
mod transport;
mod worker;
mod writer;
mod xml;

use std::process::ExitCode;

use crate::native::lines;
use spec::{Spec, Task};

/// Of a spec: it has no list that grows.
const MAX_SPEC_BYTES: u64 = 4 << 20;

/// Read the spec, do it, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    lines::run_spec_of_stdin(MAX_SPEC_BYTES, "give fewer endpoints", |text| {
        Spec::parse(text).and_then(|spec| run_task(&spec))
    })
}

fn run_task(spec: &Spec) -> Result<(), Vec<String>> {
    match spec.task {
        Task::Check => tasks::check(spec),
        Task::CreateBucket => tasks::create_bucket(spec),
        Task::List => tasks::list_objects(spec),
        Task::ListPrefixes => tasks::list_prefixes(spec),
        Task::Delete => tasks::delete(spec),
        Task::PlanBytes => tasks::plan_bytes(spec),
        Task::Load => engine::run_load(spec),
        Task::GeneratorLimit => generator_limit::measure_generator_limit(spec),
        Task::Layout => engine::lay_out(spec),
    }
}
