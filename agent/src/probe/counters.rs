//! Counters that a sample reads: processors, disks, memory, network ports, stalls and throttling.

use std::collections::BTreeMap;

use serde::Serialize;

/// Time of one core by state, as nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoreTime {
    /// The kernel's number of the core.
    pub core: u32,
    /// user, nice, system, idle, iowait, irq, softirq, steal.
    pub states_ns: [u64; 8],
}

/// The lines `cpuN …`; columns that an old kernel lacks are zero.
#[must_use]
pub fn parse_stat(text: &str, ticks_per_second: u64) -> Vec<CoreTime> {
    let tick_ns = 1_000_000_000 / ticks_per_second.max(1);
    text.lines()
        // The core lines stand together at the top; what follows can be a megabyte of interrupts.
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| core_time(line, tick_ns))
        .collect()
}

fn core_time(line: &str, tick_ns: u64) -> Option<CoreTime> {
    let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
    let core = fields.next()?;
    let is_total = line.as_bytes().get(3) == Some(&b' ');
    if is_total {
        return None;
    }
    let mut states_ns = [0; 8];
    for (state, field) in states_ns.iter_mut().zip(fields) {
        *state = field.parse::<u64>().ok()?.wrapping_mul(tick_ns);
    }
    Some(CoreTime { core: core.parse().ok()?, states_ns })
}

/// Bytes of a sector in diskstats, whatever the device's block is.
const SECTOR_BYTES: u64 = 512;
const MS_NS: u64 = 1_000_000;

/// Counters of one block device since it appeared; they start again with the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCounters {
    /// The kernel's name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Reads that were joined to another before they were done.
    pub read_merges: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time that reads took, summed over reads.
    pub read_time_ns: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Writes that were joined to another before they were done.
    pub write_merges: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time that writes took, summed over writes.
    pub write_time_ns: u64,
    /// I/Os in progress now.
    pub in_flight: u64,
    /// Time with at least one I/O in progress.
    pub busy_time_ns: u64,
    /// Time weighted by I/Os in progress.
    pub queue_time_ns: u64,
    /// Discards completed; None before Linux 4.18.
    pub discard_ios: Option<u64>,
    /// Bytes discarded; None before Linux 4.18.
    pub discard_bytes: Option<u64>,
    /// Flushes completed; None before Linux 5.5.
    pub flush_ios: Option<u64>,
}

impl DiskCounters {
    /// Whether the device did anything since boot.
    #[must_use]
    pub fn was_used(&self) -> bool {
        self.read_ios != 0 || self.write_ios != 0 || self.discard_ios.unwrap_or(0) != 0
    }

    /// What went over this path of a namespace and over another; both may be busy at a time.
    fn with_path(self, other: &Self) -> Self {
        let sum = |one: Option<u64>, another: Option<u64>| Some(one?.wrapping_add(another?));
        Self {
            name: self.name,
            read_ios: self.read_ios.wrapping_add(other.read_ios),
            read_merges: self.read_merges.wrapping_add(other.read_merges),
            read_bytes: self.read_bytes.wrapping_add(other.read_bytes),
            read_time_ns: self.read_time_ns.wrapping_add(other.read_time_ns),
            write_ios: self.write_ios.wrapping_add(other.write_ios),
            write_merges: self.write_merges.wrapping_add(other.write_merges),
            write_bytes: self.write_bytes.wrapping_add(other.write_bytes),
            write_time_ns: self.write_time_ns.wrapping_add(other.write_time_ns),
            in_flight: self.in_flight.wrapping_add(other.in_flight),
            busy_time_ns: self.busy_time_ns.max(other.busy_time_ns),
            queue_time_ns: self.queue_time_ns.wrapping_add(other.queue_time_ns),
            discard_ios: sum(self.discard_ios, other.discard_ios),
            discard_bytes: sum(self.discard_bytes, other.discard_bytes),
            flush_ios: sum(self.flush_ios, other.flush_ios),
        }
    }

    /// Take the counters of all paths: before Linux 6.5 the namespace above them counts nothing,
    /// and since then it counts flushes as reads. When it is busy it alone tells, if it does.
    fn replace_with_path_counters(&mut self, paths: &Self) {
        let busy_time_ns = self.busy_time_ns.max(paths.busy_time_ns);
        *self = Self { name: std::mem::take(&mut self.name), busy_time_ns, ..paths.clone() };
    }
}

