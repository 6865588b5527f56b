//! What is tried again, what waits, and what was never begun.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::fixture::{BLOCK, BLOCKS, Fixture, counts, methods, run, run_on_queue};
use super::halt::Halt;
use super::plan::{MAX_LANES, Plan};
use super::probe;
use super::queue::{IoRequest, Queue, Wait};
use super::source::{Backlog, IoOp, OpFeed, OpStream};
use super::spec::Method;
use super::target::Targets;
use super::tsc::Clock;

/// A queue that has no room for the first so many requests, and does the others at once.
struct Narrow {
    refusals: u64,
    ended: Vec<(u32, i32)>,
    calls: Arc<AtomicU64>,
}

impl Queue for Narrow {
    fn push(&mut self, request: &IoRequest) {
        let done = if self.refusals > 0 { -libc::EAGAIN } else { request.bytes as i32 };
        self.refusals = self.refusals.saturating_sub(1);
        self.ended.push((request.slot, done));
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match wait {
            Wait::AtMost(ns) if self.ended.is_empty() => {
                std::thread::sleep(Duration::from_nanos(ns));
            }
            Wait::ForOne => assert!(!self.ended.is_empty(), "it would wait for ever"),
            _ => {}
        }
        Ok(())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for (slot, result) in self.ended.drain(..) {
            each(slot, result);
        }
    }
}

#[test]
fn what_the_kernel_has_no_room_for_is_tried_again_after_ever_longer_pauses() {
    let fixture = Fixture::new();
    let calls = Arc::new(AtomicU64::new(0));
    let queue = Narrow { refusals: 12, ended: Vec::new(), calls: Arc::clone(&calls) };
    let begun = Instant::now();
    let spec = fixture.spec(&json!({"depth": 1, "io_bytes": BLOCK}));
    let run = run_on_queue(&spec, queue, &Arc::default());
    assert_eq!((counts(&run, "read").0, run.now.retries()["EAGAIN"]), (1, 12));
    // 10, 20, … 2560 µs, and then 5 ms each.
    assert!(begun.elapsed() >= Duration::from_micros(5110 + 3 * 5000));
    assert!(calls.load(Ordering::Relaxed) <= 2 * 13, "{calls:?}");
}

/// A queue that has no room for every second request of each slot, and for none of slot 3 until it
/// was tried so often, and the others far more often; then it wishes the end.
struct Picky {
    /// When slot 3 was tried.
    tried: Arc<Mutex<Vec<Instant>>>,
    /// Requests of each other slot.
    others: [usize; 3],
    halt: Arc<Halt>,
    ended: Vec<(u32, i32)>,
}

const TRIES: usize = 10;

impl Queue for Picky {
    fn push(&mut self, request: &IoRequest) {
        let is_refused = if let Some(count) = self.others.get_mut(request.slot as usize) {
            *count += 1;
            *count % 2 == 1
        } else {
            let mut tried = self.tried.lock().unwrap();
            tried.push(Instant::now());
            // Each of the others waits 10 µs and not for this one, with which they would be two at
            // each of its tries, and it would fail for having been refused too often.
            let others: usize = self.others.iter().sum();
            let is_over = tried.len() > TRIES && others > 2 * 3 * tried.len() + 100;
            if is_over {
                self.halt.request(0);
            }
            !is_over
        };
        let result = if is_refused { -libc::EAGAIN } else { request.bytes as i32 };
        self.ended.push((request.slot, result));
    }

    fn enter(&mut self, _: Wait) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for (slot, result) in self.ended.drain(..) {
            each(slot, result);
        }
    }
}

#[test]
fn others_go_on_while_some_have_no_room() {
    let fixture = Fixture::new();
    let (tried, halt) = (Arc::<Mutex<Vec<Instant>>>::default(), Arc::default());
    let (others, ended) = ([0; 3], Vec::new());
    let queue = Picky { tried: Arc::clone(&tried), others, halt: Arc::clone(&halt), ended };
    let run = run_on_queue(&fixture.spec(&json!({"depth": 4})), queue, &halt);
    assert!(run.now.errors().is_empty());
    let tried = tried.lock().unwrap();
    for (nth, pair) in tried.windows(2).enumerate() {
        let pause = Duration::from_micros((10 << nth.min(9)).min(5000));
        assert!(pair[1].duration_since(pair[0]) >= pause, "{nth}");
    }
}

/// A queue that ends nothing before the end is wished.
struct Late {
    pushed: Vec<(u32, i32)>,
    halt: Arc<Halt>,
}

impl Queue for Late {
    fn push(&mut self, request: &IoRequest) {
        self.pushed.push((request.slot, request.bytes as i32));
    }

