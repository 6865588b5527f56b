//! What objects hold: bytes that follow from seed, key and version, that no compressor or
//! deduplication makes fewer, and that can be compared at any place of an object.
//!
//! A sector of 512 bytes begins with a word that tells the version, hidden in a number of object
//! and sector; its other words are random ones that all sectors share, each combined with a word of
//! this sector alone. So what is read is compared byte by byte at the speed of memory, and an
//! object half of which is of another write is told as torn.

use crate::native::random::{Random, split_mix};

/// The unit that has a word of its own.
pub const SECTOR_BYTES: u64 = 512;
const WORD: usize = 8;
const WORDS: usize = SECTOR_BYTES as usize / WORD;
/// Sectors of random words that are taken in turn.
const BASE_SECTORS: u64 = 128;
/// Versions are below; what is decoded above was never written.
const MAX_VERSION: u64 = 1 << 32;

/// Which bytes of a body were others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentFault {
    /// Bytes that were never written there; the first sector in which they are begins there.
    Corrupt(u64),
    /// Bytes of two versions: the second begins there.
    Torn(u64),
}

/// Makes and compares the contents of all objects of a seed.
#[derive(Debug, Clone)]
pub struct Contents {
    base: Vec<u64>,
    seed: u64,
}

/// What is known of a body as far as it was compared.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    object: u64,
    offset: u64,
    version: Option<u64>,
    fault: Option<ContentFault>,
    /// Bytes of a sector that is not whole yet.
    filled: usize,
    partial: [u8; SECTOR_BYTES as usize],
}

impl Contents {
    /// Of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(split_mix(seed, 1));
        let words = BASE_SECTORS as usize * WORDS;
        Self { base: (0..words).map(|_| random.next()).collect(), seed }
    }

    /// What an object's words begin with, so that no two objects are alike.
    fn object_key(&self, object: u64) -> u64 {
        split_mix(self.seed ^ 0x5EED, object.wrapping_add(1))
    }

    /// The bytes of an object in a version from `offset` on, which is at a sector's start.
    pub fn fill(&self, object: u64, version: u64, offset: u64, output: &mut [u8]) {
        let key = self.object_key(object);
        for (sector, chunk) in
            (offset / SECTOR_BYTES..).zip(output.chunks_mut(SECTOR_BYTES as usize))
        {
            let (first, mask) = stamp(key, sector, version);
            let base = self.sector_base(sector);
            if chunk.len() == SECTOR_BYTES as usize {
                for (bytes, word) in chunk.chunks_exact_mut(WORD).zip(base) {
                    bytes.copy_from_slice(&(word ^ mask).to_le_bytes());
                }
                chunk[..WORD].copy_from_slice(&first.to_le_bytes());
            } else {
                let whole = self.whole_sector(key, sector, version);
                chunk.copy_from_slice(&whole[..chunk.len()]);
            }
        }
    }

    fn sector_base(&self, sector: u64) -> &[u64] {
        let start = (sector % BASE_SECTORS) as usize * WORDS;
        &self.base[start..start + WORDS]
    }

    fn whole_sector(&self, key: u64, sector: u64, version: u64) -> [u8; SECTOR_BYTES as usize] {
        let (first, mask) = stamp(key, sector, version);
        let mut bytes = [0; SECTOR_BYTES as usize];
        for (place, word) in bytes.chunks_exact_mut(WORD).zip(self.sector_base(sector)) {
            place.copy_from_slice(&(word ^ mask).to_le_bytes());
        }
        bytes[..WORD].copy_from_slice(&first.to_le_bytes());
        bytes
    }

    /// Begin to compare a body that is of an object from `offset` on, at a sector's start.
    #[must_use]
    pub fn comparison(&self, object: u64, offset: u64) -> Comparison {
        Comparison {
            object: self.object_key(object),
            offset,
            version: None,
            fault: None,
            filled: 0,
            partial: [0; SECTOR_BYTES as usize],
        }
    }

    /// Compare the next bytes of a body.
    pub fn compare(&self, state: &mut Comparison, mut bytes: &[u8]) {
        if state.filled > 0 {
            let length = bytes.len().min(SECTOR_BYTES as usize - state.filled);
            state.partial[state.filled..state.filled + length].copy_from_slice(&bytes[..length]);
            state.filled += length;
            bytes = &bytes[length..];
            if state.filled < SECTOR_BYTES as usize {
                return;
            }
            let partial = state.partial;
            state.filled = 0;
            self.compare_sector(state, &partial);
        }
        let mut sectors = bytes.chunks_exact(SECTOR_BYTES as usize);
        for sector in &mut sectors {
            self.compare_sector(state, sector);
        }
        let rest = sectors.remainder();
        state.partial[..rest.len()].copy_from_slice(rest);
        state.filled = rest.len();
    }

    /// The body is over: what was wrong with it.
    #[must_use]
    pub fn finish(&self, state: &mut Comparison) -> Option<ContentFault> {
        let (partial, filled) = (state.partial, std::mem::take(&mut state.filled));
        if filled > 0 {
            self.compare_sector(state, &partial[..filled]);
        }
        state.fault
    }

    fn compare_sector(&self, state: &mut Comparison, bytes: &[u8]) {
        let (at, sector) = (state.offset, state.offset / SECTOR_BYTES);
        state.offset += bytes.len() as u64;
        if state.fault.is_some() {
            return;
        }
        let version = match bytes.first_chunk::<WORD>() {
            Some(first) => {
                let version = u64::from_le_bytes(*first) ^ hidden_word(state.object, sector);
                if version >= MAX_VERSION {
                    state.fault = Some(ContentFault::Corrupt(at));
                    return;
                }
                version
            }
            // Too short to tell its version: an object's last bytes.
            None => match state.version {
                Some(version) => version,
                None => return,
            },
        };
        let (_, mask) = stamp(state.object, sector, version);
        let words = bytes.chunks_exact(WORD);
        let rest = words.remainder();
        let base = self.sector_base(sector);
        let mut differences = 0;
        for (bytes, base) in words.zip(base).skip(1) {
            let mut word = [0; WORD];
            word.copy_from_slice(bytes);
            differences |= u64::from_le_bytes(word) ^ base ^ mask;
        }
        let whole = self.whole_rest(state.object, sector, version, bytes.len() - rest.len());
        if differences != 0 || whole[..rest.len()] != *rest {
            state.fault = Some(ContentFault::Corrupt(at));
        } else if state.version.is_some_and(|other| other != version) {
            state.fault = Some(ContentFault::Torn(at));
        }
        state.version = Some(version);
    }

    /// The word that holds the bytes of a sector from there on.
    fn whole_rest(&self, key: u64, sector: u64, version: u64, from: usize) -> [u8; WORD] {
        let (first, mask) = stamp(key, sector, version);
        match from / WORD {
            0 => first.to_le_bytes(),
            word => self
                .sector_base(sector)
                .get(word)
                .map_or([0; WORD], |base| (base ^ mask).to_le_bytes()),
        }
    }
}

