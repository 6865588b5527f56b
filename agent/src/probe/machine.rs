//! What the kernel shows of a machine: its processor, its DMI table, its NUMA nodes, and the small
//! forms that these files share.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;

/// What `/proc/cpuinfo` tells of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuInfo {
    /// The processor's name; on ARM the implementer and part by name where known, else by number.
    pub model: Option<String>,
    /// Logical CPUs listed.
    pub threads: u32,
    /// Distinct physical ids; 0 where the file has none.
    pub sockets: u32,
    /// Distinct (physical id, core id); 0 where the file has none.
    pub cores: u32,
    /// The flag `hypervisor` is set.
    pub under_hypervisor: bool,
}

/// Parse `/proc/cpuinfo`.
#[must_use]
pub fn parse_cpuinfo(text: &str) -> CpuInfo {
    let mut processors = CpuInfo::default();
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut arm = (None, None);
    let mut socket = "";
    for (key, value) in text.lines().filter_map(key_and_value) {
        match key {
            "processor" => processors.threads += 1,
            "model name" | "cpu model" | "cpu" if processors.model.is_none() => {
                processors.model = Some(value.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            "physical id" => {
                socket = value;
                sockets.insert(value);
            }
            "core id" => {
                cores.insert((socket, value));
            }
            "flags" => processors.under_hypervisor |= value.split(' ').any(|f| f == "hypervisor"),
            "CPU implementer" => arm.0 = Some(value),
            "CPU part" => arm.1 = Some(value),
            _ => {}
        }
    }
    processors.sockets = sockets.len() as u32;
    processors.cores = cores.len() as u32;
    if let (None, (Some(implementer), Some(part))) = (&processors.model, arm) {
        processors.model = Some(arm_name(implementer, part));
    }
    processors
}

fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    Some((key.trim(), value.trim()))
}

fn arm_name(implementer: &str, part: &str) -> String {
    let known = match (implementer, part) {
        ("0x41", "0xd08") => "ARM Cortex-A72",
        ("0x41", "0xd0c") => "ARM Neoverse N1",
        ("0x41", "0xd40") => "ARM Neoverse V1",
        ("0x41", "0xd49") => "ARM Neoverse N2",
        ("0x41", "0xd4f") => "ARM Neoverse V2",
        ("0xc0", "0xac3") => "Ampere AmpereOne",
        _ => return format!("ARM implementer {implementer} part {part}"),
    };
    known.to_owned()
}

/// SMBIOS type of a memory device.
const MEMORY_DEVICE: u8 = 17;
/// SMBIOS type that ends the table.
const END_OF_TABLE: u8 = 127;

/// One populated DRAM slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryModule {
    /// The slot's name on the board.
    pub slot: String,
    /// Its size.
    pub size_bytes: u64,
    /// DDR4, DDR5, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Megatransfers a second as configured; None where unknown.
    pub speed_mts: Option<u32>,
}

/// The populated slots of a whole table (`/sys/firmware/dmi/tables/DMI`) or of single entries
/// joined (`/sys/firmware/dmi/entries/17-*/raw`). A table that is cut short gives what it has.
#[must_use]
pub fn parse_modules(table: &[u8]) -> Vec<MemoryModule> {
    let mut modules = Vec::new();
    let mut rest = table;
    while let Some((structure, strings, after)) = next_structure(rest) {
        match structure[0] {
            MEMORY_DEVICE => modules.extend(parse_module(structure, strings)),
            END_OF_TABLE => break,
            _ => {}
        }
        rest = after;
    }
    modules
}

/// A structure, its strings, and what follows: the strings end with two zero bytes.
fn next_structure(table: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let length = usize::from(*table.get(1)?);
    if length < 4 || table.len() < length {
        return None;
    }
    let (structure, after) = table.split_at(length);
    let end = after.windows(2).position(|pair| pair == [0, 0]).unwrap_or(after.len());
    let rest = after.get(end + 2..).unwrap_or(&[]);
    Some((structure, &after[..end], rest))
}

fn parse_module(structure: &[u8], strings: &[u8]) -> Option<MemoryModule> {
    let size_bytes = module_size(structure)?;
    let speed = u16_at(structure, 0x20)
        .filter(|&speed| is_known(speed))
        .or_else(|| u16_at(structure, 0x15).filter(|&speed| is_known(speed)));
    Some(MemoryModule {
        slot: string_at(structure, strings, 0x10).unwrap_or_else(|| "unnamed".into()),
        size_bytes,
        kind: kind_name(*structure.get(0x12)?),
        speed_mts: speed.map(u32::from),
    })
}

