//! The objects of a data set: their keys and sizes follow from their numbers.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use serde::Deserialize;

use crate::native::random::split_mix;

/// A number has so many digits, and the folder that its key lies in so many.
const NUMBER_DIGITS: usize = 12;
const FOLDER_DIGITS: usize = 4;
/// Objects of one data set.
const MAX_OBJECTS: u64 = 1_000_000_000;
/// Prefixes over which they are spread.
const MAX_PREFIXES: u32 = 1 << (4 * FOLDER_DIGITS);
/// Of one object: what S3 takes.
const MAX_OBJECT_BYTES: u64 = 5 << 40;
/// Of one upload.
const MAX_PARTS: u64 = 10_000;
/// Sizes that are listed.
const MAX_SIZES: usize = 64;
/// A key of S3 has at most 1,024 bytes.
const MAX_PREFIX_BYTES: usize = 512;

/// The objects, as the spec has them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    /// What all keys begin with.
    pub prefix: String,
    /// How many objects there are.
    pub count: u64,
    /// Over how many prefixes they are spread.
    #[serde(default = "default_one")]
    pub prefixes: u32,
    /// Their sizes, drawn by shares.
    #[serde(default)]
    pub sizes: Vec<SizeShare>,
    /// Their sizes, drawn from that.
    #[serde(default)]
    pub log_normal: Option<LogNormal>,
    /// Of sizes and contents.
    pub seed: u64,
    /// Objects that are larger are put in parts of that size.
    #[serde(default)]
    pub part_bytes: Option<u64>,
}

/// One size and how often it comes, in proportion to the others.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// Of an object.
    pub bytes: u64,
    /// How often it comes.
    pub share: f64,
}

/// Sizes whose logarithms are normally distributed, with bounds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogNormal {
    /// Half of all are smaller.
    pub median_bytes: u64,
    /// The standard deviation of the natural logarithm.
    pub sigma: f64,
    /// What is smaller becomes this.
    pub min_bytes: u64,
    /// What is larger becomes this.
    pub max_bytes: u64,
}

