//! The queue of a thread with Linux's asynchronous I/O (libaio's system calls), for kernels that
//! give no `io_uring`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::time::Duration;

use super::queue::{FIRST_RETRY_PAUSE_NS, IoKind, IoRequest, Queue, Wait};
use super::target::Target;
use crate::sys::time::SECOND_NS;

/// Of `linux/aio_abi.h`.
const READ: u16 = 0;
const WRITE: u16 = 1;
const FSYNC: u16 = 2;
/// Completions taken in one call: more are taken in the next.
const MAX_EVENTS: usize = 256;

/// `struct iocb` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    file: u32,
    start: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_file: u32,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    control: u64,
    result: i64,
    other_result: i64,
}

/// A context of the kernel and what is on its way into it.
pub struct AioQueue {
    context: libc::c_ulong,
    files: Vec<RawFd>,
    /// By slot.
    controls: Box<[Iocb]>,
    /// Slots that are to be submitted, in order.
    pushed: Vec<u32>,
    /// What `io_submit` is given.
    pointers: Vec<*mut Iocb>,
    /// Requests that the kernel did not take, with why.
    refused: Vec<(u32, i32)>,
    events: Box<[IoEvent]>,
    completed: usize,
    in_flight: usize,
}

/// Why the kernel gives this process no context; None when it does.
#[must_use]
pub fn unsupported_reason() -> Option<io::Error> {
    create_context(1).map(destroy_context).err()
}

fn create_context(depth: u32) -> io::Result<libc::c_ulong> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: the call writes one number, which is zero as it must be.
    let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(context) }
}

fn destroy_context(context: libc::c_ulong) {
    // SAFETY: a context that was set up and is used no more.
    unsafe { libc::syscall(libc::SYS_io_destroy, context) };
}

impl AioQueue {
    /// A context for so many I/Os at a time. The targets stay open longer than it.
    pub fn new(depth: u32, targets: &[Target]) -> io::Result<Self> {
        let slots = depth as usize;
        Ok(Self {
            context: create_context(depth)?,
            files: targets.iter().map(|target| target.file.as_raw_fd()).collect(),
            controls: vec![Iocb::default(); slots].into(),
            pushed: Vec::with_capacity(slots),
            pointers: Vec::with_capacity(slots),
            refused: Vec::with_capacity(slots),
            events: vec![IoEvent::default(); MAX_EVENTS].into(),
            completed: 0,
            in_flight: 0,
        })
    }

    /// Give the kernel what was pushed. What it takes no more of now stays for the next time.
    fn submit(&mut self) -> io::Result<()> {
        let mut done = 0;
        self.pointers.clear();
        for &slot in &self.pushed {
            self.pointers.push(&raw mut self.controls[slot as usize]);
        }
        while done < self.pointers.len() {
            let (count, list) = (self.pointers.len() - done, self.pointers[done..].as_mut_ptr());
            // SAFETY: `list` has `count` pointers to controls that live as long as the context;
            // their blocks are of a region that is mapped as long as this process lives.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.context, count, list) };
            if taken > 0 {
                done += taken as usize;
                self.in_flight += taken as usize;
                continue;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => break,
                Some(libc::ENOSYS) | None => {
                    return Err(io::Error::from_raw_os_error(libc::ENOSYS));
                }
                Some(errno) => {
                    // It is about the first of them; the others may be fine.
                    self.refused.push((self.pushed[done], -errno));
                    done += 1;
                }
            }
        }
        self.pushed.drain(..done);
        Ok(())
    }

    fn get_events(&mut self, least: usize, time: Option<Duration>) -> io::Result<()> {
        let time = time.map(|time| libc::timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: libc::c_long::from(time.subsec_nanos()),
        });
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (context, events) = (self.context, self.events.as_mut_ptr());
        // SAFETY: there is room for so many events; the time is valid for the call or null.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_getevents, context, least, self.events.len(), events, time)
        };
        if taken >= 0 {
            self.completed = taken as usize;
            self.in_flight -= self.completed;
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}

impl Drop for AioQueue {
    fn drop(&mut self) {
        destroy_context(self.context);
    }
}

impl Queue for AioQueue {
    #[inline]
    fn push(&mut self, request: &IoRequest) {
        let own = Iocb {
            data: u64::from(request.slot),
            file: self.files[request.target as usize] as u32,
            ..Iocb::default()
        };
        let of_block = |opcode| Iocb {
            opcode,
            start: request.block.start() as u64,
            bytes: u64::from(request.bytes),
            offset: request.offset as i64,
            ..own
        };
        self.controls[request.slot as usize] = match request.kind {
            IoKind::Read => of_block(READ),
            IoKind::Write => of_block(WRITE),
            // It must name no memory.
            IoKind::Trim | IoKind::Sync => Iocb { opcode: FSYNC, ..own },
        };
        self.pushed.push(request.slot);
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        if !self.pushed.is_empty() {
            self.submit()?;
        }
        if !self.refused.is_empty() {
            return Ok(());
        }
        match wait {
            // The call that submits found no room, and nothing ends that would make some.
            _ if self.in_flight == 0 && !self.pushed.is_empty() => {
                std::thread::sleep(Duration::from_nanos(FIRST_RETRY_PAUSE_NS));
                Ok(())
            }
            Wait::AtMost(ns) if self.in_flight == 0 => {
                std::thread::sleep(Duration::from_nanos(ns));
                Ok(())
            }
            _ if self.in_flight == 0 => Ok(()),
            Wait::Never => self.get_events(0, None),
            Wait::ForOne => self.get_events(1, None),
            Wait::AtMost(ns) => {
                self.get_events(1, Some(Duration::new(ns / SECOND_NS, (ns % SECOND_NS) as u32)))
            }
        }
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for (slot, result) in self.refused.drain(..) {
            each(slot, result);
        }
        for event in &self.events[..std::mem::take(&mut self.completed)] {
            each(event.data as u32, event.result as i32);
        }
    }
}
