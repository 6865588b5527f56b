//! What a sample says of things that change slowly, kept between samples.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::probe::numa::{nodes_of_cpus, number_after};
use crate::probe::thermal::{Throttle, parse_number, throttle_events};
use crate::roots::{Roots, names, text};
use crate::sys::time::SECOND_NS;

/// A temperature moves in seconds, and asking costs the disk a command.
const VALUES_EVERY_NS: u64 = 10 * SECOND_NS;
/// Sensors come and go with disks; looking for them reads a folder a disk.
const SENSORS_EVERY_NS: u64 = 60 * SECOND_NS;
const CPUS: &str = "devices/system/cpu";

/// The slow values and when they were read.
#[derive(Default)]
pub struct Slow {
    nodes: HashMap<u32, u32>,
    sensors: Vec<(String, PathBuf)>,
    throttled_cpus: Vec<ThrottleFiles>,
    temperatures: HashMap<String, i64>,
    events: Option<u64>,
    values_due_ns: u64,
    sensors_due_ns: u64,
}

struct ThrottleFiles {
    package: i64,
    core: i64,
    folder: PathBuf,
}

impl Slow {
    /// Read again what is due at `now_ns` of the monotonic clock.
    pub fn refresh(&mut self, roots: &Roots, now_ns: u64) {
        if now_ns >= self.sensors_due_ns {
            self.sensors_due_ns = now_ns + SENSORS_EVERY_NS;
            self.sensors = sensors(roots);
            self.throttled_cpus = throttled_cpus(roots);
            self.find_nodes(roots);
        }
        if now_ns >= self.values_due_ns {
            self.values_due_ns = now_ns + VALUES_EVERY_NS;
            self.read_values();
        }
    }

    /// Read which core is on which node.
    pub fn find_nodes(&mut self, roots: &Roots) {
        let folder = roots.sys.join("devices/system/node");
        let lists: Vec<(u32, String)> = names(&folder)
            .iter()
            .filter_map(|name| {
                Some((number_after("node", name)?, text(&folder.join(name).join("cpulist"))?))
            })
            .collect();
        self.nodes = nodes_of_cpus(lists.iter().map(|(node, list)| (*node, list.as_str())));
    }

    /// The node of a core; None for a core not seen before, on a host that has nodes.
    pub fn node_of(&self, core: u32) -> Option<u32> {
        if self.nodes.is_empty() { Some(0) } else { self.nodes.get(&core).copied() }
    }

    /// Temperature of each disk that has a sensor, in thousandths of a degree Celsius.
    pub fn temperatures(&self) -> &HashMap<String, i64> {
        &self.temperatures
    }

    /// Throttle events of the machine; None where it does not count them.
    pub fn throttle_events(&self) -> Option<u64> {
        self.events
    }

    fn read_values(&mut self) {
        self.temperatures = self
            .sensors
            .iter()
            .filter_map(|(disk, file)| Some((disk.clone(), number(file)?)))
            .collect();
        let throttles: Vec<Throttle> = self.throttled_cpus.iter().map(read_throttle).collect();
        self.events = throttle_events(&throttles);
    }
}

/// The temperature file of every disk that has one (nvme's own, or drivetemp's).
fn sensors(roots: &Roots) -> Vec<(String, PathBuf)> {
    let block = roots.sys.join("block");
    names(&block)
        .into_iter()
        .filter_map(|disk| {
            let file = sensor_under(&block.join(&disk).join("device"))?;
            Some((disk, file))
        })
        .collect()
}

/// Old kernels have `device/hwmon3`, new ones `device/hwmon/hwmon3`; behind a multipath device are
/// the controllers, each with its own.
fn sensor_under(device: &Path) -> Option<PathBuf> {
    let mut folders = vec![device.to_owned(), device.join("hwmon")];
    for name in names(device).iter().filter(|name| number_after("nvme", name).is_some()) {
        folders.extend([device.join(name), device.join(name).join("hwmon")]);
    }
    folders.iter().find_map(|folder| {
        let name = names(folder).into_iter().find(|n| number_after("hwmon", n).is_some())?;
        Some(folder.join(name).join("temp1_input")).filter(|file| file.exists())
    })
}

fn throttled_cpus(roots: &Roots) -> Vec<ThrottleFiles> {
    let cpus = roots.sys.join(CPUS);
    names(&cpus)
        .iter()
        .filter(|name| number_after("cpu", name).is_some())
        .map(|name| cpus.join(name))
        .filter(|cpu| cpu.join("thermal_throttle").exists())
        .map(|cpu| ThrottleFiles {
            package: number(&cpu.join("topology/physical_package_id")).unwrap_or(0),
            core: number(&cpu.join("topology/core_id")).unwrap_or(0),
            folder: cpu.join("thermal_throttle"),
        })
        .collect()
}

fn read_throttle(cpu: &ThrottleFiles) -> Throttle {
    let count = |name: &str| number(&cpu.folder.join(name)).and_then(|n| u64::try_from(n).ok());
    Throttle {
        package: cpu.package,
        core: cpu.core,
        core_events: count("core_throttle_count"),
        package_events: count("package_throttle_count"),
    }
}

fn number(file: &Path) -> Option<i64> {
    parse_number(&text(file)?)
}
