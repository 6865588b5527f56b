use super::*;
use crate::error::Context;
use crate::metadata::{Phases, RankFolders as Other};
use crate::prepare::scratch::Scratch;
use crate::sys::file::open_folder;
use crate::trial::TestFolder;
use std::fs;
use std::path::{Path, PathBuf};

struct Fixture {
    target: TestFolder,
    scratches: Vec<Scratch>,
}

impl Fixture {
    fn new(hosts: usize) -> Self {
        let target = TestFolder::new();
        let open = |host| {
            let name = format!("iolab-scratch-h{host}");
            Scratch::open(target.path(), &name, "a test").expect("a folder of its own").0
        };
        let scratches = (0..hosts).map(open).collect();
        Self { target, scratches }
    }

    fn dir(&self, host: usize) -> PathBuf {
        self.scratches[host].dir().to_owned()
    }

    /// Two ranks a host, five files a rank.
    fn load(&self, host: usize, phase: Phase) -> PhaseSpec {
        PhaseSpec {
            dir: self.dir(host),
            phase,
            first_rank: 2 * host as u32,
            ranks: 2,
            total_ranks: 2 * self.scratches.len() as u32,
            shift: 0,
            others: Vec::new(),
            files_per_rank: 5,
            files: Vec::new(),
            runtime_s: None,
            files_least: 0,
            file_bytes: 0,
            iteration: 0,
            start_at_real_ns: None,
            interval_ms: 1000,
            wall_limit_s: None,
        }
    }

    fn measure(&self, host: usize, phase: Phase) -> PhaseResult {
        measured(&self.load(host, phase))
    }

    fn files(&self, host: usize) -> usize {
        count_files(&self.dir(host).join("metadata.0"))
    }
}

fn count_files(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| if path.is_dir() { count_files(&path) } else { 1 })
        .sum()
}

fn open(dir: &Path) -> Result<File> {
    open_folder(dir).context(format_args!("open {}", dir.display()))
}

fn try_measure(load: &PhaseSpec) -> (Result<PhaseResult>, Vec<Interval>) {
    let mut intervals = Vec::new();
    let mut place = Phases::default().reserve(1).expect("a place");
    let measured = run_phase(load, &mut place, &open, |interval| intervals.push(interval.clone()));
    (measured, intervals)
}

fn measured(load: &PhaseSpec) -> PhaseResult {
    try_measure(load).0.expect("a phase that works")
}

fn refused(load: &PhaseSpec) -> Error {
    try_measure(load).0.expect_err("a phase that cannot be meant")
}

#[test]
fn six_phases_make_look_at_and_remove_everything() {
    let fixture = Fixture::new(1);
    let files = [
        (Phase::TreeCreate, 2, 0),
        (Phase::FileCreate, 10, 10),
        (Phase::FileStat, 10, 10),
        (Phase::FileRead, 10, 10),
        (Phase::FileRemove, 10, 0),
        (Phase::TreeRemove, 2, 0),
    ];
    for (phase, ops, left) in files {
        let measured = fixture.measure(0, phase);
        assert_eq!((measured.ops, measured.skipped), (ops, 0), "{phase:?}");
        assert!(measured.errors.is_empty(), "{phase:?}: {:?}", measured.errors);
        assert_eq!(total_count(&measured.bins), ops);
        assert_eq!(fixture.files(0), left, "{phase:?}");
        assert!(!measured.cancelled && !measured.timed_out);
    }
    assert!(!fixture.dir(0).join("metadata.0").exists());
}

#[test]
fn times_are_in_order_and_latencies_fill_them() {
    let fixture = Fixture::new(1);
    let load = PhaseSpec { ranks: 1, total_ranks: 1, ..fixture.load(0, Phase::TreeCreate) };
    measured(&load);
    let load = PhaseSpec { phase: Phase::FileCreate, files_per_rank: 500, ..load };
    let measured = measured(&load);
    let (Some(start), Some(end)) = (measured.first_start_real_ns, measured.last_end_real_ns) else {
        panic!("the rank worked");
    };
    assert!(measured.ready_real_ns <= start && start < end);
    // One rank: where an operation ends the next begins, so together they fill its time.
    assert_eq!(measured.latency_sum_ns, end - start);
    assert!(measured.latency_min_ns <= measured.latency_max_ns);
    assert!(measured.user_s + measured.system_s > 0.0);
}

