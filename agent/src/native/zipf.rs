//! Ranks by Zipf's law, exactly and without a table: rejection-inversion of Hörmann and Derflinger
//! (Rejection-inversion to generate variates from monotone discrete distributions, 1996).

use super::random::Random;

/// Draws a rank k of n with a probability proportional to k^-theta.
#[derive(Debug, Clone)]
pub struct Zipf {
    ranks: f64,
    theta: f64,
    /// The integral of the hat function at its two ends.
    low: f64,
    high: f64,
    /// Closer than this above the inverse, a rank is accepted without a second look.
    close: f64,
}

impl Zipf {
    /// At least one rank, a theta above zero.
    #[must_use]
    pub fn new(ranks: u64, theta: f64) -> Self {
        let ranks = ranks as f64;
        let hat = Self { ranks, theta, low: 0.0, high: 0.0, close: 0.0 };
        Self {
            low: hat.integral(1.5) - 1.0,
            high: hat.integral(ranks + 0.5),
            close: 2.0 - hat.inverse(hat.integral(2.5) - hat.density(2.0)),
            ..hat
        }
    }

    /// The next rank, from zero: the likeliest is zero.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let at = self.inverse(area);
            let rank = (at + 0.5).floor().clamp(1.0, self.ranks);
            if rank - at <= self.close || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// x^-theta.
    #[inline]
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// (x^(1 - theta) - 1) / (1 - theta), and its limit ln x where theta is one.
    #[inline]
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.theta) * log;
        if power.abs() < 1e-8 { log * (1.0 + power / 2.0) } else { power.exp_m1() / power * log }
    }

    /// Of the integral.
    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        if power.abs() < 1e-8 {
            (area * (1.0 - power / 2.0)).exp()
        } else {
            (power.ln_1p() / power * area).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "millions of draws")]
    fn ranks_come_as_often_as_the_law_says() {
        const DRAWS: u32 = 400_000;
        for (ranks, theta) in [(1000, 1.1), (1000, 0.9), (1000, 1.0), (50, 2.0), (100_000, 1.2)] {
            let zipf = Zipf::new(ranks, theta);
            let mut random = Random::new(11);
            let mut counts = [0_u32; 20];
            for _ in 0..DRAWS {
                let rank = zipf.next(&mut random);
                assert!(rank < ranks);
                if let Some(count) = counts.get_mut(rank as usize) {
                    *count += 1;
                }
            }
            let whole: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).sum();
            for (rank, count) in (1..).zip(counts) {
                let expected = f64::from(DRAWS) * f64::from(rank).powf(-theta) / whole;
                let off = (f64::from(count) - expected) / expected.sqrt();
                // A hundred ranks are looked at; one in a million of them is off by so much.
                assert!(off.abs() < 5.0, "theta {theta}, rank {rank}: {count} of {expected}");
            }
        }
    }

    #[test]
    fn one_rank_is_always_drawn_and_huge_devices_have_ranks() {
        let mut random = Random::new(1);
        assert!((0..100).all(|_| Zipf::new(1, 1.1).next(&mut random) == 0));
        let huge = Zipf::new(1 << 50, 0.5);
        assert!((0..1000).all(|_| huge.next(&mut random) < 1 << 50));
        let steep = Zipf::new(1 << 50, 100.0);
        assert!((0..1000).all(|_| steep.next(&mut random) == 0));
    }
}
