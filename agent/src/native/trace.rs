//! Recorded I/Os: read before the start from files of fixed records, replayed each at its time.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::Deserialize;

use super::queue::IoKind;
use super::source::{Backlog, IoOp};
use super::tsc::Clock;
use crate::error::io_error_text;

/// Of one I/O in a file: when it is due in ns after the start (8 bytes), where (8), how much (4),
/// what (1: read, write, fsync), three of zero. Little endian.
const RECORD_BYTES: usize = 24;
/// I/Os of a trace: 384 MiB of memory.
const MAX_IOS: u64 = 16_000_000;
/// Files of a trace; each is what one message carries to the host.
const MAX_PARTS: usize = 1000;
/// Every device has blocks of a multiple of this.
const SECTOR_BYTES: u64 = 512;

/// Where recorded I/Os are read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// Files of records, in order.
    pub parts: Vec<PathBuf>,
    /// Records in all of them.
    pub ios: u64,
    /// Whether there are fsyncs among them.
    #[serde(default)]
    pub syncs: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Record {
    due_ns: u64,
    offset: u64,
    bytes: u32,
    kind: IoKind,
}

/// Recorded I/Os, and which of them is next.
#[derive(Debug)]
pub struct Trace {
    records: Box<[Record]>,
    next: usize,
    clock: Clock,
}

impl TraceSpec {
    /// What cannot be meant, without a look at the files.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.ios == 0 || self.ios > MAX_IOS {
            faults.push(format!("a trace of {} I/Os; give 1 to {MAX_IOS}.", self.ios));
        }
        if self.parts.is_empty() || self.parts.len() > MAX_PARTS {
            let parts = self.parts.len();
            faults.push(format!("a trace in {parts} files; give 1 to {MAX_PARTS}."));
        }
        faults
    }
}

impl Trace {
    /// Read one, whose I/Os must lie within a region and be no larger than a block; else what is
    /// wrong, with the number of the I/O.
    pub fn read(
        spec: &TraceSpec,
        region_bytes: u64,
        largest: u32,
        clock: Clock,
    ) -> Result<Self, String> {
        let bytes = read_parts(spec)?;
        let mut last_ns = 0;
        let parse = |(nth, bytes): (usize, &[u8])| {
            let record = Record::parse(bytes).ok_or_else(|| {
                format!("I/O {nth} of the trace is none: what it does is not known.")
            })?;
            record
                .fault(last_ns, region_bytes, largest)
                .map_or(Ok(()), |fault| Err(format!("I/O {nth} of the trace {fault}.")))?;
            last_ns = record.due_ns;
            Ok(record)
        };
        let records: Result<Box<[Record]>, String> =
            bytes.chunks_exact(RECORD_BYTES).enumerate().map(parse).collect();
        Ok(Self { records: records?, next: 0, clock })
    }

    /// The next I/O, on that target at that place of it; None at the end.
    #[inline]
    pub fn next(&mut self, target: u32, start: u64, sequence: &mut u64) -> Option<IoOp> {
        let record = self.records.get(self.next)?;
        self.next += 1;
        *sequence += u64::from(record.kind == IoKind::Write);
        Some(IoOp {
            kind: record.kind,
            target,
            offset: start + record.offset,
            bytes: record.bytes,
            due: self.clock.ticks_of(record.due_ns).max(1),
            sequence: *sequence,
        })
    }

    /// What is due by then, in ticks since the start, and was not begun.
    #[must_use]
    pub fn backlog(&self, until: u64) -> Backlog {
        let due = |record: &Record| self.clock.ticks_of(record.due_ns).max(1);
        let rest = &self.records[self.next.min(self.records.len())..];
        let count = rest.partition_point(|record| due(record) <= until);
        Backlog { count: count as u64, oldest: rest[..count].first().map(due) }
    }
}

impl Record {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
        };
        let kind = match bytes[20] {
            0 => IoKind::Read,
            1 => IoKind::Write,
            2 => IoKind::Sync,
            _ => return None,
        };
        Some(Self {
            due_ns: number(0, 8),
            offset: number(8, 16),
            bytes: number(16, 20) as u32,
            kind,
        })
    }

    fn fault(&self, last_ns: u64, region_bytes: u64, largest: u32) -> Option<String> {
        let Self { due_ns, offset, bytes, kind } = *self;
        if due_ns < last_ns {
            return Some(format!("is due {due_ns} ns after the start, before the one ahead of it"));
        }
        if kind == IoKind::Sync {
            return None;
        }
        let end = offset.checked_add(u64::from(bytes));
        if end.is_none_or(|end| end > region_bytes) {
            return Some(format!(
                "moves {bytes} bytes at {offset}, past the {region_bytes} bytes of its file"
            ));
        }
        if bytes == 0 || bytes > largest || u64::from(bytes) % SECTOR_BYTES != 0 {
            return Some(format!("moves {bytes} bytes; give a multiple of 512 up to {largest}"));
        }
        (offset % SECTOR_BYTES != 0).then(|| format!("is at {offset}; give a multiple of 512"))
    }
}