#[test]
fn intervals_add_up_to_the_whole() {
    let fixture = Fixture::new(1);
    fixture.measure(0, Phase::TreeCreate);
    fixture.measure(0, Phase::FileCreate);
    let load =
        PhaseSpec { files_per_rank: 120_000, interval_ms: 100, ..fixture.load(0, Phase::FileStat) };
    let (measured, intervals) = try_measure(&load);
    let measured = measured.unwrap();
    assert_eq!(measured.ops, 10);
    assert_eq!(measured.errors, BTreeMap::from([("ENOENT".to_owned(), 239_990)]));
    let errors: u64 = intervals.iter().flat_map(|interval| interval.errors.values()).sum();
    assert_eq!(errors, 239_990);
    assert_eq!(intervals.iter().map(|interval| interval.ops).sum::<u64>(), 10);
    assert!(intervals.windows(2).all(|pair| pair[0].to_real_ns == pair[1].from_real_ns));
    assert!(intervals.iter().zip(0..).all(|(interval, seq)| interval.seq == seq));
}

#[test]
fn a_shift_leads_to_what_another_host_made() {
    let fixture = Fixture::new(2);
    for host in 0..2 {
        fixture.measure(host, Phase::TreeCreate);
    }
    fixture.measure(1, Phase::FileCreate);
    let own = fixture.load(0, Phase::FileStat);
    assert_eq!(measured(&own).errors, BTreeMap::from([("ENOENT".to_owned(), 10)]));
    let others = vec![Other { dir: fixture.dir(1), first_rank: 2, ranks: 2 }];
    let shifted = PhaseSpec { shift: 2, others, ..own };
    assert_eq!(measured(&shifted).ops, 10);
    let removing = PhaseSpec { phase: Phase::FileRemove, ..shifted };
    assert_eq!((measured(&removing).ops, fixture.files(1)), (10, 0));
}

#[test]
fn what_was_written_is_read_back_and_less_is_an_error() {
    let fixture = Fixture::new(1);
    fixture.measure(0, Phase::TreeCreate);
    let load = PhaseSpec { file_bytes: 3901, ..fixture.load(0, Phase::FileCreate) };
    assert_eq!(measured(&load).ops, 10);
    let file = |number: u32| fixture.dir(0).join(format!("metadata.0/rank.1/file.000000{number}"));
    assert_eq!(fs::metadata(file(0)).unwrap().len(), 3901);
    assert_ne!(fs::read(file(0)).unwrap(), fs::read(file(1)).unwrap());
    let again = measured(&load);
    assert_eq!((again.ops, again.errors["EEXIST"]), (0, 10));
    assert_eq!(again.latency_min_ns, None);
    fs::write(file(3), "short").unwrap();
    let reading = measured(&PhaseSpec { phase: Phase::FileRead, ..load });
    assert_eq!((reading.ops, reading.errors["short"]), (9, 1));
}

#[test]
fn a_wall_limit_stops_the_ranks_and_says_so() {
    let fixture = Fixture::new(1);
    fixture.measure(0, Phase::TreeCreate);
    let load = PhaseSpec {
        files_per_rank: 1_000_000,
        wall_limit_s: Some(0.05),
        ..fixture.load(0, Phase::FileCreate)
    };
    let measured = measured(&load);
    assert!(measured.timed_out && !measured.cancelled);
    assert!(measured.skipped > 0);
    assert_eq!(measured.ops + measured.skipped, 2_000_000);
    assert_eq!(measured.ops, fixture.files(0) as u64);
}

#[test]
fn ranks_whose_time_is_over_tell_how_far_they_came() {
    let fixture = Fixture::new(1);
    fixture.measure(0, Phase::TreeCreate);
    let timed = |phase| PhaseSpec {
        files_per_rank: 1_000_000,
        runtime_s: Some(0.05),
        ..fixture.load(0, phase)
    };
    let made = measured(&timed(Phase::FileCreate));
    assert!(!made.timed_out && !made.cancelled && made.errors.is_empty());
    assert_eq!(made.tried.iter().map(|&files| u64::from(files)).sum::<u64>(), made.ops);
    assert_eq!(made.ops + made.skipped, 2_000_000);
    assert_eq!(made.ops, fixture.files(0) as u64);
    // With all the time that it takes, each file that is there is looked at once.
    let load = PhaseSpec { files: made.tried, runtime_s: Some(600.0), ..timed(Phase::FileStat) };
    let seen = measured(&load);
    assert_eq!((seen.ops, seen.skipped, &seen.tried), (made.ops, 0, &load.files));
}

#[test]
fn ranks_whose_overtime_is_over_stop_before_their_least_files() {
    let fixture = Fixture::new(1);
    fixture.measure(0, Phase::TreeCreate);
    let load = PhaseSpec {
        files_per_rank: 1_000_000,
        files_least: 1_000_000,
        runtime_s: Some(1e-6),
        ..fixture.load(0, Phase::FileCreate)
    };
    let made = measured(&load);
    assert!(made.tried.iter().all(|&files| files < 1_000_000));
    assert!(!made.timed_out && !made.cancelled);
}