    fn enter(&mut self, _: Wait) -> io::Result<()> {
        self.halt.request(0);
        Ok(())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for (slot, result) in self.pushed.drain(..) {
            each(slot, result);
        }
    }
}

#[test]
fn what_ends_after_submission_has_stopped_is_counted_as_such_too() {
    let (fixture, halt) = (Fixture::new(), Arc::<Halt>::default());
    let queue = Late { pushed: Vec::new(), halt: Arc::clone(&halt) };
    let run = run_on_queue(&fixture.spec(&json!({"depth": 4})), queue, &halt);
    assert_eq!((counts(&run, "read").0, run.now.drained_ios(), run.now.in_flight()), (4, 4, 0));
}

/// A queue that ends sixteen at a time, and wishes the end after three turns.
struct Halves {
    under_way: Vec<(u32, i32)>,
    /// Requests of each turn.
    turns: Arc<Mutex<Vec<usize>>>,
    pushed: usize,
    halt: Arc<Halt>,
}

impl Queue for Halves {
    fn push(&mut self, request: &IoRequest) {
        self.under_way.push((request.slot, request.bytes as i32));
        self.pushed += 1;
    }

    fn enter(&mut self, _: Wait) -> io::Result<()> {
        let mut turns = self.turns.lock().unwrap();
        turns.push(std::mem::take(&mut self.pushed));
        if turns.len() == 3 {
            self.halt.request(0);
        }
        Ok(())
    }

    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        let count = self.under_way.len().min(16);
        for (slot, result) in self.under_way.drain(..count) {
            each(slot, result);
        }
    }
}

#[test]
fn what_ended_together_does_not_begin_together() {
    let (fixture, halt) = (Fixture::new(), Arc::<Halt>::default());
    let turns = Arc::<Mutex<Vec<usize>>>::default();
    let (under_way, pushed) = (Vec::new(), 0);
    let queue = Halves { under_way, turns: Arc::clone(&turns), pushed, halt: Arc::clone(&halt) };
    run_on_queue(&fixture.spec(&json!({"depth": 32})), queue, &halt);
    assert_eq!(turns.lock().unwrap()[..3], [32, 8, 8]);
}

/// A queue that the kernel takes nothing from any more.
struct Broken;

impl Queue for Broken {
    fn push(&mut self, _: &IoRequest) {}

    fn enter(&mut self, _: Wait) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    fn reap(&mut self, _: impl FnMut(u32, i32)) {}
}

#[test]
fn what_is_under_way_when_a_thread_is_broken_off_stays_counted() {
    let fixture = Fixture::new();
    let broken = run_on_queue(&fixture.spec(&json!({})), Broken, &Arc::default());
    assert_eq!((broken.ended.error, broken.now.in_flight()), (Some(libc::EIO), 8));
    for method in methods() {
        let done = run(&fixture.spec(&json!({"io_bytes": 20 * BLOCK})), method);
        assert_eq!((done.ended.error, done.now.in_flight()), (None, 0), "{method:?}");
    }
}

#[test]
fn all_threads_of_a_job_pause_together() {
    let fixture = Fixture::new();
    for method in methods() {
        // A pause of 10 ms after every 5 of 25: the last of them ends with the job.
        let keys = json!({"think_us": 10_000, "think_every": 5, "io_bytes": 25 * BLOCK});
        let begun = Instant::now();
        let run = run(&fixture.spec(&keys), method);
        assert_eq!(counts(&run, "read").0, 25, "{method:?}");
        // At a depth of 8 some of the next ones are under way when a pause begins.
        assert!(begun.elapsed() >= Duration::from_millis(20), "{method:?}");
    }
}

fn source(keys: &serde_json::Value) -> OpStream {
    let fixture = Fixture::new();
    OpStream::new(&fixture.spec(keys).jobs[0], &[0], Clock::of_kernel()).unwrap()
}

#[test]
fn blocks_are_drawn_up_to_the_last_whole_one_of_the_region_and_no_further() {
    for (keys, ends) in [
        (json!({}), (0, BLOCKS * BLOCK)),
        (
            json!({"offset_bytes": 16 * BLOCK, "size_bytes": 5 * BLOCK + 512}),
            (16 * BLOCK, 21 * BLOCK),
        ),
        (json!({"distribution": {"kind": "permutation"}}), (0, BLOCKS * BLOCK)),
        // The larger block must fit where the smaller one may begin.
        (
            json!({"blocks": [{"bytes": BLOCK, "share": 50}, {"bytes": 4 * BLOCK, "share": 50}]}),
            (0, BLOCKS * BLOCK),
        ),
        (json!({"rw": "read"}), (0, BLOCKS * BLOCK)),
    ] {
        let mut source = source(&keys);
        let ios: Vec<IoOp> = std::iter::from_fn(|| source.next()).take(20_000).collect();
        let first = ios.iter().map(|io| io.offset).min().unwrap();
        let end = ios.iter().map(|io| io.offset + u64::from(io.bytes)).max().unwrap();
        assert_eq!((first, end), ends, "{keys}");
    }
}

