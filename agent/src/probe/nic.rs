//! `/proc/net/dev`: counters of every network port of this network namespace.

/// Counters of one port since it appeared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicCounters {
    /// The kernel's name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames dropped or missed on receipt.
    pub rx_drops: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Frames dropped on sending.
    pub tx_drops: u64,
}

/// All ports except the loopback, which no storage traffic of another host uses.
#[must_use]
pub fn parse_net_dev(text: &str) -> Vec<NicCounters> {
    text.lines().filter_map(counters).filter(|nic| nic.name != "lo").collect()
}

fn counters(line: &str) -> Option<NicCounters> {
    // Old kernels write `eth0:123` without a space; an alias may hold a colon itself.
    let (name, numbers) = line.rsplit_once(':')?;
    let mut fields = [0; 16];
    let mut count = 0;
    for (slot, field) in fields.iter_mut().zip(numbers.split_ascii_whitespace()) {
        *slot = field.parse::<u64>().ok()?;
        count += 1;
    }
    (count == fields.len()).then(|| NicCounters {
        name: name.trim().to_owned(),
        rx_bytes: fields[0],
        rx_frames: fields[1],
        rx_drops: fields[3],
        tx_bytes: fields[8],
        tx_frames: fields[9],
        tx_drops: fields[11],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_6_18: &str = "\
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
        let nics = parse_net_dev(LINUX_6_18);
        let eth0 = NicCounters {
            name: "eth0".into(),
            rx_bytes: 5_132_437,
            rx_frames: 9876,
            rx_drops: 2,
            tx_bytes: 4_200_001,
            tx_frames: 8765,
            tx_drops: 5,
        };
        assert_eq!(nics, [eth0]);
    }

    #[test]
    fn a_number_may_touch_the_colon() {
        let nics = parse_net_dev("eth0:0:123 1 0 0 0 0 0 0 4 5 0 6 0 0 0 0\n");
        assert_eq!((nics[0].name.as_str(), nics[0].rx_bytes), ("eth0:0", 123));
    }

    #[test]
    fn an_odd_line_is_left_out() {
        assert!(parse_net_dev("eth0: 1 2 3\neth1: a 1 0 0 0 0 0 0 4 5 0 6 0 0 0 0\n").is_empty());
    }
}
