//! Power meters that the kernel has: RAPL's counters of energy, and sensors of watts.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::probe::machine::number_after;
use crate::roots::{Roots, list_names, read_number, read_value};

/// Sensors of one chip, `power1_…` to this one.
const SENSORS_PER_CHIP: u32 = 8;

/// What a meter measures, as the first part of its name.
const NODE: &str = "node";
const PROCESSORS: &str = "processors";
const MEMORY: &str = "memory";
const PART: &str = "part";

/// name (`processors:package-0`), milliwatts, microjoules since some moment, and where these begin
/// again at 0.
pub type MeterRow = (String, Option<u64>, Option<u64>, Option<u64>);

/// Where a meter's figures are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    name: String,
    power_uw: Option<PathBuf>,
    energy_uj: Option<PathBuf>,
    energy_range_uj: Option<u64>,
}

impl Meter {
    /// The figures now; None where the kernel shows none.
    #[must_use]
    pub fn read(&self) -> Option<MeterRow> {
        let microwatts: Option<u64> = self.power_uw.as_ref().and_then(|path| read_number(path));
        let energy_uj: Option<u64> = self.energy_uj.as_ref().and_then(|path| read_number(path));
        if microwatts.is_none() && energy_uj.is_none() {
            return None;
        }
        let milliwatts = microwatts.map(|power| power / 1000);
        Some((self.name.clone(), milliwatts, energy_uj, self.energy_range_uj))
    }
}

/// All meters of the host, in the order of their names.
#[must_use]
pub fn find_meters(roots: &Roots) -> Vec<Meter> {
    let mut meters = energy_zones(roots);
    meters.extend(power_sensors(roots));
    meters.sort_by(|a, b| a.name.cmp(&b.name));
    meters
}

/// What of them this user may not read, for people; None where nothing is hidden.
#[must_use]
pub fn hidden_meters_fault(roots: &Roots) -> Option<String> {
    hidden_fault(roots, |path| File::open(path))
}

fn hidden_fault(roots: &Roots, open: impl Fn(&Path) -> io::Result<File>) -> Option<String> {
    let files = energy_zones(roots).into_iter().filter_map(|zone| zone.energy_uj);
    let is_hidden = |path: &PathBuf| {
        open(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let hidden = files.filter(is_hidden).count();
    (hidden > 0).then(|| {
        "RAPL's counters of energy are for root alone: no power of processors is measured.".into()
    })
}

/// RAPL's zones. Cores and graphics are inside of their package, and the zones that
/// `intel-rapl-mmio` shows are the same once more.
fn energy_zones(roots: &Roots) -> Vec<Meter> {
    let folder = roots.sys.join("class/powercap");
    list_names(&folder)
        .into_iter()
        .filter_map(|zone| {
            let numbers = zone.strip_prefix("intel-rapl:")?;
            let own = read_value(&folder.join(&zone).join("name"))?;
            let name = if numbers.contains(':') {
                let (package, _) = numbers.split_once(':')?;
                (own == "dram").then(|| format!("{MEMORY}:dram-{package}"))?
            } else if own.starts_with("package") {
                format!("{PROCESSORS}:{own}")
            } else {
                format!("{PART}:{own}")
            };
            Some(Meter {
                name,
                power_uw: None,
                energy_uj: Some(folder.join(&zone).join("energy_uj")),
                energy_range_uj: read_number(&folder.join(&zone).join("max_energy_range_uj")),
            })
        })
        .collect()
}

/// Sensors of hwmon: the meter of ACPI is the machine's own input, any other that of some part.
fn power_sensors(roots: &Roots) -> Vec<Meter> {
    let folder = roots.sys.join("class/hwmon");
    let mut meters = Vec::new();
    for chip in list_names(&folder).iter().filter(|name| number_after("hwmon", name).is_some()) {
        let path = folder.join(chip);
        let Some(own) = read_value(&path.join("name")) else { continue };
        let files = (1..=SENSORS_PER_CHIP).filter_map(|number| {
            let readings =
                ["average", "input"].map(|kind| path.join(format!("power{number}_{kind}")));
            Some((number, readings.into_iter().find(|file| file.exists())?))
        });
        for (number, file) in files {
            let name = if own == "power_meter" {
                format!("{NODE}:{chip}-{number}")
            } else {
                format!("{PART}:{own}-{chip}-{number}")
            };
            let power_uw = Some(file);
            meters.push(Meter { name, power_uw, energy_uj: None, energy_range_uj: None });
        }
    }
    meters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn host() -> (TestFolder, Roots) {
        let tree = TestFolder::new();
        for (zone, name, energy) in [
            ("intel-rapl:0", "package-0", "77"),
            ("intel-rapl:0:0", "core", "5"),
            ("intel-rapl:0:1", "dram", "6"),
            ("intel-rapl:1", "psys", "7"),
            ("intel-rapl-mmio:0", "package-0", "77"),
        ] {
            tree.put(&format!("sys/class/powercap/{zone}/name"), &format!("{name}\n"));
            tree.put(&format!("sys/class/powercap/{zone}/energy_uj"), &format!("{energy}\n"));
            tree.put(&format!("sys/class/powercap/{zone}/max_energy_range_uj"), "100\n");
        }
        tree.put("sys/class/hwmon/hwmon3/name", "power_meter\n");
        tree.put("sys/class/hwmon/hwmon3/power1_average", "213456789\n");
        tree.put("sys/class/hwmon/hwmon4/name", "ina230\n");
        tree.put("sys/class/hwmon/hwmon4/power1_input", "5000000\n");
        tree.put("sys/class/hwmon/hwmon5/name", "nvme\n");
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
        (tree, roots)
    }

    #[test]
    fn each_meter_once_with_what_it_measures() {
        let (_tree, roots) = host();
        let rows: Vec<MeterRow> = find_meters(&roots).iter().filter_map(Meter::read).collect();
        let energy = |name: &str, energy| (name.to_owned(), None, Some(energy), Some(100));
        let power = |name: &str, power| (name.to_owned(), Some(power), None, None);
        let expected = [
            energy("memory:dram-0", 6),
            power("node:hwmon3-1", 213_456),
            power("part:ina230-hwmon4-1", 5000),
            energy("part:psys", 7),
            energy("processors:package-0", 77),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn counters_for_root_alone_are_told_and_missing_ones_are_not() {
        let (_tree, roots) = host();
        let denied = |_: &Path| Err(io::Error::from_raw_os_error(libc::EACCES));
        let fault = hidden_fault(&roots, denied).unwrap();
        assert!(fault.contains("for root alone"), "{fault}");
        assert_eq!(hidden_fault(&roots, |path| File::open(path)), None);
        let nothing = TestFolder::new();
        let none = Roots { proc: nothing.path().into(), sys: nothing.path().into() };
        assert_eq!(hidden_fault(&none, denied), None);
    }

    #[test]
    fn what_cannot_be_read_gives_no_row() {
        let (tree, roots) = host();
        tree.put("sys/class/powercap/intel-rapl:0/energy_uj", "no number\n");
        let rows: Vec<MeterRow> = find_meters(&roots).iter().filter_map(Meter::read).collect();
        assert!(rows.iter().all(|row| row.0 != "processors:package-0"), "{rows:?}");
        let nothing = TestFolder::new();
        let none = Roots { proc: nothing.path().into(), sys: nothing.path().into() };
        assert!(find_meters(&none).is_empty());
    }
}
