//! Which block an I/O goes to: drawn from a distribution, or one after the other.

use serde::Deserialize;

use super::random::{Permutation, Random, Zipf, scaled};

/// More than anybody writes by hand; a draw looks at all of them.
const MAX_ZONES: usize = 64;
/// A percentage may be off by its last printed digit.
const PERCENT_SLACK: f64 = 0.01;
/// Steeper than this, a single block takes all but 10^-30 of the accesses.
const MAX_THETA: f64 = 100.0;
/// Of the permutation that spreads ranks over the device, apart from those of passes.
const PLACES: u64 = u64::MAX;

/// How random blocks are drawn.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Distribution {
    /// Every block alike, with replacement: after as many draws as blocks, 37 % were not drawn.
    Uniform {},
    /// Each block once a pass, every pass in another order.
    Permutation {},
    /// The block of rank k is drawn with a probability proportional to k^-theta. Ranks are spread
    /// over the device by the seed.
    Zipf {
        /// Above zero; one is allowed.
        theta: f64,
    },
    /// Self-similar: a share of `h` of the blocks takes 1 - h of the accesses, of both parts
    /// again, and so on; 0.2 is "80 of 20". fio's `pareto:h`. Ranks are spread as for zipf.
    Pareto {
        /// Between zero and one; a half is uniform.
        h: f64,
    },
    /// Parts of the device, one behind the other, each with its share of the accesses.
    Zoned {
        /// In the order of their place; both percentages add up to 100.
        zones: Vec<Zone>,
    },
}

/// A part of the device.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Accesses that go to it.
    pub access_percent: f64,
    /// Its part of the blocks.
    pub size_percent: f64,
}

/// The stream of random blocks of one job.
#[derive(Debug, Clone)]
pub struct Offsets(Draw);

#[derive(Debug, Clone)]
enum Draw {
    Uniform { blocks: u64 },
    Permutation { order: Permutation, blocks: u64, seed: u64, pass: u64, index: u64 },
    Zipf { ranks: Zipf, places: Permutation },
    Pareto { power: f64, blocks: u64, places: Permutation },
    Zoned { zones: Box<[Drawn]> },
}

/// A zone as it is drawn: the accesses up to its end as a part of 2^64, and its blocks.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    accesses_end: u64,
    first_block: u64,
    blocks: u64,
}

impl Offsets {
    /// A stream over so many blocks; the seed tells orders and hot places of jobs apart. What is
    /// wrong with the distribution is told in one sentence.
    pub fn new(distribution: &Distribution, blocks: u64, seed: u64) -> Result<Self, String> {
        if blocks == 0 {
            return Err("There is no block to draw: the region is smaller than one block.".into());
        }
        let places = || Permutation::new(blocks, seed, PLACES);
        Ok(Self(match distribution {
            Distribution::Uniform {} => Draw::Uniform { blocks },
            Distribution::Permutation {} => {
                let order = Permutation::new(blocks, seed, 0);
                Draw::Permutation { order, blocks, seed, pass: 0, index: 0 }
            }
            &Distribution::Zipf { theta } if theta > 0.0 && theta <= MAX_THETA => {
                Draw::Zipf { ranks: Zipf::new(blocks, theta), places: places() }
            }
            &Distribution::Zipf { theta } => {
                let limit = format!("between 0 (not included) and {MAX_THETA}");
                return Err(format!("zipf has a theta of {theta}; it must be {limit}."));
            }
            &Distribution::Pareto { h } if h > 0.0 && h < 1.0 => {
                Draw::Pareto { power: h.ln() / (1.0 - h).ln(), blocks, places: places() }
            }
            &Distribution::Pareto { h } => {
                return Err(format!("pareto has an h of {h}; it must be between 0 and 1."));
            }
            Distribution::Zoned { zones } => Draw::Zoned { zones: drawn(zones, blocks)? },
        }))
    }

    /// The next block, below the number of blocks.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.0 {
            Draw::Uniform { blocks } => random.below(*blocks),
            Draw::Permutation { order, blocks, seed, pass, index } => {
                if *index == *blocks {
                    (*index, *pass) = (0, *pass + 1);
                    order.renew(*seed, *pass);
                }
                let place = order.at(*index);
                *index += 1;
                place
            }
            Draw::Zipf { ranks, places } => places.at(ranks.next(random)),
            Draw::Pareto { power, blocks, places } => {
                let part = (1.0 - random.unit()).powf(*power);
                places.at(((part * *blocks as f64) as u64).min(*blocks - 1))
            }
            Draw::Zoned { zones } => in_zones(zones, random),
        }
    }
}

/// Which zone is counted, not searched: no branch that the processor could guess wrongly.
#[inline]
fn in_zones(zones: &[Drawn], random: &mut Random) -> u64 {
    let access = random.next();
    let passed: usize = zones.iter().map(|zone| usize::from(access >= zone.accesses_end)).sum();
    let zone = zones[passed.min(zones.len() - 1)];
    zone.first_block + scaled(random.next(), zone.blocks)
}

/// Zones without accesses are left out; one with accesses must have a block.
fn drawn(zones: &[Zone], blocks: u64) -> Result<Box<[Drawn]>, String> {
    if zones.is_empty() || zones.len() > MAX_ZONES {
        return Err(format!("zoned has {} zones; it takes 1 to {MAX_ZONES}.", zones.len()));
    }
    let parts = |part: fn(&Zone) -> f64| zones.iter().map(part).sum::<f64>();
    let sums =
        [("access", parts(|zone| zone.access_percent)), ("size", parts(|zone| zone.size_percent))];
    for (name, sum) in sums {
        if (sum - 100.0).abs().partial_cmp(&PERCENT_SLACK).is_none_or(std::cmp::Ordering::is_gt) {
            return Err(format!("The {name}_percent of all zones add up to {sum}, not to 100."));
        }
    }
    let (mut accesses, mut size, mut first_block) = (0.0, 0.0, 0);
    let mut all = Vec::with_capacity(zones.len());
    for (number, zone) in (1..).zip(zones) {
        if zone.access_percent < 0.0 || zone.size_percent < 0.0 {
            return Err(format!("Zone {number} has a percentage below zero."));
        }
        accesses += zone.access_percent / sums[0].1;
        size += zone.size_percent / sums[1].1;
        let end = ((size * blocks as f64).round() as u64).min(blocks);
        let own = Drawn {
            accesses_end: (accesses * 2_f64.powi(64)) as u64,
            first_block,
            blocks: end - first_block,
        };
        first_block = end;
        if zone.access_percent > 0.0 {
            if own.blocks == 0 {
                return Err(format!("Zone {number} is smaller than one of {blocks} blocks."));
            }
            all.push(own);
        }
    }
    Ok(all.into())
}

/// One block after the other, from the start again when the next does not fit.
#[derive(Debug, Clone)]
pub struct Sequence {
    length: u64,
    next: u64,
}

impl Sequence {
    /// Over `length` of whatever unit the caller counts in, beginning at `first`.
    #[must_use]
    pub fn new(length: u64, first: u64) -> Self {
        Self { length, next: if first < length { first } else { 0 } }
    }

    /// Where the next `size` units lie. A size above the length lies at zero.
    #[inline]
    pub fn next(&mut self, size: u64) -> u64 {
        let at = if size > self.length - self.next { 0 } else { self.next };
        self.next = (at + size).min(self.length);
        at
    }
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
