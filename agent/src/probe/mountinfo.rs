//! `/proc/thread-self/mountinfo`: which mount a path is on.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// One mount of this mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of it.
    pub id: u64,
    /// `major:minor` of the file system's device; major 0 where it has none.
    pub device: String,
    /// Which folder of the file system is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The file system's type.
    pub fs_type: String,
    /// What is mounted: a device, a server's export, a word.
    pub source: String,
    /// Options of the mount.
    pub options: String,
    /// Options of the file system.
    pub super_options: String,
}

impl Mount {
    /// Both sets of options, each option once, as a person would write them.
    #[must_use]
    pub fn all_options(&self) -> String {
        let mut all: Vec<&str> = Vec::new();
        for option in self.options.split(',').chain(self.super_options.split(',')) {
            if !option.is_empty() && !all.contains(&option) {
                all.push(option);
            }
        }
        all.join(",")
    }

    /// The value of a file system's option such as `upperdir`.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<String> {
        self.super_options
            .split(',')
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
            .map(unescape)
    }
}

/// All mounts in the file's order; odd lines are left out.
#[must_use]
pub fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

/// The mount that an absolute path is on, as the kernel resolves it; of a path that does not exist
/// the longest mount point above it, and of mounts on the same point the last, which covers the
/// others.
#[must_use]
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let id = mount_id(&real);
    let above = || mounts.iter().filter(|mount| real.starts_with(&mount.mount_point));
    let by_name = || above().max_by_key(|mount| mount.mount_point.components().count());
    above().find(|mount| Some(mount.id) == id).or_else(by_name)
}

/// The number of the mount that a path leads to: the longest mount point above it may be hidden by
/// a later mount.
fn mount_id(path: &Path) -> Option<u64> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    let info = format!("/proc/thread-self/fdinfo/{}", file.as_raw_fd());
    let info = fs::read_to_string(info).ok()?;
    info.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok())
}

/// The mount of the tree of control groups that has a controller of version 1, or of the tree of
/// version 2 (the empty name).
#[must_use]
pub fn cgroup_mount<'a>(mounts: &'a [Mount], controller: &str) -> Option<&'a Mount> {
    mounts.iter().find(|mount| {
        let mut options = mount.super_options.split(',');
        if controller.is_empty() {
            return mount.fs_type == "cgroup2";
        }
        mount.fs_type == "cgroup" && options.any(|option| option == controller)
    })
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (place, file_system) = line.split_once(" - ")?;
    let mut place = place.split(' ');
    let id = place.next()?.parse().ok()?;
    let device = place.nth(1)?;
    let root = place.next()?;
    let mount_point = place.next()?;
    let options = place.next()?;
    let mut file_system = file_system.split(' ');
    Some(Mount {
        id,
        device: device.to_owned(),
        root: PathBuf::from(unescape(root)),
        mount_point: PathBuf::from(unescape(mount_point)),
        fs_type: unescape(file_system.next()?),
        source: unescape(file_system.next()?),
        options: options.to_owned(),
        super_options: file_system.next().unwrap_or("").to_owned(),
    })
}

/// The kernel writes space, tab, line end and backslash as `\040` and alike.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let (b'\\', Some(code)) = (first, code) {
            bytes.push(code);
            rest = &after[3..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
25 22 0:22 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,size=24684092k
30 22 8:1 / /mnt/with\\040space rw - xfs /dev/sda1 rw,attr2
31 22 0:50 /sub /data rw,relatime master:7 propagate_from:2 - nfs4 server:/export rw,vers=4.2
32 31 8:17 / /data rw,noatime - ext4 /dev/sdb1 rw
33 22 0:60 / /merged rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/up/d,workdir=/up/w
an odd line
40 22 - x
";

    #[test]
    fn the_longest_mount_point_wins_and_the_last_covers() {
        let mounts = parse_mountinfo(LINUX);
        let source = |path: &str| mount_of(&mounts, Path::new(path)).unwrap().source.as_str();
        assert_eq!(mounts.len(), 6);
        assert_eq!(source("/srv/x"), "/dev/vda");
        assert_eq!(source("/dev/shm"), "tmpfs");
        assert_eq!(source("/dev/shmem"), "/dev/vda");
        assert_eq!(source("/mnt/with space/file"), "/dev/sda1");
        assert_eq!(source("/data/x"), "/dev/sdb1");
    }

    #[test]
    fn options_are_joined_and_found() {
        let mounts = parse_mountinfo(LINUX);
        assert_eq!(mounts[0].all_options(), "rw,relatime,discard");
        assert_eq!(mounts[5].option("upperdir"), Some("/up/d".into()));
        assert_eq!(mounts[5].option("upper"), None);
    }

    #[test]
    fn escapes_that_are_none_stay() {
        assert_eq!(unescape("a\\040b\\134c"), "a b\\c");
        assert_eq!(unescape("a\\04"), "a\\04");
        assert_eq!(unescape("\\999"), "\\999");
    }
}
