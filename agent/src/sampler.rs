//! Telemetry: the kernel's counters read at one moment, cheaply enough to do it ten times a second.
//!
//! What changes all the time is read through files that stay open; what changes slowly
//! (temperatures, throttle counts, which core is on which node) is read every few seconds.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::clock::ClockStamp;
use crate::probe::counters::{
    CpuThrottle, DiskCounters, Memory, NicRow, StallTimes, parse_diskstats, parse_meminfo,
    parse_net_dev, parse_pressure, parse_stat, throttle_events,
};
use crate::probe::machine::{nodes_of_cpus, number_after};
use crate::probe::meters::{Meter, MeterRow, find_meters};
use crate::roots::{Roots, list_names, read_number, read_text};
use crate::sys::file::file_system_space;
use crate::sys::time::{SECOND_NS, own_cpu_ns, page_bytes, ticks_per_second};

/// A kernel file larger than this is not what it should be.
const MAX_FILE_BYTES: usize = 16 << 20;

/// One reading of all counters, in the form that goes over the wire.
#[derive(Serialize)]
pub struct Sample {
    /// Which sample of its watch this is, from 0.
    pub seq: u64,
    /// When it was begun.
    #[serde(flatten)]
    pub stamp: ClockStamp,
    /// core, node, and eight states in nanoseconds.
    pub cpu: Vec<[u64; 10]>,
    /// Counters of each block device in use.
    pub disks: Vec<DiskRow>,
    /// name, reads and writes that were joined to others; in a snapshot alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merges: Vec<(String, u64, u64)>,
    /// name, bytes, frames and drops received, the same sent.
    pub nics: Vec<NicRow>,
    /// Bytes of memory.
    pub memory: Memory,
    /// Stall times.
    pub pressure: PressureRow,
    /// Throttling.
    pub thermal: ThermalRow,
    /// Power meters that the kernel has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub power: Vec<MeterRow>,
    /// The file system that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetRow>,
    /// What the agent itself uses.
    pub agent: AgentRow,
}

