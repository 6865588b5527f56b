//! The native engine: this program as a process of its own that makes block and file I/O, times
//! each one, and tells what it did as lines of JSON.
//!
//! It is started as `iolab-agent engine`, with its jobs on standard input; schema/wire.json
//! has both sides. What comes before the start may take its time; from the start on a worker
//! allocates nothing, takes no lock and formats nothing.

pub mod aio;
pub mod contents;
pub mod counts;
mod faults;
pub mod findings;
pub mod halt;
mod lane;
pub mod ledger;
pub mod lines;
pub mod offsets;
pub mod pace;
pub mod plan;
pub mod probe;
pub mod queue;
pub mod random;
pub mod recording;
pub mod ring;
mod slot;
pub mod slowest;
pub mod source;
pub mod spec;
pub mod start;
pub mod target;
pub mod threads;
pub mod timed;
pub mod trace;
pub mod tsc;
pub mod verify;
pub mod watch;
pub mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::sys::block::allowed_processors;
use plan::Plan;
use probe::ChosenMethods;
use spec::Spec;
use target::Targets;
use threads::{EngineContext, Threads};
use verify::Verification;

/// Of a spec; ten thousand jobs of a file each fit.
const MAX_SPEC_BYTES: u64 = 16 << 20;

/// Read the jobs, do them, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    lines::run_spec_of_stdin(MAX_SPEC_BYTES, "give fewer jobs", |text| {
        Spec::parse(text).map_err(|fault| vec![fault]).and_then(run_engine)
    })
}

/// The main flow: check, open, share out, set up, start, tell.
fn run_engine(spec: Spec) -> Result<(), Vec<String>> {
    let faults = spec.faults();
    if !faults.is_empty() {
        return Err(faults);
    }
    let (clock, halt) = start::set_up_process().map_err(|fault| vec![fault])?;
    let mut notes = Vec::new();
    let processors = allowed_processors();
    let threads = thread_count(&spec, processors, &mut notes);
    let targets = Targets::open(&spec, threads, &mut notes)?;
    let ChosenMethods { methods, reads } =
        probe::choose_methods(&spec, &targets, threads, &mut notes)?;
    let plan = Plan::of(&spec, &targets, &methods, (threads, clock), &mut notes)?;
    let depth = json!({ "asked": plan.depth_requested, "used": plan.depth_used });
    let is_direct = targets.all.iter().all(|target| target.is_direct);
    let verification = Verification::open(&spec, &targets).map_err(|fault| vec![fault])?;
    let shared = EngineContext {
        spec: Arc::new(spec),
        targets: Arc::new(targets.all),
        targets_by_job: Arc::new(targets.by_job),
        clock,
        verification: verification.map(Arc::new),
        halt,
    };
    let mut threads = Threads::set_up(&shared, plan)?;
    notes.append(&mut threads.notes);
    if !shared.spec.timed {
        notes.push("No latencies were taken: I/Os are only counted, as timed is false.".into());
    }
    let mut head = start::head(clock, methods.iter().min(), is_direct, threads.count());
    head["timed"] = shared.spec.timed.into();
    head["probes"]["read"] = json!(reads);
    head["notes"] = notes.into();
    lines::print_line(&head);
    watch::report_run(&shared, &threads, lines::requested_start_real_ns(), &depth);
    Ok(())
}

/// How many threads share the jobs. Those of the kernel that look for submissions need processors
/// as well, one beside each ring.
fn thread_count(spec: &Spec, processors: usize, notes: &mut Vec<String>) -> usize {
    if spec.sqpoll {
        notes.push(format!(
            "A thread of the kernel looks for submissions beside each ring; cpu counts it too{}.",
            if processors == 1 { ", and it shares the one processor" } else { "" }
        ));
    }
    let seats = if spec.sqpoll { (processors / 2).max(1) } else { processors };
    spec.threads.map_or(seats, |threads| threads as usize)
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod patience_tests;
#[cfg(test)]
mod set_up_tests;
