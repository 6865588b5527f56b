//! The one door to the kernel, with owned types and `io::Error` outside.
//!
//! Calls are rustix's, which are safe; those it has none for (fork and exec, signal handlers, maps,
//! most ioctls, `wait4`, rings of perf events) are libc's, each wrapped once.
//!
//! `unsafe` is allowed here and, in the native engine, where its rings, buffers and clock are.
#![allow(unsafe_code)]

pub mod block;
pub mod boot;
pub mod buffer;
pub mod file;
pub mod map;
pub mod mount;
pub mod nvme;
pub mod perf;
pub mod process;
pub mod signal;
pub mod socket;
pub mod thread;
pub mod time;

use std::io;

/// The result of a call that returns -1 and sets errno on failure.
fn check_result<Number: PartialOrd + Default>(result: Number) -> io::Result<Number> {
    if result < Number::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// EBX, ECX and EDX of a CPUID leaf, in the order in which they spell a vendor's name.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn cpu_leaf(leaf: u32) -> [u32; 3] {
    // SAFETY: every x86-64 processor has the CPUID instruction; it changes nothing.
    #[allow(unused_unsafe, reason = "newer compilers call this intrinsic safe")]
    let answer = unsafe { std::arch::x86_64::__cpuid(leaf) };
    [answer.ebx, answer.ecx, answer.edx]
}
