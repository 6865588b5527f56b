//! The whole engine below its door: specs, their faults, and loops on a file of this machine.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::counts::{Arrivals, Scores};
use super::halt::Halt;
use super::lines::Snapshot;
use super::plan::{Crew, RING_DEPTH};
use super::proof::Book;
use super::queue::{Act, Queue};
use super::ring::{Ring, Wish};
use super::slot::Memory;
use super::spec::{Method, Spec};
use super::sync::OneByOne;
use super::target::{Target, Targets};
use super::tsc::Clock;
use super::worker::{Ended, Times, Worker};
use super::{aio, probe, ring};
use crate::trial::Folder;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 256;

struct Bed {
    folder: Folder,
}

impl Bed {
    fn new() -> Self {
        let folder = Folder::new();
        File::create(folder.path().join("f")).unwrap().set_len(BLOCK * BLOCKS).unwrap();
        Self { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("f")
    }

    /// A spec of one job, with these keys of it changed.
    fn spec(&self, keys: &Value) -> Spec {
        let mut job = json!({
            "files": [{"path": self.file(), "bytes": BLOCK * BLOCKS}],
            "rw": "randread", "blocks": [{"bytes": BLOCK}], "depth": 8, "seed": 3,
        });
        let mut all = json!({"format": 1, "direct": false, "runtime_s": 30.0});
        for (key, value) in keys.as_object().unwrap() {
            let place = if job.get(key).is_some() || !TOP.contains(&key.as_str()) {
                &mut job
            } else {
                &mut all
            };
            place[key] = value.clone();
        }
        all["jobs"] = json!([job]);
        Spec::read(all.to_string().as_bytes()).unwrap()
    }
}

const TOP: [&str; 7] =
    ["format", "direct", "runtime_s", "interval_ms", "threads", "method", "ledger"];

/// One worker's run of the spec's job by one method.
struct Run {
    ended: Ended,
    now: Snapshot,
    told: Option<Value>,
}

fn run(spec: &Spec, method: Method) -> Run {
    run_heeding(spec, method, &Arc::default())
}

fn run_heeding(spec: &Spec, method: Method, halt: &Arc<Halt>) -> Run {
    assert_eq!(spec.faults(), Vec::<String>::new());
    let mut notes = Vec::new();
    let targets = Targets::open(spec, 1, &mut notes).unwrap();
    let clock = Clock::of_kernel();
    let crew = Crew::of(spec, &targets, &[method], (1, clock), &mut notes).unwrap();
    let book = Book::open(spec, &targets).unwrap().map(Arc::new);
    let all = Arc::new(targets.all);
    let start = clock.ticks();
    let runtime_ns = (spec.runtime_s.unwrap_or(3600.0) * 1e9) as u64;
    let times = Times { start, deadline: start + runtime_ns };
    let mut scores = Vec::new();
    let mut last = Ended::default();
    for member in crew.members {
        let own = Arc::new(member.scores(spec));
        scores.push(Arc::clone(&own));
        let mut memory = Memory::of(&member.lanes).unwrap();
        memory.fill(&member.lanes);
        let depth = member.lanes.iter().map(|lane| lane.depth).sum();
        let lanes = member.lanes;
        let parts = (lanes, memory, clock, own, (book.clone(), Arc::clone(halt)), times);
        last = match method {
            Method::Sync => work(OneByOne::new(Arc::clone(&all)), parts),
            Method::Libaio => work(aio::Aio::new(depth, &all).unwrap(), parts),
            Method::IoUring => {
                let wish = Wish { depth, poll: false, sqpoll: false };
                let targets: Vec<&Target> = all.iter().collect();
                let queue = Ring::new(wish, &targets, &parts.1.buffers, &mut notes).unwrap();
                work(queue, parts)
            }
        };
    }
    let told = book.map(|book| book.told());
    Run { ended: last, now: Snapshot::of(&scores), told }
}

type Heeded = (Option<Arc<Book>>, Arc<Halt>);
type Parts = (Vec<super::lane::Lane>, Memory, Clock, Arc<Scores>, Heeded, Times);

fn work<Q: Queue>(queue: Q, (lanes, memory, clock, scores, heeded, times): Parts) -> Ended {
    let (book, halt) = heeded;
    Worker::new(queue, lanes, memory, clock, scores).proving(book).heeding(halt).run(times)
}

/// The methods that this machine's kernel has.
fn methods() -> Vec<Method> {
    let ring = ring::objection().is_none().then_some(Method::IoUring);
    let aio = aio::objection().is_none().then_some(Method::Libaio);
    [Some(Method::Sync), ring, aio].into_iter().flatten().collect()
}

fn counts(run: &Run, way: &str) -> (u64, u64, u64) {
    let whole = run.now.whole();
    let bins = whole[way]["bins"].as_array().unwrap();
    let sum = bins.iter().map(|bin| bin[1].as_u64().unwrap()).sum();
    (whole[way]["ios"].as_u64().unwrap(), whole[way]["bytes"].as_u64().unwrap(), sum)
}

#[test]
fn every_method_does_as_many_ios_as_it_counts() {
    let bed = Bed::new();
    for method in methods() {
        let run = run(&bed.spec(&json!({"io_bytes": 1000 * BLOCK})), method);
        assert_eq!(counts(&run, "read"), (1000, 1000 * BLOCK, 1000), "{method:?}");
        assert!(run.now.errors().is_empty() && run.ended.is_early);
        assert_eq!((run.now.drained(), run.ended.broken), (0, None));
    }
}

#[test]
fn a_file_is_written_whole_with_a_shorter_last_block() {
    let bed = Bed::new();
    let whole = BLOCK * BLOCKS;
    for method in methods() {
        let keys = json!({"rw": "write", "blocks": [{"bytes": 3 * BLOCK}], "io_bytes": whole});
        let run = run(&bed.spec(&keys), method);
        assert_eq!(counts(&run, "write"), (86, whole, 86), "{method:?}");
        let bytes = std::fs::read(bed.file()).unwrap();
        assert_eq!(bytes.len() as u64, whole);
        assert!(bytes.chunks(512).all(|sector| sector.iter().any(|&byte| byte != 0)));
    }
}

#[test]
fn mixed_jobs_count_both_ways_and_their_fsyncs() {
    let bed = Bed::new();
    for method in methods() {
        let keys = json!({"rw": "randrw", "io_bytes": 400 * BLOCK, "fsync_every": 10});
        let run = run(&bed.spec(&keys), method);
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
    let bed = Bed::new();
    File::options().write(true).open(bed.file()).unwrap().set_len(100 * BLOCK + 512).unwrap();
    for method in methods() {
        let mut spec = bed.spec(&json!({"rw": "read", "io_bytes": BLOCKS * BLOCK}));
        spec.jobs[0].files[0].bytes = 100 * BLOCK;
        let run = run_beyond(&spec, method);
        assert_eq!(run.now.errors()["read"]["short"], BLOCKS - 100, "{method:?}");
        assert_eq!(counts(&run, "read").0, 100);
    }
}

/// Run a job that was checked against a shorter file over the whole of it.
fn run_beyond(spec: &Spec, method: Method) -> Run {
    let mut notes = Vec::new();
    let targets = Targets::open(spec, 1, &mut notes).unwrap();
    let mut longer = spec.clone();
    longer.jobs[0].files[0].bytes = BLOCK * BLOCKS;
    let clock = Clock::of_kernel();
    let mut crew = Crew::of(&longer, &targets, &[method], (1, clock), &mut notes).unwrap();
    let all = Arc::new(targets.all);
    let member = crew.members.remove(0);
    let scores = Arc::new(Scores::new(&[Act::Read], Arrivals::Free));
    let memory = Memory::of(&member.lanes).unwrap();
    let times = Times { start: 0, deadline: u64::MAX };
    let depth = member.lanes.iter().map(|lane| lane.depth).sum();
    let heeded = (None, Arc::default());
    let parts = (member.lanes, memory, clock, Arc::clone(&scores), heeded, times);
    let ended = match method {
        Method::Sync => work(OneByOne::new(all), parts),
        Method::Libaio => work(aio::Aio::new(depth, &all).unwrap(), parts),
        Method::IoUring => {
            let targets: Vec<&Target> = all.iter().collect();
            let wish = Wish { depth, poll: false, sqpoll: false };
            let ring = Ring::new(wish, &targets, &parts.1.buffers, &mut notes).unwrap();
            work(ring, parts)
        }
    };
    Run { ended, now: Snapshot::of(&[scores]), told: None }
}

#[test]
fn arrivals_are_counted_by_response_service_and_lateness() {
    let bed = Bed::new();
    for method in methods() {
        let keys =
            json!({"rate": {"iops": 20_000.0}, "arrivals": "fixed", "io_bytes": 100 * BLOCK});
        let run = run(&bed.spec(&keys), method);
        let whole = run.now.whole();
        let sum = |of: &Value| of["lat_sum_ns"].as_u64().unwrap();
        assert_eq!(counts(&run, "read").0, 100, "{method:?}");
        assert!(sum(&whole["read"]) >= sum(&whole["read"]["service"]));
        assert_eq!(run.now.lateness()["count"], json!(100));
    }
}

#[test]
fn a_halt_ends_a_wait_for_what_is_due_and_what_was_done_counts() {
    let bed = Bed::new();
    for method in methods() {
        // Of these the first is due at once and the second a quarter of an hour later.
        let keys = json!({"rate": {"iops": 0.001}, "arrivals": "fixed", "runtime_s": 3600.0});
        let halt = Arc::new(Halt::default());
        let other = Arc::clone(&halt);
        let halting = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            other.wish(Clock::of_kernel().ticks());
        });
        let run = run_heeding(&bed.spec(&keys), method, &halt);
        halting.join().unwrap();
        assert_eq!(counts(&run, "read"), (1, BLOCK, 1), "{method:?}");
        assert!(halt.is_wished() && !run.ended.is_early);
    }
}

