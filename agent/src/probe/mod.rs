//! Parsers of what the kernel shows: pure functions over file text, tested with real files.

pub mod cgroup;
pub mod cpu;
pub mod cpuinfo;
pub mod disk;
pub mod dmi;
pub mod memory;
pub mod mountinfo;
pub mod nic;
pub mod numa;
pub mod pressure;
pub mod process;
pub mod thermal;
pub mod word;