/// None for an empty slot and for an unknown size.
fn module_size(structure: &[u8]) -> Option<u64> {
    match u16_at(structure, 0x0C)? {
        0 | 0xFFFF => None,
        0x7FFF => {
            let bytes = structure.get(0x1C..0x20)?;
            let megabytes = u32::from_le_bytes(bytes.try_into().ok()?) & 0x7FFF_FFFF;
            Some(u64::from(megabytes) << 20)
        }
        kilobytes if kilobytes & 0x8000 != 0 => Some(u64::from(kilobytes & 0x7FFF) << 10),
        megabytes => Some(u64::from(megabytes) << 20),
    }
}

fn is_known(speed: u16) -> bool {
    !matches!(speed, 0 | 0xFFFF)
}

fn u16_at(structure: &[u8], offset: usize) -> Option<u16> {
    let bytes = structure.get(offset..offset + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn string_at(structure: &[u8], strings: &[u8], offset: usize) -> Option<String> {
    let number = usize::from(*structure.get(offset)?);
    let bytes = strings.split(|&byte| byte == 0).nth(number.checked_sub(1)?)?;
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn kind_name(code: u8) -> String {
    let name = match code {
        0x0F => "SDRAM",
        0x12 => "DDR",
        0x13 => "DDR2",
        0x18 => "DDR3",
        0x1A => "DDR4",
        0x1B => "LPDDR",
        0x1C => "LPDDR2",
        0x1D => "LPDDR3",
        0x1E => "LPDDR4",
        0x1F => "NVDIMM",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        _ => return format!("type {code:#04x}"),
    };
    name.to_owned()
}

/// The node of every CPU, from the `cpulist` of every node.
#[must_use]
pub fn nodes_of_cpus<'a>(cpulists: impl IntoIterator<Item = (u32, &'a str)>) -> HashMap<u32, u32> {
    let mut nodes = HashMap::new();
    for (node, cpulist) in cpulists {
        nodes.extend(parse_cpu_list(cpulist).into_iter().map(|cpu| (cpu, node)));
    }
    nodes
}

/// The number at the end of a sysfs name such as `node12` or `cpu3`; None for `cpufreq`.
#[must_use]
pub fn number_after(prefix: &str, name: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// The word in brackets, as in `none [mq-deadline] kyber`; a single bare word is chosen too.
#[must_use]
pub fn bracketed_word(text: &str) -> Option<String> {
    let text = text.trim();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match bracketed {
        Some((word, _)) => Some(word.to_owned()),
        None if text.is_empty() || text.contains(' ') => None,
        None => Some(text.to_owned()),
    }
}

/// The members of a kernel list such as `0-3,8,10-11`; odd parts are passed over.
#[must_use]
pub fn parse_cpu_list(text: &str) -> Vec<u32> {
    let mut members = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            // No machine has more CPUs; a longer range is not a list of them.
            members.extend(first..=last.min(first.saturating_add(65_535)));
        }
    }
    members
}

