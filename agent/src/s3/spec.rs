//! What the engine is told: the target, who signs, and what is to be done there.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::dataset::{DataSet, ObjectRange, check_prefix};
use super::endpoint::{BucketStyle, bucket_fault};
use super::signature::Credentials;
use crate::native::pace::ArrivalKind;

/// The version of the format.
const FORMAT: u32 = 1;
/// What every prefix begins with below which anything may be written or removed.
pub const OWN_PREFIX: &str = "iolab-";
/// Servers of one target.
const MAX_ENDPOINTS: usize = 256;
/// Operations under way at a time, and connections.
const MAX_IN_FLIGHT: u32 = 65_536;
/// Of one attempt.
const MAX_TIMEOUT_S: f64 = 3600.0;
/// Keys of a page: the most that servers give.
const MAX_LIST_PAGE: u32 = 1000;
/// Attempts beside the first.
const MAX_RETRIES: u32 = 100;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Operations are measured.
    Load,
    /// The same, against a server of its own that keeps nothing.
    GeneratorLimit,
    /// The objects of a data set are put where they are missing.
    Layout,
    /// The servers are looked at.
    Check,
    /// The bucket is made where it is missing.
    CreateBucket,
    /// What lies below a prefix is summed.
    List,
    /// What keys below a prefix begin with.
    ListPrefixes,
    /// What lies below a prefix is removed.
    Delete,
    /// The sums of a data set; nobody is asked.
    PlanBytes,
}

/// How bodies are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Not at all.
    #[default]
    Unsigned,
    /// Each chunk.
    Streaming,
    /// As a whole, hashed before the request.
    Signed,
}

/// Where objects are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// URLs of the servers, over which connections are spread.
    pub endpoints: Vec<String>,
    /// The bucket.
    pub bucket: String,
    /// What signatures name.
    pub region: String,
    /// How requests name the bucket.
    #[serde(default)]
    pub style: BucketStyle,
    /// The authorities of certificates, in PEM; null for those of the host.
    #[serde(default)]
    pub ca_pem: Option<String>,
    /// How bodies are signed.
    #[serde(default)]
    pub payload: Payload,
}

/// Who signs. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "as all of the field name them")]
pub struct Secret {
    access_key: String,
    secret_key: String,
    #[serde(default)]
    session_token: Option<String>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Secret {
    /// What signs requests.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        Credentials {
            access_key: self.access_key.clone(),
            secret_key: self.secret_key.clone(),
            session_token: self.session_token.clone().filter(|token| !token.is_empty()),
        }
    }

    /// The public part.
    #[must_use]
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The same with a secret that is another: a server that takes it checks nothing.
    #[must_use]
    pub fn with_wrong_key(&self) -> Self {
        Self { secret_key: format!("{}x", self.secret_key), ..self.clone() }
    }
}

/// What is done to objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// A whole object is read.
    Get,
    /// A part of one is read.
    GetRange,
    /// An object is written.
    Put,
    /// An object's head is read.
    Head,
    /// A page of keys is read.
    List,
    /// An object is removed.
    Delete,
}

/// One kind of operation and how often it comes, in proportion to the others.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationShare {
    /// What is done.
    pub kind: OperationKind,
    /// How often.
    pub share: f64,
}

/// Which objects are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectOrder {
    /// Each as likely as any other.
    #[default]
    Uniform,
    /// Few of them often.
    Zipf,
    /// In the order of their numbers, again and again.
    Sequential,
    /// Each once, at random.
    Once,
}

/// Which keys objects are put under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PutKeys {
    /// Such as were never there.
    #[default]
    New,
    /// Those of the data set.
    Overwrite,
}

/// Which objects are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeleteKeys {
    /// Those that the same run has put, oldest first.
    #[default]
    New,
    /// Those of the data set, each once.
    DataSet,
}

/// Whether and how failed attempts are made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// At most so often; 0 for never.
    #[serde(default)]
    pub max: u32,
    /// The longest wait before the first of them; it doubles.
    #[serde(default = "base_ms")]
    pub base_ms: u64,
    /// And never grows beyond this.
    #[serde(default = "cap_ms")]
    pub cap_ms: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self { max: 0, base_ms: base_ms(), cap_ms: cap_ms() }
    }
}

