//! Verification: every write of a verified job is in a ledger, and every read is held against it.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use super::contents::{BlockState, ExpectedWrite, verify_block};
use super::findings::BlockFindings;
use super::ledger::{Ledger, LedgerShape, TargetShape};
use super::queue::IoKind;
use super::source::IoOp;
use super::spec::{JobSpec, Spec};
use super::target::Targets;
use crate::sys::time::real_ns;

/// What all workers have in common.
#[derive(Debug)]
pub struct Verification {
    /// None where nothing is written and nothing was kept: a block must only bear its stamp.
    ledger: Option<Ledger>,
    sequence: AtomicU64,
    /// What a word of the ledger stands for: the blocks of the jobs, or a part of each.
    unit_bytes: u64,
    /// How many of these a block has.
    units_per_block: usize,
    names: Vec<String>,
    findings: BlockFindings,
}

/// One worker's verification.
#[derive(Debug)]
pub struct Verifier {
    verification: Arc<Verification>,
    /// By slot.
    pending_writes: Box<[PendingWrite]>,
    /// By slot and unit of its block: what a read that is under way will find.
    expected: Box<[ExpectedWrite]>,
}

/// Of the write in a slot.
#[derive(Debug, Clone, Copy)]
struct PendingWrite {
    sequence: u64,
    bytes: u32,
}

impl Verification {
    /// The verification of an engine; None where no job is verified.
    pub fn open(spec: &Spec, targets: &Targets) -> Result<Option<Self>, String> {
        let verified: Vec<&JobSpec> = spec.jobs.iter().filter(|job| job.verify).collect();
        let Some(first) = verified.first() else { return Ok(None) };
        let block_bytes = first.smallest_block();
        if let Some(fault) = overlap_fault(spec, targets, block_bytes) {
            return Err(fault);
        }
        let mut longest = vec![0; targets.all.len()];
        for (job, places) in spec.jobs.iter().zip(&targets.by_job) {
            for (file, &place) in job.files.iter().zip(places) {
                let bytes = &mut longest[place as usize];
                *bytes = file.bytes.max(*bytes);
            }
        }
        let unit_bytes = spec.ledger_block.unwrap_or(block_bytes);
        if unit_bytes == 0 || block_bytes % unit_bytes != 0 {
            return Err(format!(
                "ledger_block is {unit_bytes}, and blocks of {block_bytes} bytes are no multiple \
                 of that; give a size of which all verified blocks are multiples."
            ));
        }
        let extents = targets.all.iter().zip(longest).map(|(target, bytes)| {
            let blocks = bytes.div_ceil(u64::from(unit_bytes));
            TargetShape::new(blocks, target.path.as_os_str().as_bytes())
        });
        let shape = LedgerShape { block_bytes: unit_bytes, targets: extents.collect() };
        let ledger = match &spec.ledger {
            Some(path) => Some(Ledger::open(path, &shape)?),
            None if verified.iter().any(|job| job.writes()) => Some(Ledger::in_memory(&shape)?),
            None => None,
        };
        // Above what any run before this one wrote, or its blocks would pass for later writes: no
        // run makes as many writes as nanoseconds pass.
        let first_sequence = ledger.as_ref().map_or(1, Ledger::first_sequence).max(real_ns());
        // Without a ledger there is nothing to be known of the parts of a block.
        let unit_bytes = if ledger.is_some() { unit_bytes } else { block_bytes };
        Ok(Some(Self {
            sequence: AtomicU64::new(first_sequence),
            ledger,
            unit_bytes: u64::from(unit_bytes),
            units_per_block: (block_bytes / unit_bytes) as usize,
            names: targets.all.iter().map(|target| target.path.display().to_string()).collect(),
            findings: BlockFindings::default(),
        }))
    }

    /// What was found, as the end tells it.
    #[must_use]
    pub fn results(&self) -> Value {
        self.findings.results()
    }

