use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use super::*;
use crate::native::bed::{BLOCK, BLOCKS, Bed, counts, methods, run};
use crate::native::contents::Contents;
use crate::native::spec::{Method, Pattern};

/// A job of blocks of that size over the whole file, once, on a ledger that counts in `BLOCK`.
fn spec(bed: &Bed, rw: &str, block_bytes: u64) -> Spec {
    let mut spec = bed.spec(&json!({
        "rw": rw, "blocks": [{"bytes": block_bytes}], "io_bytes": BLOCKS * BLOCK,
        "verify": true, "ledger": bed.folder.path().join("ledger"),
    }));
    spec.ledger_block = Some(BLOCK as u32);
    spec
}

fn told(spec: &Spec) -> Value {
    run(spec, Method::Sync).told.unwrap()
}

fn wrong(told: &Value) -> Vec<(&str, u64)> {
    let counts = KINDS.iter().map(|&kind| (kind, told[kind].as_u64().unwrap()));
    counts.filter(|(_, count)| *count > 0).collect()
}

fn put(bed: &Bed, place: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().write(true).open(bed.file()).unwrap();
    file.write_all_at(bytes, place).unwrap();
}

#[test]
fn what_was_written_in_larger_blocks_is_known_of_each_of_their_parts() {
    let bed = Bed::new();
    told(&spec(&bed, "write", 64 << 10));
    let reader = spec(&bed, "randread", BLOCK);
    let found = told(&reader);
    assert_eq!((&found["checked"], wrong(&found)), (&json!(BLOCKS), vec![]));
    // A part that seems never to have been written was lost, and so was one that fell back.
    let before = fs::read(bed.file()).unwrap();
    put(&bed, 17 * BLOCK, &[0; BLOCK as usize]);
    assert_eq!(wrong(&told(&spec(&bed, "read", BLOCK))), [("stale", 1)]);
    told(&spec(&bed, "write", 64 << 10));
    put(&bed, 18 * BLOCK, &before[18 * BLOCK as usize..][..BLOCK as usize]);
    let found = told(&spec(&bed, "read", BLOCK));
    assert_eq!(wrong(&found), [("stale", 1)]);
    assert!(found["first"][0].as_str().unwrap().contains("block at 73728"), "{found}");
}

#[test]
fn parts_of_several_writes_are_no_torn_block_where_the_ledger_knows_each() {
    let bed = Bed::new();
    told(&spec(&bed, "write", 2 * BLOCK));
    // Half of the blocks in other order, and at other times, than those beside them.
    let mut some = spec(&bed, "randwrite", BLOCK);
    some.jobs[0].io_bytes = Some(BLOCKS * BLOCK / 2);
    told(&some);
    let found = told(&spec(&bed, "read", 2 * BLOCK));
    assert_eq!((&found["checked"], wrong(&found)), (&json!(BLOCKS / 2), vec![]));
    // A block is blamed once, whatever is wrong with its parts.
    put(&bed, 0, &[0; 2 * BLOCK as usize]);
    assert_eq!(wrong(&told(&spec(&bed, "read", 2 * BLOCK))), [("stale", 1)]);
    put(&bed, 5 * BLOCK + 512, &[0; 512]);
    let found = told(&spec(&bed, "read", 2 * BLOCK));
    assert_eq!(wrong(&found), [("torn", 1), ("stale", 1)]);
}

#[test]
fn runs_with_other_seeds_and_less_of_the_file_are_held_against_the_same_ledger() {
    let bed = Bed::new();
    let mut writer = spec(&bed, "write", BLOCK);
    writer.jobs[0].seed = 1;
    told(&writer);
    put(&bed, 3 * BLOCK, &[0; BLOCK as usize]);
    let mut reader = spec(&bed, "read", BLOCK);
    reader.jobs[0].seed = 77;
    reader.jobs[0].files[0].bytes = 16 * BLOCK;
    reader.jobs[0].io_bytes = Some(16 * BLOCK);
    let found = told(&reader);
    assert_eq!((&found["checked"], wrong(&found)), (&json!(16), vec![("stale", 1)]));
}

#[test]
fn blocks_that_are_no_multiples_of_what_the_ledger_counts_in_are_refused() {
    let bed = Bed::new();
    let mut spec = spec(&bed, "write", BLOCK);
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
        let fault = Book::open(&spec, &targets).unwrap_err();
        assert!(fault.contains(&format!("ledger_block is {unit}")), "{fault}");
    }
}

