use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::*;
use crate::trial::TestFolder;

/// Told to the test below that it is the writer, and where.
const WRITER: &str = "IOLAB_TRIAL_LEDGER";

fn shape() -> LedgerShape {
    shape_of([100, 50])
}

fn shape_of(blocks: impl IntoIterator<Item = u64>) -> LedgerShape {
    let names = (0..).map(|nth: u32| format!("file.{nth}"));
    let targets = blocks.into_iter().zip(names);
    let targets = targets.map(|(blocks, name)| TargetShape::new(blocks, name.as_bytes())).collect();
    LedgerShape { block_bytes: 4096, targets }
}

fn opened(path: &Path) -> Ledger {
    Ledger::open(path, &shape()).unwrap()
}

#[test]
fn what_was_acknowledged_is_there_when_it_is_opened_again() {
    let folder = TestFolder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    assert_eq!(ledger.first_sequence(), 1);
    for (target, block, sequence) in [(0, 99, 5), (1, 0, 6), (1, 49, 1 << 40)] {
        assert!(ledger.begin_write(target, block));
        ledger.acknowledge_write(target, block, sequence);
    }
    ledger.sync().unwrap();
    drop(ledger);
    let again = opened(&path);
    let found = [(0, 98), (0, 99), (1, 0), (1, 49)].map(|(target, at)| again.expected(target, at));
    assert_eq!(found, [0, 5, 6, 1 << 40].map(ExpectedWrite::AtLeast));
    assert!(again.first_sequence() > 1 << 40);
}

#[test]
fn a_block_has_one_write_at_a_time() {
    let ledger = Ledger::in_memory(&shape()).unwrap();
    assert!(ledger.begin_write(0, 3));
    assert!(!ledger.begin_write(0, 3));
    assert!(ledger.begin_write(0, 4) && ledger.begin_write(1, 3));
    assert_eq!(ledger.expected(0, 3), ExpectedWrite::MixedFrom(0));
    ledger.acknowledge_write(0, 3, 9);
    assert_eq!(ledger.expected(0, 3), ExpectedWrite::AtLeast(9));
    assert!(ledger.begin_write(0, 3));
    assert_eq!(ledger.expected(0, 3), ExpectedWrite::MixedFrom(9));
    ledger.sync().unwrap();
}

#[test]
fn a_write_that_failed_or_was_under_way_leaves_either() {
    let folder = TestFolder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    for block in [1, 2, 3] {
        assert!(ledger.begin_write(0, block));
        ledger.acknowledge_write(0, block, 10 + block);
        assert!(ledger.begin_write(0, block));
    }
    ledger.fail_write(0, 1);
    ledger.acknowledge_write(0, 2, 20);
    drop(ledger); // As a writer that is killed does: 3 is under way.
    let again = opened(&path);
    assert_eq!(again.expected(0, 1), ExpectedWrite::MixedFrom(11));
    assert_eq!(again.expected(0, 2), ExpectedWrite::AtLeast(20));
    assert_eq!(again.expected(0, 3), ExpectedWrite::MixedFrom(13));
    // And it may be written again.
    assert!(again.begin_write(0, 1) && again.begin_write(0, 3));
    again.acknowledge_write(0, 3, 30);
    assert_eq!(again.expected(0, 3), ExpectedWrite::AtLeast(30));
}

/// The writer in the test below: the same program, told to be it.
fn write_until_killed(path: &Path) -> ! {
    let ledger = opened(path);
    for sequence in 1.. {
        let block = sequence % 100;
        assert!(ledger.begin_write(0, block));
        ledger.acknowledge_write(0, block, sequence);
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
    let folder = TestFolder::new();
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
        let (ExpectedWrite::AtLeast(sequence) | ExpectedWrite::MixedFrom(sequence)) =
            ledger.expected(0, block);
        sequences.push(sequence);
    }
    let (lowest, highest) = (*sequences.iter().min().unwrap(), *sequences.iter().max().unwrap());
    assert!(lowest > 900 && highest - lowest <= 100, "{lowest} to {highest}");
    assert!(ledger.first_sequence() > highest);
}

#[test]
fn it_is_let_go_though_a_process_that_is_being_started_has_it_open() {
    let folder = TestFolder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    let _inherited = ledger.file.as_ref().unwrap().try_clone().unwrap();
    drop(ledger);
    opened(&path);
}

