//! `/proc/diskstats`: counters of every block device, partitions among them.

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
}

/// All lines that have at least the fourteen columns of Linux 2.6.
#[must_use]
pub fn parse_diskstats(text: &str) -> Vec<DiskCounters> {
    text.lines().filter_map(counters).collect()
}

fn counters(line: &str) -> Option<DiskCounters> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_6_18: &str = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 237141 28031 5263170 49583 170297 19202 5454720 50624 0 10260 100829 8305 20 \
732432 511 3668 110
";
    const LINUX_4_14: &str = "   8       0 sda 100 5 2048 40 200 6 4096 80 3 70 120\n";

    #[test]
    fn all_columns_of_a_new_kernel() {
        let disks = parse_diskstats(LINUX_6_18);
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
}
