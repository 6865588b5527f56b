//! The least lateness that an open loop can have on this core: of a loop that only reads the clock.
//!
//! Times are due at RATE a second (200,000), evenly and by a Poisson process; each is as late as
//! the first look at the clock behind it. What shows is what takes the core from the loop: ticks,
//! interrupts, other threads, the hypervisor. `ROUNDS` and `SECONDS` say how much; taskset pins it.

use std::env;
use std::time::{Duration, Instant};

const NS_A_SECOND: f64 = 1e9;

fn main() {
    let gap_ns = NS_A_SECOND / number("RATE").unwrap_or(200_000.0);
    let seconds = number("SECONDS").unwrap_or(1.0);
    let rounds = number("ROUNDS").unwrap_or(5.0) as u32;
    for (arrivals, is_poisson) in [("fixed", false), ("poisson", true)] {
        let mut random = 0x9E37_79B9_7F4A_7C15;
        let mut p99s: Vec<Duration> = (0..rounds)
            .map(|_| p99_lateness(seconds, || gap(gap_ns, is_poisson, &mut random)))
            .collect();
        p99s.sort_unstable();
        println!(
            "{arrivals}: lateness p99 of a loop that only reads the clock, by round: {p99s:.1?}"
        );
    }
}

/// Waits for each due time in turn for `seconds`; the p99 of how much later the clock was read.
fn p99_lateness(seconds: f64, mut gap: impl FnMut() -> Duration) -> Duration {
    let total = Duration::from_secs_f64(seconds);
    let mut late = Vec::new();
    let mut due = Duration::ZERO;
    let start = Instant::now();
    while due < total {
        due += gap();
        let mut now = start.elapsed();
        while now < due {
            now = start.elapsed();
        }
        late.push(now.saturating_sub(due));
    }
    let rank = late.len() * 99 / 100;
    *late.select_nth_unstable(rank).1
}

fn gap(mean_ns: f64, is_poisson: bool, random: &mut u64) -> Duration {
    let factor = if is_poisson { -(1.0 - uniform(random)).ln() } else { 1.0 };
    Duration::from_secs_f64(mean_ns * factor / NS_A_SECOND)
}

/// The next of xorshift64*'s numbers, from 0 up to 1.
fn uniform(state: &mut u64) -> f64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
}

fn number(name: &str) -> Option<f64> {
    env::var(name).ok()?.parse().ok()
}
