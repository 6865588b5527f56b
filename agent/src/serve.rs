//! The main flow: hello, then each request answered by a thread of its own, until the input ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::action::StudyScope;
use crate::clock::ClockReading;
use crate::connection::{self, Connections, Disconnecting, QueuedBytes, Socket};
use crate::device::{DeviceOptions, Devices, OpenMode, inspect_device, trim_file_system};
use crate::drive_logs::read_drive_logs;
use crate::error::{Error, Result};
use crate::job::{self, Job, OutputStream, RunEvent};
use crate::lease::{Lease, ResolvedFile};
use crate::metadata::{self, PhaseReservation, PhaseSpec};
use crate::prepare::filesystem::Backing;
use crate::prepare::pages;
use crate::prepare::scratch::{self, Retention, Scratch};
use crate::remnant::Remnant;
use crate::request::{Hello, Request, parse, take_id};
use crate::roots::Roots;
use crate::sampler::Sampler;
use crate::sign::own_agent_id;
use crate::sys::file::sync_all;
use crate::sys::mount;
use crate::undo::{self, StepResult, UndoTimer};
use crate::watch::{Watch, Watches};
use crate::wire::{EmptyBody, Frame, Outbox, read_frame};
use crate::{bound, facts, leftovers, runs, transfer};

/// The exit code after a clean end of the input or a `bye`.
const CODE_DONE: i32 = 0;
/// The exit code after a protocol fault.
pub const CODE_FAULT: i32 = 3;
/// Formatting a device discards it first: terabytes of the slowest take minutes.
const MKFS_PATIENCE_S: f64 = 600.0;
/// Requests answered at once, each a thread and at most one payload of memory: a guest of a node
/// has a run and two connections, and is asked for more at times.
const MAX_REQUESTS: usize = 1024;

/// What all requests share.
struct Service {
    lease: Arc<Lease>,
    outbox: Outbox,
    watches: Watches,
    devices: Devices,
    connections: Connections,
    active_requests: AtomicUsize,
}

/// Serve requests from `input` until it ends; then everything started is ended and the process too.
pub fn serve(input: &mut impl Read, outbox: Outbox, lease: Arc<Lease>) -> ! {
    let service = Arc::new(Service {
        lease,
        outbox,
        watches: Watches::default(),
        devices: Devices::default(),
        connections: Connections::default(),
        active_requests: AtomicUsize::new(0),
    });
    service.outbox.send_message(0, "hello", &Hello::new());
    let mut input = ControllerInput { input, lease: Arc::clone(&service.lease) };
    loop {
        match read_frame(&mut input) {
            Ok(Some(frame)) => service.handle_frame(frame),
            Ok(None) => service.lease.end_agent(CODE_DONE, |_| {}),
            Err(fault) => service.end_by_fault(&fault.0),
        }
    }
}

/// What the controller says. Every piece counts as heard: over a slow link a frame takes long.
struct ControllerInput<'a, R> {
    input: &'a mut R,
    lease: Arc<Lease>,
}

impl<R: Read> Read for ControllerInput<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.lease.note_contact();
        Ok(count)
    }
}

/// The last answer of an agent: what stays on the host.
#[derive(Serialize)]
struct LastAnswer<'a> {
    left: &'a [Remnant],
}

/// A request that is ready to be worked on: what must be known in order is done already.
enum PreparedRequest {
    Run(Job, Vec<u8>),
    Watch(Watch, Option<PathBuf>),
    Trace(String, Watch),
    Metadata(PhaseSpec, PhaseReservation),
    Connect(Socket, connection::Reservation),
    Send(QueuedBytes),
    Disconnect(Disconnecting),
    Other(Request, Vec<u8>),
    Refusal(Error),
}

impl Service {
    fn end_by_fault(&self, fault: &str) -> ! {
        eprintln!("iolab-agent: protocol fault: {fault}");
        self.lease.end_agent(CODE_FAULT, |_| {})
    }