/// A part of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectRange {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl DataSet {
    /// All that cannot be meant, each in a sentence.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Err(fault) = check_prefix("objects.prefix", &self.prefix) {
            faults.push(fault);
        }
        for (name, value, most) in [
            ("objects.count", self.count, MAX_OBJECTS),
            ("objects.prefixes", u64::from(self.prefixes), u64::from(MAX_PREFIXES)),
        ] {
            if value == 0 || value > most {
                faults.push(format!("{name} is {value}; it must be 1 to {most}."));
            }
        }
        if self.sizes.is_empty() == self.log_normal.is_none() || self.sizes.len() > MAX_SIZES {
            faults.push(format!(
                "objects needs either sizes (at most {MAX_SIZES}) or log_normal, not both."
            ));
        }
        for size in &self.sizes {
            if size.bytes > MAX_OBJECT_BYTES {
                faults.push(format!(
                    "A size is {} bytes; it must be at most {MAX_OBJECT_BYTES}.",
                    size.bytes
                ));
            }
            if !(size.share > 0.0 && size.share <= 1e9) {
                faults.push(format!("A share of sizes is {}; it must be above zero.", size.share));
            }
        }
        if let Some(law) = self.log_normal {
            let ordered = law.min_bytes <= law.median_bytes && law.median_bytes <= law.max_bytes;
            if !ordered || law.median_bytes == 0 || law.max_bytes > MAX_OBJECT_BYTES {
                faults.push(format!(
                    "log_normal goes from {} over {} to {} bytes; these must rise, up to \
                     {MAX_OBJECT_BYTES}.",
                    law.min_bytes, law.median_bytes, law.max_bytes
                ));
            }
            if !(law.sigma > 0.0 && law.sigma <= 10.0) {
                faults.push(format!("log_normal.sigma is {}; it must be 0 to 10.", law.sigma));
            }
        }
        if let Some(bytes) = self.part_bytes {
            let least = self.largest_bytes().div_ceil(MAX_PARTS).max(super::contents::SECTOR_BYTES);
            if bytes < least || bytes % super::contents::SECTOR_BYTES != 0 {
                faults.push(format!(
                    "objects.part_bytes is {bytes}; it must be a multiple of 512 and at least \
                     {least}, as an upload has at most {MAX_PARTS} parts."
                ));
            }
        }
        faults
    }

    /// The size of the largest object that there may be.
    #[must_use]
    pub fn largest_bytes(&self) -> u64 {
        let listed = self.sizes.iter().map(|size| size.bytes).max();
        listed.or(self.log_normal.map(|law| law.max_bytes)).unwrap_or(0)
    }

    /// The size of the smallest.
    #[must_use]
    pub fn smallest_bytes(&self) -> u64 {
        let listed = self.sizes.iter().map(|size| size.bytes).min();
        listed.or(self.log_normal.map(|law| law.min_bytes)).unwrap_or(0)
    }

    /// Whether objects are of more than one size.
    #[must_use]
    pub fn has_many_sizes(&self) -> bool {
        self.sizes.len() > 1 || self.log_normal.is_some()
    }

    /// The size of the object of that number.
    #[must_use]
    pub fn object_bytes(&self, number: u64) -> u64 {
        if let [only] = self.sizes.as_slice() {
            return only.bytes;
        }
        let (first, second) = (self.unit(number, 0), self.unit(number, 1));
        if let Some(law) = self.log_normal {
            // Box and Muller.
            let normal = (-2.0 * first.ln()).sqrt() * (TAU * second).cos();
            let bytes = law.median_bytes as f64 * (law.sigma * normal).exp();
            return (bytes as u64).clamp(law.min_bytes, law.max_bytes);
        }
        let whole: f64 = self.sizes.iter().map(|size| size.share).sum();
        let mut left = first * whole;
        for size in &self.sizes {
            left -= size.share;
            if left <= 0.0 {
                return size.bytes;
            }
        }
        self.largest_bytes()
    }

    /// A number in (0, 1] that follows from seed and object.
    fn unit(&self, number: u64, nth: u64) -> f64 {
        let bits = split_mix(self.seed ^ 0x517E, number.wrapping_mul(2) + nth + 1);
        ((bits >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// How many parts an object of that size is put in; 1 where it is put as a whole.
    #[must_use]
    pub fn parts(&self, bytes: u64) -> u64 {
        self.part_bytes.filter(|&part| bytes > part).map_or(1, |part| bytes.div_ceil(part))
    }

    /// The bytes of a range of objects, how many parts they have and how large the largest is.
    #[must_use]
    pub fn sums(&self, range: ObjectRange) -> (u64, u64, u64) {
        let mut sums = (0_u64, 0_u64, 0_u64);
        for number in range.first..range.first + range.count {
            let bytes = self.object_bytes(number);
            sums.0 = sums.0.saturating_add(bytes);
            sums.1 += self.parts(bytes);
            sums.2 = sums.2.max(bytes);
        }
        sums
    }

    /// The prefix in which the object of that number lies.
    #[must_use]
    pub fn folder_of(&self, number: u64) -> u32 {
        (number % u64::from(self.prefixes)) as u32
    }

    /// A prefix of the data set.
    #[must_use]
    pub fn folder(&self, folder: u32) -> String {
        format!("{}{folder:0FOLDER_DIGITS$x}/", self.prefix)
    }

    /// The key of the object of that number, put behind what `key` has.
    pub fn push_key(&self, prefix: &str, number: u64, key: &mut String) {
        let folder = self.folder_of(number);
        let _ = write!(key, "{prefix}{folder:0FOLDER_DIGITS$x}/{number:0NUMBER_DIGITS$}");
    }

    /// The number of an object by its key; None for a key that is none of the data set.
    #[must_use]
    pub fn number_of(&self, key: &str) -> Option<u64> {
        let (_, digits) = key.strip_prefix(&self.prefix)?.split_once('/')?;
        let number = digits.parse().ok()?;
        let mut own = String::new();
        self.push_key(&self.prefix, number, &mut own);
        (own == key && number < self.count).then_some(number)
    }
}

/// A prefix that keys may begin with. Its bytes need no escapes, so that keys are the same in paths.
pub fn check_prefix(name: &str, prefix: &str) -> Result<(), String> {
    let is_plain =
        prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
    let is_folder = prefix.ends_with('/') && !prefix.starts_with('/') && !prefix.contains("//");
    let has_dots = prefix.split('/').any(|part| part == "." || part == "..");
    if is_plain && is_folder && !has_dots && prefix.len() <= MAX_PREFIX_BYTES {
        return Ok(());
    }
    Err(format!(
        "{name} is {prefix:?}; it must be of letters, digits, '-', '.', '_' and '/', and end with '/'."
    ))
}

fn default_one() -> u32 {
    1
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn data_set(sizes: &[(u64, f64)]) -> DataSet {
        DataSet {
            prefix: "iolab-x/ds/".into(),
            count: 1000,
            prefixes: 16,
            sizes: sizes.iter().map(|&(bytes, share)| SizeShare { bytes, share }).collect(),
            log_normal: None,
            seed: 1,
            part_bytes: None,
        }
    }

    #[test]
    fn keys_are_spread_and_read_back() {
        let set = data_set(&[(4096, 1.0)]);
        let key = |number| {
            let mut key = String::new();
            set.push_key(&set.prefix, number, &mut key);
            key
        };
        assert_eq!(key(31), "iolab-x/ds/000f/000000000031");
        assert!((0..100).all(|number| set.number_of(&key(number)) == Some(number)));
        assert!(key(31).starts_with(&set.folder(15)));
        for other in
            ["iolab-x/ds/000e/000000000031", "iolab-x/ds/0/31", "x", "iolab-x/ds/", &key(1000)]
        {
            assert_eq!(set.number_of(other), None, "{other}");
        }
    }

    #[test]
    fn sizes_come_by_their_shares_and_are_always_the_same() {
        let set = data_set(&[(1000, 70.0), (2000, 30.0)]);
        let small = (0..10_000).filter(|&number| set.object_bytes(number) == 1000).count();
        // The standard deviation is 46.
        assert!(small.abs_diff(7000) < 250, "{small}");
        let range = ObjectRange { first: 0, count: 10_000 };
        let bytes = small as u64 * 1000 + (10_000 - small as u64) * 2000;
        assert_eq!(set.sums(range), (bytes, 10_000, 2000));
        assert_eq!(set.clone().sums(range), set.sums(range));
    }

    #[test]
    fn log_normal_sizes_have_their_median_and_spread() {
        let law =
            LogNormal { median_bytes: 65_536, sigma: 1.0, min_bytes: 1024, max_bytes: 1 << 24 };
        let set = DataSet { log_normal: Some(law), ..data_set(&[]) };
        let mut sizes: Vec<u64> = (0..10_001).map(|number| set.object_bytes(number)).collect();
        sizes.sort_unstable();
        let ratio = |at: usize| sizes[at] as f64 / 65_536.0;
        assert!((ratio(5000) - 1.0).abs() < 0.07, "{}", ratio(5000));
        // A standard deviation above the median are 15.87 %.
        assert!((ratio(8413).ln() - 1.0).abs() < 0.1, "{}", ratio(8413));
        assert!(sizes[0] >= 1024 && sizes[10_000] <= 1 << 24);
    }

    #[test]
    fn objects_above_the_size_of_a_part_have_parts() {
        let set = DataSet { part_bytes: Some(8 << 20), ..data_set(&[(64 << 20, 1.0)]) };
        assert_eq!(
            [1, 8 << 20, (8 << 20) + 1, 64 << 20].map(|bytes| set.parts(bytes)),
            [1, 1, 2, 8]
        );
        assert!(set.faults().is_empty());
    }

    #[test]
    fn all_that_cannot_be_meant_is_told_with_its_value() {
        let law = LogNormal { median_bytes: 5, sigma: 11.0, min_bytes: 6, max_bytes: 7 };
        let set = DataSet {
            prefix: "../x".into(),
            count: 0,
            prefixes: 70_000,
            log_normal: Some(law),
            part_bytes: Some(100),
            ..data_set(&[(1 << 50, -1.0)])
        };
        let told = set.faults().join(" ");
        for part in [
            "../x",
            "count is 0",
            "70000",
            "not both",
            "-1",
            "1125899906842624",
            "from 6",
            "11",
            "100",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