fn write_of(offset: u64, bytes: u64) -> Op {
    Op { act: Act::Write, target: 0, offset, bytes: bytes as u32, due: 0, sequence: 0 }
}

#[test]
fn writes_that_overlap_are_made_one_after_the_other_whoever_makes_them() {
    let bed = Bed::new();
    let spec = spec(&bed, "randwrite", 2 * BLOCK);
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    let book = Arc::new(Book::open(&spec, &targets).unwrap().unwrap());
    let (mut one, mut other) = (Proof::new(Arc::clone(&book), 2), Proof::new(book, 2));
    let first = one.begin(0, &write_of(4 * BLOCK, 2 * BLOCK)).unwrap();
    // The same block, its second part, and one that shares that with it: of another thread too.
    for (offset, bytes) in [(4, 2), (5, 1), (3, 2)].map(|(at, long)| (at * BLOCK, long * BLOCK)) {
        assert_eq!(one.begin(1, &write_of(offset, bytes)), None);
        assert_eq!(other.begin(0, &write_of(offset, bytes)), None);
    }
    // Those that might not begin keep nobody else from the blocks that were free.
    let second = other.begin(0, &write_of(2 * BLOCK, 2 * BLOCK)).unwrap();
    assert!(second > first);
    other.end_write(0, 0, 2 * BLOCK, Outcome::Done);
    one.end_write(0, 0, 4 * BLOCK, Outcome::Done);
    let third = other.begin(1, &write_of(3 * BLOCK, 2 * BLOCK)).unwrap();
    assert!(third > second);
    assert_eq!(one.begin(0, &write_of(4 * BLOCK, 2 * BLOCK)), None);
}

#[test]
fn a_read_beside_a_write_finds_either_and_one_after_it_that_write() {
    let bed = Bed::new();
    let spec = spec(&bed, "randrw", BLOCK);
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    let book = Arc::new(Book::open(&spec, &targets).unwrap().unwrap());
    let mut proof = Proof::new(Arc::clone(&book), 2);
    let contents = Contents::new(&spec.jobs[0].contents(), 1);
    let stamped = |sequence| {
        let mut block = vec![0; BLOCK as usize];
        contents.fill_base(&mut block);
        contents.stamp(&mut block, 0, 0, sequence);
        block
    };
    let half = BLOCK as usize / 2;
    let mut last = proof.begin(0, &write_of(0, BLOCK)).unwrap();
    proof.end_write(0, 0, 0, Outcome::Done);
    // Of the block as it was before: all, nothing, a half.
    for old_bytes in [BLOCK as usize, 0, half] {
        proof.begin(1, &Op { act: Act::Read, ..write_of(0, BLOCK) });
        let next = proof.begin(0, &write_of(0, BLOCK)).unwrap();
        proof.end_write(0, 0, 0, Outcome::Done);
        let found = [&stamped(last)[..old_bytes], &stamped(next)[old_bytes..]].concat();
        proof.end_read(1, 0, 0, &found);
        assert_eq!(wrong(&book.told()), []);
        last = next;
    }
    for (older, wrongs) in [(last, vec![]), (last - 1, vec![("stale", 1)])] {
        proof.begin(1, &Op { act: Act::Read, ..write_of(0, BLOCK) });
        proof.end_read(1, 0, 0, &stamped(older));
        assert_eq!(wrong(&book.told()), wrongs);
    }
    assert_eq!(book.told()["checked"], json!(5));
}

#[test]
fn many_writes_at_a_time_to_few_blocks_are_all_made_and_found() {
    let bed = Bed::new();
    for method in methods() {
        let mut few = spec(&bed, "randwrite", BLOCK);
        few.jobs[0].files[0].bytes = 3 * BLOCK;
        few.jobs[0].io_bytes = Some(300 * BLOCK);
        let done = run(&few, method);
        assert_eq!(counts(&done, "write").0, 300, "{method:?}");
        few.jobs[0].rw = Pattern::Randread;
        let found = run(&few, method).told.unwrap();
        assert_eq!((&found["checked"], wrong(&found)), (&json!(300), vec![]), "{method:?}");
    }
}
