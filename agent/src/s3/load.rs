//! What all threads of a load share: the spec, the servers, which object comes next.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::contents::Contents;
use super::dataset::{DataSet, ObjectRange};
use super::endpoint::{Server, bucket_path};
use super::error_class::{ERROR_CLASSES, ErrorClass};
use super::spec::{DeleteKeys, ObjectOrder, OperationKind, PutKeys, Spec};
use crate::native::halt::Halt;
use crate::native::random::{Permutation, Random, Zipf, split_mix};
use crate::native::tsc::Clock;
use crate::sys::thread::lock;
use crate::sys::time::real_ns;

/// Sentences of one class of errors.
const MAX_EXAMPLES_PER_CLASS: usize = 2;
/// Sentences in all.
const MAX_EXAMPLES: usize = 20;

/// Which objects are put by a layout: all that are missing, in turn.
#[derive(Debug, Default)]
pub struct MissingObjects {
    /// Their numbers.
    pub numbers: Vec<u64>,
}

/// What all threads share.
pub struct Load {
    /// What is done.
    pub spec: Spec,
    /// The data set.
    pub set: DataSet,
    /// This host's part of it.
    pub own: ObjectRange,
    /// Where.
    pub servers: Vec<Server>,
    /// What the path of every request begins with.
    pub bucket_path: Vec<u8>,
    /// What objects hold.
    pub contents: Contents,
    /// The clock of all times.
    pub clock: Clock,
    /// What it showed at a time of the day.
    pub ticks_at: u64,
    /// That time, in nanoseconds since 1970.
    pub real_ns_at: u64,
    /// The wish to end early.
    pub halt: Arc<Halt>,
    /// For a layout.
    pub missing: Option<MissingObjects>,
    /// Of all threads, the number of the next object: put new, taken in order, removed.
    next_new: AtomicU64,
    next_taken: AtomicU64,
    next_deleted: AtomicU64,
    permutation: Permutation,
    zipf: Option<Zipf>,
    /// Shares up to and with each kind of operation.
    kinds: Vec<(f64, OperationKind)>,
    /// A number that new objects' contents follow from.
    new_key: u64,
    /// By how much the server's clock is ahead, least and most, and how often it was read.
    pub ahead_min_ms: AtomicI64,
    /// See `ahead_min_ms`.
    pub ahead_max_ms: AtomicI64,
    /// See `ahead_min_ms`.
    pub dates: AtomicU64,
    examples: Mutex<Vec<(ErrorClass, String)>>,
}

/// An operation that is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What is done.
    pub kind: OperationKind,
    /// To which object; for a list, in which prefix.
    pub number: u64,
    /// It is none of the data set.
    pub is_new: bool,
    /// Its size.
    pub bytes: u64,
    /// Where a part of it begins.
    pub offset: u64,
    /// What its contents follow from.
    pub content: u64,
    /// In which version it is written.
    pub version: u64,
}

impl Load {
    /// Of a spec that has a data set.
    #[must_use]
    pub fn new(
        spec: &Spec,
        set: &DataSet,
        servers: Vec<Server>,
        missing: Option<MissingObjects>,
        halt: Arc<Halt>,
        clock: Clock,
    ) -> Self {
        let own = spec.own_range();
        let mut sum = 0.0;
        let kinds = spec.operations.iter().filter(|one| one.share > 0.0).map(|one| {
            sum += one.share;
            (sum, one.kind)
        });
        let new_key = spec
            .new_prefix
            .bytes()
            .fold(spec.seed, |key, byte| split_mix(key ^ u64::from(byte), 1));
        let takes_own = matches!(spec.order, ObjectOrder::Once | ObjectOrder::Sequential);
        let zipf = spec.order == ObjectOrder::Zipf;
        Self {
            kinds: kinds.collect(),
            set: set.clone(),
            own,
            bucket_path: bucket_path(&spec.target.bucket, spec.target.style),
            contents: Contents::new(set.seed),
            clock,
            ticks_at: clock.ticks(),
            real_ns_at: real_ns(),
            halt,
            missing,
            next_new: AtomicU64::new(0),
            next_taken: AtomicU64::new(0),
            next_deleted: AtomicU64::new(0),
            permutation: Permutation::new(
                if takes_own { own.count } else { set.count },
                spec.seed,
                0,
            ),
            zipf: zipf.then(|| Zipf::new(set.count, spec.zipf_theta)),
            new_key,
            ahead_min_ms: AtomicI64::new(i64::MAX),
            ahead_max_ms: AtomicI64::new(i64::MIN),
            dates: AtomicU64::new(0),
            examples: Mutex::new(Vec::new()),
            servers,
            spec: spec.clone(),
        }
    }

    /// The time of the day at a tick.
    #[inline]
    #[must_use]
    pub fn real_ns(&self, ticks: u64) -> u64 {
        self.real_ns_at + self.clock.ns(ticks.saturating_sub(self.ticks_at))
    }