/// The value of a key in a file of `Key:\tvalue` lines, such as `/proc/PID/status`.
#[must_use]
pub fn status_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// The value of a key in os-release form, quotes taken off.
#[must_use]
pub fn os_release_value(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// A trimmed text, None when nothing is left.
#[must_use]
pub fn non_empty(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('\0').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_x86_guest_of_linux_6_18() {
        let one = |n: u32| {
            format!(
                "processor\t: {n}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R)   \
                 Processor @ 2.90GHz\nphysical id\t: 0\ncore id\t\t: {n}\nflags\t\t: fpu vme \
                 hypervisor lahf_lm\n\n"
            )
        };
        let processors = parse_cpuinfo(&(one(0) + &one(1)));
        assert_eq!(processors.model.as_deref(), Some("Intel(R) Xeon(R) Processor @ 2.90GHz"));
        assert_eq!((processors.threads, processors.sockets, processors.cores), (2, 1, 2));
        assert!(processors.under_hypervisor);
    }

    #[test]
    fn the_same_core_number_in_two_sockets_is_two_cores() {
        let text = "processor: 0\nphysical id: 0\ncore id: 0\n\nprocessor: 1\nphysical id: 1\n\
            core id: 0\n\nprocessor: 2\nphysical id: 1\ncore id: 0\n";
        let processors = parse_cpuinfo(text);
        assert_eq!((processors.threads, processors.sockets, processors.cores), (3, 2, 2));
    }

    #[test]
    fn an_arm_server_has_no_model_name() {
        let text = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\n\
            CPU architecture: 8\nCPU part\t: 0xd40\n";
        assert_eq!(parse_cpuinfo(text).model.as_deref(), Some("ARM Neoverse V1"));
        let text = text.replace("0xd40", "0xfff");
        let name = "ARM implementer 0x41 part 0xfff";
        assert_eq!(parse_cpuinfo(&text).model.as_deref(), Some(name));
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(parse_cpuinfo("odd text\n"), CpuInfo::default());
    }

    /// A type 17 structure of SMBIOS 3 (length 0x54) with the fields that matter set.
    fn device(size: u16, extended: u32, kind: u8, speed: u16, configured: u16) -> Vec<u8> {
        let mut bytes = vec![0; 0x54];
        (bytes[0], bytes[1], bytes[0x10], bytes[0x12]) = (17, 0x54, 1, kind);
        bytes[0x0C..0x0E].copy_from_slice(&size.to_le_bytes());
        bytes[0x15..0x17].copy_from_slice(&speed.to_le_bytes());
        bytes[0x1C..0x20].copy_from_slice(&extended.to_le_bytes());
        bytes[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
        bytes.extend_from_slice(b"DIMM_A1\0Bank 0\0\0");
        bytes
    }

    #[test]
    fn a_table_with_a_large_module_an_empty_slot_and_others() {
        let bios = [&[0, 4, 0, 0][..], b"vendor\0\0"].concat();
        let table = [
            bios,
            device(0x7FFF, 65_536, 0x22, 5600, 4800),
            device(0, 0, 2, 0, 0),
            device(16_384, 0, 0x1A, 3200, 0),
            vec![127, 4, 0, 0, 0, 0],
            device(1024, 0, 0x1A, 1, 1),
        ]
        .concat();
        let module = |size_bytes, kind: &str, speed| MemoryModule {
            slot: "DIMM_A1".into(),
            size_bytes,
            kind: kind.into(),
            speed_mts: Some(speed),
        };
        let expected = [module(64 << 30, "DDR5", 4800), module(16 << 30, "DDR4", 3200)];
        assert_eq!(parse_modules(&table), expected);
    }

    #[test]
    fn a_structure_without_strings_and_an_unknown_kind() {
        let mut bytes = device(0x8000 | 512, 0, 0x77, 0xFFFF, 0);
        bytes.truncate(0x54);
        bytes[0x10] = 0;
        bytes.extend_from_slice(&[0, 0]);
        let expected = MemoryModule {
            slot: "unnamed".into(),
            size_bytes: 512 << 10,
            kind: "type 0x77".into(),
            speed_mts: None,
        };
        assert_eq!(parse_modules(&bytes), [expected]);
    }

    #[test]
    fn garbage_and_a_cut_table_end_quietly() {
        assert!(parse_modules(&[]).is_empty());
        assert!(parse_modules(&[17, 2, 0, 0, 0]).is_empty());
        assert!(parse_modules(&[17, 0x54, 0]).is_empty());
        let whole = device(1024, 0, 0x1A, 2400, 2400);
        for length in 0..whole.len() {
            assert!(parse_modules(&whole[..length]).len() <= 1);
        }
    }

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

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(bracketed_word("[none] mq-deadline kyber bfq\n").as_deref(), Some("none"));
        assert_eq!(bracketed_word("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(bracketed_word("none\n").as_deref(), Some("none"));
        assert_eq!(bracketed_word("\n"), None);
        assert_eq!(bracketed_word("always madvise"), None);
    }

    #[test]
    fn a_list_has_its_members() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_cpu_list("\n"), Vec::<u32>::new());
        assert_eq!(parse_cpu_list("x,2,5-"), [2]);
        assert_eq!(parse_cpu_list("7-4294967295").len(), 65_536);
    }

    #[test]
    fn a_setting_loses_its_quotes() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(
            os_release_value(text, "PRETTY_NAME").unwrap(),
            "Debian GNU/Linux 12 (bookworm)"
        );
        assert_eq!(os_release_value(text, "PRETTY"), None);
    }

    #[test]
    fn blank_text_is_nothing() {
        assert_eq!(non_empty(" \0\n"), None);
        assert_eq!(non_empty("  SAMSUNG MZQL2   \n").as_deref(), Some("SAMSUNG MZQL2"));
    }
}
