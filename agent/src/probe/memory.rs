//! `/proc/meminfo` and the `meminfo` of a NUMA node.

/// What a sample says of memory; a line that the kernel lacks is None.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    for (key, bytes) in text.lines().filter_map(entry) {
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

fn entry(line: &str) -> Option<(&str, u64)> {
    let (key, value) = line.split_once(':')?;
    Some((key, kilobytes(value)?))
}

fn kilobytes(value: &str) -> Option<u64> {
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
