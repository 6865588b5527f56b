//! The main flow: hello, then each request answered by a thread of its own, until the input ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use crate::clock::ClockReading;
use crate::connection::{self, Connections, Disconnecting, QueuedBytes, Socket};
use crate::device::{DeviceOptions, Devices, OpenMode, inspect_device, trim_file_system};
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
use crate::sign::own_sign;
use crate::sys::file::sync_all;
use crate::sys::mount;
use crate::watch::{Watch, Watches};
use crate::wire::{Empty, Frame, Outbox, read_frame};
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
    under_way: AtomicUsize,
}

/// Serve requests from `input` until it ends; then everything started is ended and the process too.
pub fn serve(input: &mut impl Read, outbox: Outbox, lease: Arc<Lease>) -> ! {
    let service = Arc::new(Service {
        lease,
        outbox,
        watches: Watches::default(),
        devices: Devices::default(),
        connections: Connections::default(),
        under_way: AtomicUsize::new(0),
    });
    service.outbox.say(0, "hello", &Hello::new());
    let mut input = Heard { input, lease: Arc::clone(&service.lease) };
    loop {
        match read_frame(&mut input) {
            Ok(Some(frame)) => service.take(frame),
            Ok(None) => service.lease.end_agent(CODE_DONE, |_| {}),
            Err(fault) => service.end_by_fault(&fault.0),
        }
    }
}

/// What the controller says. Every piece counts as heard: over a slow link a frame takes long.
struct Heard<'a, R> {
    input: &'a mut R,
    lease: Arc<Lease>,
}

impl<R: Read> Read for Heard<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.lease.note_contact();
        Ok(count)
    }
}

/// The last answer of an agent: what stays on the host.
#[derive(Serialize)]
struct Goodbye<'a> {
    left: &'a [Remnant],
}

