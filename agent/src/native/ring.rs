//! The queue of a thread with its own `io_uring`.
#![allow(unsafe_code)]

use std::hint::spin_loop;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::thread;
use std::time::Duration;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, Probe, cqueue, opcode, squeue};
use rustix::fd::BorrowedFd;
use rustix::io_uring::{IoringEnterFlags, io_uring_enter};

use super::queue::{FIRST_RETRY_PAUSE_NS, IoKind, IoRequest, Queue, Wait};
use super::target::Target;
use crate::error::io_error_text;
use crate::sys::buffer::Block;
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
pub struct RingOptions {
    /// I/Os under way at a time.
    pub depth: u32,
    /// Completions are polled for.
    pub poll: bool,
    /// A thread of the kernel looks for submissions.
    pub sqpoll: bool,
}

/// A ring with its files and buffers.
#[allow(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct UringQueue {
    io_uring: IoUring,
    files: Vec<RawFd>,
    has_files: bool,
    has_buffers: bool,
    /// Completions only come when they are asked for.
    must_poll_completions: bool,
    /// A thread of the kernel takes what is in the ring at once.
    has_sqpoll: bool,
    /// The place of the ring among those registered by its thread, which spares the kernel a look-up
    /// of its descriptor in each call; None where it takes none.
    registered_index: Option<u32>,
    /// The last I/Os were done within the call that submitted them.
    completes_inline: bool,
    /// Turns until it is tried whether that is so again.
    turns_until_recheck: u32,
    /// What that thread is not to see before all of it is stamped: it may begin an I/O as soon as
    /// that is in the ring, and the latency would lack what came before the stamp.
    staged: Vec<squeue::Entry>,
}

