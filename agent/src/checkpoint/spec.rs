//! What the engine is told: one phase of one host's ranks, and their files.

use std::path::Path;

use serde::Deserialize;

/// The version of the format.
const FORMAT: u32 = 1;
/// Sectors of direct I/O, and the unit of requests.
pub const ALIGNMENT: u64 = 4096;
/// Threads of one rank that read or write.
const MAX_IN_FLIGHT: u32 = 64;
/// Threads of one host.
const MAX_THREADS: usize = 8192;
/// One request: system calls move less than 2 GiB.
const MAX_REQUEST_BYTES: u64 = 1 << 30;

/// What the ranks do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Write their files anew.
    Save,
    /// Read files, whole or parts of their items.
    Restore,
    /// Remove the files.
    Remove,
}

/// When a file counts as saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the kernel has it.
    None,
    /// When it was flushed.
    Fsync,
    /// The same under another name, then renamed, and its folder flushed at the end.
    Publish,
}

/// A part of every item of a file: from `0` up to below `1` of `2` equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Slice(pub u64, pub u64, pub u64);

/// One file of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// A name in the working directory, or an absolute path to read from.
    pub path: String,
    /// Its number in the checkpoint, as its contents tell it.
    pub number: u32,
    /// Its size.
    pub bytes: u64,
    /// Which part of its items is read; the whole file without one.
    #[serde(default)]
    pub slice: Option<Slice>,
}

/// One rank and its files, in the order in which it goes through them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankSpec {
    /// Its number among those of all hosts.
    pub rank: u32,
    /// Its files.
    pub files: Vec<FileSpec>,
}

/// All that the engine is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The version of the format.
    pub format: u32,
    /// What the ranks do.
    pub phase: Phase,
    /// When a file counts as saved.
    pub durable: Durability,
    /// Past the page cache.
    pub direct: bool,
    /// What is read must be what was saved.
    pub verify: bool,
    /// Of one read or write.
    pub request_bytes: u64,
    /// Requests that a rank has under way.
    pub in_flight: u32,
    /// Of what is written.
    pub seed: u64,
    /// Of the checkpoint, among all that are saved to these files; from one on.
    pub sequence: u64,
    /// Between two intervals that are told.
    pub interval_ms: u64,
    /// How many items of how many bytes lie in each file that is read by slices, in their order.
    #[serde(default)]
    pub items: Vec<(u64, u64)>,
    /// The ranks of this host.
    pub ranks: Vec<RankSpec>,
}

impl Spec {
    /// A spec that can be done; else sentences on what cannot.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<String>> {
        let spec: Self = serde_json::from_slice(text)
            .map_err(|error| vec![format!("The spec is not what it should be: {error}.")])?;
        let faults = spec.faults();
        if faults.is_empty() { Ok(spec) } else { Err(faults) }
    }

    /// The threads that read or write.
    pub fn threads(&self) -> usize {
        self.ranks.len() * self.in_flight as usize
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.format != FORMAT {
            faults.push(format!("format is {}, and this engine reads {FORMAT}.", self.format));
        }
        if self.request_bytes == 0
            || self.request_bytes % ALIGNMENT != 0
            || self.request_bytes > MAX_REQUEST_BYTES
        {
            faults.push(format!(
                "request_bytes is {}; it must be a multiple of {ALIGNMENT} up to {MAX_REQUEST_BYTES}.",
                self.request_bytes
            ));
        }
        if self.in_flight == 0 || self.in_flight > MAX_IN_FLIGHT {
            faults
                .push(format!("in_flight is {}; it must be 1 to {MAX_IN_FLIGHT}.", self.in_flight));
        }
        if self.threads() > MAX_THREADS {
            faults.push(format!(
                "{} ranks with {} requests each take {} threads; {MAX_THREADS} are the most.",
                self.ranks.len(),
                self.in_flight,
                self.threads()
            ));
        }
        if self.sequence == 0 || self.interval_ms == 0 {
            faults.push("sequence and interval_ms must be above zero.".into());
        }
        for file in self.ranks.iter().flat_map(|rank| &rank.files) {
            faults.extend(self.file_fault(file));
        }
        faults
    }

    fn file_fault(&self, file: &FileSpec) -> Option<String> {
        let name = &file.path;
        let path = Path::new(name);
        let is_own = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        let is_read_elsewhere = self.phase == Phase::Restore && path.is_absolute();
        if !is_own && !is_read_elsewhere {
            return Some(format!("path is {name:?}; it must be a name in the folder."));
        }
        if file.bytes == 0 {
            return Some(format!("{name} has no bytes."));
        }
        let Slice(from, to, parts) = file.slice?;
        if self.phase != Phase::Restore || from >= to || to > parts {
            return Some(format!("The slice of {name} is {from} to {to} of {parts}."));
        }
        let sum = self.items.iter().map(|&(count, bytes)| count.saturating_mul(bytes));
        let sum = sum.fold(0, u64::saturating_add);
        (sum != file.bytes)
            .then(|| format!("{name} has {} bytes, and its items have {sum}.", file.bytes))
    }
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Its first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
}