    /// Never blocks on output: only so is the end of the input always seen.
    fn handle_frame(self: &Arc<Self>, frame: Frame) {
        let Frame { mut header, payload } = frame;
        let Some(id) = take_id(&mut header) else {
            self.end_by_fault("a request without a positive integer in `id`");
        };
        if self.active_requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            self.end_by_fault(&format!("more than {MAX_REQUESTS} requests under way"));
        }
        let work = match parse(header) {
            Ok(request) => {
                self.prepare_request(id, request, payload).unwrap_or_else(PreparedRequest::Refusal)
            }
            Err(error) => PreparedRequest::Refusal(error),
        };
        let service = Arc::clone(self);
        let worker = thread::Builder::new().name(format!("request-{id}"));
        let started = worker.spawn(move || {
            service.work(id, work);
            service.active_requests.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = started {
            self.end_by_fault(&format!("no thread for request {id}: {error}"));
        }
    }

    /// Make runs, watches and connections known before the next request is read: it may be about
    /// them. What is sent is queued here, in the order in which it came.
    fn prepare_request(
        &self,
        id: u64,
        request: Request,
        payload: Vec<u8>,
    ) -> Result<PreparedRequest> {
        match request {
            Request::Run(job) => {
                self.lease.runs.reserve(id)?;
                Ok(PreparedRequest::Run(job, payload))
            }
            Request::Watch { interval_ms, inodes_of } => {
                Ok(PreparedRequest::Watch(self.watches.reserve(id, interval_ms)?, inodes_of))
            }
            Request::Trace { device, wall_limit_s } => {
                Ok(PreparedRequest::Trace(device, self.watches.reserve_limited(id, wall_limit_s)?))
            }
            Request::Metadata(load) => {
                Ok(PreparedRequest::Metadata(load, self.lease.phases.reserve(id)?))
            }
            Request::Connect { dir, name, wait_s } => {
                let socket = Socket::new(dir, name, wait_s)?;
                Ok(PreparedRequest::Connect(socket, self.connections.reserve(id)?))
            }
            Request::Send { connection } => {
                Ok(PreparedRequest::Send(self.connections.queue(connection, payload)?))
            }
            Request::Disconnect { connection } => {
                Ok(PreparedRequest::Disconnect(self.connections.leave(connection)?))
            }
            other => Ok(PreparedRequest::Other(other, payload)),
        }
    }

    fn work(&self, id: u64, work: PreparedRequest) {
        if let Err(error) = mount::enter_namespace_if_any() {
            self.lease.runs.release(id);
            return self.outbox.send_error(id, &Error::io("reach the agent's own mounts", &error));
        }
        let answered = catch_unwind(AssertUnwindSafe(|| match work {
            PreparedRequest::Run(job, payload) => self.run(id, &job, &payload),
            PreparedRequest::Watch(watch, inodes_of) => {
                self.watch(id, &watch, inodes_of);
                Ok(())
            }
            PreparedRequest::Trace(device, watch) => {
                watch.trace(&device, |traced| self.outbox.send_message(id, "trace", traced));
                Ok(())
            }
            PreparedRequest::Metadata(load, place) => self.metadata(id, &load, place),
            PreparedRequest::Connect(socket, place) => self.connect(id, &socket, place),
            PreparedRequest::Send(queued) => queued.settled().map(|()| self.send_done(id)),
            PreparedRequest::Disconnect(leaving) => {
                leaving.end();
                self.send_done(id);
                Ok(())
            }
            PreparedRequest::Other(request, payload) => self.answer(id, request, &payload),
            PreparedRequest::Refusal(error) => Err(error),
        }));
        match answered {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.lease.park_if_ending();
                self.outbox.send_error(id, &error);
            }
            Err(_) => {
                self.lease.runs.release(id); // What it started ends with this thread.
                self.outbox.send_error(id, &Error::bug("the agent failed; see its stderr"));
            }
        }
    }

    fn run(&self, id: u64, job: &Job, input: &[u8]) -> Result<()> {
        #[derive(Serialize)]
        struct Started {
            pid: u32,
            real_ns: u64,
        }
        #[derive(Serialize)]
        struct Output {
            stream: OutputStream,
        }
        let concerned = self.lease.scratches_used_by(job);
        let in_place = || concerned.iter().try_for_each(|anchor| anchor.open().map(drop));
        let outcome = in_place().and_then(|()| self.folder_of(job)).and_then(|folder| {
            job::run(&self.lease.runs, id, job, folder, input, |event| match event {
                RunEvent::Started { pid, real_ns } => {
                    self.outbox.send_message(id, "started", &Started { pid, real_ns });
                }
                RunEvent::Output(stream, bytes) => {
                    self.outbox.send_with_payload(id, "output", &Output { stream }, bytes);
                }
            })
        });
        self.lease.runs.release(id);
        self.lease.park_if_ending();
        let exited = outcome?;
        in_place()?; // Else what it did may have been done elsewhere.
        self.outbox.send_message(id, "exited", &exited);
        Ok(())
    }