/// What hides the version in a sector's first word.
#[inline]
fn hidden_word(key: u64, sector: u64) -> u64 {
    split_mix(key, sector.wrapping_mul(2).wrapping_add(1))
}

/// A sector's first word, and what its others are combined with.
#[inline]
fn stamp(key: u64, sector: u64, version: u64) -> (u64, u64) {
    let hidden = hidden_word(key, sector);
    (hidden ^ version, split_mix(hidden ^ version, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(contents: &Contents, object: u64, version: u64, bytes: usize) -> Vec<u8> {
        let mut body = vec![0; bytes];
        contents.fill(object, version, 0, &mut body);
        body
    }

    fn fault_of(
        contents: &Contents,
        object: u64,
        offset: u64,
        body: &[u8],
        step: usize,
    ) -> Option<ContentFault> {
        let mut state = contents.comparison(object, offset);
        for piece in body.chunks(step) {
            contents.compare(&mut state, piece);
        }
        contents.finish(&mut state)
    }

    #[test]
    fn what_was_written_is_what_is_read_however_it_comes() {
        let contents = Contents::new(7);
        for bytes in [0, 1, 7, 8, 9, 511, 512, 513, 5000, 100_001] {
            let body = body(&contents, 3, 9, bytes);
            for step in [1, 500, 512, 4096] {
                assert_eq!(fault_of(&contents, 3, 0, &body, step), None, "{bytes} by {step}");
            }
        }
        let whole = body(&contents, 3, 1, 100_000);
        assert_eq!(fault_of(&contents, 3, 51_200, &whole[51_200..52_300], 100), None);
    }

    #[test]
    fn a_part_is_the_same_as_in_the_whole() {
        let contents = Contents::new(1);
        let whole = body(&contents, 5, 2, 70_000);
        let mut part = vec![0; 4000];
        contents.fill(5, 2, 65_536, &mut part);
        assert_eq!(part, whole[65_536..69_536]);
    }

    #[test]
    fn any_other_byte_is_told() {
        let contents = Contents::new(7);
        let right = body(&contents, 3, 9, 3000);
        for at in [0, 3, 8, 511, 512, 520, 2559, 2560, 2999] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert!(fault_of(&contents, 3, 0, &wrong, 700).is_some(), "byte {at}");
        }
        assert_eq!(fault_of(&contents, 4, 0, &right, 512), Some(ContentFault::Corrupt(0)));
        assert_eq!(fault_of(&contents, 3, 512, &right, 512), Some(ContentFault::Corrupt(512)));
        assert!(fault_of(&Contents::new(8), 3, 0, &right, 512).is_some());
        assert_eq!(fault_of(&contents, 3, 0, &[0; 4096], 512), Some(ContentFault::Corrupt(0)));
    }

    #[test]
    fn half_of_another_write_is_torn() {
        let contents = Contents::new(7);
        let mut mixed = body(&contents, 3, 9, 4096);
        mixed[2048..].copy_from_slice(&body(&contents, 3, 10, 4096)[2048..]);
        assert_eq!(fault_of(&contents, 3, 0, &mixed, 4096), Some(ContentFault::Torn(2048)));
    }

    #[test]
    fn no_two_sectors_are_alike_and_none_has_a_pattern() {
        let contents = Contents::new(7);
        let mut sectors: Vec<Vec<u8>> = Vec::new();
        for (object, version) in [(0, 0), (0, 1), (1, 0)] {
            let body = body(&contents, object, version, 1 << 18);
            let ones: u32 = body.iter().map(|byte| byte.count_ones()).sum();
            // Of 2^21 fair bits half are ones; the standard deviation is 724.
            assert!(ones.abs_diff(1 << 20) < 5 * 724, "{ones}");
            // The second word, so that what is alike but for the stamp is found too.
            sectors.extend(body.chunks(512).map(|sector| sector[8..].to_vec()));
        }
        let count = sectors.len();
        sectors.sort();
        sectors.dedup();
        assert_eq!(sectors.len(), count);
    }
}
