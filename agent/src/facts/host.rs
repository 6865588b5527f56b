//! Processors, memory and operating system.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::error::io_error_text;
use crate::facts::bounds::own_memory_limit_bytes;
use crate::probe::counters::{parse_meminfo, parse_node_total};
use crate::probe::machine::{
    CpuInfo, MemoryModule, bracketed_word, non_empty, number_after, os_release_value,
    parse_cpu_list, parse_cpuinfo, parse_modules, status_value,
};
use crate::processor::own_quota_cores;
use crate::roots::{Roots, list_names, read_number, read_text};

const CPUS: &str = "devices/system/cpu";
const NODES: &str = "devices/system/node";

/// The processors.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct CpuFacts {
    pub model: String,
    pub sockets: u32,
    pub cores: u32,
    pub threads: u32,
    pub governor: Option<String>,
    pub max_mhz: Option<f64>,
    pub numa: Vec<NumaNode>,
    pub allowed_cores: Option<u32>,
    pub quota_cores: Option<f64>,
}

/// One NUMA node.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct NumaNode {
    pub id: u32,
    pub cpus: String,
    pub memory_bytes: u64,
}

/// Memory and its modules.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct MemoryFacts {
    pub total_bytes: u64,
    pub modules: Vec<MemoryModule>,
    pub limit_bytes: Option<u64>,
}

/// The operating system and its settings.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct KernelFacts {
    pub release: String,
    pub os: String,
    pub architecture: String,
    pub hostname: String,
    pub boot_id: String,
    pub transparent_hugepage: Option<String>,
    pub io_uring_disabled: Option<i64>,
    pub hypervisor: Option<String>,
}

/// What the firmware calls the machine; a cloud tells its name here, some the instance type.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct MachineFacts {
    pub vendor: Option<String>,
    pub product: Option<String>,
    pub asset_tag: Option<String>,
}

/// Facts of the machine; all None where the kernel shows no DMI, as on most small ARM boards.
#[must_use]
pub fn machine_facts(roots: &Roots) -> MachineFacts {
    let read = |name: &str| roots.sys_value(format!("class/dmi/id/{name}"));
    MachineFacts {
        vendor: read("sys_vendor"),
        product: read("product_name"),
        asset_tag: read("chassis_asset_tag"),
    }
}

/// Facts of the processors.
pub fn cpu_facts(roots: &Roots, faults: &mut Vec<String>) -> CpuFacts {
    let processors = parse_cpuinfo(&read_proc_file(roots, "cpuinfo", faults).unwrap_or_default());
    let online = online_cpus(roots, &processors);
    let (sockets, cores) = socket_and_core_counts(roots, &online, &processors);
    let model = processors.model.unwrap_or_else(|| {
        faults.push("The processor's model is not told by /proc/cpuinfo.".into());
        "unknown".into()
    });
    CpuFacts {
        model,
        sockets,
        cores,
        threads: online.len() as u32,
        governor: governor(roots, &online),
        max_mhz: max_mhz(roots, &online),
        numa: numa_nodes(roots),
        allowed_cores: allowed_cores(roots),
        quota_cores: own_quota_cores(roots),
    }
}

/// Cores that this agent, and so what it starts, may use.
fn allowed_cores(roots: &Roots) -> Option<u32> {
    let status = read_text(&roots.proc.join("thread-self/status"))?;
    let allowed = parse_cpu_list(status_value(&status, "Cpus_allowed_list")?);
    u32::try_from(allowed.len()).ok().filter(|&count| count > 0)
}

fn online_cpus(roots: &Roots, processors: &CpuInfo) -> Vec<u32> {
    let online = roots.sys_value(format!("{CPUS}/online")).map(|text| parse_cpu_list(&text));
    online
        .filter(|cpus| !cpus.is_empty())
        .unwrap_or_else(|| (0..processors.threads.max(1)).collect())
}

/// Sockets and cores with at least one CPU online; by /proc/cpuinfo where sysfs has no topology.
fn socket_and_core_counts(roots: &Roots, online: &[u32], processors: &CpuInfo) -> (u32, u32) {
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    for cpu in online {
        let read = |name: &str| roots.sys_value(format!("{CPUS}/cpu{cpu}/topology/{name}"));
        if let (Some(socket), Some(core)) = (read("physical_package_id"), read("core_id")) {
            sockets.insert(socket.clone());
            cores.insert((socket, core));
        }
    }
    if cores.is_empty() {
        return (processors.sockets.max(1), processors.cores.max(online.len() as u32).max(1));
    }
    (sockets.len() as u32, cores.len() as u32)
}