    /// The working directory of a job. In a scratch folder are no links that its program could follow.
    fn folder_of(&self, job: &Job) -> Result<File> {
        let cwd = job.cwd.as_deref().unwrap_or(Path::new("/"));
        let folder = self.lease.open_folder(cwd)?;
        if self.lease.scratches_used_by(job).iter().any(|anchor| cwd.starts_with(&anchor.dir)) {
            scratch::refuse_links(&folder, cwd)?;
        }
        Ok(folder)
    }

    fn watch(&self, id: u64, watch: &Watch, inodes_of: Option<PathBuf>) {
        let mut sampler = Sampler::new(Roots::default(), inodes_of);
        watch
            .for_each_sample(&mut sampler, |sample| self.outbox.send_message(id, "sample", sample));
        self.send_done(id);
    }

    fn metadata(&self, id: u64, load: &PhaseSpec, mut place: PhaseReservation) -> Result<()> {
        self.lease.start_phase_in(&load.dir, &place)?;
        let open = |dir: &Path| self.lease.open_folder(dir);
        let measured = metadata::run_phase(load, &mut place, &open, |interval| {
            self.outbox.send_message(id, "interval", interval);
        });
        drop(place); // Its folder may be closed as soon as the final message is said.
        let measured = measured?;
        self.lease.open_scratch(&load.dir)?; // Else it may have been measured elsewhere.
        self.outbox.send_message(id, "measured", &measured);
        Ok(())
    }

    fn connect(&self, id: u64, socket: &Socket, place: connection::Reservation) -> Result<()> {
        let folder = self.lease.open_scratch(&socket.dir)?;
        let ended = place.serve(&folder, socket, |event| match event {
            connection::ConnectionEvent::Connected => {
                self.outbox.send_message(id, "connected", &EmptyBody {});
            }
            connection::ConnectionEvent::Received(bytes) => {
                self.outbox.send_with_payload(id, "received", &EmptyBody {}, bytes);
            }
        });
        drop(place); // What is sent after the final message finds nothing open.
        ended?;
        self.outbox.send_message(id, "closed", &EmptyBody {});
        Ok(())
    }

    fn send_done(&self, id: u64) {
        self.outbox.send_message(id, "done", &EmptyBody {});
    }