/// All that the engine is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools, reason = "each is a key of the spec")]
pub struct Spec {
    /// The version of the format.
    pub format: u32,
    /// What is to be done.
    pub task: Task,
    /// Where.
    #[serde(default)]
    pub target: TargetSpec,
    /// Who signs.
    #[serde(default)]
    pub secret: Secret,
    /// Of one attempt, its connection included.
    #[serde(default = "timeout_s")]
    pub timeout_s: f64,
    /// The data set.
    #[serde(default)]
    pub objects: Option<DataSet>,
    /// This host's part of the data set; null for all of it.
    #[serde(default)]
    pub share: Option<ObjectRange>,
    /// Below which objects are listed or removed.
    #[serde(default)]
    pub prefix: String,
    /// Whether keys are told one by one, and how many at most.
    #[serde(default)]
    pub keys: bool,
    /// See `keys`.
    #[serde(default = "max_keys")]
    pub max_keys: u64,
    /// What is measured.
    #[serde(default)]
    pub operations: Vec<OperationShare>,
    /// Bytes of a part that is read.
    #[serde(default)]
    pub range_bytes: u64,
    /// Keys of a page.
    #[serde(default = "list_page")]
    pub list_page: u32,
    /// Which objects are read.
    #[serde(default)]
    pub order: ObjectOrder,
    /// How unlike objects are under `zipf`.
    #[serde(default = "zipf_theta")]
    pub zipf_theta: f64,
    /// Which keys objects are put under.
    #[serde(default)]
    pub put_keys: PutKeys,
    /// What new keys begin with.
    #[serde(default)]
    pub new_prefix: String,
    /// Which objects are removed.
    #[serde(default)]
    pub delete_keys: DeleteKeys,
    /// Operations under way at a time.
    #[serde(default = "default_one")]
    pub concurrency: u32,
    /// Parts of one object that are under way at a time.
    #[serde(default = "default_one")]
    pub parts_in_flight: u32,
    /// Operations a second; null for as many as there is room for.
    #[serde(default)]
    pub rate: Option<f64>,
    /// How the time between them varies.
    #[serde(default = "poisson")]
    pub arrivals: ArrivalKind,
    /// By which part of the time between two arrivals this host is later than the first.
    #[serde(default)]
    pub later: f64,
    /// Connections are used again.
    #[serde(default = "default_true")]
    pub keep_alive: bool,
    /// The contents of so many bodies are compared: every n-th; none for 0.
    #[serde(default)]
    pub verify_every: u32,
    /// GETs are of the objects that a load of the same prefix and seed has put as new ones.
    #[serde(default)]
    pub reads_new: bool,
    /// Whether and how failed attempts are made again.
    #[serde(default)]
    pub retries: Retries,
    /// Threads; null for one a processor.
    #[serde(default)]
    pub threads: Option<u32>,
    /// How long operations begin.
    #[serde(default)]
    pub runtime_s: f64,
    /// Between two intervals that are told.
    #[serde(default = "interval_ms")]
    pub interval_ms: u64,
    /// Of the order in which things come.
    #[serde(default)]
    pub seed: u64,
}

