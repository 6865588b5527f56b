//! Telemetry: the kernel's counters read at one moment, cheaply enough to do it ten times a second.
//!
//! What changes all the time is read through files that stay open; what changes slowly
//! (temperatures, throttle counts, which core is on which node) is read every few seconds.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::Serialize;

use crate::clock::Stamp;
use crate::probe::cpu::parse_stat;
use crate::probe::disk::{DiskCounters, parse_diskstats};
use crate::probe::memory::parse_meminfo;
use crate::probe::nic::parse_net_dev;
use crate::probe::pressure::{Stall, parse_pressure};
use crate::roots::Roots;
use crate::slow::Slow;
use crate::sys::file::space;
use crate::sys::time::{own_cpu_ns, page_bytes, ticks_per_second};

/// A kernel file larger than this is not what it should be.
const MAX_FILE_BYTES: usize = 16 << 20;

/// One reading of all counters, in the form that goes over the wire.
#[derive(Serialize)]
pub struct Sample {
    /// Which sample of its watch this is, from 0.
    pub seq: u64,
    /// When it was begun.
    #[serde(flatten)]
    pub stamp: Stamp,
    /// core, node, and eight states in nanoseconds.
    pub cpu: Vec<[u64; 10]>,
    /// Counters of each block device in use.
    pub disks: Vec<DiskRow>,
    /// name, reads and writes that were joined to others; in a snapshot alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merges: Vec<(String, u64, u64)>,
    /// name, bytes, frames and drops received, the same sent.
    pub nics: Vec<(String, u64, u64, u64, u64, u64, u64)>,
    /// Bytes of memory.
    pub memory: MemoryRow,
    /// Stall times.
    pub pressure: PressureRow,
    /// Throttling.
    pub thermal: ThermalRow,
    /// The file system that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetRow>,
    /// What the agent itself uses.
    pub agent: AgentRow,
}

/// name, six counters of reads and writes, in flight, busy and queue time, discards, flushes,
/// temperature in thousandths of a degree.
pub type DiskRow = (
    String,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<i64>,
);

/// Memory of the host.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in docs/reference/wire.md")]
pub struct MemoryRow {
    pub total_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub available_bytes: Option<u64>,
    pub page_cache_bytes: Option<u64>,
    pub dirty_bytes: Option<u64>,
    pub writeback_bytes: Option<u64>,
}

/// Time that work waited, since boot.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in docs/reference/wire.md")]
pub struct PressureRow {
    pub cpu_some_ns: Option<u64>,
    pub io_some_ns: Option<u64>,
    pub io_full_ns: Option<u64>,
    pub memory_some_ns: Option<u64>,
    pub memory_full_ns: Option<u64>,
}

/// Throttle events since boot.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in docs/reference/wire.md")]
pub struct ThermalRow {
    pub throttle_events: Option<u64>,
}

/// A file system.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in docs/reference/wire.md")]
pub struct TargetRow {
    pub used_inodes: u64,
}

/// The agent's own use.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in docs/reference/wire.md")]
pub struct AgentRow {
    pub cpu_ns: u64,
    pub rss_bytes: Option<u64>,
}

/// Takes samples from one pair of roots.
pub struct Sampler {
    roots: Roots,
    ticks_per_second: u64,
    page_bytes: u64,
    stat: Live,
    diskstats: Live,
    net_dev: Live,
    meminfo: Live,
    pressure: [Live; 3],
    own: Live,
    slow: Slow,
    inodes_of: Option<PathBuf>,
    next_seq: u64,
}

impl Sampler {
    /// A sampler that has read nothing yet; it counts the inodes of a path's file system, too, which
    /// must answer at once.
    #[must_use]
    pub fn new(roots: Roots, inodes_of: Option<PathBuf>) -> Self {
        let live = |name: &str| Live::new(roots.proc.join(name));
        Self {
            ticks_per_second: ticks_per_second(),
            page_bytes: page_bytes(),
            stat: live("stat"),
            diskstats: live("diskstats"),
            // Through `self`, which also shows the right namespace where /proc is another's.
            net_dev: live("self/net/dev"),
            meminfo: live("meminfo"),
            pressure: [live("pressure/cpu"), live("pressure/io"), live("pressure/memory")],
            own: live("self/statm"),
            slow: Slow::default(),
            inodes_of,
            next_seq: 0,
            roots,
        }
    }

    /// Read everything now. What cannot be read is missing or null, never an error.
    pub fn sample(&mut self) -> Sample {
        let stamp = Stamp::now();
        self.slow.refresh(&self.roots, stamp.mono_ns);
        let [cpu, io, memory] = &mut self.pressure;
        let (cpu, io, memory) = (stall(cpu), stall(io), stall(memory));
        let seq = self.next_seq;
        self.next_seq += 1;
        Sample {
            seq,
            stamp,
            cpu: self.cpu_rows(),
            disks: self.disk_rows(),
            merges: Vec::new(),
            nics: self.nic_rows(),
            memory: self.memory_row(),
            pressure: PressureRow {
                cpu_some_ns: cpu.some_ns,
                io_some_ns: io.some_ns,
                io_full_ns: io.full_ns,
                memory_some_ns: memory.some_ns,
                memory_full_ns: memory.full_ns,
            },
            thermal: ThermalRow { throttle_events: self.slow.throttle_events() },
            target: self.target_row(),
            agent: self.agent_row(),
        }
    }