/// The governor of all CPUs, or all that are in use; None where there is no frequency scaling.
fn governor(roots: &Roots, online: &[u32]) -> Option<String> {
    let governors: BTreeSet<String> = online
        .iter()
        .filter_map(|cpu| roots.sys_value(format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

fn max_mhz(roots: &Roots, online: &[u32]) -> Option<f64> {
    online
        .iter()
        .filter_map(|cpu| {
            read_number::<u32>(&roots.sys.join(format!("{CPUS}/cpu{cpu}/cpufreq/cpuinfo_max_freq")))
        })
        .max()
        .map(|kilohertz| f64::from(kilohertz) / 1000.0)
}

fn numa_nodes(roots: &Roots) -> Vec<NumaNode> {
    let mut nodes: Vec<NumaNode> = roots
        .sys_names(NODES)
        .iter()
        .filter_map(|name| {
            let folder = roots.sys.join(NODES).join(name);
            Some(NumaNode {
                id: number_after("node", name)?,
                cpus: read_text(&folder.join("cpulist"))?.trim().to_owned(),
                memory_bytes: parse_node_total(&read_text(&folder.join("meminfo"))?)?,
            })
        })
        .collect();
    nodes.sort_by_key(|node| node.id);
    nodes
}

/// Facts of the memory.
pub fn memory_facts(roots: &Roots, faults: &mut Vec<String>) -> MemoryFacts {
    let meminfo = parse_meminfo(&read_proc_file(roots, "meminfo", faults).unwrap_or_default());
    MemoryFacts {
        total_bytes: meminfo.total_bytes.unwrap_or(0),
        modules: memory_modules(roots, faults),
        limit_bytes: own_memory_limit_bytes(roots),
    }
}

/// From the firmware's whole table, or from its entries where only those are shown.
fn memory_modules(roots: &Roots, faults: &mut Vec<String>) -> Vec<MemoryModule> {
    let firmware = roots.sys.join("firmware/dmi");
    let entries = firmware.join("entries");
    let memory_entries = list_names(&entries).into_iter().filter(|name| name.starts_with("17-"));
    let table = fs::read(firmware.join("tables/DMI")).or_else(|error| {
        let single: Vec<Vec<u8>> = memory_entries
            .filter_map(|name| fs::read(entries.join(name).join("raw")).ok())
            .collect();
        if single.is_empty() { Err(error) } else { Ok(single.concat()) }
    });
    match table {
        Ok(table) => parse_modules(&table),
        Err(error) => {
            faults.push(format!("Memory modules are unknown: DMI: {}.", io_error_text(&error)));
            Vec::new()
        }
    }
}

/// Facts of the operating system.
pub fn kernel_facts(roots: &Roots, faults: &mut Vec<String>) -> KernelFacts {
    let mut name = |file: &str| {
        let text = read_proc_file(roots, &format!("sys/kernel/{file}"), faults);
        text.and_then(|text| non_empty(&text)).unwrap_or_else(|| "unknown".into())
    };
    let (release, hostname, boot_id) =
        (name("osrelease"), name("hostname"), name("random/boot_id"));
    let hugepage = roots.sys_value("kernel/mm/transparent_hugepage/enabled");
    KernelFacts {
        release,
        os: os_name(),
        architecture: std::env::consts::ARCH.to_owned(),
        hostname,
        boot_id,
        transparent_hugepage: hugepage.and_then(|text| bracketed_word(&text)),
        io_uring_disabled: read_number(&roots.proc.join("sys/kernel/io_uring_disabled")),
        hypervisor: hypervisor_name(roots),
    }
}

fn os_name() -> String {
    ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .filter_map(|file| read_text(Path::new(file)))
        .find_map(|text| os_release_value(&text, "PRETTY_NAME"))
        .unwrap_or_else(|| "unknown".into())
}

/// The hypervisor below, by name where it tells one; None on bare metal.
fn hypervisor_name(roots: &Roots) -> Option<String> {
    let told = roots.sys_value("hypervisor/type");
    let by_flag = || {
        let processors = parse_cpuinfo(&read_text(&roots.proc.join("cpuinfo"))?);
        processors.under_hypervisor.then(|| signature().unwrap_or_else(|| "unknown".into()))
    };
    let by_board = || {
        let product = roots.sys_value("class/dmi/id/product_name")?;
        let virtual_board = ["KVM", "VMware", "VirtualBox", "HVM domU", "Virtual Machine"];
        virtual_board.iter().any(|name| product.contains(name)).then_some(product)
    };
    told.or_else(by_flag).or_else(by_board)
}

/// Where a hypervisor shows its name, and where the one below it does: KVM that plays Hyper-V for
/// Windows still shows its own.
#[cfg(target_arch = "x86_64")]
const SIGNATURE_LEAVES: [u32; 2] = [0x4000_0100, 0x4000_0000];

/// The name by the twelve letters that an x86 hypervisor shows.
#[cfg(target_arch = "x86_64")]
fn signature() -> Option<String> {
    let letters = SIGNATURE_LEAVES.map(|leaf| {
        let words = crate::sys::cpu_leaf(leaf);
        words.map(u32::to_le_bytes).concat()
    });
    hypervisor_of_signature(letters.each_ref().map(Vec::as_slice))
}

/// The first that is known; else the letters of the last as they are.
#[cfg(any(test, target_arch = "x86_64"))]
fn hypervisor_of_signature<const N: usize>(letters: [&[u8]; N]) -> Option<String> {
    let names = letters.map(|letters| non_empty(&String::from_utf8_lossy(letters)));
    let known = names.iter().flatten().find_map(|name| known_hypervisor(name));
    known.map(str::to_owned).or_else(|| names.into_iter().next_back().flatten())
}

/// TCG is QEMU without the help of the processor: everything in such a guest is emulated.
#[cfg(any(test, target_arch = "x86_64"))]
fn known_hypervisor(letters: &str) -> Option<&'static str> {
    Some(match letters {
        "KVMKVMKVM" => "KVM",
        "TCGTCGTCGTCG" => "TCG",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "ACRNACRNACRN" => "ACRN",
        "bhyve bhyve" => "bhyve",
        "VBoxVBoxVBox" => "VirtualBox",
        "prl hyperv" | "lrpepyh vr" => "Parallels",
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn signature() -> Option<String> {
    None
}

fn read_proc_file(roots: &Roots, name: &str, faults: &mut Vec<String>) -> Option<String> {
    match fs::read(roots.proc.join(name)) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) => {
            faults.push(format!("/proc/{name} cannot be read: {}.", io_error_text(&error)));
            None
        }
    }
}

#[cfg(test)]
mod machine_tests {
    use super::*;
    use crate::trial::TestFolder;

    #[test]
    fn a_machine_is_what_its_firmware_calls_it() {
        let tree = TestFolder::new();
        let roots = Roots { proc: "/proc".into(), sys: tree.path().to_owned() };
        let unknown = MachineFacts { vendor: None, product: None, asset_tag: None };
        assert_eq!(machine_facts(&roots), unknown);
        tree.put("class/dmi/id/sys_vendor", "Amazon EC2\n");
        tree.put("class/dmi/id/product_name", "i4i.2xlarge\n");
        tree.put("class/dmi/id/chassis_asset_tag", " \n");
        let expected = MachineFacts {
            vendor: Some("Amazon EC2".into()),
            product: Some("i4i.2xlarge".into()),
            asset_tag: None,
        };
        assert_eq!(machine_facts(&roots), expected);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_hypervisor_is_known_by_its_letters() {
        let of = |below: &[u8], shown: &[u8]| hypervisor_of_signature([below, shown]);
        assert_eq!(of(b"", b"TCGTCGTCGTCG").as_deref(), Some("TCG"));
        assert_eq!(of(b"\x07\0\0\0", b"KVMKVMKVM\0\0\0").as_deref(), Some("KVM"));
        assert_eq!(of(b"KVMKVMKVM\0\0\0", b"Microsoft Hv").as_deref(), Some("KVM"));
        assert_eq!(of(b"odd letters.", b"Microsoft Hv").as_deref(), Some("Hyper-V"));
        assert_eq!(of(b"odd letters.", b"Other HV 2.0").as_deref(), Some("Other HV 2.0"));
        assert_eq!(of(b"", b"\0\0\0\0\0\0\0\0\0\0\0\0"), None);
    }
}