/// All lines that have at least the fourteen columns of Linux 2.6, each `NVMe` namespace once.
#[must_use]
pub fn parse_diskstats(text: &str) -> Vec<DiskCounters> {
    let (paths, mut disks): (Vec<_>, Vec<_>) = text
        .lines()
        .filter_map(disk_line)
        .partition(|disk| namespace_of_path(&disk.name).is_some());
    for disk in &mut disks {
        let is_own =
            |path: &&DiskCounters| namespace_of_path(&path.name).as_ref() == Some(&disk.name);
        let mut own = paths.iter().filter(is_own);
        if let Some(first) = own.next() {
            let sum = own.fold(first.clone(), DiskCounters::with_path);
            disk.replace_with_path_counters(&sum);
        }
    }
    disks
}

/// `nvme0n1` of its path `nvme0c1n1`, a device that native multipath hides; None of all others.
fn namespace_of_path(name: &str) -> Option<String> {
    let (subsystem, path) = name.strip_prefix("nvme")?.split_once('c')?;
    let (_, namespace) = path.split_once('n')?;
    Some(format!("nvme{subsystem}n{namespace}"))
}

fn disk_line(line: &str) -> Option<DiskCounters> {
    let mut fields = line.split_ascii_whitespace();
    let name = fields.nth(2)?;
    let mut numbers = [None; 17];
    for (number, field) in numbers.iter_mut().zip(fields) {
        *number = Some(field.parse::<u64>().ok()?);
    }
    Some(DiskCounters {
        name: name.to_owned(),
        read_ios: numbers[0]?,
        read_merges: numbers[1]?,
        read_bytes: numbers[2]?.wrapping_mul(SECTOR_BYTES),
        read_time_ns: numbers[3]?.wrapping_mul(MS_NS),
        write_ios: numbers[4]?,
        write_merges: numbers[5]?,
        write_bytes: numbers[6]?.wrapping_mul(SECTOR_BYTES),
        write_time_ns: numbers[7]?.wrapping_mul(MS_NS),
        in_flight: numbers[8]?,
        busy_time_ns: numbers[9]?.wrapping_mul(MS_NS),
        queue_time_ns: numbers[10]?.wrapping_mul(MS_NS),
        discard_ios: numbers[11],
        discard_bytes: numbers[13].map(|sectors| sectors.wrapping_mul(SECTOR_BYTES)),
        flush_ios: numbers[15],
    })
}

/// What a sample says of memory; a line that the kernel lacks is None.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Memory {
    /// All of it.
    pub total_bytes: Option<u64>,
    /// Used for nothing.
    pub free_bytes: Option<u64>,
    /// What a program could get without swapping.
    pub available_bytes: Option<u64>,
    /// File pages, tmpfs among them.
    pub page_cache_bytes: Option<u64>,
    /// File pages not yet written.
    pub dirty_bytes: Option<u64>,
    /// File pages being written.
    pub writeback_bytes: Option<u64>,
}

/// Parse `/proc/meminfo`.
#[must_use]
pub fn parse_meminfo(text: &str) -> Memory {
    let mut memory = Memory::default();
    for (key, bytes) in text.lines().filter_map(key_and_number) {
        let slot = match key {
            "MemTotal" => &mut memory.total_bytes,
            "MemFree" => &mut memory.free_bytes,
            "MemAvailable" => &mut memory.available_bytes,
            "Cached" => &mut memory.page_cache_bytes,
            "Dirty" => &mut memory.dirty_bytes,
            "Writeback" => &mut memory.writeback_bytes,
            _ => continue,
        };
        *slot = Some(bytes);
    }
    memory
}

/// Total bytes of a NUMA node: `Node 0 MemTotal: 65842 kB` in its own `meminfo`.
#[must_use]
pub fn parse_node_total(text: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(" MemTotal:")?;
        kilobytes(rest)
    })
}

fn key_and_number(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.split_once(':')?;
    Some((key, kilobytes(value)?))
}

