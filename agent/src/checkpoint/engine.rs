//! The threads: one for each rank, and more of it where it has several requests under way.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde::Serialize;
use serde_json::json;

use super::files::{Buffer, Contents, part_path, remove};
use super::report;
use super::spec::{
    ByteRange, Durability, FileSpec, Phase, RankSpec, Spec, shares_of_threads, wanted_ranges,
};
use crate::error::io_error_text;
use crate::latency::add_by_owner;
use crate::native::counts::{ArrivalMode, WorkerCounters};
use crate::native::halt::Halt;
use crate::native::lines;
use crate::native::queue::IoKind;
use crate::native::start::{STACK_BYTES, head, reserve_files, set_up_process, start_thread};
use crate::native::tsc::Clock;
use crate::sys::block::fsync;
use crate::sys::file::close_checked;
use crate::sys::thread::set_min_timer_slack;

/// A thousand ranks with some files each fit.
const MAX_SPEC_BYTES: u64 = 64 << 20;
/// Descriptors beside one for each rank.
const RESERVED_FILES: u64 = 64;

/// Read the spec, do its phase, tell what happened.
#[must_use]
pub fn main() -> ExitCode {
    lines::run_spec_of_stdin(MAX_SPEC_BYTES, "give fewer ranks to a host", |text| {
        run_engine(Spec::parse(text)?).map_err(|fault| vec![fault])
    })
}

/// What all threads share.
pub struct Checkpoint {
    /// What is done.
    pub spec: Spec,
    /// The clock of all times.
    pub clock: Clock,
    /// The wish to end early.
    pub halt: Arc<Halt>,
    /// What is written and read.
    pub contents: Contents,
}

/// What a rank did: times are nanoseconds from the common start, or of all its calls of that kind.
#[derive(Debug, Default, Serialize)]
pub struct RankOutcome {
    /// Its number.
    pub rank: u32,
    /// When its first file was opened.
    pub begin_ns: u64,
    /// When its last call returned.
    pub end_ns: u64,
    /// Bytes of the checkpoint that it saved or restored: those around parts are not counted.
    pub bytes: u64,
    /// Files that it was done with.
    pub files: u64,
    /// Opening its files.
    pub open_ns: u64,
    /// Writing or reading.
    pub transfer_ns: u64,
    /// Flushing files and their folder.
    pub sync_ns: u64,
    /// Closing its files.
    pub close_ns: u64,
    /// Renaming its files.
    pub rename_ns: u64,
    /// Why it stopped before its last file, if it did.
    pub error: Option<String>,
}

/// The threads of the ranks, set up and waiting.
pub struct Ranks {
    /// Of all threads.
    pub counters: Vec<Arc<WorkerCounters>>,
    /// Each tells its end here.
    pub outcomes: Receiver<RankOutcome>,
    start: Vec<Sender<u64>>,
}

impl Ranks {
    /// Have all begin at that tick.
    pub fn start_at(&self, tick: u64) {
        for rank in &self.start {
            let _ = rank.send(tick);
        }
    }
}

/// One thread's memory and counters.
struct Lane {
    buffer: Buffer,
    counters: Arc<WorkerCounters>,
}

fn run_engine(spec: Spec) -> Result<(), String> {
    if spec.phase == Phase::Remove {
        return remove_files(&spec);
    }
    let files = spec.ranks.len() as u64 + RESERVED_FILES;
    reserve_files(files)?;
    let (clock, halt) = set_up_process()?;
    let checkpoint = Arc::new(Checkpoint { contents: Contents::new(&spec), clock, halt, spec });
    let ranks = start_ranks(&checkpoint)?;
    lines::print_line(&head(clock, "sync", checkpoint.spec.direct, ranks.counters.len()));
    report::report_phase(&checkpoint, &ranks, lines::requested_start_real_ns());
    Ok(())
}

fn remove_files(spec: &Spec) -> Result<(), String> {
    for file in spec.ranks.iter().flat_map(|rank| &rank.files) {
        remove(file).map_err(|error| {
            format!("{} cannot be removed: {}.", file.path, io_error_text(&error))
        })?;
    }
    lines::print_line(&json!({ "removed": true }));
    Ok(())
}

fn start_ranks(checkpoint: &Arc<Checkpoint>) -> Result<Ranks, String> {
    let (tell, outcomes) = channel();
    let (mut counters, mut start) = (Vec::new(), Vec::new());
    let spec = &checkpoint.spec;
    let kind = if spec.phase == Phase::Save { IoKind::Write } else { IoKind::Read };
    for nth in 0..spec.ranks.len() {
        let mut lanes = Vec::new();
        for _ in 0..spec.in_flight {
            let own = Arc::new(WorkerCounters::new(&[kind], ArrivalMode::Unscheduled));
            counters.push(Arc::clone(&own));
            let buffer = checkpoint.contents.buffer(spec.phase).map_err(|error| {
                format!("There is no memory for a thread: {}.", io_error_text(&error))
            })?;
            lanes.push(Lane { buffer, counters: own });
        }
        let (send, wait) = channel();
        start.push(send);
        let (shared, tell) = (Arc::clone(checkpoint), tell.clone());
        let work = move || {
            if let Ok(tick) = wait.recv() {
                let _ = tell.send(shared.run_rank(&shared.spec.ranks[nth], &mut lanes, tick));
            }
        };
        start_thread("rank", work)?;
    }
    Ok(Ranks { counters, outcomes, start })
}

