//! The facts of a host: what stands in a report's test configuration tables.
//!
//! Nothing unreadable fails the whole: it becomes null (or the nearest plain value where null has
//! no sense) and one sentence in `faults`.

pub mod bounds;
pub mod cloud;
pub mod disks;
pub mod host;
pub mod layers;
pub mod target;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::guest;
use crate::job::{self, find_program, search_path};
use crate::probe::meters::hidden_meters_fault;
use crate::roots::{Roots, list_names, read_number, read_value};
use crate::runs::Runs;

/// Everything that is known of a host.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct HostFacts {
    pub cpu: host::CpuFacts,
    pub memory: host::MemoryFacts,
    pub disks: Vec<disks::DiskFacts>,
    pub nics: Vec<NicFacts>,
    pub kernel: host::KernelFacts,
    pub machine: host::MachineFacts,
    pub cloud: Option<cloud::CloudFacts>,
    pub target: Option<target::TargetFacts>,
    pub target_fault: Option<target::TargetFault>,
    pub tools: Vec<ToolFacts>,
    pub io_limits: Vec<bounds::IoLimit>,
    pub faults: Vec<String>,
}

/// Gather all facts; `path` is the target, if any, and `tools` are run to tell their version.
/// With `with_cloud` the cloud's metadata service is asked.
#[must_use]
pub fn gather_facts(
    roots: &Roots,
    path: Option<&Path>,
    tools: &ToolCommands,
    with_cloud: bool,
    runs: &Runs,
) -> HostFacts {
    let mut faults = Vec::new();
    let cpu = host::cpu_facts(roots, &mut faults);
    let memory = host::memory_facts(roots, &mut faults);
    let kernel = host::kernel_facts(roots, &mut faults);
    let machine = host::machine_facts(roots);
    let cloud = if with_cloud { cloud::cloud_facts(&machine, &mut faults) } else { None };
    let asked = path.map(|path| target::target_facts(roots, path, &mut faults));
    let (target, target_fault) = match asked.transpose() {
        Ok(target) => (target, None),
        Err(fault) => (None, Some(fault)),
    };
    let beneath = target.as_ref().map_or(&[][..], |target| &target.devices);
    let disks = disks::disk_facts(roots, beneath, &mut faults);
    let nics = nic_facts(roots);
    faults.extend(hidden_meters_fault(roots));
    let tools = query_tools(tools, runs, &mut faults);
    HostFacts {
        cpu,
        memory,
        disks,
        nics,
        kernel,
        machine,
        cloud,
        target,
        target_fault,
        tools,
        io_limits: bounds::own_io_limits(roots),
        faults,
    }
}

/// What to run for each tool's version.
pub type ToolCommands = BTreeMap<String, Vec<String>>;

/// A tool that takes longer to tell its version waits for something: on a host busy with others
/// some took more than 5 s.
const TOOL_TIMEOUT_S: f64 = 15.0;
/// The first start of fio in an emulated guest on a busy node takes longer still; it is all that is
/// asked there.
const GUEST_TOOL_TIMEOUT_S: f64 = 30.0;
/// A version is a line of a table.
const MAX_LINE_CHARS: usize = 200;

/// One tool.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct ToolFacts {
    pub name: String,
    pub path: Option<String>,
    pub version: Option<String>,
    pub fault: Option<String>,
}

/// Ask every tool, one after the other.
fn query_tools(asked: &ToolCommands, runs: &Runs, faults: &mut Vec<String>) -> Vec<ToolFacts> {
    asked.iter().map(|(name, argv)| tool_facts(name, argv, runs, faults)).collect()
}

fn tool_facts(name: &str, argv: &[String], runs: &Runs, faults: &mut Vec<String>) -> ToolFacts {
    let program = argv.first().and_then(|program| find_program(program, &search_path()));
    let mut facts = ToolFacts { name: name.to_owned(), path: None, version: None, fault: None };
    let Some(program) = program else { return facts };
    facts.path = Some(program.display().to_string());
    match first_line(argv, runs) {
        Ok(line) => facts.version = Some(line),
        Err(fault) => {
            faults.push(format!("The version of {name} is unknown: {fault}."));
            facts.fault = Some(fault);
        }
    }
    facts
}

/// The first line of a program that ends well; else how it failed. What a program prints when it
/// fails is no version.
fn first_line(argv: &[String], runs: &Runs) -> Result<String, String> {
    let patience_s = if guest::is_session_guest() { GUEST_TOOL_TIMEOUT_S } else { TOOL_TIMEOUT_S };
    let ended = job::run_program(runs, argv, patience_s).map_err(|error| error.message)?;
    if let Some(fault) = ended.failure() {
        return Err(format!("it {fault}"));
    }
    // Some tools speak of themselves on stderr only.
    let line = [ended.stdout, ended.stderr].iter().find_map(|output| first_text_line(output));
    line.ok_or_else(|| "it printed nothing".to_owned())
}

fn first_text_line(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_LINE_CHARS).collect())
}

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
pub fn nic_facts(roots: &Roots) -> Vec<NicFacts> {
    let folder = roots.sys.join("class/net");
    list_names(&folder)
        .into_iter()
        // `bonding_masters` is a file among the folders of ports.
        .filter(|name| name != "lo" && folder.join(name).is_dir())
        .map(|name| facts_of_nic(&folder.join(&name), name))
        .collect()
}

fn facts_of_nic(folder: &Path, name: String) -> NicFacts {
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let state = read_value(&folder.join("operstate")).unwrap_or_default();
    let has_link = || read_number(&folder.join("carrier")) == Some(1);
    NicFacts {
        name,
        driver: driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned())),
        // A port without a link says -1 or refuses to answer.
        speed_mbit_s: read_number(&folder.join("speed")),
        mtu: read_number(&folder.join("mtu")).unwrap_or(0),
        // Ports that do not tell their state (virtual ones) may still tell that they have a link.
        up: state == "up" || (state == "unknown" && has_link()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn the_first_line_that_says_something() {
        assert_eq!(first_text_line(b"\n  fio-3.33  \nmore").as_deref(), Some("fio-3.33"));
        assert_eq!(first_text_line(b"\n \n"), None);
        assert_eq!(first_text_line("x".repeat(900).as_bytes()).map(|line| line.len()), Some(200));
        assert!(first_text_line(&[0xff, b'a']).is_some());
    }

    #[test]
    fn a_port_with_a_link_one_without_and_the_loopback() {
        let tree = TestFolder::new();
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
        assert_eq!(nic_facts(&roots), expected);
    }
}
