//! The parts of a guest that its machine was given, found by the names that they bear.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::roots::Roots;

/// Parts show within milliseconds of their driver; under emulation on a loaded node within seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The device file of the port of that name.
///
/// A port is there before its name is: it is looked for until both are.
pub fn port(roots: &Roots, name: &str) -> Option<PathBuf> {
    let folder = "class/virtio-ports";
    roots.sys_names(folder).into_iter().find_map(|port| {
        let own = roots.sys_text(format!("{folder}/{port}/name"))?;
        (own.trim_end() == name).then(|| PathBuf::from("/dev").join(port))
    })
}

/// The device file of the virtual disk with that serial.
pub fn disk(roots: &Roots, serial: &str) -> Option<PathBuf> {
    let disks = roots.sys_names("block").into_iter().filter(|disk| disk.starts_with("vd"));
    disks.into_iter().find_map(|disk| {
        let own = roots.sys_text(format!("block/{disk}/serial"))?;
        (own.trim_end() == serial).then(|| PathBuf::from("/dev").join(disk))
    })
}

/// Look for a part until it is there; `what` names it in the error.
pub fn awaited(what: &str, look: impl Fn() -> Option<PathBuf>) -> Result<PathBuf> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(part) = look().filter(|part| part.exists()) {
            return Ok(part);
        }
        if Instant::now() >= deadline {
            let seconds = PATIENCE.as_secs();
            let says = format!("the machine showed no {what} within {seconds} s");
            return Err(Error::errno(libc::ENODEV, says));
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;

    fn roots(tree: &Folder) -> Roots {
        Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() }
    }

    #[test]
    fn disks_are_known_by_their_serial_and_not_by_their_place() {
        let tree = Folder::new();
        tree.put("block/vda/serial", "tools\n");
        tree.put("block/vdb/serial", "data");
        tree.put("block/sda/serial", "other\n");
        tree.put("block/vdc/size", "1\n");
        let found = |serial: &str| disk(&roots(&tree), serial);
        assert_eq!(found("tools"), Some("/dev/vda".into()));
        assert_eq!(found("data"), Some("/dev/vdb".into()));
        assert_eq!((found("other"), found("dat"), found("")), (None, None, None));
    }

    #[test]
    fn a_port_is_known_by_its_name_once_it_has_one() {
        let tree = Folder::new();
        tree.put("class/virtio-ports/vport0p0/dev", "1:1\n");
        assert_eq!(port(&roots(&tree), "agent"), None);
        tree.put("class/virtio-ports/vport0p1/name", "agent\n");
        assert_eq!(port(&roots(&tree), "agent"), Some("/dev/vport0p1".into()));
    }

    #[test]
    fn a_part_that_comes_late_is_waited_for() {
        let tree = Folder::new();
        let late = tree.path().join("part");
        thread::scope(|scope| {
            scope.spawn(|| tree.put("part", ""));
            assert_eq!(awaited("part", || Some(late.clone())).unwrap(), late);
        });
    }
}
