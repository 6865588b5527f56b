//! Files of a checkpoint: written whole, and read and held against what was saved.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::spec::{ByteRange, FileSpec, Phase, Spec};
use crate::native::contents::{
    BlockState, ContentsKind, ContentsSpec, ContentsWriter, ExpectedWrite, SECTOR_BYTES,
    verify_block,
};
use crate::native::findings::BlockFindings;
use crate::native::random::split_mix;
use crate::sys::block::{TargetOpenOptions, open_target, read_block, write_block};
use crate::sys::buffer::{Block, Region};

/// What the names of files end with that are not yet published.
const PART_SUFFIX: &str = ".part";

/// What is written and read of all files.
pub struct Contents {
    writer: ContentsWriter,
    seed: u64,
    sequence: u64,
    direct: bool,
    verifies: bool,
    request_bytes: usize,
    findings: BlockFindings,
}

/// The memory of one thread.
pub struct Buffer {
    region: Region,
    block: Block,
}

impl Contents {
    /// Those of a spec.
    pub fn new(spec: &Spec) -> Self {
        let contents =
            ContentsSpec { kind: ContentsKind::Random, compress_percent: 0, dedupe_percent: 0 };
        Self {
            writer: ContentsWriter::new(&contents, spec.seed),
            seed: spec.seed,
            sequence: spec.sequence,
            direct: spec.direct,
            verifies: spec.verify,
            request_bytes: spec.request_bytes as usize,
            findings: BlockFindings::default(),
        }
    }

    /// Memory for one thread's reads or writes.
    pub fn buffer(&self, phase: Phase) -> io::Result<Buffer> {
        let mut region = Region::new(self.request_bytes)?;
        let block = region.block(0, self.request_bytes);
        if phase == Phase::Save {
            self.writer.fill_base(region.bytes_of(block));
        }
        Ok(Buffer { region, block })
    }

    /// Open a file: to be made anew for a save, else to be read.
    pub fn open(&self, path: &Path, phase: Phase) -> io::Result<File> {
        let writes = phase == Phase::Save;
        open_target(
            path,
            TargetOpenOptions {
                writes,
                direct: self.direct,
                exclusive: false,
                follow_links: false,
                create: writes,
            },
        )
    }

