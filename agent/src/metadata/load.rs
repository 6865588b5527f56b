//! What a phase is asked to do, and whether that can be meant.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::prepare::scratch;
use crate::sys::time::{SECOND_NS, real_ns};

/// Ranks of one host: a thread and two open files each; more would measure the scheduler.
const MAX_RANKS: u32 = 4096;
/// Ranks of a fleet.
const MAX_TOTAL_RANKS: u32 = 1 << 20;
/// The names of one folder are held in memory when it is cleared.
const MAX_FILES_PER_RANK: u32 = 1_000_000;
/// One system call writes or reads a file; larger files are another engine's work.
const MAX_FILE_BYTES: u32 = 1 << 20;
/// Buffers of all ranks of a host.
const MAX_BUFFER_BYTES: u64 = 1 << 30;
/// Folders of other hosts: a fleet of a thousand, with room.
const MAX_OTHER_FOLDERS: usize = 4096;
/// The shortest and the longest interval, as of a watch.
const INTERVALS_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// Intervals are a second unless the request says otherwise.
const DEFAULT_INTERVAL_MS: u64 = 1000;
/// A start further ahead is a wrong clock, not a plan.
const MAX_START_DELAY_NS: u64 = 3600 * SECOND_NS;

/// One kind of operation, done by all ranks at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Each rank makes its folder.
    TreeCreate,
    /// Each rank makes its files, written with `file_bytes`.
    FileCreate,
    /// Each rank asks for the attributes of files.
    FileStat,
    /// Each rank opens files, reads `file_bytes` and closes them.
    FileRead,
    /// Each rank removes files.
    FileRemove,
    /// Each rank removes its folder.
    TreeRemove,
}

impl Phase {
    /// Whether the operations are on the ranks' folders and not on files in them.
    #[must_use]
    pub fn is_of_trees(self) -> bool {
        matches!(self, Self::TreeCreate | Self::TreeRemove)
    }

    fn may_be_shifted(self) -> bool {
        matches!(self, Self::FileStat | Self::FileRead | Self::FileRemove)
    }

    fn moves_bytes(self) -> bool {
        matches!(self, Self::FileCreate | Self::FileRead)
    }
}

/// Where the files of some ranks lie: the scratch folder of the agent that made them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankFolders {
    /// The scratch folder, as this host sees it.
    pub dir: PathBuf,
    /// The first rank that made its files there.
    pub first_rank: u32,
    /// How many ranks did.
    pub ranks: u32,
}

impl RankFolders {
    fn holds_rank(&self, rank: u32) -> bool {
        rank.checked_sub(self.first_rank).is_some_and(|nth| nth < self.ranks)
    }
}

/// One phase on this host, as the request says it. Rank numbers count over the whole fleet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// A scratch folder that this agent holds.
    pub dir: PathBuf,
    /// What to do.
    pub phase: Phase,
    /// This host's first rank.
    pub first_rank: u32,
    /// How many ranks this host has.
    pub ranks: u32,
    /// How many ranks the fleet has.
    pub total_ranks: u32,
    /// Rank r works on the files of rank (r + shift) mod `total_ranks`.
    #[serde(default)]
    pub shift: u32,
    /// Where the files of ranks of other hosts lie; needed for those that the shift leads to.
    #[serde(default)]
    pub others: Vec<RankFolders>,
    /// Files of each rank.
    pub files_per_rank: u32,
    /// How many files each of this host's ranks finds, in their order, where some have fewer than
    /// `files_per_rank` because the phase that made them ran out of time; else empty.
    #[serde(default)]
    pub files: Vec<u32>,
    /// Each rank stops by itself after this, whether or not it has been at all files; never when
    /// null. A rank never comes to a file twice: what it did first would answer from memory.
    #[serde(default)]
    pub runtime_s: Option<f64>,
    /// Files that each rank comes to even when `runtime_s` has passed, within six times that.
    #[serde(default)]
    pub files_least: u32,
    /// Bytes of a file.
    #[serde(default)]
    pub file_bytes: u32,
    /// Part of the names, so that iterations never meet.
    #[serde(default)]
    pub iteration: u32,
    /// When to start; at once when null or past.
    #[serde(default)]
    pub start_at_real_ns: Option<u64>,
    /// Between two `interval` messages.
    #[serde(default = "default_interval_ms")]
    pub interval_ms: u64,
    /// The ranks are stopped after this; never when null.
    #[serde(default)]
    pub wall_limit_s: Option<f64>,
}

fn default_interval_ms() -> u64 {
    DEFAULT_INTERVAL_MS
}

