//! `/proc/stat`: processor time by state.

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

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_6_18: &str = "\
cpu  111 2 33 4444 55 0 6 70 0 0
cpu0 61 1 20 2222 30 0 3 40 0 0
cpu1 50 1 13 2222 25 0 3 30 0 0
intr 123456 0 9 0
ctxt 987654
btime 1700000000
";

    #[test]
    fn every_core_and_not_the_total() {
        let cores = parse_stat(LINUX_6_18, 100);
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
}
