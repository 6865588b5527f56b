//! Who does what: jobs become lanes of workers, as many as there are processors.

use std::fs;
use std::sync::{Arc, Mutex};

use super::contents::ContentsWriter;
use super::counts::{ArrivalMode, WorkerCounters};
use super::lane::{Lane, ThinkTime};
use super::queue::IoKind;
use super::source::{OpFeed, OpStream};
use super::spec::{JobSpec, Method, Spec};
use super::target::Targets;
use super::tsc::Clock;
use crate::probe::counters::parse_meminfo;

/// I/Os under way in one ring: the most entries that the kernel lets a ring have.
pub const MAX_RING_DEPTH: u32 = 32_768;
/// Threads of all jobs that are done with plain calls; more would measure the scheduler.
pub const MAX_LANES: usize = 2048;
/// Buffers may take one part of so many of all memory: the rest is for what is measured.
const MEMORY_DIVISOR: u64 = 4;

/// One thread's work.
#[derive(Debug)]
pub struct ThreadPlan {
    /// How it asks the kernel.
    pub method: Method,
    /// Its parts of jobs.
    pub lanes: Vec<Lane>,
    /// Which jobs these are.
    pub jobs: Vec<u32>,
}

/// The work of all threads, and how deep that is.
#[derive(Debug)]
pub struct Plan {
    /// By thread.
    pub threads: Vec<ThreadPlan>,
    /// I/Os under way at a time, as the jobs ask for them.
    pub depth_requested: u64,
    /// As many as there can be.
    pub depth_used: u64,
}