fn read_parts(spec: &TraceSpec) -> Result<Vec<u8>, String> {
    let wanted = spec.ios * RECORD_BYTES as u64;
    let mut bytes = Vec::new();
    for path in &spec.parts {
        let failed = |error: io::Error| {
            let name = path.display();
            format!("The trace's file {name} cannot be read: {}.", io_error_text(&error))
        };
        let left = wanted - bytes.len() as u64;
        let file = File::open(path).map_err(failed)?;
        // One more byte than there may be tells that there is more.
        file.take(left + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > wanted {
            break;
        }
    }
    if bytes.len() as u64 == wanted {
        return Ok(bytes);
    }
    Err(format!(
        "The trace's files have {} bytes or more, and {} I/Os take {wanted}; send them again.",
        bytes.len(),
        spec.ios
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn record(due_ns: u64, offset: u64, bytes: u32, kind: u8) -> Vec<u8> {
        let mut record = due_ns.to_le_bytes().to_vec();
        record.extend(offset.to_le_bytes());
        record.extend(bytes.to_le_bytes());
        record.extend([kind, 0, 0, 0]);
        record
    }

    fn read(records: &[Vec<u8>], ios: u64) -> Result<Trace, String> {
        let folder = TestFolder::new();
        let parts: Vec<PathBuf> = records
            .iter()
            .enumerate()
            .map(|(nth, record)| {
                let path = folder.path().join(format!("trace.{nth}"));
                std::fs::write(&path, record).unwrap();
                path
            })
            .collect();
        Trace::read(&TraceSpec { parts, ios, syncs: true }, 1 << 20, 8192, Clock::calibrated())
    }

    #[test]
    fn records_come_in_order_with_their_times() {
        let records =
            [record(0, 4096, 4096, 0), record(1_000_000, 512, 512, 1), record(1_000_000, 0, 0, 2)];
        let mut trace = read(&records, 3).unwrap();
        let (clock, mut sequence) = (trace.clock, 0);
        let end = clock.ticks_of(1_000_000);
        assert_eq!(trace.backlog(end), Backlog { count: 3, oldest: Some(1) });
        let ops: Vec<IoOp> =
            std::iter::from_fn(|| trace.next(7, 1024, &mut sequence)).take(4).collect();
        let told: Vec<_> = ops.iter().map(|op| (op.kind, op.offset, op.bytes, op.due)).collect();
        assert_eq!(
            told,
            [
                (IoKind::Read, 5120, 4096, 1),
                (IoKind::Write, 1536, 512, end),
                (IoKind::Sync, 1024, 0, end)
            ]
        );
        assert_eq!((sequence, ops[0].target), (1, 7));
        assert_eq!(trace.backlog(u64::MAX), Backlog::default());
    }

    #[test]
    fn what_cannot_be_replayed_is_told_with_its_number() {
        let fine = record(5, 0, 4096, 0);
        for (bad, part) in [
            (record(4, 0, 4096, 0), "before the one"),
            (record(5, (1 << 20) - 512, 4096, 0), "past the"),
            (record(5, u64::MAX, 4096, 0), "past the"),
            (record(5, 0, 16384, 1), "up to 8192"),
            (record(5, 0, 100, 1), "multiple of 512"),
            (record(5, 0, 0, 1), "multiple of 512"),
            (record(5, 7, 512, 1), "is at 7"),
            (record(5, 0, 512, 3), "is none"),
        ] {
            let fault = read(&[fine.clone(), bad], 2).unwrap_err();
            assert!(fault.contains("I/O 1") && fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn files_that_are_missing_cut_or_too_long_are_told() {
        let one = record(5, 0, 4096, 0);
        for ios in [1, 3] {
            let fault = read(&[one.clone(), one.clone()], ios).unwrap_err();
            assert!(fault.contains("send them again"), "{fault}");
        }
        assert!(read(&[one[..23].to_vec()], 1).is_err());
        let spec = TraceSpec { parts: vec!["/nowhere".into()], ios: 1, syncs: false };
        let fault = Trace::read(&spec, 1, 1, Clock::calibrated()).unwrap_err();
        assert!(fault.contains("/nowhere"), "{fault}");
        let empty = TraceSpec { parts: Vec::new(), ios: 0, syncs: false };
        assert_eq!(empty.faults().len(), 2);
    }
}
