//! The store: which blocks it holds, where they lie, and what is to be read and written.
//!
//! What is held is decided when a request comes, and by the order of requests alone: the hits are
//! exactly those of an LRU list. A place on the target follows later: it is taken when a write
//! begins, and comes free when a dropped block is neither written nor read any more.

use std::collections::{HashMap, VecDeque};

use super::lru::Lru;
use super::spec::{Spec, WritePolicy};

/// No place on the target.
const NOWHERE: u32 = u32::MAX;

/// An object that is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadTask {
    /// For which request, by its number among those that are replayed.
    pub request: u32,
    /// Of which block.
    pub block: u32,
    /// Which object of it.
    pub object: u32,
    /// When the request was due, in ticks.
    pub due: u64,
}

/// An object that is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteTask {
    /// Of which block.
    pub block: u32,
    /// Which object of it.
    pub object: u32,
    /// When the request was due that has it, in ticks.
    pub due: u64,
    stay: u32,
}

/// Where an object lies, and by which write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectPlace {
    /// Its number among all objects of the target.
    pub number: u64,
    /// The write that it holds; 0 for what was there before the start.
    pub sequence: u64,
}

/// What of a block is on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing.
    Absent,
    /// Its write waits.
    Queued,
    /// Objects are being written; so many are left.
    Writing(u32),
    /// All.
    Stored,
}

#[derive(Debug, Clone, Copy)]
struct BlockState {
    progress: Progress,
    slot: u32,
    /// Reads that wait or are under way.
    readers: u32,
    /// How often it was taken in, so that what was queued before is known as such.
    stay: u32,
    sequence: u64,
}

/// What was counted of the requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct StoreCounts {
    /// Requests that came.
    pub requests: u64,
    /// Their blocks.
    pub blocks: u64,
    /// Blocks that the store held, from the first one of a request on.
    pub hits: u64,
    /// Of these, blocks that the memory above held as well: they were not read.
    pub memory_hits: u64,
    /// Hits whose write had not ended yet: they waited for it.
    pub waits: u64,
    /// Requests of which any block was read.
    pub loads: u64,
    /// Blocks that were taken in.
    pub stores: u64,
    /// Of these, blocks that were dropped again before their write began.
    pub unwritten: u64,
    /// Blocks that were dropped.
    pub evictions: u64,
}

/// The store of one host.
#[derive(Debug)]
pub struct Store {
    held: Lru,
    memory: Lru,
    was_seen: Vec<bool>,
    policy: WritePolicy,
    objects: u32,
    blocks: Vec<BlockState>,
    free_slots: Vec<u32>,
    reads: VecDeque<ReadTask>,
    writes: VecDeque<WriteTask>,
    waiting: HashMap<u32, Vec<ReadTask>>,
    next_sequence: u64,
    /// What was counted since the start.
    pub counts: StoreCounts,
}

impl Store {
    /// An empty one for so many different blocks; writes count from `first_sequence`.
    #[must_use]
    pub fn new(spec: &Spec, blocks: usize, first_sequence: u64) -> Self {
        let empty = BlockState {
            progress: Progress::Absent,
            slot: NOWHERE,
            readers: 0,
            stay: 0,
            sequence: 0,
        };
        Self {
            held: Lru::new(blocks, spec.capacity as usize),
            memory: Lru::new(blocks, spec.memory as usize),
            was_seen: vec![false; blocks],
            policy: spec.write,
            objects: spec.objects,
            blocks: vec![empty; blocks],
            free_slots: (0..spec.slots).rev().collect(),
            reads: VecDeque::with_capacity(1 << 14),
            writes: VecDeque::with_capacity(1 << 14),
            waiting: HashMap::new(),
            next_sequence: first_sequence,
            counts: StoreCounts::default(),
        }
    }

    /// How many blocks it holds.
    #[must_use]
    pub fn held_blocks(&self) -> usize {
        self.held.len()
    }

