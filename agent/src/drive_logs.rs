//! What `NVMe` drives count themselves: raw log pages, which the controller decodes.
//!
//! A page that a drive does not offer is left out with the status it gave. Nothing is set, and no
//! event that others wait for is cleared.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::error::io_error_text;
use crate::sys::nvme::{
    ALL_NAMESPACES, AnswerBuffer, BUFFER_BYTES, LogPage, Outcome, get_feature, get_log_page,
    identify, namespace_id,
};

const SMART: u8 = 0x02;
const ENDURANCE_GROUP: u8 = 0x09;
const FDP_STATISTICS: u8 = 0x22;
const POWER_MEASUREMENT: u8 = 0x25;
const OCP_SMART: u8 = 0xC0;
const VENDOR_SMART: u8 = 0xCA;
const SMART_BYTES: u32 = 512;
const FDP_BYTES: u32 = 64;
/// Its header, which has average and maximum; a histogram follows.
const POWER_MEASUREMENT_BYTES: u32 = 64;

const IDENTIFY_NAMESPACE: u8 = 0x00;
/// Where Identify Namespace has its endurance group (ENDGID).
const ENDURANCE_GROUP_AT: usize = 102;
const IDENTIFY_CONTROLLER: u8 = 0x01;
const IDENTIFY_UUIDS: u8 = 0x17;
/// UUID c194d55b-e094-4794-a21d-29998f56be6f: the OCP's extensions.
const OCP_UUID: [u8; 16] = [
    0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f,
];
/// Intel, Solidigm, Memblaze: their page 0xCA counts what the flash wrote.
const VENDORS_WITH_NAND_PAGE: [u16; 3] = [0x8086, 0x025e, 0x1c5f];
const FEATURE_POWER_MANAGEMENT: u8 = 0x02;
/// Bits of the controller's attributes (CTRATT).
const HAS_ENDURANCE_GROUPS: u32 = 1 << 4;
const HAS_FDP: u32 = 1 << 19;
const HAS_POWER_MEASUREMENT: u32 = 1 << 21;
const POWER_STATES_MAX: usize = 32;
/// Of one session's targets; more are a mistake.
const DRIVES_MAX: usize = 256;

/// The log pages of the drives that were asked for.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct DriveLogs {
    pub drives: Vec<DriveLog>,
}

/// Those of one drive.
#[derive(Debug, Default, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct DriveLog {
    pub device: String,
    pub namespace: Option<u32>,
    pub identity: Option<DriveIdentity>,
    pub power_state: Option<u32>,
    pub pages: Vec<PageReading>,
    pub fault: Option<String>,
}

/// What a controller says of itself.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct DriveIdentity {
    pub vendor: u16,
    pub serial: String,
    pub model: String,
    pub firmware: String,
    pub attributes: u32,
    pub power_states_mw: Vec<u64>,
}

/// One page as it was read.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct PageReading {
    pub page: u8,
    pub took_ns: u64,
    pub status: Option<u16>,
    pub hex: Option<String>,
}

/// Read the pages of these block devices, by the kernel's names.
#[must_use]
pub fn read_drive_logs(devices: &[String]) -> DriveLogs {
    let names = devices.iter().take(DRIVES_MAX).filter(|name| is_nvme_namespace(name));
    DriveLogs { drives: names.map(|name| read_drive(name)).collect() }
}

/// Whether a name is `nvme0n1`'s kind: no partition, no hidden path, no other drive.
fn is_nvme_namespace(name: &str) -> bool {
    let Some((controller, namespace)) =
        name.strip_prefix("nvme").and_then(|rest| rest.split_once('n'))
    else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_number(controller) && is_number(namespace)
}

fn read_drive(name: &str) -> DriveLog {
    let mut log = DriveLog { device: name.to_owned(), ..DriveLog::default() };
    if let Err(error) = fill_drive_log(&mut log) {
        log.fault = Some(match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => "its log pages need CAP_SYS_ADMIN".to_owned(),
            _ => io_error_text(&error),
        });
    }
    log
}

