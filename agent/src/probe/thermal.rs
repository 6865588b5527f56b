//! Throttle counters and temperatures: one number a file, and how counts of shared things add up.

use std::collections::BTreeMap;

/// A number that stands alone in a sysfs file.
#[must_use]
pub fn parse_number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}

/// What one logical CPU shows of throttling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
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
pub fn throttle_events(cpus: &[Throttle]) -> Option<u64> {
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

    #[test]
    fn threads_of_a_core_and_cores_of_a_socket_count_once() {
        let cpu = |core, core_events, package_events| Throttle {
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
        let cpu = Throttle { package: 0, core: 0, core_events: None, package_events: None };
        assert_eq!(throttle_events(&[cpu]), None);
        assert_eq!(throttle_events(&[]), None);
    }

    #[test]
    fn a_number_alone() {
        assert_eq!(parse_number("38850\n"), Some(38_850));
        assert_eq!(parse_number("-1\n"), Some(-1));
        assert_eq!(parse_number("Unknown speed"), None);
    }
}
