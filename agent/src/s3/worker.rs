//! One thread of a load: its operations, the connections that they use, and when which begins.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;

use super::body::BodyWriter;
use super::counters::{Operation, Row, ThreadCounters};
use super::error_class::ErrorClass;
use super::lane::{AttemptFault, Expectation, Lane, LaneContext};
use super::load::{Load, Work};
use super::signature::Signer;
use super::spec::OperationKind;
use super::transport::Transport;
use super::writer::{RequestWriter, UploadRequest};
use super::xml::{element_text, elements};
use crate::latency::add_by_owner;
use crate::native::pace::Arrivals;
use crate::native::random::{Random, split_mix};
use crate::sys::thread::set_min_timer_slack;
use crate::sys::time::SECOND_NS;

/// Where bodies go that nobody keeps, and how much is taken from the kernel at a time.
const SINK_BYTES: usize = 256 << 10;
/// Events that are taken from the kernel at a time.
const MAX_EVENTS: usize = 512;
/// Between two looks at times that are over.
const TIMER_NS: u64 = 20_000_000;
/// Nobody waits longer without a look at the wish to end.
const MAX_WAIT_NS: u64 = 50_000_000;
/// After a connection that could not be made nothing begins for so long in a closed loop.
const CONNECT_REST_NS: u64 = 10_000_000;
/// What is under way after the end has this beside the time of an attempt.
const DRAIN_NS: u64 = 2_000_000_000;

/// A request of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The only one.
    Single,
    /// The first of an upload in parts.
    Create,
    /// A part, by its number from one on.
    Part(u64),
    /// The last.
    Complete,
    /// The last of one that failed.
    Abort,
}

/// What a lane does for its operation.
#[derive(Debug, Clone, Copy)]
struct LaneTask {
    step: Step,
    /// Attempts that failed.
    failed: u32,
    deadline: u64,
    retry_at: Option<u64>,
}

/// An operation under way.
#[derive(Debug, Default)]
struct Slot {
    work: Option<Work>,
    due: u64,
    /// When its first request that counts was begun.
    begun: u64,
    upload: Option<Box<Upload>>,
}

#[derive(Debug, Default)]
struct Upload {
    id: String,
    parts: u64,
    next_part: u64,
    done_parts: u64,
    active: u64,
    tags: Vec<String>,
    fault: Option<AttemptFault>,
}

/// A thread of a load.
pub struct Worker {
    load: Arc<Load>,
    counters: Arc<ThreadCounters>,
    epoll: OwnedFd,
    slots: Vec<Slot>,
    free: VecDeque<usize>,
    lanes: Vec<Lane>,
    tasks: Vec<LaneTask>,
    lanes_per_slot: usize,
    /// Lanes that can go on, and those whose request could not be begun.
    ready: Vec<(usize, Option<AttemptFault>)>,
    /// Lanes that wait for another attempt.
    waiting: usize,
    signers: Vec<Signer>,
    random: Random,
    arrivals: Option<Arrivals>,
    /// When the next operation is due, in nanoseconds since the start.
    next_due_ns: u64,
    put: VecDeque<u64>,
    keeps_put: bool,
    gets: u64,
    sink: Vec<u8>,
    key: String,
    path: Vec<u8>,
    scratch: Vec<u8>,
    access_key: String,
    next_date: u64,
    next_timers: u64,
    rest_until: u64,
    /// The end of submission, once it is there.
    stopped: Option<u64>,
    is_aborting: bool,
    is_exhausted: bool,
}

