//! A sample of what the block layer does for the engine on one device, by the kernel's tracepoints.
//!
//! Perf events and not an instance of tracefs: they go with their descriptors, so that an agent that
//! is killed leaves nothing behind. A bio is queued with `block_bio_queue` on every device. Its end
//! differs, as read in the kernel's source and seen on Linux 6.18: devices without requests of their
//! own (zram, device mapper, md, brd) pass `block_bio_complete`; those with requests (`NVMe`, SCSI,
//! virtio, loop) pass `block_rq_complete` for each request instead, with the place that it had, and
//! `block_bio_complete` never. Both are listened to, whatever the device is.
//!
//! A kernel may count an event and yet write no record of it, nor of its loss. On a 6.18 kernel of a
//! virtual machine these were, held against ftrace, exactly the events that came while the processor
//! idled or ran a thread of process 1, whatever the sample type, the ring or the filter. Bios are
//! queued by threads, so none of those lack; ends that come by interrupt (loop devices over direct I/O)
//! lack the more the idler the host is, up to nine in ten, while those in the submitter's own thread (zram)
//! are all there. Ends that lack are `censored`.
//!
//! The cost goes with sampled bios, of which a record and its place in caches cost some microseconds:
//! at most some `BIOS` of each window, then nothing but the ends of those. Where that is much beside an
//! I/O itself, windows draw apart until there is one bio in `BIO_NS`.

mod sample;

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::Serialize;

use crate::error::io_error_text;
use crate::probe::machine::parse_cpu_list;
use crate::probe::process::parse_process_stat;
use crate::roots::{Roots, read_number, read_text};
use crate::sys::mount::detached_tracefs;
use crate::sys::perf::{Record, RecordRing, Recording, TraceEvent};
use crate::sys::process::own_pid;
use crate::sys::thread::allow_open_files;
use crate::sys::time::mono_ns;
use sample::{BioRange, BioSample, CompletionSource, Direction, TraceSummary, TracepointFormat};

/// Windows begin at least so far apart, which the first do, so that a short run has some.
const WINDOW_NS: u64 = 100_000_000;
/// A window that fills sooner is of I/Os that cost a processor little more than to sample them.
const QUICK_WINDOW_NS: u64 = 10_000_000;
/// Then there is so much time for each bio: a thousand a second cost a load less than a hundredth.
const NS_PER_BIO: u64 = 1_000_000;
/// Bios of a window, about: sampling stops at the first look that finds so many.
const BIOS_PER_WINDOW: u64 = 500;
/// How long the ends of a window's bios are waited for.
const TAIL_NS: u64 = 20_000_000;
/// Between two looks while a window is open: at a million I/Os a second a look finds a thousand.
const MIN_LOOK_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause, where looks find less than `FEW`, so that a slow device costs few of them.
const MAX_LOOK_PAUSE: Duration = Duration::from_millis(10);
const FEW_BIOS: u64 = 50;
/// From so many on the pause is halved: a ring holds some hundred I/Os.
const MANY_BIOS: u64 = 150;
/// Pages of a ring for each processor: 256 KiB hold three thousand records, which is what a fast device
/// makes while a busy host does not let the agent look. Many processors share the load.
const RING_PAGES: std::ops::RangeInclusive<usize> = 16..=64;
/// Of all processors together.
const MAX_PAGES: usize = 1024;
/// Readers are not woken: they look by themselves.
const NO_WAKEUP: u32 = 1 << 30;
/// Records of the last moment may still be on their way into another processor's ring.
const SETTLED_NS: u64 = 100_000;
/// Processors; more are refused, since those left out would look like I/Os that never end.
const MAX_CPUS: usize = 1024;
/// Of each processor: the ring's event and two that write into it.
const DESCRIPTORS_PER_CPU: u64 = 3;
/// Descriptors for all else that the agent has open.
const RESERVED_DESCRIPTORS: u64 = 512;
/// Processes whose kin is remembered; more begin anew.
const MAX_KIN: usize = 4096;
/// Ancestors of a process: deeper families do not exist.
const MAX_GENERATIONS: usize = 32;