/// What of a file is wanted, in its order: ranges that touch each other are one.
pub fn wanted_ranges(file: &FileSpec, items: &[(u64, u64)]) -> Vec<ByteRange> {
    let Some(Slice(from, to, parts)) = file.slice else {
        return vec![ByteRange { start: 0, end: file.bytes }];
    };
    let part_of =
        |bytes: u64, at: u64| (u128::from(bytes) * u128::from(at) / u128::from(parts)) as u64;
    let mut ranges: Vec<ByteRange> = Vec::new();
    let mut start = 0;
    for &(count, bytes) in items {
        for _ in 0..count {
            let range =
                ByteRange { start: start + part_of(bytes, from), end: start + part_of(bytes, to) };
            start += bytes;
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ if range.start < range.end => ranges.push(range),
                _ => {}
            }
        }
    }
    ranges
}

/// The same ranges grown to whole blocks and joined where these meet, in equal shares of so many
/// threads, each contiguous. `size` is the file's, behind which nothing is read or written.
pub fn shares_of_threads(wanted: &[ByteRange], size: u64, threads: usize) -> Vec<Vec<ByteRange>> {
    let mut blocks: Vec<ByteRange> = Vec::new();
    for range in wanted {
        let start = range.start / ALIGNMENT * ALIGNMENT;
        let end = range.end.next_multiple_of(ALIGNMENT).min(size.next_multiple_of(ALIGNMENT));
        match blocks.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => blocks.push(ByteRange { start, end }),
        }
    }
    let all: u64 = blocks.iter().map(|range| range.end - range.start).sum();
    let share = all.div_ceil(threads as u64).next_multiple_of(ALIGNMENT).max(ALIGNMENT);
    let mut shares = vec![Vec::new(); threads];
    let mut done = 0;
    for mut range in blocks {
        while range.start < range.end {
            let nth = (done / share) as usize;
            let bytes = (range.end - range.start).min(share - done % share);
            shares[nth].push(ByteRange { start: range.start, end: range.start + bytes });
            range.start += bytes;
            done += bytes;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parse_with(keys: &Value) -> Result<Spec, Vec<String>> {
        let mut all = json!({
            "format": 1, "phase": "save", "durable": "fsync", "direct": false, "verify": true,
            "request_bytes": 8192, "in_flight": 2, "seed": 1, "sequence": 1, "interval_ms": 100,
            "ranks": [{ "rank": 0, "files": [{ "path": "a", "number": 0, "bytes": 10 }] }],
        });
        for (key, value) in keys.as_object().unwrap() {
            all[key] = value.clone();
        }
        Spec::parse(all.to_string().as_bytes())
    }

    #[test]
    fn all_that_cannot_be_meant_is_told_at_once() {
        assert!(parse_with(&json!({})).is_ok());
        let ranks = json!([{ "rank": 0, "files": [
            { "path": "../x", "number": 0, "bytes": 10 },
            { "path": "y", "number": 0, "bytes": 0 },
        ] }]);
        let faults = parse_with(&json!({ "request_bytes": 1000, "in_flight": 0, "ranks": ranks }));
        let faults = faults.unwrap_err();
        for part in ["1000", "in_flight is 0", "../x", "y has no bytes"] {
            assert!(faults.iter().any(|fault| fault.contains(part)), "{part}: {faults:?}");
        }
        let away = json!([{ "rank": 0, "files": [{ "path": "/a", "number": 0, "bytes": 1 }] }]);
        assert!(parse_with(&json!({ "ranks": away })).is_err());
        assert!(parse_with(&json!({ "ranks": away, "phase": "restore" })).is_ok());
    }

    #[test]
    fn slices_take_their_part_of_every_item() {
        let file = |slice| FileSpec { path: "a".into(), number: 0, bytes: 24_000, slice };
        let items = [(2, 10_000), (1, 4000)];
        let range = |start, end| ByteRange { start, end };
        assert_eq!(wanted_ranges(&file(None), &items), vec![range(0, 24_000)]);
        assert_eq!(
            wanted_ranges(&file(Some(Slice(0, 1, 2))), &items),
            vec![range(0, 5000), range(10_000, 15_000), range(20_000, 22_000)]
        );
        // The whole of every item is one range.
        assert_eq!(wanted_ranges(&file(Some(Slice(0, 2, 2))), &items), vec![range(0, 24_000)]);
    }

    #[test]
    fn shares_cover_the_wanted_blocks_once() {
        let wanted =
            [ByteRange { start: 100, end: 9000 }, ByteRange { start: 50_000, end: 50_010 }];
        for threads in 1..9 {
            let shares = shares_of_threads(&wanted, 50_010, threads);
            assert_eq!(shares.len(), threads);
            let all: Vec<ByteRange> = shares.concat();
            assert_eq!(all.iter().map(|range| range.end - range.start).sum::<u64>(), 16_384);
            assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start));
            assert_eq!((all[0].start, all.last().unwrap().end), (0, 53_248));
        }
    }
}