    /// The same with what only two looks around a run need.
    pub fn snapshot(&mut self) -> Sample {
        let mut sample = self.sample();
        let disks = parse_diskstats(self.diskstats.text());
        let rows = disks.into_iter().filter(DiskCounters::was_used);
        sample.merges = rows.map(|d| (d.name, d.read_merges, d.write_merges)).collect();
        sample
    }

    fn cpu_rows(&mut self) -> Vec<[u64; 10]> {
        let cores = parse_stat(self.stat.text(), self.ticks_per_second);
        if cores.iter().any(|time| self.slow.node_of(time.core).is_none()) {
            self.slow.find_nodes(&self.roots); // A core came online.
        }
        let row = |core: u32, [user, nice, system, idle, iowait, irq, softirq, steal]: [u64; 8]| {
            let node = u64::from(self.slow.node_of(core).unwrap_or(0));
            [core.into(), node, user, nice, system, idle, iowait, irq, softirq, steal]
        };
        cores.iter().map(|time| row(time.core, time.states_ns)).collect()
    }

    fn disk_rows(&mut self) -> Vec<DiskRow> {
        let disks = parse_diskstats(self.diskstats.text());
        let used = disks.into_iter().filter(|disk| disk.was_used() && self.has_size(&disk.name));
        used.map(|disk| disk_row(disk, self.slow.temperatures())).collect()
    }

    /// Loop and RAM devices stay after what they stood for is gone, with a size of zero.
    fn has_size(&self, name: &str) -> bool {
        if !name.starts_with("loop") && !name.starts_with("ram") {
            return true;
        }
        let size = self.roots.sys_text(format!("class/block/{name}/size"));
        size.is_some_and(|text| text.trim() != "0")
    }

    fn nic_rows(&mut self) -> Vec<(String, u64, u64, u64, u64, u64, u64)> {
        let nics = parse_net_dev(self.net_dev.text());
        nics.into_iter()
            .map(|n| {
                (n.name, n.rx_bytes, n.rx_frames, n.rx_drops, n.tx_bytes, n.tx_frames, n.tx_drops)
            })
            .collect()
    }

    fn memory_row(&mut self) -> MemoryRow {
        let memory = parse_meminfo(self.meminfo.text());
        MemoryRow {
            total_bytes: memory.total_bytes,
            free_bytes: memory.free_bytes,
            available_bytes: memory.available_bytes,
            page_cache_bytes: memory.page_cache_bytes,
            dirty_bytes: memory.dirty_bytes,
            writeback_bytes: memory.writeback_bytes,
        }
    }

    fn target_row(&self) -> Option<TargetRow> {
        let used_inodes = space(self.inodes_of.as_ref()?).ok()?.used_inodes?;
        Some(TargetRow { used_inodes })
    }

    fn agent_row(&mut self) -> AgentRow {
        let resident = self.own.text().split_ascii_whitespace().nth(1);
        let pages = resident.and_then(|pages| pages.parse::<u64>().ok());
        AgentRow { cpu_ns: own_cpu_ns(), rss_bytes: pages.map(|pages| pages * self.page_bytes) }
    }
}

fn stall(file: &mut Live) -> Stall {
    parse_pressure(file.text())
}

fn disk_row(disk: DiskCounters, temperatures: &HashMap<String, i64>) -> DiskRow {
    let temperature_mc = temperatures.get(&disk.name).copied();
    (
        disk.name,
        disk.read_ios,
        disk.read_bytes,
        disk.read_time_ns,
        disk.write_ios,
        disk.write_bytes,
        disk.write_time_ns,
        disk.in_flight,
        disk.busy_time_ns,
        disk.queue_time_ns,
        disk.discard_ios,
        disk.discard_bytes,
        disk.flush_ios,
        temperature_mc,
    )
}

/// A kernel file that is read again and again through one descriptor.
struct Live {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl Live {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None, buffer: vec![0; 16 << 10] }
    }

    /// The whole text now; empty when it cannot be read.
    fn text(&mut self) -> &str {
        let length = self.read().unwrap_or(0);
        let text = &self.buffer[..length];
        // Kernel files are ASCII; a broken name must not cost the lines before it.
        std::str::from_utf8(text)
            .unwrap_or_else(|error| std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or(""))
    }

    fn read(&mut self) -> io::Result<usize> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= MAX_FILE_BYTES {
                    return Err(io::Error::from_raw_os_error(libc::EFBIG));
                }
                self.buffer.resize(length * 2, 0);
            }
            // A failed read drops the file: the next sample opens it anew.
            match file.read_at(&mut self.buffer[length..], length as u64)? {
                0 => break,
                count => length += count,
            }
        }
        self.file = Some(file);
        Ok(length)
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
