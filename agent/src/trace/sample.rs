//! What sampled bios tell: sizes, places, sequences and latencies, without keeping the bios.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use serde::Serialize;

use crate::latency::{BINS, bin_of_ns};
use crate::native::random::Random;

/// Sizes that are told apart; a load has one or a few.
const MAX_SIZES: usize = 64;
/// Start sectors kept, each as likely as any other: enough to tell a part of a data set from all.
const MAX_SECTORS: usize = 4096;
/// Bios under way that are waited for; more are not sampled.
const MAX_PENDING: usize = 1 << 16;
/// Ends that belong to no bio known yet and are remembered: a record that was begun before the end
/// of its bio may be finished after it, where a hypervisor stops the processor in between.
const MAX_UNMATCHED: usize = 4096;
const SECTOR_BYTES: u64 = 512;

/// Where a bio goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    Read,
    Write,
}

/// One bio or a part of it: a moment, a place and a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BioRange {
    pub mono_ns: u64,
    pub way: Direction,
    pub sector: u64,
    pub sectors: u64,
}

/// How the end of I/O is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionSource {
    /// A bio is done; where the kernel has split it, the last part alone is told.
    Bio,
    /// A request is done, which may be a part of a bio or hold several.
    Request,
}

/// Everything that was seen on one device.
#[derive(Debug, Serialize)]
pub struct TraceSummary {
    /// Reads of the engine's processes.
    pub read: DirectionResult,
    /// Their writes.
    pub write: DirectionResult,
    /// Sampled bios of other processes, and of the kernel's own.
    pub others: u64,
    /// Records that found no room; bios under way then are not counted.
    pub lost: u64,
}

/// One direction.
#[derive(Debug, Serialize)]
pub struct DirectionResult {
    /// Bios sampled.
    pub bios: u64,
    /// Windows that had any.
    pub windows: u64,
    /// Bytes of a bio and how many had them; those beyond so many sizes stand under 0.
    pub sizes: Vec<(u64, u64)>,
    /// Bios that began where another of the same window had ended.
    pub sequential: u64,
    /// Sum over the bios of the ends that were known then: times a place's chance, the above by chance.
    pub ends: u64,
    /// Start sectors, at most `MAX_SECTORS`.
    pub sectors: Vec<u64>,
    /// Bios without an end when they were waited for no longer, which have no latency.
    pub censored: u64,
    /// Bios whose latency is in the bins.
    pub timed: u64,
    /// The longest latency.
    pub lat_max_ns: u64,
    /// Sum of weighted latencies.
    pub lat_sum_ns: f64,
    /// Sum of the weights: of how many bios these are a sample.
    pub weight: f64,
    /// Sum over the windows of the square of their weight.
    pub weight_square: f64,
    /// bin, bios, their weight; then of all in higher bins, by window: sum of their weight squared,
    /// and of their weight times that of their window.
    pub latencies: Vec<(usize, u64, f64, f64, f64)>,
}

/// Takes bios and their ends in the order of time.
#[derive(Debug)]
pub struct BioSample {
    ways: [DirectionSample; 2],
    pending: BTreeMap<(Direction, u64), Vec<Pending>>,
    unmatched: VecDeque<(BioRange, CompletionSource)>,
    latest_ns: u64,
    waiting: usize,
    max_bio_sectors: u64,
    window: u64,
    windows: HashMap<(Direction, u64), Window>,
    others: u64,
    note_lost: u64,
}

#[derive(Debug)]
struct Pending {
    queued_ns: u64,
    sectors: u64,
    left: u64,
    window: u64,
}

#[derive(Debug)]
struct DirectionSample {
    bios: u64,
    sizes: HashMap<u64, u64>,
    sequential: u64,
    ends: u64,
    recent: BTreeSet<u64>,
    sectors: Vec<u64>,
    random: Random,
    censored: u64,
    lat_max_ns: u64,
    lat_sum_ns: f64,
    weight: f64,
    weight_square: f64,
    windows: u64,
    counts: Vec<u64>,
    weights: Vec<f64>,
    tail_squares: Vec<f64>,
    tail_weights: Vec<f64>,
}

