//! The queue of a thread with its own `io_uring`.
#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, cqueue, opcode, squeue};

use super::buffer::Block;
use super::queue::{Act, Queue, Request, Wait};
use super::target::Target;
use crate::error::sentence;
use crate::sys::time::SECOND_NS;

/// `IOSQE_FIXED_FILE` of `linux/io_uring.h`: the file is told by its place among those registered.
const FIXED_FILE: u64 = 1;
const _: () = assert!(cfg!(target_endian = "little"), "entries are put together that way");
/// The most files that a ring takes.
const MAX_FIXED_FILES: usize = 32_768;
/// How long the kernel's thread of a ring looks for submissions before it sleeps.
const SQPOLL_IDLE_MS: u32 = 2000;

/// What is wanted of a ring.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// I/Os under way at a time.
    pub depth: u32,
    /// Completions are polled for.
    pub poll: bool,
    /// A thread of the kernel looks for submissions.
    pub sqpoll: bool,
}

/// A ring with its files and buffers.
pub struct Ring {
    kernel: IoUring,
    files: Vec<RawFd>,
    has_files: bool,
    has_buffers: bool,
    /// Completions only come when they are asked for.
    must_ask: bool,
}

/// How rings are set up, the best first: what an older kernel refuses is left out.
const SETUPS: [fn(&mut Builder<squeue::Entry, cqueue::Entry>); 3] = [
    |ring| {
        ring.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun().setup_taskrun_flag();
    },
    |ring| {
        ring.setup_coop_taskrun().setup_taskrun_flag();
    },
    |_| {},
];

/// Why the kernel gives this process no ring that can read, write and wait for so long as it is
/// told; None when it does.
#[must_use]
pub fn objection() -> Option<io::Error> {
    let ring = match IoUring::new(1) {
        Ok(ring) => ring,
        Err(error) => return Some(error),
    };
    let mut probe = Probe::new();
    let asked = ring.submitter().register_probe(&mut probe);
    // Without the latter (before 5.11) no wait could end at a time.
    let is_able = asked.is_ok()
        && probe.is_supported(opcode::Read::CODE)
        && ring.params().is_feature_ext_arg();
    (!is_able).then(|| io::Error::from_raw_os_error(libc::ENOSYS))
}

impl Ring {
    /// A ring of the calling thread, which no other may use; what could not be had is noted. The
    /// targets stay open longer than it.
    pub fn new(
        wish: Wish,
        targets: &[&Target],
        buffers: &[Block],
        notes: &mut Vec<String>,
    ) -> io::Result<Self> {
        let ring = build(wish)?;
        let files: Vec<RawFd> = targets.iter().map(|target| target.file.as_raw_fd()).collect();
        let submitter = ring.submitter();
        let fixed = if files.len() <= MAX_FIXED_FILES {
            submitter.register_files(&files)
        } else {
            Err(io::Error::from_raw_os_error(libc::EMFILE))
        };
        if let Err(error) = &fixed {
            let why = sentence(error);
            notes.push(format!("Files are not registered, which costs a little CPU: {why}."));
        }
        let parts: Vec<libc::iovec> = buffers
            .iter()
            .filter(|part| part.bytes() > 0)
            .map(|part| libc::iovec { iov_base: part.start().cast(), iov_len: part.bytes() })
            .collect();
        // SAFETY: the parts are of a region, which is mapped as long as this process lives.
        let registered = unsafe { submitter.register_buffers(&parts) };
        if let Err(error) = &registered {
            let why = sentence(error);
            notes.push(format!(
                "Buffers are not registered, which costs CPU: {why}. Raise the limit of locked \
                 memory (ulimit -l)."
            ));
        }
        Ok(Self {
            must_ask: wish.poll,
            kernel: ring,
            files,
            has_files: fixed.is_ok(),
            has_buffers: registered.is_ok(),
        })
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "its parts then stay in registers, measured: 4 ns")]
    fn entry(&self, request: &Request) -> squeue::Entry {
        let operation = match request.act {
            Act::Read => opcode::ReadFixed::CODE,
            Act::Write => opcode::WriteFixed::CODE,
            Act::Trim | Act::Sync => return self.plain_entry(request),
        };
        if !(self.has_buffers && self.has_files) {
            return self.plain_entry(request);
        }
        let words: [u64; 8] = [
            u64::from(operation) | FIXED_FILE << 8 | u64::from(request.target) << 32,
            request.offset,
            request.block.start() as u64,
            u64::from(request.bytes),
            u64::from(request.slot),
            u64::from(request.buffer),
            0,
            0,
        ];
        // SAFETY: an entry is the kernel's `struct io_uring_sqe`: numbers without padding, of which
        // these are the first byte, the second, and so on, on a machine with the least byte first.
        unsafe { mem::transmute::<[u64; 8], squeue::Entry>(words) }
    }

    /// Wait for room, which there always is but where a thread of the kernel is late to make it.
    #[cold]
    fn make_room(&self) {
        let _ = self.kernel.submitter().squeue_wait();
        spin_loop();
    }

    /// Without registered buffers or files, or of what needs none.
    #[cold]
    fn plain_entry(&self, request: &Request) -> squeue::Entry {
        let file = Fd(self.files[request.target as usize]);
        let (start, bytes, offset) = (request.block.start(), request.bytes, request.offset);
        let entry = match request.act {
            Act::Read => opcode::Read::new(file, start, bytes).offset(offset).build(),
            Act::Write => opcode::Write::new(file, start, bytes).offset(offset).build(),
            Act::Trim | Act::Sync => opcode::Fsync::new(file).build(),
        };
        entry.user_data(u64::from(request.slot))
    }
}