#[test]
fn a_halt_before_the_start_has_nothing_done() {
    let bed = Bed::new();
    for method in methods() {
        let halt = Arc::new(Halt::default());
        halt.wish(0);
        let run = run_heeding(&bed.spec(&json!({})), method, &halt);
        assert_eq!(counts(&run, "read"), (0, 0, 0), "{method:?}");
        assert_eq!((run.now.drained(), run.ended.broken), (0, None));
    }
}

#[test]
fn no_ring_gets_more_than_it_holds_and_no_job_nothing() {
    let bed = Bed::new();
    let mut spec = bed.spec(&json!({}));
    // Many jobs of one I/O at a time, and one that wants all.
    spec.jobs = vec![spec.jobs[0].clone(); 9000];
    spec.jobs.iter_mut().for_each(|job| job.depth = 1);
    spec.jobs[4500].depth = 65_536;
    let methods = vec![Method::IoUring; 9000];
    let targets = Targets { all: Vec::new(), of_jobs: vec![vec![0]; 9000] };
    let (clock, mut notes) = (Clock::of_kernel(), Vec::new());
    let crew = Crew::of(&spec, &targets, &methods, (1, clock), &mut notes).unwrap();
    let depths: Vec<u64> = crew.members[0].lanes.iter().map(|lane| lane.depth.into()).collect();
    assert_eq!((depths.len(), depths.iter().min()), (9000, Some(&1)));
    assert_eq!(depths.iter().sum::<u64>(), u64::from(RING_DEPTH));
    assert!(notes[0].contains("32768"), "{notes:?}");
}