#[test]
fn another_ledger_is_refused_with_what_differs() {
    let folder = TestFolder::new();
    let path = folder.path().join("ledger");
    drop(opened(&path));
    let told = |change: fn(&mut LedgerShape)| {
        let mut other = shape();
        change(&mut other);
        Ledger::open(&path, &other).expect_err("is of another shape")
    };
    assert!(told(|it| it.block_bytes = 512).contains("blocks of 4096 bytes, and these jobs 512"));
    let renamed = told(|it| it.targets[1] = TargetShape::new(50, b"else"));
    assert!(renamed.contains("other files: target 1"), "{renamed}");
    assert!(told(|it| it.targets.push(it.targets[0])).contains("2 targets, and these jobs 3"));
    assert!(
        told(|it| it.targets[1].blocks = 51).contains("50 blocks of target 1, and these jobs 51")
    );
    assert!(told(|it| it.targets[0].blocks = 99).contains("100 blocks of target 0"));
    let bytes = fs::read(&path).unwrap();
    let mut newer = bytes.clone();
    newer[8] = 9;
    fs::write(&path, newer).unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("version 9"));
    let mut damaged = bytes.clone();
    damaged[100] ^= 1;
    fs::write(&path, damaged).unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("its checksum"));
    fs::write(&path, "something else").unwrap();
    assert!(Ledger::open(&path, &shape()).unwrap_err().contains("is no ledger"));
    assert_eq!(fs::read(&path).unwrap(), b"something else");
    for length in [bytes.len() / 2, bytes.len() - 8] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(Ledger::open(&path, &shape()).unwrap_err().contains("is damaged"));
    }
    fs::write(&path, &bytes).unwrap();
    assert_eq!(opened(&path).expected(1, 49), ExpectedWrite::AtLeast(0));
}

#[test]
fn fewer_targets_and_less_of_the_last_are_held_against_the_same_words() {
    let folder = TestFolder::new();
    let path = folder.path().join("ledger");
    let ledger = opened(&path);
    for (target, block) in [(0, 99), (1, 0), (1, 29)] {
        assert!(ledger.begin_write(target, block));
        ledger.acknowledge_write(target, block, 7 + block);
    }
    drop(ledger);
    let highest = 7 + 99;
    for fewer in [shape_of([100]), shape_of([100, 30]), shape_of([10])] {
        let ledger = Ledger::open(&path, &fewer).unwrap();
        // Whatever it does not look at was written as well.
        assert!(ledger.first_sequence() > highest);
        if fewer.targets[0].blocks == 100 {
            assert_eq!(ledger.expected(0, 99), ExpectedWrite::AtLeast(106));
        }
        if let [_, _] = fewer.targets[..] {
            assert_eq!(ledger.expected(1, 29), ExpectedWrite::AtLeast(36));
        }
    }
    // And the ledger is still of all of them.
    assert_eq!(opened(&path).expected(1, 0), ExpectedWrite::AtLeast(7));
}

#[test]
fn what_does_not_begin_after_all_changes_nothing() {
    let ledger = Ledger::in_memory(&shape()).unwrap();
    assert!(ledger.begin_write(0, 3));
    ledger.acknowledge_write(0, 3, 9);
    assert!(ledger.begin_write(0, 3));
    ledger.cancel_write(0, 3);
    assert_eq!(ledger.expected(0, 3), ExpectedWrite::AtLeast(9));
    assert!(ledger.begin_write(0, 3));
    ledger.fail_write(0, 3);
    assert!(ledger.begin_write(0, 3));
    ledger.cancel_write(0, 3);
    assert_eq!(ledger.expected(0, 3), ExpectedWrite::MixedFrom(9));
}

#[test]
fn too_many_blocks_are_refused_before_any_memory_is_taken() {
    let told = |blocks: Vec<u64>| Ledger::in_memory(&shape_of(blocks)).expect_err("cannot be kept");
    assert!(told(vec![MAX_BLOCKS, 1]).contains("268435457"));
    assert!(told(vec![u64::MAX, u64::MAX]).contains(&u64::MAX.to_string()));
    assert!(told(vec![]).contains("no block"));
    assert!(told(vec![1; MAX_TARGETS + 1]).contains("65537"));
    let fault = memory_limit_fault(1 << 20, 32 << 20).map(|_| ());
    assert_eq!(fault, None);
    let fault = memory_limit_fault((1 << 20) + 1, 32 << 20).unwrap();
    assert!(fault.contains("8388616 bytes, and 8388608 is a quarter"), "{fault}");
}

#[test]
fn a_ledger_that_cannot_be_made_is_told() {
    let fault = Ledger::open(Path::new("/nowhere/ledger"), &shape()).unwrap_err();
    assert!(fault.contains("/nowhere/ledger") && fault.contains("ENOENT"), "{fault}");
}
