use std::collections::{HashMap, HashSet};

use super::*;

/// Small where each instruction is interpreted.
const BLOCK: usize = if cfg!(miri) { 1024 } else { 4096 };

fn spec(kind: ContentsKind, compress_percent: u8, dedupe_percent: u8) -> ContentsSpec {
    ContentsSpec { kind, compress_percent, dedupe_percent }
}

fn contents(kind: ContentsKind) -> ContentsWriter {
    ContentsWriter::new(&spec(kind, 0, 0), 1)
}

/// A block as it would be on the target after a write.
fn written(contents: &ContentsWriter, target: u32, offset: u64, sequence: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    contents.fill_base(&mut block);
    contents.stamp_block(&mut block, target, offset, sequence);
    block
}

/// Bits that a byte carries when bytes are coded by their frequency alone; 8 is random.
fn entropy_bits(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let parts = counts.iter().filter(|&&count| count > 0);
    let parts = parts.map(|&count| f64::from(count) / bytes.len() as f64);
    -parts.map(|part| part * part.log2()).sum::<f64>()
}

/// The share of eight-byte pieces, at any place, that were there before: what a compressor with a
/// window of all the bytes could refer to.
fn repeated_share(bytes: &[u8]) -> f64 {
    let mut seen = HashSet::new();
    let pieces = bytes.windows(8);
    let count = pieces.len();
    let repeated = pieces.filter(|piece| !seen.insert(<[u8; 8]>::try_from(*piece).unwrap()));
    repeated.count() as f64 / count as f64
}

#[test]
#[cfg_attr(miri, ignore = "a megabyte")]
fn random_blocks_do_not_compress_even_together() {
    let contents = contents(ContentsKind::Random);
    let mut buffer = vec![0; BLOCK];
    contents.fill_base(&mut buffer);
    let mut all = Vec::new();
    for sequence in 1..=64 {
        contents.stamp_block(&mut buffer, 1, sequence * 4096, sequence);
        all.extend_from_slice(&buffer);
    }
    // Stamps are 8 % of all bytes, and half of a stamp is alike from block to block.
    assert!(entropy_bits(&all) > 7.9, "{}", entropy_bits(&all));
    assert!(repeated_share(&all) < 0.04, "{}", repeated_share(&all));
}

