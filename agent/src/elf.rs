//! The dynamic symbols of an ELF file, looked up as the loader does it: by its hash table, in few
//! bounded reads. A file may be hostile: what does not fit together is an error, never more work.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The magic, class and byte order of what can be read here.
const ELF64_LITTLE: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
/// Real files have a dozen.
const MAX_PROGRAM_HEADERS: usize = 128;
const DYNAMIC_ENTRY_BYTES: usize = 16;
/// Real files have fifty, and one for each needed library.
const MAX_DYNAMIC_ENTRIES: usize = 4096;
const SYMBOL_BYTES: u64 = 24;
/// Steps along hash chains for all names of a file together: a chain has a handful.
const MAX_CHAIN_STEPS: u32 = 65_536;

const TYPE_LOAD: u32 = 1;
const TYPE_DYNAMIC: u32 = 2;
const TAG_HASH: u64 = 4;
const TAG_STRINGS: u64 = 5;
const TAG_SYMBOLS: u64 = 6;
const TAG_GNU_HASH: u64 = 0x6fff_fef5;
const SECTION_UNDEFINED: u16 = 0;
/// Global, weak and unique symbols can stand for those of other files.
const BINDINGS: [u8; 3] = [1, 2, 10];
/// Functions, and functions that are chosen at load time.
const FUNCTION_TYPES: [u8; 2] = [2, 10];

/// A part of the file and where it is mapped.
struct Segment {
    offset: u64,
    address: u64,
    file_bytes: u64,
}

enum HashTable {
    Gnu { buckets: u32, symbol_offset: u32, bloom_words: u32, bloom_shift: u32, address: u64 },
    Sysv { buckets: u32, chains: u32, address: u64 },
}

/// A shared object or program whose exported functions can be looked up.
pub struct DynamicSymbols<'a> {
    file: &'a File,
    segments: Vec<Segment>,
    strings: u64,
    symbols: u64,
    table: HashTable,
    steps_left: u32,
}

impl<'a> DynamicSymbols<'a> {
    /// None for a file without dynamic symbols; `InvalidData` for one that is no 64-bit ELF file,
    /// or is damaged.
    pub fn open(file: &'a File) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        file.read_exact_at(&mut header, 0)
            .map_err(|_| damaged_elf_error("it is shorter than a header"))?;
        if header[..6] != ELF64_LITTLE {
            return Err(damaged_elf_error("it is no 64-bit little-endian ELF file"));
        }
        let count = u16_at(&header, 56) as usize;
        if u16_at(&header, 54) as usize != PROGRAM_HEADER_BYTES || count > MAX_PROGRAM_HEADERS {
            return Err(damaged_elf_error("its program headers are malformed"));
        }
        let mut headers = vec![0; count * PROGRAM_HEADER_BYTES];
        file.read_exact_at(&mut headers, u64_at(&header, 32))
            .map_err(|_| damaged_elf_error("its program headers lie outside"))?;
        let mut segments = Vec::new();
        let mut dynamic = None;
        for entry in headers.chunks_exact(PROGRAM_HEADER_BYTES) {
            let segment = Segment {
                offset: u64_at(entry, 8),
                address: u64_at(entry, 16),
                file_bytes: u64_at(entry, 32),
            };
            match u32_at(entry, 0) {
                TYPE_LOAD => segments.push(segment),
                TYPE_DYNAMIC => dynamic = Some(segment),
                _ => {}
            }
        }
        let Some(dynamic) = dynamic else { return Ok(None) };
        Self::with_dynamic(file, segments, &dynamic)
    }