/// The final message of a trace: what was seen, or why nothing could be.
#[derive(Debug, Default, Serialize)]
pub struct TraceResult {
    /// The device's name.
    pub device: String,
    /// Null when there is a sample.
    pub reason: Option<String>,
    /// Null when there is a reason.
    #[serde(flatten)]
    pub seen: Option<TraceSummary>,
}

/// Sample a device until called off, but no longer than the limit, and tell of it.
///
/// The events are closed after that: the kernel then waits until no processor can be in one of them,
/// a tenth of a second in which whoever called it off would wait for nothing.
pub fn sample_device(
    roots: &Roots,
    device: &str,
    limit: Duration,
    called_off: &Receiver<()>,
    tell: impl FnOnce(&TraceResult),
) {
    let told = |reason, seen| tell(&TraceResult { device: device.to_owned(), reason, seen });
    match TraceEvents::open(roots, device) {
        Ok(mut events) => match events.run_windows(roots, limit, called_off) {
            Ok(seen) => told(None, Some(seen)),
            Err(error) => told(Some(io_error_text(&error)), None),
        },
        Err(reason) => told(Some(reason), None),
    }
}

/// Where a device lies: its number as the kernel's events have it, and its sectors.
#[derive(Debug, PartialEq, Eq)]
struct DeviceRange {
    device: u64,
    /// Of the whole disk, which requests are told of; the same where it is no partition.
    disk: u64,
    first_sector: u64,
    end_sector: u64,
}

impl DeviceRange {
    fn of(roots: &Roots, device: &str) -> Option<Self> {
        let folder = roots.block_folder(device);
        let own = sysfs_device_number(&folder)?;
        let count = |file: &str| read_number::<u64>(&folder.join(file));
        if !folder.join("partition").exists() {
            return Some(Self { device: own, disk: own, first_sector: 0, end_sector: u64::MAX });
        }
        // Older kernels tell a partition's bios under the number of the disk, too.
        let whole = sysfs_device_number(folder.canonicalize().ok()?.parent()?)?;
        let first = count("start")?;
        Some(Self {
            device: own,
            disk: whole,
            first_sector: first,
            end_sector: first.saturating_add(count("size")?),
        })
    }
}

/// A device's number as `dev_t` of the kernel: twenty bits of it are the minor number.
fn sysfs_device_number(folder: &Path) -> Option<u64> {
    let told = read_text(&folder.join("dev"))?;
    let (major, minor) = told.trim().split_once(':')?;
    Some(major.parse::<u64>().ok()? << 20 | minor.parse::<u64>().ok()?)
}

/// The folder of all tracepoints; the file keeps it where it is mounted nowhere.
fn open_tracefs(roots: &Roots) -> Result<(PathBuf, Option<File>), String> {
    for mounted in ["kernel/tracing/events", "kernel/debug/tracing/events"] {
        let folder = roots.sys.join(mounted);
        if folder.join("block").is_dir() {
            return Ok((folder, None));
        }
    }
    let file =
        detached_tracefs().map_err(|error| format!("no tracefs: {}", io_error_text(&error)))?;
    let folder = roots.proc.join(format!("thread-self/fd/{}/events", file.as_raw_fd()));
    if folder.join("block").is_dir() {
        return Ok((folder, Some(file)));
    }
    Err("the kernel has no tracepoints of the block layer".to_owned())
}

/// The events of all processors.
struct TraceEvents {
    range: DeviceRange,
    queue: TracepointFormat,
    bio_done: Option<TracepointFormat>,
    request_done: Option<TracepointFormat>,
    starts: Vec<TraceEvent>,
    ends: Vec<TraceEvent>,
    rings: Vec<RecordRing>,
}