    /// Have the ledger outlive the host.
    pub fn sync_ledger(&self) -> std::io::Result<()> {
        self.ledger.as_ref().map_or(Ok(()), Ledger::sync)
    }

    /// What a read finds; without a ledger, anything that bears its stamp.
    fn expected(&self, target: u32, offset: u64) -> ExpectedWrite {
        let unit = offset / self.unit_bytes;
        self.ledger
            .as_ref()
            .map_or(ExpectedWrite::AtLeast(1), |ledger| ledger.expected(target, unit))
    }

    /// The units that a block begins and ends with.
    fn units_of(&self, offset: u64, bytes: u32) -> Range<u64> {
        offset / self.unit_bytes..(offset + u64::from(bytes)).div_ceil(self.unit_bytes)
    }

    #[cold]
    fn record_fault(&self, found: BlockState, target: u32, offset: u64, expected: ExpectedWrite) {
        let name = self.names.get(target as usize).map_or("", String::as_str);
        self.findings.record_fault(found, name, offset, expected);
    }
}

/// Why blocks of a verified job would not be as it wrote them, without any fault of the target.
fn overlap_fault(spec: &Spec, targets: &Targets, block_bytes: u32) -> Option<String> {
    let mut verified = vec![false; targets.all.len()];
    for (nth, (job, places)) in spec.jobs.iter().zip(&targets.by_job).enumerate() {
        if !job.verify {
            continue;
        }
        if job.smallest_block() != block_bytes || job.offset_bytes % u64::from(block_bytes) != 0 {
            return Some(format!(
                "jobs[{nth}]: verify with blocks of {} bytes from {} on, which may overlap other \
                 jobs' blocks of {block_bytes}; give all verified jobs one size, and \
                 multiples of it.",
                job.smallest_block(),
                job.offset_bytes
            ));
        }
        if job.rw.trims() {
            return Some(format!("jobs[{nth}]: verify and trims; what is trimmed bears no stamp."));
        }
        for &place in places {
            verified[place as usize] = true;
        }
    }
    let mut jobs = spec.jobs.iter().zip(&targets.by_job);
    let spoiler = jobs.position(|(job, places)| {
        !job.verify && job.changes_data() && places.iter().any(|&place| verified[place as usize])
    });
    spoiler.map(|nth| {
        format!(
            "jobs[{nth}]: it changes what another job verifies; give it verify as well, or another \
             file."
        )
    })
}

impl Verifier {
    /// For a worker with so many slots.
    #[must_use]
    pub fn new(verification: Arc<Verification>, slots: usize) -> Self {
        let expected = vec![ExpectedWrite::AtLeast(0); slots * verification.units_per_block].into();
        Self {
            verification,
            pending_writes: vec![PendingWrite { sequence: 0, bytes: 0 }; slots].into(),
            expected,
        }
    }

    /// Before an I/O begins in a slot: the sequence of a write; None where it may not begin yet,
    /// because another write of the block is under way.
    pub fn begin_io(&mut self, slot: u32, op: &IoOp) -> Option<u64> {
        let slot = slot as usize;
        let known = &mut self.pending_writes[slot];
        match (op.kind, &self.verification.ledger) {
            (IoKind::Read, _) => {
                let places = (op.offset..).step_by(self.verification.unit_bytes as usize);
                let expected = &mut self.expected[slot * self.verification.units_per_block..]
                    [..self.verification.units_per_block];
                let end = op.offset + u64::from(op.bytes);
                for (expected, here) in expected.iter_mut().zip(places.take_while(|at| *at < end)) {
                    *expected = self.verification.expected(op.target, here);
                }
            }
            (IoKind::Write, Some(ledger)) => {
                if !begin_writes(ledger, op.target, self.verification.units_of(op.offset, op.bytes))
                {
                    return None;
                }
                known.sequence = self.verification.sequence.fetch_add(1, Ordering::Relaxed);
                known.bytes = op.bytes;
            }
            _ => {}
        }
        Some(known.sequence)
    }

