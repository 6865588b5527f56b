//! What is tried again, what waits, and what was never begun.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::bed::{BLOCK, Bed, counts, methods, run, run_with};
use super::halt::Halt;
use super::plan::{Crew, MAX_LANES};
use super::probe;
use super::queue::{Queue, Request, Wait};
use super::source::{Feed, Source, Waiting};
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
    fn push(&mut self, request: &Request) {
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
            Wait::One => assert!(!self.ended.is_empty(), "it would wait for ever"),
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
    let bed = Bed::new();
    let calls = Arc::new(AtomicU64::new(0));
    let queue = Narrow { refusals: 12, ended: Vec::new(), calls: Arc::clone(&calls) };
    let begun = Instant::now();
    let spec = bed.spec(&json!({"depth": 1, "io_bytes": BLOCK}));
    let run = run_with(&spec, queue, &Arc::default());
    assert_eq!((counts(&run, "read").0, run.now.retries()["EAGAIN"]), (1, 12));
    // 10, 20, … 2560 µs, and then 5 ms each.
    assert!(begun.elapsed() >= Duration::from_micros(5110 + 3 * 5000));
    assert!(calls.load(Ordering::Relaxed) <= 2 * 13, "{calls:?}");
}

/// A queue that has no room for the first `TRIES` requests of slot 3, and for every second of each
/// other; it wishes the end when that of slot 3 has gone through.
struct Picky {
    /// When slot 3 was tried, with the requests of all others before.
    tried: Arc<Mutex<Vec<(Instant, usize)>>>,
    /// Requests of each other slot.
    others: [usize; 3],
    halt: Arc<Halt>,
    ended: Vec<(u32, i32)>,
}

const TRIES: usize = 10;