    /// A request of the time before the start: what it leaves lies there already.
    pub fn warm_up(&mut self, path: &[u32]) {
        for &block in path.iter().rev() {
            if !self.held.holds(block) && !self.is_admitted(block) {
                continue;
            }
            self.held.touch(block);
            let state = &mut self.blocks[block as usize];
            if state.progress == Progress::Absent {
                (state.progress, state.slot) = (Progress::Stored, NOWHERE);
            }
        }
        self.note_use(path);
        while let Some(dropped) = self.held.evict() {
            self.blocks[dropped as usize].progress = Progress::Absent;
        }
    }

    /// The warm-up is over: every block that is held gets its place.
    pub fn place_held_blocks(&mut self) {
        for block in 0..self.blocks.len() as u32 {
            if self.held.holds(block) {
                self.blocks[block as usize].slot = self.free_slots.pop().unwrap_or(NOWHERE);
            }
        }
    }

    /// A request comes: what of it is to be read and written is queued. How many reads it waits for.
    pub fn begin_request(&mut self, request: u32, path: &[u32], due: u64) -> u32 {
        let hits = self.held.prefix_hits(path);
        self.counts.requests += 1;
        self.counts.blocks += path.len() as u64;
        self.counts.hits += hits as u64;
        let mut reads = 0;
        for &block in &path[..hits] {
            if self.memory.holds(block) {
                self.counts.memory_hits += 1;
            } else {
                reads += self.queue_reads(request, block, due);
            }
        }
        self.counts.loads += u64::from(reads > 0);
        self.take_in(path, due);
        self.note_use(path);
        while let Some(dropped) = self.held.evict() {
            self.counts.evictions += 1;
            self.drop_block(dropped);
        }
        reads
    }

    fn queue_reads(&mut self, request: u32, block: u32, due: u64) -> u32 {
        let state = &mut self.blocks[block as usize];
        state.readers += self.objects;
        let tasks = (0..self.objects).map(|object| ReadTask { request, block, object, due });
        if state.progress == Progress::Stored {
            self.reads.extend(tasks);
        } else {
            self.counts.waits += 1;
            self.waiting.entry(block).or_default().extend(tasks);
        }
        self.objects
    }

    /// Use the blocks, the last first, so that a prefix loses its tail before its head; write those
    /// that are new here, the first first.
    fn take_in(&mut self, path: &[u32], due: u64) {
        if self.policy == WritePolicy::None {
            return;
        }
        for &block in path {
            if self.held.holds(block) || !self.is_admitted(block) {
                continue;
            }
            self.counts.stores += 1;
            let state = &mut self.blocks[block as usize];
            if state.progress == Progress::Absent {
                state.progress = Progress::Queued;
                state.stay = state.stay.wrapping_add(1);
                let stay = state.stay;
                let objects = 0..self.objects;
                self.writes.extend(objects.map(|object| WriteTask { block, object, due, stay }));
            }
        }
        for &block in path.iter().rev() {
            if self.held.holds(block) || self.is_admitted(block) {
                self.held.touch(block);
            }
        }
    }

    /// Whether a block that comes now is worth a place.
    fn is_admitted(&self, block: u32) -> bool {
        self.policy != WritePolicy::SecondUse || self.was_seen[block as usize]
    }

    fn note_use(&mut self, path: &[u32]) {
        for &block in path.iter().rev() {
            self.was_seen[block as usize] = true;
            self.memory.touch(block);
        }
        while self.memory.evict().is_some() {}
    }

    fn drop_block(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        if state.progress == Progress::Queued && state.readers == 0 {
            state.progress = Progress::Absent;
            self.counts.unwritten += 1;
        }
        self.release_if_unused(block);
    }

    /// Give back the place of a block that is dropped and that nobody writes or reads.
    fn release_if_unused(&mut self, block: u32) {
        let is_held = self.held.holds(block);
        let state = &mut self.blocks[block as usize];
        if is_held || state.readers > 0 || state.progress != Progress::Stored {
            return;
        }
        state.progress = Progress::Absent;
        self.free_slots.push(state.slot);
        state.slot = NOWHERE;
    }

    /// Objects that can be read, and those that wait to be written.
    pub fn queued(&self) -> (usize, usize) {
        (self.reads.len(), self.writes.len())
    }