#[test]
fn what_probes_read_is_told_and_each_bed_is_tried_once() {
    let bed = Bed::new();
    let mut spec = bed.spec(&json!({"depth": 4}));
    spec.jobs.push(spec.jobs[0].clone());
    let mut notes = Vec::new();
    let targets = Targets::open(&spec, 1, &mut notes).unwrap();
    let found = probe::methods(&spec, &targets, 2, &mut notes).unwrap();
    assert_eq!(found.methods.len(), 2);
    // At most a block, where it was in the page cache.
    assert!(found.reads.ios <= 1 && found.reads.bytes == found.reads.ios * BLOCK, "{found:?}");
    spec.jobs.iter_mut().for_each(|job| job.depth = 1);
    let found = probe::methods(&spec, &targets, 2, &mut notes).unwrap();
    let expected = if ring::objection().is_none() { Method::Sync } else { found.methods[0] };
    assert_eq!(found.methods, [expected; 2]);
    assert!(found.reads.ios <= 1, "{found:?}");
}

#[test]
fn a_ledger_is_a_file() {
    let bed = Bed::new();
    let spec = bed.spec(&json!({"rw": "write", "verify": true, "ledger": "/dev/null"}));
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    assert!(Book::open(&spec, &targets).unwrap_err().contains("/dev/null is no file"));
}