    /// What comes next; None when each object had its turn. `put` has objects that this thread put,
    /// oldest first.
    pub fn next_work(
        &self,
        random: &mut Random,
        put: &mut std::collections::VecDeque<u64>,
    ) -> Option<Work> {
        if let Some(missing) = &self.missing {
            let nth = self.next_taken.fetch_add(1, Ordering::Relaxed);
            let number = *missing.numbers.get(nth as usize)?;
            return Some(self.work_on(OperationKind::Put, number, 0));
        }
        let last = self.kinds.last()?.0;
        let drawn = random.next_unit() * last;
        let found = self.kinds.iter().find(|(sum, _)| drawn <= *sum);
        let kind = found.map_or(OperationKind::Get, |(_, kind)| *kind);
        match kind {
            OperationKind::Put => Some(self.next_put(random)),
            OperationKind::Delete if self.spec.delete_keys == DeleteKeys::New => {
                Some(match put.pop_front() {
                    Some(number) => self.new_work(OperationKind::Delete, number),
                    None => self.next_put(random),
                })
            }
            OperationKind::Delete => {
                let nth = self.next_deleted.fetch_add(1, Ordering::Relaxed);
                (nth < self.own.count).then(|| self.work_on(kind, self.own.first + nth, 0))
            }
            OperationKind::List => {
                let folder = random.next_below(u64::from(self.set.prefixes));
                Some(Work { bytes: 0, ..self.work_on(kind, folder, 0) })
            }
            OperationKind::Get if self.spec.reads_new => {
                Some(self.new_work(kind, self.next_number(random)?))
            }
            OperationKind::Get | OperationKind::Head => {
                Some(self.work_on(kind, self.next_number(random)?, 0))
            }
            OperationKind::GetRange => {
                let number = self.next_number(random)?;
                let bytes = self.set.object_bytes(number);
                let ranges = bytes.div_ceil(self.spec.range_bytes).max(1);
                let offset = random.next_below(ranges) * self.spec.range_bytes;
                let work = self.work_on(kind, number, offset);
                Some(Work { bytes: self.spec.range_bytes.min(bytes - offset), ..work })
            }
        }
    }

    fn next_put(&self, random: &mut Random) -> Work {
        match self.spec.put_keys {
            PutKeys::New => {
                let number = self.next_new.fetch_add(1, Ordering::Relaxed);
                self.new_work(OperationKind::Put, number)
            }
            PutKeys::Overwrite => {
                let number = self.own.first + random.next_below(self.own.count);
                // Any version but the first one is an overwrite's.
                let version = (random.next() >> 33) + 1;
                Work { version, ..self.work_on(OperationKind::Put, number, 0) }
            }
        }
    }

    fn next_number(&self, random: &mut Random) -> Option<u64> {
        match self.spec.order {
            ObjectOrder::Uniform => Some(random.next_below(self.set.count)),
            // Ranks are spread, so that what is taken often is not all in one place.
            ObjectOrder::Zipf => {
                self.zipf.as_ref().map(|zipf| self.permutation.at(zipf.next(random)))
            }
            ObjectOrder::Sequential => {
                let nth = self.next_taken.fetch_add(1, Ordering::Relaxed);
                Some(self.own.first + nth % self.own.count)
            }
            ObjectOrder::Once => {
                let nth = self.next_taken.fetch_add(1, Ordering::Relaxed);
                (nth < self.own.count).then(|| self.own.first + self.permutation.at(nth))
            }
        }
    }

    fn work_on(&self, kind: OperationKind, number: u64, offset: u64) -> Work {
        let bytes = if kind == OperationKind::List { 0 } else { self.set.object_bytes(number) };
        Work { kind, number, is_new: false, bytes, offset, content: number, version: 0 }
    }

    fn new_work(&self, kind: OperationKind, number: u64) -> Work {
        // Contents that no object of the data set has.
        let content = split_mix(self.new_key, number + 1) | 1 << 63;
        Work { is_new: true, content, ..self.work_on(kind, number, 0) }
    }

    /// The key of what is worked on.
    pub fn push_key(&self, work: &Work, key: &mut String) {
        let prefix = if work.is_new { &self.spec.new_prefix } else { &self.set.prefix };
        self.set.push_key(prefix, work.number, key);
    }

    /// Keep a sentence on a failure, some of each class.
    pub fn keep_example(&self, class: ErrorClass, sentence: impl FnOnce() -> String) {
        let mut examples = lock(&self.examples);
        let alike = examples.iter().filter(|(other, _)| *other == class).count();
        if alike < MAX_EXAMPLES_PER_CLASS
            && examples.len() < MAX_EXAMPLES.min(ERROR_CLASSES.len() * 2)
        {
            examples.push((class, sentence()));
        }
    }

    /// The sentences that were kept, and those on contents alone.
    #[must_use]
    pub fn examples(&self) -> (Vec<String>, Vec<String>) {
        let examples = lock(&self.examples);
        let of = |wanted: &dyn Fn(ErrorClass) -> bool| {
            examples
                .iter()
                .filter(|(class, _)| wanted(*class))
                .map(|(_, text)| text.clone())
                .collect()
        };
        (of(&|_| true), of(&|class| class == ErrorClass::WrongContent))
    }

    /// Take what a server's clock showed at a time of ours. A date has whole seconds: its middle is
    /// meant.
    pub fn note_date(&self, second: u64, real_ns: u64) {
        let ahead = (second * 1000 + 500) as i64 - (real_ns / 1_000_000) as i64;
        self.ahead_min_ms.fetch_min(ahead, Ordering::Relaxed);
        self.ahead_max_ms.fetch_max(ahead, Ordering::Relaxed);
        self.dates.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether all that could be done once was begun.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        let taken = self.next_taken.load(Ordering::Relaxed) > self.own.count;
        let deleted = self.next_deleted.load(Ordering::Relaxed) > self.own.count;
        (self.spec.order == ObjectOrder::Once && taken) || deleted
    }
}