/// A request that is ready to be worked on: what must be known in order is done already.
enum Work {
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
    fn take(self: &Arc<Self>, frame: Frame) {
        let Frame { mut header, payload } = frame;
        let Some(id) = take_id(&mut header) else {
            self.end_by_fault("a request without a positive integer in `id`");
        };
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            self.end_by_fault(&format!("more than {MAX_REQUESTS} requests under way"));
        }
        let work = match parse(header) {
            Ok(request) => self.prepare(id, request, payload).unwrap_or_else(Work::Refusal),
            Err(error) => Work::Refusal(error),
        };
        let service = Arc::clone(self);
        let worker = thread::Builder::new().name(format!("request-{id}"));
        let started = worker.spawn(move || {
            service.work(id, work);
            service.under_way.fetch_sub(1, Ordering::Relaxed);
        });
        if let Err(error) = started {
            self.end_by_fault(&format!("no thread for request {id}: {error}"));
        }
    }

    /// Make runs, watches and connections known before the next request is read: it may be about
    /// them. What is sent is queued here, in the order in which it came.
    fn prepare(&self, id: u64, request: Request, payload: Vec<u8>) -> Result<Work> {
        match request {
            Request::Run(job) => {
                self.lease.runs.reserve(id)?;
                Ok(Work::Run(job, payload))
            }
            Request::Watch { interval_ms, inodes_of } => {
                Ok(Work::Watch(self.watches.reserve(id, interval_ms)?, inodes_of))
            }
            Request::Trace { device, wall_limit_s } => {
                Ok(Work::Trace(device, self.watches.reserve_limited(id, wall_limit_s)?))
            }
            Request::Metadata(load) => Ok(Work::Metadata(load, self.lease.phases.reserve(id)?)),
            Request::Connect { dir, name, wait_s } => {
                let socket = Socket::new(dir, name, wait_s)?;
                Ok(Work::Connect(socket, self.connections.reserve(id)?))
            }
            Request::Send { connection } => {
                Ok(Work::Send(self.connections.queue(connection, payload)?))
            }
            Request::Disconnect { connection } => {
                Ok(Work::Disconnect(self.connections.leave(connection)?))
            }
            other => Ok(Work::Other(other, payload)),
        }
    }

    fn work(&self, id: u64, work: Work) {
        if let Err(error) = mount::follow() {
            self.lease.runs.release(id);
            return self.outbox.refuse(id, &Error::io("reach the agent's own mounts", &error));
        }
        let answered = catch_unwind(AssertUnwindSafe(|| match work {
            Work::Run(job, payload) => self.run(id, &job, &payload),
            Work::Watch(watch, inodes_of) => {
                self.watch(id, &watch, inodes_of);
                Ok(())
            }
            Work::Trace(device, watch) => {
                watch.trace(&device, |traced| self.outbox.say(id, "trace", traced));
                Ok(())
            }
            Work::Metadata(load, place) => self.metadata(id, &load, place),
            Work::Connect(socket, place) => self.connect(id, &socket, place),
            Work::Send(queued) => queued.settled().map(|()| self.done(id)),
            Work::Disconnect(leaving) => {
                leaving.end();
                self.done(id);
                Ok(())
            }
            Work::Other(request, payload) => self.answer(id, request, &payload),
            Work::Refusal(error) => Err(error),
        }));
        match answered {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.outbox.refuse(id, &error),
            Err(_) => {
                self.lease.runs.release(id); // What it started ends with this thread.
                self.outbox.refuse(id, &Error::bug("the agent failed; see its stderr"));
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
                    self.outbox.say(id, "started", &Started { pid, real_ns });
                }
                RunEvent::Output(stream, bytes) => {
                    self.outbox.send(id, "output", &Output { stream }, bytes);
                }
            })
        });
        self.lease.runs.release(id);
        let exited = outcome?;
        in_place()?; // Else what it did may have been done elsewhere.
        self.outbox.say(id, "exited", &exited);
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
        watch.each(&mut sampler, |sample| self.outbox.say(id, "sample", sample));
        self.done(id);
    }

    fn metadata(&self, id: u64, load: &PhaseSpec, mut place: PhaseReservation) -> Result<()> {
        self.lease.start_phase_in(&load.dir, &place)?;
        let open = |dir: &Path| self.lease.open_folder(dir);
        let measured = metadata::run_phase(load, &mut place, &open, |interval| {
            self.outbox.say(id, "interval", interval);
        });
        drop(place); // Its folder may be closed as soon as the final message is said.
        let measured = measured?;
        self.lease.open_scratch(&load.dir)?; // Else it may have been measured elsewhere.
        self.outbox.say(id, "measured", &measured);
        Ok(())
    }

    fn connect(&self, id: u64, socket: &Socket, place: connection::Reservation) -> Result<()> {
        let folder = self.lease.open_scratch(&socket.dir)?;
        let ended = place.serve(&folder, socket, |event| match event {
            connection::ConnectionEvent::Connected => self.outbox.say(id, "connected", &Empty {}),
            connection::ConnectionEvent::Received(bytes) => {
                self.outbox.send(id, "received", &Empty {}, bytes);
            }
        });
        drop(place); // What is sent after the final message finds nothing open.
        ended?;
        self.outbox.say(id, "closed", &Empty {});
        Ok(())
    }

    fn done(&self, id: u64) {
        self.outbox.say(id, "done", &Empty {});
    }

    fn answer(&self, id: u64, request: Request, payload: &[u8]) -> Result<()> {
        let roots = Roots::default();
        match request {
            Request::Clock {} => self.outbox.say(id, "clock", &ClockReading::now()),
            Request::Facts { path, tools, cloud } => {
                self.facts(id, path.as_deref(), &tools, cloud);
            }
            Request::Snapshot { inodes_of } => {
                self.outbox.say(id, "sample", &Sampler::new(roots, inodes_of).snapshot());
            }
            Request::Use { run } => {
                self.outbox.say(id, "use", &runs::of_run(&roots, &self.lease.runs, run)?);
            }
            Request::Put { path, mode } => {
                let path = self.lease.resolve_file(path)?;
                let aside = self.lease.temporary_file(transfer::beside(&path.real, id)?);
                let moved = transfer::put(&path, mode, payload, &aside)?;
                self.outbox.say(id, "done", &moved);
            }
            Request::Get { path, max_bytes } => {
                let path = self.lease.resolve_file(path)?;
                let moved = transfer::get(&path, max_bytes, |chunk| {
                    self.outbox.send(id, "chunk", &Empty {}, chunk);
                })?;
                self.outbox.say(id, "done", &moved);
            }
            Request::Probe { path, rights } => self.probe(id, &path, rights)?,
            Request::ScratchOpen { path, name, owner } => {
                self.scratch_open(id, &path, &name, &owner)?;
            }
            Request::LedgerOpen { name } => {
                self.outbox.say(id, "ledger", &self.lease.ledgers.open(name)?);
            }
            Request::LedgerClose { name } => {
                self.outbox.say(id, "done", &self.lease.ledgers.close(&name)?);
            }
            Request::Extents { paths } => {
                self.outbox.say(id, "extents", &pages::extent_totals(&self.reach(paths)?)?);
            }
            Request::Evict { paths, system } => {
                self.outbox.say(id, "evicted", &pages::evict_pages(&self.reach(paths)?, system)?);
            }
            Request::Device { path, serial, overwrite } => {
                let wish = DeviceOptions { serial: serial.as_deref(), overwrite };
                self.outbox.say(
                    id,
                    "device",
                    &inspect_device(&roots, &path, wish, OpenMode::Inspect)?.0,
                );
            }
            Request::DeviceOpen { path, serial, overwrite } => {
                let wish = DeviceOptions { serial: Some(&serial), overwrite };
                self.outbox.say(id, "device", &self.devices.take(&path, wish)?);
            }
            Request::Discard { path } => {
                self.outbox.say(id, "purged", &self.devices.discard(&path)?);
            }
            Request::Trim { path } => self.outbox.say(id, "purged", &trim_file_system(&path)?),
            Request::FilesystemOpen { dir, image_bytes, path, serial, overwrite } => {
                let backing = Backing::of(image_bytes, path, serial, overwrite)?;
                let execute =
                    |argv: &[&str]| job::run_checked(&self.lease.runs, argv, MKFS_PATIENCE_S);
                let opened = self.lease.open_file_system(&dir, &backing, &execute)?;
                self.outbox.say(id, "filesystem", &opened);
            }
            Request::Leftovers { path, remove } => {
                let found = match remove {
                    Some(shown) => leftovers::remove_leftovers(path.as_deref(), &shown),
                    None => leftovers::find_leftovers(path.as_deref()),
                };
                self.outbox.say(id, "leftovers", &found);
            }
            Request::Bye {} => {
                let said = |left: &[Remnant]| self.outbox.say(id, "done", &Goodbye { left });
                self.lease.end_agent(CODE_DONE, said)
            }
            other => {
                self.obey(other)?;
                self.done(id);
            }
        }
        Ok(())
    }

    /// Do what is answered by nothing but that it is done.
    fn obey(&self, request: Request) -> Result<()> {
        match request {
            Request::Unwatch { watch } => self.watches.call_off(watch),
            // A metadata phase has no processes: every signal stops it alike.
            Request::Signal { run, .. } if self.lease.phases.stop(run) => Ok(()),
            Request::Signal { run, signal } => self.lease.runs.signal(run, signal.number()),
            Request::ScratchClose { dir, keep } => self
                .lease
                .release_scratch(&dir, if keep { Retention::Files } else { Retention::Nothing }),
            Request::DeviceClose { path } => self.devices.let_go(&path),
            Request::FilesystemClose { dir } => self.lease.close_file_system(&dir),
            Request::Sync {} => {
                sync_all();
                Ok(())
            }
            Request::Lease { seconds } => self.lease.set_term(seconds),
            _ => Err(Error::bug("a request that was not made known")),
        }
    }

    fn facts(&self, id: u64, path: Option<&Path>, tools: &facts::ToolCommands, cloud: bool) {
        let facts = facts::gather_facts(&Roots::default(), path, tools, cloud, &self.lease.runs);
        self.outbox.say(id, "facts", &BTreeMap::from([("facts", facts)]));
    }

    fn probe(&self, id: u64, path: &Path, rights: bool) -> Result<()> {
        let aside = self.lease.temporary_file(transfer::beside(&path.join("probe"), id)?);
        let mut probed = pages::probe_target(path, aside)?;
        if rights {
            probed.memory_error =
                bound::unsupported_reason(&Roots::default(), &bound::group_name(own_sign(), id));
            probed.mount_error = mount::objection();
        }
        self.outbox.say(id, "probed", &probed);
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
        self.outbox.say(id, "scratch", &Opened { dir, left_over_bytes });
        Ok(())
    }
}