fn fill_drive_log(log: &mut DriveLog) -> io::Result<()> {
    let path = Path::new("/dev").join(&log.device);
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut answer = AnswerBuffer([0; BUFFER_BYTES]);
    let namespace = namespace_id(&device)?;
    log.namespace = Some(namespace);
    let Outcome::Done(_) = identify(&device, IDENTIFY_CONTROLLER, 0, &mut answer)? else {
        return Err(io::Error::other("the drive does not say what it is"));
    };
    let identity = parse_identity(&answer.0);
    let mut pages = vec![LogPage {
        id: SMART,
        namespace: ALL_NAMESPACES,
        bytes: SMART_BYTES,
        ..LogPage::default()
    }];
    pages.push(LogPage {
        id: OCP_SMART,
        uuid_index: ocp_uuid_index(&device, &mut answer)?,
        ..pages[0]
    });
    if identity.attributes & (HAS_FDP | HAS_ENDURANCE_GROUPS) != 0 {
        let group = endurance_group(&device, namespace, &mut answer)?;
        pages.extend(group_pages(identity.attributes, group));
    }
    if identity.attributes & HAS_POWER_MEASUREMENT != 0 {
        // A measurement that somebody has started: to start one would be a change of the drive.
        pages.push(LogPage { id: POWER_MEASUREMENT, bytes: POWER_MEASUREMENT_BYTES, ..pages[0] });
    }
    if VENDORS_WITH_NAND_PAGE.contains(&identity.vendor) {
        pages.push(LogPage { id: VENDOR_SMART, ..pages[0] });
    }
    log.identity = Some(identity);
    if let Outcome::Done(state) = get_feature(&device, FEATURE_POWER_MANAGEMENT)? {
        log.power_state = Some(state & 0x1F);
    }
    for page in pages {
        let reading = read_page(&device, page, &mut answer)?;
        log.pages.push(reading);
    }
    Ok(())
}

/// Which group of the drive a namespace is in; 0 where the drive does not say so.
fn endurance_group(device: &File, namespace: u32, answer: &mut AnswerBuffer) -> io::Result<u16> {
    let Outcome::Done(_) = identify(device, IDENTIFY_NAMESPACE, namespace, answer)? else {
        return Ok(0);
    };
    let at = ENDURANCE_GROUP_AT;
    Ok(u16::from_le_bytes([answer.0[at], answer.0[at + 1]]))
}

/// The pages that count by groups: another group's would be of other namespaces.
fn group_pages(attributes: u32, group: u16) -> Vec<LogPage> {
    if group == 0 {
        return Vec::new();
    }
    let statistics = LogPage {
        id: FDP_STATISTICS,
        namespace: 0,
        specific: group,
        bytes: FDP_BYTES,
        uuid_index: 0,
    };
    let endurance = LogPage {
        id: ENDURANCE_GROUP,
        namespace: ALL_NAMESPACES,
        bytes: SMART_BYTES,
        ..statistics
    };
    let pages = [(HAS_FDP, statistics), (HAS_ENDURANCE_GROUPS, endurance)];
    pages.into_iter().filter(|(bit, _)| attributes & bit != 0).map(|(_, page)| page).collect()
}

fn read_page(device: &File, page: LogPage, answer: &mut AnswerBuffer) -> io::Result<PageReading> {
    let begin = Instant::now();
    let outcome = get_log_page(device, page, answer)?;
    let took_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let (status, hex) = match outcome {
        Outcome::Done(_) => (None, Some(hex_text(&answer.0[..page.bytes as usize]))),
        Outcome::Refused(status) => (Some(status), None),
    };
    Ok(PageReading { page: page.id, took_ns, status, hex })
}

/// Where the drive lists the OCP's UUID, from 1 on; 0 where it lists none.
fn ocp_uuid_index(device: &File, answer: &mut AnswerBuffer) -> io::Result<u8> {
    let Outcome::Done(_) = identify(device, IDENTIFY_UUIDS, 0, answer)? else { return Ok(0) };
    Ok(uuid_index(&answer.0, OCP_UUID))
}

/// The list has entries of 32 bytes from byte 32 on, each with its UUID in the second half.
fn uuid_index(list: &[u8], uuid: [u8; 16]) -> u8 {
    let mut entries = list[32..].chunks_exact(32).take(127);
    entries.position(|entry| entry[16..] == uuid).map_or(0, |place| place as u8 + 1)
}

