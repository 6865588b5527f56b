//! A loader: it reads the files of its batches, one after the other, ahead of its accelerator.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use super::accelerator::StepCounters;
use super::engine::Training;
use super::samples::FilePart;
use super::spec::ALIGNMENT;
use crate::latency::add_by_owner;
use crate::native::counts::WorkerCounters;
use crate::native::queue::IoKind;
use crate::native::timed::{Ended, ThreadCounters};
use crate::sys::block::{TargetOpenOptions, open_target, read_block};
use crate::sys::buffer::{Block, Region};

/// The memory of one loader.
pub struct Buffer {
    // It is mapped as long as the block is used.
    _region: Region,
    block: Block,
}

impl Buffer {
    /// For reads of that size.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let region = Region::new(bytes as usize)?;
        let block = region.block(0, bytes as usize);
        Ok(Self { _region: region, block })
    }
}

impl Training {
    /// Read every batch of an accelerator that is this loader's, until all is over.
    pub fn load_until_over(
        &self,
        (accelerator, loader): (u32, u32),
        own: &ThreadCounters<StepCounters>,
        buffer: &Buffer,
        tell: &Sender<Ended>,
    ) {
        let mut last = 0;
        let mut parts = Vec::new();
        let (loaders, prefetch) = (u64::from(self.spec.loaders), u64::from(self.spec.prefetch));
        let queue = &self.accelerators[accelerator as usize];
        'all: for epoch in 0.. {
            let mut order: Option<Arc<Vec<u32>>> = None;
            for batch in (u64::from(loader)..self.steps).step_by(self.spec.loaders as usize) {
                if !queue.wait_for_room(epoch, batch, loaders, prefetch) {
                    break 'all;
                }
                let begun = self.clock.ticks();
                let order = order.get_or_insert_with(|| self.order(epoch));
                self.samples.parts_of_batch(&self.spec, order, accelerator, batch, &mut parts);
                for &part in &parts {
                    if self.is_over() {
                        break 'all;
                    }
                    last = self.read_part(part, own, buffer);
                }
                last = self.clock.ticks();
                let load_ns = self.clock.ns(last.saturating_sub(begun));
                own.1.batch_load.add(load_ns);
                self.epochs.add_load(epoch, load_ns, parts.iter().map(|part| part.bytes).sum());
                queue.set_ready(batch, last);
            }
        }
        let _ = tell.send(last);
    }

    /// Read a part of a file; now.
    fn read_part(
        &self,
        part: FilePart,
        own: &ThreadCounters<StepCounters>,
        buffer: &Buffer,
    ) -> u64 {
        let opened = self.clock.ticks();
        let path = format!("{}{}", self.spec.path, part.file);
        let options = TargetOpenOptions {
            writes: false,
            direct: self.spec.direct,
            exclusive: false,
            follow_links: false,
            create: false,
        };
        let outcome = open_target(Path::new(&path), options)
            .and_then(|file| self.read_range(&file, part, &own.0, buffer));
        let now = self.clock.ticks();
        match outcome {
            Ok(()) => own.1.file_read.add(self.clock.ns(now.saturating_sub(opened))),
            Err(error) => {
                if let Some(reads) = own.0.counters_of(IoKind::Read) {
                    reads.response.fail(error.raw_os_error());
                }
            }
        }
        now
    }

    fn read_range(
        &self,
        file: &File,
        part: FilePart,
        own: &WorkerCounters,
        buffer: &Buffer,
    ) -> io::Result<()> {
        let reads = own.counters_of(IoKind::Read);
        // Direct I/O takes whole sectors; files have a whole number of them.
        let end = (part.offset + part.bytes).next_multiple_of(ALIGNMENT).min(self.spec.file_bytes);
        let mut at = part.offset / ALIGNMENT * ALIGNMENT;
        while at < end && !self.is_over() {
            let bytes = (end - at).min(self.spec.read_bytes) as usize;
            let begun = self.clock.ticks();
            own.set_in_flight(1);
            let read = read_block(file, buffer.block.part(0, bytes), at);
            let now = self.clock.ticks();
            own.set_in_flight(0);
            if self.is_over() {
                own.count_drained();
            }
            if read? != bytes {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(reads) = reads {
                reads.response.add(self.clock.ns(now.saturating_sub(begun)));
                add_by_owner(&reads.bytes, bytes as u64);
            }
            at += bytes as u64;
        }
        Ok(())
    }
}