impl Queue for Picky {
    fn push(&mut self, request: &Request) {
        let is_refused = if let Some(count) = self.others.get_mut(request.slot as usize) {
            *count += 1;
            *count % 2 == 1
        } else {
            let mut tried = self.tried.lock().unwrap();
            tried.push((Instant::now(), self.others.iter().sum()));
            if tried.len() > TRIES {
                self.halt.wish(0);
            }
            tried.len() <= TRIES
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
    let bed = Bed::new();
    let (tried, halt) = (Arc::default(), Arc::default());
    let (others, ended) = ([0; 3], Vec::new());
    let queue = Picky { tried: Arc::clone(&tried), others, halt: Arc::clone(&halt), ended };
    let run = run_with(&bed.spec(&json!({"depth": 4})), queue, &halt);
    assert!(run.now.errors().is_empty());
    let tried = tried.lock().unwrap();
    for (nth, pair) in tried.windows(2).enumerate() {
        let pause = Duration::from_micros((10 << nth).min(5000));
        assert!(pair[1].0.duration_since(pair[0].0) >= pause, "{nth}");
    }
    // Each of these waits 10 µs and not for that one, with which they would be two at each of its
    // tries: hundreds in 10 ms.
    assert!(tried[TRIES].1 > 2 * 3 * 2 * TRIES, "{:?}", tried[TRIES]);
}

/// A queue that the kernel takes nothing from any more.
struct Broken;

impl Queue for Broken {
    fn push(&mut self, _: &Request) {}

    fn enter(&mut self, _: Wait) -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    fn reap(&mut self, _: impl FnMut(u32, i32)) {}
}

#[test]
fn what_is_under_way_when_a_thread_is_broken_off_stays_counted() {
    let bed = Bed::new();
    let broken = run_with(&bed.spec(&json!({})), Broken, &Arc::default());
    assert_eq!((broken.ended.broken, broken.now.under_way()), (Some(libc::EIO), 8));
    for method in methods() {
        let done = run(&bed.spec(&json!({"io_bytes": 20 * BLOCK})), method);
        assert_eq!((done.ended.broken, done.now.under_way()), (None, 0), "{method:?}");
    }
}

#[test]
fn all_threads_of_a_job_pause_together() {
    let bed = Bed::new();
    for method in methods() {
        // A pause of 10 ms after every 5 of 25: the last of them ends with the job.
        let keys = json!({"think_us": 10_000, "think_every": 5, "io_bytes": 25 * BLOCK});
        let begun = Instant::now();
        let run = run(&bed.spec(&keys), method);
        assert_eq!(counts(&run, "read").0, 25, "{method:?}");
        // At a depth of 8 some of the next ones are under way when a pause begins.
        assert!(begun.elapsed() >= Duration::from_millis(20), "{method:?}");
    }
}

fn source(keys: &serde_json::Value) -> Source {
    let bed = Bed::new();
    Source::new(&bed.spec(keys).jobs[0], &[0], Clock::of_kernel()).unwrap()
}

#[test]
fn what_was_due_and_not_begun_is_counted_and_beyond_a_limit_told_by_the_rate() {
    let fixed = json!({"rate": {"iops": 1000.0}, "arrivals": "fixed"});
    let second = 1_000_000_000;
    // At 0, 1, … 1000 ms; the first of them is due with the first tick.
    let all = source(&fixed).waiting(second, 1 << 20);
    assert_eq!(all, Waiting { count: 1001, oldest: Some(1) });
    assert_eq!(source(&fixed).waiting(second, 100), all);
    let poisson = json!({"rate": {"iops": 1000.0}, "arrivals": "poisson"});
    let drawn = source(&poisson).waiting(10 * second, 1 << 20).count;
    let told = source(&poisson).waiting(10 * second, 1000).count;
    assert!(drawn.abs_diff(told) < 500, "{drawn} and {told}");
    // And no more than the job has.
    let short = json!({"rate": {"iops": 1000.0}, "io_bytes": 300 * BLOCK});
    for draws in [100, 1000] {
        assert_eq!(source(&short).waiting(second, draws).count, 300);
    }
}

#[test]
fn threads_that_share_a_job_count_what_it_leaves_once() {
    let fixed = json!({"rate": {"iops": 1000.0}, "arrivals": "fixed"});
    for draws in [100, 5000] {
        let shared = Arc::new(Mutex::new(source(&fixed)));
        let mut feeds = [(); 3].map(|()| Feed::Shared(Arc::clone(&shared)));
        let told = feeds.each_mut().map(|feed| feed.waiting(1_000_000_000, draws));
        let first = Waiting { count: 1001, oldest: Some(1) };
        assert_eq!(told, [first, Waiting::default(), Waiting::default()], "{draws}");
    }
}

#[test]
fn what_a_slow_target_leaves_is_told_by_every_method() {
    let bed = Bed::new();
    for method in methods() {
        // Ten million a second, for a fiftieth of one.
        let keys = json!({
            "rate": {"iops": 1e7}, "arrivals": "fixed", "runtime_s": 0.02, "depth": 1,
            "blocks": [{"bytes": 16 * BLOCK}],
        });
        let run = run(&bed.spec(&keys), method);
        let done = counts(&run, "read").0;
        let due = done + run.ended.unsubmitted;
        assert!(due.abs_diff(200_000) < 20_000, "{method:?}: {done} of {due}");
        assert!(run.ended.oldest_due.is_some());
    }
}

#[test]
fn plain_calls_are_made_by_so_many_threads_and_no_more() {
    let bed = Bed::new();
    let mut spec = bed.spec(&json!({}));
    spec.jobs = vec![spec.jobs[0].clone(); 1500];
    spec.jobs[7].depth = 4000;
    let targets = Targets { all: Vec::new(), of_jobs: vec![vec![0]; 1500] };
    let (clock, mut notes) = (Clock::of_kernel(), Vec::new());
    let methods = vec![Method::Sync; 1500];
    let crew = Crew::of(&spec, &targets, &methods, (1, clock), &mut notes).unwrap();
    assert!((1501..=MAX_LANES).contains(&crew.members.len()), "{}", crew.members.len());
    assert!(notes[0].contains("2048"), "{notes:?}");
}

#[test]
fn where_plain_calls_would_take_too_many_threads_they_are_not_taken() {
    let bed = Bed::new();
    let mut spec = bed.spec(&json!({"depth": 1}));
    spec.jobs = vec![spec.jobs[0].clone(); MAX_LANES + 1];
    let targets = Targets::open(&spec, 1, &mut Vec::new()).unwrap();
    // One I/O at a time through the page cache, and a thread for each.
    let mut notes = Vec::new();
    let found = probe::methods(&spec, &targets, spec.jobs.len(), &mut notes);
    if super::ring::objection().is_none() {
        assert_eq!(found.unwrap().methods, vec![Method::IoUring; MAX_LANES + 1]);
        assert!(notes[0].contains("2049 jobs with plain calls"), "{notes:?}");
    }
    for wanted in [json!({"method": "sync"}), json!({"rw": "trim"})] {
        let one = bed.spec(&wanted);
        spec.jobs = vec![one.jobs[0].clone(); MAX_LANES + 1];
        spec.method = one.method;
        assert!(spec.faults()[0].contains("2049 jobs"), "{:?}", spec.faults());
        spec.jobs.pop();
        assert_eq!(spec.faults(), Vec::<String>::new());
    }
}
