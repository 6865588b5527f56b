//! Tracepoints read through perf events: a ring of records for each processor, gone with its file.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::check_result;
use super::time::page_bytes;

/// Of `linux/perf_event.h`.
const TYPE_TRACEPOINT: u32 = 2;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const DISABLED: u64 = 1;
const USE_CLOCKID: u64 = 1 << 25;
const FD_CLOEXEC: libc::c_ulong = 1 << 3;
const IOC_ENABLE: libc::Ioctl = 0x2400;
const IOC_DISABLE: libc::Ioctl = 0x2401;
const IOC_SET_OUTPUT: libc::Ioctl = 0x2405;
const IOC_SET_FILTER: libc::Ioctl = 0x4008_2406;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Where the first page of a ring has its head and its tail.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;
const HEADER_BYTES: usize = 8;
/// No record is larger: with less room than this one may have been refused already.
const MAX_RECORD_BYTES: usize = 256;
/// Process and thread, time, length of the data that follow the header of a sample.
const SAMPLE_HEADER_BYTES: usize = 20;

/// `struct perf_event_attr` up to its fifth version.
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

/// One tracepoint on one processor, not yet enabled.
#[derive(Debug)]
pub struct TraceEvent(File);

impl TraceEvent {
    /// A tracepoint by its id, for all processes of a processor; readers wake after so many records.
    pub fn open(id: u64, cpu: u32, wakeup_events: u32) -> io::Result<Self> {
        let attributes = PerfEventAttr {
            kind: TYPE_TRACEPOINT,
            size: size_of::<PerfEventAttr>() as u32,
            config: id,
            sample_period: 1,
            sample_type: SAMPLE_TID | SAMPLE_TIME | SAMPLE_RAW,
            flags: DISABLED | USE_CLOCKID,
            wakeup_events,
            clockid: libc::CLOCK_MONOTONIC,
            ..PerfEventAttr::default()
        };
        // SAFETY: the structure is of the size that it tells and outlives the call.
        let fd = check_result(unsafe {
            let (all, none) = (-1, -1);
            let call = libc::SYS_perf_event_open;
            libc::syscall(call, &raw const attributes, all, cpu, none, FD_CLOEXEC)
        })?;
        // SAFETY: the kernel has just made this descriptor, and nobody else knows it.
        Ok(Self(unsafe { File::from_raw_fd(fd as i32) }))
    }

    /// Let only those through that fit a filter of the tracepoint's fields.
    pub fn filter(&self, filter: &std::ffi::CStr) -> io::Result<()> {
        // SAFETY: the text ends with NUL and outlives the call.
        check_result(unsafe { libc::ioctl(self.0.as_raw_fd(), IOC_SET_FILTER, filter.as_ptr()) })?;
        Ok(())
    }

    /// Put its records into another's ring.
    pub fn share_ring_of(&self, other: &Self) -> io::Result<()> {
        let (own, other) = (self.0.as_raw_fd(), other.0.as_raw_fd());
        // SAFETY: both are open descriptors; no memory is passed.
        check_result(unsafe {
            libc::ioctl(own, IOC_SET_OUTPUT, libc::c_ulong::from(other as u32))
        })?;
        Ok(())
    }

    /// Record, or do not.
    pub fn record(&self, how: Recording) -> io::Result<()> {
        let request = if how == Recording::On { IOC_ENABLE } else { IOC_DISABLE };
        // SAFETY: no memory is passed.
        check_result(unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) })?;
        Ok(())
    }
}

/// Whether a tracepoint is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what their names say")]
pub enum Recording {
    On,
    Off,
}

/// What one record says.
#[derive(Debug)]
pub enum Record<'a> {
    /// A tracepoint was passed: by which process, when, and its fields as its format lays them out.
    #[expect(missing_docs, reason = "said above")]
    Sample { pid: u32, mono_ns: u64, raw: &'a [u8] },
    /// So many had no room in the ring.
    Lost(u64),
}