    /// Write a range of whole blocks, request by request; `each` is called around every one.
    pub fn write(
        &self,
        file: &File,
        spec: &FileSpec,
        range: ByteRange,
        buffer: &mut Buffer,
        mut each: impl FnMut(&mut dyn FnMut() -> io::Result<u64>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut offset = range.start;
        while offset < range.end {
            let bytes = (range.end - offset).min(self.request_bytes as u64);
            // Past the page cache only whole blocks can be written: the rest is cut off later.
            let used = if self.direct { bytes } else { bytes.min(spec.bytes - offset) };
            let piece = buffer.block.part(0, used as usize);
            let content = buffer.region.bytes_of(piece);
            self.writer.stamp_block(content, spec.number, offset, self.sequence);
            let covered = self.fill_tail(content, spec, offset);
            let goes_on = each(&mut || {
                move_all(used, |done| {
                    write_block(file, piece.part(done, piece.bytes()), offset + done as u64)
                })
            })?;
            if let Some((start, random)) = covered {
                buffer.region.bytes_of(piece)[start..][..random.len()].copy_from_slice(&random);
            }
            if !goes_on {
                return Ok(());
            }
            offset += bytes;
        }
        Ok(())
    }

    /// Read a range of whole blocks, request by request, and look at each.
    pub fn read(
        &self,
        file: &File,
        spec: &FileSpec,
        range: ByteRange,
        buffer: &mut Buffer,
        mut each: impl FnMut(&mut dyn FnMut() -> io::Result<u64>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut offset = range.start;
        while offset < range.end {
            let bytes = (range.end - offset).min(self.request_bytes as u64);
            let piece = buffer.block.part(0, bytes as usize);
            let wanted = bytes.min(spec.bytes - offset);
            let goes_on = each(&mut || {
                move_all(wanted, |done| {
                    read_block(file, piece.part(done, piece.bytes()), offset + done as u64)
                })
            })?;
            if !goes_on {
                return Ok(());
            }
            if self.verifies {
                let content = &mut buffer.region.bytes_of(piece)[..wanted as usize];
                self.look_at(content, spec, offset);
            }
            offset += bytes;
        }
        Ok(())
    }

    /// Fill in the bytes behind a file's last whole sector, which bears no stamp, where they are in
    /// this content: what stood there, and where, which the next stamp builds on.
    fn fill_tail(
        &self,
        content: &mut [u8],
        spec: &FileSpec,
        offset: u64,
    ) -> Option<(usize, Vec<u8>)> {
        let tail = spec.bytes / SECTOR_BYTES as u64 * SECTOR_BYTES as u64;
        let end = offset + content.len() as u64;
        if tail < offset || tail == spec.bytes || spec.bytes > end {
            return None;
        }
        let (start, stop) = ((tail - offset) as usize, (spec.bytes - offset) as usize);
        let covered = content[start..stop].to_vec();
        for (byte, at) in content[start..stop].iter_mut().zip(tail..) {
            *byte = self.tail_byte(spec, at);
        }
        Some((start, covered))
    }

    fn tail_byte(&self, spec: &FileSpec, at: u64) -> u8 {
        split_mix(self.seed ^ self.sequence, at ^ u64::from(spec.number) << 48) as u8
    }

    fn look_at(&self, content: &[u8], spec: &FileSpec, offset: u64) {
        let expected = ExpectedWrite::AtLeast(self.sequence);
        let stamped = content.len() / SECTOR_BYTES * SECTOR_BYTES;
        let state = verify_block(&content[..stamped], spec.number, offset, expected);
        let rest = offset + stamped as u64;
        let is_tail_whole = content[stamped..]
            .iter()
            .zip(rest..)
            .all(|(&byte, at)| byte == self.tail_byte(spec, at));
        let state = match state {
            BlockState::Ok if !is_tail_whole => BlockState::Corrupt { offset: rest },
            state => state,
        };
        self.findings.add_checked();
        if state != BlockState::Ok {
            self.findings.record_fault(state, &spec.path, offset, expected);
        }
    }

    /// What was found, as the end tells it; null where nothing was looked at.
    pub fn verification(&self, phase: Phase) -> Value {
        if !self.verifies || phase != Phase::Restore {
            return Value::Null;
        }
        self.findings.results()
    }
}

/// Call until so many bytes are moved, with how many are already; a call may move a part of the rest.
fn move_all(bytes: u64, mut call: impl FnMut(usize) -> io::Result<usize>) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        match call(done as usize) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(moved) => done += moved as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Where a file lies while it is written and is to be published.
pub fn part_path(spec: &FileSpec) -> PathBuf {
    PathBuf::from(format!("{}{PART_SUFFIX}", spec.path))
}

/// Remove a file and what was not published of it; one that is not there is no fault.
pub fn remove(spec: &FileSpec) -> io::Result<()> {
    for path in [part_path(spec), PathBuf::from(&spec.path)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::env;
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    const BYTES: u64 = 100_001;

    fn spec(sequence: u64, folder: &Path) -> Spec {
        let path = folder.join("file");
        let file = json!({ "path": path, "number": 7, "bytes": BYTES });
        let text = json!({
            "format": 1, "phase": "restore", "durable": "none", "direct": false, "verify": true,
            "request_bytes": 32768, "in_flight": 1, "seed": 3, "sequence": sequence,
            "interval_ms": 100, "ranks": [{ "rank": 0, "files": [file] }],
        });
        Spec::parse(text.to_string().as_bytes()).unwrap()
    }

    fn do_all(spec: &Spec, phase: Phase) -> Value {
        let (contents, file) = (Contents::new(spec), &spec.ranks[0].files[0]);
        let mut buffer = contents.buffer(phase).unwrap();
        let path = Path::new(&file.path);
        let range = ByteRange { start: 0, end: BYTES.next_multiple_of(4096) };
        let each = |call: &mut dyn FnMut() -> io::Result<u64>| call().map(|_| true);
        if phase == Phase::Save {
            let open = OpenOptions::new().write(true).create(true).truncate(true).open(path);
            // Twice, as a thread writes file after file from one buffer.
            contents.write(open.as_ref().unwrap(), file, range, &mut buffer, each).unwrap();
            contents.write(open.as_ref().unwrap(), file, range, &mut buffer, each).unwrap();
        } else {
            let open = File::open(path).unwrap();
            contents.read(&open, file, range, &mut buffer, each).unwrap();
        }
        contents.verification(phase)
    }

    #[test]
    fn what_was_saved_is_told_from_all_else() {
        let folder = env::temp_dir().join(format!("iolab-checkpoint-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let spec = spec(5, &folder);
        do_all(&spec, Phase::Save);
        let path = folder.join("file");
        assert_eq!(fs::metadata(&path).unwrap().len(), BYTES);
        let found = do_all(&spec, Phase::Restore);
        assert_eq!((&found["checked"], &found["corrupt"]), (&json!(4), &json!(0)), "{found}");

        // An older checkpoint's file, and single bytes, also behind the last whole sector.
        let newer = self::spec(6, &folder);
        assert_eq!(do_all(&newer, Phase::Restore)["stale"], 4);
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        for at in [40_000, BYTES - 1] {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ 1], at).unwrap();
            assert_eq!(do_all(&spec, Phase::Restore)["corrupt"], 1, "{at}");
            file.write_all_at(&byte, at).unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