#[test]
fn a_phase_stopped_before_its_start_did_nothing() {
    let fixture = Fixture::new(1);
    let load = PhaseSpec {
        start_at_real_ns: Some(real_ns() + 60 * SECOND_NS),
        ..fixture.load(0, Phase::TreeCreate)
    };
    let phases = Phases::default();
    let mut place = phases.reserve(7).unwrap();
    assert!(phases.stop(7));
    let measured = run_phase(&load, &mut place, &open, |_| {}).unwrap();
    assert_eq!((measured.ops, measured.skipped, measured.cancelled), (0, 2, true));
    assert_eq!(measured.first_start_real_ns, None);
}

#[test]
fn no_rank_begins_before_the_start() {
    let fixture = Fixture::new(1);
    let at_ns = real_ns() + 30_000_000;
    let load = PhaseSpec { start_at_real_ns: Some(at_ns), ..fixture.load(0, Phase::TreeCreate) };
    let measured = measured(&load);
    assert!(measured.first_start_real_ns.is_some_and(|start| start >= at_ns));
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_value() {
    let fixture = Fixture::new(2);
    let good = || fixture.load(0, Phase::FileStat);
    for (load, part) in [
        (PhaseSpec { ranks: 0, ..good() }, "ranks of 0"),
        (PhaseSpec { ranks: 4097, total_ranks: 5000, ..good() }, "4097"),
        (PhaseSpec { ranks: 5, ..good() }, "rank 4 is not one of 4 ranks"),
        (PhaseSpec { first_rank: u32::MAX, ..good() }, "rank 4294967296"),
        (PhaseSpec { files_per_rank: 0, ..good() }, "files_per_rank"),
        (PhaseSpec { file_bytes: 2 << 20, ..good() }, "2097152"),
        (PhaseSpec { shift: 4, ..good() }, "shift of 4"),
        (PhaseSpec { shift: 2, ..good() }, "files of rank 2"),
        (PhaseSpec { shift: 2, phase: Phase::FileCreate, ..good() }, "may shift"),
        (PhaseSpec { files: vec![1], ..good() }, "1 ranks, of 2"),
        (PhaseSpec { files: vec![1, 6], ..good() }, "files of 6"),
        (PhaseSpec { runtime_s: Some(0.0), ..good() }, "runtime of 0"),
        (PhaseSpec { interval_ms: 1, ..good() }, "1 ms"),
        (PhaseSpec { wall_limit_s: Some(-1.0), ..good() }, "-1"),
        (PhaseSpec { start_at_real_ns: Some(u64::MAX), ..good() }, "too far"),
        (PhaseSpec { ranks: 4096, total_ranks: 4096, file_bytes: 1 << 20, ..good() }, "memory"),
        (
            PhaseSpec {
                others: vec![Other { dir: "/etc".into(), first_rank: 2, ranks: 2 }],
                ..good()
            },
            "/etc",
        ),
    ] {
        let error = refused(&load);
        assert_eq!(error.code, "bad-request", "{part}");
        assert!(error.message.contains(part), "{} lacks {part}", error.message);
    }
}

#[test]
fn a_folder_that_is_not_one_of_ours_is_never_entered() {
    let fixture = Fixture::new(2);
    let foreign = fixture.target.path().join("iolab-scratch-of-somebody");
    fs::create_dir_all(foreign.join("metadata.0/rank.2")).unwrap();
    let mut load = fixture.load(0, Phase::FileRemove);
    load.shift = 2;
    load.others = vec![Other { dir: foreign, first_rank: 2, ranks: 2 }];
    assert!(refused(&load).message.contains("not a scratch folder"));
}

#[test]
fn a_tree_that_was_never_made_is_told_by_its_path() {
    let fixture = Fixture::new(1);
    let error = refused(&fixture.load(0, Phase::FileCreate));
    assert_eq!(error.code, "ENOENT");
    assert!(error.message.contains("metadata.0"), "{}", error.message);
}

#[test]
fn many_ranks_work_side_by_side() {
    let fixture = Fixture::new(1);
    let load = PhaseSpec { ranks: 300, total_ranks: 300, ..fixture.load(0, Phase::TreeCreate) };
    assert_eq!(measured(&load).ops, 300);
    let load = PhaseSpec { phase: Phase::FileCreate, files_per_rank: 3, ..load };
    assert_eq!((measured(&load).ops, fixture.files(0)), (900, 900));
}