    fn answer(&self, id: u64, request: Request, payload: &[u8]) -> Result<()> {
        let roots = Roots::default();
        match request {
            Request::Clock {} => self.outbox.send_message(id, "clock", &ClockReading::now()),
            Request::Facts { path, tools, cloud } => {
                self.facts(id, path.as_deref(), &tools, cloud);
            }
            Request::Snapshot { inodes_of } => {
                self.outbox.send_message(id, "sample", &Sampler::new(roots, inodes_of).snapshot());
            }
            Request::Use { run } => {
                self.outbox.send_message(
                    id,
                    "use",
                    &runs::use_of_run(&roots, &self.lease.runs, run)?,
                );
            }
            Request::Put { path, mode } => {
                let path = self.lease.resolve_file(path)?;
                let aside = self.lease.temporary_file(transfer::temporary_name(&path.real, id)?);
                let moved = transfer::put_file(&path, mode, payload, &aside)?;
                self.outbox.send_message(id, "done", &moved);
            }
            Request::Get { path, max_bytes } => {
                let path = self.lease.resolve_file(path)?;
                let moved = transfer::get_file(&path, max_bytes, |chunk| {
                    self.outbox.send_with_payload(id, "chunk", &EmptyBody {}, chunk);
                })?;
                self.outbox.send_message(id, "done", &moved);
            }
            Request::Probe { path, rights } => self.probe(id, &path, rights)?,
            Request::ScratchOpen { path, name, owner } => {
                self.scratch_open(id, &path, &name, &owner)?;
            }
            Request::LedgerOpen { name } => {
                self.outbox.send_message(id, "ledger", &self.lease.ledgers.open(name)?);
            }
            Request::LedgerClose { name } => {
                self.outbox.send_message(id, "done", &self.lease.ledgers.close(&name)?);
            }
            Request::Extents { paths } => {
                self.outbox.send_message(
                    id,
                    "extents",
                    &pages::extent_totals(&self.reach(paths)?)?,
                );
            }
            Request::Evict { paths, system } => {
                self.outbox.send_message(
                    id,
                    "evicted",
                    &pages::evict_pages(&self.reach(paths)?, system)?,
                );
            }
            Request::Device { path, serial, overwrite } => {
                let wish = DeviceOptions { serial: serial.as_deref(), overwrite };
                self.outbox.send_message(
                    id,
                    "device",
                    &inspect_device(&roots, &path, wish, OpenMode::Inspect)?.0,
                );
            }
            Request::DeviceOpen { path, serial, overwrite } => {
                let wish = DeviceOptions { serial: Some(&serial), overwrite };
                self.outbox.send_message(id, "device", &self.devices.take(&path, wish)?);
            }
            Request::Discard { path } => {
                self.outbox.send_message(id, "purged", &self.devices.discard(&path)?);
            }
            Request::Trim { path } => {
                self.outbox.send_message(id, "purged", &trim_file_system(&path)?);
            }
            Request::DriveLogs { devices } => {
                self.outbox.send_message(id, "drives", &read_drive_logs(&devices));
            }
            Request::FilesystemOpen { dir, image_bytes, path, serial, overwrite } => {
                let backing = Backing::of(image_bytes, path, serial, overwrite)?;
                let execute =
                    |argv: &[&str]| job::run_checked(&self.lease.runs, argv, MKFS_PATIENCE_S);
                let opened = self.lease.open_file_system(&dir, &backing, &execute)?;
                self.outbox.send_message(id, "filesystem", &opened);
            }
            Request::Leftovers { path, remove } => self.leftovers(id, path.as_deref(), remove),
            event @ (Request::Resolve { .. } | Request::Step { .. } | Request::Undo { .. }) => {
                self.answer_event(id, event)?;
            }
            Request::Bye {} => {
                let said =
                    |left: &[Remnant]| self.outbox.send_message(id, "done", &LastAnswer { left });
                self.lease.end_agent(CODE_DONE, said)
            }
            other => {
                self.perform(other)?;
                self.send_done(id);
            }
        }
        Ok(())
    }

    /// What is asked for an event: its steps, to do it, to undo it.
    fn answer_event(&self, id: u64, request: Request) -> Result<()> {
        match request {
            Request::Resolve { what, targets, members, timeout_s } => {
                let lease_s = self.lease.term().as_secs_f64();
                let scope = StudyScope { targets: &targets, members: &members, lease_s, timeout_s };
                let resolved = what.resolve(&scope, &self.host_program())?;
                undo::require_free(&resolved.undo)?;
                self.outbox.send_message(id, "resolved", &resolved);
            }
            Request::Step { what, undo, undo_timer, released_dir } => {
                let name = undo.as_ref().or(undo_timer.as_ref().map(|timer| &timer.name));
                let _event = undo::begin(name.map(String::as_str))?;
                undo_timer.map_or(Ok(()), |timer| self.start_undo_timer(timer))?;
                let perform = || undo::perform_all(&what, &self.host_program());
                let (times, is_unmounted) = match released_dir {
                    Some(dir) => self.lease.with_released_scratch(&dir, perform)?,
                    None => (perform()?, false),
                };
                self.outbox.send_message(id, "stepped", &StepResult { times, is_unmounted });
            }
            Request::Undo { name } => {
                let times = undo::undo(&name, &self.host_program())?;
                self.outbox.send_message(id, "stepped", &StepResult { times, is_unmounted: false });
            }
            _ => return Err(Error::bug("a request that is of no event")),
        }
        Ok(())
    }

