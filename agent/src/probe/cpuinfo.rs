//! `/proc/cpuinfo`: the processor's name, and whether a hypervisor is below.

use std::collections::BTreeSet;

/// What `/proc/cpuinfo` tells of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Processors {
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
pub fn parse_cpuinfo(text: &str) -> Processors {
    let mut processors = Processors::default();
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    let mut arm = (None, None);
    let mut socket = "";
    for (key, value) in text.lines().filter_map(pair) {
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

fn pair(line: &str) -> Option<(&str, &str)> {
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
        assert_eq!(parse_cpuinfo("odd text\n"), Processors::default());
    }
}
