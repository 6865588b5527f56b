//! How each engine of this program begins: its process set up, its head told, its start waited for.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use serde::Serialize;
use serde_json::{Value, json};

use super::halt::{CHECK_INTERVAL_NS, Halt};
use super::tsc::{Clock, ClockSource};
use crate::error::io_error_text;
use crate::sys::block::allowed_processors;
use crate::sys::signal;
use crate::sys::thread::allow_open_files;
use crate::sys::time::{real_ns, sleep_until_real};

/// Load of blocking threads is set up so long before the start.
const START_LEAD_NS: u64 = 20_000_000;
/// A thread only calls the kernel.
pub const STACK_BYTES: usize = 256 << 10;

/// The clock of all times and the wish to end early. There may be no other thread yet: it would
/// take the signals.
pub fn set_up_process() -> Result<(Clock, Arc<Halt>), String> {
    signal::block_handled();
    signal::restore_sigpipe();
    let clock = Clock::calibrated();
    Ok((clock, Halt::on_signals(clock).map_err(|error| no_thread(&error))?))
}

/// Have so many files be open at a time.
pub fn reserve_files(files: u64) -> Result<(), String> {
    allow_open_files(files).map_err(|error| {
        format!("{files} files cannot be open at a time: {}.", io_error_text(&error))
    })
}

/// Start a thread that only calls the kernel.
pub fn start_thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let thread = thread::Builder::new().name(name.into()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| no_thread(&error))
}

/// Why there is no thread.
#[must_use]
pub fn no_thread(error: &io::Error) -> String {
    format!("A thread cannot be started: {}.", io_error_text(error))
}

/// The first line of an engine: what makes the load.
#[must_use]
pub fn head(clock: Clock, method: impl Serialize, is_direct: bool, threads: usize) -> Value {
    let has_counter = clock.source() == ClockSource::Tsc;
    json!({
        "native": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "method": method,
        "direct": is_direct,
        "timed": true,
        "clock": if has_counter { "tsc" } else { "clock_gettime" },
        "threads": threads,
        "cpus": allowed_processors(),
        "probes": { "read": null },
        "notes": [],
    })
}

/// Sleep until shortly before the start, unless all is halted; when it is. It is soon where no start
/// is asked for, or one that is past.
#[must_use]
pub fn wait_for_start(halt: &Halt, start_real_ns: Option<u64>) -> u64 {
    let start_real_ns = start_real_ns.unwrap_or(0).max(real_ns() + START_LEAD_NS);
    let gate_ns = start_real_ns - START_LEAD_NS;
    while real_ns() < gate_ns && !halt.is_requested() {
        sleep_until_real(gate_ns.min(real_ns() + CHECK_INTERVAL_NS));
    }
    start_real_ns
}