impl Drop for Ring {
    /// The kernel takes a ring apart some time after its process has ended; the files would stay
    /// in use, and their file system could not be unmounted meanwhile.
    fn drop(&mut self) {
        let submitter = self.kernel.submitter();
        if self.has_files {
            let _ = submitter.unregister_files();
        }
        if self.has_buffers {
            let _ = submitter.unregister_buffers();
        }
    }
}

fn build(wish: Wish) -> io::Result<IoUring> {
    // The kernel's thread tells that it has taken I/Os only when it is done with all that it found:
    // as many as are under way may then be in the ring beside those that follow them.
    let room = if wish.sqpoll { 2 * wish.depth } else { wish.depth };
    let entries = room.next_power_of_two();
    let mut last = io::Error::from_raw_os_error(libc::EINVAL);
    for set_up in SETUPS {
        let mut builder = IoUring::builder();
        builder.setup_clamp();
        if wish.poll {
            builder.setup_iopoll();
        }
        if wish.sqpoll {
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
        } else {
            set_up(&mut builder);
        }
        match builder.build(entries) {
            Ok(ring) => return Ok(ring),
            Err(error) => last = error,
        }
        if last.raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(last)
}

impl Queue for Ring {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see `entry`")]
    fn push(&mut self, request: &Request) {
        let entry = self.entry(request);
        // SAFETY: the block is of a region, which is mapped as long as this process lives, and
        // nothing else uses it until the request is reaped.
        while unsafe { self.kernel.submission().push(&entry) }.is_err() {
            self.make_room();
        }
    }

    #[inline]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::One => self.kernel.submit_and_wait(1),
            Wait::No => {
                let submissions = self.kernel.submission();
                let is_idle = submissions.is_empty()
                    && !submissions.taskrun()
                    && !submissions.cq_overflow()
                    && !self.must_ask;
                drop(submissions);
                if is_idle { Ok(0) } else { self.kernel.submit() }
            }
            Wait::AtMost(ns) => {
                let time = Timespec::new().sec(ns / SECOND_NS).nsec((ns % SECOND_NS) as u32);
                self.kernel.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            // The time is over; a signal came; there is no room now. What was not submitted stays
            // in the ring for the next time.
            Err((Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY), _)) | Ok(_) => {
                Ok(())
            }
            Err((_, error)) => Err(error),
        }
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for entry in self.kernel.completion() {
            each(entry.user_data() as u32, entry.result());
        }
    }
}
