//! What the first and last bytes of a device say it is part of. Only the well-known few.

use serde::Serialize;

/// What a signature stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureKind {
    /// A file system, which one may want to lose.
    FileSystem,
    /// A partition table, swap, or a member of something larger: never overwritten.
    Member,
}

/// One signature that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// What it stands for.
    pub kind: SignatureKind,
    /// Its name, as `ext4` or `GPT partition table`.
    pub name: &'static str,
}

/// Read so many bytes at an offset; None where there are none.
pub type Read<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// A name, where its bytes stand, and the bytes.
type Magic = (SignatureKind, &'static str, u64, &'static [u8]);

const KIB: u64 = 1 << 10;
const ZFS_LABEL: u64 = 256 * KIB;
/// Where the ring of uberblocks begins in a label, and how far apart they can be.
const ZFS_RING: u64 = 128 * KIB;
const ZFS_STEP: usize = 1 << 10;
const ZFS_UBERBLOCK: u64 = 0x00ba_b10c;
const MD_MAGIC: u32 = 0xa92b_4efc;
/// The largest page of an architecture with swap: its signature ends the first page.
const PAGES: [u64; 4] = [4 * KIB, 8 * KIB, 16 * KIB, 64 * KIB];

const MAGICS: &[Magic] = &[
    (SignatureKind::Member, "GPT partition table", 512, b"EFI PART"),
    (SignatureKind::Member, "GPT partition table", 4096, b"EFI PART"),
    (SignatureKind::Member, "LVM2 physical volume", 0, b"LABELONE"),
    (SignatureKind::Member, "LVM2 physical volume", 512, b"LABELONE"),
    (SignatureKind::Member, "LVM2 physical volume", 1024, b"LABELONE"),
    (SignatureKind::Member, "LVM2 physical volume", 1536, b"LABELONE"),
    (SignatureKind::Member, "LUKS volume", 0, b"LUKS\xba\xbe"),
    (SignatureKind::Member, "md member", 0, &MD_MAGIC.to_le_bytes()),
    (SignatureKind::Member, "md member", 4096, &MD_MAGIC.to_le_bytes()),
    (SignatureKind::Member, "bcache member", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca"),
    (SignatureKind::Member, "bcachefs member", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9"),
    (SignatureKind::Member, "Ceph BlueStore", 0, b"bluestore block device"),
    (SignatureKind::Member, "boot record", 510, b"\x55\xaa"),
    (SignatureKind::FileSystem, "ext2, ext3 or ext4", 1024 + 56, b"\x53\xef"),
    (SignatureKind::FileSystem, "xfs", 0, b"XFSB"),
    (SignatureKind::FileSystem, "btrfs", 64 * KIB + 64, b"_BHRfS_M"),
    (SignatureKind::FileSystem, "f2fs", 1024, b"\x10\x20\xf5\xf2"),
    (SignatureKind::FileSystem, "ntfs", 3, b"NTFS    "),
];

/// Every signature on a device of `size` bytes, each name once.
#[must_use]
pub fn signatures(size: u64, read: Read) -> Vec<Signature> {
    let mut found: Vec<Signature> = Vec::new();
    let mut add = |kind, name| {
        if !found.iter().any(|known| known.name == name) {
            found.push(Signature { kind, name });
        }
    };
    for (kind, name, offset, bytes) in MAGICS {
        if read(*offset, bytes.len()).as_deref() == Some(bytes) {
            add(*kind, boot_record_name(name));
        }
    }
    if is_swap(read) {
        add(SignatureKind::Member, "swap");
    }
    if is_md_at_end(size, read) {
        add(SignatureKind::Member, "md member");
    }
    if size >= 33 * 512 && read(size - 512, 8).as_deref() == Some(b"EFI PART") {
        add(SignatureKind::Member, "GPT partition table");
    }
    if zfs_labels(size).into_iter().any(|label| has_uberblock(label, read)) {
        add(SignatureKind::Member, "ZFS member");
    }
    found
}

/// The two bytes that end a boot record are also those of a FAT file system: both are refused.
fn boot_record_name(name: &'static str) -> &'static str {
    if name.ends_with("boot record") { "MBR partition table or boot record" } else { name }
}

fn is_swap(read: Read) -> bool {
    PAGES.iter().any(|page| {
        let text = read(page - 10, 10);
        text.as_deref() == Some(b"SWAPSPACE2") || text.as_deref() == Some(b"SWAP-SPACE")
    })
}

/// Versions 0.90 and 1.0 of md write near the end, the older in the host's byte order.
fn is_md_at_end(size: u64, read: Read) -> bool {
    let is_magic = |offset: Option<u64>, any_order: bool| {
        let bytes = offset.and_then(|offset| read(offset, 4));
        let Some(bytes) = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) else {
            return false;
        };
        u32::from_le_bytes(bytes) == MD_MAGIC || any_order && u32::from_be_bytes(bytes) == MD_MAGIC
    };
    let old = (size & !(64 * KIB - 1)).checked_sub(64 * KIB);
    let new = (size & !(4 * KIB - 1)).checked_sub(8 * KIB);
    is_magic(old, true) || is_magic(new, false)
}

/// Two labels at the start and two at the end.
fn zfs_labels(size: u64) -> Vec<u64> {
    let end = size & !(ZFS_LABEL - 1);
    let mut labels = vec![0, ZFS_LABEL];
    labels.extend(end.checked_sub(ZFS_LABEL));
    labels.extend(end.checked_sub(2 * ZFS_LABEL));
    labels
}

fn has_uberblock(label: u64, read: Read) -> bool {
    let Some(ring) = read(label + ZFS_RING, (ZFS_LABEL - ZFS_RING) as usize) else { return false };
    ring.chunks(ZFS_STEP).any(|block| {
        let Some(first) = block.get(..8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) else {
            return false;
        };
        u64::from_le_bytes(first) == ZFS_UBERBLOCK || u64::from_be_bytes(first) == ZFS_UBERBLOCK
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 4 << 20;

    fn found(writes: &[(usize, &[u8])]) -> Vec<&'static str> {
        let mut image = vec![0_u8; SIZE];
        for (offset, bytes) in writes {
            image[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        let read = |offset: u64, length: usize| {
            image.get(offset as usize..offset as usize + length).map(<[u8]>::to_vec)
        };
        signatures(SIZE as u64, &read).iter().map(|signature| signature.name).collect()
    }

    #[test]
    fn zeros_are_nothing() {
        assert!(found(&[]).is_empty());
    }

    #[test]
    fn every_known_mark_is_found() {
        for (_, name, offset, bytes) in MAGICS {
            assert_eq!(found(&[(*offset as usize, bytes)]), [boot_record_name(name)]);
        }
    }

    #[test]
    fn swap_of_every_page_size() {
        for page in PAGES {
            assert_eq!(found(&[(page as usize - 10, b"SWAPSPACE2")]), ["swap"]);
        }
    }

    #[test]
    fn md_at_the_end_in_either_order() {
        assert_eq!(found(&[(SIZE - 65_536, &MD_MAGIC.to_be_bytes())]), ["md member"]);
        assert_eq!(found(&[(SIZE - 65_536, &MD_MAGIC.to_le_bytes())]), ["md member"]);
        assert_eq!(found(&[(SIZE - 8192, &MD_MAGIC.to_le_bytes())]), ["md member"]);
        assert!(found(&[(SIZE - 8192, &MD_MAGIC.to_be_bytes())]).is_empty());
    }

    #[test]
    fn a_second_partition_table_at_the_end() {
        assert_eq!(found(&[(SIZE - 512, b"EFI PART")]), ["GPT partition table"]);
    }

    #[test]
    fn an_uberblock_in_any_label() {
        let uberblock = ZFS_UBERBLOCK.to_le_bytes();
        for label in zfs_labels(SIZE as u64) {
            let offset = (label + ZFS_RING) as usize + 5 * ZFS_STEP;
            assert_eq!(found(&[(offset, &uberblock)]), ["ZFS member"]);
        }
    }

    #[test]
    fn a_device_too_small_for_any_has_none() {
        assert!(signatures(512, &|_, _| None).is_empty());
    }
}