#[test]
fn what_was_due_and_not_begun_is_counted_and_beyond_a_limit_told_by_the_rate() {
    let fixed = json!({"rate": {"iops": 1000.0}, "arrivals": "fixed"});
    let second = 1_000_000_000;
    // At 0, 1, … 1000 ms; the first of them is due with the first tick.
    let all = source(&fixed).backlog(second, 1 << 20);
    assert_eq!(all, Backlog { count: 1001, oldest: Some(1) });
    assert_eq!(source(&fixed).backlog(second, 100), all);
    let poisson = json!({"rate": {"iops": 1000.0}, "arrivals": "poisson"});
    let drawn = source(&poisson).backlog(10 * second, 1 << 20).count;
    let told = source(&poisson).backlog(10 * second, 1000).count;
    assert!(drawn.abs_diff(told) < 500, "{drawn} and {told}");
    // And no more than the job has.
    let short = json!({"rate": {"iops": 1000.0}, "io_bytes": 300 * BLOCK});
    for draws in [100, 1000] {
        assert_eq!(source(&short).backlog(second, draws).count, 300);
    }
}

#[test]
fn threads_that_share_a_job_count_what_it_leaves_once() {
    let fixed = json!({"rate": {"iops": 1000.0}, "arrivals": "fixed"});
    for draws in [100, 5000] {
        let shared = Arc::new(Mutex::new(source(&fixed)));
        let mut feeds = [(); 3].map(|()| OpFeed::Shared(Arc::clone(&shared)));
        let told = feeds.each_mut().map(|feed| feed.backlog(1_000_000_000, draws));
        let first = Backlog { count: 1001, oldest: Some(1) };
        assert_eq!(told, [first, Backlog::default(), Backlog::default()], "{draws}");
    }
}

#[test]
fn what_a_slow_target_leaves_is_told_by_every_method() {
    let fixture = Fixture::new();
    for method in methods() {
        // Ten million a second, for a fiftieth of one.
        let keys = json!({
            "rate": {"iops": 1e7}, "arrivals": "fixed", "runtime_s": 0.02, "depth": 1,
            "blocks": [{"bytes": 16 * BLOCK}],
        });
        let run = run(&fixture.spec(&keys), method);
        let done = counts(&run, "read").0;
        let due = done + run.ended.unsubmitted;
        assert!(due.abs_diff(200_000) < 20_000, "{method:?}: {done} of {due}");
        assert!(run.ended.oldest_due.is_some());
    }
}

#[test]
fn plain_calls_are_made_by_so_many_threads_and_no_more() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&json!({}));
    spec.jobs = vec![spec.jobs[0].clone(); 1500];
    spec.jobs[7].depth = 4000;
    let targets = Targets { all: Vec::new(), by_job: vec![vec![0]; 1500] };
    let (clock, mut notes) = (Clock::of_kernel(), Vec::new());
    let methods = vec![Method::Sync; 1500];
    let plan = Plan::of(&spec, &targets, &methods, (1, clock), &mut notes).unwrap();
    assert!((1501..=MAX_LANES).contains(&plan.threads.len()), "{}", plan.threads.len());
    assert!(notes[0].contains("2048"), "{notes:?}");
}

#[test]
fn where_plain_calls_would_take_too_many_threads_they_are_not_taken() {
    let fixture = Fixture::new();
    let mut spec = fixture.spec(&json!({"depth": 1}));
    spec.jobs = vec![spec.jobs[0].clone(); MAX_LANES + 1];
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    // One I/O at a time through the page cache, and a thread for each.
    let mut notes = Vec::new();
    let found = probe::choose_methods(&spec, &targets, spec.jobs.len(), &mut notes);
    if super::ring::unsupported_reason().is_none() {
        assert_eq!(found.unwrap().methods, vec![Method::IoUring; MAX_LANES + 1]);
        assert!(notes[0].contains("2049 jobs with plain calls"), "{notes:?}");
    }
    for wanted in [json!({"method": "sync"}), json!({"rw": "trim"})] {
        let one = fixture.spec(&wanted);
        spec.jobs = vec![one.jobs[0].clone(); MAX_LANES + 1];
        spec.method = one.method;
        assert!(spec.faults()[0].contains("2049 jobs"), "{:?}", spec.faults());
        spec.jobs.pop();
        assert_eq!(spec.faults(), Vec::<String>::new());
    }
}