/// Where I/Os do not end within the call that submits them, it is tried again after so many turns.
const TURNS_UNTIL_RECHECK: u32 = 1 << 12;

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
pub fn unsupported_reason() -> Option<io::Error> {
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

impl UringQueue {
    /// A ring of the calling thread, which no other may use; what could not be had is noted. The
    /// targets stay open longer than it.
    pub fn new(
        wish: RingOptions,
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
            let why = io_error_text(error);
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
            let why = io_error_text(error);
            notes.push(format!(
                "Buffers are not registered, which costs CPU: {why}. Raise the limit of locked \
                 memory (ulimit -l)."
            ));
        }
        Ok(Self {
            // Where a thread of the kernel looks for submissions, it polls as well.
            must_poll_completions: wish.poll && !wish.sqpoll,
            has_sqpoll: wish.sqpoll,
            staged: Vec::with_capacity(if wish.sqpoll { wish.depth as usize } else { 0 }),
            // With a thread of the kernel a call is rare; where completions are polled for, it waits.
            registered_index: if wish.sqpoll { None } else { register_ring(&ring) },
            completes_inline: !wish.poll && !wish.sqpoll,
            turns_until_recheck: TURNS_UNTIL_RECHECK,
            io_uring: ring,
            files,
            has_files: fixed.is_ok(),
            has_buffers: registered.is_ok(),
        })
    }

    /// A read or a write of registered files and buffers, as the kernel has it; None where the
    /// request needs another form.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "its parts then stay in registers, measured: 4 ns")]
    fn fixed_entry(&self, request: &IoRequest) -> Option<squeue::Entry> {
        let operation = match request.kind {
            IoKind::Read => opcode::ReadFixed::CODE,
            IoKind::Write => opcode::WriteFixed::CODE,
            IoKind::Trim | IoKind::Sync => return None,
        };
        if !(self.has_files && self.has_buffers) {
            return None;
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
        Some(unsafe { mem::transmute::<[u64; 8], squeue::Entry>(words) })
    }

    /// Put all that was staged into the ring.
    #[cold]
    fn submit_staged(&mut self) {
        let mut done = 0;
        while done < self.staged.len() {
            let mut submissions = self.io_uring.submission();
            for entry in &self.staged[done..] {
                // SAFETY: see `push_entry`.
                if unsafe { submissions.push(entry) }.is_err() {
                    break;
                }
                done += 1;
            }
            drop(submissions);
            if done < self.staged.len() {
                self.make_room();
            }
        }
        self.staged.clear();
    }

    /// Wait for room, which there always is but where a thread of the kernel is late to make it.
    #[cold]
    fn make_room(&self) {
        let _ = self.io_uring.submitter().squeue_wait();
        spin_loop();
    }

    /// Submit, and wait for a completion. What has ended within the submission needs no waiting, for
    /// which the kernel would look once more after what is left to do.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see `Queue::enter`")]
    fn submit_and_wait(&mut self) -> io::Result<usize> {
        let Some(place) = self.registered_index else { return self.io_uring.submit_and_wait(1) };
        let (count, has_work) = self.waiting();
        if self.completes_inline && !has_work && count > 0 {
            let done = enter_registered(place, count, 0, IoringEnterFlags::empty())?;
            if !self.io_uring.completion().is_empty() {
                return Ok(done);
            }
            self.completes_inline = false;
            return enter_registered(place, count - done as u32, 1, IoringEnterFlags::GETEVENTS);
        }
        if self.turns_until_recheck == 0 {
            (self.completes_inline, self.turns_until_recheck) =
                (!self.must_poll_completions, TURNS_UNTIL_RECHECK);
        }
        self.turns_until_recheck -= 1;
        enter_registered(place, count, 1, IoringEnterFlags::GETEVENTS)
    }

    /// Submit, and wait for nothing.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see `Queue::enter`")]
    fn submit_only(&mut self) -> io::Result<usize> {
        let (count, has_work) = self.waiting();
        let looks = has_work || self.must_poll_completions;
        if count == 0 && !looks {
            return Ok(0);
        }
        let Some(place) = self.registered_index else { return self.io_uring.submit() };
        let flags = if looks { IoringEnterFlags::GETEVENTS } else { IoringEnterFlags::empty() };
        enter_registered(place, count, 0, flags)
    }

    /// How many I/Os are to be submitted, and whether the kernel has something to do for those that
    /// were.
    #[inline]
    fn waiting(&mut self) -> (u32, bool) {
        let submissions = self.io_uring.submission();
        (submissions.len() as u32, submissions.taskrun() || submissions.cq_overflow())
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see `fixed_entry`")]
    fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: the block is of a region, which is mapped as long as this process lives, and
        // nothing else uses it until the request is reaped.
        while unsafe { self.io_uring.submission().push(entry) }.is_err() {
            self.make_room();
        }
    }

    /// Push a request that has another form, out of the way of those that are many.
    #[cold]
    fn push_plain(&mut self, request: &IoRequest) {
        let entry = self.plain_entry(request);
        if self.has_sqpoll {
            return self.staged.push(entry);
        }
        self.push_entry(&entry);
    }

    /// Without registered buffers or files, or of what needs none.
    #[cold]
    fn plain_entry(&self, request: &IoRequest) -> squeue::Entry {
        let file = Fd(self.files[request.target as usize]);
        let (start, bytes, offset) = (request.block.start(), request.bytes, request.offset);
        let entry = match request.kind {
            IoKind::Read => opcode::Read::new(file, start, bytes).offset(offset).build(),
            IoKind::Write => opcode::Write::new(file, start, bytes).offset(offset).build(),
            IoKind::Trim | IoKind::Sync => opcode::Fsync::new(file).build(),
        };
        entry.user_data(u64::from(request.slot))
    }
}

/// `struct io_uring_rsrc_update` of `linux/io_uring.h`.
#[repr(C)]
struct RingRegistration {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// `IORING_REGISTER_RING_FDS` and `IORING_UNREGISTER_RING_FDS`, since Linux 5.18.
const REGISTER_RING: libc::c_uint = 20;
const UNREGISTER_RING: libc::c_uint = 21;
/// Register a ring with the calling thread; None where the kernel does not know how.
fn register_ring(ring: &IoUring) -> Option<u32> {
    let mut wish =
        RingRegistration { offset: u32::MAX, reserved: 0, data: ring.as_raw_fd() as u64 };
    (register(ring.as_raw_fd(), REGISTER_RING, &mut wish) == 1).then_some(wish.offset)
}

fn register(ring: RawFd, what: libc::c_uint, wish: &mut RingRegistration) -> libc::c_long {
    // SAFETY: the kernel reads and writes one such struct, which is valid for the whole call.
    unsafe { libc::syscall(libc::SYS_io_uring_register, ring, what, &raw mut *wish, 1) }
}

/// `io_uring_enter` of a ring by its place among those of the calling thread.
#[inline(always)]
#[allow(clippy::inline_always, reason = "see `Queue::enter`")]
fn enter_registered(
    place: u32,
    count: u32,
    want: u32,
    flags: IoringEnterFlags,
) -> io::Result<usize> {
    let flags = flags | IoringEnterFlags::REGISTERED_RING;
    // SAFETY: with that flag the kernel takes the number for a place and not for a descriptor, so
    // none is borrowed; what is in the ring is as `push_entry` says.
    let taken =
        unsafe { io_uring_enter(BorrowedFd::borrow_raw(place as RawFd), count, want, flags) };
    Ok(taken? as usize)
}

impl Drop for UringQueue {
    /// The kernel takes a ring apart some time after its process has ended; the files would stay
    /// in use, and their file system could not be unmounted meanwhile.
    fn drop(&mut self) {
        let submitter = self.io_uring.submitter();
        if self.has_files {
            let _ = submitter.unregister_files();
        }
        if self.has_buffers {
            let _ = submitter.unregister_buffers();
        }
        if let Some(offset) = self.registered_index {
            let mut wish = RingRegistration { offset, reserved: 0, data: 0 };
            register(self.io_uring.as_raw_fd(), UNREGISTER_RING, &mut wish);
        }
    }
}

fn build(wish: RingOptions) -> io::Result<IoUring> {
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

impl Queue for UringQueue {
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see `fixed_entry`")]
    fn push(&mut self, request: &IoRequest) {
        match self.fixed_entry(request) {
            Some(entry) if !self.has_sqpoll => self.push_entry(&entry),
            Some(entry) => self.staged.push(entry),
            None => self.push_plain(request),
        }
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "see the trait")]
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        if !self.staged.is_empty() {
            self.submit_staged();
        }
        let entered = match wait {
            Wait::ForOne => self.submit_and_wait(),
            Wait::Never => self.submit_only(),
            // The kernel polls for as long as it takes, whatever the time it is given.
            Wait::AtMost(_) if self.must_poll_completions => self.submit_only(),
            Wait::AtMost(ns) => {
                let time = Timespec::new().sec(ns / SECOND_NS).nsec((ns % SECOND_NS) as u32);
                self.io_uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match entered.map_err(|error| (error.raw_os_error(), error)) {
            // The time is over; a signal came.
            Err((Some(libc::ETIME | libc::EINTR), _)) | Ok(_) => Ok(()),
            // There is no room now. What was not submitted stays in the ring for the next time.
            Err((Some(libc::EAGAIN | libc::EBUSY), _)) => {
                if self.io_uring.completion().is_empty() {
                    thread::sleep(Duration::from_nanos(FIRST_RETRY_PAUSE_NS));
                }
                Ok(())
            }
            Err((_, error)) => Err(error),
        }
    }

    #[inline]
    fn reap(&mut self, mut each: impl FnMut(u32, i32)) {
        for entry in self.io_uring.completion() {
            each(entry.user_data() as u32, entry.result());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::fixture::{BLOCK, Fixture};
    use crate::native::target::Targets;
    use crate::sys::buffer::Region;
    use serde_json::json;

    #[test]
    fn a_thread_of_the_kernel_sees_nothing_before_it_is_all_stamped() {
        if unsupported_reason().is_some() {
            return;
        }
        let fixture = Fixture::new();
        let targets = Targets::open(&fixture.spec(&json!({})), 1, &mut Vec::new()).unwrap();
        let all: Vec<&Target> = targets.all.iter().collect();
        let region = Region::new(2 * BLOCK as usize).unwrap();
        let block = |slot| region.block(slot as usize * BLOCK as usize, BLOCK as usize);
        let wish = RingOptions { depth: 2, poll: false, sqpoll: true };
        let buffers = [region.block(0, 2 * BLOCK as usize)];
        let mut ring = UringQueue::new(wish, &all, &buffers, &mut Vec::new()).unwrap();
        let mut ended = Vec::new();
        for turn in 1..=3 {
            for slot in 0..2 {
                let (act, target, bytes, buffer) = (IoKind::Read, 0, BLOCK as u32, 0);
                let (offset, block) = (u64::from(slot) * BLOCK, block(slot));
                ring.push(&IoRequest { slot, kind: act, target, offset, block, bytes, buffer });
            }
            // Time enough for a thread that sees them.
            thread::sleep(Duration::from_millis(20));
            ring.reap(|slot, _| ended.push(slot));
            assert_eq!(ended.len(), 2 * (turn - 1));
            while ended.len() < 2 * turn {
                ring.enter(Wait::ForOne).unwrap();
                ring.reap(|slot, result| {
                    assert_eq!(result, BLOCK as i32);
                    ended.push(slot);
                });
            }
        }
    }
}