impl Spec {
    /// A spec that can be done; else all that speaks against it.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<String>> {
        // The place of a fault is told, never the text there: it may be a secret.
        let spec: Self = serde_json::from_slice(text).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            let what = match error.classify() {
                serde_json::error::Category::Data => error.to_string(),
                _ => format!("no JSON at {place}"),
            };
            vec![format!("The spec is not what it should be: {}.", without_values(&what))]
        })?;
        let faults = spec.faults();
        if faults.is_empty() { Ok(spec) } else { Err(faults) }
    }

    /// Of one attempt.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }

    /// This host's part of the data set.
    #[must_use]
    pub fn own_range(&self) -> ObjectRange {
        let count = self.objects.as_ref().map_or(0, |set| set.count);
        self.share.unwrap_or(ObjectRange { first: 0, count })
    }

    /// Whether anything of that kind is done.
    #[must_use]
    pub fn has_operation(&self, kind: OperationKind) -> bool {
        self.operations.iter().any(|one| one.kind == kind && one.share > 0.0)
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.format != FORMAT {
            faults.push(format!("format is {}, and this engine reads {FORMAT}.", self.format));
        }
        if self.task != Task::PlanBytes {
            self.add_target_faults(&mut faults);
        }
        for (name, value) in
            [("concurrency", self.concurrency), ("parts_in_flight", self.parts_in_flight)]
        {
            if value == 0 || value > MAX_IN_FLIGHT {
                faults.push(format!("{name} is {value}; it must be 1 to {MAX_IN_FLIGHT}."));
            }
        }
        let connections = u64::from(self.concurrency) * u64::from(self.parts_in_flight);
        if connections > u64::from(MAX_IN_FLIGHT) {
            faults.push(format!(
                "concurrency times parts_in_flight is {connections}; it must be at most {MAX_IN_FLIGHT}."
            ));
        }
        match self.task {
            Task::Load | Task::GeneratorLimit => self.add_load_faults(&mut faults),
            Task::Delete => Self::add_prefix_fault("prefix", &self.prefix, &mut faults),
            // Without one nothing is written.
            Task::Check if !self.prefix.is_empty() => {
                Self::add_prefix_fault("prefix", &self.prefix, &mut faults);
            }
            _ => {}
        }
        let needs_objects =
            matches!(self.task, Task::Load | Task::GeneratorLimit | Task::Layout | Task::PlanBytes);
        match &self.objects {
            Some(set) => {
                faults.extend(set.faults());
                let range = self.own_range();
                let end = range.first.checked_add(range.count);
                if range.count == 0 || end.is_none_or(|end| end > set.count) {
                    faults.push(format!(
                        "share has {} objects from {} on, and there are {}.",
                        range.count, range.first, set.count
                    ));
                }
                if self.task == Task::Layout || self.put_keys == PutKeys::Overwrite {
                    Self::add_prefix_fault("objects.prefix", &set.prefix, &mut faults);
                }
            }
            None if needs_objects => faults.push("objects is missing.".into()),
            None => {}
        }
        faults
    }

    fn add_target_faults(&self, faults: &mut Vec<String>) {
        let target = &self.target;
        if target.endpoints.is_empty() || target.endpoints.len() > MAX_ENDPOINTS {
            faults.push(format!(
                "target.endpoints has {} of 1 to {MAX_ENDPOINTS}.",
                target.endpoints.len()
            ));
        }
        faults.extend(bucket_fault(&target.bucket));
        let is_word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_word(&target.region) || target.region.contains('/') {
            faults.push(format!("target.region is {:?}; it must be a word.", target.region));
        }
        if !is_word(&self.secret.access_key) || !is_word(&self.secret.secret_key) {
            faults.push("secret needs an access_key and a secret_key, each a word.".into());
        }
        if self
            .secret
            .session_token
            .as_deref()
            .is_some_and(|token| !token.is_empty() && !is_word(token))
        {
            faults.push("secret.session_token must be a word.".into());
        }
        if !(self.timeout_s > 0.0 && self.timeout_s <= MAX_TIMEOUT_S) {
            faults.push(format!(
                "timeout_s is {}; it must be above zero and at most {MAX_TIMEOUT_S}.",
                self.timeout_s
            ));
        }
    }

    fn add_prefix_fault(name: &str, prefix: &str, faults: &mut Vec<String>) {
        faults.extend(check_prefix(name, prefix).err());
        if !prefix.starts_with(OWN_PREFIX) {
            faults.push(format!(
                "{name} is {prefix:?}; what is written or removed begins with {OWN_PREFIX:?}."
            ));
        }
    }

    fn add_load_faults(&self, faults: &mut Vec<String>) {
        let shares: f64 = self.operations.iter().map(|one| one.share).sum();
        if shares <= 0.0 || self.operations.iter().any(|one| !(0.0..=1e9).contains(&one.share)) {
            faults.push("operations needs shares, of which at least one is above zero.".into());
        }
        if !(self.runtime_s > 0.0 && self.runtime_s <= 1e7) || self.interval_ms == 0 {
            faults.push("runtime_s and interval_ms must be above zero.".into());
        }
        if self.has_operation(OperationKind::GetRange)
            && (self.range_bytes == 0 || self.range_bytes % super::contents::SECTOR_BYTES != 0)
        {
            faults.push(format!(
                "range_bytes is {}; it must be a multiple of 512.",
                self.range_bytes
            ));
        }
        if self.list_page == 0 || self.list_page > MAX_LIST_PAGE {
            faults
                .push(format!("list_page is {}; it must be 1 to {MAX_LIST_PAGE}.", self.list_page));
        }
        if self.order == ObjectOrder::Zipf && !(self.zipf_theta > 0.0 && self.zipf_theta <= 10.0) {
            faults.push(format!(
                "zipf_theta is {}; it must be above 0 and at most 10.",
                self.zipf_theta
            ));
        }
        if self.reads_new && self.order != ObjectOrder::Once {
            faults.push(format!(
                "reads_new reads each object once, and order is {:?}; it must be \"once\".",
                self.order
            ));
        }
        if self.reads_new
            || (self.has_operation(OperationKind::Put) && self.put_keys == PutKeys::New)
        {
            Self::add_prefix_fault("new_prefix", &self.new_prefix, faults);
        }
        let share_of = |kind| -> f64 {
            self.operations.iter().filter(|one| one.kind == kind).map(|one| one.share).sum()
        };
        let (puts, deletes) = (share_of(OperationKind::Put), share_of(OperationKind::Delete));
        let deletes_new = deletes > 0.0 && self.delete_keys == DeleteKeys::New;
        if deletes_new && (self.put_keys != PutKeys::New || puts < deletes) {
            faults.push(format!(
                "{deletes} of the operations remove what was put and {puts} put new objects; put as \
                 many, or give delete_keys data-set."
            ));
        }
        if self.has_operation(OperationKind::Delete) && self.delete_keys == DeleteKeys::DataSet {
            let prefix = self.objects.as_ref().map_or("", |set| set.prefix.as_str());
            Self::add_prefix_fault("objects.prefix", prefix, faults);
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            faults.push(format!("rate is {:?}; it must be above zero.", self.rate.unwrap_or(0.0)));
        }
        if self.retries.max > MAX_RETRIES {
            faults.push(format!(
                "retries.max is {}; it must be at most {MAX_RETRIES}.",
                self.retries.max
            ));
        }
        if self.threads == Some(0) {
            faults.push("threads is 0; it must be at least 1.".into());
        }
    }
}

