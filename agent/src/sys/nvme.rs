//! Admin commands of an `NVMe` drive that only read: Identify, Get Log Page, Get Features.

use std::fs::File;
use std::io::{self, Result};
use std::os::fd::AsRawFd;

/// `_IO('N', 0x40)` of `linux/nvme_ioctl.h`: which namespace a block device is.
const NVME_IOCTL_ID: libc::Ioctl = 0x4E40;
/// `_IOWR('N', 0x41, struct nvme_admin_cmd)`, which is 72 bytes long.
const NVME_IOCTL_ADMIN_CMD: libc::Ioctl = 0xC048_4E41_u32 as libc::Ioctl;

const OPCODE_GET_LOG_PAGE: u8 = 0x02;
const OPCODE_IDENTIFY: u8 = 0x06;
const OPCODE_GET_FEATURES: u8 = 0x0A;
/// A log page is read without clearing the asynchronous events that others wait for.
const RETAIN_ASYNCHRONOUS_EVENT: u32 = 1 << 15;
/// A drive that does not answer for so long hangs.
const TIMEOUT_MS: u32 = 5_000;

/// The controller as a whole instead of one of its namespaces.
pub const ALL_NAMESPACES: u32 = u32::MAX;
/// What Identify moves whatever length it is given, and more than any log page that is read here.
pub const BUFFER_BYTES: usize = 4096;

/// Where the answer to a command lies.
#[repr(C, align(4096))]
pub struct AnswerBuffer(pub [u8; BUFFER_BYTES]);

/// `struct nvme_admin_cmd`.
#[repr(C)]
#[derive(Default)]
struct RawCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_and_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    /// The command's own words, 10 to 15.
    words: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// How the drive or the kernel answered a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done; the number it gives back.
    Done(u32),
    /// The drive refused it with this status: what was asked for is not offered.
    Refused(u16),
}

/// One log page.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogPage {
    /// Its identifier.
    pub id: u8,
    /// Which namespace, or `ALL_NAMESPACES`.
    pub namespace: u32,
    /// The log specific identifier, such as an endurance group's number.
    pub specific: u16,
    /// Place in the drive's list of UUIDs; 0 where the page is nobody's extension.
    pub uuid_index: u8,
    /// How many bytes of it.
    pub bytes: u32,
}

/// The namespace that an open block device is.
pub fn namespace_id(device: &File) -> Result<u32> {
    // SAFETY: the request takes no argument and writes nothing.
    let number = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ID) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Read a log page.
pub fn get_log_page(device: &File, page: LogPage, answer: &mut AnswerBuffer) -> Result<Outcome> {
    let words = page.bytes / 4 - 1;
    let command = RawCommand {
        opcode: OPCODE_GET_LOG_PAGE,
        namespace: page.namespace,
        words: [
            u32::from(page.id) | RETAIN_ASYNCHRONOUS_EVENT | (words & 0xFFFF) << 16,
            words >> 16 | u32::from(page.specific) << 16,
            0,
            0,
            u32::from(page.uuid_index),
            0,
        ],
        data_bytes: page.bytes,
        ..RawCommand::default()
    };
    submit(device, command, Some(answer))
}

/// Ask a drive what it is: `structure` 0 is the namespace, 1 its controller, 0x17 its list of UUIDs.
///
/// Only the first has a `namespace`; for others it is 0.
pub fn identify(
    device: &File,
    structure: u8,
    namespace: u32,
    answer: &mut AnswerBuffer,
) -> Result<Outcome> {
    let command = RawCommand {
        opcode: OPCODE_IDENTIFY,
        namespace,
        words: [u32::from(structure), 0, 0, 0, 0, 0],
        data_bytes: BUFFER_BYTES as u32,
        ..RawCommand::default()
    };
    submit(device, command, Some(answer))
}

/// The present value of a feature of the controller.
pub fn get_feature(device: &File, feature: u8) -> Result<Outcome> {
    let command = RawCommand {
        opcode: OPCODE_GET_FEATURES,
        words: [u32::from(feature), 0, 0, 0, 0, 0],
        ..RawCommand::default()
    };
    submit(device, command, None)
}

fn submit(
    device: &File,
    mut command: RawCommand,
    answer: Option<&mut AnswerBuffer>,
) -> Result<Outcome> {
    command.timeout_ms = TIMEOUT_MS;
    if let Some(answer) = answer {
        answer.0.fill(0);
        command.address = answer.0.as_mut_ptr() as u64;
    }
    // SAFETY: the kernel reads and writes the structure of 72 bytes and moves at most
    // `BUFFER_BYTES` to the address, where there are so many.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), NVME_IOCTL_ADMIN_CMD, &raw mut command) };
    match status {
        0 => Ok(Outcome::Done(command.result)),
        refusal if refusal > 0 => Ok(Outcome::Refused(refusal as u16)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    #[test]
    fn the_command_lies_as_the_kernel_reads_it() {
        assert_eq!(size_of::<RawCommand>(), 72);
        assert_eq!(offset_of!(RawCommand, address), 24);
        assert_eq!(offset_of!(RawCommand, data_bytes), 36);
        assert_eq!(offset_of!(RawCommand, words), 40);
        assert_eq!(offset_of!(RawCommand, result), 68);
    }

    #[test]
    fn a_file_that_is_no_drive_is_an_error() {
        let file = File::open("/proc/self/exe").unwrap();
        assert!(namespace_id(&file).is_err());
        assert!(get_feature(&file, 2).is_err());
        let mut answer = AnswerBuffer([1; BUFFER_BYTES]);
        assert!(identify(&file, 1, 0, &mut answer).is_err());
    }
}
