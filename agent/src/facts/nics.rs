//! Network ports.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::roots::{Roots, names, text};

/// One network port.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct NicFacts {
    pub name: String,
    pub driver: Option<String>,
    pub speed_mbit_s: Option<u64>,
    pub mtu: u64,
    pub up: bool,
}

/// All ports of this network namespace except the loopback.
#[must_use]
pub fn nics(roots: &Roots) -> Vec<NicFacts> {
    let folder = roots.sys.join("class/net");
    names(&folder)
        .into_iter()
        // `bonding_masters` is a file among the folders of ports.
        .filter(|name| name != "lo" && folder.join(name).is_dir())
        .map(|name| nic(&folder.join(&name), name))
        .collect()
}

fn nic(folder: &Path, name: String) -> NicFacts {
    let read = |file: &str| text(&folder.join(file)).map(|text| text.trim().to_owned());
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let state = read("operstate").unwrap_or_default();
    NicFacts {
        name,
        driver: driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
        // A port without a link says -1 or refuses to answer.
        speed_mbit_s: read("speed").and_then(|text| text.parse().ok()),
        mtu: read("mtu").and_then(|text| text.parse().ok()).unwrap_or(0),
        // Ports that do not tell their state (virtual ones) may still tell that they have a link.
        up: state == "up" || (state == "unknown" && read("carrier").as_deref() == Some("1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_port_with_a_link_one_without_and_the_loopback() {
        let tree = Folder::new();
        for (file, content) in [
            ("eth0/operstate", "up\n"),
            ("eth0/speed", "25000\n"),
            ("eth0/mtu", "9000\n"),
            ("eth0/device/vendor", "0x15b3\n"),
            ("eth1/operstate", "down\n"),
            ("eth1/speed", "-1\n"),
            ("eth1/mtu", "1500\n"),
            ("tap0/operstate", "unknown\n"),
            ("tap0/carrier", "1\n"),
            ("lo/operstate", "unknown\n"),
            ("bonding_masters", "bond0\n"),
        ] {
            tree.put(&format!("class/net/{file}"), content);
        }
        let link = tree.path().join("class/net/eth0/device/driver");
        symlink("../../../../bus/pci/drivers/mlx5_core", link).unwrap();
        let roots = Roots { proc: "/proc".into(), sys: tree.path().to_owned() };
        let port = |name: &str, driver: Option<&str>, speed_mbit_s, mtu, up| NicFacts {
            name: name.into(),
            driver: driver.map(Into::into),
            speed_mbit_s,
            mtu,
            up,
        };
        let expected = [
            port("eth0", Some("mlx5_core"), Some(25_000), 9000, true),
            port("eth1", None, None, 1500, false),
            port("tap0", None, None, 0, true),
        ];
        assert_eq!(nics(&roots), expected);
    }
}