#[test]
#[cfg_attr(miri, ignore = "a megabyte")]
fn a_scrambled_block_does_not_compress_by_itself() {
    let block = written(&contents(ContentsKind::Scrambled), 1, 0, 1);
    assert!(entropy_bits(&block) > 7.7);
    assert!(repeated_share(&block) < 0.03, "{}", repeated_share(&block));
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of blocks")]
fn no_sector_of_many_blocks_is_like_another() {
    for kind in [ContentsKind::Random, ContentsKind::Scrambled] {
        let contents = contents(kind);
        let mut seen = HashSet::new();
        let mut block = vec![0; SECTOR_BYTES];
        contents.fill_base(&mut block);
        for sequence in 1..=20_000 {
            // The same block again and again, as in a small file.
            contents.stamp_block(&mut block, 1, 8192, sequence);
            assert!(seen.insert(<[u8; 16]>::try_from(&block[24..40]).unwrap()));
        }
        // Nor is one like its neighbour in the same block.
        let block = written(&contents, 1, 0, 1);
        let sectors: HashSet<&[u8]> = block.chunks(SECTOR_BYTES).map(|it| &it[24..]).collect();
        assert_eq!(sectors.len(), BLOCK / SECTOR_BYTES);
    }
}

#[test]
fn the_wanted_share_is_zeros_at_the_end_of_each_sector() {
    for (percent, expected) in [(0, 0), (25, 128), (50, 256), (90, 464), (92, 472), (100, 472)] {
        for kind in [ContentsKind::Random, ContentsKind::Scrambled] {
            let contents = ContentsWriter::new(&spec(kind, percent, 0), 3);
            let mut block = vec![0; BLOCK];
            contents.fill_base(&mut block);
            for sequence in 1..4 {
                contents.stamp_block(&mut block, 1, 0, sequence);
                for sector in block.chunks(SECTOR_BYTES) {
                    let zeros = sector.iter().rev().take_while(|&&byte| byte == 0).count();
                    // A random last byte is zero once in 256 times.
                    assert!((expected..=expected + 2).contains(&zeros), "{percent}: {zeros}");
                }
                assert_eq!(
                    verify_block(&block, 1, 0, ExpectedWrite::AtLeast(sequence)),
                    BlockState::Ok
                );
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "twenty thousand blocks")]
fn the_wanted_share_of_blocks_is_copies_of_others() {
    let writes = 20_480_u64;
    for (kind, percent) in [
        (ContentsKind::Random, 0),
        (ContentsKind::Random, 30),
        (ContentsKind::Scrambled, 75),
        (ContentsKind::Scrambled, 100),
    ] {
        let contents = ContentsWriter::new(&spec(kind, 0, percent), 4);
        // Two buffers by turns: a copy is one whichever buffer it was made in.
        let mut buffers = [vec![0; SECTOR_BYTES], vec![0; SECTOR_BYTES]];
        for buffer in &mut buffers {
            contents.fill_base(buffer);
        }
        let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
        for sequence in 1..=writes {
            let buffer = &mut buffers[(sequence * 7 / 3 % 2) as usize];
            contents.stamp_block(buffer, 2, sequence * 4096, sequence);
            *seen.entry(buffer.clone()).or_default() += 1;
        }
        let copies = 1.0 - seen.len() as f64 / writes as f64;
        // One first copy in every 1024, and the draw: five standard deviations.
        let asked = f64::from(percent) / 100.0;
        let slack = 5.0 * (asked * (1.0 - asked) / writes as f64).sqrt();
        assert!(copies <= asked + slack && copies >= asked - slack - 0.0012, "{percent}: {copies}");
    }
}

#[test]
fn zeros_are_zeros() {
    let block = written(&contents(ContentsKind::Zeros), 1, 0, 1);
    assert!(block.iter().all(|&byte| byte == 0));
}

#[test]
fn what_was_written_is_found_whatever_was_in_the_buffer_before() {
    for kind in [ContentsKind::Random, ContentsKind::Scrambled] {
        let contents = contents(kind);
        let mut block = vec![0; BLOCK];
        contents.fill_base(&mut block);
        for (target, offset, sequence) in [(0, 0, 1), (7, 1 << 40, 9), (u32::MAX - 1, 512, 10)] {
            contents.stamp_block(&mut block, target, offset, sequence);
            for expected in [
                ExpectedWrite::AtLeast(0),
                ExpectedWrite::AtLeast(sequence),
                ExpectedWrite::MixedFrom(sequence),
            ] {
                assert_eq!(verify_block(&block, target, offset, expected), BlockState::Ok);
            }
            // A part of a block, from its second sector on.
            let part = &block[SECTOR_BYTES..];
            assert_eq!(
                verify_block(part, target, offset + 512, ExpectedWrite::AtLeast(1)),
                BlockState::Ok
            );
        }
        assert_eq!(block, written(&contents, u32::MAX - 1, 512, 10));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    for kind in [ContentsKind::Random, ContentsKind::Scrambled] {
        let contents = ContentsWriter::new(&spec(kind, 20, 0), 1);
        let mut block = vec![0; SECTOR_BYTES * 2];
        contents.fill_base(&mut block);
        contents.stamp_block(&mut block, 3, 4096, 5);
        let bits = if cfg!(miri) { 0..8 } else { 0..SECTOR_BYTES * 8 };
        for bit in bits {
            let at = SECTOR_BYTES + bit / 8;
            block[at] ^= 1 << (bit % 8);
            let found = verify_block(&block, 3, 4096, ExpectedWrite::AtLeast(5));
            assert_eq!(found, BlockState::Corrupt { offset: 4096 + 512 }, "bit {bit}");
            block[at] ^= 1 << (bit % 8);
        }
        assert_eq!(verify_block(&block, 3, 4096, ExpectedWrite::AtLeast(5)), BlockState::Ok);
    }
}

#[test]
fn torn_stale_and_misplaced_blocks_are_told_apart() {
    let contents = contents(ContentsKind::Random);
    let (old, new) = (written(&contents, 1, 4096, 5), written(&contents, 1, 4096, 9));
    let mut torn = new.clone();
    torn[..BLOCK / 2].copy_from_slice(&old[..BLOCK / 2]);
    let found = |block: &[u8], expected| verify_block(block, 1, 4096, expected);
    assert_eq!(found(&torn, ExpectedWrite::AtLeast(9)), BlockState::Torn { older: 5, newer: 9 });
    assert_eq!(found(&torn, ExpectedWrite::AtLeast(0)), BlockState::Torn { older: 5, newer: 9 });
    assert_eq!(found(&torn, ExpectedWrite::MixedFrom(5)), BlockState::Ok);
    assert_eq!(found(&torn, ExpectedWrite::MixedFrom(6)), BlockState::Stale { sequence: 5 });
    assert_eq!(found(&old, ExpectedWrite::AtLeast(9)), BlockState::Stale { sequence: 5 });
    assert_eq!(found(&old, ExpectedWrite::AtLeast(5)), BlockState::Ok);
    assert_eq!(found(&new, ExpectedWrite::AtLeast(5)), BlockState::Ok);
    let elsewhere = BlockState::Misplaced { target: 1, offset: 4096 };
    assert_eq!(verify_block(&new, 1, 8192, ExpectedWrite::AtLeast(0)), elsewhere);
    assert_eq!(verify_block(&new, 2, 4096, ExpectedWrite::AtLeast(0)), elsewhere);
    assert_eq!(verify_block(&new[512..], 1, 4096, ExpectedWrite::AtLeast(0)), {
        BlockState::Misplaced { target: 1, offset: 4608 }
    });
}

#[test]
fn zeros_are_a_write_that_never_came_and_other_bytes_are_corrupt() {
    let zeros = vec![0; BLOCK];
    assert_eq!(verify_block(&zeros, 1, 0, ExpectedWrite::AtLeast(0)), BlockState::Ok);
    assert_eq!(
        verify_block(&zeros, 1, 0, ExpectedWrite::AtLeast(1)),
        BlockState::Stale { sequence: 0 }
    );
    let mut half = written(&contents(ContentsKind::Random), 1, 0, 4);
    half[BLOCK / 2..].fill(0);
    assert_eq!(
        verify_block(&half, 1, 0, ExpectedWrite::AtLeast(1)),
        BlockState::Torn { older: 0, newer: 4 }
    );
    let foreign = vec![0x5A; BLOCK];
    assert_eq!(
        verify_block(&foreign, 1, 0, ExpectedWrite::AtLeast(0)),
        BlockState::Corrupt { offset: 0 }
    );
}

#[test]
fn bytes_behind_the_last_whole_sector_are_left_alone() {
    let contents = contents(ContentsKind::Random);
    let mut block = vec![0; 1300];
    contents.fill_base(&mut block);
    let rest = block[1024..].to_vec();
    contents.stamp_block(&mut block, 1, 0, 1);
    assert_eq!(block[1024..], rest);
    assert!(rest.iter().any(|&byte| byte != 0));
    assert_eq!(verify_block(&block, 1, 0, ExpectedWrite::AtLeast(1)), BlockState::Ok);
    contents.stamp_block(&mut [], 1, 0, 1);
    assert_eq!(verify_block(&[0; 100], 1, 0, ExpectedWrite::AtLeast(0)), BlockState::Ok);
}

#[test]
fn each_fault_has_a_sentence_of_its_own() {
    let expected = ExpectedWrite::AtLeast(9);
    let message = |found: BlockState| found.message("/dev/sdx", 4096, expected);
    assert_eq!(message(BlockState::Ok), None);
    for (found, kind, values) in [
        (BlockState::Torn { older: 3, newer: 7 }, "torn", ["3", "7"]),
        (BlockState::Stale { sequence: 3 }, "stale", ["3", "9"]),
        (BlockState::Misplaced { target: 2, offset: 512 }, "misplaced", ["2", "512"]),
        (BlockState::Corrupt { offset: 4608 }, "corrupt", ["/dev/sdx", "4608"]),
    ] {
        let sentence = message(found).unwrap();
        for part in [kind, "4096"].into_iter().chain(values) {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn what_cannot_be_verified_or_meant_is_told() {
    assert!(spec(ContentsKind::Random, 50, 0).is_verifiable());
    assert!(!spec(ContentsKind::Random, 0, 1).is_verifiable());
    assert!(!spec(ContentsKind::Zeros, 0, 0).is_verifiable());
    assert!(spec(ContentsKind::Scrambled, 100, 100).faults().is_empty());
    assert_eq!(spec(ContentsKind::Random, 101, 200).faults().len(), 2);
    assert_eq!(spec(ContentsKind::Zeros, 1, 1).faults().len(), 2);
    let read = |text| serde_json::from_str::<ContentsSpec>(text);
    assert_eq!(read(r#"{"kind":"random"}"#).unwrap(), spec(ContentsKind::Random, 0, 0));
    assert!(read(r#"{"kind":"random","x":1}"#).is_err());
}