/// name, six counters of reads and writes, in flight, busy and queue time, discards, flushes,
/// temperature in thousandths of a degree.
type DiskRow = (
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

/// Time that work waited, since boot.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in schema/wire.json")]
pub struct PressureRow {
    pub cpu_some_ns: Option<u64>,
    pub io_some_ns: Option<u64>,
    pub io_full_ns: Option<u64>,
    pub memory_some_ns: Option<u64>,
    pub memory_full_ns: Option<u64>,
}

/// Throttle events since boot.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in schema/wire.json")]
pub struct ThermalRow {
    pub throttle_events: Option<u64>,
}

/// A file system.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in schema/wire.json")]
pub struct TargetRow {
    pub used_inodes: u64,
}

/// The agent's own use.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the names are the documentation, in schema/wire.json")]
pub struct AgentRow {
    pub cpu_ns: u64,
    pub rss_bytes: Option<u64>,
}

/// Takes samples from one pair of roots.
pub struct Sampler {
    roots: Roots,
    ticks_per_second: u64,
    page_bytes: u64,
    stat: KernelFile,
    diskstats: KernelFile,
    net_dev: KernelFile,
    meminfo: KernelFile,
    pressure: [KernelFile; 3],
    own_stat: KernelFile,
    slow: SlowValues,
    target_path: Option<PathBuf>,
    next_seq: u64,
}

impl Sampler {
    /// A sampler that has read nothing yet; it counts the inodes of a path's file system, too, which
    /// must answer at once.
    #[must_use]
    pub fn new(roots: Roots, inodes_of: Option<PathBuf>) -> Self {
        let live = |name: &str| KernelFile::new(roots.proc.join(name));
        Self {
            ticks_per_second: ticks_per_second(),
            page_bytes: page_bytes(),
            stat: live("stat"),
            diskstats: live("diskstats"),
            // Through `self`, which also shows the right namespace where /proc is another's.
            net_dev: live("self/net/dev"),
            meminfo: live("meminfo"),
            pressure: [live("pressure/cpu"), live("pressure/io"), live("pressure/memory")],
            own_stat: live("self/statm"),
            slow: SlowValues::default(),
            target_path: inodes_of,
            next_seq: 0,
            roots,
        }
    }

    /// Read everything now. What cannot be read is missing or null, never an error.
    pub fn sample(&mut self) -> Sample {
        let stamp = ClockStamp::now();
        self.slow.refresh(&self.roots, stamp.mono_ns);
        let [cpu, io, memory] = &mut self.pressure;
        let (cpu, io, memory) = (read_stall(cpu), read_stall(io), read_stall(memory));
        let seq = self.next_seq;
        self.next_seq += 1;
        Sample {
            seq,
            stamp,
            cpu: self.cpu_rows(),
            disks: self.disk_rows(),
            merges: Vec::new(),
            nics: parse_net_dev(self.net_dev.text()),
            memory: parse_meminfo(self.meminfo.text()),
            pressure: PressureRow {
                cpu_some_ns: cpu.some_ns,
                io_some_ns: io.some_ns,
                io_full_ns: io.full_ns,
                memory_some_ns: memory.some_ns,
                memory_full_ns: memory.full_ns,
            },
            thermal: ThermalRow { throttle_events: self.slow.events },
            power: self.slow.meters.iter().filter_map(Meter::read).collect(),
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
        used.map(|disk| disk_row(disk, &self.slow.temperatures)).collect()
    }

    /// Loop and RAM devices stay after what they stood for is gone, with a size of zero.
    fn has_size(&self, name: &str) -> bool {
        if !name.starts_with("loop") && !name.starts_with("ram") {
            return true;
        }
        read_number::<u64>(&self.roots.block_folder(name).join("size")).is_some_and(|size| size > 0)
    }

    fn target_row(&self) -> Option<TargetRow> {
        let used_inodes = file_system_space(self.target_path.as_ref()?).ok()?.used_inodes?;
        Some(TargetRow { used_inodes })
    }

    fn agent_row(&mut self) -> AgentRow {
        let resident = self.own_stat.text().split_ascii_whitespace().nth(1);
        let pages = resident.and_then(|pages| pages.parse::<u64>().ok());
        AgentRow { cpu_ns: own_cpu_ns(), rss_bytes: pages.map(|pages| pages * self.page_bytes) }
    }
}

fn read_stall(file: &mut KernelFile) -> StallTimes {
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
struct KernelFile {
    path: PathBuf,
    file: Option<File>,
    buffer: Vec<u8>,
}

impl KernelFile {
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

/// A temperature moves in seconds, and asking costs the disk a command.
const VALUES_EVERY_NS: u64 = 10 * SECOND_NS;
/// Sensors come and go with disks; looking for them reads a folder a disk.
const SENSORS_EVERY_NS: u64 = 60 * SECOND_NS;
const CPUS: &str = "devices/system/cpu";

/// The slow values and when they were read.
#[derive(Default)]
pub struct SlowValues {
    nodes: HashMap<u32, u32>,
    sensors: Vec<(String, PathBuf)>,
    throttled_cpus: Vec<ThrottleFiles>,
    meters: Vec<Meter>,
    temperatures: HashMap<String, i64>,
    events: Option<u64>,
    values_due_ns: u64,
    sensors_due_ns: u64,
}

struct ThrottleFiles {
    package: i64,
    core: i64,
    folder: PathBuf,
}

impl SlowValues {
    /// Read again what is due at `now_ns` of the monotonic clock.
    fn refresh(&mut self, roots: &Roots, now_ns: u64) {
        if now_ns >= self.sensors_due_ns {
            self.sensors_due_ns = now_ns + SENSORS_EVERY_NS;
            self.sensors = find_sensors(roots);
            self.throttled_cpus = find_throttle_files(roots);
            self.meters = find_meters(roots);
            self.find_nodes(roots);
        }
        if now_ns >= self.values_due_ns {
            self.values_due_ns = now_ns + VALUES_EVERY_NS;
            self.read_values();
        }
    }

    /// Read which core is on which node.
    fn find_nodes(&mut self, roots: &Roots) {
        let folder = roots.sys.join("devices/system/node");
        let lists: Vec<(u32, String)> = list_names(&folder)
            .iter()
            .filter_map(|name| {
                Some((number_after("node", name)?, read_text(&folder.join(name).join("cpulist"))?))
            })
            .collect();
        self.nodes = nodes_of_cpus(lists.iter().map(|(node, list)| (*node, list.as_str())));
    }

    /// The node of a core; None for a core not seen before, on a host that has nodes.
    fn node_of(&self, core: u32) -> Option<u32> {
        if self.nodes.is_empty() { Some(0) } else { self.nodes.get(&core).copied() }
    }

    fn read_values(&mut self) {
        self.temperatures = self
            .sensors
            .iter()
            .filter_map(|(disk, file)| Some((disk.clone(), read_number(file)?)))
            .collect();
        let throttles: Vec<CpuThrottle> = self.throttled_cpus.iter().map(read_throttle).collect();
        self.events = throttle_events(&throttles);
    }
}

/// The temperature file of every disk that has one (nvme's own, or drivetemp's).
fn find_sensors(roots: &Roots) -> Vec<(String, PathBuf)> {
    let block = roots.sys.join("block");
    list_names(&block)
        .into_iter()
        .filter_map(|disk| {
            let file = sensor_under(&block.join(&disk).join("device"))?;
            Some((disk, file))
        })
        .collect()
}

/// Old kernels have `device/hwmon3`, new ones `device/hwmon/hwmon3`; behind a multipath device are
/// the controllers, each with its own.
fn sensor_under(device: &Path) -> Option<PathBuf> {
    let mut folders = vec![device.to_owned(), device.join("hwmon")];
    for name in list_names(device).iter().filter(|name| number_after("nvme", name).is_some()) {
        folders.extend([device.join(name), device.join(name).join("hwmon")]);
    }
    folders.iter().find_map(|folder| {
        let name = list_names(folder).into_iter().find(|n| number_after("hwmon", n).is_some())?;
        Some(folder.join(name).join("temp1_input")).filter(|file| file.exists())
    })
}

fn find_throttle_files(roots: &Roots) -> Vec<ThrottleFiles> {
    let cpus = roots.sys.join(CPUS);
    list_names(&cpus)
        .iter()
        .filter(|name| number_after("cpu", name).is_some())
        .map(|name| cpus.join(name))
        .filter(|cpu| cpu.join("thermal_throttle").exists())
        .map(|cpu| ThrottleFiles {
            package: read_number(&cpu.join("topology/physical_package_id")).unwrap_or(0),
            core: read_number(&cpu.join("topology/core_id")).unwrap_or(0),
            folder: cpu.join("thermal_throttle"),
        })
        .collect()
}

fn read_throttle(cpu: &ThrottleFiles) -> CpuThrottle {
    let count = |name: &str| read_number(&cpu.folder.join(name));
    CpuThrottle {
        package: cpu.package,
        core: cpu.core,
        core_events: count("core_throttle_count"),
        package_events: count("package_throttle_count"),
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