impl TraceEvents {
    fn open(roots: &Roots, device: &str) -> Result<Self, String> {
        let place =
            DeviceRange::of(roots, device).ok_or_else(|| format!("{device} is no block device"))?;
        let (folder, _kept) = open_tracefs(roots)?;
        let format = |name: &str| {
            let path = folder.join("block").join(name).join("format");
            read_text(&path).and_then(|text| TracepointFormat::parse(&text))
        };
        let queue = format("block_bio_queue").ok_or("the kernel tells no block_bio_queue")?;
        let (bio_done, request_done) = (format("block_bio_complete"), format("block_rq_complete"));
        let mut events = Self {
            range: place,
            queue,
            bio_done,
            request_done,
            starts: Vec::new(),
            ends: Vec::new(),
            rings: Vec::new(),
        };
        let cpus = roots.sys_value("devices/system/cpu/online").map(|list| parse_cpu_list(&list));
        let cpus = cpus.unwrap_or_default();
        let share = MAX_PAGES / cpus.len().max(1).next_power_of_two();
        let pages = share.clamp(*RING_PAGES.start(), *RING_PAGES.end());
        if cpus.len() > MAX_CPUS {
            return Err(format!("{} processors are more than can be looked at", cpus.len()));
        }
        // Before they are wanted, for the engine's pipes need some as well.
        allow_open_files(DESCRIPTORS_PER_CPU * cpus.len() as u64 + RESERVED_DESCRIPTORS).map_err(
            |error| format!("too few open files are allowed: {}", io_error_text(&error)),
        )?;
        for cpu in cpus {
            events
                .open_cpu(cpu, pages)
                .map_err(|error| format!("no perf event: {}", io_error_text(&error)))?;
        }
        if events.rings.is_empty() {
            return Err("no processor is known".to_owned());
        }
        Ok(events)
    }

    fn open_cpu(&mut self, cpu: u32, pages: usize) -> io::Result<()> {
        let DeviceRange { device: own, disk: whole, .. } = self.range;
        let filter = CString::new(format!("dev == {own} || dev == {whole}"))?;
        let start = TraceEvent::open(self.queue.id, cpu, NO_WAKEUP)?;
        start.filter(&filter)?;
        self.rings.push(RecordRing::map_ring(&start, pages)?);
        for format in [&self.bio_done, &self.request_done].into_iter().flatten() {
            let end = TraceEvent::open(format.id, cpu, NO_WAKEUP)?;
            end.filter(&filter)?;
            end.share_ring_of(&start)?;
            self.ends.push(end);
        }
        self.starts.push(start);
        Ok(())
    }

