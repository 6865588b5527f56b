//! Which block an I/O goes to: drawn from a distribution, or one after the other.

use serde::Deserialize;

use super::random::{Permutation, Random, Zipf, scale_below};

/// More than anybody writes by hand; a draw looks at all of them.
const MAX_ZONES: usize = 64;
/// A percentage may be off by its last printed digit.
const PERCENT_SLACK: f64 = 0.01;
/// Steeper than this, a single block takes all but 10^-30 of the accesses.
const MAX_THETA: f64 = 100.0;
/// Of the permutation that spreads ranks over the device, apart from those of passes.
const PLACES_PERMUTATION: u64 = u64::MAX;

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
pub struct Offsets(BlockSampler);

#[derive(Debug, Clone)]
enum BlockSampler {
    Uniform { blocks: u64 },
    Permutation { order: Permutation, blocks: u64, seed: u64, pass: u64, index: u64 },
    Zipf { ranks: Zipf, places: Permutation },
    Pareto { power: f64, blocks: u64, places: Permutation },
    Zoned { zones: Box<[ZoneBounds]> },
}

/// A zone as it is drawn: the accesses up to its end as a part of 2^64, and its blocks.
#[derive(Debug, Clone, Copy)]
struct ZoneBounds {
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
        let places = || Permutation::new(blocks, seed, PLACES_PERMUTATION);
        Ok(Self(match distribution {
            Distribution::Uniform {} => BlockSampler::Uniform { blocks },
            Distribution::Permutation {} => {
                let order = Permutation::new(blocks, seed, 0);
                BlockSampler::Permutation { order, blocks, seed, pass: 0, index: 0 }
            }
            &Distribution::Zipf { theta } if theta > 0.0 && theta <= MAX_THETA => {
                BlockSampler::Zipf { ranks: Zipf::new(blocks, theta), places: places() }
            }
            &Distribution::Zipf { theta } => {
                let limit = format!("between 0 (not included) and {MAX_THETA}");
                return Err(format!("zipf has a theta of {theta}; it must be {limit}."));
            }
            &Distribution::Pareto { h } if h > 0.0 && h < 1.0 => {
                BlockSampler::Pareto { power: h.ln() / (1.0 - h).ln(), blocks, places: places() }
            }
            &Distribution::Pareto { h } => {
                return Err(format!("pareto has an h of {h}; it must be between 0 and 1."));
            }
            Distribution::Zoned { zones } => {
                BlockSampler::Zoned { zones: zone_bounds(zones, blocks)? }
            }
        }))
    }

    /// The next block, below the number of blocks.
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.0 {
            BlockSampler::Uniform { blocks } => random.next_below(*blocks),
            BlockSampler::Permutation { order, blocks, seed, pass, index } => {
                if *index == *blocks {
                    (*index, *pass) = (0, *pass + 1);
                    order.reseed(*seed, *pass);
                }
                let place = order.at(*index);
                *index += 1;
                place
            }
            BlockSampler::Zipf { ranks, places } => places.at(ranks.next(random)),
            BlockSampler::Pareto { power, blocks, places } => {
                let part = (1.0 - random.next_unit()).powf(*power);
                places.at(((part * *blocks as f64) as u64).min(*blocks - 1))
            }
            BlockSampler::Zoned { zones } => draw_from_zones(zones, random),
        }
    }
}

/// Which zone is counted, not searched: no branch that the processor could guess wrongly.
#[inline]
fn draw_from_zones(zones: &[ZoneBounds], random: &mut Random) -> u64 {
    let access = random.next();
    let passed: usize = zones.iter().map(|zone| usize::from(access >= zone.accesses_end)).sum();
    let zone = zones[passed.min(zones.len() - 1)];
    zone.first_block + scale_below(random.next(), zone.blocks)
}