    fn leftovers(&self, id: u64, path: Option<&Path>, remove: Option<BTreeSet<String>>) {
        let found = match remove {
            Some(shown) => leftovers::remove_leftovers(path, &shown, &self.host_program()),
            None => leftovers::find_leftovers(path),
        };
        self.outbox.send_message(id, "leftovers", &found);
    }

    /// Undo an event so long after now, whether or not the controller can still be heard. Its name
    /// is used once: nothing happens where it was undone before, or did not begin.
    fn start_undo_timer(&self, timer: UndoTimer) -> Result<()> {
        let seconds = Duration::try_from_secs_f64(timer.seconds)
            .map_err(|_| Error::bad_request(format!("an undo after {} s", timer.seconds)))?;
        let lease = Arc::clone(&self.lease);
        let wait_and_undo = move || {
            thread::sleep(seconds);
            let execute =
                |argv: &[String], limit_s| job::run_checked_of_host(&lease.runs, argv, limit_s);
            if let Err(error) = undo::undo(&timer.name, &execute) {
                eprintln!("iolab-agent: {} was not undone: {}", timer.name, error.message);
            }
        };
        let worker = thread::Builder::new().name("undo".into()).spawn(wait_and_undo);
        worker.map(drop).map_err(|error| Error::io("start an undo's timer", &error))
    }

    /// How programs of the host are run.
    fn host_program(&self) -> impl Fn(&[String], f64) -> Result<()> {
        |argv: &[String], seconds| job::run_checked_of_host(&self.lease.runs, argv, seconds)
    }

    /// Do what is answered by nothing but that it is done.
    fn perform(&self, request: Request) -> Result<()> {
        match request {
            Request::Unwatch { watch } => self.watches.cancel(watch),
            // A metadata phase has no processes: every signal stops it alike.
            Request::Signal { run, .. } if self.lease.phases.stop(run) => Ok(()),
            Request::Signal { run, signal } => self.lease.runs.signal(run, signal.number()),
            Request::ScratchClose { dir, keep } => self
                .lease
                .release_scratch(&dir, if keep { Retention::Files } else { Retention::Nothing }),
            Request::DeviceClose { path } => self.devices.release(&path),
            Request::FilesystemClose { dir } => self.lease.close_file_system(&dir),
            Request::Sync {} => {
                sync_all();
                Ok(())
            }
            Request::UndoAdd { name, what } => undo::add(name, what),
            Request::UndoRemove { name } => undo::remove(&name),
            Request::IoLimit { run, rates } => bound::limit_io(&group_name(run), &rates),
            Request::Lease { seconds } => self.lease.set_term(seconds),
            _ => Err(Error::bug("a request that was not made known")),
        }
    }

    fn facts(&self, id: u64, path: Option<&Path>, tools: &facts::ToolCommands, cloud: bool) {
        let facts = facts::gather_facts(&Roots::default(), path, tools, cloud, &self.lease.runs);
        self.outbox.send_message(id, "facts", &BTreeMap::from([("facts", facts)]));
    }

    fn probe(&self, id: u64, path: &Path, rights: bool) -> Result<()> {
        let aside = self.lease.temporary_file(transfer::temporary_name(&path.join("probe"), id)?);
        let mut probed = pages::probe_target(path, aside)?;
        if rights {
            probed.memory_error = bound::unsupported_reason(&Roots::default(), &group_name(id));
            probed.mount_error = mount::unsupported_reason();
        }
        self.outbox.send_message(id, "probed", &probed);
        Ok(())
    }

    fn reach(&self, paths: Vec<PathBuf>) -> Result<Vec<ResolvedFile>> {
        paths.into_iter().map(|path| self.lease.resolve_file(path)).collect()
    }

    fn scratch_open(&self, id: u64, path: &Path, name: &str, owner: &str) -> Result<()> {
        #[derive(Serialize)]
        struct Opened {
            dir: PathBuf,
            left_over_bytes: u64,
        }
        let (scratch, left_over_bytes) = Scratch::open(path, name, owner)?;
        let dir = scratch.dir().to_owned();
        self.lease.hold_scratch(scratch)?;
        self.outbox.send_message(id, "scratch", &Opened { dir, left_over_bytes });
        Ok(())
    }
}

/// How the control group of a run of this agent is named.
fn group_name(run: u64) -> String {
    bound::group_name(own_agent_id(), run)
}