impl Plan {
    /// Share the jobs out, the method of each being known; or all that speaks against it.
    pub fn of(
        spec: &Spec,
        targets: &Targets,
        methods: &[Method],
        (most, clock): (usize, Clock),
        notes: &mut Vec<String>,
    ) -> Result<Self, Vec<String>> {
        let mut faults: Vec<String> = memory_fault(spec).into_iter().collect();
        let mut sources = Vec::with_capacity(spec.jobs.len());
        for (nth, (job, places)) in spec.jobs.iter().zip(&targets.by_job).enumerate() {
            match OpStream::new(job, places, clock) {
                Ok(source) => {
                    let part = (nth as f64 + spec.later) / spec.jobs.len() as f64;
                    sources.push(source.delayed(part));
                }
                Err(found) => {
                    faults.extend(found.iter().map(|fault| format!("jobs[{nth}]: {fault}")));
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut threads = Vec::new();
        let is_async = |method: &Method| *method != Method::Sync;
        let wanted = methods.iter().filter(|method| is_async(method)).count().min(most);
        let mut turn = 0;
        for (nth, ((job, source), &method)) in
            spec.jobs.iter().zip(sources).zip(methods).enumerate()
        {
            let depth =
                if method == Method::Sync { lane_count(spec, methods, job) } else { job.depth };
            if method == Method::Sync {
                threads.extend(sync_thread_plans(job, nth as u32, source, depth, clock));
                continue;
            }
            let lane =
                new_lane(job, OpFeed::Own(Box::new(source)), depth, think_time_of(job, clock));
            if turn < wanted {
                threads.push(ThreadPlan { method, lanes: vec![lane], jobs: vec![nth as u32] });
            } else {
                let mut seats = threads.iter_mut().filter(|thread| is_async(&thread.method));
                if let Some(thread) = seats.nth(turn % wanted) {
                    thread.lanes.push(lane);
                    thread.jobs.push(nth as u32);
                }
            }
            turn += 1;
        }
        let asked = spec.jobs.iter().map(|job| u64::from(job.depth)).sum();
        threads.iter_mut().for_each(limit_ring_depth);
        let lanes = threads.iter().flat_map(|thread| &thread.lanes);
        let used = lanes.map(|lane| u64::from(lane.depth)).sum();
        if used < asked {
            notes.push(format!(
                "Of a depth of {asked}, {used} can be had: a ring holds {MAX_RING_DEPTH} I/Os, and \
                 plain calls are made by at most {MAX_LANES} threads."
            ));
        }
        Ok(Self { threads, depth_requested: asked, depth_used: used })
    }
}

impl ThreadPlan {
    /// Counters for what its lanes do.
    #[must_use]
    pub fn scores(&self, spec: &Spec) -> WorkerCounters {
        let jobs = || self.jobs.iter().map(|&nth| &spec.jobs[nth as usize]);
        let does = [
            (IoKind::Read, jobs().any(JobSpec::reads)),
            (IoKind::Write, jobs().any(JobSpec::writes)),
            (IoKind::Trim, jobs().any(|job| job.rw.trims())),
            (IoKind::Sync, jobs().any(JobSpec::syncs)),
        ];
        let acts: Vec<IoKind> =
            does.iter().filter(|(_, does)| *does).map(|(act, _)| *act).collect();
        let is_timed = jobs().any(JobSpec::is_timed);
        WorkerCounters::new(
            &acts,
            if is_timed { ArrivalMode::Scheduled } else { ArrivalMode::Unscheduled },
        )
    }
}

/// A thread for each I/O under way; they share the job's stream.
fn sync_thread_plans(
    job: &JobSpec,
    nth: u32,
    source: OpStream,
    threads: u32,
    clock: Clock,
) -> Vec<ThreadPlan> {
    let thread = |feed, think| ThreadPlan {
        method: Method::Sync,
        lanes: vec![new_lane(job, feed, 1, think)],
        jobs: vec![nth],
    };
    if threads == 1 {
        return vec![thread(OpFeed::Own(Box::new(source)), think_time_of(job, clock))];
    }
    let (shared, think) = (Arc::new(Mutex::new(source)), think_time_of(job, clock));
    let all = (0..threads).map(|_| thread(OpFeed::Shared(Arc::clone(&shared)), think.clone()));
    all.collect()
}

/// The pauses of a job; None where it makes none.
fn think_time_of(job: &JobSpec, clock: Clock) -> Option<Arc<ThinkTime>> {
    let pause = clock.ticks_of(job.think_us * 1000);
    (job.think_us > 0).then(|| Arc::new(ThinkTime::new(job.think_every, pause)))
}

fn new_lane(job: &JobSpec, feed: OpFeed, depth: u32, think: Option<Arc<ThinkTime>>) -> Lane {
    Lane {
        feed,
        depth,
        block_bytes: if job.rw.trims() { 0 } else { job.largest_block() },
        is_paced: job.is_paced(),
        is_timed: job.is_timed(),
        think,
        contents: job.writes().then(|| ContentsWriter::new(&job.contents(), job.seed)),
        has_write_half: job.reads() && job.writes(),
        is_verified: job.verify,
    }
}

/// As many threads as the job is deep, unless all jobs together would have too many.
fn lane_count(spec: &Spec, methods: &[Method], job: &JobSpec) -> u32 {
    let plain = || spec.jobs.iter().zip(methods).filter(|(_, method)| **method == Method::Sync);
    let all: u64 = plain().map(|(job, _)| u64::from(job.depth)).sum();
    if all <= MAX_LANES as u64 {
        return job.depth;
    }
    // One each, and what is left in proportion to what they want beyond that.
    let jobs = plain().count() as u64;
    let (left, wanted) = ((MAX_LANES as u64).saturating_sub(jobs), all - jobs);
    1 + (u64::from(job.depth - 1) * left / wanted.max(1)) as u32
}

/// Have the lanes of one ring be no deeper together than a ring can be: each one deep, and all that
/// is left shared in proportion to what they want beyond that.
fn limit_ring_depth(thread: &mut ThreadPlan) {
    let all: u64 = thread.lanes.iter().map(|lane| u64::from(lane.depth)).sum();
    if all <= u64::from(MAX_RING_DEPTH) {
        return;
    }
    let lanes = thread.lanes.len() as u64;
    let (left, wanted) = (u64::from(MAX_RING_DEPTH) - lanes, all - lanes);
    for lane in &mut thread.lanes {
        lane.depth = 1 + (u64::from(lane.depth - 1) * left / wanted) as u32;
    }
}

fn memory_fault(spec: &Spec) -> Option<String> {
    let wanted: u64 = spec
        .jobs
        .iter()
        .filter(|job| !job.rw.trims())
        .map(|job| {
            let halves = if job.reads() && job.writes() { 2 } else { 1 };
            halves * u64::from(job.depth) * u64::from(job.largest_block())
        })
        .sum();
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let most = parse_meminfo(&text).total_bytes? / MEMORY_DIVISOR;
    (wanted > most).then(|| {
        format!(
            "All blocks under way take {wanted} bytes, and {most} is a quarter of this host's \
             memory; give less depth, smaller blocks or fewer jobs."
        )
    })
}
