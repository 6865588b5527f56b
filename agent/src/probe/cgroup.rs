//! Files of control groups: which group a process is in, what it may have of the processors, and
//! how often that held it up.

use crate::sys::time::SECOND_NS;

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
pub struct Quota {
    /// How long a period is.
    pub period_ns: u64,
    /// Processor time in it; None without a limit.
    pub quota_ns: Option<u64>,
}

/// Parse `cpu.stat` of either version; None where the group has no controller of processors.
#[must_use]
pub fn parse_cpu_stat(text: &str) -> Option<Throttling> {
    let value = |key: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == key).then(|| value.trim().parse::<u64>().ok()).flatten()
        })
    };
    let in_us = || value("throttled_usec").map(|us| us.saturating_mul(MICROSECOND_NS));
    Some(Throttling {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_ns: value("throttled_time").or_else(in_us)?,
    })
}

/// Parse `cpu.max` of version 2: `10000 100000`, or `max 100000`.
#[must_use]
pub fn parse_cpu_max(text: &str) -> Option<Quota> {
    let (quota, period) = text.trim().split_once(' ')?;
    let quota_ns = match quota {
        "max" => None,
        us => Some(us.parse::<u64>().ok()?.checked_mul(MICROSECOND_NS)?),
    };
    Some(Quota { period_ns: parse_period(period)?, quota_ns })
}

/// Parse `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1; -1 is no limit.
#[must_use]
pub fn parse_cfs(quota: &str, period: &str) -> Option<Quota> {
    let limit = quota.trim().parse::<i64>().ok()?;
    let quota_ns = u64::try_from(limit).ok().and_then(|us| us.checked_mul(MICROSECOND_NS));
    Some(Quota { period_ns: parse_period(period)?, quota_ns })
}

fn parse_period(text: &str) -> Option<u64> {
    let period_ns = text.trim().parse::<u64>().ok()?.checked_mul(MICROSECOND_NS)?;
    (1..=MAX_PERIOD_NS).contains(&period_ns).then_some(period_ns)
}

/// The group of a process in the tree of a controller of version 1, or in that of version 2 (the
/// empty name), by its `/proc/PID/cgroup`. A path may hold colons.
#[must_use]
pub fn group_of<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
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
        let tenth = Quota { period_ns: 100_000_000, quota_ns: Some(10_000_000) };
        assert_eq!(parse_cpu_max("10000 100000\n"), Some(tenth));
        assert_eq!(parse_cfs("10000\n", "100000\n"), Some(tenth));
        let free = Quota { quota_ns: None, ..tenth };
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
        assert_eq!(group_of(hybrid, "cpu"), Some("/pods/x:y"));
        assert_eq!(group_of(hybrid, ""), Some("/user.slice"));
        assert_eq!(group_of("0::/\n", "cpu"), None);
        assert_eq!(group_of("9:name=systemd:/x\nodd\n", ""), None);
    }
}