/// Zones without accesses are left out; one with accesses must have a block.
fn zone_bounds(zones: &[Zone], blocks: u64) -> Result<Box<[ZoneBounds]>, String> {
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
        let own = ZoneBounds {
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
mod tests {
    use super::*;

    fn stream(distribution: &Distribution, blocks: u64) -> impl Iterator<Item = u64> + use<> {
        let mut offsets = Offsets::new(distribution, blocks, 42).unwrap();
        let mut random = Random::new(42);
        std::iter::repeat_with(move || offsets.next(&mut random))
    }

    fn zones(parts: &[(f64, f64)]) -> Distribution {
        let zone = |&(access_percent, size_percent)| Zone { access_percent, size_percent };
        Distribution::Zoned { zones: parts.iter().map(zone).collect() }
    }

    /// The five standard deviations that a share of so many draws may be off.
    fn slack(share: f64, draws: usize) -> f64 {
        5.0 * (share * (1.0 - share) / draws as f64).sqrt()
    }

    #[test]
    fn a_pass_of_a_permutation_has_each_block_once_and_the_next_another_order() {
        let all: Vec<u64> = stream(&Distribution::Permutation {}, 1000).take(3000).collect();
        let passes: Vec<&[u64]> = all.chunks(1000).collect();
        for pass in &passes {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..1000));
        }
        assert!(passes[0] != passes[1] && passes[1] != passes[2] && passes[0] != passes[2]);
    }

    #[test]
    fn uniform_blocks_come_with_replacement() {
        let mut seen = vec![false; 10_000];
        stream(&Distribution::Uniform {}, 10_000)
            .take(10_000)
            .for_each(|at| seen[at as usize] = true);
        let share = seen.iter().filter(|&&seen| !seen).count() as f64 / 1e4;
        // 1/e, with a standard deviation below that of independent blocks.
        assert!((share - 1.0 / std::f64::consts::E).abs() < slack(0.368, 10_000), "{share}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn zipfs_hottest_block_has_its_share_and_lies_anywhere() {
        let draws = 200_000;
        let mut counts = vec![0_u32; 1000];
        let zipf = Distribution::Zipf { theta: 1.1 };
        stream(&zipf, 1000).take(draws).for_each(|at| counts[at as usize] += 1);
        let hottest = (0..1000).max_by_key(|&at| counts[at]).unwrap();
        let share = f64::from(counts[hottest]) / draws as f64;
        let exact = 1.0 / (1..=1000).map(|rank| f64::from(rank).powf(-1.1)).sum::<f64>();
        assert!((share - exact).abs() < slack(exact, draws), "{share} of {exact}");
        let places = Permutation::new(1000, 42, PLACES_PERMUTATION);
        assert_eq!(hottest as u64, places.at(0));
        assert_ne!(Permutation::new(1000, 43, PLACES_PERMUTATION).at(0), places.at(0));
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn paretos_hot_fifth_takes_four_fifths_again_and_again() {
        let (draws, blocks) = (200_000, 10_000);
        for h in [0.2, 0.1, 0.5, 0.7] {
            let mut counts = vec![0_u32; blocks];
            let pareto = Distribution::Pareto { h };
            stream(&pareto, blocks as u64).take(draws).for_each(|at| counts[at as usize] += 1);
            let places = Permutation::new(blocks as u64, 42, PLACES_PERMUTATION);
            for depth in [1, 2] {
                let hot = (h.powi(depth) * blocks as f64).round() as u64;
                let taken: u32 = (0..hot).map(|rank| counts[places.at(rank) as usize]).sum();
                let (share, exact) = (f64::from(taken) / draws as f64, (1.0 - h).powi(depth));
                assert!((share - exact).abs() < slack(exact, draws), "{h}: {share} of {exact}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of thousands of draws")]
    fn zones_get_their_accesses_evenly_inside() {
        let draws = 200_000;
        let distribution = zones(&[(60.0, 10.0), (0.0, 30.0), (10.0, 20.0), (30.0, 40.0)]);
        let mut counts = vec![0_u32; 1000];
        stream(&distribution, 1000).take(draws).for_each(|at| counts[at as usize] += 1);
        for (range, share) in [(0..100, 0.6), (100..400, 0.0), (400..600, 0.1), (600..1000, 0.3)] {
            let expected = share / range.len() as f64;
            for at in range {
                let got = f64::from(counts[at]) / draws as f64;
                assert!(
                    (got - expected).abs() <= slack(expected, draws),
                    "{at}: {got} of {expected}"
                );
            }
        }
    }

    #[test]
    fn every_distribution_reaches_each_of_few_blocks_and_no_other() {
        for blocks in [1, 2, 3, 5] {
            for distribution in [
                Distribution::Uniform {},
                Distribution::Permutation {},
                Distribution::Zipf { theta: 0.9 },
                Distribution::Pareto { h: 0.2 },
                zones(&[(100.0, 100.0)]),
            ] {
                let mut reached: Vec<u64> = stream(&distribution, blocks).take(500).collect();
                reached.sort_unstable();
                reached.dedup();
                assert!(reached.into_iter().eq(0..blocks), "{distribution:?} of {blocks}");
            }
        }
    }

    #[test]
    fn what_cannot_be_drawn_is_told_with_its_value() {
        let told = |distribution: &Distribution, blocks| {
            Offsets::new(distribution, blocks, 1).expect_err("cannot be drawn")
        };
        assert!(told(&Distribution::Uniform {}, 0).contains("no block"));
        for theta in [0.0, -1.0, 101.0, f64::NAN, f64::INFINITY] {
            assert!(told(&Distribution::Zipf { theta }, 9).contains(&format!("theta of {theta};")));
        }
        for h in [0.0, 1.0, f64::NAN] {
            assert!(told(&Distribution::Pareto { h }, 9).contains(&format!("h of {h};")));
        }
        assert!(told(&zones(&[]), 9).contains("0 zones"));
        assert!(told(&zones(&[(1.0, 1.0); 100]), 9).contains("100 zones"));
        assert!(
            told(&zones(&[(50.0, 100.0)]), 9).contains("access_percent of all zones add up to 50")
        );
        assert!(
            told(&zones(&[(100.0, 90.0)]), 9).contains("size_percent of all zones add up to 90")
        );
        assert!(told(&zones(&[(f64::NAN, 100.0)]), 9).contains("NaN"));
        assert!(told(&zones(&[(150.0, 50.0), (-50.0, 50.0)]), 9).contains("Zone 2"));
        assert!(told(&zones(&[(99.0, 99.0), (1.0, 1.0)]), 9).contains("Zone 2 is smaller"));
    }

    #[test]
    fn a_distribution_is_read_as_it_is_written() {
        let read = |text| serde_json::from_str::<Distribution>(text);
        assert_eq!(read(r#"{"kind":"uniform"}"#).unwrap(), Distribution::Uniform {});
        let zipf = read(r#"{"kind":"zipf","theta":1.1}"#).unwrap();
        assert_eq!(zipf, Distribution::Zipf { theta: 1.1 });
        let zoned = r#"{"kind":"zoned","zones":[{"access_percent":80,"size_percent":20},
        {"access_percent":20,"size_percent":80}]}"#;
        assert_eq!(read(zoned).unwrap(), zones(&[(80.0, 20.0), (20.0, 80.0)]));
        for wrong in [
            r#"{"kind":"uniform","theta":1}"#,
            r#"{"kind":"normal"}"#,
            r#"{"kind":"pareto"}"#,
            r#"{"kind":"zoned","zones":[{"access_percent":80,"size_percent":20,"x":1}]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_sequence_goes_on_and_wraps_where_the_next_does_not_fit() {
        let mut blocks = Sequence::new(3, 1);
        assert_eq!([(); 5].map(|()| blocks.next(1)), [1, 2, 0, 1, 2]);
        let mut bytes = Sequence::new(10_000, 0);
        assert_eq!([4096, 4096, 4096, 512].map(|size| bytes.next(size)), [0, 4096, 0, 4096]);
        let mut late = Sequence::new(10, 99);
        assert_eq!([late.next(10), late.next(10), late.next(11), late.next(1)], [0, 0, 0, 0]);
    }
}
