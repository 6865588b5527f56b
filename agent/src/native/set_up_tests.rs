//! What comes before the loop: specs and their faults, targets, methods, and who does what.

use serde_json::json;

use super::fixture::{BLOCK, BLOCKS, Fixture};
use super::plan::{MAX_RING_DEPTH, Plan};
use super::spec::{Method, MethodChoice, Spec};
use super::target::Targets;
use super::tsc::Clock;
use super::verify::Verification;
use super::{probe, ring};

#[test]
fn no_ring_gets_more_than_it_holds_and_no_job_nothing() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&json!({}));
    // Many jobs of one I/O at a time, and one that wants all.
    spec.jobs = vec![spec.jobs[0].clone(); 9000];
    spec.jobs.iter_mut().for_each(|job| job.depth = 1);
    spec.jobs[4500].depth = 65_536;
    let methods = vec![Method::IoUring; 9000];
    let targets = Targets { all: Vec::new(), by_job: vec![vec![0]; 9000] };
    let (clock, mut notes) = (Clock::of_kernel(), Vec::new());
    let plan = Plan::of(&spec, &targets, &methods, (1, clock), &mut notes).unwrap();
    let depths: Vec<u64> = plan.threads[0].lanes.iter().map(|lane| lane.depth.into()).collect();
    assert_eq!((depths.len(), depths.iter().min()), (9000, Some(&1)));
    assert_eq!(depths.iter().sum::<u64>(), u64::from(MAX_RING_DEPTH));
    assert!(notes[0].contains("32768"), "{notes:?}");
}

#[test]
fn what_probes_read_is_told_and_each_device_is_tried_once() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&json!({"depth": 4}));
    spec.jobs.push(spec.jobs[0].clone());
    let mut notes = Vec::new();
    let targets = Targets::open(&spec, 1, &mut notes).unwrap();
    let found = probe::choose_methods(&spec, &targets, 2, &mut notes).unwrap();
    assert_eq!(found.methods.len(), 2);
    // At most a block, where it was in the page cache.
    assert!(found.reads.ios <= 1 && found.reads.bytes == found.reads.ios * BLOCK, "{found:?}");
    spec.jobs.iter_mut().for_each(|job| job.depth = 1);
    let found = probe::choose_methods(&spec, &targets, 2, &mut notes).unwrap();
    let expected =
        if ring::unsupported_reason().is_none() { Method::Sync } else { found.methods[0] };
    assert_eq!(found.methods, [expected; 2]);
    assert!(found.reads.ios <= 1, "{found:?}");
}

#[test]
fn one_write_at_a_time_to_a_file_is_made_by_a_plain_call() {
    let fixture = Fixture::new();
    let found = |depth: u32, rw: &str, path: Option<&str>| {
        let mut spec = fixture.spec(&json!({"depth": depth, "rw": rw}));
        spec.method = MethodChoice::Auto;
        if let Some(path) = path {
            (spec.direct, spec.jobs[0].files[0].path) = (false, path.into());
        }
        // More than there are threads: no trial.
        spec.jobs = vec![spec.jobs[0].clone(); 3];
        let mut notes = Vec::new();
        let targets = Targets::open(&spec, 1, &mut notes).unwrap();
        let found = probe::choose_methods(&spec, &targets, 2, &mut notes).unwrap();
        let told = notes.iter().filter(|note| note.contains("writes to files at depth 1")).count();
        (found.methods[0], told)
    };
    let base = found(2, "randread", None).0;
    assert_eq!(found(1, "randrw", None), (Method::Sync, 1));
    assert_eq!(found(1, "write", None), (Method::Sync, 1));
    assert_eq!(found(2, "randrw", None), (base, 0));
    assert_eq!(found(1, "randread", None), (base, 0));
    assert_eq!(found(1, "randwrite", Some("/dev/null")), (base, 0));
}

#[test]
fn a_ledger_is_a_file() {
    let fixture = Fixture::new();
    let spec = fixture.spec(&json!({"rw": "write", "verify": true, "ledger": "/dev/null"}));
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    assert!(Verification::open(&spec, &targets).unwrap_err().contains("/dev/null is no file"));
}