    /// A write has ended.
    pub fn end_write(&self, slot: u32, target: u32, offset: u64, outcome: WriteOutcome) {
        let Some(ledger) = &self.verification.ledger else { return };
        let PendingWrite { sequence, bytes } = self.pending_writes[slot as usize];
        for unit in self.verification.units_of(offset, bytes) {
            match outcome {
                WriteOutcome::Done => ledger.acknowledge_write(target, unit, sequence),
                WriteOutcome::Failed => ledger.fail_write(target, unit),
            }
        }
    }

    /// A read has ended with these bytes. A block is blamed once, for the first of its units.
    pub fn end_read(&self, slot: u32, target: u32, offset: u64, bytes: &[u8]) {
        self.verification.findings.add_checked();
        let expected = &self.expected[slot as usize * self.verification.units_per_block..];
        let places = (offset..).step_by(self.verification.unit_bytes as usize);
        let units = bytes.chunks(self.verification.unit_bytes as usize).zip(expected).zip(places);
        for ((unit, &expected), here) in units {
            // A write that began meanwhile may be in the block, wholly or in part.
            let is_same = self.verification.expected(target, here) == expected;
            let expected = match expected {
                ExpectedWrite::AtLeast(least) if !is_same => ExpectedWrite::MixedFrom(least),
                expected => expected,
            };
            let found = verify_block(unit, target, here, expected);
            if found != BlockState::Ok {
                return self.verification.record_fault(found, target, here, expected);
            }
        }
    }
}