/// Bios that were queued in one window; its weight is known when it ends.
#[derive(Debug, Default)]
struct Window {
    waiting: u64,
    weight: Option<f64>,
    sum_ns: u64,
    bins: BTreeMap<usize, u64>,
}

impl Default for BioSample {
    fn default() -> Self {
        Self {
            ways: [DirectionSample::new(1), DirectionSample::new(2)],
            pending: BTreeMap::new(),
            unmatched: VecDeque::new(),
            latest_ns: 0,
            waiting: 0,
            max_bio_sectors: 0,
            window: 0,
            windows: HashMap::new(),
            others: 0,
            note_lost: 0,
        }
    }
}

impl BioSample {
    /// A bio of the engine was queued.
    pub fn add_queued(&mut self, bio: BioRange) {
        if self.waiting >= MAX_PENDING || bio.sectors == 0 {
            return;
        }
        self.ways[bio.way as usize].add(&bio);
        let (way, window) = (bio.way, self.window);
        self.windows.entry((way, window)).or_default().waiting += 1;
        let BioRange { mono_ns: queued_ns, sectors, .. } = bio;
        let pending = Pending { queued_ns, sectors, left: sectors, window };
        // Direct I/O seldom meets itself on one place. Ends may have no record (see `super`), without a
        // word of lost ones: the next on the place shows it.
        let older = self.pending.insert((way, bio.sector), vec![pending]).unwrap_or_default();
        self.censor_bios(way, &older);
        self.waiting += 1;
        self.max_bio_sectors = self.max_bio_sectors.max(sectors);
        if queued_ns < self.latest_ns {
            let ends: Vec<_> = self.unmatched.iter().copied().collect();
            for (piece, how) in ends.into_iter().filter(|(piece, _)| piece.mono_ns >= queued_ns) {
                self.complete_pending(piece, how);
            }
        }
        self.latest_ns = self.latest_ns.max(queued_ns);
    }

    /// A bio of somebody else was queued.
    pub fn count_foreign(&mut self) {
        self.others += 1;
    }

    /// A bio, a part of one, or several were done. Those that were not sampled are passed over.
    pub fn add_done(&mut self, piece: BioRange, how: CompletionSource) {
        self.latest_ns = self.latest_ns.max(piece.mono_ns);
        if !self.complete_pending(piece, how) {
            if self.unmatched.len() >= MAX_UNMATCHED {
                self.unmatched.pop_front();
            }
            self.unmatched.push_back((piece, how));
        }
    }

    /// Whether it was the end, or a part of it, of a bio under way.
    fn complete_pending(&mut self, piece: BioRange, how: CompletionSource) -> bool {
        let mut matched = false;
        let end = piece.sector + piece.sectors;
        let from = (piece.way, piece.sector.saturating_sub(self.max_bio_sectors));
        let places: Vec<(Direction, u64)> =
            self.pending.range(from..=(piece.way, end)).map(|(&place, _)| place).collect();
        for (way, start) in places {
            let Some(bios) = self.pending.get_mut(&(way, start)) else { continue };
            // Of several on one place the first ends first.
            let found = bios.iter_mut().position(|bio| match how {
                CompletionSource::Bio => start + bio.sectors == end,
                CompletionSource::Request => {
                    let last = end.min(start + bio.sectors);
                    let common = last.saturating_sub(start.max(piece.sector));
                    bio.left = bio.left.saturating_sub(common);
                    common > 0
                }
            });
            let Some(at) = found else { continue };
            matched = true;
            if how == CompletionSource::Bio || bios[at].left == 0 {
                let bio = bios.remove(at);
                if bios.is_empty() {
                    self.pending.remove(&(way, start));
                }
                self.add_latency(way, &bio, piece.mono_ns.saturating_sub(bio.queued_ns));
                if how == CompletionSource::Bio {
                    break;
                }
            }
        }
        matched
    }

