use std::fs;
use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use super::*;
use crate::native::bed::{BLOCK, BLOCKS, Bed, run};
use crate::native::spec::Method;

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
