//! What the engine is told: the files, and the accelerators that want their samples.

use serde::Deserialize;

use super::samples::SampleSizes;

/// The version of the format.
const FORMAT: u32 = 1;
/// Accelerators of one host.
const MAX_ACCELERATORS: u32 = 4096;
/// Loaders of one accelerator, and of all of a host.
const MAX_LOADERS: u32 = 256;
const MAX_THREADS: u64 = 16_384;
/// Batches that a loader is ahead.
const MAX_PREFETCH: u32 = 64;
/// Samples of one batch.
const MAX_BATCH: u32 = 1 << 24;
/// A read; each loader has memory for one.
const MAX_READ_BYTES: u64 = 1 << 30;
/// Sectors of direct I/O.
pub const ALIGNMENT: u64 = 4096;

/// All that the engine is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The version of the format.
    pub format: u32,
    /// What the names of files begin with; a number follows.
    pub path: String,
    /// How many files there are.
    pub files: u64,
    /// Of one file.
    pub file_bytes: u64,
    /// Where the samples of the files lie.
    pub samples: SampleSizes,
    /// Samples that are shuffled together, and read one after the other.
    pub samples_per_group: u64,
    /// Accelerators of this host.
    pub accelerators: u32,
    /// Threads that read for each of them.
    pub loaders: u32,
    /// Batches that each of these may be ahead.
    pub prefetch: u32,
    /// Samples of one step of an accelerator.
    pub batch: u32,
    /// How long a step computes.
    pub compute_ns: u64,
    /// Of one read.
    pub read_bytes: u64,
    /// All accelerators end a step together.
    pub barrier: bool,
    /// Past the page cache.
    pub direct: bool,
    /// How long steps are made.
    pub runtime_s: f64,
    /// Between two intervals that are told.
    pub interval_ms: u64,
    /// Of the order of samples.
    pub seed: u64,
}

impl Spec {
    /// A spec that can be done; else a sentence on what cannot.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let spec: Self = serde_json::from_slice(text)
            .map_err(|error| format!("The spec is not what it should be: {error}."))?;
        spec.fault().map_or(Ok(spec), Err)
    }

    fn fault(&self) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("format is {}, and this engine reads {FORMAT}.", self.format));
        }
        for (name, value, most) in [
            ("accelerators", self.accelerators, MAX_ACCELERATORS),
            ("loaders", self.loaders, MAX_LOADERS),
            ("prefetch", self.prefetch, MAX_PREFETCH),
            ("batch", self.batch, MAX_BATCH),
        ] {
            if value == 0 || value > most {
                return Some(format!("{name} is {value}; it must be 1 to {most}."));
            }
        }
        let threads = u64::from(self.accelerators) * u64::from(self.loaders + 1);
        if threads > MAX_THREADS {
            return Some(format!("There are {threads} threads; {MAX_THREADS} are the most."));
        }
        for (name, value, most) in [
            ("file_bytes", self.file_bytes, 1 << 50),
            ("read_bytes", self.read_bytes, MAX_READ_BYTES),
        ] {
            if value == 0 || value > most || value % ALIGNMENT != 0 {
                return Some(format!(
                    "{name} is {value}; it must be a multiple of {ALIGNMENT} up to {most}."
                ));
            }
        }
        if !(self.runtime_s > 0.0 && self.runtime_s <= 1e7) || self.interval_ms == 0 {
            return Some("runtime_s and interval_ms must be above zero.".into());
        }
        if self.compute_ns == 0 {
            return Some("compute_ns is 0; a step must take some time.".into());
        }
        if self.path.contains('/') || self.path.is_empty() {
            return Some(format!("path is {:?}; it must be a name in the folder.", self.path));
        }
        None
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub fn spec_with(keys: &Value) -> Value {
        let mut all = json!({
            "format": 1, "path": "tr.0.", "files": 8, "file_bytes": 8192,
            "samples": { "fixed": { "bytes": 8000, "per_file": 1 } }, "samples_per_group": 1,
            "accelerators": 2, "loaders": 2, "prefetch": 2, "batch": 2, "compute_ns": 1_000_000,
            "read_bytes": 4096, "barrier": true, "direct": false, "runtime_s": 1.0,
            "interval_ms": 100, "seed": 1,
        });
        for (key, value) in keys.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        assert!(Spec::parse(spec_with(&json!({})).to_string().as_bytes()).is_ok());
        for (keys, part) in [
            (json!({"batch": 0}), "batch is 0"),
            (json!({"loaders": 300}), "300"),
            (json!({"accelerators": 4096, "loaders": 4}), "20480"),
            (json!({"file_bytes": 8000}), "8000"),
            (json!({"path": "../x"}), "../x"),
            (json!({"compute_ns": 0}), "compute_ns"),
        ] {
            let fault = Spec::parse(spec_with(&keys).to_string().as_bytes()).unwrap_err();
            assert!(fault.contains(part), "{fault}");
        }
    }
}
