use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::*;
use crate::trial::Folder;

/// Told to the test below that it is the writer, and where.
const WRITER: &str = "IOLAB_TRIAL_LEDGER";

fn shape() -> Shape {
    Shape { block_bytes: 4096, seed: 7, target_blocks: vec![100, 50] }
}

fn opened(path: &Path) -> Ledger {
    Ledger::open(path, &shape()).unwrap()
}

#[test]
fn what_was_acknowledged_is_there_when_it_is_opened_again() {
    let folder = Folder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    assert_eq!(ledger.first_sequence(), 1);
    for (target, block, sequence) in [(0, 99, 5), (1, 0, 6), (1, 49, 1 << 40)] {
        assert!(ledger.begin(target, block));
        ledger.acknowledge(target, block, sequence);
    }
    ledger.sync().unwrap();
    drop(ledger);
    let again = opened(&path);
    let found = [(0, 98), (0, 99), (1, 0), (1, 49)].map(|(target, at)| again.expected(target, at));
    assert_eq!(found, [0, 5, 6, 1 << 40].map(Expected::AtLeast));
    assert!(again.first_sequence() > 1 << 40);
}

#[test]
fn a_block_has_one_write_at_a_time() {
    let ledger = Ledger::in_memory(&shape()).unwrap();
    assert!(ledger.begin(0, 3));
    assert!(!ledger.begin(0, 3));
    assert!(ledger.begin(0, 4) && ledger.begin(1, 3));
    assert_eq!(ledger.expected(0, 3), Expected::MixedFrom(0));
    ledger.acknowledge(0, 3, 9);
    assert_eq!(ledger.expected(0, 3), Expected::AtLeast(9));
    assert!(ledger.begin(0, 3));
    assert_eq!(ledger.expected(0, 3), Expected::MixedFrom(9));
    ledger.sync().unwrap();
}

#[test]
fn a_write_that_failed_or_was_under_way_leaves_either() {
    let folder = Folder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    for block in [1, 2, 3] {
        assert!(ledger.begin(0, block));
        ledger.acknowledge(0, block, 10 + block);
        assert!(ledger.begin(0, block));
    }
    ledger.abandon(0, 1);
    ledger.acknowledge(0, 2, 20);
    drop(ledger); // As a writer that is killed does: 3 is under way.
    let again = opened(&path);
    assert_eq!(again.expected(0, 1), Expected::MixedFrom(11));
    assert_eq!(again.expected(0, 2), Expected::AtLeast(20));
    assert_eq!(again.expected(0, 3), Expected::MixedFrom(13));
    // And it may be written again.
    assert!(again.begin(0, 1) && again.begin(0, 3));
    again.acknowledge(0, 3, 30);
    assert_eq!(again.expected(0, 3), Expected::AtLeast(30));
}

/// The writer in the test below: the same program, told to be it.
fn write_until_killed(path: &Path) -> ! {
    let ledger = opened(path);
    for sequence in 1.. {
        let block = sequence % 100;
        assert!(ledger.begin(0, block));
        ledger.acknowledge(0, block, sequence);
        if sequence == 1000 {
            println!("\nwritten");
        }
    }
    unreachable!("sequences do not end");
}

#[test]
fn it_survives_the_writer_being_killed() {
    if let Some(path) = env::var_os(WRITER) {
        write_until_killed(&PathBuf::from(path));
    }
    let folder = Folder::new();
    let path = folder.path().join("ledger");
    let own_name = "native::ledger::tests::it_survives_the_writer_being_killed";
    let mut writer = Command::new(env::current_exe().unwrap())
        .args(["--exact", own_name, "--nocapture"])
        .env(WRITER, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let is_written = lines.map_while(Result::ok).any(|line| line == "written");
    let is_held = Ledger::open(&path, &shape());
    writer.kill().unwrap(); // SIGKILL.
    writer.wait().unwrap();
    assert!(is_written);
    assert!(is_held.unwrap_err().contains("in use"));
    let ledger = opened(&path);
    let mut sequences = Vec::new();
    for block in 0..100 {
        let (Expected::AtLeast(sequence) | Expected::MixedFrom(sequence)) =
            ledger.expected(0, block);
        sequences.push(sequence);
    }
    let (lowest, highest) = (*sequences.iter().min().unwrap(), *sequences.iter().max().unwrap());
    assert!(lowest > 900 && highest - lowest <= 100, "{lowest} to {highest}");
    assert!(ledger.first_sequence() > highest);
}

#[test]
fn another_ledger_is_refused_with_what_differs() {
    let folder = Folder::new();
    let path = folder.path().join("ledger");
    drop(opened(&path));
    let told = |change: fn(&mut Shape)| {
        let mut other = shape();
        change(&mut other);
        Ledger::open(&path, &other).expect_err("is of another shape")
    };
    assert!(told(|it| it.block_bytes = 512).contains("blocks of 4096 bytes, and these jobs 512"));
    assert!(told(|it| it.seed = 8).contains("seed 7, and these jobs of 8"));
    assert!(told(|it| it.target_blocks.push(1)).contains("2 targets, and these jobs 3"));
    assert!(told(|it| it.target_blocks[1] = 51).contains("other sizes"));
    let bytes = fs::read(&path).unwrap();
    let mut newer = bytes.clone();
    newer[8] = 9;
    fs::write(&path, newer).unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("version 9"));
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    fs::write(&path, damaged).unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("other sizes"));
    fs::write(&path, "something else").unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("is no ledger"));
    assert_eq!(fs::read(&path).unwrap(), b"something else");
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(Ledger::open(&path, &shape()).is_err());
}

#[test]
fn too_many_blocks_are_refused_before_any_memory_is_taken() {
    let told = |target_blocks| {
        let shape = Shape { block_bytes: 4096, seed: 1, target_blocks };
        Ledger::in_memory(&shape).expect_err("cannot be kept")
    };
    assert!(told(vec![MAX_BLOCKS, 1]).contains("268435457"));
    assert!(told(vec![u64::MAX, u64::MAX]).contains(&u64::MAX.to_string()));
    assert!(told(vec![]).contains("no block"));
    assert!(told(vec![1; MAX_TARGETS + 1]).contains("65537"));
}

#[test]
fn a_ledger_that_cannot_be_made_is_told() {
    let fault = Ledger::open(Path::new("/nowhere/ledger"), &shape()).unwrap_err();
    assert!(fault.contains("/nowhere/ledger") && fault.contains("ENOENT"), "{fault}");
}