impl Checkpoint {
    fn run_rank(&self, rank: &RankSpec, lanes: &mut [Lane], start: u64) -> RankOutcome {
        set_min_timer_slack();
        self.clock.wait_until(start);
        let mut outcome = RankOutcome {
            rank: rank.rank,
            begin_ns: self.clock.ns(self.clock.ticks().saturating_sub(start)),
            ..RankOutcome::default()
        };
        for file in &rank.files {
            if self.halt.is_requested() {
                break;
            }
            if let Err(error) = self.run_file(file, lanes, &mut outcome) {
                outcome.error = Some(format!("{}: {}", file.path, io_error_text(&error)));
                break;
            }
        }
        if self.publishes() && outcome.error.is_none() {
            let flushed = self.run_and_add_time(&mut outcome.sync_ns, || fsync(&File::open(".")?));
            outcome.error =
                flushed.err().map(|error| format!("the folder: {}", io_error_text(&error)));
        }
        outcome.end_ns = self.clock.ns(self.clock.ticks().saturating_sub(start));
        outcome
    }

    fn publishes(&self) -> bool {
        self.spec.phase == Phase::Save && self.spec.durable == Durability::Publish
    }

    fn run_file(
        &self,
        spec: &FileSpec,
        lanes: &mut [Lane],
        outcome: &mut RankOutcome,
    ) -> io::Result<()> {
        let saves = self.spec.phase == Phase::Save;
        let path = if self.publishes() { part_path(spec) } else { PathBuf::from(&spec.path) };
        let file = self.run_and_add_time(&mut outcome.open_ns, || {
            self.contents.open(&path, self.spec.phase)
        })?;
        let wanted = wanted_ranges(spec, &self.spec.items);
        let shares = shares_of_threads(&wanted, spec.bytes, lanes.len());
        self.run_and_add_time(&mut outcome.transfer_ns, || {
            self.transfer(&file, spec, &shares, lanes)
        })?;
        if self.halt.is_requested() {
            return Ok(());
        }
        if saves && self.spec.direct {
            // What was written beyond the end to fill its last block.
            self.run_and_add_time(&mut outcome.transfer_ns, || file.set_len(spec.bytes))?;
        }
        if saves && self.spec.durable != Durability::None {
            self.run_and_add_time(&mut outcome.sync_ns, || fsync(&file))?;
        }
        self.run_and_add_time(&mut outcome.close_ns, || close_checked(file))?;
        if self.publishes() {
            self.run_and_add_time(&mut outcome.rename_ns, || {
                fs::rename(&path, Path::new(&spec.path))
            })?;
        }
        outcome.bytes += wanted.iter().map(|range| range.end - range.start).sum::<u64>();
        outcome.files += 1;
        Ok(())
    }

    /// Move all shares of a file, each by a thread of its own; the first error of any.
    fn transfer(
        &self,
        file: &File,
        spec: &FileSpec,
        shares: &[Vec<ByteRange>],
        lanes: &mut [Lane],
    ) -> io::Result<()> {
        let (first, others) = lanes.split_at_mut(1);
        thread::scope(|scope| {
            let mut running = Vec::new();
            for (lane, share) in others.iter_mut().zip(&shares[1..]) {
                if !share.is_empty() {
                    let work = move || self.transfer_share(file, spec, share, lane);
                    running.push(
                        thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work)?,
                    );
                }
            }
            let own = self.transfer_share(file, spec, &shares[0], &mut first[0]);
            let ended = running.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread was lost")))
            });
            ended.fold(own, io::Result::and)
        })
    }

    fn transfer_share(
        &self,
        file: &File,
        spec: &FileSpec,
        share: &[ByteRange],
        lane: &mut Lane,
    ) -> io::Result<()> {
        let Lane { buffer, counters } = lane;
        let kind = if self.spec.phase == Phase::Save { IoKind::Write } else { IoKind::Read };
        let mut each = |call: &mut dyn FnMut() -> io::Result<u64>| self.count(kind, counters, call);
        for &range in share {
            match kind {
                IoKind::Write => self.contents.write(file, spec, range, buffer, &mut each)?,
                _ => self.contents.read(file, spec, range, buffer, &mut each)?,
            }
        }
        Ok(())
    }

    /// Make a request and count it; false once all is halted.
    fn count(
        &self,
        kind: IoKind,
        counters: &WorkerCounters,
        call: &mut dyn FnMut() -> io::Result<u64>,
    ) -> io::Result<bool> {
        if self.halt.is_requested() {
            return Ok(false);
        }
        counters.set_in_flight(1);
        let begun = self.clock.ticks();
        let moved = call();
        let latency_ns = self.clock.ns(self.clock.ticks().saturating_sub(begun));
        counters.set_in_flight(0);
        let Some(own) = counters.counters_of(kind) else { return Ok(true) };
        match moved {
            Ok(bytes) => {
                own.response.add(latency_ns);
                add_by_owner(&own.bytes, bytes);
                Ok(true)
            }
            Err(error) => {
                own.response.fail(error.raw_os_error());
                Err(error)
            }
        }
    }

    fn run_and_add_time<T>(&self, sum_ns: &mut u64, act: impl FnOnce() -> T) -> T {
        let begun = self.clock.ticks();
        let done = act();
        *sum_ns += self.clock.ns(self.clock.ticks().saturating_sub(begun));
        done
    }
}