    /// Whether a sampled bio is under way.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// The window ends, in which one bio in `weight` was sampled.
    pub fn end_window(&mut self, weight: f64) {
        for way in [Direction::Read, Direction::Write] {
            self.ways[way as usize].recent.clear();
            let key = (way, self.window);
            if let Some(window) = self.windows.get_mut(&key) {
                window.weight = Some(weight);
            }
            self.close_window_if_done(key);
        }
        self.window += 1;
    }

    /// Nothing is waited for any longer.
    pub fn censor_pending(&mut self) {
        self.unmatched.clear();
        for ((way, _), bios) in std::mem::take(&mut self.pending) {
            self.censor_bios(way, &bios);
        }
    }

    /// These are not timed: whether they went on or their ends were not recorded cannot be told.
    fn censor_bios(&mut self, way: Direction, bios: &[Pending]) {
        for bio in bios {
            self.ways[way as usize].censored += 1;
            self.waiting = self.waiting.saturating_sub(1);
            let key = (way, bio.window);
            if let Some(window) = self.windows.get_mut(&key) {
                window.waiting = window.waiting.saturating_sub(1);
            }
            self.close_window_if_done(key);
        }
    }

    /// Records were lost: the ends of bios under way may be among them, so they are given up.
    pub fn give_up_pending_after_loss(&mut self, records: u64) {
        self.note_lost += records;
        self.waiting = 0;
        self.pending.clear();
        let keys: Vec<_> = self.windows.keys().copied().collect();
        for key in keys {
            if let Some(window) = self.windows.get_mut(&key) {
                window.waiting = 0;
            }
            self.close_window_if_done(key);
        }
    }

    fn add_latency(&mut self, way: Direction, bio: &Pending, latency_ns: u64) {
        self.waiting = self.waiting.saturating_sub(1);
        let sample = &mut self.ways[way as usize];
        sample.lat_max_ns = sample.lat_max_ns.max(latency_ns);
        let key = (way, bio.window);
        if let Some(window) = self.windows.get_mut(&key) {
            window.waiting -= 1;
            window.sum_ns += latency_ns;
            *window.bins.entry(bin_of_ns(latency_ns)).or_default() += 1;
        }
        self.close_window_if_done(key);
    }

    /// A window that has ended and waits for nothing goes into the sums.
    fn close_window_if_done(&mut self, key: (Direction, u64)) {
        let settled = |window: &Window| window.waiting == 0 && window.weight.is_some();
        if self.windows.get(&key).is_some_and(settled) {
            if let Some(window) = self.windows.remove(&key) {
                self.ways[key.0 as usize].sum(&window);
            }
        }
    }

    /// All of it; windows that have not ended are left out.
    #[must_use]
    pub fn finish(self) -> TraceSummary {
        let [read, write] = self.ways.map(DirectionSample::seen);
        TraceSummary { read, write, others: self.others, lost: self.note_lost }
    }
}

impl DirectionSample {
    fn new(seed: u64) -> Self {
        Self {
            bios: 0,
            sizes: HashMap::new(),
            sequential: 0,
            ends: 0,
            recent: BTreeSet::new(),
            sectors: Vec::new(),
            random: Random::new(seed),
            censored: 0,
            lat_max_ns: 0,
            lat_sum_ns: 0.0,
            weight: 0.0,
            weight_square: 0.0,
            windows: 0,
            counts: vec![0; BINS],
            weights: vec![0.0; BINS],
            tail_squares: vec![0.0; BINS],
            tail_weights: vec![0.0; BINS],
        }
    }

    fn add(&mut self, bio: &BioRange) {
        self.bios += 1;
        let bytes = bio.sectors * SECTOR_BYTES;
        let known = self.sizes.len() < MAX_SIZES || self.sizes.contains_key(&bytes);
        *self.sizes.entry(if known { bytes } else { 0 }).or_default() += 1;
        self.ends += self.recent.len() as u64;
        self.sequential += u64::from(self.recent.contains(&bio.sector));
        self.recent.insert(bio.sector + bio.sectors);
        if self.sectors.len() < MAX_SECTORS {
            self.sectors.push(bio.sector);
        } else {
            let place = self.random.next_below(self.bios) as usize;
            if let Some(kept) = self.sectors.get_mut(place) {
                *kept = bio.sector;
            }
        }
    }