    /// Objects that wait to be written; none while there is no place for the first.
    #[must_use]
    pub fn writable(&self) -> usize {
        let waits_for_place = self.free_slots.is_empty()
            && self.writes.front().is_some_and(|task| {
                let state = &self.blocks[task.block as usize];
                state.stay == task.stay && state.progress == Progress::Queued
            });
        if waits_for_place { 0 } else { self.writes.len() }
    }

    /// The next object to read, and where it lies.
    pub fn next_read(&mut self) -> Option<(ReadTask, ObjectPlace)> {
        let task = self.reads.pop_front()?;
        Some((task, self.place_of(task.block, task.object)))
    }

    /// An object was read, or could not be.
    pub fn end_read(&mut self, block: u32) {
        self.blocks[block as usize].readers -= 1;
        self.release_if_unused(block);
    }

    /// The next object to write, and where; None where there is nothing to write or no room yet.
    pub fn next_write(&mut self) -> Option<(WriteTask, ObjectPlace)> {
        while let Some(&task) = self.writes.front() {
            let state = &mut self.blocks[task.block as usize];
            let is_wanted = state.stay == task.stay
                && matches!(state.progress, Progress::Queued | Progress::Writing(_));
            if is_wanted && state.progress == Progress::Queued {
                state.slot = self.free_slots.pop()?;
                state.progress = Progress::Writing(self.objects);
                state.sequence = self.next_sequence;
                self.next_sequence += 1;
            }
            self.writes.pop_front();
            if is_wanted {
                return Some((task, self.place_of(task.block, task.object)));
            }
        }
        None
    }

    /// An object was written, or could not be.
    pub fn end_write(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        let Progress::Writing(left) = state.progress else { return };
        if left > 1 {
            state.progress = Progress::Writing(left - 1);
            return;
        }
        state.progress = Progress::Stored;
        self.reads.extend(self.waiting.remove(&block).into_iter().flatten());
        self.release_if_unused(block);
    }

    fn place_of(&self, block: u32, object: u32) -> ObjectPlace {
        let state = &self.blocks[block as usize];
        let number = u64::from(state.slot) * u64::from(self.objects) + u64::from(object);
        ObjectPlace { number, sequence: state.sequence }
    }