/// A ring of records: mapped memory that the kernel writes.
#[derive(Debug)]
pub struct RecordRing {
    start: NonNull<u8>,
    page: usize,
    data: usize,
    copy: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for RecordRing {}

impl RecordRing {
    /// The ring of an event; `pages` is a power of two.
    pub fn map_ring(event: &TraceEvent, pages: usize) -> io::Result<Self> {
        let page = page_bytes() as usize;
        let (bytes, data) = ((pages + 1) * page, pages * page);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice; its result is checked below.
        let start = unsafe {
            let fd = event.0.as_raw_fd();
            libc::mmap64(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0)
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Self { start, page, data, copy: Vec::new() })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    #[expect(clippy::cast_ptr_alignment, reason = "pages and both places are aligned")]
    fn atomic_at(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped, and the place is a multiple of eight in it.
        unsafe { &*self.start.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Take everything that is in it now. A full ring has lost what came since, which the kernel
    /// tells no sooner than it writes the next record: it is told here, too.
    pub fn drain(&mut self, mut take: impl FnMut(&Record)) {
        let head = self.atomic_at(HEAD_AT).load(Ordering::Acquire);
        let tail = self.atomic_at(TAIL_AT).load(Ordering::Relaxed);
        let length = (head.wrapping_sub(tail) as usize).min(self.data);
        if length + MAX_RECORD_BYTES > self.data {
            take(&Record::Lost(1));
        }
        let from = (tail as usize) & (self.data - 1);
        let first = length.min(self.data - from);
        self.copy.clear();
        // SAFETY: both parts lie in the mapped pages; the kernel does not write between tail and
        // head until the tail is moved on below.
        unsafe {
            let data = self.start.as_ptr().add(self.page);
            self.copy.extend_from_slice(std::slice::from_raw_parts(data.add(from), first));
            self.copy.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
        self.atomic_at(TAIL_AT).store(head, Ordering::Release);
        for_each_record(&self.copy, &mut take);
    }
}

impl Drop for RecordRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.data) };
    }
}

/// The records of a piece of a ring, one after another; what is cut off is left out.
fn for_each_record(mut bytes: &[u8], take: &mut impl FnMut(&Record)) {
    while bytes.len() >= HEADER_BYTES {
        let kind = u32::from_ne_bytes(bytes[..4].try_into().unwrap_or_default());
        let size = usize::from(u16::from_ne_bytes(bytes[6..8].try_into().unwrap_or_default()));
        if size < HEADER_BYTES || size > bytes.len() {
            return;
        }
        let (record, rest) = bytes.split_at(size);
        if let Some(record) = parse_record(kind, &record[HEADER_BYTES..]) {
            take(&record);
        }
        bytes = rest;
    }
}

fn parse_record(kind: u32, body: &[u8]) -> Option<Record<'_>> {
    let long = |at: usize| Some(u64::from_ne_bytes(body.get(at..at + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    match kind {
        RECORD_SAMPLE => {
            let length = short(SAMPLE_HEADER_BYTES - 4)? as usize;
            let raw = body.get(SAMPLE_HEADER_BYTES..SAMPLE_HEADER_BYTES + length)?;
            Some(Record::Sample { pid: short(0)?, mono_ns: long(8)?, raw })
        }
        RECORD_LOST => Some(Record::Lost(long(8)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len()) as u16;
        [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes(), body].concat()
    }

    fn sample(pid: u32, mono_ns: u64, raw: &[u8]) -> Vec<u8> {
        let length = raw.len() as u32;
        let ids = [pid.to_ne_bytes(), 7_u32.to_ne_bytes()].concat();
        record(
            RECORD_SAMPLE,
            &[&ids[..], &mono_ns.to_ne_bytes(), &length.to_ne_bytes(), raw].concat(),
        )
    }

    fn told_of(bytes: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        for_each_record(bytes, &mut |record| found.push(format!("{record:?}")));
        found
    }

    #[test]
    fn records_are_told_in_their_order() {
        let lost = [9_u64.to_ne_bytes(), 3_u64.to_ne_bytes()].concat();
        let bytes =
            [sample(5, 77, &[1, 2]), record(RECORD_LOST, &lost), record(99, &[0; 8])].concat();
        assert_eq!(told_of(&bytes), ["Sample { pid: 5, mono_ns: 77, raw: [1, 2] }", "Lost(3)"]);
    }

    #[test]
    fn damaged_records_end_the_piece_or_are_left_out() {
        let whole = sample(5, 77, &[1, 2, 3]);
        for length in 0..whole.len() {
            assert!(told_of(&whole[..length]).is_empty(), "{length}");
        }
        let long = [&5_u32.to_ne_bytes()[..], &[0; 12], &u32::MAX.to_ne_bytes()].concat();
        assert!(told_of(&record(RECORD_SAMPLE, &long)).is_empty());
        assert!(told_of(&[0; 64]).is_empty(), "a record of no length");
    }

    #[test]
    fn the_structure_has_the_kernels_size() {
        assert_eq!(size_of::<PerfEventAttr>(), 112);
    }
}
