//! The memory of all I/O of a worker: one aligned region, cut into a block for each slot.

use std::io;
use std::ptr::{self, NonNull};

/// Regions begin at this, which is also the size of a huge page where there are any.
const ALIGNMENT: usize = 2 << 20;
/// Blocks begin at multiples of this, as the strictest devices want their memory.
pub const BLOCK_ALIGNMENT: usize = 4096;

/// Memory that the kernel may write into at any time.
///
/// It is never unmapped: I/O may be under way until the process ends, however that comes.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a region is plain memory that nobody else has; its owner may move between threads.
unsafe impl Send for Region {}

/// A part of a region, as system calls take it.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: an address; whoever has the kernel work on it says why nobody else uses it meanwhile.
unsafe impl Send for Block {}

impl Region {
    /// Memory of at least so many bytes, present and zero.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(BLOCK_ALIGNMENT);
        let spare = bytes.next_multiple_of(ALIGNMENT) + ALIGNMENT;
        // SAFETY: a new anonymous mapping touches nothing that is there already.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                spare,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skipped = mapped.align_offset(ALIGNMENT);
        let start = NonNull::new(mapped.cast::<u8>().wrapping_add(skipped))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: the range lies within the mapping, which is `ALIGNMENT` larger. Advice may fail.
        unsafe {
            // One of thousands of threads with a block each must not take a huge page for it.
            if bytes >= ALIGNMENT {
                libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
            }
            ptr::write_bytes(start.as_ptr(), 0, bytes);
        }
        Ok(Self { start, bytes })
    }

    /// The part of it from `offset` on.
    ///
    /// # Panics
    /// Where it does not lie within the region.
    #[must_use]
    pub fn block(&self, offset: usize, bytes: usize) -> Block {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.bytes), "past the region");
        // SAFETY: the offset is within the mapping, as was just checked.
        Block { start: unsafe { self.start.add(offset) }, bytes }
    }

    /// The bytes of one of its blocks that no I/O is under way on.
    ///
    /// # Panics
    /// Where the block is of another region.
    #[inline]
    #[must_use]
    pub fn bytes_of(&mut self, block: Block) -> &mut [u8] {
        let offset = (block.start() as usize).wrapping_sub(self.start.as_ptr() as usize);
        assert!(offset <= self.bytes && block.bytes <= self.bytes - offset, "of another region");
        // SAFETY: the block lies within this region, which is mapped for ever; the slice borrows
        // the only handle of the region, so there is one at a time.
        unsafe { std::slice::from_raw_parts_mut(block.start.as_ptr(), block.bytes) }
    }
}

impl Block {
    /// Its first byte.
    #[inline]
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How long it is.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What is left of it after `skipped` bytes, at most `bytes` of that.
    #[inline]
    #[must_use]
    pub fn part(&self, skipped: usize, bytes: usize) -> Self {
        let skipped = skipped.min(self.bytes);
        // SAFETY: not past the end of the block.
        let start = unsafe { self.start.add(skipped) };
        Self { start, bytes: bytes.min(self.bytes - skipped) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_apart_and_inside() {
        let mut region = Region::new(3 * BLOCK_ALIGNMENT).unwrap();
        let blocks: Vec<Block> = (0..3).map(|nth| region.block(nth * 4096, 4096)).collect();
        for (nth, block) in blocks.iter().enumerate() {
            assert_eq!(block.start() as usize % BLOCK_ALIGNMENT, 0);
            region.bytes_of(*block).fill(nth as u8 + 1);
        }
        assert!(region.bytes_of(blocks[1]).iter().all(|&byte| byte == 2));
        let part = blocks[2].part(4000, 500);
        assert_eq!((part.bytes(), region.bytes_of(part)[0]), (96, 3));
        assert_eq!(blocks[0].part(5000, 1).bytes(), 0);
    }

    #[test]
    #[should_panic(expected = "past the region")]
    fn no_block_lies_past_the_region() {
        let _ = Region::new(1).unwrap().block(BLOCK_ALIGNMENT - 1, 2);
    }
}