/// A fault of serde's without the value that it quotes.
fn without_values(fault: &str) -> String {
    let is_type_fault = fault.starts_with("invalid type") || fault.starts_with("invalid value");
    match fault.split_once(", expected") {
        Some((_, expected)) if is_type_fault => format!("a value is not as expected,{expected}"),
        _ => fault.to_owned(),
    }
}

fn default_true() -> bool {
    true
}

fn default_one() -> u32 {
    1
}

fn timeout_s() -> f64 {
    30.0
}

fn list_page() -> u32 {
    MAX_LIST_PAGE
}

fn max_keys() -> u64 {
    100_000
}

fn zipf_theta() -> f64 {
    1.1
}

fn poisson() -> ArrivalKind {
    ArrivalKind::Poisson
}

fn interval_ms() -> u64 {
    1000
}

fn base_ms() -> u64 {
    50
}

fn cap_ms() -> u64 {
    5000
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub fn spec_with(keys: &Value) -> Value {
        let mut all = json!({
            "format": 1, "task": "load",
            "target": {"endpoints": ["http://127.0.0.1:1"], "bucket": "bucket", "region": "us-east-1"},
            "secret": {"access_key": "PUBLICPART", "secret_key": "SECRETPART"},
            "objects": {"prefix": "iolab-x/ds/", "count": 100, "prefixes": 4,
                "sizes": [{"bytes": 4096, "share": 1.0}], "seed": 1},
            "operations": [{"kind": "get", "share": 1.0}],
            "concurrency": 2, "runtime_s": 1.0, "interval_ms": 100, "threads": 1,
        });
        for (key, value) in keys.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    }

    fn told(keys: &Value) -> String {
        Spec::parse(spec_with(keys).to_string().as_bytes()).expect_err("has a fault").join(" ")
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let spec = Spec::parse(spec_with(&json!({})).to_string().as_bytes()).unwrap();
        assert_eq!(spec.retries, Retries { max: 0, base_ms: 50, cap_ms: 5000 });
        assert_eq!((spec.target.payload, spec.keep_alive), (Payload::Unsigned, true));
        assert_eq!(spec.own_range(), ObjectRange { first: 0, count: 100 });
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_its_value() {
        for (keys, part) in [
            (json!({"format": 2}), "format is 2"),
            (json!({"concurrency": 0}), "concurrency is 0"),
            (json!({"concurrency": 60_000, "parts_in_flight": 2}), "120000"),
            (json!({"share": {"first": 99, "count": 2}}), "2 objects from 99"),
            (json!({"operations": [{"kind": "put", "share": 1}], "new_prefix": "mine/"}), "mine/"),
            (json!({"operations": [{"kind": "delete", "share": 1}]}), "delete_keys data-set"),
            (json!({"operations": []}), "operations needs shares"),
            (json!({"reads_new": true, "order": "once"}), "new_prefix is \"\""),
            (json!({"reads_new": true, "new_prefix": "iolab-x/"}), "order is Uniform"),
            (json!({"operations": [{"kind": "get-range", "share": 1}]}), "range_bytes is 0"),
            (json!({"task": "delete", "prefix": "x/"}), "\"x/\""),
            (json!({"task": "delete", "prefix": "iolab-x"}), "end with '/'"),
            (json!({"timeout_s": 0}), "timeout_s is 0"),
            (json!({"rate": -1.0}), "rate is -1"),
            (json!({"retries": {"max": 1000}}), "retries.max is 1000"),
        ] {
            assert!(told(&keys).contains(part), "{keys}: {}", told(&keys));
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let told = told(&json!({"format": 9, "concurrency": 0, "runtime_s": 0}));
        assert!(
            told.contains("format") && told.contains("concurrency") && told.contains("runtime")
        );
    }

    #[test]
    fn no_secret_is_shown_or_told() {
        let spec = Spec::parse(spec_with(&json!({})).to_string().as_bytes()).unwrap();
        let shown = format!("{spec:?}");
        assert!(!shown.contains("SECRETPART") && !shown.contains("PUBLICPART"), "{shown}");
        let misplaced = told(&json!({"concurrency": "SECRETPART"}));
        assert!(!misplaced.contains("SECRETPART") && misplaced.contains("expected"), "{misplaced}");
    }
}
