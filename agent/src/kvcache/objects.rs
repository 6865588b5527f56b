//! Objects on the target: read and written whole, in pieces, and held against what was written.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::spec::{Placement, Spec};
use super::store::ObjectPlace;
use crate::native::contents::{
    BlockState, ContentsKind, ContentsSpec, ContentsWriter, ExpectedWrite, verify_block,
};
use crate::native::findings::BlockFindings;
use crate::sys::block::{TargetOpenOptions, fsync, open_target, read_block, write_block};
use crate::sys::buffer::{Block, Region};

/// A piece of an object in one system call: large enough for any device, small enough that a
/// thousand threads have one each.
const MAX_PIECE_BYTES: u64 = 4 << 20;

/// The target of all threads.
pub struct Objects {
    slab: Option<File>,
    path: String,
    object_bytes: u64,
    piece_bytes: u64,
    direct: bool,
    fsync: bool,
    verifies: bool,
    writer: ContentsWriter,
    findings: BlockFindings,
}

/// The memory of one thread.
pub struct Buffer {
    region: Region,
    block: Block,
}

impl Objects {
    /// Those of a spec: the slab is opened, files are opened when they are used.
    pub fn open(spec: &Spec) -> Result<Self, String> {
        let slab = match spec.place {
            Placement::Slab => Some(open_slab(spec)?),
            Placement::Files => None,
        };
        let contents =
            ContentsSpec { kind: ContentsKind::Random, compress_percent: 0, dedupe_percent: 0 };
        Ok(Self {
            slab,
            path: spec.path.clone(),
            object_bytes: spec.object_bytes,
            piece_bytes: spec.object_bytes.min(MAX_PIECE_BYTES),
            direct: spec.direct,
            fsync: spec.fsync,
            verifies: spec.verify,
            writer: ContentsWriter::new(&contents, spec.seed),
            findings: BlockFindings::default(),
        })
    }

    /// Memory for one thread's reads or writes.
    pub fn buffer(&self) -> io::Result<Buffer> {
        let mut region = Region::new(self.piece_bytes as usize)?;
        let block = region.block(0, self.piece_bytes as usize);
        self.writer.fill_base(region.bytes_of(block));
        Ok(Buffer { region, block })
    }

    /// Read an object whole, and look at it.
    pub fn read(&self, place: ObjectPlace, buffer: &mut Buffer) -> io::Result<()> {
        let own;
        let file = if let Some(slab) = &self.slab {
            slab
        } else {
            own = self.open_file(&self.file_path(place), false)?;
            &own
        };
        self.for_each_piece(place, |offset, bytes, object_offset| {
            let piece = buffer.block.part(0, bytes);
            if read_block(file, piece, offset)? != bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.verifies {
                let target = self.target_of(place);
                let at = if self.slab.is_some() { offset } else { object_offset };
                self.look_at(buffer.region.bytes_of(piece), target, at, place.sequence);
            }
            Ok(())
        })
    }

    /// Write an object whole.
    pub fn write(&self, place: ObjectPlace, buffer: &mut Buffer) -> io::Result<()> {
        if let Some(slab) = &self.slab {
            self.write_pieces(slab, place, buffer)?;
            return if self.fsync { fsync(slab) } else { Ok(()) };
        }
        let path = self.file_path(place);
        let aside = PathBuf::from(format!("{}.part", path.display()));
        let file = self.open_file(&aside, true)?;
        self.write_pieces(&file, place, buffer)?;
        if self.fsync {
            fsync(&file)?;
        }
        drop(file);
        fs::rename(aside, path)
    }

    fn write_pieces(&self, file: &File, place: ObjectPlace, buffer: &mut Buffer) -> io::Result<()> {
        let target = self.target_of(place);
        self.for_each_piece(place, |offset, bytes, _| {
            let piece = buffer.block.part(0, bytes);
            let content = buffer.region.bytes_of(piece);
            self.writer.stamp_block(content, target, offset, place.sequence);
            if write_block(file, piece, offset)? != bytes {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(())
        })
    }

    /// Call with the offset in the file, the bytes, and the offset in the object, of each piece.
    fn for_each_piece(
        &self,
        place: ObjectPlace,
        mut each: impl FnMut(u64, usize, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = if self.slab.is_some() { place.number * self.object_bytes } else { 0 };
        let mut done = 0;
        while done < self.object_bytes {
            let bytes = self.piece_bytes.min(self.object_bytes - done);
            each(start + done, bytes as usize, done)?;
            done += bytes;
        }
        Ok(())
    }

    /// The number of the file in stamps: the slab is one, as are those that were laid out.
    fn target_of(&self, place: ObjectPlace) -> u32 {
        if self.slab.is_some() { 0 } else { place.number as u32 }
    }

    fn file_path(&self, place: ObjectPlace) -> PathBuf {
        PathBuf::from(format!("{}{}", self.path, place.number))
    }

    fn open_file(&self, path: &std::path::Path, writes: bool) -> io::Result<File> {
        open_target(path, options(writes, writes, self.direct))
    }

    fn look_at(&self, content: &[u8], target: u32, offset: u64, sequence: u64) {
        // What was there before the start may be of several writes.
        let expected = match sequence {
            0 => ExpectedWrite::MixedFrom(1),
            sequence => ExpectedWrite::AtLeast(sequence),
        };
        let state = verify_block(content, target, offset, expected);
        self.findings.add_checked();
        if state != BlockState::Ok {
            self.findings.record_fault(state, &self.path, offset, expected);
        }
    }

    /// What was found, as the end tells it; null where nothing was looked at.
    pub fn verification(&self) -> Value {
        if !self.verifies {
            return Value::Null;
        }
        self.findings.results()
    }
}

fn open_slab(spec: &Spec) -> Result<File, String> {
    let path = PathBuf::from(&spec.path);
    let name = path.display();
    let file = open_target(&path, options(true, false, spec.direct))
        .map_err(|error| format!("{name} cannot be opened: {error}."))?;
    let wanted = u64::from(spec.slots) * u64::from(spec.objects) * spec.object_bytes;
    match file.metadata() {
        Ok(meta) if meta.len() >= wanted => Ok(file),
        Ok(meta) => Err(format!("{name} has {} bytes, and the store wants {wanted}.", meta.len())),
        Err(error) => Err(format!("{name} has no size: {error}.")),
    }
}

fn options(writes: bool, create: bool, direct: bool) -> TargetOpenOptions {
    TargetOpenOptions { writes, direct, exclusive: false, follow_links: false, create }
}
