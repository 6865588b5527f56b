//! The loop of a worker by every method, on a file of this machine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{BLOCK, BLOCKS, Fixture, counts, methods, run, run_on, run_with_halt};
use super::halt::Halt;
use super::plan::{Plan, ThreadPlan};
use super::spec::Method;
use super::target::Targets;
use super::tsc::Clock;

#[test]
fn every_method_does_as_many_ios_as_it_counts() {
    let fixture = Fixture::new();
    for method in methods() {
        let run = run(&fixture.spec(&json!({"io_bytes": 1000 * BLOCK})), method);
        assert_eq!(counts(&run, "read"), (1000, 1000 * BLOCK, 1000), "{method:?}");
        assert!(run.now.errors().is_empty() && run.ended.is_early);
        assert_eq!((run.now.drained_ios(), run.ended.error), (0, None));
    }
}

#[test]
fn a_file_is_written_whole_with_a_shorter_last_block() {
    let fixture = Fixture::new();
    let whole = BLOCK * BLOCKS;
    for method in methods() {
        let keys = json!({"rw": "write", "blocks": [{"bytes": 3 * BLOCK}], "io_bytes": whole});
        let run = run(&fixture.spec(&keys), method);
        assert_eq!(counts(&run, "write"), (86, whole, 86), "{method:?}");
        let bytes = std::fs::read(fixture.file()).unwrap();
        assert_eq!(bytes.len() as u64, whole);
        assert!(bytes.chunks(512).all(|sector| sector.iter().any(|&byte| byte != 0)));
    }
}

#[test]
fn mixed_jobs_count_both_ways_and_their_fsyncs() {
    let fixture = Fixture::new();
    for method in methods() {
        let keys = json!({"rw": "randrw", "io_bytes": 400 * BLOCK, "fsync_every": 10});
        let run = run(&fixture.spec(&keys), method);
        let (reads, writes) = (counts(&run, "read").0, counts(&run, "write").0);
        assert_eq!(reads + writes, 400, "{method:?}");
        assert!(reads > 100 && writes > 100);
        // None follows the last write when the job ends with it.
        let syncs = counts(&run, "sync").0;
        assert!([writes / 10, (writes - 1) / 10].contains(&syncs), "{method:?}: {syncs}");
    }
}

#[test]
fn an_end_of_the_file_that_is_gone_is_a_short_read() {
    let fixture = Fixture::new();
    File::options().write(true).open(fixture.file()).unwrap().set_len(100 * BLOCK + 512).unwrap();
    for method in methods() {
        let mut spec = fixture.spec(&json!({"rw": "read", "io_bytes": BLOCKS * BLOCK}));
        spec.jobs[0].files[0].bytes = 100 * BLOCK;
        let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
        spec.jobs[0].files[0].bytes = BLOCKS * BLOCK;
        let run = run_on(targets, &spec, method, &Arc::default());
        assert_eq!(run.now.errors()["read"]["short"], BLOCKS - 100, "{method:?}");
        // The one that got a part is asked for the rest, and the others are not asked for again.
        assert_eq!(run.now.retries(), [("short", 1)].into(), "{method:?}");
        assert_eq!(counts(&run, "read").0, 100);
    }
}

#[test]
fn arrivals_are_counted_by_response_service_and_lateness() {
    let fixture = Fixture::new();
    for method in methods() {
        let keys =
            json!({"rate": {"iops": 20_000.0}, "arrivals": "fixed", "io_bytes": 100 * BLOCK});
        let run = run(&fixture.spec(&keys), method);
        let whole = run.now.totals();
        let sum = |of: &Value| of["lat_sum_ns"].as_u64().unwrap();
        assert_eq!(counts(&run, "read").0, 100, "{method:?}");
        assert!(sum(&whole["read"]) >= sum(&whole["read"]["service"]));
        assert_eq!(run.now.lateness()["count"], json!(100));
    }
}

