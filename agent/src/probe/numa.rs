//! Which NUMA node a CPU belongs to.

use std::collections::HashMap;

use super::word::list_members;

/// The node of every CPU, from the `cpulist` of every node.
#[must_use]
pub fn nodes_of_cpus<'a>(cpulists: impl IntoIterator<Item = (u32, &'a str)>) -> HashMap<u32, u32> {
    let mut nodes = HashMap::new();
    for (node, cpulist) in cpulists {
        nodes.extend(list_members(cpulist).into_iter().map(|cpu| (cpu, node)));
    }
    nodes
}

/// The number at the end of a sysfs name such as `node12` or `cpu3`; None for `cpufreq`.
#[must_use]
pub fn number_after(prefix: &str, name: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_find_their_node() {
        let nodes = nodes_of_cpus([(0, "0-1,4-5\n"), (1, "2-3\n"), (2, "\n")]);
        assert_eq!((nodes[&5], nodes[&2], nodes.len()), (0, 1, 6));
    }

    #[test]
    fn names_with_a_number() {
        assert_eq!(number_after("node", "node12"), Some(12));
        assert_eq!(number_after("cpu", "cpufreq"), None);
        assert_eq!(number_after("cpu", "node1"), None);
    }
}