    /// Windows one after another until called off, or until the limit.
    fn run_windows(
        &mut self,
        roots: &Roots,
        limit: Duration,
        called_off: &Receiver<()>,
    ) -> io::Result<TraceSummary> {
        let begun = Instant::now();
        let mut taker = EventSorter::new(roots);
        // Twice as many processors, half as many windows: to switch the events costs each of them.
        let least_ns = WINDOW_NS * (1 + self.rings.len() as u64 / 64);
        let (mut spacing_ns, mut next_ns) = (least_ns, mono_ns());
        loop {
            self.switch(EventGroup::Both, Recording::On)?;
            let filled = self.run_window(&mut taker, next_ns + spacing_ns, called_off)?;
            let Some(WindowFill { open_ns, bios }) = filled else { break };
            if begun.elapsed() >= limit {
                break;
            }
            let now = mono_ns();
            next_ns = (next_ns + spacing_ns).max(now);
            spacing_ns = spacing_after(spacing_ns, open_ns, bios).max(least_ns);
            let pause = Duration::from_nanos(next_ns - now);
            if called_off.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        self.switch(EventGroup::Both, Recording::Off)?;
        self.read_rings(&mut taker, u64::MAX);
        taker.sample.end_window(1.0);
        taker.sample.censor_pending();
        Ok(taker.sample.finish())
    }

    /// One window; None where it was called off. It stays open where few bios came in all its time.
    fn run_window(
        &mut self,
        taker: &mut EventSorter,
        end_ns: u64,
        called_off: &Receiver<()>,
    ) -> io::Result<Option<WindowFill>> {
        let (begun, before) = (mono_ns(), taker.queued);
        let (mut last, mut pause) = (before, MIN_LOOK_PAUSE);
        loop {
            let left = Duration::from_nanos(end_ns.saturating_sub(mono_ns()));
            if called_off.recv_timeout(pause.min(left)) != Err(RecvTimeoutError::Timeout) {
                return Ok(None);
            }
            let now = mono_ns();
            self.read_rings(taker, now - SETTLED_NS);
            pause = match taker.queued - last {
                ..FEW_BIOS => (pause * 2).min(MAX_LOOK_PAUSE),
                MANY_BIOS.. => (pause / 2).max(MIN_LOOK_PAUSE),
                _ => pause,
            };
            last = taker.queued;
            if taker.queued - before >= BIOS_PER_WINDOW {
                break;
            }
            if now >= end_ns {
                taker.sample.end_window(1.0);
                return Ok(Some(WindowFill { open_ns: now - begun, bios: taker.queued - before }));
            }
        }
        self.switch(EventGroup::Starts, Recording::Off)?;
        let stopped = mono_ns();
        loop {
            self.read_rings(taker, mono_ns() - SETTLED_NS);
            if !taker.is_waiting() || mono_ns() - stopped >= TAIL_NS {
                break;
            }
            thread::sleep(MIN_LOOK_PAUSE);
        }
        self.switch(EventGroup::Both, Recording::Off)?;
        self.read_rings(taker, u64::MAX);
        let share = (stopped - begun) as f64 / (end_ns.max(stopped) - begun).max(1) as f64;
        taker.sample.end_window(1.0 / share.clamp(1e-6, 1.0));
        taker.sample.censor_pending();
        Ok(Some(WindowFill { open_ns: stopped - begun, bios: taker.queued - before }))
    }

    fn switch(&self, which: EventGroup, how: Recording) -> io::Result<()> {
        if which == EventGroup::Both {
            self.ends.iter().try_for_each(|event| event.record(how))?;
        }
        self.starts.iter().try_for_each(|event| event.record(how))
    }

    /// Take what the rings hold; what happened after `until_ns` waits for the next look.
    fn read_rings(&mut self, taker: &mut EventSorter, until_ns: u64) {
        let mut rings = std::mem::take(&mut self.rings);
        for ring in &mut rings {
            ring.drain(|record| match record {
                Record::Lost(count) => taker.lost += count,
                Record::Sample { pid, mono_ns, raw } => {
                    taker.held.extend(self.parse_event(*pid, *mono_ns, raw));
                }
            });
        }
        self.rings = rings;
        taker.process_until(until_ns);
    }

    /// What a record says; None for what is no data of a file: discards, flushes, metadata.
    fn parse_event(&self, pid: u32, mono_ns: u64, raw: &[u8]) -> Option<Event> {
        let id = self.queue.number(raw, "common_type")?;
        let (format, what) = if id == self.queue.id {
            (&self.queue, None)
        } else if self.bio_done.as_ref().is_some_and(|format| format.id == id) {
            (self.bio_done.as_ref()?, Some(CompletionSource::Bio))
        } else {
            (self.request_done.as_ref()?, Some(CompletionSource::Request))
        };
        let letters = format.bytes(raw, "rwbs")?;
        let (way, is_data) = parse_rwbs(letters)?;
        let (sector, sectors) = (format.number(raw, "sector")?, format.number(raw, "nr_sector")?);
        let is_here = sector >= self.range.first_sector && sector < self.range.end_sector;
        let piece = BioRange { mono_ns, way, sector, sectors };
        (is_here && (is_data || what.is_some())).then_some(Event { pid, piece, what })
    }
}

/// How long a window took bios, and how many came.
struct WindowFill {
    open_ns: u64,
    bios: u64,
}

/// How far the next window is from the one after it, by how the last one filled. By a quarter at a
/// time: a window weighs as much as the time until the next, and where one of a short run weighs as
/// much as all others, what it holds proves little.
fn spacing_after(spacing_ns: u64, open_ns: u64, bios: u64) -> u64 {
    if open_ns < QUICK_WINDOW_NS { (bios * NS_PER_BIO).min(spacing_ns * 5 / 4) } else { WINDOW_NS }
}

/// Which of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventGroup {
    Starts,
    Both,
}