#[test]
fn jobs_and_hosts_with_a_fixed_rate_take_turns() {
    let fixture = Fixture::new();
    for later in [0.0, 0.5] {
        let rate = json!({"iops": 10.0});
        let keys = json!({"rate": rate, "arrivals": "fixed", "depth": 1, "later": later});
        let mut spec = fixture.spec(&keys);
        spec.jobs.push(spec.jobs[0].clone());
        let (clock, methods) = (Clock::of_kernel(), [Method::Sync; 2]);
        let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
        let plan = Plan::of(&spec, &targets, &methods, (1, clock), &mut Vec::new()).unwrap();
        let due = |mut one: ThreadPlan| one.lanes[0].feed.next().unwrap().due;
        let dues: Vec<u64> = plan.threads.into_iter().map(due).collect();
        // Each job has one every 100 ms, and both together one every 50.
        let parts = [later * 50e6, (1.0 + later) * 50e6];
        assert_eq!(dues, parts.map(|ns| clock.ticks_of(ns as u64).max(1)), "{later}");
    }
}

#[test]
fn a_halt_ends_a_wait_for_what_is_due_and_what_was_done_counts() {
    let fixture = Fixture::new();
    for method in methods() {
        // Of these the first is due at once and the second a quarter of an hour later.
        let keys = json!({"rate": {"iops": 0.001}, "arrivals": "fixed", "runtime_s": 3600.0});
        let halt = Arc::new(Halt::default());
        let other = Arc::clone(&halt);
        let halting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            other.request(Clock::of_kernel().ticks());
        });
        let run = run_with_halt(&fixture.spec(&keys), method, &halt);
        halting.join().unwrap();
        // On a busy machine the halt may come before the first.
        let (done, bytes, binned) = counts(&run, "read");
        assert!(done <= 1 && (bytes, binned) == (done * BLOCK, done), "{method:?}: {done}");
        assert!(halt.is_requested() && !run.ended.is_early);
    }
}

#[test]
fn a_halt_before_the_start_has_nothing_done() {
    let fixture = Fixture::new();
    for method in methods() {
        let halt = Arc::new(Halt::default());
        halt.request(0);
        let run = run_with_halt(&fixture.spec(&json!({})), method, &halt);
        assert_eq!(counts(&run, "read"), (0, 0, 0), "{method:?}");
        assert_eq!((run.now.drained_ios(), run.ended.error), (0, None));
    }
}

#[test]
fn what_a_job_wrote_is_what_it_reads_until_a_bit_flips() {
    let fixture = Fixture::new();
    let ledger = fixture.folder.path().join("ledger");
    for method in methods() {
        let keys = json!({
            "rw": "randwrite", "io_bytes": 3 * BLOCKS * BLOCK, "verify": true, "ledger": ledger,
        });
        run(&fixture.spec(&keys), method);
        let keys = json!({
            "rw": "read", "io_bytes": BLOCKS * BLOCK, "verify": true, "ledger": ledger,
        });
        let told = run(&fixture.spec(&keys), method).verified.unwrap();
        assert_eq!((&told["checked"], &told["first"]), (&json!(BLOCKS), &json!([])), "{method:?}");
        flip(&fixture.file(), 70 * BLOCK as usize + 600);
        let told = run(&fixture.spec(&keys), method).verified.unwrap();
        assert_eq!(told["corrupt"], json!(1));
        assert!(told["first"][0].as_str().unwrap().contains("286720"), "{told}");
        flip(&fixture.file(), 70 * BLOCK as usize + 600);
    }
}

fn flip(file: &Path, place: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[place] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn without_times_ios_are_counted_and_in_no_bin() {
    let fixture = Fixture::new();
    for method in methods() {
        let keys = json!({"timed": false, "rw": "randrw", "io_bytes": 400 * BLOCK});
        let run = run(&fixture.spec(&keys), method);
        let (reads, writes) = (counts(&run, "read"), counts(&run, "write"));
        assert_eq!((reads.0 + writes.0, reads.1 + writes.1), (400, 400 * BLOCK), "{method:?}");
        assert_eq!((reads.2, writes.2), (0, 0));
        let whole = run.now.totals();
        assert_eq!(
            (&whole["read"]["min_ns"], &whole["read"]["max_ns"]),
            (&json!(null), &json!(null))
        );
    }
}
