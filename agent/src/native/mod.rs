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
pub mod ring;
mod slot;
pub mod slowest;
pub mod source;
pub mod spec;
pub mod target;
pub mod threads;
pub mod timed;
pub mod trace;
pub mod tsc;
pub mod verify;
pub mod watch;
pub mod worker;

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use crate::error::io_error_text;
use crate::sys::block::allowed_processors;
use crate::sys::signal;
use halt::Halt;
use plan::Plan;
use probe::ChosenMethods;
use spec::Spec;
use target::Targets;
use threads::{EngineContext, Threads};
use tsc::{Clock, ClockSource};
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
    // Before there is any other thread, which would take the signals.
    signal::block_handled();
    signal::restore_sigpipe();
    let mut notes = Vec::new();
    let clock = Clock::calibrated();
    let halt = Halt::on_signals(clock)
        .map_err(|error| vec![format!("A thread cannot be started: {}.", io_error_text(&error))])?;
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
    lines::print_line(&json!({
        "native": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "method": methods.iter().min(),
        "direct": is_direct,
        "timed": shared.spec.timed,
        "clock": if clock.source() == ClockSource::Tsc { "tsc" } else { "clock_gettime" },
        "threads": threads.count(),
        "cpus": processors,
        "probes": { "read": reads },
        "notes": notes,
    }));
    let start = lines::requested_start_real_ns();
    watch::report_run(&shared, &threads, start, &depth);
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
