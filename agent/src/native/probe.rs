//! Which way of asking the kernel suits each job: found out by trying, and said in the notes.
//!
//! What it reads for that is counted, as the target's device counts it too. What is found of one
//! file holds for all of its file system.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::aio;
use super::plan::MAX_LANES;
use super::queue::{IoKind, IoRequest, Queue, Wait};
use super::ring::{self, RingOptions, UringQueue};
use super::spec::{JobSpec, Method, MethodChoice, Spec};
use super::target::{Target, Targets};
use crate::error::io_error_text;
use crate::sys::block::{IsDevice, read_block, read_block_now};
use crate::sys::buffer::{Block, Region};

/// How long each way is tried at a time.
const TRIAL_TIME: Duration = Duration::from_millis(3);
/// How often each way is tried, in turn; the best counts, for others disturb.
const TRIALS: u32 = 4;
/// The largest read of a trial.
const MAX_TRIAL_BYTES: u32 = 1 << 20;
/// Plain calls must be so much faster to be chosen: less is chance.
const MIN_ADVANTAGE: f64 = 1.02;

/// What is wanted of a ring in a trial.
const TRIAL_RING: RingOptions = RingOptions { depth: 1, poll: false, sqpoll: false };

/// What was found out.
#[derive(Debug)]
pub struct ChosenMethods {
    /// The method of each job.
    pub methods: Vec<Method>,
    /// What it took.
    pub reads: TrialReads,
}

/// Reads that moved something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TrialReads {
    /// How many.
    pub ios: u64,
    /// What they moved.
    pub bytes: u64,
}

/// What the kernel lets this process do.
struct KernelSupport {
    ring_error: Option<String>,
    aio_error: Option<String>,
}

/// The method of each job; or all that speaks against those that are wanted.
pub fn choose_methods(
    spec: &Spec,
    targets: &Targets,
    threads: usize,
    notes: &mut Vec<String>,
) -> Result<ChosenMethods, Vec<String>> {
    let offer = KernelSupport {
        ring_error: ring::unsupported_reason().map(|error| io_error_text(&error)),
        aio_error: aio::unsupported_reason().map(|error| io_error_text(&error)),
    };
    let base = offer.default_method(spec, notes)?;
    let (known, tried, reads) = (Vec::new(), Vec::new(), Cell::default());
    let mut chooser = MethodChooser {
        spec,
        targets,
        default_method: base,
        threads,
        notes,
        nowait_by_device: known,
        trial_winners: tried,
        reads,
    };
    let mut methods: Vec<Method> =
        spec.jobs.iter().enumerate().map(|(nth, job)| chooser.choose(nth, job)).collect();
    chooser.reduce_threads(&mut methods);
    let reads = chooser.reads.get();
    let plain = methods.iter().filter(|method| **method == Method::Sync).count();
    if plain > MAX_LANES {
        return Err(vec![format!(
            "{plain} jobs need plain calls, each a thread of its own, and at most {MAX_LANES} are \
             started; give fewer jobs."
        )]);
    }
    Ok(ChosenMethods { methods, reads })
}

impl TrialReads {
    /// With one more; one that moved nothing reached no device.
    fn with_read_of(self, bytes: usize) -> Self {
        if bytes == 0 {
            return self;
        }
        Self { ios: self.ios + 1, bytes: self.bytes + bytes as u64 }
    }
}

impl KernelSupport {
    /// What is used where nothing else suits better.
    fn default_method(&self, spec: &Spec, notes: &mut Vec<String>) -> Result<Method, Vec<String>> {
        let refused = |name: &str, why: &str| {
            vec![format!(
                "{name} is wanted, and this host gives none: {why}{}.",
                io_uring_sysctl_note()
            )]
        };
        match (spec.method, &self.ring_error, &self.aio_error) {
            (MethodChoice::Sync, ..) => Ok(Method::Sync),
            (MethodChoice::Libaio, _, None) => Ok(Method::Libaio),
            (MethodChoice::Libaio, _, Some(why)) => Err(refused("libaio", why)),
            (MethodChoice::IoUring | MethodChoice::Auto, None, _) => Ok(Method::IoUring),
            (MethodChoice::IoUring, Some(why), _) => Err(refused("io_uring", why)),
            (MethodChoice::Auto, Some(why), _) if spec.poll || spec.sqpoll => {
                Err(refused("io_uring", why))
            }
            (MethodChoice::Auto, Some(why), None) => {
                notes.push(format!(
                    "libaio, as io_uring is refused: {why}{}.",
                    io_uring_sysctl_note()
                ));
                Ok(Method::Libaio)
            }
            (MethodChoice::Auto, Some(why), Some(other)) => {
                notes.push(format!(
                    "Plain calls, as io_uring is refused: {why}{}; libaio too: {other}.",
                    io_uring_sysctl_note()
                ));
                Ok(Method::Sync)
            }
        }
    }
}

