//! `/proc/PID/stat` and `/proc/PID/environ`: whose child a process is, and which run it is of.

use crate::sys::time::SECOND_NS;

/// The few fields of `/proc/PID/stat` that place a process in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Its id.
    pub pid: i32,
    /// Ended, but not reaped by its parent.
    pub is_zombie: bool,
    /// Its parent's id.
    pub parent: i32,
    /// Its session's id.
    pub session: i32,
    /// When it started, in clock ticks since the boot: with its id, it is no other process.
    pub start_ticks: u64,
}

/// Parse `/proc/PID/stat`. The name in parentheses may hold spaces, parentheses and line ends.
#[must_use]
pub fn parse_process_stat(text: &str) -> Option<ProcessInfo> {
    let (pid, _) = text.split_once(" (")?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start_ticks = fields.nth(15)?.parse().ok()?;
    let is_zombie = matches!(state, "Z" | "X");
    Some(ProcessInfo { pid: pid.parse().ok()?, is_zombie, parent, session, start_ticks })
}

/// The state of a process or a thread, of its `stat`: `R`, `S`, `D`, `T`, `t`, …
#[must_use]
pub fn parse_state(text: &str) -> Option<char> {
    text.rsplit_once(") ")?.1.chars().next()
}

/// User and system time of a whole process in ticks, of `/proc/PID/stat`.
#[must_use]
pub fn parse_ticks(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Nanoseconds that a thread ran and that it waited for a processor, of `schedstat`.
#[must_use]
pub fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Whether `/proc/PID/environ` holds exactly this `NAME=value`.
#[must_use]
pub fn environ_has(environ: &[u8], setting: &str) -> bool {
    environ.split(|&byte| byte == 0).any(|entry| entry == setting.as_bytes())
}

/// The rest of the `NAME=value` of `/proc/PID/environ` that begins so.
#[must_use]
pub fn environ_rest_after<'a>(environ: &'a [u8], beginning: &str) -> Option<&'a [u8]> {
    environ.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(beginning.as_bytes()))
}

/// Microseconds, in which the kernel counts here, as nanoseconds.
const MICROSECOND_NS: u64 = 1000;
/// The kernel's own limit of a period is a second.
const MAX_PERIOD_NS: u64 = SECOND_NS;

/// What a quota did to a group since it was made: `cpu.stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throttling {
    /// Periods in which it wanted to run.
    pub periods: u64,
    /// Those in which it used its quota up.
    pub throttled: u64,
    /// How long its processors then stood still, each counted for itself.
    pub throttled_ns: u64,
}

/// What a group may use in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// How long a period is.
    pub period_ns: u64,
    /// Processor time in it; None without a limit.
    pub quota_ns: Option<u64>,
}

/// Parse `cpu.stat` of either version; None where the group has no controller of processors.
#[must_use]
pub fn parse_cpu_stat(text: &str) -> Option<Throttling> {
    let value = |key: &str| number_of_key(text, key);
    let in_us = || value("throttled_usec").map(|us| us.saturating_mul(MICROSECOND_NS));
    Some(Throttling {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_ns: value("throttled_time").or_else(in_us)?,
    })
}

/// The number after a key in a file of `key value` lines.
#[must_use]
pub fn number_of_key(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// Parse `cpu.max` of version 2: `10000 100000`, or `max 100000`.
#[must_use]
pub fn parse_cpu_max(text: &str) -> Option<CpuQuota> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota_ns = match quota {
        "max" => None,
        us => Some(us.parse::<u64>().ok()?.checked_mul(MICROSECOND_NS)?),
    };
    Some(CpuQuota { period_ns: parse_period(period)?, quota_ns })
}

/// Parse `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1; -1 is no limit.
#[must_use]
pub fn parse_cfs(quota: &str, period: &str) -> Option<CpuQuota> {
    let limit = quota.trim().parse::<i64>().ok()?;
    let quota_ns = u64::try_from(limit).ok().and_then(|us| us.checked_mul(MICROSECOND_NS));
    Some(CpuQuota { period_ns: parse_period(period)?, quota_ns })
}

fn parse_period(text: &str) -> Option<u64> {
    let period_ns = text.trim().parse::<u64>().ok()?.checked_mul(MICROSECOND_NS)?;
    (1..=MAX_PERIOD_NS).contains(&period_ns).then_some(period_ns)
}

