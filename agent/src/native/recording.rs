//! The I/Os of a run one by one as they were submitted, written as fio's iolog when it has ended.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::queue::IoKind;
use super::tsc::Clock;

/// I/Os that may be recorded: 32 MB of memory, and 45 MB of text.
pub const MAX_RECORDED: u32 = 1_000_000;

/// How many I/Os are recorded, and where to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingSpec {
    /// A file that is made anew.
    pub path: PathBuf,
    /// The first of them, of all threads together.
    pub ios: u32,
}

/// An I/O as it was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedIo {
    /// When, in ticks of the clock.
    pub submitted: u64,
    /// Where.
    pub offset: u64,
    /// How much.
    pub bytes: u32,
    /// On which target, by its place among all.
    pub target: u32,
    /// What it does.
    pub kind: IoKind,
}

/// The recorded I/Os of a thread, in the order of their submission; nothing is allocated after the
/// start.
#[derive(Debug, Default)]
pub struct Recorder {
    ios: Vec<RecordedIo>,
    most: usize,
}

impl Recorder {
    /// For so many; their memory is touched now.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let (submitted, offset, bytes, target, kind) = (0, 0, 0, 0, IoKind::Read);
        let mut ios = vec![RecordedIo { submitted, offset, bytes, target, kind }; most];
        ios.clear();
        Self { ios, most }
    }

    /// Whether there is room for more.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.ios.len() < self.most
    }

    /// Take one, if there is room.
    #[inline]
    pub fn record(&mut self, io: RecordedIo) {
        if self.has_room() {
            self.ios.push(io);
        }
    }

    /// All of them, and when there was no room any more.
    #[must_use]
    pub fn take(&mut self) -> Recording {
        let full_at = if self.has_room() { None } else { self.ios.last().map(|io| io.submitted) };
        Recording { ios: std::mem::take(&mut self.ios), full_at }
    }
}

/// What a thread recorded.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    ios: Vec<RecordedIo>,
    full_at: Option<u64>,
}

/// The I/Os of all threads in order: up to when the first of these had no room, as what the others
/// did after that would be a part of the load only.
#[must_use]
pub fn merge_recordings<'a>(
    threads: impl Iterator<Item = &'a Recording> + Clone,
) -> Vec<RecordedIo> {
    let end = threads.clone().filter_map(|thread| thread.full_at).min().unwrap_or(u64::MAX);
    let ios = threads.flat_map(|thread| thread.ios.iter().copied());
    let mut all: Vec<RecordedIo> = ios.filter(|io| io.submitted <= end).collect();
    all.sort_by_key(|io| io.submitted);
    all
}

/// Write them as fio's iolog of version 3, with microseconds after `start`.
pub fn write_iolog(
    path: &Path,
    ios: &[RecordedIo],
    targets: &[&Path],
    (clock, start): (Clock, u64),
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let names: Vec<String> = targets.iter().map(|path| name_in_iolog(path)).collect();
    let time_us = |ticks: u64| clock.ns(ticks.saturating_sub(start)) / 1000;
    let end_us = ios.last().map_or(0, |io| time_us(io.submitted));
    writeln!(file, "fio version 3 iolog")?;
    for name in &names {
        writeln!(file, "0 {name} add\n0 {name} open")?;
    }
    for RecordedIo { submitted, offset, bytes, target, kind } in ios.iter().copied() {
        let (time, name) = (time_us(submitted), &names[target as usize]);
        let action = match kind {
            IoKind::Read => "read",
            IoKind::Write => "write",
            IoKind::Trim => "trim",
            IoKind::Sync => "sync",
        };
        writeln!(file, "{time} {name} {action} {offset} {bytes}")?;
    }
    for name in &names {
        writeln!(file, "{end_us} {name} close")?;
    }
    file.flush()
}

/// A path without white space, which separates what a line has.
fn name_in_iolog(path: &Path) -> String {
    path.to_string_lossy().replace(|one: char| one.is_whitespace() || one.is_control(), "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn io(submitted: u64) -> RecordedIo {
        let (offset, bytes, target, kind) = (submitted * 512, 512, 0, IoKind::Read);
        RecordedIo { submitted, offset, bytes, target, kind }
    }

    fn recording(times: &[u64], most: usize) -> Recording {
        let mut recorder = Recorder::new(most);
        for &time in times {
            recorder.record(io(time));
        }
        recorder.take()
    }

    fn times(threads: &[Recording]) -> Vec<u64> {
        merge_recordings(threads.iter()).iter().map(|io| io.submitted).collect()
    }

    #[test]
    fn threads_are_merged_by_time() {
        assert_eq!(times(&[recording(&[1, 4, 9], 9), recording(&[2, 3], 9)]), [1, 2, 3, 4, 9]);
        assert!(times(&[]).is_empty());
    }

    #[test]
    fn a_recording_ends_when_the_first_thread_has_no_room() {
        assert_eq!(times(&[recording(&[1, 2, 3, 4], 2), recording(&[1, 2, 5], 9)]), [1, 1, 2, 2]);
    }

    #[test]
    fn nothing_is_recorded_unless_it_is_asked_for() {
        let mut recorder = Recorder::default();
        assert!(!recorder.has_room());
        recorder.record(io(1));
        assert!(times(&[recorder.take()]).is_empty());
    }

    #[test]
    fn an_iolog_has_times_names_and_actions() {
        let folder = TestFolder::new();
        let (path, clock) = (folder.path().join("log"), Clock::calibrated());
        let start = 1 << 40;
        let late = RecordedIo { submitted: start + clock.ticks_of(7_000_500), ..io(8) };
        let sync = RecordedIo { kind: IoKind::Sync, target: 1, bytes: 0, offset: 0, ..late };
        let targets = [Path::new("/a b"), Path::new("c")];
        write_iolog(
            &path,
            &[RecordedIo { submitted: start, ..io(3) }, late, sync],
            &targets,
            (clock, start),
        )
        .unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "fio version 3 iolog",
                "0 /a_b add",
                "0 /a_b open",
                "0 c add",
                "0 c open",
                "0 /a_b read 1536 512",
                "7000 /a_b read 4096 512",
                "7000 c sync 0 0",
                "7000 /a_b close",
                "7000 c close",
            ]
        );
        assert!(write_iolog(Path::new("/nowhere/log"), &[], &targets, (clock, start)).is_err());
    }
}