fn kilobytes(value: &str) -> Option<u64> {
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Counters of one port since it appeared: name, bytes, frames and drops received, the same sent.
pub type NicRow = (String, u64, u64, u64, u64, u64, u64);

/// All ports except the loopback, which no storage traffic of another host uses.
#[must_use]
pub fn parse_net_dev(text: &str) -> Vec<NicRow> {
    text.lines().filter_map(port_line).filter(|nic| nic.0 != "lo").collect()
}

fn port_line(line: &str) -> Option<NicRow> {
    // Old kernels write `eth0:123` without a space; an alias may hold a colon itself.
    let (name, numbers) = line.rsplit_once(':')?;
    let mut fields = [0; 16];
    let mut count = 0;
    for (slot, field) in fields.iter_mut().zip(numbers.split_ascii_whitespace()) {
        *slot = field.parse::<u64>().ok()?;
        count += 1;
    }
    let [rx_bytes, rx_frames, _, rx_drops, .., tx_bytes, tx_frames, _, tx_drops, _, _, _, _] =
        fields;
    (count == fields.len()).then(|| {
        (name.trim().to_owned(), rx_bytes, rx_frames, rx_drops, tx_bytes, tx_frames, tx_drops)
    })
}

/// Stall time since boot in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StallTimes {
    /// At least one task waited.
    pub some_ns: Option<u64>,
    /// All tasks that could work waited.
    pub full_ns: Option<u64>,
}

/// Parse one file of `/proc/pressure`; its totals are microseconds.
#[must_use]
pub fn parse_pressure(text: &str) -> StallTimes {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        let total = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?;
        total.parse::<u64>().ok()?.checked_mul(1000)
    };
    StallTimes { some_ns: total("some "), full_ns: total("full ") }
}

/// What one logical CPU shows of throttling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuThrottle {
    /// The socket it is in.
    pub package: i64,
    /// The core of that socket.
    pub core: i64,
    /// Events of the core, the same for all its threads.
    pub core_events: Option<u64>,
    /// Events of the socket, the same for all its CPUs.
    pub package_events: Option<u64>,
}

