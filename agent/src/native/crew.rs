//! The threads of an engine: set up, started together, listened to, and summed up.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::aio::Aio;
use super::counts::{Counted, Scores, Timed};
use super::halt::Halt;
use super::plan::{Crew, Member};
use super::proof::Book;
use super::queue::{OneByOne, Queue};
use super::ring::{Ring, Wish};
use super::slot::{Lane, Memory};
use super::spec::{Method, Spec};
use super::target::Target;
use super::tsc::Clock;
use super::worker::{Ended, Times, Worker};
use crate::error::sentence;
use crate::sys::thread::lock;
use crate::sys::thread::wake_sharply;

/// A worker's loop has no deep calls; a small stack lets thousands of threads fit.
const STACK_BYTES: usize = 256 << 10;

/// All threads, ready for the start.
pub struct Threads {
    handles: Vec<JoinHandle<()>>,
    gate: Arc<Gate>,
    /// What each says when it has ended.
    pub ended: Receiver<Ended>,
    /// What each counts.
    pub scores: Vec<Arc<Scores>>,
    /// What their set-up says about the results.
    pub notes: Vec<String>,
}

/// What the threads wait at for the start.
#[derive(Default)]
struct Gate {
    times: Mutex<Option<Times>>,
    opened: Condvar,
}

/// What all threads share.
#[derive(Clone)]
pub struct Ground {
    /// What is done.
    pub spec: Arc<Spec>,
    /// On what.
    pub targets: Arc<Vec<Target>>,
    /// By job and file: its place among the targets.
    pub of_jobs: Arc<Vec<Vec<u32>>>,
    /// By which clock.
    pub clock: Clock,
    /// What proven jobs are held against.
    pub book: Option<Arc<Book>>,
    /// Whether it is to end early.
    pub halt: Arc<Halt>,
}

impl Gate {
    fn wait(&self) -> Times {
        let mut times = lock(&self.times);
        loop {
            if let Some(times) = *times {
                return times;
            }
            times = self.opened.wait(times).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Threads {
    /// Start the threads and wait until each is set up; or all that went wrong with that.
    pub fn set_up(ground: &Ground, crew: Crew) -> Result<Self, Vec<String>> {
        let (ready, readiness) = channel();
        let (tell, ended) = channel();
        let gate = Arc::new(Gate::default());
        let mut handles = Vec::with_capacity(crew.members.len());
        let mut scores = Vec::with_capacity(crew.members.len());
        for (nth, member) in crew.members.into_iter().enumerate() {
            let own = Arc::new(member.scores(&ground.spec));
            scores.push(Arc::clone(&own));
            let (ground, gate) = (ground.clone(), Arc::clone(&gate));
            let (ready, tell) = (ready.clone(), tell.clone());
            let seat = Seat { member, scores: own, leads: nth == 0 };
            let work = move || work(&ground, seat, &gate, ready, &tell);
            let thread = Builder::new().name("engine".into()).stack_size(STACK_BYTES).spawn(work);
            handles.push(thread.map_err(|error| {
                vec![format!("A thread cannot be started: {}.", sentence(&error))]
            })?);
        }
        drop(ready);
        let said: Vec<Result<Vec<String>, String>> = readiness.iter().collect();
        let mut faults: Vec<String> =
            said.iter().filter_map(|said| said.as_ref().err().cloned()).collect();
        if said.len() < handles.len() {
            faults.push("A thread ended in its set-up, which is a fault of the engine.".into());
        }
        if !faults.is_empty() {
            faults.sort();
            faults.dedup();
            return Err(faults);
        }
        let mut notes: Vec<String> = said.into_iter().flatten().flatten().collect();
        notes.sort();
        notes.dedup();
        Ok(Self { handles, gate, ended, scores, notes })
    }

    /// Let them begin.
    pub fn start(&self, times: Times) {
        *lock(&self.gate.times) = Some(times);
        self.gate.opened.notify_all();
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.handles.len()
    }
}

impl Drop for Threads {
    /// Threads that have said how they ended still give back what they hold in the kernel.
    fn drop(&mut self) {
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

/// One thread's part.
struct Seat {
    member: Member,
    scores: Arc<Scores>,
    leads: bool,
}

/// The whole life of one thread.
fn work(
    ground: &Ground,
    Seat { member, scores, leads }: Seat,
    gate: &Gate,
    ready: Sender<Result<Vec<String>, String>>,
    tell: &Sender<Ended>,
) {
    let mut notes = Vec::new();
    let depth = member.lanes.iter().map(|lane| lane.depth).sum();
    let prepared = memory_of(&member).and_then(|mut memory| {
        memory.fill(&member.lanes);
        let refused = |error| format!("The kernel gives no queue: {}.", sentence(&error));
        let queue = match member.method {
            Method::Sync => Any::Plain(OneByOne::new(Arc::clone(&ground.targets))),
            Method::Libaio => Any::Aio(Aio::new(depth, &ground.targets).map_err(refused)?),
            Method::IoUring => {
                let Spec { poll, sqpoll, .. } = *ground.spec;
                let targets: Vec<&Target> = ground.targets.iter().collect();
                let wish = Wish { depth, poll, sqpoll };
                let ring = Ring::new(wish, &targets, &memory.buffers, &mut notes);
                Any::Ring(ring.map_err(refused)?)
            }
        };
        Ok((queue, memory))
    });
    let (queue, memory) = match prepared {
        Ok(prepared) => prepared,
        Err(fault) => return drop(ready.send(Err(fault))),
    };
    let clock = ground.clock;
    let be_ready = || {
        let _ = ready.send(Ok(notes));
        drop(ready); // Who waits for all to be ready waits until nobody has this any more.
    };
    let (book, halt) = (ground.book.clone(), Arc::clone(&ground.halt));
    let keeps = ground.spec.timed;
    let life = Life { lanes: member.lanes, memory, scores, book, halt, clock, leads, keeps };
    match queue {
        Any::Plain(queue) => life.live(queue, be_ready, gate, tell),
        Any::Aio(queue) => life.live(queue, be_ready, gate, tell),
        Any::Ring(queue) => life.live(queue, be_ready, gate, tell),
    }
}

/// A queue of whichever kind.
enum Any {
    Plain(OneByOne),
    Aio(Aio),
    Ring(Ring),
}

fn memory_of(member: &Member) -> Result<Memory, String> {
    Memory::of(&member.lanes)
        .map_err(|error| format!("There is no memory for the blocks: {}.", sentence(&error)))
}

/// A thread's work but for its queue.
struct Life {
    lanes: Vec<Lane>,
    memory: Memory,
    scores: Arc<Scores>,
    book: Option<Arc<Book>>,
    halt: Arc<Halt>,
    clock: Clock,
    leads: bool,
    /// Latencies, and not only counts.
    keeps: bool,
}

impl Life {
    fn live<Q: Queue>(self, queue: Q, be_ready: impl FnOnce(), gate: &Gate, tell: &Sender<Ended>) {
        let worker = Worker::new(queue, self.lanes, self.memory, self.clock, self.scores);
        let worker = worker.proving(self.book).heeding(self.halt);
        let worker = if self.leads { worker.leading() } else { worker };
        wake_sharply();
        be_ready();
        let times = gate.wait();
        let ended =
            if self.keeps { worker.run::<Timed>(times) } else { worker.run::<Counted>(times) };
        let _ = tell.send(ended);
    }
}