/// The direction that `rwbs` tells, and whether it is data that somebody asked for.
///
/// An F before the direction is a flush first, one after it is forced unit access; M is a file
/// system's own, A is read ahead.
fn parse_rwbs(rwbs: &[u8]) -> Option<(Direction, bool)> {
    let end = rwbs.iter().position(|&byte| byte == 0).unwrap_or(rwbs.len());
    let letters = &rwbs[..end];
    let way = match letters.iter().find(|&&byte| byte != b'F')? {
        b'R' => Direction::Read,
        b'W' => Direction::Write,
        _ => return None,
    };
    Some((way, !letters.iter().any(|byte| matches!(byte, b'M' | b'A'))))
}

#[derive(Debug)]
struct Event {
    pid: u32,
    piece: BioRange,
    what: Option<CompletionSource>,
}

/// Puts the events of all processors in order and tells the engine's from others'.
struct EventSorter {
    held: Vec<Event>,
    lost: u64,
    queued: u64,
    sample: BioSample,
    kin: HashMap<u32, bool>,
    proc: PathBuf,
}

impl EventSorter {
    fn new(roots: &Roots) -> Self {
        Self {
            held: Vec::new(),
            lost: 0,
            queued: 0,
            sample: BioSample::default(),
            kin: HashMap::new(),
            proc: roots.proc.clone(),
        }
    }

    fn is_waiting(&self) -> bool {
        self.sample.is_waiting() || !self.held.is_empty()
    }

    fn process_until(&mut self, until_ns: u64) {
        self.held.sort_by_key(|event| event.piece.mono_ns);
        let ready = self.held.partition_point(|event| event.piece.mono_ns <= until_ns);
        let events: Vec<Event> = self.held.drain(..ready).collect();
        for Event { pid, piece, what } in events {
            match what {
                Some(how) => self.sample.add_done(piece, how),
                None if self.is_ours(pid) => {
                    self.queued += 1;
                    self.sample.add_queued(piece);
                }
                None => {
                    self.queued += 1;
                    self.sample.count_foreign();
                }
            }
        }
        if self.lost > 0 {
            self.sample.give_up_pending_after_loss(std::mem::take(&mut self.lost));
        }
    }

    /// Whether a process is the agent or came from it: only engines do I/O there during a run.
    fn is_ours(&mut self, pid: u32) -> bool {
        if let Some(&known) = self.kin.get(&pid) {
            return known;
        }
        if self.kin.len() >= MAX_KIN {
            self.kin.clear();
        }
        let ours = self.is_descendant_of_ours(pid);
        self.kin.insert(pid, ours);
        ours
    }