impl PhaseSpec {
    /// Refuse what cannot be meant, with the value.
    pub fn check(&self) -> Result<()> {
        check_range("ranks", self.ranks, 1, MAX_RANKS)?;
        check_range("total_ranks", self.total_ranks, 1, MAX_TOTAL_RANKS)?;
        check_range("files_per_rank", self.files_per_rank, 1, MAX_FILES_PER_RANK)?;
        self.check_files()?;
        check_range("file_bytes", self.file_bytes, 0, MAX_FILE_BYTES)?;
        check_range("shift", self.shift, 0, self.total_ranks - 1)?;
        let last = u64::from(self.first_rank) + u64::from(self.ranks) - 1;
        if last >= u64::from(self.total_ranks) {
            let total = self.total_ranks;
            return Err(Error::bad_request(format!("rank {last} is not one of {total} ranks")));
        }
        if u64::from(self.ranks) * u64::from(self.file_bytes) > MAX_BUFFER_BYTES {
            return Err(Error::bad_request(format!(
                "{} ranks with files of {} bytes need more than {MAX_BUFFER_BYTES} bytes of memory",
                self.ranks, self.file_bytes
            )));
        }
        self.check_shift()?;
        self.check_times()
    }

    fn check_files(&self) -> Result<()> {
        if !self.files.is_empty() && self.files.len() != self.ranks as usize {
            let (count, ranks) = (self.files.len(), self.ranks);
            return Err(Error::bad_request(format!("`files` of {count} ranks, of {ranks}")));
        }
        self.files.iter().try_for_each(|&files| check_range("files", files, 0, self.files_per_rank))
    }

    fn check_shift(&self) -> Result<()> {
        if self.shift != 0 && !self.phase.may_be_shifted() {
            return Err(Error::bad_request("only file-stat, file-read and file-remove may shift"));
        }
        if self.others.len() > MAX_OTHER_FOLDERS {
            let count = self.others.len();
            return Err(Error::bad_request(format!(
                "{count} other folders, {MAX_OTHER_FOLDERS} at most"
            )));
        }
        for RankFolders { dir, .. } in &self.others {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            if !dir.is_absolute() || !name.starts_with(scratch::PREFIX) {
                let message = format!("{} is not the path of a scratch folder", dir.display());
                return Err(Error::bad_request(message));
            }
        }
        match self.target_ranks().find(|&rank| self.folder_of(rank).is_none()) {
            Some(rank) => Err(Error::bad_request(format!(
                "`others` does not say where the files of rank {rank} lie"
            ))),
            None => Ok(()),
        }
    }

    fn check_times(&self) -> Result<()> {
        if !INTERVALS_MS.contains(&self.interval_ms) {
            let message = format!("an interval of {} ms is not 100 to 60000 ms", self.interval_ms);
            return Err(Error::bad_request(message));
        }
        let ahead_ns = self.start_at_real_ns.map_or(0, |at| at.saturating_sub(real_ns()));
        if ahead_ns > MAX_START_DELAY_NS {
            let seconds = ahead_ns / SECOND_NS;
            return Err(Error::bad_request(format!("a start {seconds} s ahead is too far")));
        }
        for (name, limit) in [("wall limit", self.wall_limit_s), ("runtime", self.runtime_s)] {
            if let Some(limit) = limit.filter(|limit| !(limit.is_finite() && *limit > 0.0)) {
                return Err(Error::bad_request(format!("a {name} of {limit} s is none")));
            }
        }
        Ok(())
    }

    /// The rank whose folder each of this host's ranks works on, in their order.
    pub fn target_ranks(&self) -> impl Iterator<Item = u32> + '_ {
        let total = u64::from(self.total_ranks);
        (0..self.ranks).map(move |nth| {
            let own = u64::from(self.first_rank) + u64::from(nth);
            ((own + u64::from(self.shift)) % total) as u32
        })
    }

    /// The scratch folder that holds a rank's files; None when the request does not say.
    #[must_use]
    pub fn folder_of(&self, rank: u32) -> Option<&Path> {
        if rank.checked_sub(self.first_rank).is_some_and(|nth| nth < self.ranks) {
            return Some(&self.dir);
        }
        self.others.iter().find(|folder| folder.holds_rank(rank)).map(|folder| folder.dir.as_path())
    }

    /// How many operations this host's `nth` rank does when neither time nor anybody stops it.
    #[must_use]
    pub fn operations_of_rank(&self, nth: usize) -> u32 {
        if self.phase.is_of_trees() {
            return 1;
        }
        self.files.get(nth).copied().unwrap_or(self.files_per_rank)
    }

    /// Bytes that an operation of this phase writes or reads.
    #[must_use]
    pub fn bytes_per_operation(&self) -> usize {
        if self.phase.moves_bytes() { self.file_bytes as usize } else { 0 }
    }
}

fn check_range(name: &str, value: u32, least: u32, most: u32) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::bad_request(format!("{name} of {value} is not within {least} to {most}")))
}