    fn with_dynamic(
        file: &'a File,
        segments: Vec<Segment>,
        dynamic: &Segment,
    ) -> io::Result<Option<Self>> {
        let entries = (dynamic.file_bytes as usize / DYNAMIC_ENTRY_BYTES).min(MAX_DYNAMIC_ENTRIES);
        let mut bytes = vec![0; entries * DYNAMIC_ENTRY_BYTES];
        file.read_exact_at(&mut bytes, dynamic.offset)
            .map_err(|_| damaged_elf_error("its dynamic section lies outside"))?;
        let tags = bytes.chunks_exact(DYNAMIC_ENTRY_BYTES);
        let tags = tags.map(|entry| (u64_at(entry, 0), u64_at(entry, 8)));
        let tags: Vec<(u64, u64)> = tags.take_while(|&(tag, _)| tag != 0).collect();
        let value = |wanted: u64| tags.iter().find(|&&(tag, _)| tag == wanted).map(|pair| pair.1);
        let (Some(strings), Some(symbols)) = (value(TAG_STRINGS), value(TAG_SYMBOLS)) else {
            return Ok(None);
        };
        let mut all = Self {
            file,
            segments,
            strings,
            symbols,
            table: HashTable::Sysv { buckets: 0, chains: 0, address: 0 },
            steps_left: MAX_CHAIN_STEPS,
        };
        all.table = match (value(TAG_GNU_HASH), value(TAG_HASH)) {
            (Some(address), _) => HashTable::Gnu {
                buckets: all.read_u32(address)?,
                symbol_offset: all.read_u32(address.wrapping_add(4))?,
                bloom_words: all.read_u32(address.wrapping_add(8))?,
                bloom_shift: all.read_u32(address.wrapping_add(12))?,
                address: address.wrapping_add(16),
            },
            (None, Some(address)) => HashTable::Sysv {
                buckets: all.read_u32(address)?,
                chains: all.read_u32(address.wrapping_add(4))?,
                address: address.wrapping_add(8),
            },
            (None, None) => return Err(damaged_elf_error("its symbols have no hash table")),
        };
        Ok(Some(all))
    }

    /// Whether the file defines and exports a function of that name.
    pub fn exports(&mut self, name: &str) -> io::Result<bool> {
        match self.table {
            HashTable::Gnu { buckets, symbol_offset, bloom_words, bloom_shift, address } => {
                if buckets == 0 || bloom_words == 0 {
                    return Ok(false);
                }
                let hash = gnu_hash(name);
                let bloom_at = address.wrapping_add(8 * u64::from((hash / 64) % bloom_words));
                let bloom = self.read_u64(bloom_at)?;
                let shifted = hash.checked_shr(bloom_shift).unwrap_or(0);
                if bloom >> (hash % 64) & 1 == 0 || bloom >> (shifted % 64) & 1 == 0 {
                    return Ok(false);
                }
                let buckets_at = address.wrapping_add(8 * u64::from(bloom_words));
                let chains_at = buckets_at.wrapping_add(4 * u64::from(buckets));
                let mut index =
                    self.read_u32(buckets_at.wrapping_add(4 * u64::from(hash % buckets)))?;
                if index == 0 {
                    return Ok(false); // An empty bucket.
                }
                loop {
                    let Some(place) = index.checked_sub(symbol_offset) else {
                        return Err(damaged_elf_error("its hash table is malformed"));
                    };
                    let link = self.read_u32(chains_at.wrapping_add(4 * u64::from(place)))?;
                    if link | 1 == hash | 1 && self.is_function(index, name)? {
                        return Ok(true);
                    }
                    if link & 1 == 1 {
                        return Ok(false);
                    }
                    index = index.wrapping_add(1);
                    self.count_step()?;
                }
            }
            HashTable::Sysv { buckets, chains, address } => {
                if buckets == 0 {
                    return Ok(false);
                }
                let bucket = u64::from(sysv_hash(name) % buckets);
                let mut index = self.read_u32(address.wrapping_add(4 * bucket))?;
                while index != 0 {
                    if index >= chains {
                        return Err(damaged_elf_error("its hash table is malformed"));
                    }
                    if self.is_function(index, name)? {
                        return Ok(true);
                    }
                    let link = 4 * (u64::from(buckets) + u64::from(index));
                    index = self.read_u32(address.wrapping_add(link))?;
                    self.count_step()?;
                }
                Ok(false)
            }
        }
    }

    fn count_step(&mut self) -> io::Result<()> {
        self.steps_left = self
            .steps_left
            .checked_sub(1)
            .ok_or_else(|| damaged_elf_error("the chains of its hash table do not end"))?;
        Ok(())
    }

    fn is_function(&self, index: u32, name: &str) -> io::Result<bool> {
        let mut symbol = [0; SYMBOL_BYTES as usize];
        let at = self.symbols.wrapping_add(SYMBOL_BYTES * u64::from(index));
        self.read(at, &mut symbol)?;
        let (info, section) = (symbol[4], u16_at(&symbol, 6));
        if section == SECTION_UNDEFINED
            || !BINDINGS.contains(&(info >> 4))
            || !FUNCTION_TYPES.contains(&(info & 0xf))
        {
            return Ok(false);
        }
        let mut text = vec![0; name.len() + 1];
        let at = self.strings.wrapping_add(u64::from(u32_at(&symbol, 0)));
        // A shorter name may be the last of the file.
        let is_there = self.read(at, &mut text).is_ok();
        Ok(is_there && text.split_last() == Some((&0, name.as_bytes())))
    }