#[test]
fn all_faults_are_told_at_once_with_their_values() {
    let fixture = Fixture::new();
    let spec = fixture.spec(&json!({
        "format": 2, "interval_ms": 5, "depth": 70_000, "blocks": [{"bytes": 1000}],
        "think_every": 0, "arrivals": "poisson", "runtime_s": null, "later": 1.0,
    }));
    let told = spec.faults().join("\n");
    for part in [
        "format is 2",
        "is 5;",
        "70000",
        "1000 bytes",
        "think_every",
        "rate",
        "never end",
        "later is 1",
    ] {
        assert!(told.contains(part), "{told} lacks {part}");
    }
}

#[test]
fn targets_that_do_not_fit_are_told_with_their_values() {
    let fixture = Fixture::new();
    let told = |spec: &Spec| Targets::open(spec, 1, &mut Vec::new()).unwrap_err().join("\n");
    let mut spec = fixture.spec(&json!({}));
    spec.jobs[0].files[0].bytes += 1;
    assert!(told(&spec).contains("1048576 bytes, and a job wants 1048577"));
    spec.jobs[0].files[0].path = fixture.folder.path().join("none");
    assert!(told(&spec).contains("ENOENT"));
    spec.jobs[0].files[0].path = fixture.folder.path().to_owned();
    assert!(told(&spec).contains("neither a file nor a block device"));
    spec.jobs[0].files[0].path = "/dev/tty".into();
    assert!(told(&spec).contains("character device"));
    spec.jobs[0].files[0].path = "/dev/null".into();
    assert!(told(&spec).contains("nothing to read"));
}

#[test]
fn a_file_is_made_only_where_that_is_asked_for() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&json!({"rw": "write", "io_bytes": BLOCK}));
    spec.jobs[0].files[0].path = fixture.folder.path().join("new");
    assert!(Targets::open(&spec, 1, &mut Vec::new()).is_err());
    assert!(!fixture.folder.path().join("new").exists());
    spec.jobs[0].files[0].create = true;
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    assert_eq!(targets.all[0].file.metadata().unwrap().len(), BLOCK * BLOCKS);
    // What lies behind a link is not in the folder.
    let (link, behind) = (fixture.folder.path().join("link"), fixture.folder.path().join("behind"));
    std::os::unix::fs::symlink(&behind, &link).unwrap();
    spec.jobs[0].files[0].path = link;
    let told = Targets::open(&spec, 1, &mut Vec::new()).unwrap_err();
    assert!(told[0].contains("ELOOP") && !behind.exists(), "{told:?}");
}

#[test]
fn too_much_memory_and_unknown_keys_are_refused() {
    let fixture = Fixture::new();
    let keys = json!({"depth": 65_536, "blocks": [{"bytes": 256 << 20}]});
    let mut spec = fixture.spec(&keys);
    spec.jobs[0].files[0].bytes = 1 << 40;
    let targets = Targets { all: Vec::new(), by_job: vec![vec![0]] };
    let clock = Clock::of_kernel();
    let plan = Plan::of(&spec, &targets, &[Method::Sync], (1, clock), &mut Vec::new());
    assert!(plan.unwrap_err()[0].contains("17592186044416 bytes"));
    assert!(
        Spec::parse(b"{\"format\": 1, \"jobs\": [], \"jbos\": 1}").unwrap_err().contains("jbos")
    );
}

#[test]
fn without_times_nothing_can_go_by_the_clock() {
    let fixture = Fixture::new();
    let slow = json!({"iops": 10.0});
    for keys in [
        json!({"rate": slow}),
        json!({"rate": slow, "arrivals": "poisson"}),
        json!({"think_us": 5}),
    ] {
        let mut spec = fixture.spec(&keys);
        assert_eq!(spec.faults(), Vec::<String>::new());
        spec.timed = false;
        let told = spec.faults();
        assert!(told.len() == 1 && told[0].contains("timed is false"), "{told:?}");
    }
}