#[test]
fn what_a_job_wrote_is_what_it_reads_until_a_bit_flips() {
    let bed = Bed::new();
    let ledger = bed.folder.path().join("ledger");
    for method in methods() {
        let keys = json!({
            "rw": "randwrite", "io_bytes": 3 * BLOCKS * BLOCK, "verify": true, "ledger": ledger,
        });
        run(&bed.spec(&keys), method);
        let keys = json!({
            "rw": "read", "io_bytes": BLOCKS * BLOCK, "verify": true, "ledger": ledger,
        });
        let told = run(&bed.spec(&keys), method).told.unwrap();
        assert_eq!((&told["checked"], &told["first"]), (&json!(BLOCKS), &json!([])), "{method:?}");
        flip(&bed.file(), 70 * BLOCK as usize + 600);
        let told = run(&bed.spec(&keys), method).told.unwrap();
        assert_eq!(told["corrupt"], json!(1));
        assert!(told["first"][0].as_str().unwrap().contains("286720"), "{told}");
        flip(&bed.file(), 70 * BLOCK as usize + 600);
    }
}

fn flip(file: &Path, place: usize) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[place] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn all_faults_are_told_at_once_with_their_values() {
    let bed = Bed::new();
    let spec = bed.spec(&json!({
        "format": 2, "interval_ms": 5, "depth": 70_000, "blocks": [{"bytes": 1000}],
        "think_every": 0, "arrivals": "poisson", "runtime_s": null,
    }));
    let told = spec.faults().join("\n");
    for part in ["format is 2", "is 5;", "70000", "1000 bytes", "think_every", "rate", "never end"]
    {
        assert!(told.contains(part), "{told} lacks {part}");
    }
}

#[test]
fn targets_that_do_not_fit_are_told_with_their_values() {
    let bed = Bed::new();
    let told = |spec: &Spec| Targets::open(spec, 1, &mut Vec::new()).unwrap_err().join("\n");
    let mut spec = bed.spec(&json!({}));
    spec.jobs[0].files[0].bytes += 1;
    assert!(told(&spec).contains("1048576 bytes, and a job wants 1048577"));
    spec.jobs[0].files[0].path = bed.folder.path().join("none");
    assert!(told(&spec).contains("ENOENT"));
    spec.jobs[0].files[0].path = bed.folder.path().to_owned();
    assert!(told(&spec).contains("neither a file nor a block device"));
    spec.jobs[0].files[0].path = "/dev/tty".into();
    assert!(told(&spec).contains("character device"));
    spec.jobs[0].files[0].path = "/dev/null".into();
    assert!(told(&spec).contains("nothing to read"));
}

#[test]
fn a_file_is_made_only_where_that_is_asked_for() {
    let bed = Bed::new();
    let mut spec = bed.spec(&json!({"rw": "write", "io_bytes": BLOCK}));
    spec.jobs[0].files[0].path = bed.folder.path().join("new");
    assert!(Targets::open(&spec, 1, &mut Vec::new()).is_err());
    assert!(!bed.folder.path().join("new").exists());
    spec.jobs[0].files[0].create = true;
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    assert_eq!(targets.all[0].file.metadata().unwrap().len(), BLOCK * BLOCKS);
    // What lies behind a link is not in the folder.
    let (link, behind) = (bed.folder.path().join("link"), bed.folder.path().join("behind"));
    std::os::unix::fs::symlink(&behind, &link).unwrap();
    spec.jobs[0].files[0].path = link;
    let told = Targets::open(&spec, 1, &mut Vec::new()).unwrap_err();
    assert!(told[0].contains("ELOOP") && !behind.exists(), "{told:?}");
}

#[test]
fn too_much_memory_and_unknown_keys_are_refused() {
    let bed = Bed::new();
    let keys = json!({"depth": 65_536, "blocks": [{"bytes": 256 << 20}]});
    let mut spec = bed.spec(&keys);
    spec.jobs[0].files[0].bytes = 1 << 40;
    let targets = Targets { all: Vec::new(), of_jobs: vec![vec![0]] };
    let clock = Clock::of_kernel();
    let crew = Crew::of(&spec, &targets, &[Method::Sync], (1, clock), &mut Vec::new());
    assert!(crew.unwrap_err()[0].contains("17592186044416 bytes"));
    assert!(
        Spec::read(b"{\"format\": 1, \"jobs\": [], \"jbos\": 1}").unwrap_err().contains("jbos")
    );
}