    fn read_u32(&self, address: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn read_u64(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let length = into.len() as u64;
        let offset = self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            (inside.checked_add(length)? <= segment.file_bytes)
                .then(|| segment.offset.checked_add(inside))?
        });
        let offset =
            offset.ok_or_else(|| damaged_elf_error("a table lies outside of its segments"))?;
        self.file.read_exact_at(into, offset).map_err(|_| damaged_elf_error("it is cut off"))
    }
}

fn gnu_hash(name: &str) -> u32 {
    name.bytes().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)))
}

fn sysv_hash(name: &str) -> u32 {
    name.bytes().fold(0, |hash: u32, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

fn damaged_elf_error(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    const BASE: u64 = 0x1000;

    /// A library whose only table is of the older kind, with these exported functions.
    fn library(names: &[&str], buckets: u32) -> Vec<u8> {
        let mut strings = vec![0];
        let mut symbols = vec![0; SYMBOL_BYTES as usize];
        for name in names {
            symbols.extend((strings.len() as u32).to_le_bytes());
            symbols.extend([0x12, 0, 1, 0]); // A global function in section 1.
            symbols.extend([0; 16]);
            strings.extend(name.bytes().chain([0]));
        }
        let mut heads = vec![0_u32; buckets as usize];
        let mut chains = vec![0_u32; names.len() + 1];
        for (nth, name) in names.iter().enumerate() {
            let head = &mut heads[(sysv_hash(name) % buckets) as usize];
            chains[nth + 1] = std::mem::replace(head, nth as u32 + 1);
        }
        let mut hash: Vec<u8> = Vec::new();
        let words = [buckets, chains.len() as u32].into_iter().chain(heads).chain(chains);
        words.for_each(|word| hash.extend(word.to_le_bytes()));
        let headers = HEADER_BYTES + 2 * PROGRAM_HEADER_BYTES;
        let symbols_at = headers + 4 * DYNAMIC_ENTRY_BYTES;
        let hash_at = symbols_at + symbols.len();
        let strings_at = hash_at + hash.len();
        let total = strings_at + strings.len();
        let mut file = ELF64_LITTLE.to_vec();
        file.resize(HEADER_BYTES, 0);
        file[32..40].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
        file[54..56].copy_from_slice(&(PROGRAM_HEADER_BYTES as u16).to_le_bytes());
        file[56] = 2;
        for (kind, offset, bytes) in
            [(TYPE_LOAD, 0, total), (TYPE_DYNAMIC, headers, 4 * DYNAMIC_ENTRY_BYTES)]
        {
            let mut header = vec![0; PROGRAM_HEADER_BYTES];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&(offset as u64).to_le_bytes());
            header[16..24].copy_from_slice(&(BASE + offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            file.extend(header);
        }
        for (tag, at) in
            [(TAG_SYMBOLS, symbols_at), (TAG_HASH, hash_at), (TAG_STRINGS, strings_at), (0, 0)]
        {
            file.extend(tag.to_le_bytes());
            file.extend((BASE + at as u64).to_le_bytes());
        }
        file.extend(symbols.iter().chain(&hash).chain(&strings));
        file
    }

    fn look_up(bytes: &[u8], names: &[&str]) -> io::Result<Vec<bool>> {
        let folder = TestFolder::new();
        let path = folder.path().join("lib.so");
        std::fs::write(&path, bytes)?;
        let file = File::open(path)?;
        let Some(mut symbols) = DynamicSymbols::open(&file)? else { return Ok(Vec::new()) };
        names.iter().map(|name| symbols.exports(name)).collect()
    }

    #[test]
    fn exported_functions_are_found_and_no_others() {
        for buckets in [1, 3] {
            let file = library(&["fsync", "open", "x"], buckets);
            let found = look_up(&file, &["open", "fsync", "fsyn", "write", "x"]).unwrap();
            assert_eq!(found, [true, true, false, false, true]);
        }
    }

    #[test]
    fn a_chain_without_an_end_is_an_error() {
        let mut file = library(&["fsync", "open"], 1);
        // The chain of the last symbol leads back to it.
        let at = file.len() - 1 - "fsync\0open\0".len() - 12;
        file[at + 4..at + 12].copy_from_slice(&[2, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(look_up(&file, &["read"]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of files")]
    fn damaged_and_cut_files_are_errors_or_answers() {
        let whole = library(&["fsync", "open", "clock_gettime"], 2);
        for length in 0..whole.len() {
            let _ = look_up(&whole[..length], &["fsync", "read"]);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut file = whole.clone();
                file[at] = value;
                let _ = look_up(&file, &["fsync", "read"]);
            }
        }
    }
}