    fn sum(&mut self, window: &Window) {
        let count: u64 = window.bins.values().sum();
        let (Some(weight), true) = (window.weight, count > 0) else { return };
        let whole = weight * count as f64;
        self.windows += 1;
        self.weight += whole;
        self.weight_square += whole * whole;
        self.lat_sum_ns += weight * window.sum_ns as f64;
        for (&bin, &count) in &window.bins {
            self.counts[bin] += count;
            self.weights[bin] += weight * count as f64;
        }
        let mut higher = 0.0;
        let top = window.bins.keys().next_back().copied().unwrap_or(0);
        for bin in (0..=top).rev() {
            self.tail_squares[bin] += higher * higher;
            self.tail_weights[bin] += higher * whole;
            higher += weight * window.bins.get(&bin).copied().unwrap_or(0) as f64;
        }
    }

    fn seen(self) -> DirectionResult {
        let mut sizes: Vec<(u64, u64)> = self.sizes.into_iter().collect();
        sizes.sort_unstable();
        let rows = (0..BINS).filter(|&bin| self.counts[bin] > 0).map(|bin| {
            let (squares, weights) = (self.tail_squares[bin], self.tail_weights[bin]);
            (
                bin,
                self.counts[bin],
                round_to_thousandth(self.weights[bin]),
                round_to_thousandth(squares),
                round_to_thousandth(weights),
            )
        });
        DirectionResult {
            latencies: rows.collect(),
            bios: self.bios,
            windows: self.windows,
            sizes,
            sequential: self.sequential,
            ends: self.ends,
            sectors: self.sectors,
            censored: self.censored,
            timed: self.counts.iter().sum(),
            lat_max_ns: self.lat_max_ns,
            lat_sum_ns: round_to_thousandth(self.lat_sum_ns),
            weight: round_to_thousandth(self.weight),
            weight_square: round_to_thousandth(self.weight_square),
        }
    }
}

