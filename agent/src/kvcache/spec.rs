//! What the engine is told: the store, and the requests that are replayed against it.

use serde::Deserialize;

/// The version of the format.
const FORMAT: u32 = 1;
/// Blocks of all requests; each takes some tens of bytes of memory.
const MAX_BLOCKS: usize = 1 << 26;
/// Threads that read, and that write.
const MAX_IN_FLIGHT: u32 = 1024;
/// Sectors of direct I/O, and of stamps.
const ALIGNMENT: u64 = 4096;
/// A block's objects of all ranks and layers.
const MAX_OBJECTS: u32 = 65_536;

/// Where the objects of blocks lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// All in one file, which is there.
    Slab,
    /// Each in a file of its own, written aside and renamed.
    Files,
}

/// Which blocks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WritePolicy {
    /// Each that a request has and the store has not.
    Miss,
    /// Of these, those that an earlier request had too.
    SecondUse,
    /// None: the store stays as it is.
    None,
}

/// One request: how many microseconds it comes after the one before it, or after the start; and its
/// blocks: which earlier request has its first ones, counted backwards (0 for none), how many these
/// are, and how many new ones follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RequestSpec(pub u64, pub u32, pub u32, pub u32);

/// All that the engine is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the spec")]
pub struct Spec {
    /// The version of the format.
    pub format: u32,
    /// Of one object.
    pub object_bytes: u64,
    /// Objects of one block.
    pub objects: u32,
    /// Blocks for which there is room on the target.
    pub slots: u32,
    /// Blocks that the store may hold.
    pub capacity: u32,
    /// Blocks that a memory above the store holds, whose hits are not read.
    #[serde(default)]
    pub memory: u32,
    /// Where objects lie.
    pub place: Placement,
    /// The slab, or what the names of files begin with.
    pub path: String,
    /// Which blocks are written.
    pub write: WritePolicy,
    /// Each write is flushed before it counts as done.
    #[serde(default)]
    pub fsync: bool,
    /// Past the page cache.
    pub direct: bool,
    /// What is read must be what was written there.
    pub verify: bool,
    /// Reads that may be under way at a time.
    pub reads_in_flight: u32,
    /// Writes that may be under way at a time.
    pub writes_in_flight: u32,
    /// Requests come as soon as there is room for them, and not at their times.
    #[serde(default)]
    pub closed: bool,
    /// How long requests come.
    pub runtime_s: f64,
    /// Between two intervals that are told.
    pub interval_ms: u64,
    /// Of what is written.
    pub seed: u64,
    /// So many of the requests came before the start: they only decide what the store holds.
    pub warm: usize,
    /// In the order in which they come.
    pub requests: Vec<RequestSpec>,
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
            ("objects", self.objects, MAX_OBJECTS),
            ("slots", self.slots, u32::MAX / self.objects.max(1)),
            ("capacity", self.capacity, self.slots),
            ("reads_in_flight", self.reads_in_flight, MAX_IN_FLIGHT),
            ("writes_in_flight", self.writes_in_flight, MAX_IN_FLIGHT),
        ] {
            if value == 0 || value > most {
                return Some(format!("{name} is {value}; it must be 1 to {most}."));
            }
        }
        if self.object_bytes == 0 || self.object_bytes % ALIGNMENT != 0 {
            return Some(format!(
                "object_bytes is {}; it must be a multiple of {ALIGNMENT}.",
                self.object_bytes
            ));
        }
        if !(self.runtime_s > 0.0 && self.runtime_s <= 1e7) || self.interval_ms == 0 {
            return Some("runtime_s and interval_ms must be above zero.".into());
        }
        if self.path.contains('/') || self.path.is_empty() {
            return Some(format!("path is {:?}; it must be a name in the folder.", self.path));
        }
        if self.warm > self.requests.len() {
            return Some(format!("warm is {} of {} requests.", self.warm, self.requests.len()));
        }
        None
    }

    /// The blocks of every request, numbered in the order in which they first appear; a sentence
    /// where a request is none that can be.
    pub fn paths(&self) -> Result<(Vec<Vec<u32>>, usize), String> {
        let mut paths: Vec<Vec<u32>> = Vec::with_capacity(self.requests.len());
        let mut blocks = 0_usize;
        for (nth, &RequestSpec(_, parent, shared, new)) in self.requests.iter().enumerate() {
            let fault = |what: &str| format!("requests[{nth}] {what}.");
            let mut path = Vec::new();
            if shared > 0 {
                let kept = nth.checked_sub(parent as usize).filter(|_| parent > 0);
                let kept = kept.and_then(|at| paths[at].get(..shared as usize));
                path.extend_from_slice(kept.ok_or_else(|| fault("has no such parent"))?);
            }
            blocks += new as usize;
            if path.len() + new as usize == 0 || blocks > MAX_BLOCKS {
                return Err(fault("has no blocks, or all together have too many"));
            }
            path.extend(blocks as u32 - new..blocks as u32);
            paths.push(path);
        }
        Ok((paths, blocks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub fn spec_with(keys: &Value) -> Value {
        let mut all = json!({
            "format": 1, "object_bytes": 4096, "objects": 1, "slots": 8, "capacity": 4,
            "place": "slab", "path": "kv.0.0", "write": "miss", "direct": false, "verify": true,
            "reads_in_flight": 2, "writes_in_flight": 1, "runtime_s": 1.0, "interval_ms": 100,
            "seed": 1, "warm": 1, "requests": [[0, 0, 0, 3], [5, 1, 2, 2]],
        });
        for (key, value) in keys.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    }

    #[test]
    fn requests_share_prefixes_and_bring_new_blocks() {
        let spec = Spec::parse(spec_with(&json!({})).to_string().as_bytes()).unwrap();
        assert_eq!(spec.paths().unwrap(), (vec![vec![0, 1, 2], vec![0, 1, 3, 4]], 5));
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        for (keys, part) in [
            (json!({"object_bytes": 1000}), "1000"),
            (json!({"capacity": 9}), "9"),
            (json!({"path": "../x"}), "../x"),
            (json!({"requests": [[0, 0, 0, 0]], "warm": 0}), "requests[0]"),
            (json!({"requests": [[0, 1, 1, 1]], "warm": 0}), "requests[0]"),
            (json!({"warm": 7}), "7"),
        ] {
            let told = match Spec::parse(spec_with(&keys).to_string().as_bytes()) {
                Ok(spec) => spec.paths().err(),
                Err(fault) => Some(fault),
            };
            assert!(told.expect(part).contains(part), "{keys}");
        }
    }
}
