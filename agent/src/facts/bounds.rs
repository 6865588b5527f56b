//! What control groups allow this process of memory and of I/O, as a pod's limits do.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use crate::processor::{ControlGroup, groups_of};
use crate::roots::{Roots, read_text};
use crate::sys::process::pid_in_proc;

/// From here on a limit of version 1 is none: it says so by the largest number of pages.
const UNLIMITED_BYTES: u64 = 1 << 62;
/// More devices than a host has, so that a file cannot be read without end.
const MAX_DEVICES: usize = 256;

/// What may be asked of one device in a second; None without a limit.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct IoLimit {
    pub device: String,
    pub read_iops: Option<u64>,
    pub write_iops: Option<u64>,
    pub read_bytes_per_s: Option<u64>,
    pub write_bytes_per_s: Option<u64>,
}

/// The least of the limits of memory of all groups above this process, page cache included; None
/// without one.
#[must_use]
pub fn own_memory_limit_bytes(roots: &Roots) -> Option<u64> {
    let groups = groups_of(roots, pid_in_proc(), "memory");
    groups.iter().filter_map(memory_limit_bytes).min()
}

fn memory_limit_bytes(group: &ControlGroup) -> Option<u64> {
    let name = if group.is_v2 { "memory.max" } else { "memory.limit_in_bytes" };
    let limit = read_text(&group.folder.join(name))?.trim().parse().ok()?;
    (limit < UNLIMITED_BYTES).then_some(limit)
}

/// The least limits of I/O of all groups above this process, by device.
#[must_use]
pub fn own_io_limits(roots: &Roots) -> Vec<IoLimit> {
    let mut limits: BTreeMap<String, [Option<u64>; 4]> = BTreeMap::new();
    for group in groups_of(roots, pid_in_proc(), "blkio") {
        for (number, place, limit) in group_io_limits(&group) {
            if limits.len() < MAX_DEVICES || limits.contains_key(&number) {
                let least = &mut limits.entry(number).or_default()[place];
                *least = Some(least.map_or(limit, |before| before.min(limit)));
            }
        }
    }
    limits
        .into_iter()
        .map(|(number, [read_bytes_per_s, write_bytes_per_s, read_iops, write_iops])| IoLimit {
            device: device_name(roots, &number),
            read_iops,
            write_iops,
            read_bytes_per_s,
            write_bytes_per_s,
        })
        .collect()
}

/// Limits as (number of the device, place of the kind in `io.max`, limit).
fn group_io_limits(group: &ControlGroup) -> Vec<(String, usize, u64)> {
    let read = |name: &str| read_text(&group.folder.join(name)).unwrap_or_default();
    if group.is_v2 {
        return parse_io_max(&read("io.max"));
    }
    let files = ["read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device"];
    let lines = |(place, file): (usize, &&str)| {
        let text = read(&format!("blkio.throttle.{file}"));
        let limit = |line: &str| {
            let (number, limit) = line.split_once(' ')?;
            Some((number.to_owned(), place, limit.trim().parse().ok()?))
        };
        text.lines().filter_map(limit).collect::<Vec<_>>()
    };
    files.iter().enumerate().flat_map(lines).collect()
}

/// Parse `io.max` of version 2: `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn parse_io_max(text: &str) -> Vec<(String, usize, u64)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let number = words.next().unwrap_or_default();
        for word in words {
            let Some((key, limit)) = word.split_once('=') else { continue };
            let place = ["rbps", "wbps", "riops", "wiops"].iter().position(|name| *name == key);
            if let (Some(place), Ok(limit)) = (place, limit.parse()) {
                found.push((number.to_owned(), place, limit));
            }
        }
    }
    found
}

/// The kernel's name of a device by its number, the number where it has none here.
fn device_name(roots: &Roots, number: &str) -> String {
    let link = fs::read_link(roots.sys.join("dev/block").join(number)).ok();
    let name = link.as_deref().and_then(|link| link.file_name()?.to_str());
    name.unwrap_or(number).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn host(mounts: &str, groups: &str) -> (TestFolder, Roots) {
        let tree = TestFolder::new();
        let top = tree.path().join("cg").display().to_string();
        tree.put("proc/thread-self/mountinfo", &mounts.replace("/CG", &top));
        tree.put(&format!("proc/{}/cgroup", pid_in_proc()), groups);
        fs::create_dir_all(tree.path().join("sys/dev/block")).unwrap();
        let link = tree.path().join("sys/dev/block/7:3");
        std::os::unix::fs::symlink("../../devices/virtual/block/loop3", link).unwrap();
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
        (tree, roots)
    }

    #[test]
    fn limits_of_version_1_are_the_least_of_all_groups() {
        let mounts = "30 22 0:26 / /CG/blkio rw - cgroup cgroup rw,blkio\n\
                      31 22 0:27 / /CG/memory rw - cgroup cgroup rw,memory\n";
        let (tree, roots) = host(mounts, "3:blkio:/pod/one\n2:memory:/pod/one\n");
        tree.put("cg/memory/pod/one/memory.limit_in_bytes", "9223372036854771712\n");
        tree.put("cg/memory/pod/memory.limit_in_bytes", "1073741824\n");
        tree.put("cg/blkio/pod/one/blkio.throttle.read_iops_device", "7:3 2000\n8:0 5\n");
        tree.put("cg/blkio/pod/blkio.throttle.read_iops_device", "7:3 500\n");
        tree.put("cg/blkio/pod/blkio.throttle.write_bps_device", "7:3 1048576\n");
        assert_eq!(own_memory_limit_bytes(&roots), Some(1 << 30));
        let loop3 = IoLimit {
            device: "loop3".into(),
            read_iops: Some(500),
            write_bytes_per_s: Some(1 << 20),
            ..IoLimit::default()
        };
        let other = IoLimit { device: "8:0".into(), read_iops: Some(5), ..IoLimit::default() };
        assert_eq!(own_io_limits(&roots), [loop3, other]);
    }

    #[test]
    fn limits_of_version_2_are_read_and_max_is_none() {
        let mounts = "30 22 0:26 / /CG rw - cgroup2 cgroup2 rw\n";
        let (tree, roots) = host(mounts, "0::/pod\n");
        tree.put("cg/pod/memory.max", "max\n");
        tree.put("cg/pod/io.max", "7:3 rbps=max wbps=1024 riops=max wiops=120\n");
        assert_eq!(own_memory_limit_bytes(&roots), None);
        let loop3 = IoLimit {
            device: "loop3".into(),
            write_iops: Some(120),
            write_bytes_per_s: Some(1024),
            ..IoLimit::default()
        };
        assert_eq!(own_io_limits(&roots), [loop3]);
    }
}