/// Throttle events of a machine: each core and each socket once; None where no CPU counts them.
#[must_use]
pub fn throttle_events(cpus: &[CpuThrottle]) -> Option<u64> {
    let mut cores = BTreeMap::new();
    let mut packages = BTreeMap::new();
    for cpu in cpus {
        if let Some(events) = cpu.core_events {
            cores.insert((cpu.package, cpu.core), events);
        }
        if let Some(events) = cpu.package_events {
            packages.insert(cpu.package, events);
        }
    }
    let any = !cores.is_empty() || !packages.is_empty();
    any.then(|| cores.values().chain(packages.values()).fold(0, |sum: u64, n| sum.wrapping_add(*n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  111 2 33 4444 55 0 6 70 0 0
cpu0 61 1 20 2222 30 0 3 40 0 0
cpu1 50 1 13 2222 25 0 3 30 0 0
intr 123456 0 9 0
ctxt 987654
btime 1700000000
";

    #[test]
    fn every_core_and_not_the_total() {
        let cores = parse_stat(STAT, 100);
        assert_eq!(cores.len(), 2);
        assert_eq!(cores[0].core, 0);
        let ms = [610, 10, 200, 22_220, 300, 0, 30, 400];
        assert_eq!(cores[0].states_ns, ms.map(|ms: u64| ms * 1_000_000));
    }

    #[test]
    fn an_offline_core_is_not_in_the_list() {
        let cores = parse_stat("cpu  1 1\ncpu0 1 2 3 4 5 6 7 8\ncpu5 1 2 3 4 5 6 7 8\n", 100);
        assert_eq!(cores.iter().map(|core| core.core).collect::<Vec<_>>(), [0, 5]);
    }

    #[test]
    fn an_old_kernel_has_fewer_columns() {
        let cores = parse_stat("cpu0 1 2 3 4\n", 1000);
        assert_eq!(cores[0].states_ns[3..], [4_000_000, 0, 0, 0, 0]);
    }

    #[test]
    fn an_odd_line_is_left_out() {
        assert!(parse_stat("cpu0 1 x 3\ncpuX 1 2\ncpu\n", 100).is_empty());
        assert!(parse_stat("", 0).is_empty());
    }

    const DISKSTATS: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 237141 28031 5263170 49583 170297 19202 5454720 50624 0 10260 100829 8305 20 \
732432 511 3668 110
";
    const LINUX_4_14: &str = "   8       0 sda 100 5 2048 40 200 6 4096 80 3 70 120\n";

    #[test]
    fn all_columns_of_a_new_kernel() {
        let disks = parse_diskstats(DISKSTATS);
        assert_eq!(disks.len(), 2);
        assert!(!disks[0].was_used());
        let vda = &disks[1];
        assert!(vda.was_used());
        assert_eq!((vda.read_ios, vda.read_bytes), (237_141, 5_263_170 * 512));
        assert_eq!((vda.read_merges, vda.write_merges), (28_031, 19_202));
        assert_eq!((vda.read_time_ns, vda.write_time_ns), (49_583_000_000, 50_624_000_000));
        assert_eq!((vda.write_ios, vda.write_bytes), (170_297, 5_454_720 * 512));
        assert_eq!((vda.in_flight, vda.busy_time_ns), (0, 10_260_000_000));
        assert_eq!(vda.queue_time_ns, 100_829_000_000);
        assert_eq!((vda.discard_ios, vda.discard_bytes), (Some(8305), Some(732_432 * 512)));
        assert_eq!(vda.flush_ios, Some(3668));
    }

    #[test]
    fn fourteen_columns_of_an_old_kernel() {
        let disk = &parse_diskstats(LINUX_4_14)[0];
        assert_eq!((disk.in_flight, disk.queue_time_ns), (3, 120_000_000));
        assert_eq!((disk.discard_ios, disk.discard_bytes, disk.flush_ios), (None, None, None));
    }

    /// Linux 6.12 after 2,000 writes and 2,003 flushes, and 6.1, where the namespace counts nothing.
    const MULTIPATH: &str = "259 0 nvme0n1 2022 0 150 9 2000 0 16000 80 0 90 99 0 0 0 0 0 0
259 1 nvme0c0n1 19 0 150 2 1500 0 12000 60 0 70 62 0 0 0 0 1503 20
259 2 nvme0c1n1 0 0 0 0 500 0 4000 20 1 20 20 0 0 0 0 500 9
259 3 nvme1n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
259 4 nvme1c2n1 1 0 8 1 3 0 24 4 0 5 5 0 0 0 0 1 1
259 5 nvme2n1 5 0 40 1 0 0 0 0 0 5 5 0 0 0 0 0 0
";

    #[test]
    fn a_namespace_with_paths_is_told_once_with_what_its_paths_moved() {
        let disks = parse_diskstats(MULTIPATH);
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "nvme1n1", "nvme2n1"]);
        let [two_paths, silent, plain] = &disks[..] else { panic!("three namespaces") };
        assert_eq!((two_paths.read_ios, two_paths.read_bytes), (19, 150 * 512));
        assert_eq!((two_paths.write_ios, two_paths.write_bytes), (2000, 16_000 * 512));
        assert_eq!((two_paths.flush_ios, two_paths.in_flight), (Some(2003), 1));
        assert_eq!((two_paths.busy_time_ns, two_paths.queue_time_ns), (90_000_000, 82_000_000));
        assert!(silent.was_used());
        assert_eq!((silent.write_bytes, silent.busy_time_ns), (24 * 512, 5_000_000));
        assert_eq!((plain.read_ios, plain.read_bytes), (5, 40 * 512));
    }

    #[test]
    fn a_short_or_odd_line_is_left_out() {
        let text = "8 0 sda 1 2 3\n8 1 sdb 1 2 x 4 5 6 7 8 9 10 11\n\n8 2 sdc\n";
        assert!(parse_diskstats(text).is_empty());
    }

    #[test]
    fn a_counter_at_its_end_does_not_stop_the_parser() {
        let text = format!("8 0 sda 1 0 {0} {0} 1 0 {0} {0} 0 {0} {0}\n", u64::MAX);
        assert_eq!(parse_diskstats(&text)[0].read_bytes, u64::MAX.wrapping_mul(512));
    }

    #[test]
    fn three_hundred_disks() {
        let lines: Vec<String> =
            (0..300).map(|n| format!("65 {n} sd{n} {n} 0 8 1 0 0 0 0 0 1 1 0 0 0 0")).collect();
        let disks = parse_diskstats(&lines.join("\n"));
        assert_eq!(disks.len(), 300);
        assert_eq!((disks[299].name.as_str(), disks[299].read_ios), ("sd299", 299));
        assert_eq!(disks[299].flush_ios, None);
    }

    #[test]
    fn the_lines_of_linux_6_18() {
        let text = "MemTotal:       24668984 kB\nMemFree:        17044548 kB\n\
            MemAvailable:   23215180 kB\nBuffers:          242580 kB\nCached:          5781904 kB\n\
            SwapCached:            0 kB\nDirty:              1836 kB\nWriteback:             4 kB\n\
            HugePages_Total:       0\n";
        let memory = parse_meminfo(text);
        assert_eq!(memory.total_bytes, Some(24_668_984 * 1024));
        assert_eq!(memory.page_cache_bytes, Some(5_781_904 * 1024));
        assert_eq!((memory.dirty_bytes, memory.writeback_bytes), (Some(1836 * 1024), Some(4096)));
    }

    #[test]
    fn a_missing_or_odd_line_is_none() {
        let memory = parse_meminfo("MemTotal: many kB\nMemFree: 1 kB\nDirty: 12\n");
        assert_eq!((memory.total_bytes, memory.free_bytes), (None, Some(1024)));
        assert_eq!((memory.dirty_bytes, memory.available_bytes), (None, None));
    }

    #[test]
    fn the_total_of_a_node() {
        let text = "\nNode 1 MemTotal:       65842612 kB\nNode 1 MemFree: 1 kB\n";
        assert_eq!(parse_node_total(text), Some(65_842_612 * 1024));
        assert_eq!(parse_node_total("Node 1 MemFree: 1 kB"), None);
    }

    const NET_DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo \
colls carrier compressed
    lo:  111264    1124    0    0    0     0          0         0   111264    1124    0    0    0  \
   0       0          0
  eth0: 5132437    9876    1    2    0     0          0         3  4200001    8765    4    5    0  \
   0       0          0
";

    #[test]
    fn ports_without_the_loopback() {
        let nics = parse_net_dev(NET_DEV);
        let eth0 = ("eth0".into(), 5_132_437, 9876, 2, 4_200_001, 8765, 5);
        assert_eq!(nics, [eth0]);
    }

    #[test]
    fn a_number_may_touch_the_colon() {
        let nics = parse_net_dev("eth0:0:123 1 0 0 0 0 0 0 4 5 0 6 0 0 0 0\n");
        assert_eq!((nics[0].0.as_str(), nics[0].1), ("eth0:0", 123));
    }

    #[test]
    fn an_odd_line_of_a_port_is_left_out() {
        assert!(parse_net_dev("eth0: 1 2 3\neth1: a 1 0 0 0 0 0 0 4 5 0 6 0 0 0 0\n").is_empty());
    }

    #[test]
    fn both_lines() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.10 total=1234\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=56\n";
        let stall = StallTimes { some_ns: Some(1_234_000), full_ns: Some(56_000) };
        assert_eq!(parse_pressure(text), stall);
    }

    #[test]
    fn cpu_of_an_old_kernel_has_one_line_and_no_file_has_none() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure(text), StallTimes { some_ns: Some(7000), full_ns: None });
        assert_eq!(parse_pressure(""), StallTimes::default());
        assert_eq!(parse_pressure("some total=x\nfull"), StallTimes::default());
    }

    #[test]
    fn threads_of_a_core_and_cores_of_a_socket_count_once() {
        let cpu = |core, core_events, package_events| CpuThrottle {
            package: 0,
            core,
            core_events: Some(core_events),
            package_events: Some(package_events),
        };
        let cpus = [cpu(0, 3, 10), cpu(0, 3, 10), cpu(1, 4, 10)];
        assert_eq!(throttle_events(&cpus), Some(17));
    }

    #[test]
    fn no_counter_is_none_and_not_zero() {
        let cpu = CpuThrottle { package: 0, core: 0, core_events: None, package_events: None };
        assert_eq!(throttle_events(&[cpu]), None);
        assert_eq!(throttle_events(&[]), None);
    }
}