impl Worker {
    /// The `nth` of `threads`, with its connections opened unless they are not to be kept.
    pub fn set_up(
        load: &Arc<Load>,
        counters: Arc<ThreadCounters>,
        (nth, threads): (usize, usize),
    ) -> Result<Self, String> {
        let spec = &load.spec;
        let slots = (spec.concurrency as usize + threads - 1 - nth) / threads;
        let has_parts = load.set.largest_bytes() > load.set.part_bytes.unwrap_or(u64::MAX);
        let lanes_per_slot = if has_parts { spec.parts_in_flight as usize } else { 1 };
        let second = load.real_ns(load.clock.ticks()) / SECOND_NS;
        let credentials = spec.secret.credentials();
        let signers = load.servers.iter().map(|server| {
            Signer::new(&credentials, &spec.target.region, &server.host_header, second)
        });
        let lanes = (0..slots * lanes_per_slot).map(|lane| {
            // All lanes of a fleet's host go round the servers, whatever their threads.
            let place = lane * threads + nth;
            let server = place % load.servers.len();
            let addresses = &load.servers[server].addresses;
            let address = addresses[place / load.servers.len() % addresses.len()];
            Lane::new(server, address, load.servers[server].tls.clone())
        });
        let arrivals = spec.rate.map(|rate| {
            let part = (spec.later + nth as f64) / threads as f64;
            let seed = split_mix(spec.seed, nth as u64 + 1);
            Arrivals::new(spec.arrivals, rate / threads as f64, seed)
                .map(|arrivals| arrivals.delayed(part.fract()))
        });
        let mut arrivals = arrivals.transpose()?;
        let task = LaneTask { step: Step::Single, failed: 0, deadline: 0, retry_at: None };
        let mut worker = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)
                .map_err(|error| format!("There is no epoll: {}.", io::Error::from(error)))?,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            free: (0..slots).collect(),
            lanes: lanes.collect(),
            tasks: vec![task; slots * lanes_per_slot],
            lanes_per_slot,
            ready: Vec::with_capacity(slots * lanes_per_slot),
            waiting: 0,
            signers: signers.collect(),
            random: Random::new(split_mix(spec.seed ^ 0x0B1E, nth as u64 + 1)),
            next_due_ns: arrivals.as_mut().map_or(0, Arrivals::next_ns),
            arrivals,
            put: VecDeque::new(),
            keeps_put: spec.has_operation(OperationKind::Delete),
            gets: 0,
            sink: vec![0; SINK_BYTES],
            key: String::with_capacity(128),
            path: Vec::with_capacity(256),
            scratch: Vec::new(),
            access_key: spec.secret.access_key().to_owned(),
            next_date: 0,
            next_timers: 0,
            rest_until: 0,
            stopped: None,
            is_aborting: false,
            is_exhausted: false,
            load: Arc::clone(load),
            counters,
        };
        if spec.keep_alive {
            worker.open_connections()?;
        }
        Ok(worker)
    }

    fn open_connections(&mut self) -> Result<(), String> {
        let timeout = self.load.spec.timeout();
        for nth in 0..self.lanes.len() {
            let lane = &mut self.lanes[nth];
            let transport = lane.connect_blocking(timeout).map_err(|fault| {
                let server = &self.load.servers[lane.server].endpoint.url;
                format!("{server}: {} ({}).", fault.message, fault.class.name())
            })?;
            lane.adopt(transport);
            self.watch(nth).map_err(|error| format!("epoll fails: {error}."))?;
            add_by_owner(&self.counters.opened_before, 1);
        }
        Ok(())
    }

    /// How many connections it has.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.lanes.len()
    }

    /// What was agreed on with TLS.
    #[must_use]
    pub fn tls_facts(&self) -> Option<super::transport::TlsFacts> {
        self.lanes.first()?.transport().and_then(Transport::tls_facts)
    }

    /// Make load from `start` until `deadline`, in ticks; when the last operation ended.
    pub fn run(mut self, start: u64, deadline: u64) -> u64 {
        set_min_timer_slack();
        let clock = self.load.clock;
        clock.wait_until(start);
        let mut events: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
        let drain_ns = self.load.spec.timeout().as_nanos() as u64;
        let mut woke_alone = false;
        let mut last = start;
        loop {
            let now = clock.ticks();
            let end = deadline.min(self.load.halt.at_ticks());
            if self.stopped.is_none() && (now >= end || self.is_exhausted) {
                self.stop(now.min(end), start);
            }
            match self.stopped {
                None => self.begin_due(now, start, woke_alone),
                Some(at) => {
                    let passed_ns = clock.ns(now.saturating_sub(at));
                    self.is_aborting |= self.load.halt.is_requested() || passed_ns > drain_ns;
                    if passed_ns > 2 * drain_ns + DRAIN_NS {
                        break;
                    }
                }
            }
            self.run_ready();
            if now >= self.next_timers || self.waiting > 0 {
                self.look_at_timers(now);
                self.run_ready();
            }
            let in_flight = self.slots.len() - self.free.len();
            self.counters.in_flight.store(in_flight as u64, Ordering::Relaxed);
            if in_flight == 0 && self.stopped.is_some() {
                break;
            }
            last = now;
            let wait_ns = self.wait_ns(start, end);
            let timeout = Timespec {
                tv_sec: (wait_ns / SECOND_NS) as _,
                tv_nsec: (wait_ns % SECOND_NS) as _,
            };
            events.clear();
            let waited = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout));
            woke_alone = waited == Ok(0) && wait_ns > 0;
            for event in &events {
                let (lane, flags) = (event.data.u64() as usize, event.flags);
                let is_end = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
                if is_end && self.lanes[lane].note_peer_closed() {
                    add_by_owner(&self.counters.closed_by_server, 1);
                    continue;
                }
                if self.lanes[lane].is_busy() {
                    self.ready.push((lane, None));
                }
            }
        }
        let in_flight = (self.slots.len() - self.free.len()) as u64;
        self.counters.hung.store(in_flight, Ordering::Relaxed);
        let uploads = self.slots.iter().filter(|slot| slot.upload.is_some()).count();
        add_by_owner(&self.counters.uploads_left, uploads as u64);
        last
    }

    fn stop(&mut self, at: u64, start: u64) {
        self.stopped = Some(at);
        self.counters.backlog.store(0, Ordering::Relaxed);
        let Some(arrivals) = &mut self.arrivals else { return };
        if self.is_exhausted {
            return;
        }
        let at_ns = self.load.clock.ns(at.saturating_sub(start));
        let oldest_ns = at_ns.saturating_sub(self.next_due_ns);
        let mut count = 0;
        while self.next_due_ns < at_ns {
            count += 1;
            self.next_due_ns = arrivals.next_ns();
        }
        if count > 0 {
            add_by_owner(&self.counters.unsubmitted, count);
            self.counters.oldest_unsubmitted_ns.store(oldest_ns, Ordering::Relaxed);
        }
    }

    fn begin_due(&mut self, now: u64, start: u64, woke_alone: bool) {
        if self.arrivals.is_none() {
            if now < self.rest_until {
                return;
            }
            while !self.free.is_empty() && !self.is_exhausted {
                self.begin(None);
            }
            return;
        }
        let clock = self.load.clock;
        let now_ns = clock.ns(now.saturating_sub(start));
        let mut is_first = woke_alone;
        while self.next_due_ns <= now_ns && !self.is_exhausted {
            let late_ns = now_ns - self.next_due_ns;
            if self.free.is_empty() {
                // What arrives meanwhile waits for a connection, and its response time counts that.
                let gap_ns = self.arrivals.as_ref().map_or(1.0, Arrivals::gap_ns);
                let due = 1 + (late_ns as f64 / gap_ns) as u64;
                self.counters.backlog.store(due, Ordering::Relaxed);
                return;
            }
            if self.counters.backlog.load(Ordering::Relaxed) == 0 {
                self.counters.lateness.add(late_ns);
                if is_first {
                    self.counters.wakeup_delays.add(late_ns);
                }
            }
            is_first = false;
            self.begin(Some(start + clock.ticks_of(self.next_due_ns)));
            if let Some(arrivals) = &mut self.arrivals {
                self.next_due_ns = arrivals.next_ns();
            }
        }
        self.counters.backlog.store(0, Ordering::Relaxed);
    }

    /// How long to wait for the kernel.
    fn wait_ns(&self, start: u64, end: u64) -> u64 {
        let clock = self.load.clock;
        if !self.ready.is_empty() {
            return 0;
        }
        let now = clock.ticks();
        let mut wait_ns = MAX_WAIT_NS;
        if self.stopped.is_none() {
            wait_ns = wait_ns.min(clock.ns(end.saturating_sub(now)));
            if self.arrivals.is_some() {
                if !self.free.is_empty() {
                    let due = start + clock.ticks_of(self.next_due_ns);
                    wait_ns = wait_ns.min(clock.ns(due.saturating_sub(now)));
                }
            } else if !self.free.is_empty() {
                // A slot that ended in a timer, or one that rests.
                wait_ns = wait_ns.min(clock.ns(self.rest_until.saturating_sub(now)));
            }
        }
        if self.waiting > 0 {
            let retry_at = self.tasks.iter().filter_map(|task| task.retry_at).min();
            let left = retry_at.map_or(0, |at| at.saturating_sub(now));
            wait_ns = wait_ns.min(clock.ns(left));
        }
        wait_ns
    }

    fn look_at_timers(&mut self, now: u64) {
        let clock = self.load.clock;
        if self.waiting > 0 {
            for nth in 0..self.tasks.len() {
                let is_over = self.stopped.is_some() && (!self.is_exhausted || self.is_aborting);
                if self.tasks[nth].retry_at.is_some_and(|at| at <= now || is_over) {
                    self.tasks[nth].retry_at = None;
                    self.waiting -= 1;
                    self.start_request(nth);
                }
            }
        }
        if now < self.next_timers {
            return;
        }
        self.next_timers = now + clock.ticks_of(TIMER_NS);
        for nth in 0..self.lanes.len() {
            if self.lanes[nth].is_busy() && now >= self.tasks[nth].deadline {
                let fault = self.lanes[nth].time_out();
                self.end_attempt(nth, Err(fault));
            }
        }
    }

    fn run_ready(&mut self) {
        while let Some((nth, fault)) = self.ready.pop() {
            if let Some(fault) = fault {
                self.end_attempt(nth, Err(fault));
                continue;
            }
            let (load, clock) = (Arc::clone(&self.load), self.load.clock);
            let mut context = LaneContext {
                contents: &load.contents,
                clock,
                sink: &mut self.sink,
                access_key: &self.access_key,
                contents_ticks: 0,
                verify_ticks: 0,
                tls_ns: 0,
            };
            let lane = &mut self.lanes[nth];
            if !lane.is_busy() {
                continue;
            }
            let outcome = lane.drive(&mut context);
            let (contents, verify) = (context.contents_ticks, context.verify_ticks);
            if context.tls_ns > 0 {
                add_by_owner(&self.counters.tls_ns, context.tls_ns);
            }
            if contents > 0 {
                add_by_owner(&self.counters.contents_ns, clock.ns(contents));
            }
            if verify > 0 {
                add_by_owner(&self.counters.verify_ns, clock.ns(verify));
            }
            if let Some(outcome) = outcome {
                self.end_attempt(nth, outcome);
            }
        }
    }

    /// Begin the next operation on the slot that is free for the longest time.
    fn begin(&mut self, due: Option<u64>) {
        let Some(work) = self.load.next_work(&mut self.random, &mut self.put) else {
            self.is_exhausted = true;
            return;
        };
        let Some(slot) = self.free.pop_front() else { return };
        let parts = self.load.set.parts(work.bytes);
        let is_upload = work.kind == OperationKind::Put && parts > 1;
        let upload = || Upload {
            parts,
            next_part: 1,
            tags: vec![String::new(); parts as usize],
            ..Upload::default()
        };
        self.slots[slot] = Slot {
            work: Some(work),
            due: due.unwrap_or(0),
            begun: 0,
            upload: is_upload.then(|| Box::new(upload())),
        };
        let operation = operation_of(&self.slots[slot]);
        add_by_owner(&self.counters.attempts[operation as usize].attempts, 1);
        let lane = slot * self.lanes_per_slot;
        self.begin_step(lane, if is_upload { Step::Create } else { Step::Single });
    }

    fn begin_step(&mut self, nth: usize, step: Step) {
        self.tasks[nth] = LaneTask { step, failed: 0, deadline: 0, retry_at: None };
        self.start_request(nth);
    }

    /// Make the request of a lane's task, and begin it.
    fn start_request(&mut self, nth: usize) {
        let before = self.load.clock.ticks();
        let (body, expectation) = self.write_request(nth, before);
        let load = Arc::clone(&self.load);
        let clock = load.clock;
        let context = LaneContext {
            contents: &load.contents,
            clock,
            sink: &mut self.sink,
            access_key: &self.access_key,
            contents_ticks: 0,
            verify_ticks: 0,
            tls_ns: 0,
        };
        let lane = &mut self.lanes[nth];
        let started = lane.start(body, expectation, &context);
        let at = lane.times.start;
        add_by_owner(&self.counters.sign_ns, clock.ns(at.saturating_sub(before)));
        let timeout_ns = load.spec.timeout().as_nanos() as u64;
        self.tasks[nth].deadline = at + clock.ticks_of(timeout_ns);
        let slot = &mut self.slots[nth / self.lanes_per_slot];
        let counts = matches!(self.tasks[nth].step, Step::Single | Step::Part(_));
        if slot.begun == 0 && counts {
            slot.begun = at;
        }
        let fault = started.err().or_else(|| {
            let watched = self.watch(nth).err()?;
            self.lanes[nth].close();
            Some(AttemptFault { class: ErrorClass::ConnectFailed, message: watched.to_string() })
        });
        self.ready.push((nth, fault));
    }

    fn watch(&mut self, nth: usize) -> io::Result<()> {
        let lane = &mut self.lanes[nth];
        if lane.is_watched {
            return Ok(());
        }
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if let Some(transport) = lane.transport() {
            epoll::add(&self.epoll, transport, EventData::new_u64(nth as u64), flags)?;
            lane.is_watched = true;
        }
        Ok(())
    }

    /// Write the head of a request, and what is small of its body.
    fn write_request(&mut self, nth: usize, now: u64) -> (Option<BodyWriter>, Expectation) {
        let load = Arc::clone(&self.load);
        let slot = &self.slots[nth / self.lanes_per_slot];
        let Some(work) = slot.work else { return (None, Expectation::default()) };
        let step = self.tasks[nth].step;
        let lane = &mut self.lanes[nth];
        let signer = &mut self.signers[lane.server];
        signer.set_second(load.real_ns(now) / SECOND_NS);
        self.path.clear();
        self.path.extend_from_slice(&load.bucket_path);
        if work.kind == OperationKind::List {
            if self.path.len() > 1 {
                self.path.pop();
            }
        } else {
            // Prefixes have no byte that needs an escape.
            self.key.clear();
            load.push_key(&work, &mut self.key);
            self.path.extend_from_slice(self.key.as_bytes());
        }
        lane.output.clear();
        let mut writer = RequestWriter {
            load: &load,
            signer,
            output: &mut lane.output,
            path: &self.path,
            scratch: &mut self.scratch,
        };
        let upload = slot.upload.as_deref();
        let (id, tags) = upload.map_or(("", &[][..]), |upload| (&upload.id, &upload.tags));
        let (body, mut expectation) = match step {
            Step::Single => {
                if matches!(work.kind, OperationKind::Get | OperationKind::GetRange) {
                    self.gets += 1;
                }
                writer.write_single(&work, is_verified(self.gets, load.spec.verify_every))
            }
            Step::Part(number) => writer.write_part(&work, id, number),
            Step::Create => (None, writer.write_upload(UploadRequest::Create, id, tags)),
            Step::Complete => (None, writer.write_upload(UploadRequest::Complete, id, tags)),
            Step::Abort => (None, writer.write_upload(UploadRequest::Abort, id, tags)),
        };
        if now >= self.next_date {
            self.next_date = now + load.clock.ticks_of(SECOND_NS);
            expectation.wants_date = true;
        }
        (body, expectation)
    }

    /// An attempt is over: make another, go on with the operation, or end it.
    fn end_attempt(&mut self, nth: usize, outcome: Result<(), AttemptFault>) {
        let slot = nth / self.lanes_per_slot;
        if self.slots[slot].work.is_none() {
            return;
        }
        self.count_connection(nth, outcome.as_ref().err());
        if let Some(date) = self.lanes[nth].date.take() {
            self.load.note_date(date, self.load.real_ns(self.lanes[nth].times.headers));
        }
        if !self.load.spec.keep_alive {
            self.lanes[nth].close();
        }
        let operation = operation_of(&self.slots[slot]);
        let step = self.tasks[nth].step;
        if let Err(fault) = &outcome {
            if step != Step::Abort {
                self.note_fault(nth, operation, fault);
            }
            if self.retry(nth, operation, fault) {
                return;
            }
        } else {
            self.count_attempt(nth, operation);
        }
        if step == Step::Single {
            self.end_operation(slot, operation, outcome);
        } else {
            self.go_on_with_upload(nth, operation, outcome);
        }
    }

    fn count_connection(&mut self, nth: usize, fault: Option<&AttemptFault>) {
        let lane = &self.lanes[nth];
        if !lane.is_fresh {
            return;
        }
        let (times, clock) = (lane.times, self.load.clock);
        if times.connected > 0 {
            add_by_owner(&self.counters.opened, 1);
            let latency = times.connected.saturating_sub(times.start);
            self.counters.add(Row::Connect, clock.ns(latency), 0);
        } else if fault.is_some() {
            add_by_owner(&self.counters.connect_failures, 1);
            self.rest_until = clock.ticks() + clock.ticks_of(CONNECT_REST_NS);
        }
    }

    fn count_attempt(&mut self, nth: usize, operation: Operation) {
        let (lane, clock) = (&self.lanes[nth], self.load.clock);
        let times = lane.times;
        let since = |from: u64, to: u64| clock.ns(to.saturating_sub(from));
        let whole_ns = since(times.start, times.last_byte);
        let counters = &self.counters;
        let bytes = self.request_bytes(nth);
        let row = match self.tasks[nth].step {
            Step::Single => operation.attempt_row(),
            Step::Create => Some(Row::UploadCreate),
            Step::Part(_) => Some(Row::Part),
            Step::Complete => Some(Row::UploadComplete),
            Step::Abort => None,
        };
        if let Some(row) = row {
            counters.add(row, whole_ns, bytes);
        }
        if let Some((first_byte, headers)) = operation.arrival_rows() {
            counters.add(headers, since(times.start, times.headers), 0);
            if times.first_byte > 0 {
                counters.add(first_byte, since(times.start, times.first_byte), 0);
            }
        }
        if operation == Operation::Put {
            counters.add(Row::PutCommit, since(times.sent, times.headers), 0);
        }
        if lane.is_compared() {
            add_by_owner(&counters.verified, 1);
            add_by_owner(&counters.verified_bytes, lane.body_bytes());
        }
    }

    /// Bytes of objects that a request moves.
    fn request_bytes(&self, nth: usize) -> u64 {
        let slot = &self.slots[nth / self.lanes_per_slot];
        let Some(work) = slot.work else { return 0 };
        match (self.tasks[nth].step, work.kind) {
            (Step::Part(number), _) => {
                let part_bytes = self.load.set.part_bytes.unwrap_or(u64::MAX);
                part_bytes.min(work.bytes - (number - 1) * part_bytes)
            }
            (Step::Single, kind) => object_bytes(kind, &work, &self.lanes[nth]),
            _ => 0,
        }
    }

    fn note_fault(&mut self, nth: usize, operation: Operation, fault: &AttemptFault) {
        let counters = &self.counters;
        counters.attempts[operation as usize].attempt_errors.add(fault.class);
        if self.lanes[nth].is_compared() {
            match fault.class {
                ErrorClass::WrongContent => add_by_owner(&counters.corrupt, 1),
                ErrorClass::TornContent => add_by_owner(&counters.torn, 1),
                _ => {}
            }
            if matches!(fault.class, ErrorClass::WrongContent | ErrorClass::TornContent) {
                add_by_owner(&counters.verified, 1);
                add_by_owner(&counters.verified_bytes, self.lanes[nth].body_bytes());
            }
        }
        let slot = &self.slots[nth / self.lanes_per_slot];
        let (load, work, server) = (&self.load, slot.work, self.lanes[nth].server);
        load.keep_example(fault.class, || {
            let mut key = String::new();
            if let Some(work) = work {
                if work.kind == OperationKind::List {
                    key = load.set.folder(work.number as u32);
                } else {
                    load.push_key(&work, &mut key);
                }
            }
            let url = &load.servers[server].endpoint.url;
            let name = operation.row().name().trim_start_matches("object_").to_uppercase();
            format!("{name} {key} at {url}: {}", fault.message)
        });
    }

    /// Whether another attempt is made, after a pause of a random length that doubles.
    fn retry(&mut self, nth: usize, operation: Operation, fault: &AttemptFault) -> bool {
        let retries = self.load.spec.retries;
        let task = &mut self.tasks[nth];
        // Where each object has its turn once, the last ones are tried again too.
        let goes_on = self.stopped.is_none() || (self.is_exhausted && !self.is_aborting);
        let may = fault.class.is_transient() && goes_on;
        if !may || task.step == Step::Abort || task.failed >= retries.max {
            return false;
        }
        let longest_ms = retries
            .base_ms
            .saturating_mul(1_u64.checked_shl(task.failed).unwrap_or(u64::MAX))
            .min(retries.cap_ms);
        let pause_ns = self.random.next_below(longest_ms.saturating_mul(1_000_000).max(1));
        let clock = self.load.clock;
        task.failed += 1;
        task.retry_at = Some(clock.ticks() + clock.ticks_of(pause_ns));
        self.waiting += 1;
        self.counters.retried.add(fault.class);
        add_by_owner(&self.counters.attempts[operation as usize].attempts, 1);
        true
    }

    fn go_on_with_upload(
        &mut self,
        nth: usize,
        operation: Operation,
        outcome: Result<(), AttemptFault>,
    ) {
        let slot = nth / self.lanes_per_slot;
        let first_lane = slot * self.lanes_per_slot;
        let step = self.tasks[nth].step;
        let (tag, text) = (std::mem::take(&mut self.lanes[nth].tag), &self.lanes[nth].text);
        let Some(upload) = self.slots[slot].upload.as_deref_mut() else { return };
        match (step, outcome) {
            (Step::Create, Ok(())) => {
                let text = String::from_utf8_lossy(text);
                let id = element_text(&text, "UploadId").filter(|id| !id.is_empty());
                let Some(id) = id else {
                    let fault = AttemptFault {
                        class: ErrorClass::BadResponse,
                        message: "the answer names no upload".into(),
                    };
                    return self.end_operation(slot, operation, Err(fault));
                };
                upload.id = id.into_owned();
                self.begin_parts(slot);
            }
            (Step::Create, Err(fault)) => self.end_operation(slot, operation, Err(fault)),
            (Step::Part(number), outcome) => {
                upload.active -= 1;
                match outcome {
                    Ok(()) => {
                        upload.tags[number as usize - 1] = tag;
                        upload.done_parts += 1;
                    }
                    Err(fault) => upload.fault = Some(fault),
                }
                self.begin_parts(slot);
            }
            (Step::Complete, Ok(())) => {
                add_by_owner(&self.counters.uploads_completed, 1);
                self.end_operation(slot, operation, Ok(()));
            }
            (Step::Complete, Err(fault)) => {
                upload.fault = Some(fault);
                self.begin_step(first_lane, Step::Abort);
            }
            (Step::Abort, outcome) => {
                let is_gone = outcome.is_ok()
                    || outcome.is_err_and(|fault| fault.class == ErrorClass::NoSuchUpload);
                let counters = &self.counters;
                let counter =
                    if is_gone { &counters.uploads_aborted } else { &counters.uploads_left };
                add_by_owner(counter, 1);
                let fault = upload.fault.take().unwrap_or(AttemptFault {
                    class: ErrorClass::Timeout,
                    message: "the upload was not done when the run ended".into(),
                });
                self.end_operation(slot, operation, Err(fault));
            }
            (Step::Single, _) => {}
        }
    }

    /// Begin as many parts as there are lanes for; when none is left, end the upload.
    fn begin_parts(&mut self, slot: usize) {
        let first_lane = slot * self.lanes_per_slot;
        for nth in first_lane..first_lane + self.lanes_per_slot {
            let is_free = !self.lanes[nth].is_busy()
                && self.tasks[nth].retry_at.is_none()
                && !self.ready.iter().any(|(lane, _)| *lane == nth);
            let is_aborting = self.is_aborting;
            let Some(upload) = self.slots[slot].upload.as_deref_mut() else { return };
            if is_aborting || upload.fault.is_some() || upload.next_part > upload.parts {
                break;
            }
            if is_free {
                let number = upload.next_part;
                upload.next_part += 1;
                upload.active += 1;
                self.begin_step(nth, Step::Part(number));
            }
        }
        let Some(upload) = self.slots[slot].upload.as_deref() else { return };
        if upload.active > 0 {
            return;
        }
        let step = if upload.done_parts == upload.parts { Step::Complete } else { Step::Abort };
        self.begin_step(first_lane, step);
    }

    fn end_operation(
        &mut self,
        slot: usize,
        operation: Operation,
        outcome: Result<(), AttemptFault>,
    ) {
        let clock = self.load.clock;
        let lane = &self.lanes[slot * self.lanes_per_slot];
        let ended = if lane.times.last_byte > 0 { lane.times.last_byte } else { clock.ticks() };
        let slot_state = std::mem::take(&mut self.slots[slot]);
        let Some(work) = slot_state.work else { return };
        self.free.push_back(slot);
        if self.stopped.is_some_and(|at| ended > at) {
            add_by_owner(&self.counters.drained, 1);
        }
        let server = &self.counters.servers[lane.server];
        if let Err(fault) = outcome {
            self.counters.attempts[operation as usize].failed.add(fault.class);
            add_by_owner(&server.failed, 1);
            return;
        }
        let service_ns = clock.ns(ended.saturating_sub(slot_state.begun));
        let response_ns = match self.arrivals {
            Some(_) => clock.ns(ended.saturating_sub(slot_state.due)),
            None => service_ns,
        };
        let bytes = object_bytes(work.kind, &work, lane);
        self.counters.add_operation(operation, (response_ns, service_ns), bytes);
        add_by_owner(&server.operations, 1);
        if work.kind != OperationKind::List {
            add_by_owner(&server.bytes, bytes);
        }
        if let Some(counters) = server.latencies(operation) {
            counters.response.add(response_ns);
        }
        add_by_owner(&server.lat_sum_ns, response_ns);
        if work.kind == OperationKind::List {
            let text = String::from_utf8_lossy(&lane.text);
            let keys = elements(&text, "Contents").count();
            add_by_owner(&self.counters.listed_keys, keys as u64);
        }
        if self.keeps_put && work.is_new && work.kind == OperationKind::Put {
            self.put.push_back(work.number);
        }
    }
}

/// Bytes of the object that an operation moves; of a page, its own.
fn object_bytes(kind: OperationKind, work: &Work, lane: &Lane) -> u64 {
    match kind {
        OperationKind::Get | OperationKind::GetRange | OperationKind::Put => work.bytes,
        OperationKind::List => lane.body_bytes(),
        OperationKind::Head | OperationKind::Delete => 0,
    }
}

fn operation_of(slot: &Slot) -> Operation {
    match slot.work.map(|work| work.kind) {
        Some(OperationKind::Get) | None => Operation::Get,
        Some(OperationKind::GetRange) => Operation::GetRange,
        Some(OperationKind::Put) if slot.upload.is_some() => Operation::Multipart,
        Some(OperationKind::Put) => Operation::Put,
        Some(OperationKind::Head) => Operation::Head,
        Some(OperationKind::List) => Operation::List,
        Some(OperationKind::Delete) => Operation::Delete,
    }
}

fn is_verified(nth: u64, every: u32) -> bool {
    every > 0 && nth % u64::from(every) == 0
}
