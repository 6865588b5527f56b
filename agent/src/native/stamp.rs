//! The stamp at the start of every sector: where its words lie, and how they are computed.
//!
//! Five words, the least byte first: a mark with the number of combined words and the target; the
//! sector's offset in the target; the sequence; the checksum of the rest of the sector as it was
//! before it was combined; and the checksum of these four. The last one is as good as random and
//! new with every write, so it is also what the rest of a sector is combined with, by exclusive or.

/// The unit of stamps: the smallest piece that storage writes at once.
pub const SECTOR_BYTES: usize = 512;
/// A sector.
pub type Sector = [u8; SECTOR_BYTES];

/// Bytes of a word.
pub const WORD: usize = 8;
/// The first word of the rest of a sector.
const FIRST_OF_REST: usize = 5;
/// Where the rest of a sector begins.
pub const STAMP_BYTES: usize = FIRST_OF_REST * WORD;
/// Words of the rest of a sector.
pub const REST_WORDS: usize = SECTOR_BYTES / WORD - FIRST_OF_REST;

/// What tells a stamp from other bytes, in the upper bits of the first word.
const MARK: u64 = 0x10_1AB5;
const MARK_SHIFT: u32 = 40;
/// Below the mark: how many words of the rest are combined.
const COMBINED_SHIFT: u32 = 32;
/// Places of words.
const OFFSET: usize = 1;
const SEQUENCE: usize = 2;
const REST: usize = 3;
const WHOLE: usize = 4;
/// Odd and without pattern, so that a product depends on all lower bits of both factors. These are
/// the multipliers of xxHash.
const FACTORS: [u64; 4] =
    [0x9E37_79B1_85EB_CA87, 0xC2B2_AE3D_27D4_EB4F, 0x1656_67B1_9E37_79F9, 0x27D4_EB2F_1656_67C5];

/// Sums that are computed side by side, as a multiplication takes longer than the next can wait.
const LANES: usize = FACTORS.len();

/// What a stamp says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the target that was meant.
    pub target: u32,
    /// Of the sector, in bytes.
    pub offset: u64,
    /// Of the write.
    pub sequence: u64,
}

/// Give a fresh sector its checksum: `rest` was written, no stamp yet.
pub fn prepare(sector: &mut Sector) {
    sector[..STAMP_BYTES].fill(0);
    let rest = rest_checksum(sector, 0, 0);
    put(sector, REST, rest);
}

/// Put a stamp on a prepared sector, and combine that many words of its rest anew.
#[inline]
pub fn put_stamp(sector: &mut Sector, stamp: Stamp, combined: usize) {
    let first = MARK << MARK_SHIFT | (combined as u64) << COMBINED_SHIFT | u64::from(stamp.target);
    let whole = whole_checksum([first, stamp.offset, stamp.sequence, word(sector, REST)]);
    let change = whole ^ word(sector, WHOLE);
    put(sector, 0, first);
    put(sector, OFFSET, stamp.offset);
    put(sector, SEQUENCE, stamp.sequence);
    put(sector, WHOLE, whole);
    for bytes in sector[STAMP_BYTES..].chunks_exact_mut(WORD).take(combined) {
        if let Ok(bytes) = <&mut [u8; WORD]>::try_from(bytes) {
            *bytes = (u64::from_le_bytes(*bytes) ^ change).to_le_bytes();
        }
    }
}

/// The stamp of a sector; None when any of its bytes is not as it was written.
#[inline]
#[must_use]
pub fn read_stamp(sector: &Sector) -> Option<Stamp> {
    let [first, offset, sequence, rest] = [0, OFFSET, SEQUENCE, REST].map(|at| word(sector, at));
    let combined = (first >> COMBINED_SHIFT) as u8 as usize;
    let whole = word(sector, WHOLE);
    let is_whole = first >> MARK_SHIFT == MARK
        && combined <= REST_WORDS
        && whole == whole_checksum([first, offset, sequence, rest])
        && rest == rest_checksum(sector, whole, combined);
    is_whole.then_some(Stamp { target: first as u32, offset, sequence })
}

/// No two stamps that differ in one word have the same: each step can be undone.
#[inline]
fn whole_checksum(words: [u64; 4]) -> u64 {
    let mut sum = 0;
    for (word, factor) in words.into_iter().zip(FACTORS) {
        sum = (sum ^ word).wrapping_mul(factor);
        sum ^= sum >> 31;
    }
    sum
}

/// A change in one word always changes the result, any other but for one in 2^64.
#[inline]
fn rest_checksum(sector: &Sector, key: u64, combined: usize) -> u64 {
    let mut sums = FACTORS;
    let mut step = |lane: usize, at: usize| {
        let plain = word(sector, FIRST_OF_REST + at) ^ if at < combined { key } else { 0 };
        sums[lane] = (sums[lane] ^ plain).wrapping_mul(FACTORS[1]).rotate_left(29);
    };
    for first in (0..REST_WORDS - LANES).step_by(LANES) {
        step(0, first);
        step(1, first + 1);
        step(2, first + 2);
        step(3, first + 3);
    }
    for at in REST_WORDS / LANES * LANES..REST_WORDS {
        step(at % LANES, at);
    }
    let [a, b, c, d] = sums;
    a.wrapping_add(b.rotate_left(7)).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18))
}

#[inline]
fn word(sector: &Sector, at: usize) -> u64 {
    let mut bytes = [0; WORD];
    bytes.copy_from_slice(&sector[at * WORD..][..WORD]);
    u64::from_le_bytes(bytes)
}

#[inline]
fn put(sector: &mut Sector, at: usize, word: u64) {
    sector[at * WORD..][..WORD].copy_from_slice(&word.to_le_bytes());
}