    /// Forget all that waits: how many reads that is, and when the first of them was due.
    pub fn drop_waiting(&mut self) -> (u64, Option<u64>) {
        let waiting = std::mem::take(&mut self.waiting);
        let all = self.reads.drain(..).chain(waiting.into_values().flatten());
        let (count, oldest) = all.fold((0, None::<u64>), |(count, oldest), task| {
            (count + 1, Some(oldest.map_or(task.due, |due| due.min(task.due))))
        });
        self.writes.clear();
        (count, oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::random::Random;
    use serde_json::json;

    fn store(capacity: u32, write: &str, blocks: usize) -> Store {
        let text = json!({
            "format": 1, "object_bytes": 4096, "objects": 2, "slots": capacity + 2,
            "capacity": capacity, "place": "slab", "path": "kv", "write": write,
            "direct": false, "verify": true, "reads_in_flight": 1, "writes_in_flight": 1,
            "runtime_s": 1.0, "interval_ms": 100, "seed": 1, "warm": 0, "requests": [],
        });
        Store::new(&Spec::parse(text.to_string().as_bytes()).unwrap(), blocks, 10)
    }

    /// Do all that waits.
    fn settle(store: &mut Store) -> (u32, u32) {
        let (mut reads, mut writes) = (0, 0);
        loop {
            if let Some((task, place)) = store.next_write() {
                assert!(place.number < u64::from(u32::MAX));
                store.end_write(task.block);
                writes += 1;
            } else if let Some((task, place)) = store.next_read() {
                assert!(place.number < u64::from(u32::MAX));
                store.end_read(task.block);
                reads += 1;
            } else {
                return (reads, writes);
            }
        }
    }

    #[test]
    fn hits_are_read_and_misses_written() {
        let mut store = store(3, "miss", 9);
        assert_eq!(store.begin_request(0, &[0, 1], 5), 0);
        assert_eq!(settle(&mut store), (0, 4));
        assert_eq!(store.begin_request(1, &[0, 1, 2], 6), 4);
        assert_eq!(settle(&mut store), (4, 2));
        // Of blocks 0, 1, 2 the tail is dropped first.
        assert_eq!(store.begin_request(2, &[3], 7), 0);
        settle(&mut store);
        assert_eq!(store.begin_request(3, &[0, 1, 2], 8), 4);
        assert_eq!(store.counts.hits, 4);
        assert_eq!(store.counts.evictions, 2);
    }

    #[test]
    fn a_hit_on_a_block_that_is_being_written_waits_for_it() {
        let mut store = store(3, "miss", 9);
        store.begin_request(0, &[0], 5);
        let (first, _) = store.next_write().unwrap();
        assert_eq!(store.begin_request(1, &[0], 6), 2);
        assert!(store.next_read().is_none());
        let (second, place) = store.next_write().unwrap();
        store.end_write(first.block);
        assert!(store.next_read().is_none());
        store.end_write(second.block);
        let (task, read) = store.next_read().unwrap();
        assert_eq!((task.request, read.sequence, store.counts.waits), (1, place.sequence, 1));
    }

    #[test]
    fn a_place_is_not_written_again_while_it_is_read() {
        let mut store = store(1, "miss", 9);
        for (nth, block) in [0, 1, 2].into_iter().enumerate() {
            store.begin_request(nth as u32, &[block], 5);
            settle(&mut store);
        }
        store.begin_request(3, &[2], 6);
        let (read, place) = store.next_read().unwrap();
        for (nth, block) in (3..9).enumerate() {
            store.begin_request(4 + nth as u32, &[block], 7);
            while let Some((task, written)) = store.next_write() {
                assert_ne!(written.number / 2, place.number / 2);
                store.end_write(task.block);
            }
        }
        store.end_read(read.block);
    }

    #[test]
    fn nothing_can_be_written_while_all_places_are_read() {
        let mut store = store(1, "miss", 9);
        let mut reads = Vec::new();
        for block in 0..3 {
            store.begin_request(2 * block, &[block], 5);
            assert_eq!(store.writable(), 2);
            settle(&mut store);
            store.begin_request(2 * block + 1, &[block], 5);
            reads.extend([store.next_read().unwrap().0, store.next_read().unwrap().0]);
        }
        store.begin_request(9, &[3], 6);
        assert_eq!((store.writable(), store.next_write()), (0, None));
        for read in &reads[..2] {
            store.end_read(read.block);
        }
        assert_eq!(store.writable(), 2);
        assert_eq!(settle(&mut store), (0, 2));
    }

    #[test]
    fn second_use_writes_what_came_before_and_none_nothing() {
        let mut store = store(3, "second-use", 9);
        store.begin_request(0, &[0, 1], 5);
        assert_eq!(settle(&mut store), (0, 0));
        store.begin_request(1, &[0, 2], 5);
        assert_eq!(settle(&mut store), (0, 2));
        let mut still = self::store(3, "none", 9);
        still.warm_up(&[0, 1]);
        still.place_held_blocks();
        assert_eq!(still.begin_request(0, &[0, 1, 2], 5), 4);
        assert_eq!(settle(&mut still), (4, 0));
        assert_eq!(still.held_blocks(), 2);
    }

    #[test]
    fn hits_do_not_depend_on_how_far_the_target_is_behind() {
        let mut random = Random::new(3);
        let paths: Vec<Vec<u32>> = (0..3000)
            .map(|_| {
                let root = random.next_below(40) as u32 * 10;
                (root..=root + random.next_below(10) as u32).collect()
            })
            .collect();
        let (mut prompt, mut late) = (store(90, "miss", 400), store(90, "miss", 400));
        for (nth, path) in paths.iter().enumerate() {
            prompt.begin_request(nth as u32, path, 1);
            settle(&mut prompt);
            late.begin_request(nth as u32, path, 1);
            if nth % 50 == 0 {
                settle(&mut late);
            }
        }
        settle(&mut late);
        assert_eq!(prompt.counts.hits, late.counts.hits);
        assert_eq!(prompt.counts.evictions, late.counts.evictions);
        assert_eq!(prompt.free_slots.len(), late.free_slots.len());
        assert!(late.counts.unwritten > 0 && late.counts.waits > 0);
    }
}
