//! Which blocks a store holds: those that were used last.

/// The order of use of blocks 0 to n - 1, as a ring of links through the place n.
#[derive(Debug, Clone)]
pub struct Lru {
    newer: Vec<u32>,
    older: Vec<u32>,
    is_held: Vec<bool>,
    held: usize,
    capacity: usize,
}

impl Lru {
    /// One of so many blocks that holds none of them yet, and `capacity` at most.
    #[must_use]
    pub fn new(blocks: usize, capacity: usize) -> Self {
        let ring = blocks as u32;
        Self {
            newer: vec![ring; blocks + 1],
            older: vec![ring; blocks + 1],
            is_held: vec![false; blocks],
            held: 0,
            capacity,
        }
    }

    /// How many it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held
    }

    /// Whether it holds a block.
    #[inline]
    #[must_use]
    pub fn holds(&self, block: u32) -> bool {
        self.is_held[block as usize]
    }

    /// How many blocks of a request it holds, from the first one on.
    #[must_use]
    pub fn prefix_hits(&self, blocks: &[u32]) -> usize {
        blocks.iter().take_while(|&&block| self.holds(block)).count()
    }

    /// Use a block, which is held from now on.
    pub fn touch(&mut self, block: u32) {
        if self.is_held[block as usize] {
            self.unlink(block);
        } else {
            self.is_held[block as usize] = true;
            self.held += 1;
        }
        let ring = self.ring();
        let newest = self.older[ring];
        self.older[ring] = block;
        self.newer[block as usize] = ring as u32;
        self.older[block as usize] = newest;
        self.newer[newest as usize] = block;
    }

    /// Drop the block that was not used for longest, where more are held than there is room for.
    pub fn evict(&mut self) -> Option<u32> {
        if self.held <= self.capacity {
            return None;
        }
        let oldest = self.newer[self.ring()];
        self.unlink(oldest);
        self.is_held[oldest as usize] = false;
        self.held -= 1;
        Some(oldest)
    }

    fn ring(&self) -> usize {
        self.is_held.len()
    }

    fn unlink(&mut self, block: u32) {
        let (newer, older) = (self.newer[block as usize], self.older[block as usize]);
        self.older[newer as usize] = older;
        self.newer[older as usize] = newer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::random::Random;

    #[test]
    fn it_holds_what_a_list_in_the_order_of_use_holds() {
        let (blocks, capacity) = (60, 17);
        let mut random = Random::new(5);
        let mut lru = Lru::new(blocks, capacity);
        let mut list: Vec<u32> = Vec::new();
        for _ in 0..20_000 {
            let block = random.next_below(blocks as u64) as u32;
            assert_eq!(lru.holds(block), list.contains(&block));
            list.retain(|&held| held != block);
            list.insert(0, block);
            lru.touch(block);
            let dropped = if list.len() > capacity { list.pop() } else { None };
            assert_eq!(lru.evict(), dropped);
            assert_eq!((lru.len(), lru.evict()), (list.len(), None));
        }
    }

    #[test]
    fn a_prefix_ends_at_the_first_block_that_is_missing() {
        let mut lru = Lru::new(4, 4);
        for block in [0, 1, 3] {
            lru.touch(block);
        }
        assert_eq!(lru.prefix_hits(&[0, 1, 2, 3]), 2);
        assert_eq!(lru.prefix_hits(&[2, 3]), 0);
    }
}