/// The group of a process in the tree of a controller of version 1, or in that of version 2 (the
/// empty name), by its `/proc/PID/cgroup`. A path may hold colons.
#[must_use]
pub fn cgroup_path<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let names = parts.next()?;
        let is_it = names.split(',').any(|name| name == controller);
        parts.next().filter(|path| is_it && path.starts_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_of_linux_6_18() {
        let text = "1413 (fio) S 1400 1399 1398 0 -1 4194560 1210 0 0 0 12 4 0 0 20 0 2 0 77 9\n";
        let (pid, parent, session) = (1413, 1400, 1398);
        let place = ProcessInfo { pid, is_zombie: false, parent, session, start_ticks: 77 };
        assert_eq!(parse_process_stat(text), Some(place));
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let text = "7 (a) R 1 2 (x\n) Z 3 4 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 8";
        let place = ProcessInfo { pid: 7, is_zombie: true, parent: 3, session: 5, start_ticks: 8 };
        assert_eq!(parse_process_stat(text), Some(place));
    }

    #[test]
    fn an_odd_line_is_no_process() {
        for text in ["", "12", "12 (x", "12 (x) S", "12 (x) S one 2 3", "12 (x) S 1 2 3"] {
            assert_eq!(parse_process_stat(text), None, "{text}");
        }
    }

    #[test]
    fn the_times_of_a_process_and_of_a_thread() {
        let text = "1413 (CPU 0) S 1400 1399 1398 0 -1 4194560 1210 0 0 0 12 4 0 0 20 0 2 0\n";
        assert_eq!(parse_ticks(text), Some((12, 4)));
        assert_eq!(parse_ticks("1413 (x) S 1400"), None);
        assert_eq!(parse_schedstat("901 77 3\n"), Some((901, 77)));
        assert_eq!(parse_schedstat("901\n"), None);
    }

    #[test]
    fn a_setting_is_matched_whole() {
        let environ = b"PATH=/bin\0IOLAB_RUN=12.3\0";
        assert!(environ_has(environ, "IOLAB_RUN=12.3"));
        assert!(!environ_has(environ, "IOLAB_RUN=12"));
        assert_eq!(environ_rest_after(environ, "IOLAB_RUN="), Some(&b"12.3"[..]));
        assert_eq!(environ_rest_after(b"X=IOLAB_RUN=12.3\0", "IOLAB_RUN="), None);
        assert!(!environ_has(environ, "OLAB_RUN=12.3"));
    }

    #[test]
    fn both_versions_of_cpu_stat() {
        let one = "nr_periods 52\nnr_throttled 50\nthrottled_time 4512345678\nnr_bursts 0\n";
        let two = "usage_usec 512\nuser_usec 500\nsystem_usec 12\nnr_periods 52\n\
            nr_throttled 50\nthrottled_usec 4512345\nnr_bursts 0\nburst_usec 0\n";
        let found = Throttling { periods: 52, throttled: 50, throttled_ns: 4_512_345_678 };
        assert_eq!(parse_cpu_stat(one), Some(found));
        assert_eq!(parse_cpu_stat(two), Some(Throttling { throttled_ns: 4_512_345_000, ..found }));
    }

    #[test]
    fn a_group_without_the_controller_counts_no_periods() {
        let root_of_two = "usage_usec 512\nuser_usec 500\nsystem_usec 12\n";
        for text in [root_of_two, "", "nr_periods x\nnr_throttled 1\nthrottled_time 1\n", "odd"] {
            assert_eq!(parse_cpu_stat(text), None, "{text}");
        }
    }

    #[test]
    fn quotas_of_both_versions() {
        let tenth = CpuQuota { period_ns: 100_000_000, quota_ns: Some(10_000_000) };
        assert_eq!(parse_cpu_max("10000 100000\n"), Some(tenth));
        assert_eq!(parse_cfs("10000\n", "100000\n"), Some(tenth));
        let free = CpuQuota { quota_ns: None, ..tenth };
        assert_eq!(parse_cpu_max("max 100000\n"), Some(free));
        assert_eq!(parse_cfs("-1\n", "100000\n"), Some(free));
        for text in ["", "max", "10000 0", "x 100000", "10000 99999999"] {
            assert_eq!(parse_cpu_max(text), None, "{text}");
        }
        assert_eq!(parse_cfs("x", "100000"), None);
    }

    #[test]
    fn the_group_of_a_process_in_each_tree() {
        let hybrid = "4:memory:/a\n2:cpuacct:/b\n1:cpu,cpuacct:/pods/x:y\n0::/user.slice\n";
        assert_eq!(cgroup_path(hybrid, "cpu"), Some("/pods/x:y"));
        assert_eq!(cgroup_path(hybrid, ""), Some("/user.slice"));
        assert_eq!(cgroup_path("0::/\n", "cpu"), None);
        assert_eq!(cgroup_path("9:name=systemd:/x\nodd\n", ""), None);
    }
}
