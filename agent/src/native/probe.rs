//! Which way of asking the kernel suits each job: found out by trying, and said in the notes.

use std::fs;
use std::time::{Duration, Instant};

use super::aio;
use super::buffer::{Block, Region};
use super::queue::{Act, Queue, Request, Wait};
use super::ring::{self, Ring, Wish};
use super::spec::{JobSpec, Method, Spec, Wanted};
use super::target::{Target, Targets};
use crate::error::sentence;
use crate::sys::block::{read_block, read_block_now};

/// How long each way is tried at a time.
const TRIAL_TIME: Duration = Duration::from_millis(3);
/// How often each way is tried, in turn; the best counts, for others disturb.
const TRIALS: u32 = 4;
/// The largest read of a trial.
const MAX_TRIAL_BYTES: u32 = 1 << 20;
/// Plain calls must be so much faster to be chosen: less is chance.
const ADVANTAGE: f64 = 1.02;

/// What is wanted of a ring in a trial.
const TRIAL: Wish = Wish { depth: 1, poll: false, sqpoll: false };

/// What the kernel lets this process do.
struct Offer {
    ring: Option<String>,
    aio: Option<String>,
}

/// The method of each job; or all that speaks against those that are wanted.
pub fn methods(
    spec: &Spec,
    targets: &Targets,
    threads: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Method>, Vec<String>> {
    let offer = Offer {
        ring: ring::objection().map(|error| sentence(&error)),
        aio: aio::objection().map(|error| sentence(&error)),
    };
    let base = offer.base(spec, notes)?;
    let mut chooser = Chooser { spec, targets, base, threads, notes, known: Vec::new() };
    Ok(spec.jobs.iter().enumerate().map(|(nth, job)| chooser.choose(nth, job)).collect())
}

impl Offer {
    /// What is used where nothing else suits better.
    fn base(&self, spec: &Spec, notes: &mut Vec<String>) -> Result<Method, Vec<String>> {
        let refused = |name: &str, why: &str| {
            vec![format!("{name} is wanted, and this host gives none: {why}{}.", switch())]
        };
        match (spec.method, &self.ring, &self.aio) {
            (Wanted::Sync, ..) => Ok(Method::Sync),
            (Wanted::Libaio, _, None) => Ok(Method::Libaio),
            (Wanted::Libaio, _, Some(why)) => Err(refused("libaio", why)),
            (Wanted::IoUring | Wanted::Auto, None, _) => Ok(Method::IoUring),
            (Wanted::IoUring, Some(why), _) => Err(refused("io_uring", why)),
            (Wanted::Auto, Some(why), _) if spec.poll || spec.sqpoll => {
                Err(refused("io_uring", why))
            }
            (Wanted::Auto, Some(why), None) => {
                notes.push(format!("libaio, as io_uring is refused: {why}{}.", switch()));
                Ok(Method::Libaio)
            }
            (Wanted::Auto, Some(why), Some(other)) => {
                notes.push(format!(
                    "Plain calls, as io_uring is refused: {why}{}; libaio too: {other}.",
                    switch()
                ));
                Ok(Method::Sync)
            }
        }
    }
}

/// The switch that may have forbidden `io_uring`, where it is on.
fn switch() -> String {
    let value = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match value.trim() {
        "" | "0" => String::new(),
        on => format!(" (kernel.io_uring_disabled is {on})"),
    }
}

struct Chooser<'a> {
    spec: &'a Spec,
    targets: &'a Targets,
    base: Method,
    threads: usize,
    notes: &'a mut Vec<String>,
    /// Targets by their place, and whether they can say that an I/O would wait.
    known: Vec<(u32, bool)>,
}