    fn is_descendant_of_ours(&self, pid: u32) -> bool {
        let mut pid = pid as i32;
        for _ in 0..MAX_GENERATIONS {
            if pid == own_pid() {
                return true;
            }
            let stat = read_text(&self.proc.join(format!("{pid}/stat")));
            let Some(place) = stat.and_then(|text| parse_process_stat(&text)) else { return false };
            pid = place.parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn letters_tell_the_direction_and_whose_data_it_is() {
        for (letters, told) in [
            (&b"R\0\0\0"[..], Some((Direction::Read, true))),
            (b"RS\0\0", Some((Direction::Read, true))),
            (b"RA\0\0", Some((Direction::Read, false))),
            (b"RM\0\0", Some((Direction::Read, false))),
            (b"WS", Some((Direction::Write, true))),
            (b"FWFS\0", Some((Direction::Write, true))),
            (b"WFSM\0", Some((Direction::Write, false))),
            (b"D\0", None),
            (b"FF\0", None),
            (b"N\0", None),
            (b"", None),
        ] {
            assert_eq!(parse_rwbs(letters), told, "{letters:?}");
        }
    }

    fn sysfs() -> (TestFolder, Roots) {
        let tree = TestFolder::new();
        tree.put("sys/class/block/loop0/dev", "7:3\n");
        tree.put("sys/class/block/sda/dev", "8:16\n");
        tree.put("sys/class/block/sda/sda1/dev", "8:17\n");
        tree.put("sys/class/block/sda/sda1/partition", "1\n");
        tree.put("sys/class/block/sda/sda1/start", "2048\n");
        tree.put("sys/class/block/sda/sda1/size", "1000\n");
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
        (tree, roots)
    }

    #[test]
    fn a_device_has_the_number_that_events_have() {
        let (_tree, roots) = sysfs();
        let own = (7 << 20) + 3;
        let expected =
            DeviceRange { device: own, disk: own, first_sector: 0, end_sector: u64::MAX };
        assert_eq!(DeviceRange::of(&roots, "loop0"), Some(expected));
        let (own, whole) = ((8 << 20) + 17, (8 << 20) + 16);
        let expected =
            DeviceRange { device: own, disk: whole, first_sector: 2048, end_sector: 3048 };
        assert_eq!(DeviceRange::of(&roots, "sda/sda1"), Some(expected));
        assert_eq!(DeviceRange::of(&roots, "nvme0n1"), None);
    }

    #[test]
    fn what_cannot_be_traced_has_a_reason() {
        let (_tree, roots) = sysfs();
        let (_call_off, called_off) = std::sync::mpsc::channel();
        let mut reasons = Vec::new();
        sample_device(&roots, "nvme0n1", Duration::MAX, &called_off, |traced| {
            assert!(traced.seen.is_none());
            reasons.push(traced.reason.clone());
        });
        assert_eq!(reasons, [Some("nvme0n1 is no block device".to_owned())]);
    }

    #[test]
    fn windows_of_a_fast_device_draw_apart_until_a_bio_in_a_millisecond_is_sampled() {
        let spacings = |windows: &[(u64, u64)]| {
            let mut spacing = WINDOW_NS;
            let next = |&(open_ms, bios)| {
                spacing = spacing_after(spacing, open_ms * 1_000_000, bios);
                spacing / 1_000_000
            };
            windows.iter().map(next).collect::<Vec<u64>>()
        };
        assert_eq!(spacings(&[(2, 900), (2, 1000), (3, 950), (2, 980)]), [125, 156, 195, 244]);
        assert_eq!(spacings(&[(2, 1000); 20])[10..], [1000; 10]);
        assert_eq!(spacings(&[(100, 20), (50, 500), (12, 510)]), [100, 100, 100]);
        assert_eq!(spacings(&[(5, 500), (5, 150), (5, 500), (60, 500)]), [125, 150, 187, 100]);
    }

    #[test]
    fn events_of_several_processors_are_taken_in_order() {
        let mut taker = EventSorter::new(&Roots::default());
        let piece = |mono_ns| BioRange { mono_ns, way: Direction::Read, sector: 8, sectors: 8 };
        let pid = std::process::id();
        taker.held.push(Event { pid, piece: piece(30), what: Some(CompletionSource::Request) });
        taker.held.push(Event { pid, piece: piece(10), what: None });
        taker.held.push(Event { pid: 0, piece: piece(20), what: None });
        taker.held.push(Event { pid, piece: piece(99), what: None });
        taker.process_until(50);
        assert!(!taker.sample.is_waiting());
        assert!(taker.is_waiting());
        assert_eq!(taker.queued, 2);
        taker.sample.end_window(1.0);
        let seen = taker.sample.finish();
        assert_eq!((seen.read.timed, seen.read.lat_max_ns, seen.others), (1, 20, 1));
    }
}