/// The switch that may have forbidden `io_uring`, where it is on.
fn io_uring_sysctl_note() -> String {
    let value = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match value.trim() {
        "" | "0" => String::new(),
        on => format!(" (kernel.io_uring_disabled is {on})"),
    }
}

struct MethodChooser<'a> {
    spec: &'a Spec,
    targets: &'a Targets,
    default_method: Method,
    threads: usize,
    notes: &'a mut Vec<String>,
    /// Whether targets there can say that an I/O would wait.
    nowait_by_device: Vec<(Device, bool)>,
    /// What was faster there with blocks of that size.
    trial_winners: Vec<((Device, u32), Method)>,
    reads: Cell<TrialReads>,
}

/// The device that a target is, or that its file system has.
type Device = (IsDevice, Option<u64>);

impl MethodChooser<'_> {
    fn choose(&mut self, nth: usize, job: &JobSpec) -> Method {
        if job.rw.trims() {
            return Method::Sync;
        }
        if self.spec.method != MethodChoice::Auto || self.default_method != Method::IoUring {
            return self.default_method;
        }
        if self.spec.poll || self.spec.sqpoll {
            return self.default_method;
        }
        let Some(&place) = self.targets.by_job[nth].first() else { return self.default_method };
        if !self.supports_nowait(place, job) {
            return Method::Sync;
        }
        if job.depth == 1 && job.writes() && self.is_file(place) {
            return self.sync_for_file_writes();
        }
        if job.depth == 1 && self.spec.jobs.len() <= self.threads {
            return self.faster_at_depth_one(place, job);
        }
        self.default_method
    }

    fn is_file(&self, place: u32) -> bool {
        self.targets.all[place as usize].file.metadata().is_ok_and(|meta| meta.is_file())
    }

    /// Plain calls, for one write at a time to a file: a write that changes the file's time, as one
    /// does in every tick of the kernel, may have to wait for the file system's log, and a ring
    /// hands it to a thread of the kernel.
    fn sync_for_file_writes(&mut self) -> Method {
        let message = "Plain calls for writes to files at depth 1: io_uring would hand those that \
                    change a file's time to a thread of the kernel.";
        if !self.notes.iter().any(|note| note == message) {
            self.notes.push(message.into());
        }
        Method::Sync
    }

    /// Have jobs do without plain calls that need none, where these would take too many threads.
    fn reduce_threads(&mut self, methods: &mut [Method]) {
        let plain = methods.iter().filter(|method| **method == Method::Sync).count();
        if plain <= MAX_LANES || self.default_method == Method::Sync {
            return;
        }
        for (method, job) in methods.iter_mut().zip(&self.spec.jobs) {
            if !job.rw.trims() {
                *method = self.default_method;
            }
        }
        let name = if self.default_method == Method::Libaio { "libaio" } else { "io_uring" };
        self.notes.push(format!(
            "{name} all the same: {plain} jobs with plain calls would need as many threads, and at \
             most {MAX_LANES} are started."
        ));
    }

    /// Whether the target can tell the ring that an I/O would wait. Where it cannot, the ring
    /// hands every I/O to a thread of the kernel, at twice the CPU.
    fn supports_nowait(&mut self, place: u32, job: &JobSpec) -> bool {
        let target = &self.targets.all[place as usize];
        let device = device_of(target);
        if let Some((_, is_able)) = self.nowait_by_device.iter().find(|(known, _)| *known == device)
        {
            return *is_able;
        }
        let read = trial_block(job)
            .and_then(|(_, block)| read_block_now(&target.file, block, job.offset_bytes));
        self.reads.set(self.reads.get().with_read_of(*read.as_ref().unwrap_or(&0)));
        let is_able = read.err().and_then(|error| error.raw_os_error()) != Some(libc::EOPNOTSUPP);
        if !is_able {
            self.notes.push(format!(
                "Plain calls on {}: it cannot tell when an I/O would wait, so that io_uring would \
                 hand each to a thread of the kernel.",
                target.path.display()
            ));
        }
        self.nowait_by_device.push((device, is_able));
        is_able
    }

    /// One I/O at a time: whichever is faster in a short trial of reads. None is made through the
    /// page cache, which would keep what it read: what is there is copied by a plain call.
    fn faster_at_depth_one(&mut self, place: u32, job: &JobSpec) -> Method {
        let target = &self.targets.all[place as usize];
        if !target.is_direct {
            return Method::Sync;
        }
        let key = (device_of(target), job.smallest_block());
        if let Some((_, method)) = self.trial_winners.iter().find(|(tried, _)| *tried == key) {
            return *method;
        }
        let Some((plain, ring)) = trial_rates(target, job, &self.reads) else {
            return self.default_method;
        };
        let method = if plain > ring * MIN_ADVANTAGE { Method::Sync } else { Method::IoUring };
        self.trial_winners.push((key, method));
        let name = if method == Method::Sync { "Plain calls" } else { "io_uring" };
        self.notes.push(format!(
            "{name} at depth 1: in a trial of reads, {plain:.0} a second by plain calls and \
             {ring:.0} by io_uring."
        ));
        method
    }
}