impl Chooser<'_> {
    fn choose(&mut self, nth: usize, job: &JobSpec) -> Method {
        if job.rw.trims() {
            return Method::Sync;
        }
        if self.spec.method != Wanted::Auto || self.base != Method::IoUring {
            return self.base;
        }
        if self.spec.poll || self.spec.sqpoll {
            return self.base;
        }
        let Some(&place) = self.targets.of_jobs[nth].first() else { return self.base };
        if !self.is_able(place, job) {
            return Method::Sync;
        }
        if job.depth == 1 && self.spec.jobs.len() <= self.threads {
            return self.faster(place, job);
        }
        self.base
    }

    /// Whether the target can tell the ring that an I/O would wait. Where it cannot, the ring
    /// hands every I/O to a thread of the kernel, at twice the CPU.
    fn is_able(&mut self, place: u32, job: &JobSpec) -> bool {
        if let Some((_, is_able)) = self.known.iter().find(|(known, _)| *known == place) {
            return *is_able;
        }
        let target = &self.targets.all[place as usize];
        let read = trial_block(job)
            .map(|(_, block)| read_block_now(&target.file, block, job.offset_bytes));
        let errno = read.and_then(|read| read).err().and_then(|error| error.raw_os_error());
        let is_able = errno != Some(libc::EOPNOTSUPP);
        if !is_able {
            self.notes.push(format!(
                "Plain calls on {}: it cannot tell when an I/O would wait, so that io_uring would \
                 hand each to a thread of the kernel.",
                target.path.display()
            ));
        }
        self.known.push((place, is_able));
        is_able
    }

    /// One I/O at a time: whichever is faster in a short trial of reads.
    fn faster(&mut self, place: u32, job: &JobSpec) -> Method {
        let Some((plain, ring)) = trial(&self.targets.all[place as usize], job) else {
            return self.base;
        };
        let method = if plain > ring * ADVANTAGE { Method::Sync } else { Method::IoUring };
        let name = if method == Method::Sync { "Plain calls" } else { "io_uring" };
        self.notes.push(format!(
            "{name} at depth 1: in a trial of reads, {plain:.0} a second by plain calls and \
             {ring:.0} by io_uring."
        ));
        method
    }
}

fn trial_block(job: &JobSpec) -> std::io::Result<(Region, Block)> {
    let bytes = job.smallest_block().min(MAX_TRIAL_BYTES) as usize;
    let region = Region::new(bytes)?;
    let block = region.block(0, bytes);
    Ok((region, block))
}

/// Reads a second by plain calls and by a ring; None where one of them cannot be tried.
fn trial(target: &Target, job: &JobSpec) -> Option<(f64, f64)> {
    let (_region, block) = trial_block(job).ok()?;
    let bytes = block.bytes() as u64;
    let units = job.files.first().map_or(1, |file| job.region_bytes(file) / bytes).max(1);
    let place = |nth: u64| job.offset_bytes + nth % units * bytes;
    let mut ring = Ring::new(TRIAL, &[target], &[block], &mut Vec::new()).ok()?;
    let mut read_by_ring = |nth| {
        let (offset, bytes) = (place(nth), block.bytes() as u32);
        ring.push(&Request { slot: 0, act: Act::Read, target: 0, offset, block, bytes, buffer: 0 });
        let mut result = -1;
        let entered = ring.enter(Wait::One);
        ring.reap(|_, bytes| result = bytes);
        entered.is_ok() && result >= 0
    };
    let (mut best_plain, mut best_ring) = (0.0_f64, 0.0_f64);
    for _ in 0..TRIALS {
        let plain = rate(|nth| read_block(&target.file, block, place(nth)).is_ok())?;
        best_plain = best_plain.max(plain);
        best_ring = best_ring.max(rate(&mut read_by_ring)?);
    }
    Some((best_plain, best_ring))
}

/// How often something can be done in a second; None when it fails.
fn rate(mut once: impl FnMut(u64) -> bool) -> Option<f64> {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < TRIAL_TIME {
        if !once(count) {
            return None;
        }
        count += 1;
    }
    Some(count as f64 / start.elapsed().as_secs_f64())
}