/// Begin a write of all these units, or of none where one of them is being written.
fn begin_writes(ledger: &Ledger, target: u32, units: Range<u64>) -> bool {
    let busy = units.clone().find(|&unit| !ledger.begin_write(target, unit));
    if let Some(busy) = busy {
        for unit in units.start..busy {
            ledger.cancel_write(target, unit);
        }
    }
    busy.is_none()
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The kernel said that it is done.
    Done,
    /// It failed, or a part of it.
    Failed,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use serde_json::{Value, json};

    use super::*;
    use crate::native::contents::ContentsWriter;
    use crate::native::findings::FAULT_KINDS;
    use crate::native::fixture::{BLOCK, BLOCKS, Fixture, counts, methods, run};
    use crate::native::spec::{Method, Pattern};

    /// A job of blocks of that size over the whole file, once, on a ledger that counts in `BLOCK`.
    fn spec(fixture: &Fixture, rw: &str, block_bytes: u64) -> Spec {
        let mut spec = fixture.spec(&json!({
            "rw": rw, "blocks": [{"bytes": block_bytes}], "io_bytes": BLOCKS * BLOCK,
            "verify": true, "ledger": fixture.folder.path().join("ledger"),
        }));
        spec.ledger_block = Some(BLOCK as u32);
        spec
    }

    fn told(spec: &Spec) -> Value {
        run(spec, Method::Sync).verified.unwrap()
    }

    fn wrong(told: &Value) -> Vec<(&str, u64)> {
        let counts = FAULT_KINDS.iter().map(|&kind| (kind, told[kind].as_u64().unwrap()));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    fn put(fixture: &Fixture, place: u64, bytes: &[u8]) {
        let file = fs::OpenOptions::new().write(true).open(fixture.file()).unwrap();
        file.write_all_at(bytes, place).unwrap();
    }

    #[test]
    fn what_was_written_in_larger_blocks_is_known_of_each_of_their_parts() {
        let fixture = Fixture::new();
        told(&spec(&fixture, "write", 64 << 10));
        let reader = spec(&fixture, "randread", BLOCK);
        let found = told(&reader);
        assert_eq!((&found["checked"], wrong(&found)), (&json!(BLOCKS), vec![]));
        // A part that seems never to have been written was lost, and so was one that fell back.
        let before = fs::read(fixture.file()).unwrap();
        put(&fixture, 17 * BLOCK, &[0; BLOCK as usize]);
        assert_eq!(wrong(&told(&spec(&fixture, "read", BLOCK))), [("stale", 1)]);
        told(&spec(&fixture, "write", 64 << 10));
        put(&fixture, 18 * BLOCK, &before[18 * BLOCK as usize..][..BLOCK as usize]);
        let found = told(&spec(&fixture, "read", BLOCK));
        assert_eq!(wrong(&found), [("stale", 1)]);
        assert!(found["first"][0].as_str().unwrap().contains("block at 73728"), "{found}");
    }

    #[test]
    fn parts_of_several_writes_are_no_torn_block_where_the_ledger_knows_each() {
        let fixture = Fixture::new();
        told(&spec(&fixture, "write", 2 * BLOCK));
        // Half of the blocks in other order, and at other times, than those beside them.
        let mut some = spec(&fixture, "randwrite", BLOCK);
        some.jobs[0].io_bytes = Some(BLOCKS * BLOCK / 2);
        told(&some);
        let found = told(&spec(&fixture, "read", 2 * BLOCK));
        assert_eq!((&found["checked"], wrong(&found)), (&json!(BLOCKS / 2), vec![]));
        // A block is blamed once, whatever is wrong with its parts.
        put(&fixture, 0, &[0; 2 * BLOCK as usize]);
        assert_eq!(wrong(&told(&spec(&fixture, "read", 2 * BLOCK))), [("stale", 1)]);
        put(&fixture, 5 * BLOCK + 512, &[0; 512]);
        let found = told(&spec(&fixture, "read", 2 * BLOCK));
        assert_eq!(wrong(&found), [("torn", 1), ("stale", 1)]);
    }

    #[test]
    fn runs_with_other_seeds_and_less_of_the_file_are_held_against_the_same_ledger() {
        let fixture = Fixture::new();
        let mut writer = spec(&fixture, "write", BLOCK);
        writer.jobs[0].seed = 1;
        told(&writer);
        put(&fixture, 3 * BLOCK, &[0; BLOCK as usize]);
        let mut reader = spec(&fixture, "read", BLOCK);
        reader.jobs[0].seed = 77;
        reader.jobs[0].files[0].bytes = 16 * BLOCK;
        reader.jobs[0].io_bytes = Some(16 * BLOCK);
        let found = told(&reader);
        assert_eq!((&found["checked"], wrong(&found)), (&json!(16), vec![("stale", 1)]));
    }

    #[test]
    fn blocks_that_are_no_multiples_of_what_the_ledger_counts_in_are_refused() {
        let fixture = Fixture::new();
        let mut spec = spec(&fixture, "write", BLOCK);
        for unit in [0, 256, 768, 3000] {
            spec.ledger_block = Some(unit);
            // Of blocks of 1536 bytes 768 would be a half.
            spec.jobs[0].blocks[0].bytes = 1536;
            let told = spec.faults().join("\n");
            assert!(told.contains(&format!("ledger_block is {unit}; ")), "{told}");
        }
        spec.jobs[0].blocks[0].bytes = BLOCK as u32;
        for unit in [0, 1536, 8192] {
            spec.ledger_block = Some(unit);
            let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
            let fault = Verification::open(&spec, &targets).unwrap_err();
            assert!(fault.contains(&format!("ledger_block is {unit}")), "{fault}");
        }
    }

    fn write_of(offset: u64, bytes: u64) -> IoOp {
        IoOp { kind: IoKind::Write, target: 0, offset, bytes: bytes as u32, due: 0, sequence: 0 }
    }

    #[test]
    fn writes_that_overlap_are_made_one_after_the_other_whoever_makes_them() {
        let fixture = Fixture::new();
        let spec = spec(&fixture, "randwrite", 2 * BLOCK);
        let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
        let verification = Arc::new(Verification::open(&spec, &targets).unwrap().unwrap());
        let (mut one, mut other) =
            (Verifier::new(Arc::clone(&verification), 2), Verifier::new(verification, 2));
        let first = one.begin_io(0, &write_of(4 * BLOCK, 2 * BLOCK)).unwrap();
        // The same block, its second part, and one that shares that with it: of another thread too.
        for (offset, bytes) in [(4, 2), (5, 1), (3, 2)].map(|(at, long)| (at * BLOCK, long * BLOCK))
        {
            assert_eq!(one.begin_io(1, &write_of(offset, bytes)), None);
            assert_eq!(other.begin_io(0, &write_of(offset, bytes)), None);
        }
        // Those that might not begin keep nobody else from the blocks that were free.
        let second = other.begin_io(0, &write_of(2 * BLOCK, 2 * BLOCK)).unwrap();
        assert!(second > first);
        other.end_write(0, 0, 2 * BLOCK, WriteOutcome::Done);
        one.end_write(0, 0, 4 * BLOCK, WriteOutcome::Done);
        let third = other.begin_io(1, &write_of(3 * BLOCK, 2 * BLOCK)).unwrap();
        assert!(third > second);
        assert_eq!(one.begin_io(0, &write_of(4 * BLOCK, 2 * BLOCK)), None);
    }

    #[test]
    fn a_read_beside_a_write_finds_either_and_one_after_it_that_write() {
        let fixture = Fixture::new();
        let spec = spec(&fixture, "randrw", BLOCK);
        let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
        let verification = Arc::new(Verification::open(&spec, &targets).unwrap().unwrap());
        let mut verifier = Verifier::new(Arc::clone(&verification), 2);
        let contents = ContentsWriter::new(&spec.jobs[0].contents(), 1);
        let stamped = |sequence| {
            let mut block = vec![0; BLOCK as usize];
            contents.fill_base(&mut block);
            contents.stamp_block(&mut block, 0, 0, sequence);
            block
        };
        let half = BLOCK as usize / 2;
        let mut last = verifier.begin_io(0, &write_of(0, BLOCK)).unwrap();
        verifier.end_write(0, 0, 0, WriteOutcome::Done);
        // Of the block as it was before: all, nothing, a half.
        for old_bytes in [BLOCK as usize, 0, half] {
            verifier.begin_io(1, &IoOp { kind: IoKind::Read, ..write_of(0, BLOCK) });
            let next = verifier.begin_io(0, &write_of(0, BLOCK)).unwrap();
            verifier.end_write(0, 0, 0, WriteOutcome::Done);
            let found = [&stamped(last)[..old_bytes], &stamped(next)[old_bytes..]].concat();
            verifier.end_read(1, 0, 0, &found);
            assert_eq!(wrong(&verification.results()), []);
            last = next;
        }
        for (older, wrongs) in [(last, vec![]), (last - 1, vec![("stale", 1)])] {
            verifier.begin_io(1, &IoOp { kind: IoKind::Read, ..write_of(0, BLOCK) });
            verifier.end_read(1, 0, 0, &stamped(older));
            assert_eq!(wrong(&verification.results()), wrongs);
        }
        assert_eq!(verification.results()["checked"], json!(5));
    }

    #[test]
    fn many_writes_at_a_time_to_few_blocks_are_all_made_and_found() {
        let fixture = Fixture::new();
        for method in methods() {
            let mut few = spec(&fixture, "randwrite", BLOCK);
            few.jobs[0].files[0].bytes = 3 * BLOCK;
            few.jobs[0].io_bytes = Some(300 * BLOCK);
            let done = run(&few, method);
            assert_eq!(counts(&done, "write").0, 300, "{method:?}");
            few.jobs[0].rw = Pattern::Randread;
            let found = run(&few, method).verified.unwrap();
            assert_eq!((&found["checked"], wrong(&found)), (&json!(300), vec![]), "{method:?}");
        }
    }
}
