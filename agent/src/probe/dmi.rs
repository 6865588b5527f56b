//! DMI memory devices (SMBIOS type 17), from the table as the firmware wrote it.

use serde::Serialize;

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
            MEMORY_DEVICE => modules.extend(module(structure, strings)),
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

fn module(structure: &[u8], strings: &[u8]) -> Option<MemoryModule> {
    let size_bytes = size(structure)?;
    let speed = word(structure, 0x20)
        .filter(|&speed| is_known(speed))
        .or_else(|| word(structure, 0x15).filter(|&speed| is_known(speed)));
    Some(MemoryModule {
        slot: text(structure, strings, 0x10).unwrap_or_else(|| "unnamed".into()),
        size_bytes,
        kind: kind_name(*structure.get(0x12)?),
        speed_mts: speed.map(u32::from),
    })
}

/// None for an empty slot and for an unknown size.
fn size(structure: &[u8]) -> Option<u64> {
    match word(structure, 0x0C)? {
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

fn word(structure: &[u8], offset: usize) -> Option<u16> {
    let bytes = structure.get(offset..offset + 2)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn text(structure: &[u8], strings: &[u8], offset: usize) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