fn device_of(target: &Target) -> Device {
    let meta = target.file.metadata().ok();
    let device = meta.map(|meta| match target.is_device {
        IsDevice::Yes => meta.rdev(),
        IsDevice::No => meta.dev(),
    });
    (target.is_device, device)
}

fn trial_block(job: &JobSpec) -> std::io::Result<(Region, Block)> {
    let bytes = job.smallest_block().min(MAX_TRIAL_BYTES) as usize;
    let region = Region::new(bytes)?;
    let block = region.block(0, bytes);
    Ok((region, block))
}

/// Reads a second by plain calls and by a ring; None where one of them cannot be tried.
fn trial_rates(target: &Target, job: &JobSpec, reads: &Cell<TrialReads>) -> Option<(f64, f64)> {
    let (_region, block) = trial_block(job).ok()?;
    let bytes = block.bytes() as u64;
    let units = job.files.first().map_or(1, |file| job.region_bytes(file) / bytes).max(1);
    let place = |nth: u64| job.offset_bytes + nth % units * bytes;
    let mut ring = UringQueue::new(TRIAL_RING, &[target], &[block], &mut Vec::new()).ok()?;
    let mut read_by_ring = |nth| {
        let (offset, bytes) = (place(nth), block.bytes() as u32);
        ring.push(&IoRequest {
            slot: 0,
            kind: IoKind::Read,
            target: 0,
            offset,
            block,
            bytes,
            buffer: 0,
        });
        let mut result = -1;
        let entered = ring.enter(Wait::ForOne);
        ring.reap(|_, bytes| result = bytes);
        entered.ok()?;
        usize::try_from(result).ok()
    };
    let (mut best_plain, mut best_ring) = (0.0_f64, 0.0_f64);
    for _ in 0..TRIALS {
        let plain = reads_per_s(reads, |nth| read_block(&target.file, block, place(nth)).ok())?;
        best_plain = best_plain.max(plain);
        best_ring = best_ring.max(reads_per_s(reads, &mut read_by_ring)?);
    }
    Some((best_plain, best_ring))
}

/// How often a second something can be read, which tells its bytes; None when that fails.
fn reads_per_s(
    reads: &Cell<TrialReads>,
    mut once: impl FnMut(u64) -> Option<usize>,
) -> Option<f64> {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < TRIAL_TIME {
        reads.set(reads.get().with_read_of(once(count)?));
        count += 1;
    }
    Some(count as f64 / start.elapsed().as_secs_f64())
}