/// To three digits after the point: no more is known, and shorter in JSON.
fn round_to_thousandth(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Fields of one tracepoint by name: offset and size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointFormat {
    /// What records of it begin with.
    pub id: u64,
    fields: HashMap<String, (usize, usize)>,
}

impl TracepointFormat {
    /// Read the file's text; None when it has no id or no field.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: HashMap<_, _> = text.lines().filter_map(parse_field).collect();
        (!fields.is_empty()).then_some(Self { id, fields })
    }

    /// A field's bytes in a record; None when the tracepoint or the record lacks it.
    #[must_use]
    pub fn bytes<'a>(&self, raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let &(offset, size) = self.fields.get(name)?;
        raw.get(offset..offset.checked_add(size)?)
    }

    /// A whole number of one to eight bytes.
    #[must_use]
    pub fn number(&self, raw: &[u8], name: &str) -> Option<u64> {
        let bytes = self.bytes(raw, name)?;
        match bytes.len() {
            1 => Some(bytes[0].into()),
            2 => Some(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

/// `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs between
fn parse_field(line: &str) -> Option<(String, (usize, usize))> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?.split_ascii_whitespace().last()?;
    let name = declared.split('[').next()?.to_owned();
    let mut number = |label: &str| parts.next()?.strip_prefix(label)?.parse().ok();
    Some((name, (number("offset:")?, number("size:")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_ns: u64, sector: u64, sectors: u64) -> BioRange {
        BioRange { mono_ns, way: Direction::Read, sector, sectors }
    }

    #[test]
    fn a_bio_takes_from_its_queueing_to_the_end_of_its_last_request() {
        let mut sample = BioSample::default();
        sample.add_queued(at(1000, 4096, 2048));
        sample.add_done(at(1500, 4096, 1024), CompletionSource::Request);
        assert!(sample.is_waiting());
        sample.add_done(at(3000, 5120, 1024), CompletionSource::Request);
        assert!(!sample.is_waiting());
        sample.end_window(1.0);
        let read = sample.finish().read;
        assert_eq!((read.bios, read.timed, read.lat_max_ns, read.windows), (1, 1, 2000, 1));
        assert_eq!(read.sizes, [(1 << 20, 1)]);
        assert_eq!(read.latencies, [(bin_of_ns(2000), 1, 1.0, 0.0, 0.0)]);
    }

    #[test]
    fn one_request_ends_the_bios_that_were_merged_in_it() {
        let mut sample = BioSample::default();
        for n in 0..4 {
            sample.add_queued(at(100 * n, 8 * n, 8));
        }
        sample.add_done(at(1000, 0, 32), CompletionSource::Request);
        assert!(!sample.is_waiting());
        sample.end_window(1.0);
        let read = sample.finish().read;
        assert_eq!((read.timed, read.sequential), (4, 3));
        assert_eq!(read.ends, 1 + 2 + 3);
    }

    #[test]
    fn a_split_bio_is_done_with_its_last_part() {
        let mut sample = BioSample::default();
        sample.add_queued(at(0, 100, 64));
        sample.add_done(at(10, 100, 32), CompletionSource::Bio);
        assert!(sample.is_waiting());
        sample.add_done(at(20, 132, 32), CompletionSource::Bio);
        assert!(!sample.is_waiting());
    }

    #[test]
    fn others_ends_and_other_directions_end_nothing() {
        let mut sample = BioSample::default();
        sample.add_queued(at(0, 100, 8));
        sample.add_done(at(10, 108, 8), CompletionSource::Request);
        sample.add_done(at(10, 92, 8), CompletionSource::Request);
        sample.add_done(
            BioRange { way: Direction::Write, ..at(10, 100, 8) },
            CompletionSource::Request,
        );
        sample.add_done(at(10, 0, 0), CompletionSource::Bio);
        assert!(sample.is_waiting());
        sample.count_foreign();
        assert_eq!(sample.finish().others, 1);
    }

    #[test]
    fn a_bio_that_is_told_after_its_end_has_ended() {
        let mut sample = BioSample::default();
        sample.add_done(at(50, 100, 8), CompletionSource::Request);
        sample.add_done(at(80, 100, 8), CompletionSource::Request);
        sample.add_queued(at(60, 100, 8));
        assert!(!sample.is_waiting());
        sample.add_queued(at(90, 100, 8));
        assert!(sample.is_waiting(), "what was queued later has not");
        sample.end_window(1.0);
        let read = sample.finish().read;
        assert_eq!((read.bios, read.timed), (2, 0));
    }

    #[test]
    fn a_bio_without_an_end_is_given_up_for_the_next_on_its_place() {
        let mut sample = BioSample::default();
        sample.add_queued(at(0, 100, 8));
        sample.add_queued(at(50, 100, 8));
        sample.add_done(at(60, 100, 8), CompletionSource::Request);
        assert!(!sample.is_waiting());
        sample.end_window(1.0);
        let read = sample.finish().read;
        assert_eq!((read.bios, read.timed, read.censored, read.lat_max_ns), (2, 1, 1, 10));
    }

    #[test]
    fn what_is_waited_for_no_longer_has_no_latency() {
        let mut sample = BioSample::default();
        sample.add_queued(at(0, 100, 8));
        sample.add_queued(at(0, 200, 8));
        sample.add_done(at(50, 200, 8), CompletionSource::Request);
        sample.end_window(2.0);
        sample.censor_pending();
        let read = sample.finish().read;
        assert_eq!((read.censored, read.timed, read.lat_max_ns), (1, 1, 50));
        assert!((read.weight - 2.0).abs() < 1e-9);
    }

    #[test]
    fn what_may_have_ended_unseen_is_given_up() {
        let mut sample = BioSample::default();
        sample.add_queued(at(0, 100, 8));
        sample.add_queued(at(0, 200, 8));
        sample.add_done(at(30, 200, 8), CompletionSource::Request);
        sample.give_up_pending_after_loss(3);
        sample.end_window(1.0);
        let seen = sample.finish();
        assert_eq!((seen.lost, seen.read.bios, seen.read.timed, seen.read.censored), (3, 2, 1, 0));
    }

    #[test]
    fn windows_are_weighted_and_their_tails_summed_by_window() {
        let mut sample = BioSample::default();
        for (window, slow) in [(0, 2), (1, 0)] {
            for n in 0..4_u64 {
                sample.add_queued(at(0, 8 * n, 8));
                sample.add_done(
                    at(if n < slow { 4000 } else { 100 }, 8 * n, 8),
                    CompletionSource::Request,
                );
            }
            sample.end_window(if window == 0 { 1.0 } else { 3.0 });
        }
        let read = sample.finish().read;
        assert_eq!(read.windows, 2);
        assert_eq!((read.weight, read.weight_square), (16.0, 16.0 + 144.0));
        let (fast, slow) = (read.latencies[0], read.latencies[1]);
        assert_eq!(fast, (100, 6, 14.0, 4.0, 8.0));
        assert_eq!((slow.1, slow.2, slow.3, slow.4), (2, 2.0, 0.0, 0.0));
        assert!((read.lat_sum_ns - (2.0 * 4000.0 + 2.0 * 100.0 + 3.0 * 400.0)).abs() < 1e-6);
    }

    #[test]
    fn places_and_sizes_kept_are_bounded() {
        let mut sample = BioSample::default();
        for n in 0..10_000_u64 {
            sample.add_queued(at(n, 8 * n, 1 + n % 100));
            sample.add_done(at(n, 8 * n, 1 + n % 100), CompletionSource::Request);
        }
        sample.end_window(1.0);
        let read = sample.finish().read;
        assert_eq!(read.sectors.len(), MAX_SECTORS);
        let late = read.sectors.iter().filter(|&&sector| sector >= 8 * 5000).count();
        assert!((MAX_SECTORS / 3..MAX_SECTORS * 2 / 3).contains(&late), "{late} of the later half");
        assert_eq!(read.sizes.len(), MAX_SIZES + 1);
        assert_eq!(read.sizes.iter().map(|(_, count)| count).sum::<u64>(), 10_000);
    }

    /// Of Linux 6.18, but for the line of `print fmt`.
    const QUEUE: &str = "name: block_bio_queue
ID: 2097
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;
\tfield:char comm[16];\toffset:38;\tsize:16;\tsigned:0;
";
    /// Of Linux 5.10, whose rwbs is shorter.
    const COMPLETE: &str = "name: block_bio_complete
ID: 1053
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;
\tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:0;
";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = TracepointFormat::parse(QUEUE).unwrap();
        let mut raw = vec![0; 54];
        raw[..2].copy_from_slice(&2097_u16.to_ne_bytes());
        raw[16..24].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        raw[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        raw[28..30].copy_from_slice(b"WS");
        assert_eq!(format.id, 2097);
        assert_eq!(format.number(&raw, "common_type"), Some(2097));
        assert_eq!(format.number(&raw, "sector"), Some(1 << 40));
        assert_eq!(format.number(&raw, "nr_sector"), Some(8));
        assert_eq!(format.bytes(&raw, "rwbs").map(<[u8]>::len), Some(10));
        assert_eq!(format.number(&raw, "rwbs"), None);
        assert_eq!(format.number(&raw, "bytes"), None);
        assert_eq!(format.number(&raw[..20], "nr_sector"), None);
    }

    #[test]
    fn an_older_kernels_format_is_another() {
        let format = TracepointFormat::parse(COMPLETE).unwrap();
        assert_eq!(format.id, 1053);
        assert_eq!(format.bytes(&[0; 40], "rwbs").map(<[u8]>::len), Some(8));
    }

    #[test]
    fn what_is_no_format_is_none() {
        for text in ["", "ID: x\n", "ID: 5\n", "ID: 5\nfield:int a;\toffset:x;\tsize:4;\n"] {
            assert_eq!(TracepointFormat::parse(text), None, "{text:?}");
        }
    }
}