fn parse_identity(page: &[u8; BUFFER_BYTES]) -> DriveIdentity {
    let number =
        |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let states = (usize::from(page[263]) + 1).min(POWER_STATES_MAX);
    let max_power_mw = |state: usize| {
        let word = number(2048 + 32 * state);
        let units = u64::from(word & 0xFFFF);
        // In 0.1 mW where the bit says so, else in 10 mW.
        if word & 1 << 24 != 0 { units / 10 } else { units * 10 }
    };
    DriveIdentity {
        vendor: u16::from_le_bytes([page[0], page[1]]),
        serial: text(&page[4..24]),
        model: text(&page[24..64]),
        firmware: text(&page[64..72]),
        attributes: number(96),
        power_states_mw: (0..states).map(max_power_mw).collect(),
    }
}

fn text(bytes: &[u8]) -> String {
    let printable = |&b: &u8| if b.is_ascii_graphic() { char::from(b) } else { ' ' };
    bytes.iter().map(printable).collect::<String>().trim().to_owned()
}

fn hex_text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_of_drives_are_told_from_partitions_and_paths() {
        for (name, expected) in [
            ("nvme0n1", true),
            ("nvme12n34", true),
            ("nvme0n1p2", false),
            ("nvme0c0n1", false),
            ("nvme0", false),
            ("nvmen1", false),
            ("sda", false),
            ("../nvme0n1", false),
        ] {
            assert_eq!(is_nvme_namespace(name), expected, "{name}");
        }
    }

    #[test]
    fn an_identity_is_read_as_it_lies() {
        let mut page = [0_u8; BUFFER_BYTES];
        page[0..2].copy_from_slice(&0x1b36_u16.to_le_bytes());
        page[4..12].copy_from_slice(b"IOLAB001");
        page[24..38].copy_from_slice(b"QEMU NVMe Ctrl");
        page[64..66].copy_from_slice(b"1\x07");
        page[96..100].copy_from_slice(&(HAS_FDP | HAS_ENDURANCE_GROUPS).to_le_bytes());
        page[263] = 1;
        page[2048..2050].copy_from_slice(&2500_u16.to_le_bytes());
        page[2080..2084].copy_from_slice(&(0x1F4_u32 | 1 << 24).to_le_bytes());
        let identity = parse_identity(&page);
        assert_eq!(identity.vendor, 0x1b36);
        assert_eq!(identity.serial, "IOLAB001");
        assert_eq!(identity.model, "QEMU NVMe Ctrl");
        assert_eq!(identity.firmware, "1");
        assert_eq!(identity.power_states_mw, [25_000, 50]);
    }

    #[test]
    fn pages_of_groups_are_those_of_the_namespaces_group() {
        let pages = |attributes, group| {
            let pages = group_pages(attributes, group);
            pages.iter().map(|page| (page.id, page.specific)).collect::<Vec<_>>()
        };
        let both = HAS_FDP | HAS_ENDURANCE_GROUPS;
        assert_eq!(pages(both, 3), [(FDP_STATISTICS, 3), (ENDURANCE_GROUP, 3)]);
        assert_eq!(pages(HAS_ENDURANCE_GROUPS, 1), [(ENDURANCE_GROUP, 1)]);
        assert_eq!(pages(both, 0), []);
    }

    #[test]
    fn the_place_of_a_uuid_counts_from_one() {
        let mut list = [0_u8; BUFFER_BYTES];
        assert_eq!(uuid_index(&list, OCP_UUID), 0);
        list[32 + 32 + 16..32 + 64].copy_from_slice(&OCP_UUID);
        assert_eq!(uuid_index(&list, OCP_UUID), 2);
    }

    #[test]
    fn a_drive_that_is_not_there_says_so() {
        let logs = read_drive_logs(&["nvme4095n1".to_owned(), "sda".to_owned()]);
        assert_eq!(logs.drives.len(), 1);
        assert!(logs.drives[0].fault.is_some());
        assert!(logs.drives[0].pages.is_empty());
    }
}
